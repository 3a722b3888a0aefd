//! iperf3 clients against `serve`: the figures of both sides in their output agree, and the server
//! completes every test.

use std::net::SocketAddr;

use landspeed_testkit::iperf3::{Iperf3, programs};
use landspeed_testkit::process::until;
use landspeed_testkit::skip;
use serde_json::Value;

use crate::common::list;
use crate::iperf3::parties::{Case, cover, iperf3_client, landspeed_server, matrix, number};
use landspeed_testkit::process::run_concurrently;

const CASES: &[Case] = &[
    ("-t 1", 0),
    ("-t 1 -P 3", 0),
    ("-t 1 -R", 0),
    ("-t 1 -R -P 2", 0),
    ("-t 1 --bidir -b 200M", 7),
    ("-t 1 -O 1", 0),
    ("-t 1 -O 1 -R", 0),
    ("-n 20M", 0),
    // 3.9 never ends, with its own server as well.
    ("-n 20M -R", 10),
    ("-k 50 -l 64K", 0),
    ("-t 1 -C cubic -w 300K -M 1400 -N -S 32", 0),
    ("-t 1 -Z -R -b 200M", 0),
    ("-t 1 -R --fq-rate 300M", 0),
    ("-t 1 -u -b 20M", 0),
    ("-t 1 -u -b 20M -R", 0),
    ("-t 1 -u -b 10M -P 2 --bidir", 7),
    ("-t 1 -u -b 20M --udp-counters-64bit -l 16", 0),
    ("-t 1 -u -b 20M -R --udp-counters-64bit -l 1200", 0),
    ("-t 1 -O 1 -u -b 20M", 0),
    ("-u -b 20M -k 200 -l 1200", 0),
    ("-t 1 --get-server-output", 0),
];

#[test]
fn totals_of_both_ends_agree_with_every_release() {
    let programs = programs();
    if programs.is_empty() {
        skip!("no iperf3 here; `cargo xtask iperf3` downloads some");
    }
    totals_agree(|target| {
        run_concurrently(cover(CASES, &programs), |(iperf3, cases)| assert_agreement(&iperf3, &cases, target));
    });
}

#[test]
#[ignore = "long: every case with every release takes minutes"]
fn totals_of_both_ends_agree_in_every_case_with_every_release() {
    totals_agree(|target| {
        matrix(CASES, &programs()).iter().for_each(|(iperf3, cases)| assert_agreement(iperf3, cases, target));
    });
}

/// Runs tests against one server, and asserts that it completed all of them.
fn totals_agree(run: impl FnOnce(SocketAddr)) {
    let (server, target) = landspeed_server(&[]);
    run(target);
    let log = server.stdout();
    let (begun, ended) = (log.matches("start    iperf3").count(), log.matches("end      complete").count());
    assert!(begun > 0 && begun == ended, "{log}");
}

fn assert_agreement(iperf3: &Iperf3, cases: &[&str], target: SocketAddr) {
    for options in cases {
        let what = format!("{iperf3}, {options}");
        let said = iperf3_client(iperf3, target, options);
        assert_eq!(said["error"], Value::Null, "{what}");
        if options.contains("-u") {
            datagrams_agree(&said, options, iperf3.version, &what);
        } else {
            bytes_agree(&said, options, iperf3.version, &what);
        }
        if options.contains("--get-server-output") {
            assert!(said["server_output_text"].to_string().contains("landspeed"), "{what}: {said:#}");
        }
    }
}

#[track_caller]
fn bytes_agree(said: &Value, options: &str, version: (u32, u32), what: &str) {
    for stream in list(&said["end"]["streams"]) {
        let (sent, received) = (number(&stream["sender"]["bytes"]), number(&stream["receiver"]["bytes"]));
        assert!(received > 0, "{what}: {stream:#}");
        let by_client = stream["sender"]["sender"].as_bool().unwrap_or(!options.contains("-R"));
        if by_client && !options.contains("-O") {
            // Our server reads everything the client reports as sent; a multi-threaded release may omit its last
            // write.
            assert!((0..=128 << 10).contains(&(received - sent)), "{what}: {sent} sent, {received} received");
            assert!(version >= (3, 16) || received == sent, "{what}: {sent} sent, {received} received");
        } else if !options.contains("-O") {
            // iperf3 does not count data that arrives after it announced the end. Of a number of bytes the server sends no
            // more.
            assert!(!options.contains("-n 20M -R") || sent == 20 << 20, "{what}: {sent} sent");
            assert!(received <= sent, "{what}: {sent} sent, {received} received");
            assert!(sent - received <= (sent / 4).max(64 << 20), "{what}: {sent} sent, {received} received");
        } else {
            let apart = (sent - received).abs();
            assert!(apart <= (sent / 4).max(64 << 20), "{what}: {sent} sent, {received} received");
        }
    }
}

#[track_caller]
fn datagrams_agree(said: &Value, options: &str, version: (u32, u32), what: &str) {
    for stream in list(&said["end"]["streams"]) {
        let udp = &stream["udp"];
        let (packets, lost) = (number(&udp["packets"]), number(&udp["lost_packets"]));
        assert!(packets > 0 && (0..=packets).contains(&lost), "{what}: {udp:#}");
    }
    let sum = &said["end"]["sum"];
    let rate = number(&sum["bits_per_second"]);
    assert!(rate > 0, "{what}: {sum:#}");
    if options.contains("-k 200") {
        // A multi-threaded release checks its packet count once a second.
        let packets = number(&sum["packets"]);
        assert!(packets == 200 || (version >= (3, 16) && packets > 200), "{what}: {sum:#}");
    }
}

#[test]
fn disallowed_tests_are_refused_like_iperf3() {
    let Some(iperf3) = programs().into_iter().find(|p| p.version >= (3, 12)) else {
        skip!("no iperf3 here; `cargo xtask iperf3` downloads some");
    };
    let (server, target) = landspeed_server(&["--max-duration", "5s", "--max-rate", "100M", "--max-tests", "1"]);
    let error = |options: &str| iperf3_client(&iperf3, target, options)["error"].to_string();
    assert!(error("-t 6").contains("37") || error("-t 6").contains("duration"), "{}", error("-t 6"));
    assert!(
        error("-t 1 -b 101M").contains("bandwidth") || error("-t 1 -b 101M").contains("rate"),
        "{}",
        error("-b 101M")
    );
    assert!(error("-t 1 -R -C nosuch").contains("CONGESTION"), "{}", error("-t 1 -R -C nosuch"));
    // A test without a rate is not refused but limited to the server's rate.
    let said = iperf3_client(&iperf3, target, "-t 4");
    // At the end the server still reads several MB from the socket buffers. Over four seconds 140 Mb/s allow
    // for 20 MB.
    let bytes = number(&said["end"]["sum_received"]["bytes"]);
    assert!((1..4 * 140_000_000 / 8).contains(&bytes), "{bytes}");
    let begun = || server.stdout().matches("start    iperf3").count();
    let before = begun();
    let (finish, _) = crate::iperf3::parties::start_iperf3_client(&iperf3, target, "-t 4 -b 1M");
    until(20, "the only place to be taken", || begun() > before);
    assert!(error("-t 1 -b 1M").contains("busy"), "{}", server.stdout());
    assert_eq!(finish()["error"], Value::Null);
}
