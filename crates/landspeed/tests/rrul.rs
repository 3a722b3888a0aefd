//! `landspeed run --rrul`: latency under load in both directions, and what a terminal shows meanwhile.

use std::process::Command;

use landspeed_testkit::netns::Namespace;
use landspeed_testkit::pair::Pair;
use serde_json::Value;

use crate::common::{PROGRAM, assert_valid, chosen_program, list};

/// Classes of the streams of a direction, in their order.
const CLASSES: [&str; 4] = ["cs0", "cs1", "cs5", "ef"];

#[test]
fn rrul_measures_latency_idle_and_under_load() {
    let pair = Pair::on_loopback(PROGRAM);
    let document = pair.run("--rrul -t 2 -b 20m");
    assert_valid("run", &document);
    assert_eq!(list(&document["streams"]).len(), 8, "{document:#}");
    assert_eq!(document["effective"]["stream_dscp"], serde_json::json!([0, 8, 40, 46]));
    for stream in list(&document["streams"]) {
        assert!(stream["receiver"]["bytes"].as_u64().is_some_and(|bytes| bytes > 100_000), "{stream:#}");
    }
    let load = &document["latency_under_load"];
    for part in ["idle", "loaded"] {
        assert!(load[part]["completed"].as_u64().is_some_and(|count| count > 20), "{part}: {load:#}");
    }
    let points = list(&load["timeline"]);
    assert!(points.first().is_some_and(|point| point["start_ns"].as_i64() == Some(-1_000_000_000)), "{points:?}");
    let answered: u64 = points.iter().filter_map(|point| point["completed"].as_u64()).sum();
    let counted = |part: &str| load[part]["completed"].as_u64().unwrap_or_default();
    assert_eq!(answered, counted("idle") + counted("loaded"), "{load:#}");
    let rpm = |name: &str| load["responsiveness"][name].as_f64().unwrap_or_else(|| panic!("{name}: {load:#}"));
    assert!((rpm("rpm") - rpm("foreign_rpm").midpoint(rpm("loaded_rpm"))).abs() < 1e-6, "{load:#}");
    // 95 % of the round trips are shorter than the longest of them.
    let p99_ns = load["loaded"]["p99_ns"].as_f64().expect("a quantile");
    assert!(rpm("foreign_rpm") > 60e9 / p99_ns, "{load:#}");
}

/// Returns the packets that a counter of nftables has.
fn packets(counters: &Value, name: &str) -> u64 {
    let counters = list(&counters["nftables"]).iter().filter_map(|item| item.get("counter"));
    counters.filter(|counter| counter["name"] == name).filter_map(|counter| counter["packets"].as_u64()).sum()
}

#[test]
fn each_stream_of_rrul_has_its_mark_in_both_directions() {
    let host = landspeed_testkit::or_skip!(Namespace::new("rrul"));
    if Command::new("nft").arg("--version").output().is_err() {
        landspeed_testkit::skip!("no nft here");
    }
    let (mut names, mut rules) = (String::new(), String::new());
    for class in CLASSES {
        for (way, port) in [("up", "dport"), ("down", "sport")] {
            names += &format!("counter {way}_{class} {{ }}\n");
            // Only segments with data: the control connection has short messages, and no mark.
            rules += &format!("tcp {port} 5210 ip dscp {class} meta length > 1000 counter name {way}_{class}\n");
        }
        names += &format!("counter probe_{class} {{ }}\n");
        rules += &format!("udp dport 5210 ip dscp {class} counter name probe_{class}\n");
    }
    host.nft(&format!("table inet t {{ {names} chain c {{ type filter hook output priority 0;\n{rules} }}\n}}"));
    let pair = Pair::across_with(PROGRAM, &host, &host, "127.0.0.1", &["--no-iperf3"]);
    let document = pair.run("--rrul -t 1 -b 20m");
    assert_eq!(document["status"], "complete", "{document:#}");
    let counters: Value = serde_json::from_str(&host.exec(["nft", "-j", "list", "counters"])).expect("JSON");
    for class in CLASSES {
        for way in ["up", "down"] {
            assert!(packets(&counters, &format!("{way}_{class}")) > 5, "{way} {class}: {counters:#}");
        }
    }
    assert!(packets(&counters, "probe_cs0") > 100 && packets(&counters, "probe_ef") == 0, "{counters:#}");
}

#[test]
fn lost_probes_are_visible_and_improve_no_figure() {
    let host = landspeed_testkit::or_skip!(Namespace::new("lossy"));
    if Command::new("nft").arg("--version").output().is_err() {
        landspeed_testkit::skip!("no nft here");
    }
    // Each fifth probe, at the server's input: the sender sees no error.
    let rule = "udp dport 5210 numgen inc mod 5 == 0 drop";
    host.nft(&format!("table inet t {{ chain c {{ type filter hook input priority 0; {rule}; }}\n}}"));
    let pair = Pair::across_with(PROGRAM, &host, &host, "127.0.0.1", &["--no-iperf3"]);
    let document = pair.run("--rrul -t 1 -b 20m");
    let load = &document["latency_under_load"];
    let lost = load["responsiveness"]["foreign_unanswered"].as_u64().expect("a count");
    let answered = load["responsiveness"]["foreign_samples"].as_u64().expect("a count");
    assert!(lost >= 10 && answered > 3 * lost && load["loaded"]["unanswered"] == lost, "{load:#}");
    assert!(load["loaded"]["p50_ns"].is_number() && load["responsiveness"]["loaded_rpm"].is_number(), "{load:#}");
    for figure in ["rpm", "foreign_rpm", "idle_rpm"] {
        assert!(load["responsiveness"][figure].is_null(), "{load:#}");
        let why = &document["unknown"][format!("latency_under_load.responsiveness.{figure}")];
        assert!(why.as_str().is_some_and(|why| why.contains("probes were not answered")), "{figure}: {why}");
    }
}

#[test]
fn a_terminal_shows_sparklines_and_a_pipe_does_not() {
    if Command::new("script").arg("--version").output().is_err() {
        landspeed_testkit::skip!("no script here, which makes a terminal");
    }
    let pair = Pair::on_loopback(PROGRAM);
    let line = format!("{} run {} -t 2 -b 20m", chosen_program().display(), pair.target());
    let run = |program: &str, words: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["60", program]).args(words).env("TERM", "xterm").env("NO_COLOR", "1");
        String::from_utf8_lossy(&command.output().expect("it runs").stdout).into_owned()
    };
    let shown = run("script", &["-qec", &format!("stty cols 80; {line}"), "/dev/null"]);
    let drawn: Vec<&str> = shown.split('\r').filter(|part| part.contains("s left  goodput")).collect();
    assert!(drawn.len() >= 2, "{shown:?}");
    for part in &drawn {
        let text = part.split("\u{1b}[K").next().unwrap_or_default();
        assert!(text.contains("RTT") && text.contains(|c| ('▁'..='█').contains(&c)), "{text}");
        assert!(text.chars().count() < 80, "{text}");
    }
    assert!(shown.contains("interval") && shown.contains("result"), "{shown:?}");
    let piped = run("sh", &["-c", &line]);
    assert!(piped.contains("interval") && !piped.contains(['\r', '\u{1b}', '█']), "{piped:?}");
}
