//! Helpers shared by the checks of sysctls and counters.

use std::fmt::Display;

use landspeed_model::{Applicability, Change, Fact, SysctlAssignment};
use landspeed_quote::shell_word;

use crate::check::{Effect, Problem};
use crate::source;
use crate::view::View;

/// The kernel's documentation of its IP sysctls.
pub(crate) const IP_SYSCTL: &str = "Linux Documentation/networking/ip-sysctl.rst";

/// RTT from which a path counts as long, seconds: about 500 km of fibre. Below it the kernel's default buffers
/// cover the bandwidth-delay product of tens of Gb/s.
pub(crate) const LONG_PATH_S: f64 = 0.005;

/// Packet loss rate that the ESnet deck of 2015 shows to matter on long paths: 0.0046 %, on a 10 Gb/s path.
pub(crate) const SIGNIFICANT_LOSS_RATE: f64 = 0.000_046;

/// Minimum number of events since boot for a rate to be meaningful: fewer may stem from a single incident.
pub(crate) const MIN_EVENTS: u64 = 100;

/// Returns the cited effect of packet loss, for checks that count losses inside the host.
pub(crate) fn loss_effect() -> Effect {
    Effect::measured(
        "The deck calls the effect of 0.0046 % packet loss huge; its graph has no figures",
        &[&source::LOSS_2014],
    )
}

/// Returns a problem that one sysctl fixes and that is safe to apply.
pub(crate) fn sysctl(name: &str, seen: impl Display, desired: impl Display, why: impl Into<String>) -> Problem {
    let desired = desired.to_string();
    Problem {
        observed: format!("{name} = {seen}"),
        recommended: desired.clone(),
        why: why.into(),
        by_hand: format!("sysctl {}", shell_word(name)),
        applicability: Applicability::Safe,
        changes: vec![Change::sysctl(name, desired)],
        ..Problem::default()
    }
}

/// Returns a problem without changes, for manual action.
pub(crate) fn manual_problem(
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

/// Returns whether the goal has an RTT of at least [`LONG_PATH_S`].
pub(crate) fn is_long_path(view: &View<'_>) -> bool {
    let (rtt_s, given) = view.rtt_s();
    given && rtt_s >= LONG_PATH_S
}

/// Returns an SNMP, TcpExt or IpExt counter since boot.
pub(crate) fn counter(view: &View<'_>, name: &str) -> Fact<u64> {
    let group = name.split_once('.').map_or(name, |(group, _)| group);
    let read = |known: &String| known.split_once('.').is_some_and(|(of, _)| of == group);
    match view.facts.counters.get(name) {
        Some(&count) => Fact::Known(count),
        // If no counter of the group is known, the file could not be read; otherwise the kernel does not have
        // this counter.
        None if view.facts.counters.keys().any(read) => Fact::Absent(format!("this kernel does not count {name}")),
        None => Fact::Unknown(format!("the kernel's {group} counters could not be read")),
    }
}

/// Number of events since boot, and its relation to a reference counter.
pub(crate) struct Counted {
    /// Number of events.
    pub(crate) events: u64,
    /// Events divided by the reference; above 1 only if the reference does not contain the events.
    pub(crate) share: f64,
    /// `120 Tcp.RetransSegs, 0.012 % of 1000120 segments sent since boot`; several event counters are listed with their
    /// counts.
    pub(crate) text: String,
}

/// What a number of events is related to.
pub(crate) enum Reference {
    /// A counter that contains the events.
    Contains(&'static str),
    /// A counter of the same things that does not contain the events: the share is that of both together, which
    /// have this name.
    Beside(&'static str, &'static str),
    /// A counter of other things: there may be more events than these.
    Per(&'static str),
}

/// Segments sent: `Tcp.OutSegs` excludes those with only retransmitted bytes (RFC 4022, tcpOutSegs).
pub(crate) const SEGMENTS_SENT: Reference = Reference::Beside("Tcp.OutSegs", "segments sent");

impl Counted {
    /// Returns whether there are at least [`MIN_EVENTS`] events and their share is above `limit`.
    pub(crate) fn exceeds(&self, limit: f64) -> bool {
        self.events >= MIN_EVENTS && self.share > limit
    }
}

/// Adds up the counters `names` and relates the sum to `reference`. The kernel must have at least one of `names`.
pub(crate) fn counted(view: &View<'_>, names: &[&str], reference: &Reference) -> Fact<Counted> {
    let known: Vec<_> = names.iter().filter_map(|name| Some((*name, *counter(view, name).known()?))).collect();
    if known.is_empty() {
        return counter(view, names.first().unwrap_or(&"")).map(|events| Counted {
            events,
            share: 0.0,
            text: String::new(),
        });
    }
    let events = known.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    let (counter_name, total_name, add) = match *reference {
        Reference::Contains(name) | Reference::Per(name) => (name, name, 0),
        Reference::Beside(name, both) => (name, both, events),
    };
    counter(view, counter_name).map(|total| {
        let total = total.saturating_add(add);
        let parts: Vec<_> = known.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")).collect();
        let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        let share = share(events, total);
        let what = if let [only] = names { format!(" {only}") } else { parts };
        let related = match reference {
            Reference::Per(_) if share > 1.0 => format!("{share:.1} for each of {total} {total_name}"),
            // Not all drivers and kernels count everything in the total.
            _ if share > 1.0 => format!("more than the {total} {total_name}"),
            _ => format!("{} of {total} {total_name}", percent(share)),
        };
        Counted { events, share, text: format!("{events}{what}, {related} since boot") }
    })
}

/// Returns `part / whole`, or 0 if `whole` is 0.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Formats a share as a percentage, `0.0046 %`: two significant digits below 1 %, one decimal above.
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

/// Returns the assignment of a sysctl that `sysctl --system` applies last.
pub(crate) fn assigned<'a>(view: &View<'a>, name: &str) -> Option<&'a SysctlAssignment> {
    view.facts.sysctl_files.known()?.iter().rev().find(|line| line.name == name)
}

/// Returns ` (from /etc/sysctl.d/90-net.conf line 3)` if a file sets the sysctl, else an empty string.
pub(crate) fn origin(view: &View<'_>, name: &str) -> String {
    assigned(view, name).map_or_else(String::new, |line| format!(" (from {} line {})", line.path, line.line))
}

/// Formats a rate in `tc` syntax: `2gbit`, `2500mbit`, `1500bit`.
pub(crate) fn tc_rate(bps: u64) -> String {
    match bps {
        bps if bps > 0 && bps % 1_000_000_000 == 0 => format!("{}gbit", bps / 1_000_000_000),
        bps if bps > 0 && bps % 1_000_000 == 0 => format!("{}mbit", bps / 1_000_000),
        bps => format!("{bps}bit"),
    }
}

/// Joins the first five names with commas and appends the number of the others.
pub(crate) fn join_first<T: AsRef<str>>(names: &[T]) -> String {
    const MAX_SHOWN: usize = 5;
    let shown: Vec<_> = names.iter().take(MAX_SHOWN).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(MAX_SHOWN) {
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
    fn rates_are_formatted_for_tc() {
        assert_eq!(tc_rate(2_000_000_000), "2gbit");
        assert_eq!(tc_rate(2_500_000_000), "2500mbit");
        assert_eq!(tc_rate(1), "1bit");
        assert_eq!(tc_rate(0), "0bit");
    }

    #[test]
    fn long_lists_are_truncated_with_a_count() {
        assert_eq!(join_first(&["a", "b"]), "a, b");
        assert_eq!(join_first(&["a", "b", "c", "d", "e", "f"]), "a, b, c, d, e and 1 more");
    }
}
