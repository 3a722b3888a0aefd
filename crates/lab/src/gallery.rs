//! The decks' experiments as scenarios: one exhibit per claim, with the reported result.

use landspeed_problems::near_or_list;

use crate::scenario::Problems;

/// One scenario that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhibit {
    /// Name on the command line.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Upper bound of the run time of all its cells on two cores, minutes.
    pub minutes: u32,
    /// The scenario.
    pub text: &'static str,
}

macro_rules! exhibits {
    ($(($name:literal, $minutes:literal, $title:literal),)*) => {
        &[$(Exhibit {
            name: $name,
            title: $title,
            minutes: $minutes,
            text: include_str!(concat!("gallery/", $name, ".toml")),
        },)*]
    };
}

/// Every exhibit, the switch buffers first.
pub const EXHIBITS: &[Exhibit] = exhibits![
    ("buffer-size", 40, "throughput over the size of a switch buffer, 15 seeds"),
    ("buffer-fq", 10, "a small buffer with and without fq on the sender"),
    ("buffer-tso", 10, "a small buffer with TSO on and off"),
    ("buffer-cc", 15, "cubic, htcp and bbr on three buffers"),
    ("small-upstream", 5, "a small buffer upstream, congested or not"),
    ("nuttcp-burst", 2, "UDP bursts that distinguish small from large buffers"),
    ("loss-rtt", 10, "0.0046 % loss at RTTs of 1 to 100 ms"),
    ("bbr-cubic-loss", 5, "BBR and CUBIC at 1 % loss and 100 ms"),
    ("pace-100g", 5, "four streams at 100G and 92 ms, paced or not"),
    ("host-100g-to-10g", 3, "a 100G host to a 10G host, pacing to match or not"),
    ("ramp-100g", 3, "one stream's ramp at 100G and 92 ms"),
    ("fan-in", 3, "parallel streams from 40G into 10G"),
    ("lfn", 5, "10G across 500 and 1600 ms"),
    ("delayed-ack", 1, "window growth with and without delayed ACKs"),
    ("ipv4-ipv6", 1, "IPv4 and IPv6 on the same path"),
    ("kernels", 5, "two versions of Linux on the same path"),
    ("netem-limit", 5, "the effect of netem's default limit on the hosts"),
    ("netem-loss", 1, "1 % loss by netem on the sender, per super-packet"),
];

/// Returns an exhibit by name, or an error with a suggestion.
pub fn find(name: &str) -> Result<&'static Exhibit, String> {
    EXHIBITS.iter().find(|exhibit| exhibit.name == name).ok_or_else(|| {
        let hint = near_or_list(name, EXHIBITS.iter().map(|exhibit| exhibit.name)).unwrap_or_default();
        format!("no exhibit `{name}` in the gallery\n{hint}")
    })
}

/// Returns the number of cells of an exhibit, and their estimated real time on one core, seconds.
pub fn takes(exhibit: &Exhibit) -> Result<(usize, f64), Problems> {
    let loaded = crate::scenario::load(exhibit.text).map_err(|problems| problems.named(exhibit.name))?;
    let wall_s = loaded.cells.iter().map(|cell| crate::scenario::estimate(&cell.scenario).wall_s).sum();
    Ok((loaded.cells.len(), wall_s))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scenario;

    #[test]
    fn every_exhibit_reads_is_fit_to_run_and_plans() {
        for exhibit in EXHIBITS {
            let loaded = scenario::load(exhibit.text).unwrap_or_else(|p| panic!("{}", p.named(exhibit.name)));
            for cell in &loaded.cells {
                crate::plan::plan(&cell.scenario, &[]).unwrap_or_else(|error| panic!("{}: {error}", exhibit.name));
            }
        }
    }

    /// Exhibits that warn, and about what: they show a set-up that should not be copied, a pace that does nothing, or a test
    /// bed whose hosts had links of the port's rate.
    const WARNINGS: &[(&str, &[&str])] = &[
        ("buffer-cc", &["same-rate-link"]),
        ("buffer-fq", &["same-rate-link"]),
        ("buffer-size", &["same-rate-link"]),
        ("buffer-tso", &["same-rate-link"]),
        ("host-100g-to-10g", &["pace-above-path"]),
        ("kernels", &["same-rate-link"]),
        ("netem-limit", &["netem-on-host", "same-rate-link"]),
        ("netem-loss", &["netem-on-host"]),
        ("pace-100g", &["pace-above-path"]),
        ("small-upstream", &["same-rate-link"]),
    ];

    #[test]
    fn no_exhibit_warns_about_anything_it_does_not_mean() {
        let found: Vec<(&str, BTreeSet<String>)> = EXHIBITS
            .iter()
            .map(|e| (e.name, scenario::load(e.text).map(|l| l.warnings).unwrap_or_default()))
            .map(|(name, warnings)| (name, warnings.into_iter().map(|w| w.code).collect::<BTreeSet<_>>()))
            .filter(|(_, codes)| !codes.is_empty())
            .collect();
        let mut found: Vec<(&str, Vec<&str>)> =
            found.iter().map(|(name, codes)| (*name, codes.iter().map(String::as_str).collect())).collect();
        found.sort_unstable();
        let meant: Vec<(&str, Vec<&str>)> = WARNINGS.iter().map(|(name, codes)| (*name, codes.to_vec())).collect();
        assert_eq!(found, meant);
    }

    #[test]
    fn every_exhibit_cites_a_report_and_explains_differences() {
        for exhibit in EXHIBITS {
            let cells = scenario::read(exhibit.text).unwrap_or_else(|p| panic!("{}", p.named(exhibit.name)));
            let scenario = &cells[0].scenario;
            let reference = scenario.reference.as_ref().unwrap_or_else(|| panic!("{}", exhibit.name));
            assert!(scenario.description.is_some(), "{}", exhibit.name);
            assert!(!reference.source.is_empty() && !reference.reported.is_empty(), "{}", exhibit.name);
            assert!(reference.why_different.is_some(), "{}", exhibit.name);
        }
    }

    #[test]
    fn exhibit_names_are_unique_and_estimates_hold() {
        let names: BTreeSet<&str> = EXHIBITS.iter().map(|exhibit| exhibit.name).collect();
        assert_eq!(names.len(), EXHIBITS.len());
        for exhibit in EXHIBITS {
            let (_, wall_s) = takes(exhibit).unwrap_or_else(|problems| panic!("{problems}"));
            let said_s = f64::from(exhibit.minutes) * 60.0;
            assert!(wall_s / 2.0 < said_s, "{}: {:.0} s on two cores", exhibit.name, wall_s / 2.0);
        }
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        assert_eq!(find("lfn").map(|exhibit| exhibit.name), Ok("lfn"));
        let answer = find("bufer-size").expect_err("no such exhibit");
        assert!(answer.contains("did you mean `buffer-size`?"), "{answer}");
        assert!(find("xyzzy").expect_err("no such exhibit").contains("use one of: buffer-size, "));
    }
}
