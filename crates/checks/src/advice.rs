//! What the checks of sysctls and counters have in common.

use std::fmt::Display;

use landspeed_model::{Applicability, Change, Fact, SysctlAssignment};

use crate::check::{Effect, Problem};
use crate::source;
use crate::view::View;

/// The kernel's documentation of its IP sysctls.
pub(crate) const IP_SYSCTL: &str = "Linux Documentation/networking/ip-sysctl.rst";

/// Round trips from which a path counts as long, seconds: fibre of about 500 km. Below it the kernel's defaults hold the
/// bandwidth-delay product of tens of Gb/s.
pub(crate) const LONG_PATH_S: f64 = 0.005;

/// The loss that the ESnet deck of 2015 shows to matter at a distance: 0.0046 % of packets, on a 10 Gb/s path.
pub(crate) const LOSS_THAT_MATTERS: f64 = 0.000_046;

/// Events too few to be a share of anything: since boot, one bad day may explain them.
pub(crate) const FEW_EVENTS: u64 = 100;

/// What loss costs, for checks that count losses inside the host.
pub(crate) fn loss_effect() -> Effect {
    Effect::measured(
        "The deck calls the effect of 0.0046 % packet loss huge; its graph has no figures",
        &[&source::LOSS_2014],
    )
}

/// One sysctl that may be set at once.
pub(crate) fn sysctl(name: &str, seen: impl Display, desired: impl Display, why: impl Into<String>) -> Problem {
    let desired = desired.to_string();
    Problem {
        observed: format!("{name} = {seen}"),
        recommended: desired.clone(),
        why: why.into(),
        by_hand: format!("sysctl {name}"),
        applicability: Applicability::Safe,
        changes: vec![Change::sysctl(name, desired)],
        ..Problem::default()
    }
}

/// Something only a person can do.
pub(crate) fn by_person(
    observed: impl Into<String>,
    recommended: impl Into<String>,
    why: impl Into<String>,
    by_hand: impl Into<String>,
) -> Problem {
    Problem {
        observed: observed.into(),
        recommended: recommended.into(),
        why: why.into(),
        by_hand: by_hand.into(),
        ..Problem::default()
    }
}

/// Whether the goal names a path long enough for the bandwidth-delay product to matter.
pub(crate) fn long_path(view: &View<'_>) -> bool {
    let (rtt_s, given) = view.rtt_s();
    given && rtt_s >= LONG_PATH_S
}

/// An SNMP, TcpExt or IpExt counter since boot.
pub(crate) fn counter(view: &View<'_>, name: &str) -> Fact<u64> {
    let group = name.split_once('.').map_or(name, |(group, _)| group);
    let read = |known: &String| known.split_once('.').is_some_and(|(of, _)| of == group);
    match view.facts.counters.get(name) {
        Some(&count) => Fact::Known(count),
        // A file that could not be read leaves all its counters out; one that was read lacks what the kernel does not have.
        None if view.facts.counters.keys().any(read) => Fact::Absent(format!("this kernel does not count {name}")),
        None => Fact::Unknown(format!("the kernel's {group} counters could not be read")),
    }
}

/// How often something happened since boot.
pub(crate) struct Counted {
    /// How often.
    pub(crate) events: u64,
    /// As a share of what it is counted against, 0..=1.
    pub(crate) share: f64,
    /// `120 Tcp.RetransSegs, 0.012 % of 1000000 Tcp.OutSegs since boot`; several events with how often each happened.
    pub(crate) text: String,
}

impl Counted {
    /// Whether it is more than chance and more than `limit`.
    pub(crate) fn exceeds(&self, limit: f64) -> bool {
        self.events >= FEW_EVENTS && self.share > limit
    }
}

/// The sum of `names`, of which the kernel has to know at least one, against the counter `whole`.
pub(crate) fn counted(view: &View<'_>, names: &[&str], whole: &str) -> Fact<Counted> {
    let known: Vec<_> = names.iter().filter_map(|name| Some((*name, *counter(view, name).known()?))).collect();
    if known.is_empty() {
        return counter(view, names.first().unwrap_or(&"")).map(|events| Counted {
            events,
            share: 0.0,
            text: String::new(),
        });
    }
    counter(view, whole).map(|total| {
        let events = known.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        let parts: Vec<_> = known.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")).collect();
        let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        let share = share(events, total);
        let what = if let [only] = names { format!(" {only}") } else { parts };
        Counted { events, share, text: format!("{events}{what}, {} of {total} {whole} since boot", percent(share)) }
    })
}

/// `part` of `whole`, 0 where there is no whole.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// `0.0046 %`: two significant digits below one per cent, one decimal above.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 {
        "0 %".into()
    } else if percent >= 1.0 {
        format!("{percent:.1} %")
    } else {
        let digits = (1.0 - percent.log10().floor()).clamp(1.0, 12.0) as usize;
        format!("{percent:.digits$} %")
    }
}

/// The assignment of a sysctl that `sysctl --system` applies last.
pub(crate) fn assigned<'a>(view: &View<'a>, name: &str) -> Option<&'a SysctlAssignment> {
    view.facts.sysctl_files.known()?.iter().rev().find(|line| line.name == name)
}

/// ` (from /etc/sysctl.d/90-net.conf line 3)`, where a file sets the sysctl; else nothing.
pub(crate) fn origin(view: &View<'_>, name: &str) -> String {
    assigned(view, name).map_or_else(String::new, |line| format!(" (from {} line {})", line.path, line.line))
}

/// A rate as `tc` takes it: `2gbit`, `2500mbit`, `1500bit`.
pub(crate) fn tc_rate(bps: u64) -> String {
    match bps {
        bps if bps > 0 && bps % 1_000_000_000 == 0 => format!("{}gbit", bps / 1_000_000_000),
        bps if bps > 0 && bps % 1_000_000 == 0 => format!("{}mbit", bps / 1_000_000),
        bps => format!("{bps}bit"),
    }
}

/// Names joined by commas, the first few and how many more.
pub(crate) fn join_first<T: AsRef<str>>(names: &[T]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<_> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_keep_two_digits() {
        assert_eq!(percent(0.000_046), "0.0046 %");
        assert_eq!(percent(0.25), "25.0 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(1e-30), "0.000000000000 %");
    }

    #[test]
    fn rates_are_written_as_tc_takes_them() {
        assert_eq!(tc_rate(2_000_000_000), "2gbit");
        assert_eq!(tc_rate(2_500_000_000), "2500mbit");
        assert_eq!(tc_rate(1), "1bit");
        assert_eq!(tc_rate(0), "0bit");
    }

    #[test]
    fn long_lists_are_cut_and_counted() {
        assert_eq!(join_first(&["a", "b"]), "a, b");
        assert_eq!(join_first(&["a", "b", "c", "d", "e", "f"]), "a, b, c, d, e and 1 more");
    }
}
