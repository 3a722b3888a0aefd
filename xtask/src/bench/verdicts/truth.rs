//! A scenario with its known cause, and what of it each view of a document shows.

use landspeed_lab::scenario;

use super::causes;
use super::draw::Draw;

/// How much of a lab document a verdict is decided from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum View {
    /// Both ends, and the queues and links of the lab.
    Lab,
    /// Both ends, as `landspeed run` has them.
    TwoEnds,
    /// The sender alone.
    OneEnd,
    /// What `landspeed watch` at the sender reads of one of the connections.
    WatchSender,
    /// The same at the receiver.
    WatchReceiver,
}

impl View {
    /// Every view, the one that shows most first.
    pub const ALL: [Self; 5] = [Self::Lab, Self::TwoEnds, Self::OneEnd, Self::WatchSender, Self::WatchReceiver];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lab => "two ends and the lab's queues",
            Self::TwoEnds => "two ends",
            Self::OneEnd => "one end (the sender)",
            Self::WatchSender => "`watch` at the sender",
            Self::WatchReceiver => "`watch` at the receiver",
        }
    }
}

/// A cause that is acceptable beside the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accept {
    /// The cause.
    pub cause: &'static str,
    /// The view that shows most of those in which it is acceptable.
    pub from: View,
}

/// A scenario with its known cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Name, unique: the cause and a number.
    pub name: String,
    /// What holds the flow back.
    pub cause: &'static str,
    /// The same in words.
    pub what: String,
    /// Causes acceptable beside it.
    pub accept: Vec<Accept>,
    /// Congestion control.
    pub congestion: &'static str,
    /// Size of the bottleneck's queue over the BDP.
    pub buffer_bdp: f64,
    /// The scenario file.
    pub toml: String,
}

/// Draws `count` scenarios of each cause, the first of every cause before the second of any.
pub fn cases(seed: u64, count: usize) -> Vec<Case> {
    (0..count).flat_map(|number| (0..causes::ALL.len()).map(move |cause| case(seed, cause, number))).collect()
}

fn case(seed: u64, cause: usize, number: usize) -> Case {
    let (cause, family, controls) = causes::ALL[cause];
    let name = format!("{cause}-{number:02}");
    let mut draw = Draw::new(seed, &name);
    // Two draws of each kind.
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
