//! Experiments from slide decks as scenarios: one exhibit per claim, with the reported result.

mod measured;

use landspeed_problems::suggest_or_list;

use crate::scenario::Problems;

pub use landspeed_model::figure_text::{count_text, criterion_row, limits, met, number, reproduced, row};
pub use measured::{MeasuredExhibit, MeasuredFlow, MeasuredRow, Spread, kernel_text, measured};

/// A scenario that is part of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhibit {
    /// Name on the command line.
    pub name: &'static str,
    /// One-line description.
    pub title: &'static str,
    /// Upper bound of the run time of all its cells on two cores, minutes.
    pub minutes: u32,
    /// Text of the scenario file.
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
    ("buffer-size", 10, "switch buffer size"),
    ("buffer-fq", 5, "a small buffer, fq and TSO"),
    ("fq-buffers", 5, "the gain of fq by buffer"),
    ("buffer-cc", 6, "H-TCP and BBR on two buffers"),
    ("bbr-paths", 8, "H-TCP and BBR on four paths"),
    ("small-upstream", 5, "a small buffer upstream"),
    ("nuttcp-burst", 2, "UDP bursts by buffer size"),
    ("bits-per-10ms", 2, "LAN and WAN, congested or not"),
    ("tap-buffers", 2, "1, 5, 50 % of a router buffer"),
    ("loss-rtt", 10, "0.0046 % loss, RTT 2 to 100 ms"),
    ("bbr-cubic-loss", 5, "BBR and CUBIC at 1 % loss"),
    ("wan-paths", 3, "three WAN paths, unpaced, fq"),
    ("pace-100g", 5, "four streams at 100G, paced"),
    ("fast-to-slow", 3, "100G to 10G, 10G to 1G, paced"),
    ("ramp-100g", 3, "ramp at 100G across 92 ms"),
    ("core-100g", 2, "one core that copies at 100G"),
    ("pair-40g", 2, "1 and 2 streams, 40G to 40G"),
    ("streams-40g", 4, "4 streams on their own cores"),
    ("fan-in", 3, "1 and 2 streams, 40G into 10G"),
    ("fan-in-rtt", 3, "the same at other RTTs"),
    ("streams-10g", 3, "4 streams into 10G, fq, paced"),
    ("lfn", 5, "10G across 10 to 1600 ms"),
    ("lfn-window", 2, "a window larger than the path"),
    ("ack-framing", 2, "real and pseudo LFN"),
    ("delayed-ack", 1, "window growth, delayed ACKs"),
    ("ipv4-ipv6", 3, "IPv4 and IPv6 on three paths"),
    ("kernels", 5, "two versions of Linux"),
    ("netem-limit", 5, "netem's limit on the hosts"),
];

/// Returns an exhibit by name, or an error with a suggestion.
pub fn find(name: &str) -> Result<&'static Exhibit, String> {
    EXHIBITS.iter().find(|exhibit| exhibit.name == name).ok_or_else(|| {
        let hint = suggest_or_list(name, EXHIBITS.iter().map(|exhibit| exhibit.name)).unwrap_or_default();
        format!("no exhibit `{name}` in the gallery\n{hint}")
    })
}

/// Returns the number of cells of an exhibit, and their estimated real time on one core, seconds.
pub fn estimate_cost(exhibit: &Exhibit) -> Result<(usize, f64), Problems> {
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
    fn every_exhibit_loads_and_can_be_planned() {
        for exhibit in EXHIBITS {
            let loaded = scenario::load(exhibit.text).unwrap_or_else(|p| panic!("{}", p.named(exhibit.name)));
            for cell in &loaded.cells {
                crate::plan::plan(&cell.scenario, &[]).unwrap_or_else(|error| panic!("{}: {error}", exhibit.name));
            }
        }
    }

    /// Exhibits with warnings, and their codes. They show a set-up that should not be copied, a pacing rate without
    /// effect, or a test bed whose hosts had links of the port's rate.
    const WARNINGS: &[(&str, &[&str])] = &[
        ("bbr-cubic-loss", &["netem-on-host"]),
        ("bits-per-10ms", &["same-rate-link"]),
        ("buffer-cc", &["same-rate-link"]),
        ("buffer-fq", &["same-rate-link"]),
        ("buffer-size", &["same-rate-link"]),
        ("fq-buffers", &["same-rate-link"]),
        ("kernels", &["same-rate-link"]),
        ("lfn-window", &["buffers-below-bdp"]),
        ("netem-limit", &["netem-on-host", "same-rate-link"]),
        ("pace-100g", &["pace-above-path"]),
        ("small-upstream", &["same-rate-link"]),
        ("streams-10g", &["pace-above-path"]),
        ("tap-buffers", &["same-rate-link"]),
        ("wan-paths", &["same-rate-link"]),
    ];

    #[test]
    fn exhibits_have_only_their_intended_warnings() {
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
    fn reported_figures_name_cells_that_exist() {
        for exhibit in EXHIBITS {
            let cells = scenario::read(exhibit.text).unwrap_or_else(|p| panic!("{}", p.named(exhibit.name)));
            let reference = cells[0].scenario.reference.clone().unwrap_or_else(|| panic!("{}", exhibit.name));
            let names: BTreeSet<&str> = reference.figures.iter().map(|figure| figure.name.as_str()).collect();
            assert_eq!(names.len(), reference.figures.len(), "{}: two figures have one name", exhibit.name);
            for figure in &reference.figures {
                let width = figure.name.chars().count();
                assert!(width <= 36, "{}: `{}` does not fit its table", exhibit.name, figure.name);
                for other in [&figure.minus, &figure.over].into_iter().map(Option::as_ref) {
                    let mut levels = figure.cell.clone();
                    levels.extend(other.cloned().unwrap_or_default());
                    let found = |cell: &scenario::Cell| levels.iter().all(|(key, v)| cell.values.get(key) == Some(v));
                    assert!(cells.iter().any(found), "{}: no cell {levels:?}", exhibit.name);
                }
            }
        }
    }

    #[test]
    fn stored_results_match_the_current_exhibits() {
        assert!(!measured().is_empty(), "gallery.json cannot be read");
        for result in measured() {
            let exhibit = find(&result.exhibit).unwrap_or_else(|message| panic!("{message}"));
            let cells = scenario::read(exhibit.text).unwrap_or_else(|p| panic!("{}", p.named(exhibit.name)));
            assert_eq!(result.hash, cells[0].hash, "{}: run `cargo xtask gallery {0}`", exhibit.name);
            let figures = cells[0].scenario.reference.iter().flat_map(|reference| &reference.figures);
            let wanted: Vec<(String, f64)> = figures.map(|figure| (figure.name.clone(), figure.value)).collect();
            let found: Vec<(String, f64)> = result.figures.iter().map(|f| (f.name.clone(), f.reported)).collect();
            assert_eq!(found, wanted, "{}: run `cargo xtask gallery --page`", exhibit.name);
            for claim in cells[0].scenario.reference.iter().flat_map(|reference| &reference.criteria) {
                let measured = result.criteria.iter().any(|found| found.name == claim.name && found.met.is_some());
                assert!(measured, "{}: `{}`: run `cargo xtask gallery {0}`", exhibit.name, claim.name);
            }
        }
    }

    #[test]
    fn every_large_deviation_has_a_reason() {
        for result in measured() {
            for figure in result.figures.iter().filter(|figure| figure.reproduced() == Some(false)) {
                assert!(figure.reason.is_some(), "{}: `{}`", result.exhibit, figure.name);
            }
            for claim in result.criteria.iter().filter(|claim| claim.met == Some(false)) {
                assert!(claim.reason.is_some(), "{}: `{}`", result.exhibit, claim.name);
            }
        }
    }

    #[test]
    fn deviations_above_100_percent_name_an_experiment() {
        for result in measured() {
            let far = result.figures.iter().filter(|figure| figure.deviation.is_some_and(|d| d.abs() > 1.0));
            for figure in far {
                let named = figure.reason.as_ref().and_then(|reason| reason.split('`').nth(1));
                let found = named.is_some_and(|name| find(name).is_ok());
                assert!(found, "{}: `{}`: {:?}", result.exhibit, figure.name, figure.reason);
            }
        }
    }

    #[test]
    fn exhibit_names_are_unique_and_estimates_hold() {
        let names: BTreeSet<&str> = EXHIBITS.iter().map(|exhibit| exhibit.name).collect();
        assert_eq!(names.len(), EXHIBITS.len());
        for exhibit in EXHIBITS {
            let (_, wall_s) = estimate_cost(exhibit).unwrap_or_else(|problems| panic!("{problems}"));
            let said_s = f64::from(exhibit.minutes) * 60.0;
            assert!(wall_s / 2.0 < said_s, "{}: {:.0} s on two cores", exhibit.name, wall_s / 2.0);
        }
    }

    #[test]
    fn a_misspelt_name_suggests_the_nearest() {
        assert_eq!(find("lfn").map(|exhibit| exhibit.name), Ok("lfn"));
        let answer = find("bufer-size").expect_err("no such exhibit");
        assert!(answer.contains("did you mean `buffer-size`?"), "{answer}");
        assert!(find("xyzzy").expect_err("no such exhibit").contains("use one of: buffer-size, "));
    }
}
