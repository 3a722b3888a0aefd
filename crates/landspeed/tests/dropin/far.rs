//! The drop-in mode against real iperf3 servers and clients.

use landspeed_testkit::process::run_concurrently;
use std::collections::BTreeSet;

use landspeed_testkit::iperf3;
use landspeed_testkit::process::Process;
use serde_json::Value;

use super::{Server, json, landspeed, run};

/// Kinds of tests, by flags that both programs accept.
const KINDS: &[&[&str]] = &[
    &["-t", "1"],
    &["-t", "1", "-R", "-b", "200M"],
    &["-t", "1", "--bidir", "-b", "200M"],
    &["-t", "1", "-P", "2", "-b", "200M"],
    &["-n", "10M"],
    &["-t", "1", "-u", "-b", "20M"],
    &["-t", "1", "-u", "-b", "20M", "-R"],
    &["-t", "1", "-u", "-b", "20M", "--bidir"],
];

/// Collects the paths of all keys; array elements share a path.
fn keys(value: &Value, at: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(all) => all.iter().for_each(|(key, value)| keys(value, &format!("{at}/{key}"), into)),
        Value::Array(all) => all.iter().for_each(|value| keys(value, at, into)),
        _ => {
            into.insert(at.to_owned());
        }
    }
}

fn keys_of(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    keys(value, "", &mut found);
    found
}

/// Whether our document may lack this key of iperf3's.
fn may_be_missing(key: &str, kind: &[&str]) -> bool {
    let udp_receiver = kind.contains(&"-u") && (kind.contains(&"-R") || kind.contains(&"--bidir"));
    // Fields of tcp_info in newer kernels, and values that only the remote side knows and does not report.
    ["snd_wnd", "reorder", "max_snd_wnd"].iter().any(|field| key.ends_with(field))
        || (udp_receiver && key.starts_with("/intervals"))
        || ["max_rtt", "min_rtt", "mean_rtt", "max_snd_cwnd"].iter().any(|field| key.ends_with(field))
            && kind.contains(&"-R")
        // Buffer size of a direction that a UDP socket does not use.
        || (kind.contains(&"-u") && key.ends_with("buf_actual"))
        || key == "/end/receiver_tcp_congestion"
        || key == "/end/sender_tcp_congestion" && kind.contains(&"-R")
        // iperf3 prints 0 for an upload, whose receiver does not report it.
        || kind.contains(&"-u") && key == "/end/streams/udp/out_of_order"
}

fn bytes(document: &Value, sum: &str) -> u64 {
    let pointer = format!("/end/{sum}/bytes");
    document.pointer(&pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {document:#}"))
}

#[test]
fn client_json_has_the_keys_of_iperf3() {
    let programs = iperf3::programs();
    let Some(newest) = programs.last() else {
        landspeed_testkit::skip!("no iperf3 here: cargo xtask iperf3");
    };
    run_concurrently(KINDS, |kind| {
        let client = |program: &std::path::Path, first: &[&str]| {
            let server = Server::start(&newest.path, &[]);
            let port = server.port.to_string();
            let words = [first, &["-c", "127.0.0.1", "-p", &port, "-J"], *kind].concat();
            json(&run(program, &words))
        };
        let (ours, theirs) = (client(&landspeed(), &["iperf3"]), client(&newest.path, &[]));
        assert_eq!(ours.get("error"), None, "{kind:?}: {ours:#}");
        let (ours_has, theirs_has) = (keys_of(&ours), keys_of(&theirs));
        let missing: Vec<_> = theirs_has.difference(&ours_has).filter(|key| !may_be_missing(key, kind)).collect();
        let added: Vec<_> = ours_has.difference(&theirs_has).collect();
        assert!(missing.is_empty(), "{kind:?}: {newest} has {missing:?}");
        assert!(added.is_empty(), "{kind:?}: {newest} has not {added:?}");
        // The intervals add up to the total.
        let sums = [
            ("sum", "sum_sent", "sum_received"),
            ("sum_bidir_reverse", "sum_sent_bidir_reverse", "sum_received_bidir_reverse"),
        ];
        for (sum, sent, received) in sums {
            let intervals = ours["intervals"].as_array().expect("intervals");
            let rows: Vec<&Value> = intervals.iter().filter_map(|interval| interval.get(sum)).collect();
            if rows.is_empty() {
                continue;
            }
            let total: u64 = rows.iter().filter_map(|row| row["bytes"].as_u64()).sum();
            let sends = rows[0]["sender"] == true;
            assert_eq!(total, bytes(&ours, if sends { sent } else { received }), "{kind:?}: {ours:#}");
        }
    });
}

#[test]
fn every_iperf3_release_interoperates_in_both_roles() {
    let programs = iperf3::programs();
    if programs.is_empty() {
        landspeed_testkit::skip!("no iperf3 here: cargo xtask iperf3");
    }
    run_concurrently(programs, |program| {
        // -n with -R is left out: 3.9's client does not end such a test with its own server either.
        for kind in [&["-n", "4M"][..], &["-t", "1", "-u", "-b", "5M"], &["-t", "1", "-R"]] {
            // Our client, iperf3's server.
            let server = Server::start(&program.path, &[]);
            let port = server.port.to_string();
            let words = [&["iperf3", "-c", "127.0.0.1", "-p", &port, "-J"][..], kind].concat();
            let ours = json(&run(&landspeed(), &words));
            assert_eq!(ours.get("error"), None, "{program} {kind:?}: {ours:#}");
            let (sent, received) = (bytes(&ours, "sum_sent"), bytes(&ours, "sum_received"));
            // Since 3.16 iperf3's sender may report less than it sent: its threads still write while it adds up.
            let unsaid = if kind.contains(&"-R") { 4 * 131_072 } else { 0 };
            assert!(received > 0 && received <= sent + unsaid, "{program} {kind:?}: {sent} and {received}");
            // iperf3's client, our server.
            let server = Server::start(&landspeed(), &["iperf3"]);
            let port = server.port.to_string();
            let words = [&["-c", "127.0.0.1", "-p", &port, "-J"][..], kind].concat();
            let theirs = json(&run(&program.path, &words));
            assert_eq!(theirs.get("error"), None, "{program} {kind:?}: {theirs:#}");
            // With -1 the server exits after one test.
            server.end();
        }
    });
}

#[test]
fn iperf3_json_of_a_native_run_is_consistent() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let written = directory.path().join("run.json");
    // `demo` would work too; this server reports the port that the kernel assigned.
    let mut command = std::process::Command::new(landspeed());
    let server = Process::start(command.args(["serve", "--listen", "127.0.0.1:0", "--no-iperf3"]));
    let at = server.address_in("listening on").to_string();
    let path = written.to_string_lossy().into_owned();
    let out =
        run(&landspeed(), &["run", &at, "-t", "1", "-O", "1", "-q", "--json", &path, "--format", "iperf3-json"]);
    let text = std::fs::read_to_string(&written).unwrap_or_else(|error| panic!("{error}: {out:?}"));
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let intervals = document["intervals"].as_array().expect("intervals");
    let omitted = intervals.iter().filter(|interval| interval["sum"]["omitted"] == true).count();
    assert!(omitted == 1 && intervals.len() == 2, "{document:#}");
    // Omitted bytes are not part of a total.
    let counted: u64 =
        intervals.iter().filter(|i| i["sum"]["omitted"] == false).filter_map(|i| i["sum"]["bytes"].as_u64()).sum();
    assert_eq!(counted, bytes(&document, "sum_sent"), "{document:#}");
}
