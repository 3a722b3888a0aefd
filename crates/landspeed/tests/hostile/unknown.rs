//! Tests whose server never reported: what it would have told is null with the reason, in text and in JSON, and nothing
//! is counted as zero.

use std::net::SocketAddr;

use serde_json::Value;

use crate::hostile::common::{Process, Server, TIMEOUT_S, landspeed, scratch, until, validate_document};
use crate::iperf3::parties::landspeed_server;
use landspeed_testkit::process::run_concurrently;

/// A run whose text is on standard output, and its document.
struct Printed {
    text: String,
    document: Value,
}

/// Starts `run` with `options`, waits for data, does `stop` to it and returns what it says.
fn stopped(target: SocketAddr, options: &str, stop: impl FnOnce(&mut Process)) -> Printed {
    let directory = scratch();
    let [events, file] = ["events", "run.json"].map(|name| directory.path().join(name));
    let mut command = landspeed();
    command.args(["run", &target.to_string(), "-v", "--jsonl"]).arg(&events).arg("--json").arg(&file);
    let mut client = Process::start(command.args(options.split_ascii_whitespace()));
    until(TIMEOUT_S, "traffic", || {
        let lines = std::fs::read_to_string(&events).unwrap_or_default();
        lines.lines().filter(|line| line.contains("\"progress\"")).count() >= 4
    });
    stop(&mut client);
    let ended = client.end(TIMEOUT_S);
    assert_eq!(ended.code, 1, "{options}: {ended:?}");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("a document")).expect("JSON");
    validate_document(&document);
    assert_eq!(document["status"], "partial", "{options}: {:#}", document["errors"]);
    assert_possible(&document["summary"], options);
    assert_possible(&document["udp"], options);
    assert_possible(&document["conservation"], options);
    // Lines are wrapped.
    let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    Printed { text, document }
}

/// Asserts that no figure is negative, and no share above 1.
#[track_caller]
fn assert_possible(value: &Value, what: &str) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                assert!(!key.ends_with("ratio") || value.as_f64().unwrap_or(0.0) <= 1.0, "{what}: {key} is {value}");
                assert_possible(value, &format!("{what}: {key}"));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| assert_possible(item, what)),
        Value::Number(number) => assert!(number.as_f64() >= Some(0.0), "{what} is {number}"),
        _ => {}
    }
}

fn figure<'a>(document: &'a Value, path: &str) -> &'a Value {
    let (section, name) = path.split_once('.').expect("a path");
    &document[section][name]
}

/// Asserts which figures are known; the unknown ones have a reason.
#[track_caller]
fn assert_known(document: &Value, known: &[&str], unknown: &[&str]) {
    for path in known {
        let figure = figure(document, path);
        assert!(figure.is_number(), "{path} is {figure}: {:#}", document["unknown"]);
    }
    for path in unknown {
        let figure = figure(document, path);
        assert!(figure.is_null(), "{path} is {figure}");
        let why = document["unknown"][path].as_str().unwrap_or_default();
        assert!(why.contains("report is missing") || why.contains("unknown"), "{path}: {:#}", document["unknown"]);
    }
}

const UDP_SENT: [&str; 2] = ["udp.sent_packets", "udp.refused_packets"];
const UDP_RECEIVED: [&str; 3] = ["udp.delivered_packets", "udp.duplicate_packets", "udp.reordered_packets"];
const UDP_BOTH: [&str; 4] =
    ["udp.lost_packets", "udp.loss_ratio", "udp.tail_lost_packets", "conservation.unaccounted_packets"];

#[test]
fn figures_of_a_killed_server_are_null_with_the_reason() {
    let tests = ["-u -b 10M", "-u -b 10M -R", "-u -b 10M --bidir", "-b 50M", "-b 50M -R -P 2", "-b 50M --bidir"];
    run_concurrently(tests, |options| {
        let mut server = Server::start(&[]);
        let run = stopped(server.addr, &format!("-t 60 {options}"), |_| server.process.kill());
        let document = &run.document;
        let both = options.contains("--bidir");
        let (sends, receives) = (both || !options.contains("-R"), both || options.contains("-R"));
        let assert_reported = |figures: &[&str], is_known: bool| {
            let (known, unknown) = if is_known { (figures, &[][..]) } else { (&[][..], figures) };
            assert_known(document, known, unknown);
        };
        if options.contains("-u") {
            assert_known(document, &[], &UDP_BOTH);
            assert_reported(&UDP_SENT, sends && !both);
            assert_reported(&UDP_RECEIVED, receives && !both);
            assert!(run.text.contains("unknown: the server's report is missing"), "{options}: {}", run.text);
        } else if sends {
            assert!(run.text.contains("b/s acknowledged"), "{options}: {}", run.text);
            assert_eq!(document["streams"][0]["intervals_from"], "sender");
        }
        assert_known(document, &[], &["conservation.unaccounted_bytes"]);
        assert_reported(&["summary.goodput_bps", "summary.bytes_delivered"], !sends);
        if both {
            assert_reported(&["summary.reverse_goodput_bps"], true);
        }
        if !options.contains("-u") {
            assert_reported(&["summary.retransmits", "summary.min_rtt_us"], !receives);
        }
        assert!(!sends || run.text.contains("unknown (the server's report is missing)"), "{options}: {}", run.text);
        if options == "-u -b 10M" {
            let verdict = &document["verdict"];
            assert_eq!(verdict["cause"], "undetermined", "{verdict:#}");
            assert!(verdict["summary"].as_str().is_some_and(|said| said.contains("is unknown")), "{verdict:#}");
        }
    });
}

#[test]
fn latencies_of_a_killed_server_are_those_of_its_answers() {
    let mut server = Server::start(&[]);
    let run = stopped(server.addr, "-t 60 --rr --rate 500", |_| server.process.kill());
    let known = ["summary.transactions_per_s", "summary.latency_p50_ns", "summary.latency_p99_ns"];
    assert_known(&run.document, &known, &["summary.steady_ns"]);
    let result = &run.document["latency"][0];
    let of = |key: &str| result[key].as_u64().expect("a count");
    assert_eq!(of("sent"), of("completed") + of("unanswered"), "{result:#}");
    assert!(run.text.contains("p99"), "{}", run.text);
}

#[test]
fn an_interrupted_udp_download_from_iperf3_has_unknown_loss() {
    let (_server, address) = landspeed_server(&[]);
    let run = stopped(address, "--iperf3 -u -R -b 10M -t 60", |client| client.signal("INT"));
    assert_known(&run.document, &["udp.delivered_packets", "summary.goodput_bps"], &UDP_BOTH);
    assert_known(&run.document, &[], &["udp.sent_packets"]);
    assert!(run.text.contains("unknown: the server's report is missing"), "{}", run.text);
}

#[test]
fn an_interrupted_iperf3_download_has_no_negative_loss() {
    let (_server, address) = landspeed_server(&[]);
    for json in [true, false] {
        let mut command = landspeed();
        command.args(["iperf3", "-c", &address.ip().to_string(), "-p", &address.port().to_string()]);
        command.args(["-u", "-R", "-b", "10M", "-t", "60", "-i", "0.2"]).args(json.then_some("--json-stream"));
        let client = Process::start(command);
        let interval = if json { "\"event\":\"interval\"" } else { "bits/sec" };
        until(TIMEOUT_S, "an interval", || client.stdout().matches(interval).count() >= 2);
        client.signal("INT");
        let ended = client.end(TIMEOUT_S);
        if !json {
            let total = ended.stdout.lines().rfind(|line| line.contains("receiver")).unwrap_or_default();
            assert!(total.contains("lost: unknown") && total.contains("bits/sec"), "{}", ended.stdout);
            continue;
        }
        let events = ended.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let end = events.into_iter().find(|event| event["event"] == "end").expect("the totals");
        let end = &end["data"];
        assert_possible(end, "end");
        assert!(end["sum_received"]["bytes"].as_u64() > Some(0), "{end:#}");
        for missing in ["lost_packets", "packets", "lost_percent", "out_of_order"] {
            assert!(end["sum_received"][missing].is_null() && end["sum"][missing].is_null(), "{missing}: {end:#}");
        }
        assert!(end["cpu_utilization_percent"]["remote_total"].is_null(), "{end:#}");
    }
}

#[test]
fn an_iperf3_client_does_not_invent_what_the_server_counts() {
    let (_server, address) = landspeed_server(&[]);
    let mut command = landspeed();
    command.args(["run", &address.to_string(), "--iperf3", "-u", "-b", "10M", "-t", "0.5", "--json", "-"]);
    let document: Value = serde_json::from_slice(&command.output().expect("it runs").stdout).expect("a document");
    validate_document(&document);
    let unknown = &document["unknown"];
    for count in ["udp.reordered_packets", "udp.duplicate_packets", "udp.late_packets"] {
        assert_eq!(unknown[count], "the server does not report it", "{unknown:#}");
    }
    let (udp, summary) = (&document["udp"], &document["summary"]);
    assert!(udp["lost_packets"].is_number() && udp["reordered_packets"].is_null(), "{udp:#}");
    let sent = document["streams"][0]["receiver"]["bytes"].as_f64().expect("a total") * 8.0;
    let goodput = summary["goodput_bps"].as_f64().expect("the server's mean");
    assert!((goodput / (sent / 0.5) - 1.0).abs() < 0.1, "{goodput} of {sent} bits");
    assert!(summary["goodput_cv_unknown"].as_str().is_some_and(|why| why.contains("totals only")), "{summary:#}");
    let mut command = landspeed();
    command.args([
        "iperf3",
        "-c",
        &address.ip().to_string(),
        "-p",
        &address.port().to_string(),
        "-u",
        "-t",
        "1",
        "-J",
    ]);
    let document: Value = serde_json::from_slice(&command.output().expect("it runs").stdout).expect("a document");
    let row = &document["end"]["streams"][0]["udp"];
    assert!(row["lost_packets"].is_number() && row["out_of_order"].is_null(), "{row:#}");
}
