//! A scenario with its known cause, and the views of a document.

use landspeed_lab::scenario;

use super::causes;
use super::draw::Draw;

/// Part of a lab document on which a verdict is based.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum View {
    /// Both hosts, and the queues and links of the lab.
    Lab,
    /// Both hosts, as in `landspeed run`.
    BothHosts,
    /// The sender only.
    SenderOnly,
    /// `landspeed watch` at the sender, for one of the connections.
    WatchSender,
    /// `landspeed watch` at the receiver, for one of the connections.
    WatchReceiver,
}

impl View {
    /// All views, most complete first.
    pub const ALL: [Self; 5] = [Self::Lab, Self::BothHosts, Self::SenderOnly, Self::WatchSender, Self::WatchReceiver];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lab => "two ends and the lab's queues",
            Self::BothHosts => "two ends",
            Self::SenderOnly => "one end (the sender)",
            Self::WatchSender => "`watch` at the sender",
            Self::WatchReceiver => "`watch` at the receiver",
        }
    }
}

/// A cause that is acceptable besides the true one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accept {
    /// The cause.
    pub cause: &'static str,
    /// The most complete view in which it is acceptable.
    pub from: View,
}

/// A scenario with its known cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Name, unique: the cause and a number.
    pub name: String,
    /// The cause it was generated for.
    pub cause: &'static str,
    /// The limit on the flow, in words.
    pub what: String,
    /// Other acceptable causes.
    pub accept: Vec<Accept>,
    /// Name of the congestion control.
    pub congestion: &'static str,
    /// Bottleneck queue size divided by the BDP.
    pub buffer_bdp: f64,
    /// Contents of the scenario file.
    pub toml: String,
}

/// Generates `count` scenarios of each cause; the first of every cause before the second of any.
pub fn cases(seed: u64, count: usize) -> Vec<Case> {
    (0..count).flat_map(|number| (0..causes::ALL.len()).map(move |cause| case(seed, cause, number))).collect()
}

fn case(seed: u64, cause: usize, number: usize) -> Case {
    let (cause, family, controls) = causes::ALL[cause];
    let name = format!("{cause}-{number:02}");
    let mut draw = Draw::new(seed, &name);
    // Each variant is drawn twice in a row.
    let turn = number / 2;
    let congestion = controls[turn % controls.len()];
    let variety = turn + turn / controls.len();
    let drawn = (0..10_000)
        .find_map(|_| family(&mut draw, congestion, variety).filter(|drawn| drawn.setup.is_quick()))
        .unwrap_or_else(|| panic!("{name}: no draw suits"));
    let toml = drawn.setup.toml(&name, &drawn.what);
    debug_assert!(scenario::load(&toml).is_ok());
    let buffer_bdp = drawn.setup.buffer_bytes / drawn.setup.bdp_bytes();
    Case { name, cause, what: drawn.what, accept: drawn.accept, congestion, buffer_bdp, toml }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const COUNT: usize = 8;

    #[test]
    fn every_scenario_loads() {
        for case in cases(1, COUNT) {
            let loaded = scenario::load(&case.toml);
            let loaded = loaded.unwrap_or_else(|problems| panic!("{}: {problems}\n{}", case.name, case.toml));
            assert_eq!(loaded.cells.len(), 1, "{}", case.name);
            assert_eq!(loaded.cells[0].scenario.flow[0].name.as_deref(), Some("main"), "{}", case.name);
        }
    }

    #[test]
    fn scenarios_depend_only_on_the_seed() {
        assert_eq!(cases(1, 3), cases(1, 3));
        assert_ne!(cases(1, 1), cases(2, 1));
        assert_eq!(cases(1, 2)[..], cases(1, 3)[..2 * causes::ALL.len()]);
    }

    #[test]
    fn every_cause_has_every_congestion_control() {
        let cases = cases(1, COUNT);
        let kinds: BTreeSet<_> = cases.iter().map(|case| (case.cause, case.congestion)).collect();
        let expected: BTreeSet<_> = causes::ALL
            .iter()
            .flat_map(|(cause, _, controls)| controls.iter().map(move |control| (*cause, *control)))
            .collect();
        assert_eq!(kinds, expected);
        let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), cases.len());
    }

    #[test]
    fn a_scenario_never_accepts_its_own_cause() {
        for case in cases(1, COUNT) {
            assert!(case.accept.iter().all(|accept| accept.cause != case.cause), "{}", case.name);
        }
    }
}
