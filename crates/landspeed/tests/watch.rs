//! `landspeed watch` names the fault injected into another program's transfer.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_sys::clock;
use landspeed_testkit::netns::{Namespace, veth};
use landspeed_testkit::process::{Ended, Process, signal, until};
use landspeed_testkit::wire::{LEFT, RIGHT, Wire, WireDirection};
use landspeed_testkit::{or_skip, skip};
use serde_json::Value;

use crate::common::{PROGRAM, assert_valid, names_wait_for_core, only_flow};

/// Timeout of a watch of a few seconds; allows for a busy machine.
const TIMEOUT_S: u64 = 60;
const PORT: u16 = 5999;

/// Write or read pattern of an application: this many bytes, then a pause.
#[derive(Clone, Copy)]
struct IoPattern {
    bytes: usize,
    pause: Duration,
}

impl IoPattern {
    const UNLIMITED: Self = Self { bytes: 1 << 20, pause: Duration::ZERO };

    const fn slow(bytes: usize) -> Self {
        Self { bytes, pause: Duration::from_millis(50) }
    }
}

/// A path of 10 ms and 200 Mb/s between two namespaces (veth for a slow reader), with one transfer from
/// left to right until dropped.
struct Transfer {
    left: Namespace,
    right: Namespace,
    streams: Vec<TcpStream>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    _wire: Option<Wire>,
}

impl Transfer {
    /// Starts a transfer; `rcvbuf` limits the receive buffer of the right host, bytes.
    fn start(writes: IoPattern, reads: IoPattern, rcvbuf: Option<u32>) -> Result<Self, String> {
        let (left, right) = (Namespace::new("left")?, Namespace::new("right")?);
        // A TUN interface does not aggregate: its small packets would fill a receive buffer with overhead.
        let wire = if reads.pause.is_zero() {
            let leg = WireDirection {
                delay_ns: 5_000_000,
                rate_bps: Some(200e6),
                queue_bytes: 1 << 20,
                ..WireDirection::default()
            };
            Some(Wire::between(&left, &right, [leg, leg], 7)?)
        } else {
            veth(&left, &right, &format!("{LEFT}/24"), &format!("{RIGHT}/24"));
            None
        };
        if let Some(bytes) = rcvbuf {
            right.sysctl("net.ipv4.tcp_rmem", &format!("4096 {bytes} {bytes}"));
        }
        let listener = right.run(|| TcpListener::bind((RIGHT, PORT))).map_err(|why| why.to_string())?;
        let near = left.run(|| TcpStream::connect((RIGHT, PORT))).map_err(|why| why.to_string())?;
        let (far, _) = listener.accept().map_err(|why| why.to_string())?;
        let streams = vec![near.try_clone().expect("a copy"), far.try_clone().expect("a copy")];
        let stop = Arc::new(AtomicBool::new(false));
        let threads = vec![apply(near, writes, &stop, true), apply(far, reads, &stop, false)];
        Ok(Self { left, right, streams, stop, threads, _wire: wire })
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for stream in &self.streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Writes or reads as described by `pattern` until the connection ends.
fn apply(mut stream: TcpStream, pattern: IoPattern, stop: &Arc<AtomicBool>, writes: bool) -> JoinHandle<()> {
    let stop = Arc::clone(stop);
    let work = move || {
        let mut buffer = vec![7; pattern.bytes];
        while !stop.load(Ordering::Relaxed) {
            let moved = if writes { stream.write_all(&buffer).map(|()| 1) } else { stream.read(&mut buffer) };
            match moved {
                Ok(0) => break,
                Err(why) if why.kind() != ErrorKind::Interrupted => break,
                _ => clock::sleep_until(clock::monotonic_ns() + pattern.pause.as_nanos() as u64),
            }
        }
    };
    std::thread::Builder::new().name("application".into()).spawn(work).expect("a thread")
}

fn start(namespace: &Namespace, arguments: &[&str]) -> Process {
    let mut command = Command::new(PROGRAM);
    command.arg("watch").args(arguments).stdin(Stdio::null()).env("NO_COLOR", "1");
    namespace.run(|| Process::start(command))
}

/// Watches from a namespace for three seconds and returns the document.
fn watch(namespace: &Namespace, arguments: &[&str]) -> Value {
    let [document] = watch_concurrently([(namespace, arguments)]);
    document
}

/// As [`watch`], several times in parallel.
fn watch_concurrently<const N: usize>(watches: [(&Namespace, &[&str]); N]) -> [Value; N] {
    let begin = |(namespace, arguments): (&Namespace, &[&str])| {
        start(namespace, &[&["--for", "3s", "--json", "-"], arguments].concat())
    };
    watches.map(begin).map(|process| {
        let Ended { code, stdout, stderr, .. } = process.end(TIMEOUT_S);
        assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
        serde_json::from_str(&stdout).expect("JSON")
    })
}

/// Returns the only flow of a document, which is of this process, after checks that apply to every flow.
fn own_flow(document: &Value) -> &Value {
    let flow = only_flow(document);
    assert_eq!(flow["pid"], std::process::id(), "{flow:#}");
    let own = std::fs::read_to_string("/proc/self/comm").expect("a name");
    assert_eq!(flow["command"], own.trim_end());
    assert!(flow["evidence"].as_array().expect("a list").iter().all(|reading| reading["met"] == true));
    let words = flow.to_string();
    for absurd in ["--rate", "-P ", "client", "server'", "run again"] {
        assert!(!words.contains(absurd), "{absurd}: {flow:#}");
    }
    let overhead = &document["overhead"];
    let per_second =
        overhead["readings"].as_f64().expect("a number") / overhead["wall_ns"].as_f64().expect("a number") * 1e9;
    assert!(per_second > 2.0 || overhead["late"].as_u64() > Some(0), "{overhead}");
    let share = document["overhead"]["cpu_share"].as_f64().expect("a number");
    assert!(share > 0.0 && share < 0.5, "{share}");
    flow
}

#[test]
fn an_application_that_writes_slowly_is_named_at_the_sender() {
    let transfer = or_skip!(Transfer::start(IoPattern::slow(20_000), IoPattern::UNLIMITED, None));
    let [document, at_receiver] = watch_concurrently([(&transfer.left, &[]), (&transfer.right, &[])]);
    assert_valid("watch", &document);
    let flow = own_flow(&document);
    assert_eq!(flow["role"], "sender", "{flow:#}");
    assert!(flow["cause"] == "application" || names_wait_for_core(flow), "{flow:#}");
    assert_eq!(flow["remote"], format!("{RIGHT}:{PORT}"));
    let goodput = flow["goodput_bps"].as_f64().expect("a rate");
    assert!((5e5..4e6).contains(&goodput), "20 kB every 50 ms are 3.2 Mb/s at most: {goodput}");
    // The receiver's view: its application reads everything available, and between two writes nothing arrives.
    let flow = own_flow(&at_receiver);
    assert_eq!((&flow["role"], &flow["confidence"]), (&"receiver".into(), &"low".into()), "{flow:#}");
    // A busy host may delay its readings: then nothing is inferred (`arrivals.rs` of `diagnose` tests the rule).
    if flow["cause"] != "undetermined" {
        assert_eq!(flow["cause"], "application", "{flow:#}");
        assert!(flow["place"].as_str().is_some_and(|place| place.starts_with("remote host")), "{flow:#}");
    }
}

#[test]
fn an_application_that_reads_slowly_is_named_at_the_receiver() {
    let transfer = or_skip!(Transfer::start(IoPattern::UNLIMITED, IoPattern::slow(50_000), None));
    let peer = format!("{LEFT}/24");
    let [document, at_sender] =
        watch_concurrently([(&transfer.right, &["--port", "5999", "--peer", &peer]), (&transfer.left, &[])]);
    let flow = own_flow(&document);
    let named = (&flow["cause"], &flow["confidence"]) == (&"slow-reader".into(), &"medium".into());
    assert!(named || names_wait_for_core(flow), "{flow:#}");
    // The sender sees only the window, and reports what it cannot see.
    let flow = own_flow(&at_sender);
    let named = flow["cause"].as_str().expect("a word");
    assert!(["receiver-window", "slow-reader"].contains(&named), "{flow:#}");
    assert_eq!(flow["confidence"], "low", "{flow:#}");
    assert!(flow["missing"].to_string().contains("receive queue"), "{flow:#}");
}

#[test]
fn a_small_receive_buffer_is_named_at_the_sender() {
    let transfer = or_skip!(Transfer::start(IoPattern::UNLIMITED, IoPattern::UNLIMITED, Some(32_768)));
    let document = watch(&transfer.left, &[]);
    let flow = own_flow(&document);
    assert_eq!(flow["cause"], "receiver-window", "{flow:#}");
    let shares = flow["shares"].as_array().expect("a list");
    assert_eq!(shares[0]["state"], "receive-window-limited", "{flow:#}");
}

#[test]
fn printed_advice_runs_as_tune_plan() {
    let transfer = or_skip!(Transfer::start(IoPattern::UNLIMITED, IoPattern::UNLIMITED, Some(32_768)));
    let Ended { code, stdout, stderr, .. } = start(&transfer.left, &["--for", "3s", "--advise"]).end(TIMEOUT_S);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(stdout.contains("  advice   receiver window: "), "{stdout}");
    assert!(stdout.contains(&format!("  where    {RIGHT}, ")), "the receiver's host has the setting: {stdout}");
    let line = stdout.lines().find_map(|line| line.trim_start().strip_prefix("plan ")).expect("a command").trim();
    let rmem = || transfer.right.run(|| std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem")).expect("a file");
    let before = rmem();
    // Run it in a shell on the host it is for.
    let directory = Path::new(PROGRAM).parent().expect("a directory").display();
    let path = format!("{directory}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).stdin(Stdio::null()).env("PATH", path);
    let planned = transfer.right.run(|| Process::start(shell)).end(TIMEOUT_S);
    assert!(planned.code <= 1, "{line}: {planned:?}");
    assert!(planned.stdout.contains("net.ipv4.tcp_rmem"), "{line}: {planned:?}");
    assert_eq!(rmem(), before, "nothing is changed");
}

#[test]
fn a_report_of_a_watch_has_its_series() {
    let transfer = or_skip!(Transfer::start(IoPattern::slow(20_000), IoPattern::UNLIMITED, None));
    let scratch = tempfile::tempdir().expect("a directory");
    let report = scratch.path().join("watch.html");
    let document = watch(&transfer.left, &["--report", report.to_str().expect("text")]);
    assert_valid("watch", &document);
    let flow = own_flow(&document);
    let series = &flow["series"];
    let column = |name: &str| series[name].as_array().expect("a list").clone();
    let readings = column("t_ns").len();
    assert!((4..=121).contains(&readings), "two a second for three seconds: {series:#}");
    let last = column("bytes")[readings - 1].as_u64().expect("a number");
    assert!(last > 0 && last <= flow["bytes_acked"].as_u64().expect("a number"), "{last}");
    assert!(flow["recent"]["goodput_bps"].as_f64().is_some_and(|bps| bps > 1e6), "{flow:#}");
    assert_eq!(flow["timeline"].as_array().expect("a list").last().expect("a verdict")["cause"], flow["cause"]);
    let page = std::fs::read_to_string(report).expect("a report");
    assert!(page.contains("landspeed watch</title>") && page.contains(RIGHT), "{page:.200}");
}

#[test]
fn filters_exclude_other_connections() {
    let transfer = or_skip!(Transfer::start(IoPattern::slow(20_000), IoPattern::UNLIMITED, None));
    let own = std::process::id().to_string();
    let cases: [(&[&str], usize); 5] = [
        (&["--port", "5998"], 0),
        (&["--peer", "192.0.2.0/24"], 0),
        (&["--peer", "2001:db8::/32"], 0),
        (&["--pid", "1"], 0),
        (&["--pid", &own, "--peer", RIGHT], 1),
    ];
    let documents = watch_concurrently(cases.map(|(arguments, _)| (&transfer.left, arguments)));
    for ((arguments, flows), document) in cases.into_iter().zip(documents) {
        assert_eq!(document["flows"].as_array().expect("a list").len(), flows, "{arguments:?}: {document:#}");
    }
}

#[test]
fn ctrl_c_ends_the_watch_with_document_and_lines() {
    let transfer = or_skip!(Transfer::start(IoPattern::UNLIMITED, IoPattern::UNLIMITED, None));
    let scratch = tempfile::tempdir().expect("a directory");
    let file = |name: &str| scratch.path().join(name);
    let (json, jsonl) = (file("watch.json"), file("watch.jsonl"));
    let path = |path: &Path| path.to_str().expect("text").to_owned();
    let process = start(&transfer.left, &["--interval", "500ms", "--json", &path(&json), "--jsonl", &path(&jsonl)]);
    until(TIMEOUT_S, "three reports", || process.stdout().matches("connections busy").count() >= 3);
    signal(process.id(), "INT");
    let Ended { code, stdout, stderr, .. } = process.end(TIMEOUT_S);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    for part in ["  cause    ", "  overhead ", &format!("{RIGHT}:{PORT}")] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
    let document: Value = serde_json::from_str(&read(&json)).expect("JSON");
    assert_valid("watch", &document);
    let lines: Vec<Value> = read(&jsonl).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.len() >= 3);
    lines.iter().for_each(|line| assert_valid("watch", line));
}

#[test]
fn an_ended_flow_keeps_its_process() {
    let transfer = or_skip!(Transfer::start(IoPattern::UNLIMITED, IoPattern::UNLIMITED, None));
    let scratch = tempfile::tempdir().expect("a directory");
    let json = scratch.path().join("watch.json");
    let process = start(&transfer.left, &["--interval", "500ms", "--json", json.to_str().expect("text")]);
    until(TIMEOUT_S, "a verdict", || process.stdout().contains(&format!("> {RIGHT}:{PORT} ")));
    for stream in &transfer.streams {
        let _ = stream.shutdown(Shutdown::Both);
    }
    until(TIMEOUT_S, "its end", || process.stdout().contains(" 0 of 0 connections busy"));
    signal(process.id(), "INT");
    let Ended { code, stdout, stderr, .. } = process.end(TIMEOUT_S);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&json).expect("a file")).expect("JSON");
    assert_eq!(own_flow(&document)["ended"], true);
}

#[test]
fn a_watch_ends_with_the_process_it_watches() {
    let Ok(namespace) = Namespace::new("alone") else { skip!("network namespaces need root") };
    let mut child = Command::new("sleep").arg("1").spawn().expect("sleep");
    let watch = start(&namespace, &["--pid", &child.id().to_string()]);
    child.wait().expect("our own child");
    let Ended { code, stdout, stderr, .. } = watch.end(TIMEOUT_S);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(stdout.contains("none moved data"), "{stdout}");
}

#[test]
fn invalid_watch_targets_are_refused_with_advice() {
    let run = |arguments: &[&str]| {
        let output = Command::new(PROGRAM).arg("watch").args(arguments).output().expect("the program runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (arguments, expected) in [
        (&["--pid", "4194305"][..], "cannot watch process 4194305: No such file or directory"),
        (&["--cgroup", "/none.slice"], "cannot watch control group /none.slice: "),
        (&["--peer", "banana"], "write 192.0.2.0/24"),
        (&["--top", "0"], "write 1 to 1000"),
        (&["--for", "0"], "a time of zero measures nothing"),
        (&["--json", "-", "--jsonl", "-"], "two outputs go to standard output"),
        (&["--json", "-", "--advise"], "--advise prints to standard output: give the document a file"),
        (&["--report", "/nonexistent/watch.html"], "cannot write /nonexistent/watch.html"),
    ] {
        let (code, error) = run(arguments);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(expected) && !error.contains("panicked"), "{arguments:?}: {error}");
    }
}
