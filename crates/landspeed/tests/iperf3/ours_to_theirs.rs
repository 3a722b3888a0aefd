//! `run --iperf3` against iperf3 servers: the totals of both sides agree to the byte and to the datagram,
//! and with the kernel's counters.

use landspeed_testkit::iperf3::{Iperf3, programs};
use landspeed_testkit::netns::Namespace;
use landspeed_testkit::process::{Process, until};
use landspeed_testkit::skip;
use serde_json::Value;

use crate::common::list;
use crate::iperf3::parties::{Case, cover, iperf3_server, landspeed_client, matrix, number, wait_for_listener};
use landspeed_testkit::process::run_concurrently;

const CASES: &[Case] = &[
    ("-t 1", 0),
    ("-t 1 -P 3", 0),
    ("-t 1 -R", 0),
    ("-t 1 -R -P 2", 0),
    // Rate-limited: at full rate a single-threaded iperf3 that waits for a core stops reading before it has
    // read all acknowledged data.
    ("-t 1 --bidir -b 200M", 7),
    ("-t 1 -O 0.5", 0),
    ("-t 1 -O 0.5 -R", 0),
    ("-n 20M", 0),
    ("-n 20M -R", 0),
    ("-k 50 -l 64K", 0),
    ("-t 1 -Z -C cubic -w 300K -M 1400 -N", 0),
    ("-t 1 -Z -R -b 200M", 0),
    ("-t 1 --dscp cs1 --pace 300M", 0),
    ("-t 1 -u -b 20M", 0),
    ("-t 1 -u -b 20M -R", 0),
    ("-t 1 -u -b 10M -P 2 --bidir", 7),
    ("-t 1 -u -b 20M --udp-counters-32bit -l 16", 0),
    ("-t 1 -u -b 20M -R --udp-counters-32bit -l 1200", 0),
    ("-u -b 50M -k 200 -l 1200 --burst 10", 0),
    ("-t 1 --server-output", 0),
];

#[test]
fn totals_of_both_ends_agree_with_every_release() {
    let programs = programs();
    if programs.is_empty() {
        skip!("no iperf3 here; `cargo xtask iperf3` downloads some");
    }
    let plan = cover(CASES, &programs);
    assert!(plan.iter().all(|(_, cases)| cases.len() >= 5), "{plan:?}");
    // Tests of one second are shortened.
    run_concurrently(plan, |(iperf3, cases)| {
        totals_agree(&iperf3, cases.iter().map(|case| case.replace("-t 1", "-t 0.4")));
    });
}

#[test]
#[ignore = "long: every case with every release takes minutes"]
fn totals_of_both_ends_agree_in_every_case_with_every_release() {
    for (iperf3, cases) in matrix(CASES, &programs()) {
        totals_agree(&iperf3, cases.into_iter().map(str::to_owned));
    }
}

fn totals_agree(iperf3: &Iperf3, cases: impl Iterator<Item = String>) {
    let (server, target) = iperf3_server(iperf3, &[]);
    for (number, options) in cases.enumerate() {
        wait_for_listener(&server, number + 1);
        let what = format!("{iperf3}, {options}");
        let (code, document) = landspeed_client(&target, &options);
        assert_eq!(document["status"], "complete", "{what}: {}", document["errors"]);
        if options.contains("-u") {
            datagrams_add_up(&document, &what);
        } else {
            bytes_add_up(&document, &what);
        }
        let balanced = document["conservation"]["holds"] == true;
        assert_eq!(code, i32::from(!balanced), "{what}: {}", document["conservation"]);
        assert_remote_matches(&document, &options, &what);
    }
}

#[track_caller]
fn bytes_add_up(document: &Value, what: &str) {
    let accounting = &document["conservation"];
    // On a busy host iperf3 ends before it has read its socket buffers; the accounting has the difference and the reason.
    let unread = number(&accounting["unaccounted_bytes"]).max(0);
    assert_eq!(accounting["holds"], unread == 0, "{what}: {accounting:#}");
    assert!(unread <= 8 << 20, "{what}: {accounting:#}");
    assert_eq!(
        accounting["notes"].to_string().contains("iperf3 stops reading"),
        unread > 0,
        "{what}: {accounting:#}"
    );
    assert_eq!(accounting["intervals_minus_totals_bytes"], 0, "{what}");
    for stream in list(&document["streams"]) {
        let (sender, receiver) = (&stream["sender"], &stream["receiver"]);
        let (sent, received) = (number(&sender["bytes"]), number(&receiver["bytes"]));
        assert!(received > 0, "{what}: stream {} moved nothing", stream["id"]);
        if stream["direction"] == "upload" {
            assert_eq!(number(&sender["bytes_acked"]), sent, "{what}: the kernel's count of stream {}", stream["id"]);
            assert!(
                (0..=unread).contains(&(sent - received)),
                "{what}: {sent} sent, {received} received, {unread} unread"
            );
        } else {
            // A multi-threaded release may omit its last write from its report; see the accounting's note.
            assert!((0..=1 << 20).contains(&(received - sent)), "{what}: {sent} sent, {received} received");
        }
    }
}

#[track_caller]
fn datagrams_add_up(document: &Value, what: &str) {
    let udp = &document["udp"];
    let of = |name: &str| number(&udp[format!("{name}_packets")]);
    assert!(of("delivered") > 0, "{what}: {udp:#}");
    assert_eq!(of("sent"), of("delivered") + of("lost"), "{what}: {udp:#}");
    assert!(of("lost") >= 0, "{what}: {udp:#}");
    assert_eq!(document["conservation"]["holds"], true, "{what}: {}", document["conservation"]);
}

/// Asserts that the server ran the requested test, as far as it reports, and that the rest is marked as not
/// visible.
#[track_caller]
fn assert_remote_matches(document: &Value, options: &str, what: &str) {
    let far = &document["iperf3"];
    let streams = list(&far["results"]["streams"]);
    assert_eq!(streams.len(), list(&document["streams"]).len(), "{what}");
    assert!(list(&far["not_visible"]).len() >= 3, "{what}");
    assert_eq!(document["cost"]["server"], Value::Null, "{what}: the server's CPUs are not visible");
    assert!(
        document["verdict"]["missing"].to_string().contains("iperf3 reports totals only"),
        "{what}: {}",
        document["verdict"]
    );
    if options.contains("--server-output") {
        assert!(far["output"].to_string().contains("Accepted connection"), "{what}: {}", far["output"]);
    }
    if options.contains("-C cubic") {
        assert_eq!(far["results"]["congestion_used"], "cubic", "{what}");
    }
}

/// UDP counters of a namespace: InDatagrams, RcvbufErrors, OutDatagrams.
fn udp_counters(namespace: &Namespace) -> (i64, i64, i64) {
    let text = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp")).expect("counters");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let of = |wanted: &str| {
        let at = names.split(' ').position(|name| name == wanted).expect("a counter");
        values.split(' ').nth(at).and_then(|value| value.parse().ok()).expect("a number")
    };
    (of("InDatagrams"), of("RcvbufErrors"), of("OutDatagrams"))
}

#[test]
fn datagram_totals_match_the_kernel_counters() {
    let namespace = landspeed_testkit::or_skip!(Namespace::new("iperf3"));
    let Some(iperf3) = programs().pop() else { skip!("no iperf3 here; `cargo xtask iperf3` downloads some") };
    namespace.run(|| {
        let (server, target) = iperf3_server(&iperf3, &[]);
        // `--no-gso`, because the kernel counts a GSO batch as one datagram.
        for (test, options) in ["-t 1 -u -b 50M -l 1200 --no-gso", "-t 1 -u -b 50M -l 1200 -R"].iter().enumerate() {
            wait_for_listener(&server, test + 1);
            let before = udp_counters(&namespace);
            let (_, document) = landspeed_client(&target, options);
            let after = udp_counters(&namespace);
            let delta = (after.0 - before.0, after.1 - before.1, after.2 - before.2);
            let udp = &document["udp"];
            let (sent, delivered) = (number(&udp["sent_packets"]), number(&udp["delivered_packets"]));
            // One hello in each direction.
            assert_eq!(delta.2, sent + 2, "{options}: sent");
            assert!(delivered <= delta.0 - 2, "{options}: {delivered} delivered, {delta:?}");
            assert_eq!(delta.0 + delta.1, delta.2, "{options}: what was sent was read or dropped at a socket");
            // iperf3 stops reading when it receives the end message; all other received datagrams are counted.
            assert!(delta.0 - 2 - delivered <= 64, "{options}: {delivered} delivered, {delta:?}");
        }
    });
}

#[test]
fn busy_iperf3_server_is_reported() {
    let Some(iperf3) = programs().pop() else { skip!("no iperf3 here; `cargo xtask iperf3` downloads some") };
    let (server, target) = iperf3_server(&iperf3, &[]);
    let far = target.parse().expect("an address");
    let (_finish, _) = crate::iperf3::parties::start_iperf3_client(&iperf3, far, "-t 20");
    until(20, "the other client's test", || server.stdout().contains("Accepted connection"));
    let (code, document) = landspeed_client(&target, "-t 0.2");
    assert_eq!((code, &document["errors"][0]["code"]), (2, &Value::from("server-busy")), "{document:#}");
}

#[test]
fn options_without_an_iperf3_equivalent_are_refused() {
    for (options, word) in [
        ("--read-rate 1M", "--read-rate"),
        ("-R --send splice", "--send"),
        ("--peer-cpus 0,1", "--peer-cpus"),
        ("--peer-numa local", "--peer-numa"),
        ("-u -l 15", "--len"),
    ] {
        let (code, document) = landspeed_client("127.0.0.1:1", options);
        assert_eq!((code, &document["errors"][0]["code"]), (2, &Value::from("bad-parameters")), "{options}");
        assert!(document["errors"][0]["message"].to_string().contains(word), "{options}: {}", document["errors"]);
    }
}

#[test]
fn an_interrupted_test_keeps_results_and_the_server_runs() {
    let Some(iperf3) = programs().pop() else { skip!("no iperf3 here; `cargo xtask iperf3` downloads some") };
    let (_server, target) = iperf3_server(&iperf3, &[]);
    let command = crate::iperf3::parties::landspeed(&["run", &target, "--iperf3", "-t", "30", "--json", "-"]);
    let process = Process::start(command);
    landspeed_sys::clock::sleep_until(landspeed_sys::clock::monotonic_ns() + 1_500_000_000);
    process.signal("INT");
    let ended = process.end(20);
    let document: Value = serde_json::from_str(&ended.stdout).expect("a document");
    assert_eq!((ended.code, &document["status"]), (1, &Value::from("partial")), "{:#}", document["errors"]);
    assert!(number(&document["totals"]["client"]["bytes_sent"]) > 0);
    until(20, "the server to be free", || landspeed_client(&target, "-t 0.2").0 == 0);
}

#[test]
fn iperf3_releases_are_sorted_by_version() {
    let versions: Vec<_> = programs().iter().map(|Iperf3 { version, .. }| *version).collect();
    assert!(versions.is_sorted() && versions.iter().all(|version| version.0 == 3), "{versions:?}");
}
