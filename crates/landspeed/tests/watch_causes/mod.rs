//! `landspeed watch` names faults of the host besides the socket, injected into other programs: a CPU
//! quota, slow storage, a busy thread, gaps between requests, a packet filter, a shaper.

mod advice;
mod programs;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use landspeed_model::{Cause, Viewpoint};
use landspeed_testkit::netns::{Namespace, Veth, veth};
use landspeed_testkit::process::{Ended, Process, until};
use landspeed_testkit::wire::{Wire, WireDirection};
use landspeed_testkit::{or_skip, skip};
use serde_json::Value;

use crate::common::{PROGRAM, only_flow};

const LEFT: &str = "10.93.0.1";
const RIGHT: &str = "10.93.0.2";
const PORT: u16 = 5998;
const TIMEOUT_S: u64 = 60;

/// Python program that sends what `chunk()` returns, forever.
const SENDER: &str = "
import socket, sys, time, os, hashlib
s = socket.create_connection(('10.93.0.2', 5998))
while True:
    s.sendall(chunk())
";
/// Python program that reads and calls `work(data)`.
const READER: &str = "
import socket, sys, time, os, hashlib
l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
l.bind(('10.93.0.2', 5998)); l.listen(); print('ready', flush=True)
s, _ = l.accept()
while True:
    data = s.recv(1 << 20)
    if not data: break
    work(data)
";

/// Creates two namespaces joined by veth.
fn two_hosts() -> Result<(Namespace, Namespace, Veth), String> {
    let (left, right) = (Namespace::new("left")?, Namespace::new("right")?);
    let link = veth(&left, &right, &format!("{LEFT}/24"), &format!("{RIGHT}/24"));
    Ok((left, right, link))
}

fn python(namespace: &Namespace, program: &str) -> Result<Process, String> {
    let found = Command::new("python3").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        return Err("no python3 here".to_owned());
    }
    let mut command = Command::new("python3");
    command.args(["-c", program]).stdin(Stdio::null());
    Ok(namespace.run(|| Process::start(command)))
}

/// Starts a reader on the right host that runs `work` on the data it reads.
fn reader(right: &Namespace, work: &str) -> Result<Process, String> {
    let process = python(right, &format!("def work(data): {work}\n{READER}"))?;
    until(TIMEOUT_S, "a listener", || process.stdout().contains("ready"));
    Ok(process)
}

/// Starts a sender on the left host; `chunk` is the body of the function that produces its data.
fn sender(left: &Namespace, chunk: &str) -> Result<Process, String> {
    let program = format!("import os, time, hashlib\nzeros = bytes(1 << 18)\ndef chunk():\n{chunk}\n{SENDER}");
    let process = python(left, &program)?;
    wait_for_data(left);
    Ok(process)
}

/// Waits until data is transferred, so that the whole watch has data.
fn wait_for_data(left: &Namespace) {
    let moves = || left.exec(["ss", "-Htni", "dport = :5998"]).contains("bytes_");
    until(TIMEOUT_S, "a transfer", moves);
}

/// Starts a watch of four seconds.
fn begin(namespace: &Namespace, command: Command) -> Process {
    begin_for(namespace, command, "4s")
}

fn begin_for(namespace: &Namespace, mut command: Command, time: &str) -> Process {
    command.args(["--for", time, "--json", "-"]).stdin(Stdio::null()).env("NO_COLOR", "1");
    namespace.run(|| Process::start(command))
}

fn document_of(watch: Process) -> Value {
    let Ended { code, stdout, stderr, .. } = watch.end(TIMEOUT_S);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    serde_json::from_str(&stdout).expect("JSON")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("watch").args(arguments);
    command
}

fn watch(namespace: &Namespace, arguments: &[&str]) -> Value {
    document_of(begin(namespace, command(arguments)))
}

/// Watches for twice as long: a throttled device first serves what it has queued, and the flow pauses.
fn watch_storage(namespace: &Namespace, arguments: &[&str]) -> Value {
    document_of(begin_for(namespace, command(arguments), "8s"))
}

/// Watches on both hosts in parallel.
fn watch_both(ends: [&Namespace; 2]) -> [Value; 2] {
    ends.map(|namespace| begin(namespace, command(&[]))).map(document_of)
}

/// A cgroup directory, removed on drop.
struct Cgroup(PathBuf);

impl Cgroup {
    /// Creates a cgroup below the first of `mounts` whose groups have `file`.
    fn new(mounts: &[&str], file: &str) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        for mount in mounts {
            let path = Path::new(mount).join(format!("lstest-{}-{number}", std::process::id()));
            if std::fs::create_dir(&path).is_ok() {
                let group = Self(path);
                if group.0.join(file).exists() {
                    return Ok(group);
                }
            }
        }
        Err(format!("no control groups with {file} here"))
    }

    fn set(&self, file: &str, value: &str) -> bool {
        std::fs::write(self.0.join(file), value).is_ok()
    }

    fn add_process(&self, process: &Process) {
        assert!(self.set("cgroup.procs", &process.id().to_string()), "{}", self.0.display());
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Its processes were killed on drop before: variables are dropped in reverse order.
        until(TIMEOUT_S, "an empty control group", || std::fs::remove_dir(&self.0).is_ok());
    }
}

/// A cgroup with a quota of a tenth of a core.
fn tenth_core_cgroup() -> Result<Cgroup, String> {
    if let Ok(group) = Cgroup::new(&["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"], "cpu.cfs_quota_us") {
        assert!(group.set("cpu.cfs_period_us", "100000") && group.set("cpu.cfs_quota_us", "10000"));
        return Ok(group);
    }
    let group = Cgroup::new(&["/sys/fs/cgroup"], "cpu.max")?;
    assert!(group.set("cpu.max", "10000 100000"));
    Ok(group)
}

#[test]
fn a_cpu_quota_is_named_with_its_control_group() {
    let (left, right, _link) = or_skip!(two_hosts());
    let group = or_skip!(tenth_core_cgroup());
    let _reader = or_skip!(reader(&right, "pass"));
    // A thread that migrates between cores sends from both, which reorders packets: a second cause.
    let chunk = "    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n    return zeros";
    let sender = or_skip!(sender(&left, chunk));
    group.add_process(&sender);
    let name = group.0.file_name().expect("a name").to_str().expect("text");
    // `ip netns exec` mounts another /sys, without control groups.
    let mut hidden = Command::new("unshare");
    let script = format!("mount -t tmpfs none /sys && exec {PROGRAM} watch --cgroup /{name} \"$@\"");
    hidden.args(["-m", "sh", "-c", &script, "sh"]);
    let watches = [begin(&left, command(&[])), begin(&left, hidden)];
    for document in watches.map(document_of) {
        let flow = only_flow(&document);
        assert_eq!(flow["cause"], "cpu-quota", "{flow:#}");
        assert!(flow["place"].as_str().is_some_and(|place| place.contains(name)), "{flow:#}");
        let cores = flow["host"]["quota"]["cores"].as_f64().expect("a number");
        assert!((cores - 0.1).abs() < 1e-9, "{flow:#}");
        let step = flow["next_step"].as_str().expect("text");
        let (_, file) = step.split_once("`cat ").expect("a file with the counters");
        let file = file.split('`').next().expect("a path");
        assert!(Path::new(file).is_file(), "{step}");
    }
}

#[test]
fn quota_limited_reader_is_named_at_the_receiver() {
    let (left, right, _link) = or_skip!(two_hosts());
    let group = or_skip!(tenth_core_cgroup());
    let reader = or_skip!(reader(&right, "hashlib.sha256(data)"));
    group.add_process(&reader);
    let _sender = or_skip!(sender(&left, "    return zeros"));
    let document = watch(&right, &[]);
    assert_eq!(only_flow(&document)["cause"], "cpu-quota", "{document:#}");
}

/// A file with a limited read rate, and the cgroup that limits its members.
fn slow_storage(directory: &Path, bytes_per_s: u64) -> Result<(Cgroup, PathBuf), String> {
    let path = directory.join("data");
    let device =
        Command::new("stat").args(["-c", "%Hd:%Ld"]).arg(directory).output().map_err(|why| why.to_string())?;
    let device = String::from_utf8_lossy(&device.stdout).trim().to_owned();
    if device.starts_with("0:") {
        return Err("the temporary directory is on no block device".to_owned());
    }
    let group = Cgroup::new(&["/sys/fs/cgroup/blkio"], "blkio.throttle.read_bps_device");
    let group = group.or_else(|_| Cgroup::new(&["/sys/fs/cgroup"], "io.max"))?;
    // Cgroup v1 is tried first: its file does not exist in v2.
    if !group.set("blkio.throttle.read_bps_device", &format!("{device} {bytes_per_s}"))
        && !group.set("io.max", &format!("{device} rbps={bytes_per_s}"))
    {
        return Err(format!("no rate of reading can be set for device {device}"));
    }
    std::fs::write(&path, vec![7; 64 << 20]).map_err(|why| why.to_string())?;
    Ok((group, path))
}

#[test]
fn slow_storage_is_named_with_the_blocked_thread() {
    let (left, right, _link) = or_skip!(two_hosts());
    let scratch = tempfile::tempdir().expect("a directory");
    let (group, file) = or_skip!(slow_storage(scratch.path(), 4 << 20));
    let _reader = or_skip!(reader(&right, "pass"));
    // The file is flushed, dropped from the page cache, and then read in a loop.
    let chunk = format!(
        "    global at, f\n    if at == 0: f = os.open('{}', os.O_RDONLY); os.fsync(f); os.posix_fadvise(f, 0, 0, 4)\n    d = \
         os.pread(f, 1 << 18, at)\n    at = (at + len(d)) % (64 << 20)\n    return d\nat = 0",
        file.display()
    );
    let sender = or_skip!(sender(&left, &chunk));
    group.add_process(&sender);
    let document = watch_storage(&left, &[]);
    let flow = only_flow(&document);
    assert_eq!(flow["cause"], "storage", "{flow:#}");
    assert!(flow["host"]["blocked"]["share"].as_f64().is_some_and(|share| share > 0.3), "{flow:#}");
    assert_eq!(flow["confidence"], "medium", "the process read what it sent: {flow:#}");
}

#[test]
fn a_busy_thread_is_named() {
    let (left, right, _link) = or_skip!(two_hosts());
    let _reader = or_skip!(reader(&right, "pass"));
    let chunk = "    d = zeros[:4096]\n    for _ in range(200): hashlib.sha256(d)\n    return d";
    let sender = or_skip!(sender(&left, chunk));
    let document = watch(&left, &[]);
    let flow = only_flow(&document);
    assert_eq!((&flow["cause"], &flow["confidence"]), (&"sender-cpu".into(), &"medium".into()), "{flow:#}");
    let words = format!("(TID {})", sender.id());
    assert!(flow["summary"].as_str().is_some_and(|summary| summary.contains(&words)), "{flow:#}");
}

#[test]
fn one_busy_thread_of_several_is_named() {
    let (left, right, _link) = or_skip!(two_hosts());
    let listener = right.run(|| TcpListener::bind((RIGHT, PORT))).expect("a port");
    let mut near = left.run(|| TcpStream::connect((RIGHT, PORT))).expect("a connection");
    let (mut far, _) = listener.accept().expect("a connection");
    let stop = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&stop);
    let busy: JoinHandle<()> = std::thread::Builder::new()
        .name("encrypts".into())
        .spawn(move || {
            let mut key = 1_u64;
            while !ends.load(Ordering::Relaxed) {
                for _ in 0..2_000_000 {
                    key = std::hint::black_box(key.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
                }
                near.write_all(&vec![key as u8; 20_000]).expect("sent");
            }
        })
        .expect("a thread");
    let reads = std::thread::spawn(move || while far.read(&mut [0; 16_384]).is_ok_and(|n| n > 0) {});
    let document = watch(&left, &[]);
    stop.store(true, Ordering::Relaxed);
    busy.join().expect("ended");
    reads.join().expect("ended");
    let flow = only_flow(&document);
    assert_eq!((&flow["cause"], &flow["confidence"]), (&"sender-cpu".into(), &"low".into()), "{flow:#}");
    assert_eq!(flow["host"]["busiest"]["name"], "encrypts", "{flow:#}");
    assert!(flow["summary"].as_str().is_some_and(|text| text.contains("busiest thread encrypts")), "{flow:#}");
}

/// A server that answers each 4-byte request after `think` seconds with 256 KiB over 20 ms, and a client
/// that sends the next request after `pause` seconds.
fn request_response(left: &Namespace, right: &Namespace, think: f64, pause: f64) -> Result<[Process; 2], String> {
    let server = format!(
        "import socket, time\nl = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\nl.bind(('{RIGHT}', \
         {PORT})); l.listen(); print('ready', flush=True)\ns, _ = l.accept()\nwhile s.recv(4):\n    time.sleep({think})\n    \
         for k in range(8): s.sendall(bytes(1 << 15)); time.sleep(0.0025)\n"
    );
    let server = python(right, &server)?;
    until(TIMEOUT_S, "a listener", || server.stdout().contains("ready"));
    let client = format!(
        "import socket, time\ns = socket.create_connection(('{RIGHT}', {PORT}))\nwhile True:\n    s.sendall(b'more')\n    n = 0\n    \
         while n < 1 << 18: n += len(s.recv(1 << 18))\n    time.sleep({pause})\n"
    );
    let client = python(left, &client)?;
    wait_for_data(left);
    Ok([server, client])
}

#[test]
fn request_gaps_are_named_at_both_hosts() {
    let (left, right, _link) = or_skip!(two_hosts());
    let _programs = or_skip!(request_response(&left, &right, 0.0, 0.1));
    for document in watch_both([&right, &left]) {
        let flow = only_flow(&document);
        assert_eq!((&flow["cause"], &flow["confidence"]), (&"request-gaps".into(), &"medium".into()), "{flow:#}");
    }
}

#[test]
fn slow_answers_are_not_request_gaps() {
    let (left, right, _link) = or_skip!(two_hosts());
    let _programs = or_skip!(request_response(&left, &right, 0.07, 0.0));
    let [at_server, document] = watch_both([&right, &left]);
    assert_eq!(only_flow(&at_server)["cause"], "application", "{at_server:#}");
    let flow = only_flow(&document);
    assert_eq!((&flow["cause"], &flow["confidence"]), (&"application".into(), &"low".into()), "{flow:#}");
    assert!(flow["place"].as_str().is_some_and(|place| place.starts_with("remote host")), "{flow:#}");
}

#[test]
fn short_request_gaps_are_named_by_what_the_thread_waits_for() {
    let (left, right, _link) = or_skip!(two_hosts());
    // 200 KB at once, and a gap of 15 ms: both ages are of the same tick.
    let server = format!(
        "import socket\nl = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\nl.bind(('{RIGHT}', \
         {PORT})); l.listen(); print('ready', flush=True)\ns, _ = l.accept()\nwhile s.recv(4): s.sendall(bytes(200000))\n"
    );
    let server = or_skip!(python(&right, &server));
    until(TIMEOUT_S, "a listener", || server.stdout().contains("ready"));
    let client = format!(
        "import socket, time\ns = socket.create_connection(('{RIGHT}', {PORT}))\nwhile True:\n    s.sendall(b'more')\n    n = 0\n    \
         while n < 200000: n += len(s.recv(1 << 18))\n    time.sleep(0.015)\n"
    );
    let _client = or_skip!(python(&left, &client));
    wait_for_data(&left);
    let [at_server, at_client] = watch_both([&right, &left]);
    let flow = only_flow(&at_server);
    assert_eq!((&flow["cause"], &flow["confidence"]), (&"request-gaps".into(), &"medium".into()), "{flow:#}");
    assert!(flow["host"]["waits"]["receive"].as_f64().is_some_and(|share| share > 0.5), "{flow:#}");
    let flow = only_flow(&at_client);
    assert_eq!(flow["cause"], "request-gaps", "{flow:#}");
    assert!(flow["host"]["waits"]["sleep"].as_f64().is_some_and(|share| share > 0.5), "{flow:#}");
}

#[test]
fn a_connection_that_closes_keeps_its_counters_and_its_process() {
    let (left, right, _link) = or_skip!(two_hosts());
    right.nft(
        "table ip t { chain c { type filter hook input priority 0; tcp dport 5998 numgen random mod 200 < 1 drop; }; }",
    );
    // The reader keeps its end open: the sender's waits in FIN-WAIT-2, without a process and without counters.
    let keeps = READER.replace("if not data: break", "if not data: time.sleep(60)");
    let reads = or_skip!(python(&right, &format!("def work(data): pass\n{keeps}")));
    until(TIMEOUT_S, "a listener", || reads.stdout().contains("ready"));
    let ends = SENDER.replace("while True:", "end = time.time() + 2\nwhile time.time() < end:");
    let _sends = or_skip!(python(&left, &format!("zeros = bytes(1 << 18)\ndef chunk(): return zeros\n{ends}")));
    wait_for_data(&left);
    let document = watch(&left, &[]);
    let flow = only_flow(&document);
    let count = |name: &str| flow[name].as_u64().expect("a number");
    assert!((1..1_000_000).contains(&count("retransmits")) && count("bytes_acked") > 1_000_000, "{flow:#}");
    assert_eq!(flow["ended"], true, "{flow:#}");
    assert!(flow["command"].as_str().is_some_and(|command| command.starts_with("python")), "{flow:#}");
    assert_eq!(document["sockets"]["now"], 0, "{document:#}");
}

/// A path of 10 ms and 100 Mb/s with an unlimited transfer from left to right.
fn unlimited_transfer() -> Result<(Namespace, Namespace, Wire, [Process; 2]), String> {
    let (left, right) = (Namespace::new("left")?, Namespace::new("right")?);
    let leg = WireDirection {
        delay_ns: 5_000_000,
        rate_bps: Some(100e6),
        queue_bytes: 1 << 20,
        ..WireDirection::default()
    };
    let wire = Wire::between(&left, &right, [leg, leg], 7)?;
    let (from, to) = (landspeed_testkit::wire::LEFT, landspeed_testkit::wire::RIGHT);
    let moved = |program: &str| program.replace(RIGHT, to).replace(LEFT, from);
    let reads = python(&right, &moved(&format!("def work(data): pass\n{READER}")))?;
    until(TIMEOUT_S, "a listener", || reads.stdout().contains("ready"));
    let sends = python(&left, &moved(&format!("zeros = bytes(1 << 18)\ndef chunk(): return zeros\n{SENDER}")))?;
    wait_for_data(&left);
    Ok((left, right, wire, [reads, sends]))
}

#[test]
fn packet_filter_is_named_only_at_its_own_host() {
    let (left, right, _wire, _programs) = or_skip!(unlimited_transfer());
    right.nft(
        "table ip t { chain c { type filter hook input priority 0; tcp dport 5998 numgen random mod 100 < 1 counter drop; }; }",
    );
    let [document, at_sender] = watch_both([&right, &left]);
    let flow = only_flow(&document);
    assert_eq!((&flow["cause"], &flow["confidence"]), (&"firewall".into(), &"low".into()), "{flow:#}");
    assert!(flow["host"]["nft_drops"].as_u64().is_some_and(|drops| drops > 10), "{flow:#}");
    assert_ne!(only_flow(&at_sender)["cause"], "firewall", "the sender has none: {at_sender:#}");
}

#[test]
fn transfer_without_fault_names_no_host_cause() {
    let (left, right, _wire, _programs) = or_skip!(unlimited_transfer());
    for document in watch_both([&left, &right]) {
        let flow = only_flow(&document);
        let cause = flow["cause"].as_str().and_then(Cause::from_name).expect("a cause");
        // A busy machine may delay a thread: then a CPU cause is correct.
        let of_this_host = [Cause::ReceiverHostDrops, Cause::LocalQdisc].contains(&cause);
        assert!(cause.visible().contains(&Viewpoint::BothEnds) && !of_this_host, "{flow:#}");
        assert_eq!(flow["host"]["nft_drops"], 0, "{flow:#}");
        assert!(flow["host"]["quota"].is_null(), "{flow:#}");
    }
}

#[test]
fn a_qdisc_that_drops_is_named_with_the_interface() {
    let (left, right, link) = or_skip!(two_hosts());
    left.exec([
        "tc", "qdisc", "add", "dev", &link.a, "root", "tbf", "rate", "50mbit", "burst", "32k", "limit", "30k",
    ]);
    let _reader = or_skip!(reader(&right, "pass"));
    let _sender = or_skip!(sender(&left, "    return zeros"));
    let document = watch(&left, &[]);
    let flow = only_flow(&document);
    assert_eq!(flow["cause"], "local-qdisc", "{flow:#}");
    assert_eq!(flow["host"]["interface"], link.a, "{flow:#}");
}

#[test]
fn advice_names_receive_queue_core_shared_with_the_thread() {
    let (left, right, _link) = or_skip!(two_hosts());
    let reader = or_skip!(reader(&right, "[hashlib.sha256(data) for _ in range(4)]"));
    let sender = or_skip!(sender(&left, "    return zeros"));
    for process in [&reader, &sender] {
        let pinned = Command::new("taskset").args(["-acp", "0", &process.id().to_string()]).output();
        if !pinned.is_ok_and(|output| output.status.success()) {
            skip!("no taskset here");
        }
    }
    let document = watch(&right, &[]);
    let flow = only_flow(&document);
    assert_eq!((&flow["cause"], &flow["host"]["receive_cpu"]), (&"receiver-cpu".into(), &0.into()), "{flow:#}");
    let step = flow["next_step"].as_str().expect("text");
    assert!(step.contains("Its core 0 also takes in the flow's segments"), "{flow:#}");
}

#[test]
fn tracepoints_count_drops_by_reason_where_permitted() {
    let (_left, right, _wire, _programs) = or_skip!(unlimited_transfer());
    right.nft(
        "table ip t { chain c { type filter hook input priority 0; tcp dport 5998 numgen random mod 50 < 1 drop; }; }",
    );
    let without = begin(&right, command(&[]));
    // tracefs is mounted for this process only.
    let mut with_tracefs = Command::new("unshare");
    let script = format!(
        "mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || exit 77; exec {PROGRAM} watch --tracepoints \"$@\""
    );
    with_tracefs.args(["-m", "sh", "-c", &script, "sh"]);
    let mut probe = Command::new("unshare");
    probe.args([
        "-m",
        "sh",
        "-c",
        "mount -t tracefs tracefs /sys/kernel/tracing && test -d /sys/kernel/tracing/instances",
    ]);
    let has_tracefs = probe.output().is_ok_and(|output| output.status.success());
    let with = has_tracefs.then(|| begin(&right, with_tracefs));
    let document = document_of(without);
    assert!(document["events"].is_null(), "{document:#}");
    assert!(document["unavailable"]["tracepoints"].as_str().is_some_and(|why| why.contains("--tracepoints")));
    // The IP counters show the drops of a rule without a counter.
    assert_eq!(only_flow(&document)["cause"], "firewall", "{document:#}");
    let Some(with) = with else { skip!("no tracefs here") };
    let document = document_of(with);
    let drops = &document["events"]["drops"]["NETFILTER_DROP"];
    assert!(drops.as_u64().is_some_and(|drops| drops > 10), "{document:#}");
    assert!(!document["events"]["retransmits"].as_object().expect("counts").is_empty(), "{document:#}");
    assert_eq!(only_flow(&document)["cause"], "firewall", "{document:#}");
    assert!(document["unavailable"]["tracepoints"].is_null());
}
