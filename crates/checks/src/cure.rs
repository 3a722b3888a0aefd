//! Tests that applying the recommended changes removes the findings. Limited to sysctls and qdiscs, which can
//! be applied to facts.

use std::collections::BTreeMap;

use landspeed_model::{Change, Extent, Fact, Facts, Goal, Target};
use proptest::prelude::*;

use crate::audit::audit_with;
use crate::check::{Check, Group};
use crate::{example, registry};

/// Applies a change to facts as the kernel would; returns false for targets that facts do not represent
/// directly.
fn apply_change(facts: &mut Facts, change: &Change) -> bool {
    match &change.target {
        Target::Sysctl { name } => {
            example::sysctl(facts, name, &change.desired);
        }
        Target::TxQueueLen { .. } => {
            example::port(facts).tx_queue_len = Fact::Known(change.desired.parse().expect("packets"));
        }
        Target::Channels { .. } => {
            if let Fact::Known(channels) = &mut example::port(facts).channels {
                channels.combined = Extent { now: change.desired.parse().expect("channels"), ..channels.combined };
            }
        }
        Target::Qdisc { .. } => {
            let rate = change.desired.split_once("maxrate ").map(|(_, rate)| tc_bps(rate));
            example::port(facts).qdiscs = example::port(&mut example::facts()).qdiscs.clone();
            example::for_each_qdisc(facts, |qdisc| {
                if qdisc.parent.is_some() {
                    qdisc.max_rate_bps = rate;
                }
            });
        }
        _ => return false,
    }
    true
}

fn tc_bps(rate: &str) -> u64 {
    let digits = rate.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &rate[digits.len()..] {
        "gbit" => 1_000_000_000,
        "mbit" => 1_000_000,
        "bit" => 1,
        other => panic!("tc does not know {other}"),
    };
    digits.parse::<u64>().expect("digits") * unit
}

fn faulty_host(checks: &[&Check]) -> (Facts, Goal) {
    let (mut facts, mut goal) = (example::facts(), example::goal());
    for check in checks {
        (check.example.bad)(&mut facts, &mut goal);
    }
    (facts, goal)
}

/// Checks of software settings. Their faults are visible in settings, not only in counters, which a change
/// cannot reset.
fn software() -> impl Iterator<Item = &'static Check> {
    registry::all().filter(|check| check.group >= Group::Qdisc)
}

#[test]
fn recommended_changes_remove_their_findings() {
    let mut cured = 0;
    for check in software() {
        let (mut facts, goal) = faulty_host(&[check]);
        let findings = check.audit_alone(&facts, &goal).findings;
        let changes: Vec<_> = findings.into_iter().flat_map(|finding| finding.changes).collect();
        if changes.is_empty() || !changes.iter().all(|change| apply_change(&mut facts, change)) {
            continue;
        }
        cured += 1;
        let still = check.audit_alone(&facts, &goal).findings;
        assert!(still.is_empty(), "{} asks for {changes:?} and then still says: {still:#?}", check.code);
    }
    assert!(cured > 40, "only {cured} checks were tried");
}

/// If two faults set the same fact, the second one wins: half of the pairs are made in one order, half in the
/// other.
#[test]
fn findings_never_recommend_conflicting_values() {
    for (i, one) in software().enumerate() {
        for (j, other) in software().enumerate().skip(i) {
            one_value_for_each_target(if (i + j) % 2 == 0 { [one, other] } else { [other, one] });
        }
    }
}

#[test]
#[ignore = "long: every pair of faults in both orders"]
fn findings_never_recommend_conflicting_values_in_any_order() {
    for one in software() {
        for other in software() {
            one_value_for_each_target([one, other]);
        }
    }
}

fn one_value_for_each_target(faults: [&Check; 2]) {
    let (facts, goal) = faulty_host(&faults);
    let findings = audit_with(&facts, &goal, registry::all()).expect("audited").findings;
    let mut asked: BTreeMap<String, (String, String)> = BTreeMap::new();
    for finding in &findings {
        for change in &finding.changes {
            let entry = (finding.code.clone(), change.desired.clone());
            let first = asked.entry(change.target.to_string()).or_insert_with(|| entry.clone());
            assert_eq!(first.1, entry.1, "{}: {} and {}", change.target, first.0, entry.0);
        }
    }
}

#[test]
fn a_sysctl_change_always_differs_from_the_current_value() {
    for check in registry::all() {
        let (facts, goal) = faulty_host(&[check]);
        for finding in audit_with(&facts, &goal, registry::all()).expect("audited").findings {
            for change in finding.changes {
                if let Target::Sysctl { name } = &change.target {
                    let now = facts.sysctls.get(name).and_then(Fact::known);
                    assert_ne!(now, Some(&change.desired), "{} {name}", finding.code);
                }
            }
        }
    }
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<u64>().prop_map(|n| n.to_string()),
        (0_u64..5).prop_map(|n| n.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        (0_u32..64).prop_map(|bits| (u128::from(u64::MAX) >> bits).to_string()),
        Just("cubic".to_owned()),
        Just(String::new()),
    ]
}

proptest! {
    #[test]
    fn checks_never_panic_on_arbitrary_values(
        values in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(number(), 0..4)), 1..12),
        counts in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 0..6),
        rate in prop::option::of(any::<u64>()),
        rtt in prop::option::of(any::<u64>()),
        memory in any::<u64>(),
        qdisc_rate in prop::option::of(any::<u64>()),
    ) {
        let mut facts = example::facts();
        let names: Vec<_> = facts.sysctls.keys().cloned().collect();
        for (at, numbers) in values {
            example::sysctl(&mut facts, at.get::<String>(&names), &numbers.join(" "));
        }
        let names: Vec<_> = facts.counters.keys().cloned().collect();
        for (at, count) in counts {
            example::counter(&mut facts, at.get::<String>(&names), count);
        }
        facts.memory_bytes = Fact::Known(memory);
        example::for_each_qdisc(&mut facts, |qdisc| qdisc.max_rate_bps = qdisc_rate);
        let goal = Goal { rate_bps: rate, rtt_ns: rtt, ..example::goal() };
        let audit = audit_with(&facts, &goal, registry::all()).expect("audited");
        for finding in audit.findings {
            prop_assert!(!finding.recommended.is_empty() && !finding.why.is_empty(), "{finding:?}");
        }
    }
}
