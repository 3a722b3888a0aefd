//! Tests that apply to every check.

mod evidence;

use std::collections::BTreeSet;
use std::path::Path;

use landspeed_model::{Fact, Facts, Goal, Role};
use landspeed_testkit::golden;

use crate::audit::audit;
use crate::check::Check;
use crate::{docs, example, registry};

#[test]
fn the_host_in_good_order_passes_every_check() {
    let audit = audit(&example::facts(), &example::goal(), &|_| true).expect("audited");
    let said: Vec<_> = audit.findings.iter().map(|f| format!("{} {}", f.code, f.observed)).collect();
    assert!(said.is_empty(), "{said:#?}");
    assert!(audit.unknown.is_empty(), "{:#?}", audit.unknown);
}

#[test]
fn every_check_has_a_passing_and_a_failing_example() {
    for check in registry::all() {
        let (mut facts, mut goal) = (example::facts(), example::goal());
        (check.example.good)(&mut facts, &mut goal);
        let good = check.audit_alone(&facts, &goal);
        assert!(!good.passed.is_empty() && good.findings.is_empty(), "{} on its good example: {good:?}", check.code);
        let (facts, goal) = docs::failing_example(check);
        let bad = check.audit_alone(&facts, &goal);
        assert!(!bad.findings.is_empty(), "{} on its bad example: {bad:?}", check.code);
        for finding in bad.findings {
            for text in [&finding.observed, &finding.recommended, &finding.why, &finding.effect, &finding.by_hand] {
                assert!(!text.is_empty(), "{}: {finding:?}", check.code);
            }
        }
    }
}

#[test]
fn codes_and_names_are_unique_and_match_their_files() {
    let codes: BTreeSet<_> = registry::all().map(|check| check.code).collect();
    let names: BTreeSet<_> = registry::all().map(Check::name).collect();
    assert_eq!((codes.len(), names.len()), (registry::all().count(), registry::all().count()));
    for check in registry::all() {
        let (prefix, number) = check.code.split_once('-').expect("a code is PREFIX-NNN");
        assert!(prefix.chars().all(|c| c.is_ascii_uppercase()) && number.len() == 3, "{}", check.code);
        let file = format!(
            "{}/src/{}/{}.rs",
            env!("CARGO_MANIFEST_DIR"),
            check.group.name(),
            check.name().replace('-', "_")
        );
        assert!(Path::new(&file).exists(), "{} should be {file}", check.code);
    }
}

#[test]
fn every_check_is_documented_and_has_a_source() {
    for check in registry::all() {
        for part in ["**Reads**", "**Matters**", "**Leave it alone**"] {
            assert!(check.docs.contains(part), "{}: no {part}", check.code);
        }
        assert!(check.sources.iter().all(|source| source.len() > 8), "{}", check.code);
    }
}

#[test]
fn a_host_without_known_facts_has_no_findings() {
    for role in [Role::Dtn, Role::Benchmark, Role::Latency, Role::Guest, Role::Router] {
        let goal = Goal { role, ..Goal::default() };
        let audit = audit(&Facts::default(), &goal, &|_| true).expect("audited");
        assert!(audit.findings.is_empty(), "{:#?}", audit.findings);
    }
}

#[test]
fn an_interface_without_known_facts_has_no_findings() {
    let mut facts = Facts { default_interface: Fact::Known("eth0".into()), ..Facts::default() };
    facts.interfaces.push(landspeed_model::InterfaceFacts { name: "eth0".into(), ..Default::default() });
    let audit = audit(&facts, &example::goal(), &|_| true).expect("audited");
    assert!(audit.findings.is_empty(), "{:#?}", audit.findings);
}

/// Recordings come from outside: every number may have any value of its type.
#[test]
fn extreme_numbers_never_panic() {
    let text = serde_json::to_value(example::facts()).expect("it serialises");
    let mut places = Vec::new();
    numbers(&text, &mut Vec::new(), &mut places);
    assert!(places.len() > 200, "{} numbers", places.len());
    let mut everywhere = text.clone();
    for place in &places {
        for extreme in [0_u64, 1, u64::from(u32::MAX), u64::MAX] {
            let mut one = text.clone();
            *one.pointer_mut(place).expect("it is there") = extreme.into();
            // Values outside the type's range are rejected when parsing.
            let Ok(facts) = serde_json::from_value::<Facts>(one) else { continue };
            audit(&facts, &example::goal(), &|_| true).expect("audited");
        }
        *everywhere.pointer_mut(place).expect("it is there") = u32::MAX.into();
    }
    let facts: Facts = serde_json::from_value(everywhere).expect("every number holds 32 bits");
    for role in [Role::Dtn, Role::Benchmark, Role::Latency, Role::Guest, Role::Router] {
        audit(&facts, &Goal { role, rate_bps: Some(u64::MAX), ..example::goal() }, &|_| true).expect("audited");
    }
}

/// Collects the JSON pointers of all numbers in `value`.
fn numbers(value: &serde_json::Value, path: &mut Vec<String>, found: &mut Vec<String>) {
    let children: Vec<(String, &serde_json::Value)> = match value {
        serde_json::Value::Number(_) => {
            found.push(path.concat());
            return;
        }
        serde_json::Value::Array(items) => items.iter().enumerate().map(|(n, item)| (n.to_string(), item)).collect(),
        serde_json::Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), field)).collect(),
        _ => return,
    };
    for (name, child) in children {
        path.push(format!("/{}", name.replace('~', "~0").replace('/', "~1")));
        numbers(child, path, found);
        path.pop();
    }
}

/// Recordings come from outside: a name in a command must stay one word.
#[test]
fn names_in_commands_are_quoted() {
    /// Name of the port in the examples.
    const NAME: &str = "ens1f0np0";
    const HOSTILE: &str = "e'; touch x; $(touch y)";
    let quoted = landspeed_quote::shell_word(HOSTILE);
    let json = serde_json::to_string(HOSTILE).expect("a string");
    let hostile = json.trim_matches('"');
    let mut named = 0;
    for check in registry::all() {
        let (facts, goal) = docs::failing_example(check);
        let plain = check.audit_alone(&facts, &goal).findings;
        let text = serde_json::to_string(&facts).expect("it serialises").replace(NAME, hostile);
        let facts: Facts = serde_json::from_str(&text).expect("names are any text");
        let goal = Goal { interface: goal.interface.map(|name| name.replace(NAME, HOSTILE)), ..goal };
        let renamed = check.audit_alone(&facts, &goal).findings;
        for (plain, renamed) in plain.iter().zip(&renamed) {
            assert_eq!(renamed.by_hand.replace(&quoted, NAME), plain.by_hand, "{}", check.code);
            let commands = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
            for command in commands(&renamed.recommended) {
                assert!(!command.replace(&quoted, "").contains(HOSTILE), "{}: {command}", check.code);
            }
            named += usize::from(renamed.by_hand.contains(&quoted));
        }
    }
    assert!(named > 20, "only {named} commands name an interface");
}

#[test]
fn host_hardware_checks_do_not_apply_in_virtual_machines() {
    let mut facts = example::facts();
    facts.virtualization.hypervisor = Fact::Known("kvm".into());
    let audit = audit(&facts, &example::goal(), &|_| true).expect("audited");
    let judged = |code: &str| code.starts_with("PCI-") || code == "IRQ-001" || code == "CPU-001" || code == "CPU-008";
    let wrong: Vec<_> = audit.passed.iter().filter(|answer| judged(&answer.code)).map(|a| &a.code).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let why = audit.not_applicable.iter().find(|answer| answer.code == "CPU-001").expect("it is answered");
    assert_eq!(why.text, "this is a virtual machine (kvm): its CPUs are set up on the host below");
}

#[test]
fn unknown_interface_errors_list_the_existing_ones() {
    let goal = Goal { interface: Some("eth9".into()), ..Goal::default() };
    let error = audit(&example::facts(), &goal, &|_| true).expect_err("there is no eth9");
    assert_eq!(error.to_string(), "there is no interface `eth9` here; there is: ens1f0np0");
}

#[test]
fn check_pages_match_the_golden_files() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checks");
    let pages = registry::all().map(|check| (format!("{}.md", check.code), docs::page(check)));
    for (name, text) in pages.chain([("README.md".to_owned(), docs::index())]) {
        golden::same_as_file(&directory.join(&name), &text, &[]);
    }
}
