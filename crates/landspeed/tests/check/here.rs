//! `landspeed check` on this host.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;

use serde_json::Value;

use crate::check::{check, codes, document, failure, landspeed};

#[test]
fn every_check_is_in_the_document_once() {
    let document = document(&["--goal", "100G", "--rtt", "92ms"]);
    let schema = landspeed_model::schema("audit").expect("there is one");
    let errors: Vec<_> = jsonschema::validator_for(&schema)
        .expect("a schema")
        .iter_errors(&document)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let lists = ["findings", "passed", "not_applicable", "unknown"].map(|list| codes(&document, list));
    let asked: BTreeSet<_> = lists.iter().flatten().copied().collect();
    let listed = String::from_utf8(check(&["--list"]).stdout).expect("text");
    let known: BTreeSet<_> =
        listed.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next()).collect();
    assert_eq!(asked, known);
    assert!(known.len() >= 80, "{}", known.len());
    for finding in document["findings"].as_array().expect("a list") {
        for part in ["code", "severity", "title", "observed", "recommended", "source", "why", "effect", "by_hand"] {
            assert!(finding[part].as_str().is_some_and(|text| !text.is_empty()), "{part}: {finding}");
        }
    }
}

#[test]
fn facts_hidden_from_unprivileged_users_are_unknown() {
    if !landspeed_sys::process::is_root() {
        landspeed_testkit::skip!("becoming nobody needs root");
    }
    let root = document(&[]);
    let mut command = landspeed();
    let output = command.args(["check", "--json", "-"]).uid(65534).gid(65534).output().expect("started");
    let nobody: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!((root["facts"]["root"].as_bool(), nobody["facts"]["root"].as_bool()), (Some(true), Some(false)));
    // Checks that pass for root pass for nobody too, or are unknown.
    let (all, seen) = (codes(&root, "passed"), codes(&nobody, "passed"));
    let unknown = codes(&nobody, "unknown");
    let counters =
        |code: &&&str| !code.starts_with("TCP-0") && !code.starts_with("IRQ-") && !code.starts_with("NIC-");
    for code in all.iter().filter(counters) {
        assert!(seen.contains(code) || unknown.contains(code), "{code} passes for root and not for nobody");
    }
}

#[test]
fn the_summary_names_the_next_step() {
    let output = check(&["--goal", "100G", "--rtt", "92ms", "--role", "dtn", "--only", "buffers"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.lines().next().is_some_and(|line| line.starts_with("  host ")), "{text}");
    assert!(text.contains("100 Gb/s over 92.0 ms, as a data transfer node"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("  summary ")), "{text}");
    // Lines with commands are not wrapped.
    let folded = |line: &&str| !["look ", "fix "].iter().any(|label| line.trim_start().starts_with(label));
    assert!(text.lines().filter(folded).all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn checks_are_chosen_by_code_and_by_group() {
    let only = document(&["--only", "tcp-001,qdisc", "--except", "QDISC-001"]);
    let lists = ["findings", "passed", "not_applicable", "unknown"].map(|list| codes(&only, list));
    let asked: BTreeSet<_> = lists.iter().flatten().copied().collect();
    assert!(asked.contains("TCP-001") && asked.contains("QDISC-004"), "{asked:?}");
    assert!(asked.iter().all(|code| *code == "TCP-001" || code.starts_with("QDISC") && *code != "QDISC-001"));
    assert!(failure(&["--only", "TCP-999"]).contains("--list"));
}

#[test]
fn a_check_explains_itself_and_an_unknown_one_is_refused() {
    let text = String::from_utf8(check(&["--explain", "TCP-001"]).stdout).expect("text");
    for part in ["TCP-001 SACK", "\nReads ", "\nLeave it alone ", "\nSources\n", "RFC 2018"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(failure(&["--explain", "TCP-999"]).contains("'landspeed check --list' names them"));
}

#[test]
fn invalid_options_are_refused_with_alternatives() {
    assert!(failure(&["--iface", "nowhere0"]).contains("there is no interface 'nowhere0' here; there is: "));
    assert!(failure(&["--goal", "fast"]).contains("fast"));
    assert!(failure(&["--rtt", "0"]).contains("a time of zero"));
    assert!(failure(&["--role", "king"]).contains("dtn"));
    assert!(failure(&["--json", "/nowhere/audit.json"]).contains("there is no directory /nowhere"));
    assert!(failure(&["--host", "/nowhere"]).contains("--record DIR"));
    assert!(failure(&["--redact"]).contains("--record"));
}

#[test]
fn report_embeds_the_document_and_loads_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("audit.html");
    let output = check(&["--report", path.to_str().expect("plain")]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let page = std::fs::read_to_string(&path).expect("written");
    assert!(page.contains("landspeed.audit/1") && page.contains("landspeed check"));
    assert!(page.contains("default-src 'none'"));
}
