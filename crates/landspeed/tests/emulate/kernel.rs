//! The kernel datapath: qdiscs carry the frames.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use landspeed_testkit::process::{Ended, Process, until};
use serde_json::Value;

use super::around::{USER, run_over_path, user_namespaces};
use super::between::send;
use super::leftovers::{middle_state, runs};
use super::{TIMEOUT_S, Wire, certificate, landspeed, number, path_file, stop};

const RATE: &str = "[[link]]\nrate = \"100M\"\nqueue = { kind = \"bfifo\", limit = \"100KB\" }";
const KERNEL: [&str; 2] = ["--datapath", "kernel"];

fn emulate(file: &Path) -> Command {
    let mut command = landspeed();
    command.arg("emulate").arg(file).args(KERNEL);
    command
}

fn assert_balanced(certificate: &Value) {
    for direction in ["forward", "reverse"] {
        let at = |name: &str| number(certificate, &format!("/delivered/{direction}/{name}_packets"));
        assert_eq!(at("offered") + at("duplicated"), at("delivered") + at("dropped") + at("inside"), "{direction}");
        assert_eq!(at("unhandled"), 0, "{direction}: {certificate}");
        let hops = certificate["hops"][direction].as_array().expect("hops");
        let sum = |name: &str| hops.iter().map(|hop| hop[name].as_u64().expect("a count")).sum::<u64>();
        assert_eq!(sum("queue_full_packets") + sum("aqm_packets") + sum("lost_packets"), at("dropped"));
    }
}

fn assert_rate_was_delivered(run: &Value, certificate: &Value) {
    assert_eq!(certificate["datapath"], "kernel");
    assert_eq!((&certificate["cpu"], &certificate["store"]), (&Value::Null, &Value::Null));
    assert_balanced(certificate);
    let peak = number(certificate, "/delivered/forward/peak_rate_bps");
    assert!((80_000_000..=101_000_000).contains(&peak), "{peak}");
    let full = number(certificate, "/hops/forward/0/queue_full_packets");
    assert!(full > 0, "TCP fills the buffer of another host: {certificate}");
    let most = number(certificate, "/hops/forward/0/queue_max_bytes");
    assert!((50_000..=100_000).contains(&most), "{most}");
    assert!(number(certificate, "/delay_error_ns/packets") > 1000, "{certificate}");
    assert!(run["streams"].as_array().is_some_and(|streams| !streams.is_empty()));
}

#[test]
fn a_rate_and_a_buffer_are_the_kernels_around_a_command() {
    if !landspeed_sys::process::is_root() {
        landspeed_testkit::skip!("namespaces without a user namespace need root");
    }
    let (directory, file) = path_file(RATE);
    let (run, certificate) = run_over_path(&mut emulate(&file), directory.path());
    assert_rate_was_delivered(&run, &certificate);
}

#[test]
fn an_ordinary_user_has_the_kernel_datapath_too() {
    landspeed_testkit::or_skip!(user_namespaces());
    let (directory, file) = path_file(RATE);
    let mut command = emulate(&file);
    if landspeed_sys::process::is_root() {
        command.uid(USER).gid(USER);
    }
    command.current_dir(directory.path());
    let (run, certificate) = run_over_path(&mut command, directory.path());
    assert_rate_was_delivered(&run, &certificate);
}

#[test]
fn burst_exceeding_the_kernel_buffer_is_dropped_exactly() {
    let wire = landspeed_testkit::or_skip!(Wire::new());
    // As in the userspace datapath: of a burst of 20 frames, one is sent, ten are queued, nine are dropped.
    let (directory, file) =
        path_file("[[link]]\nrate = \"106600\"\nqueue = { kind = \"bfifo\", limit = \"10420B\" }");
    let json = directory.path().join("certificate.json");
    let process = landspeed_testkit::or_skip!(begin(&wire, &file, &["--json", &json.to_string_lossy()]));
    let arrived = send(&wire, 20, 1000, 0, 11);
    let ended = stop(process);
    assert_eq!(arrived, (1..=11).collect::<Vec<_>>(), "{}", ended.stdout);
    let certificate = certificate(&json);
    assert_eq!(number(&certificate, "/delivered/forward/offered_packets"), 20);
    assert_eq!(number(&certificate, "/delivered/forward/offered_bytes"), 20 * 1042);
    assert_eq!(number(&certificate, "/hops/forward/0/queue_full_packets"), 9);
    assert_eq!(number(&certificate, "/delivered/forward/delivered_bytes"), 11 * 1042);
    assert_balanced(&certificate);
}

/// Starts `emulate --between m1,m2` with the kernel datapath; the error names a missing kernel feature.
fn begin(wire: &Wire, file: &Path, more: &[&str]) -> Result<Process, String> {
    let mut command = emulate(file);
    command.args(["--between", "m1,m2"]).args(more);
    let process = wire.middle.run(|| Process::start(command));
    let lacks =
        || ["cannot attach a program", "this kernel has no"].iter().any(|words| process.stderr().contains(words));
    until(TIMEOUT_S, "it begins", || lacks() || process.stderr().contains("asked"));
    if lacks() { Err(process.stderr()) } else { Ok(process) }
}

#[test]
fn kernel_datapath_refuses_forwarding_loops() {
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let (_directory, file) = path_file(RATE);
    for arguments in [&["add", "p1", "up", "type", "veth", "peer", "name", "p2"][..], &["set", "p2", "up"]] {
        wire.middle.exec(["ip", "link"].iter().chain(arguments));
    }
    let mut command = emulate(&file);
    command.args(["--between", "p1,p2", "--time", "5s"]);
    let ended = wire.middle.run(|| Process::start(command)).end(TIMEOUT_S);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("arrives at the other: frames would go round for ever"), "{}", ended.stderr);
}

#[test]
fn killed_kernel_path_around_a_command_leaves_nothing() {
    let (_directory, file) = path_file(RATE);
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let before = middle_state(&wire);
    let mut command = emulate(&file);
    command.args(["--remote", "exec sleep 77.125", "--", "sleep", "78.125"]);
    let mut process = wire.middle.run(|| Process::start(command));
    until(TIMEOUT_S, "both run", || runs("77.125") && runs("78.125") && process.stderr().contains("asked"));
    process.kill();
    until(TIMEOUT_S, "both end", || !runs("77.125") && !runs("78.125"));
    assert_eq!(middle_state(&wire), before);
}

#[test]
fn a_killed_kernel_path_between_interfaces_leaves_nothing() {
    let (_directory, file) = path_file(RATE);
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let before = middle_state(&wire);
    let mut process = landspeed_testkit::or_skip!(begin(&wire, &file, &[]));
    assert_eq!(send(&wire, 5, 500, 0, 5), [1, 2, 3, 4, 5]);
    assert_ne!(middle_state(&wire), before, "its links exist while it runs");
    process.kill();
    until(TIMEOUT_S, "the interfaces are as before", || middle_state(&wire) == before);
    assert!(send(&wire, 1, 500, 0, 0).is_empty(), "nothing passes any more");
}

#[test]
fn unsupported_keys_are_refused_by_the_kernel_datapath() {
    let (_directory, file) = path_file("[[link]]\nrate = \"1G\"\n[link.reverse]\nloss = { every = 100 }");
    let ended = Process::start({
        let mut command = emulate(&file);
        command.args(["--", "true"]);
        command
    })
    .end(TIMEOUT_S);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    let words = "the kernel datapath cannot emulate link.0.loss.every (reverse): netem loses frames at random only\n\
                 Write a share, such as loss = '0.01%', or use the userspace datapath: leave out --datapath kernel.";
    assert!(ended.stderr.replace(['`', '"'], "'").contains(words), "{}", ended.stderr);
}

/// Runs over a path that needs more than tbf and bfifo; the error names a missing kernel feature. The lab's
/// kernel has all of them but cannot run it: under User-mode Linux a process that has mapped a packet ring
/// cannot fork.
fn run_or_missing_feature(link: &str) -> Result<(Value, Value), String> {
    let (directory, file) = path_file(link);
    let mut command = emulate(&file);
    command.args(["--quiet", "--", "true"]);
    let Ended { code, stderr, .. } = Process::start(command).end(TIMEOUT_S);
    if stderr.contains("this kernel has no queueing discipline") {
        return Err(stderr);
    }
    assert!(code < 2, "{stderr}");
    Ok(run_over_path(&mut emulate(&file), directory.path()))
}

#[test]
fn netem_emulates_delay_loss_and_duplication() {
    landspeed_testkit::or_skip!(user_namespaces());
    let link = "[[link]]\nrate = \"100M\"\ndelay = \"20ms\"\nloss = \"1%\"\nduplicate = \"1%\"\n\
                queue = { kind = \"bfifo\", limit = \"500KB\" }";
    let (run, certificate) = match run_or_missing_feature(link) {
        Ok(documents) => documents,
        Err(why) => {
            let advice = "Load it ('modprobe sch_netem', CONFIG_NET_SCH_NETEM), or use the userspace datapath";
            assert!(why.replace('`', "'").contains(advice), "{why}");
            landspeed_testkit::skip!("{why}");
        }
    };
    assert_balanced(&certificate);
    for direction in ["forward", "reverse"] {
        let at = |name: &str| number(&certificate, &format!("/delivered/{direction}/{name}"));
        assert!(at("delay_ns/min") >= 20_000_000, "{certificate}");
        assert!(at("offered_packets") < 1000 || at("duplicated_packets") > 0, "{certificate}");
    }
    let lost = number(&certificate, "/hops/forward/0/lost_packets") as f64;
    let sent = number(&certificate, "/hops/forward/0/sent_packets") as f64;
    // Five standard deviations of the binomial distribution.
    assert!((lost - sent * 0.01).abs() <= 5.0 * (sent * 0.01).sqrt() + 1.0, "{lost} of {sent}");
    // Losses are random, so departure times cannot be predicted.
    assert_eq!(certificate["delay_error_ns"]["p50"], Value::Null);
    assert!(run["streams"].as_array().is_some_and(|streams| !streams.is_empty()));
}

#[test]
fn netem_delays_frames_between_interfaces() {
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let (directory, file) = path_file("[[link]]\nrate = \"10M\"\ndelay = \"20ms\"\nduplicate = \"10%\"");
    let json = directory.path().join("certificate.json");
    // The process that carries the frames starts no other program, so the lab's kernel can run it.
    let process = match begin(&wire, &file, &["--json", &json.to_string_lossy()]) {
        Ok(process) => process,
        Err(why) => landspeed_testkit::in_lab_kernel!("{why}"),
    };
    let arrived = send(&wire, 200, 500, 1_000_000, 200);
    stop(process);
    let certificate = certificate(&json);
    let copies = number(&certificate, "/delivered/forward/duplicated_packets");
    assert_eq!(arrived.len() as u64, 200 + copies);
    // The median: in a guest that waits for a core, single delays have come out as 0.
    assert!(copies > 0 && number(&certificate, "/delivered/forward/delay_ns/p50") >= 20_000_000, "{certificate}");
    assert_balanced(&certificate);
}

#[test]
fn kernel_delay_is_compared_with_the_model() {
    landspeed_testkit::or_skip!(user_namespaces());
    let link = "[[link]]\nrate = \"100M\"\ndelay = \"20ms\"\nqueue = { kind = \"bfifo\", limit = \"500KB\" }";
    let (_, certificate) = match run_or_missing_feature(link) {
        Ok(documents) => documents,
        Err(why) => landspeed_testkit::skip!("{why}"),
    };
    assert_balanced(&certificate);
    assert!(number(&certificate, "/delivered/forward/delay_ns/min") >= 20_000_000, "{certificate}");
    assert!(number(&certificate, "/delay_error_ns/packets") > 1000, "{certificate}");
    // netem's serialization delay matches the model.
    let p50 = number(&certificate, "/delay_error_ns/p50");
    assert!(p50 < 1_000_000, "{certificate}");
}

#[test]
fn kernel_datapath_supports_every_queue_kind() {
    landspeed_testkit::or_skip!(user_namespaces());
    for queue in ["red", "codel", "fq_codel", "pie"] {
        let link = format!(
            "[[link]]\nrate = \"50M\"\nqueue = {{ kind = \"{queue}\" }}\n[[link]]\nrate = \"1G\"\ndelay = \"5ms\"\n\
             jitter = {{ spread = \"1ms\", distribution = \"normal\" }}\nreorder = \"1%\"\n\
             loss = {{ gilbert-elliott = {{ p = 0.0001, r = 0.2 }} }}"
        );
        match run_or_missing_feature(&link) {
            Ok((_, certificate)) => {
                assert_balanced(&certificate);
                assert!(number(&certificate, "/delivered/forward/delivered_packets") > 1000, "{certificate}");
                assert_eq!(certificate["hops"]["forward"][0]["queue"], queue);
                assert_eq!(certificate["delivered"]["forward"]["reordered_packets"], Value::Null);
            }
            Err(why) => landspeed_testkit::skip!("{why}"),
        }
    }
}
