//! Sweeps between hosts.

use std::process::Command;

use landspeed_testkit::netns::{Namespace, veth};
use landspeed_testkit::pair::Pair;
use landspeed_testkit::process::{Process, free_port, until};
use landspeed_testkit::{or_skip, skip};

use crate::common::PROGRAM;
use crate::sweep::{Sweep, runs};

fn plan(target: &str, blocks: u32, time: &str) -> String {
    format!(
        "name = \"streams\"\nblocks = {blocks}\n[run]\ntarget = \"{target}\"\ntime = \"{time}\"\n[[factor]]\n\
         name = \"streams\"\nkey = \"run.parallel\"\nlevels = [1, 2]\n"
    )
}

fn serve(address: &str, options: &[&str]) -> Process {
    let server = Process::start(Command::new(PROGRAM).args(["serve", "--listen", address]).args(options));
    server.address_in("listening");
    server
}

#[test]
fn options_of_run_are_varied_over_loopback() {
    let address = format!("127.0.0.1:{}", free_port());
    let _server = serve(&address, &[]);
    let sweep = Sweep::new(&plan(&address, 2, "200ms"));
    let ended = sweep.run(&[]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let document = sweep.document();
    assert_eq!((document["status"].as_str(), runs(&document).len()), (Some("complete"), 6));
    let streams =
        |cell: usize| document["cells"][cell]["runs"][0]["flows"][0]["streams_bps"].as_array().map(Vec::len);
    assert_eq!((streams(0), streams(1)), (Some(1), Some(2)));
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ended.stdout);
    // All runs exist, so nothing is measured again; a dry run knows it without the server.
    for options in [vec!["--dry-run"], Vec::new()] {
        let ended = sweep.run(&options);
        assert!(ended.stderr.contains("6 runs, 6 of them there already"), "{options:?}: {}", ended.stderr);
    }
}

#[test]
fn unknown_congestion_control_is_found_before_the_first_run() {
    let address = format!("127.0.0.1:{}", free_port());
    let _server = serve(&address, &[]);
    let plan = plan(&address, 2, "200ms")
        .replace("run.parallel", "run.congestion")
        .replace("[1, 2]", "[\"reno\", \"rneo\"]");
    let sweep = Sweep::new(&plan);
    let ended = sweep.run(&[]);
    assert_eq!(ended.code, 2, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("factor.0.levels.1") && ended.stderr.contains("rneo"), "{}", ended.stderr);
    assert!(!sweep.path().join("plan.sweep").exists());
}

#[test]
fn settings_that_a_host_refuses_are_found_before_the_first_run() {
    let left = or_skip!(Namespace::new("left"));
    let right = or_skip!(Namespace::new("right"));
    veth(&left, &right, "10.93.0.1/24", "10.93.0.2/24");
    let pair = Pair::across_with(PROGRAM, &left, &right, "10.93.0.2", &["--allow-host-changes"]);
    let congestion = || left.exec(["sysctl", "-n", "net.ipv4.tcp_congestion_control"]);
    let before = congestion();
    let plan = |name: &str| {
        plan(pair.target(), 1, "200ms")
            .replace("run.parallel", "host.client.net.ipv4.tcp_congestion_control")
            .replace("[1, 2]", &format!("[\"reno\", \"{name}\"]"))
    };
    let sweep = Sweep::new(&plan("rneo"));
    let ended = left.run(|| sweep.run(&[]));
    assert_eq!(ended.code, 2, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("factor.0.levels.1") && ended.stderr.contains("rneo"), "{}", ended.stderr);
    assert!(!sweep.path().join("plan.sweep").exists());
    assert_eq!(congestion(), before);
    // A network namespace other than the first may use only these.
    let permitted = left.exec(["sysctl", "-n", "net.ipv4.tcp_allowed_congestion_control"]);
    let Some(other) = permitted.split_whitespace().find(|name| *name != "reno") else {
        skip!("a network namespace may use reno only");
    };
    let sweep = Sweep::new(&plan(other));
    let ended = left.run(|| sweep.run(&[]));
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(congestion(), before);
}

#[test]
fn a_server_that_vanishes_leaves_a_partial_sweep() {
    let address = format!("127.0.0.1:{}", free_port());
    let mut server = serve(&address, &[]);
    let sweep = Sweep::new(&plan(&address, 4, "300ms"));
    let process = sweep.start(&[]);
    until(60, "two runs", || sweep.runs().len() >= 2);
    server.kill();
    let ended = process.end(120);
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    let document = sweep.document();
    assert_eq!(document["status"], "partial");
    let failed = runs(&document).into_iter().filter(|run| run["usable"] == false);
    assert!(failed.clone().count() >= 1, "{document:#}");
    for run in failed {
        assert!(run["problems"][0].as_str().is_some_and(|why| !why.is_empty()), "{run:#}");
    }
    // The server is back: only the failed runs are repeated.
    let _server = serve(&address, &[]);
    let ended = sweep.run(&[]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(runs(&sweep.document()).len(), 12);
}

#[test]
fn unreachable_server_is_reported_before_anything_runs() {
    let sweep = Sweep::new(&plan(&format!("127.0.0.1:{}", free_port()), 1, "200ms"));
    let ended = sweep.run(&[]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("cannot test this host to 127.0.0.1"), "{}", ended.stderr);
    assert!(!sweep.path().join("plan.sweep").exists());
}

#[test]
fn remote_senders_and_receivers_are_controlled() {
    let port = free_port;
    let addresses: Vec<String> = (0..3).map(|_| format!("127.0.0.1:{}", port())).collect();
    let _servers: Vec<Process> =
        addresses.iter().map(|address| serve(address, &["--allow-third-party", "127.0.0.0/8"])).collect();
    let [a, b, c] = &addresses[..] else { unreachable!("three") };
    let sweep = Sweep::new(&format!(
        "name = \"pairs\"\nblocks = 2\n[run]\ntime = \"300ms\"\n[hosts]\nsenders = [\"{a}\"]\nreceivers = [\"{b}\", \"{c}\"]\n\
         [[cross]]\nfrom = \"{b}\"\nto = \"{c}\"\nudp = true\nrate = \"10M\"\n"
    ));
    let ended = sweep.run(&[]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let document = sweep.document();
    assert_eq!((document["factors"][0]["name"].as_str(), runs(&document).len()), (Some("receiver"), 6));
    for run in runs(&document) {
        let cross = &run["flows"][1];
        assert_eq!(cross["name"], format!("cross {b} to {c}"));
        let rate = cross["figures"]["goodput_bps"].as_f64().unwrap_or(0.0);
        assert!((1e6..12e6).contains(&rate), "{run:#}");
    }
}
