//! CPU costs of hosts: measured rates and drops are those of the queueing stages.

use std::process::Command;

use serde_json::Value;

use crate::common::chosen_program;
use crate::lab::scenario::{LabRun, assert_close, finish, number};

/// Two hosts on a link of 2.5 Gb/s.
const HOSTS: &str = "name = \"hosts that cost time\"\ntime = \"1s\"\nsample = \"10ms\"\n[host.sender]\n[host.receiver]\n\
                     [[link]]\nbetween = [\"sender\", \"receiver\"]\nrate = \"2.5G\"\ndelay = \"100us\"\n";
const TCP: &str = "[[flow]]\nfrom = \"sender\"\nto = \"receiver\"\nlen = \"64KiB\"\nwindow = \"512KiB\"\ninterval = \"100ms\"\nomit = \"200ms\"\n";
/// 80,000 datagrams of 1472 bytes per second, in frames of 1514 bytes.
const UDP: &str = "[[flow]]\nfrom = \"sender\"\nto = \"receiver\"\nprotocol = \"udp\"\nrate = \"942.08M\"\n";
/// 20 µs for each of these frames.
const RECEIVE: &str = "ring = 256, packet-ns = 18000, byte-ns = 1, merged-ns = 486";

fn run(cpus: &str, flow: &str) -> LabRun {
    run_with(cpus, flow, &[])
}

fn run_with(cpus: &str, flow: &str, more: &[&str]) -> LabRun {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    std::fs::write(directory.path().join("path.toml"), format!("{HOSTS}{flow}{cpus}")).expect("writable");
    let mut command = Command::new(chosen_program());
    command
        .args(["lab", "run", "--quiet", "--yes", "--json", "-", "path.toml"])
        .args(more)
        .current_dir(directory.path());
    finish(command, None)
}

fn receiver(costs: &str) -> String {
    format!("[host.receiver.cpu]\n{costs}\n")
}

fn cause(ran: &LabRun) -> &str {
    ran.flow(0)["verdict"]["cause"].as_str().unwrap_or("none")
}

fn cpu<'a>(ran: &'a LabRun, host: &str) -> &'a Value {
    let cpus = ran.document["cpus"].as_array().expect("CPUs");
    cpus.iter().find(|cpu| cpu["host"] == host).expect("the host")
}

#[test]
fn overloaded_ring_delivers_its_capacity_and_drops_the_rest() {
    landspeed_testkit::needs_lab_kernel!();
    let cpus = receiver(&format!("receive = {{ {RECEIVE} }}"));
    let ran = run(&cpus, UDP);
    // 50,000 frames per second leave the core.
    assert_close("goodput of a core at 20 µs per frame", "b/s", 50_000.0 * 1472.0 * 8.0, ran.goodput(0), 1e-2, &ran);
    let drops = number(&ran.document["host_drops"][0]["ring"]);
    // The ring is still full of frames at the end.
    assert_close("drops of its ring in 1 s", "frames", 30_000.0 - 256.0, drops, 1e-2, &ran);
    assert_eq!(ran.document["host_drops"][0]["host"], "receiver");
    assert_eq!(ran.flow(0)["udp"]["lost_packets"].as_f64(), Some(drops), "every loss is in the ring");
    assert_eq!(cpu(&ran, "receiver")["receive"]["ring_max"], 256);
    assert!(number(&cpu(&ran, "receiver")["softirq_ratio"]) > 0.7, "of 1.3 s, 1 s of which is the flow");
    assert!(cause(&ran) == "receiver-host-drops", "{:#}", ran.flow(0)["verdict"]);
    assert_eq!(ran.digest(), run(&cpus, UDP).digest());
}

#[test]
fn softirqs_limit_tcp_to_the_rate_of_their_core() {
    landspeed_testkit::needs_lab_kernel!();
    for (ring, tolerance) in [(4096, 1e-2), (64, 5e-2)] {
        let costs = format!("receive = {{ ring = {ring}, packet-ns = 20000 }}");
        let ran = run(&receiver(&costs), &TCP.replace("window = \"512KiB\"\n", ""));
        let expected = 1448.0 * 8e9 / 20_000.0;
        let what = format!("TCP goodput of a core at 20 µs per frame, ring of {ring}");
        assert_close(&what, "b/s", expected, ran.goodput(0), tolerance, &ran);
        assert_eq!(cause(&ran), "receiver-cpu", "{:#}", ran.flow(0)["verdict"]);
        let drops = number(&ran.document["host_drops"][0]["ring"]);
        assert_eq!(drops > 0.0, ring == 64, "{drops}");
        assert_eq!(ran.document["flows"][0]["retransmits"].as_f64(), Some(drops), "every loss is in the ring");
    }
}

#[test]
fn moderation_delays_single_frames() {
    landspeed_testkit::needs_lab_kernel!();
    let flow = "[[flow]]\nfrom = \"sender\"\nto = \"receiver\"\nprotocol = \"udp-rr\"\n";
    let least = |cpus: &str| number(&run(cpus, flow).flow(0)["latency"][0]["min_ns"]);
    let plain = least("");
    let costs = "packet-ns = 1000, merged-ns = 2000";
    assert!((least(&receiver(&format!("receive = {{ {costs} }}"))) - plain - 3_000.0).abs() < 1_000.0);
    let moderated = receiver(&format!("receive = {{ {costs}, moderation = \"50us\" }}"));
    assert!((least(&moderated) - plain - 53_000.0).abs() < 1_000.0);
}

#[test]
fn copying_reader_limits_tcp_to_its_rate() {
    landspeed_testkit::needs_lab_kernel!();
    let ran = run(&receiver("read = { call-ns = 1000, byte-ns = 20 }"), TCP);
    let expected = 8e9 / (20.0 + 1000.0 / 65_536.0);
    assert_close("TCP goodput of a reader at 20 ns per byte", "b/s", expected, ran.goodput(0), 1e-2, &ran);
    assert_eq!(cause(&ran), "receiver-cpu", "{:#}", ran.flow(0)["verdict"]);
    let discard = run(&receiver("read = { call-ns = 1000, byte-ns = 20 }"), &format!("{TCP}receive = \"discard\"\n"));
    assert!(discard.goodput(0) > 2.3e9, "{}", discard.goodput(0));
}

#[test]
fn copying_sender_limits_tcp_and_sendfile_does_not() {
    landspeed_testkit::needs_lab_kernel!();
    let costs =
        "[host.sender.cpu]\nsend = { call-ns = 1000, byte-ns = 20, packet-ns = 100, super-packet-ns = 5000 }\n";
    let ran = run(costs, TCP);
    // A call of 64 KiB has 46 frames and one segment.
    let call_ns = 1000.0 + 65_536.0 * 20.0 + 46.0 * 100.0 + 5000.0;
    let expected = 65_536.0 * 8e9 / call_ns;
    assert_close("TCP goodput of a sender at 20 ns per byte", "b/s", expected, ran.goodput(0), 1e-2, &ran);
    assert_eq!(cause(&ran), "sender-cpu", "{:#}", ran.flow(0)["verdict"]);
    let sendfile = run(costs, &format!("{TCP}send = \"sendfile\"\n"));
    assert!(sendfile.goodput(0) > 2.3e9, "{}", sendfile.goodput(0));
}

#[test]
fn costs_add_up_on_a_shared_core() {
    landspeed_testkit::needs_lab_kernel!();
    // 20 µs for a frame of 1448 bytes of payload, and 20 ns for a byte.
    let costs = "receive = { ring = 4096, packet-ns = 20000 }\nread = { byte-ns = 20 }\n";
    let (softirq, copy) = (20_000.0 / 1448.0, 20.0);
    let two = run(&receiver(costs), TCP);
    assert_close("TCP goodput with two cores", "b/s", 8e9 / copy, two.goodput(0), 1e-2, &two);
    let one = run(&receiver(&format!("cores = 1\n{costs}")), TCP);
    assert_close("TCP goodput with one core", "b/s", 8e9 / (softirq + copy), one.goodput(0), 1e-2, &one);
    let busy = number(&cpu(&one, "receiver")["softirq_ratio"]) + number(&cpu(&one, "receiver")["application_ratio"]);
    // The run is longer than the flow, by the time in which frames in flight arrive.
    assert!((0.8..=1.01).contains(&busy), "{busy}");
    let slow = run(&receiver(&format!("cores = 1\nclock = 0.5\n{costs}")), TCP);
    assert_close("... at half the clock", "b/s", 4e9 / (softirq + copy), slow.goodput(0), 1e-2, &slow);
}

#[test]
fn noise_differs_by_seed_and_repeats() {
    landspeed_testkit::needs_lab_kernel!();
    let cpus = receiver("noise = \"100us\"\nreceive = { packet-ns = 1000 }");
    let flow = "[[flow]]\nfrom = \"sender\"\nto = \"receiver\"\nprotocol = \"udp-rr\"\ntime = \"200ms\"\n";
    let first = run(&cpus, flow);
    assert_eq!(first.digest(), run(&cpus, flow).digest());
    let other = run_with(&cpus, flow, &["--seed", "2"]);
    let latency = |ran: &LabRun| ran.flow(0)["latency"][0].clone();
    assert_ne!(latency(&first), latency(&other));
    // The request waits up to 100 µs for the receiver's core.
    let spread = number(&latency(&first)["max_ns"]) - number(&latency(&first)["min_ns"]);
    assert!((80_000.0..101_000.0).contains(&spread), "{spread}");
}
