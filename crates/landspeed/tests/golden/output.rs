//! Output of commands that need no peer, and of the server.

use std::process::Command;

use landspeed_testkit::{golden, hosts};

use crate::common::PROGRAM;
use crate::golden::{directory, serve, transcript};

fn same(name: &str, lines: &[&str]) {
    let directory = directory();
    let text: String = lines.iter().map(|line| transcript(directory.path(), &[], line)).collect();
    golden::same(name, &text);
}

#[test]
fn calc_output_matches_its_golden_file() {
    same(
        "calc.txt",
        &["landspeed calc --rate 10G --rtt 92ms", "landspeed calc --rate 1G --rtt 20ms --loss 1e-5 --bytes 1TB"],
    );
}

#[test]
fn check_output_matches_its_golden_files() {
    let recorded = tempfile::tempdir().expect("a directory");
    for (name, goal) in [
        ("arm-server", "--goal 25G --rtt 20ms"),
        ("bonded", "--goal 20G --rtt 30ms"),
        ("cloud-sriov", "--goal 10G --rtt 60ms"),
        ("container", "--goal 5G --rtt 10ms"),
        ("deck-40g", "--goal 40G --rtt 50ms"),
        ("dtn-100g", "--goal 100G --rtt 92ms"),
        ("laptop", "--goal 500M --rtt 30ms"),
        ("virtio-guest", "--goal 10G --rtt 50ms"),
    ] {
        hosts::unpack_into(name, &recorded.path().join(name));
        let text = transcript(recorded.path(), &[], &format!("landspeed check --host {name} {goal}"));
        golden::same(&format!("check/{name}.txt"), &text);
    }
}

#[test]
fn quiet_check_prints_nothing_with_the_same_status() {
    let line = "landspeed check --host host --goal 40G --rtt 50ms -q";
    assert_eq!(transcript(directory().path(), &[], line), format!("$ {line}\n[exit status 1]\n\n"));
}

#[test]
fn server_log_matches_its_golden_file() {
    let (server, address) = serve();
    let run = |options: &str| {
        let mut client = Command::new(PROGRAM);
        client.args(["run", &address.to_string(), "-q"]).args(options.split(' '));
        client.output().expect("the program runs")
    };
    run("-t 0.3");
    run("-u -b 10M -t 0.3 -R");
    run("--rr -t 0.2");
    run("-t 60");
    server.signal("INT");
    let ended = server.end(30);
    let text = format!("$ landspeed serve --listen 127.0.0.1:0 --max-duration 5s\n{}{}", ended.stdout, ended.stderr);
    golden::same_redacted(
        "serve.txt",
        &text,
        &[
            ("[TIME]", r"\d{4}-\d\d-\d\dT[0-9:]+Z"),
            ("[ID]", r"\b[0-9a-f]{8}\b"),
            ("[PORT]", r"127\.0\.0\.1:(?<redacted>[1-9]\d+)"),
            ("[REQUESTS]", r"answered (?<redacted>\d+) requests"),
            ("[BYTES]", r"(sent|received) (?<redacted>[0-9.]+ ?[kKMG]?i?B)"),
            ("[RATE]", r"at (?<redacted>[0-9.]+ [kMG]?b/s)"),
            ("[DURATION]", r" in (?<redacted>[0-9.]+ [mµn]?s)"),
        ],
    );
}
