//! `landspeed netperf` against `landspeed serve`.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Output;

use landspeed_testkit::process::{Process, free_port};

use crate::common::{PROGRAM, landspeed};

/// A server on loopback, and its port.
fn serve() -> (Process, String) {
    let port = free_port().to_string();
    let mut serve = landspeed();
    serve.args(["serve", "--no-iperf3", "--listen", &format!("127.0.0.1:{port}")]);
    let server = Process::start(serve);
    server.address_in("listening");
    (server, port)
}

fn netperf(port: &str, line: &str) -> Output {
    let mut command = std::process::Command::new("timeout");
    command.args(["60", PROGRAM, "netperf", "-H", "127.0.0.1", "-p", port]).args(line.split_whitespace());
    command.env("NO_COLOR", "1").output().expect("coreutils' timeout runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the value of `KEY=VALUE`.
#[track_caller]
fn value(out: &str, key: &str) -> f64 {
    let line = out.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {key}: {out}"))
}

#[test]
fn netperf_prints_interim_results_and_keys() {
    let (_server, port) = serve();
    for (test, received) in [("TCP_STREAM", "REMOTE_BYTES_RECVD"), ("TCP_MAERTS", "LOCAL_BYTES_RECVD")] {
        let line =
            format!("-P 0 -v 0 -D -0.2 -l 2 -f m -t {test} -- -k THROUGHPUT,ELAPSED_TIME,TRANSPORT_MSS,{received}");
        let output = netperf(&port, &line);
        let out = text(&output.stdout);
        assert!(output.status.success(), "{out}{}", text(&output.stderr));
        let (bytes, mbps) = (value(&out, received), value(&out, "THROUGHPUT"));
        let mean = bytes * 8.0 / 1e6 / value(&out, "ELAPSED_TIME");
        assert!((mean / mbps - 1.0).abs() < 0.02, "{mean} {mbps}");
        assert!(value(&out, "TRANSPORT_MSS") > 500.0);
        let count = out.lines().filter(|line| line.starts_with("NETPERF_ENDING[")).count();
        let all = |key: &str| (0..count).map(|n| value(&out, &format!("{key}[{n}]"))).collect::<Vec<_>>();
        let (rates, spans) = (all("NETPERF_INTERIM_RESULT"), all("NETPERF_INTERVAL"));
        assert!((6..=14).contains(&count), "{count} of about 10: {out}");
        let sum: f64 = rates.iter().zip(&spans).map(|(mbps, s)| mbps * 1e6 / 8.0 * s).sum();
        assert!((sum / bytes - 1.0).abs() < 0.02, "{sum} of {bytes} bytes");
    }
}

#[test]
fn netperf_counts_round_trips() {
    let (_server, port) = serve();
    for test in ["UDP_RR", "TCP_RR", "TCP_CRR"] {
        let output =
            netperf(&port, &format!("-P 0 -l 1 -t {test} -- -r 10,20 -k THROUGHPUT,LOCAL_BYTES_SENT,RT_LATENCY"));
        let out = text(&output.stdout);
        assert!(output.status.success(), "{test}: {out}{}", text(&output.stderr));
        assert!(value(&out, "THROUGHPUT") > 10.0 && value(&out, "LOCAL_BYTES_SENT") % 10.0 == 0.0, "{out}");
        assert!(value(&out, "RT_LATENCY") > 0.0, "{out}");
    }
}

#[test]
fn netperf_tables_end_with_the_throughput() {
    let (_server, port) = serve();
    let output = netperf(&port, "-l 1 -t UDP_STREAM -- -m 1000");
    let out = text(&output.stdout);
    let row = out.lines().last().expect("a row").split_whitespace().collect::<Vec<_>>();
    assert!(output.status.success() && out.contains("Throughput") && row.len() == 5, "{out}");
    assert!(row[4].parse::<f64>().expect("a rate") > 0.0, "{out}");
    let alone = text(&netperf(&port, "-P 0 -v 0 -l 1").stdout);
    assert!(alone.trim().parse::<f64>().expect("a rate alone") > 0.0, "{alone}");
}

#[test]
fn a_program_named_netperf_is_the_front() {
    let directory = tempfile::tempdir().expect("a directory");
    let netperf = directory.path().join("netperf");
    std::os::unix::fs::symlink(PROGRAM, &netperf).expect("a link");
    let output = std::process::Command::new(&netperf).arg("-V").output().expect("it runs");
    assert!(text(&output.stdout).starts_with("Netperf version"), "{output:?}");
    let output = std::process::Command::new(&netperf).args(["-H", "127.0.0.1", "-c"]).output().expect("it runs");
    let err = text(&output.stderr);
    assert!(output.status.code() == Some(1) && err.contains("-c: CPU use"), "{err}");
    assert!(!err.contains("-- -c"), "after -- it is another option: {err}");
}

#[test]
fn a_netserver_is_named_as_the_other_protocol() {
    let port = free_port().to_string();
    let refused = netperf(&port, "-l 1");
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("onnection refused"), "{}", text(&refused.stderr));
    // A server that answers in another protocol, at netserver's port if it is free.
    let Ok(listener) = TcpListener::bind("127.0.0.1:12865") else {
        landspeed_testkit::skip!("another program has port 12865");
    };
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut request = [0; 8];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(&[0; 656]);
    });
    let other = netperf("12865", "-l 1");
    server.join().expect("it answered");
    let err = text(&other.stderr);
    assert!(other.status.code() == Some(1) && err.contains("landspeed serve --listen 12865"), "{err}");
}
