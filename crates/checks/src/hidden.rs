//! Tests that unknown facts are not faults: hiding facts of a host adds no finding.

use std::collections::BTreeSet;

use landspeed_model::{Fact, Facts, Goal};
use proptest::prelude::*;
use serde_json::Value;

use crate::audit::audit_with;
use crate::{example, registry};

/// Maps of which a recording may lack any entry.
const OPTIONAL_MAPS: [&str; 5] = ["sysctls", "counters", "services", "statistics", "vulnerabilities"];

/// A fact or map entry that a test hides.
#[derive(Debug, Clone)]
enum FactPath {
    /// A fact, by its JSON pointer.
    Fact(String),
    /// An entry of a map: the map's pointer and the key.
    Entry(String, String),
}

fn collect_fact_paths(value: &Value, path: &str, found: &mut Vec<FactPath>) {
    match value {
        Value::Object(fields) => {
            if fields.len() == 1 && fields.contains_key("known") {
                found.push(FactPath::Fact(path.to_owned()));
            }
            let partial = OPTIONAL_MAPS.iter().any(|name| path.ends_with(&format!("/{name}")))
                || path.ends_with("/configuration/known");
            for (name, field) in fields {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                if partial {
                    found.push(FactPath::Entry(path.to_owned(), name.clone()));
                }
                collect_fact_paths(field, &format!("{path}/{escaped}"), found);
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                collect_fact_paths(item, &format!("{path}/{number}"), found);
            }
        }
        _ => {}
    }
}

fn hide_fact(facts: &mut Value, place: &FactPath) {
    match place {
        FactPath::Fact(pointer) => {
            if let Some(fact) = facts.pointer_mut(pointer) {
                *fact = serde_json::json!({ "unknown": "hidden by the test" });
            }
        }
        FactPath::Entry(pointer, key) => {
            if let Some(map) = facts.pointer_mut(pointer).and_then(Value::as_object_mut) {
                map.remove(key);
            }
        }
    }
}

fn finding_codes(facts: &Facts, goal: &Goal) -> BTreeSet<String> {
    let audit = audit_with(facts, goal, registry::all()).expect("audited");
    audit.findings.into_iter().map(|finding| subject(&finding.code).to_owned()).collect()
}

/// Returns the subject of a finding, where several checks share one: which of them reports a bus that is too
/// slow for the link depends on whether the card's own maximum is known.
fn subject(code: &str) -> &str {
    if matches!(code, "PCI-001" | "PCI-002" | "PCI-003") { "PCI bandwidth" } else { code }
}

/// Returns a host with one fault as JSON, its goal, and its findings.
fn host(number: usize) -> (Value, Goal, BTreeSet<String>) {
    let (mut facts, mut goal) = (example::facts(), example::goal());
    if let Some(check) = registry::all().nth(number) {
        (check.example.bad)(&mut facts, &mut goal);
    }
    let found = finding_codes(&facts, &goal);
    (serde_json::to_value(facts).expect("it serialises"), goal, found)
}

#[test]
fn hiding_one_fact_of_a_good_host_adds_no_finding() {
    let (whole, goal, found) = host(usize::MAX);
    assert!(found.is_empty());
    let mut all = Vec::new();
    collect_fact_paths(&whole, "", &mut all);
    assert!(all.len() > 250, "{} facts", all.len());
    let mut wrong = Vec::new();
    for place in &all {
        let mut facts = whole.clone();
        hide_fact(&mut facts, place);
        let facts = serde_json::from_value(facts).expect("a hidden fact is a fact");
        wrong.extend(finding_codes(&facts, &goal).into_iter().map(|code| format!("{code} without {place:?}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The same for every host with one fault: for each host an eighth of the facts, and each fact on an eighth of
/// the hosts.
#[test]
fn hiding_one_fact_of_a_faulty_host_adds_no_finding() {
    check_hidden_facts(8);
}

#[test]
#[ignore = "long: every fact of every host, 27,000 audits"]
fn hiding_any_fact_of_any_faulty_host_adds_no_finding() {
    check_hidden_facts(1);
}

/// Hides every `stride`th fact of each host, one at a time; the first one differs from host to host.
fn check_hidden_facts(stride: usize) {
    let mut wrong = BTreeSet::new();
    for number in 0..registry::all().count() {
        let (whole, goal, found) = host(number);
        let mut all = Vec::new();
        collect_fact_paths(&whole, "", &mut all);
        for place in all.iter().skip(number % stride).step_by(stride) {
            let mut facts = whole.clone();
            hide_fact(&mut facts, place);
            let facts = serde_json::from_value(facts).expect("a hidden fact is a fact");
            let new: Vec<_> = finding_codes(&facts, &goal).difference(&found).cloned().collect();
            wrong.extend(new.into_iter().map(|code| format!("{code} without {place:?}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn hiding_several_facts_adds_no_finding(
        number in 0..registry::all().count() + 1,
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let (mut facts, goal, found) = host(number);
        let mut all = Vec::new();
        collect_fact_paths(&facts, "", &mut all);
        for place in &chosen {
            hide_fact(&mut facts, place.get(&all));
        }
        let facts: Facts = serde_json::from_value(facts).expect("a hidden fact is a fact");
        let new: Vec<_> = finding_codes(&facts, &goal).difference(&found).cloned().collect();
        prop_assert!(new.is_empty(), "{new:?} without what was hidden");
    }

    /// Statements about features, drivers, speeds and the kernel's configuration agree with the facts.
    #[test]
    fn finding_texts_agree_with_the_facts(
        number in 0..registry::all().count(),
        fq in prop::option::of(prop_oneof![Just("y"), Just("m"), Just("n")]),
        bbr in prop::option::of(prop_oneof![Just("y"), Just("m"), Just("n")]),
        kinds in prop::collection::vec(prop_oneof![Just("fq"), Just("pfifo_fast"), Just("fq_codel")], 16),
        default in prop_oneof![Just("fq"), Just("fq_codel")],
        loaded in any::<bool>(),
        speed in prop::option::of(prop_oneof![Just(10_u64), Just(40), Just(100)]),
        largest in prop::option::of(1500_u32..10_000),
        off in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let (mut facts, mut goal) = (example::facts(), example::goal());
        let check = registry::all().nth(number).expect("a check");
        (check.example.bad)(&mut facts, &mut goal);
        if let Fact::Known(options) = &mut facts.kernel.configuration {
            for (name, value) in [("CONFIG_NET_SCH_FQ", fq), ("CONFIG_TCP_CONG_BBR", bbr)] {
                options.remove(name);
                options.extend(value.map(|value| (name.to_owned(), value.to_owned())));
            }
        }
        let mut kind = kinds.iter();
        example::for_each_qdisc(&mut facts, |qdisc| if qdisc.parent.is_some() {
            qdisc.kind = (*kind.next().unwrap_or(&"fq")).to_owned();
        });
        example::sysctl(&mut facts, "net.core.default_qdisc", default);
        if !loaded {
            facts.modules = Fact::Known(std::collections::BTreeMap::new());
        }
        let port = example::port(&mut facts);
        port.speed_bps = speed.map_or(Fact::Unknown("hidden by the test".into()), |g| Fact::Known(g * 1_000_000_000));
        port.max_mtu_bytes = largest.map_or(Fact::Unknown("hidden by the test".into()), Fact::Known);
        if let Fact::Known(features) = &mut port.features {
            let names: Vec<String> = features.keys().cloned().collect();
            for index in off {
                if let Some(feature) = features.get_mut(index.get(&names)) {
                    feature.active = !feature.active;
                }
            }
        }
        let attached = facts.interfaces.iter().filter_map(|i| i.qdiscs.known()).flatten().any(|q| q.kind == "fq");
        let has_fq = attached || default == "fq" || loaded || fq != Some("n");
        let port = &facts.interfaces[0];
        for finding in audit_with(&facts, &goal, registry::all()).expect("audited").findings {
            let text = [&finding.observed, &finding.recommended, &finding.why, &finding.effect].map(String::as_str).join(" ");
            prop_assert!(!text.contains("without fq") || !has_fq, "{}: {text}", finding.code);
            // The example host has BBR available.
            prop_assert!(!text.contains("without bbr"), "{}: {text}", finding.code);
            if let Some((_, rest)) = text.split_once("the driver takes up to ") {
                let number = rest.split_whitespace().next().unwrap_or_default();
                prop_assert_eq!(number.parse().ok(), port.max_mtu_bytes.known().copied(), "{}", text);
            }
            if let Some((_, rest)) = text.split_once("for a link of ") {
                let known = port.speed_bps.known().map(|bps| crate::view::rate_text(*bps));
                prop_assert!(known.is_some_and(|known| rest.starts_with(&known)), "{}: {text}", finding.code);
            }
            for name in port.features.known().into_iter().flatten().filter(|(_, f)| f.active).map(|(name, _)| name) {
                let said_off = finding.observed.strip_prefix("off: ").is_some_and(|names| names.split(", ").any(|n| n == name));
                prop_assert!(!said_off, "{}: {name} is on", finding.code);
            }
        }
    }
}
