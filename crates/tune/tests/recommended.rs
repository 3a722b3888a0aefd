//! `tune` accepts what checks recommend: every change that a finding proposes, on every check's example
//! host, for slow and fast goals and all roles.
#![forbid(unsafe_code)]

use landspeed_checks::{all, audit, failing_example};
use landspeed_model::{Applicability, Facts, Finding, Goal, Role};
use landspeed_tune::{objection, parse_setting, setting};
use proptest::prelude::*;
use serde_json::Value;

const ROLES: [Role; 5] = [Role::Dtn, Role::Benchmark, Role::Latency, Role::Guest, Role::Router];

/// Returns what is wrong with a finding's changes.
fn refused(finding: &Finding) -> Vec<String> {
    let by_hand = finding.applicability == Applicability::DisplayOnly && !finding.changes.is_empty();
    let objections = finding.changes.iter().filter_map(|change| {
        objection(change).map(|why| format!("{}: {} = {}: {why}", finding.code, change.target, change.desired))
    });
    // `landspeed check` prints each change as `landspeed tune plan --set '…'`.
    let objections = objections.chain(finding.changes.iter().filter_map(|change| {
        let typed = parse_setting(&setting(change));
        (typed.as_ref() != Ok(change)).then(|| format!("{}: --set '{}' is {typed:?}", finding.code, setting(change)))
    }));
    let contradiction = by_hand.then(|| format!("{}: advice by hand with changes", finding.code));
    objections.chain(contradiction).collect()
}

#[test]
fn every_recommended_change_is_accepted() {
    let (mut changes, mut wrong) = (0, Vec::new());
    for check in all() {
        let (facts, goal) = failing_example(check);
        for gigabits in [1, 10, 25, 40, 100, 200, 400, 800] {
            for rtt_ns in [None, Some(54_000), Some(92_000_000)] {
                for role in ROLES {
                    let rate_bps = Some(gigabits * 1_000_000_000);
                    let goal = Goal { rate_bps, rtt_ns, role, ..goal.clone() };
                    for finding in audit(&facts, &goal, &|asked| asked.code == check.code).expect("audited").findings
                    {
                        changes += finding.changes.len();
                        wrong.extend(refused(&finding));
                    }
                }
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(changes > 1000, "{changes} changes were recommended");
}

/// Collects the JSON pointers of all numbers in `value`.
fn numbers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| numbers(item, &format!("{path}/{n}"), found));
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                numbers(field, &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn recommended_changes_are_accepted_for_arbitrary_facts(
        number in 0..all().count(),
        values in prop::collection::vec(
            (any::<prop::sample::Index>(), prop_oneof![0_u64..5, any::<u32>().prop_map(u64::from), any::<u64>()]),
            1..8,
        ),
        sysctls in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>(), any::<u32>(), 0_u64..5), 0..6),
        rate in prop::option::of(any::<u64>()),
        rtt in prop::option::of(any::<u64>()),
        role in prop::sample::select(ROLES.to_vec()),
    ) {
        let (facts, goal) = failing_example(all().nth(number).expect("a check"));
        let mut json = serde_json::to_value(&facts).expect("it serialises");
        let mut places = Vec::new();
        numbers(&json, "", &mut places);
        for (place, value) in values {
            let mut one = json.clone();
            *one.pointer_mut(place.get::<String>(&places)).expect("it is there") = value.into();
            // Values outside the type's range are rejected before any check.
            if serde_json::from_value::<Facts>(one.clone()).is_ok() {
                json = one;
            }
        }
        let names: Vec<String> = facts.sysctls.keys().cloned().collect();
        for (at, first, second, third) in sysctls {
            let value = format!("{first} {second} {third}");
            json["sysctls"][at.get::<String>(&names)] = serde_json::json!({ "known": value });
        }
        let facts: Facts = serde_json::from_value(json).expect("every number fits");
        let goal = Goal { rate_bps: rate, rtt_ns: rtt, role, ..goal };
        for finding in audit(&facts, &goal, &|_| true).expect("audited").findings {
            let wrong = refused(&finding);
            prop_assert!(wrong.is_empty(), "{wrong:#?}");
        }
    }
}
