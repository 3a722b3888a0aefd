//! `landspeed iperf3 -s -J`: the server's document has the results of both ends.

use std::process::{Command, Stdio};

use landspeed_iperf3::document::Document;
use landspeed_testkit::process::{Process, free_port};
use serde_json::Value;

use super::{TIMEOUT_S, json, landspeed, run};

/// Runs one test against `iperf3 -s -1 -J`; returns the documents of the client and of the server.
fn both(options: &[&str]) -> (Value, Value) {
    let port = free_port().to_string();
    let mut command = Command::new(landspeed());
    command.args(["iperf3", "-s", "-1", "-J", "-p", &port]).stdin(Stdio::null());
    let mut server = Process::start(command);
    let words = [&["iperf3", "-c", "127.0.0.1", "-p", &port, "-J"], options].concat();
    // The server prints nothing when it listens.
    let client = loop {
        let client = run(&landspeed(), &words);
        if client.status.success() || server.has_ended() {
            break json(&client);
        }
    };
    let said = server.end(TIMEOUT_S).stdout;
    let parsed: Document = serde_json::from_str(&said).unwrap_or_else(|why| panic!("{options:?}: {why}\n{said}"));
    (client, serde_json::to_value(parsed).expect("JSON"))
}

#[test]
fn a_server_prints_the_results_of_both_ends() {
    for options in [&["-n", "5M", "-R"][..], &["-n", "5M"], &["-n", "5M", "-P", "2", "--bidir"], &["-u", "-k", "50"]]
    {
        let (client, server) = both(options);
        let start = &server["start"];
        assert_eq!(start["test_start"]["reverse"], client["start"]["test_start"]["reverse"], "{options:?}");
        assert_eq!(start["accepted_connection"]["host"], "127.0.0.1", "{start:#}");
        assert!(start["connecting_to"].is_null() && server["error"].is_null(), "{server:#}");
        let bytes = |document: &Value, sum: &str| document["end"][sum]["bytes"].as_u64();
        // What one end sends is what the other receives; of a server's document the first direction is what it sends.
        let reverse =
            |sum: &str| if options.contains(&"--bidir") { format!("{sum}_bidir_reverse") } else { sum.to_owned() };
        for sum in ["sum_sent", "sum_received"] {
            let (here, there) = (bytes(&client, sum), bytes(&server, &reverse(sum)));
            assert!(here.is_some() && here == there, "{options:?}, {sum}: {here:?} and {there:?}\n{server:#}");
        }
        if options.contains(&"-R") {
            assert_eq!(bytes(&server, "sum_sent"), Some(5 << 20), "the server sends what is asked for");
        }
        assert!(server["intervals"].as_array().is_some_and(|intervals| !intervals.is_empty()), "{server:#}");
    }
}
