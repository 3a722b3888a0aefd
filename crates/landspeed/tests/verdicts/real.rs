//! Real traffic: a busy machine lowers the confidence, but never leads to a wrong cause.

use landspeed_sys::thread;
use landspeed_testkit::netns::{Namespace, Veth, veth};
use landspeed_testkit::pair::{CpuLoad, Pair};
use landspeed_testkit::process::{Process, until};
use landspeed_testkit::{or_skip, skip};
use serde_json::Value;

use crate::common::{PROGRAM, landspeed, names_wait_for_core};

/// Slightly more than a verdict needs: 20 samples over 2 s.
const TIME_OPTION: &str = "-t 2.4";
/// Time limit of a run, seconds.
const TIMEOUT_S: u64 = 60;
/// Possible limits of a bulk transfer on loopback.
const CPU_CAUSES: &[&str] = &["sender-cpu", "receiver-cpu"];

/// Returns two cores to pin both sides to, or skips the test.
macro_rules! cores {
    () => {
        match thread::allowed_cores()[..] {
            [first, second, ..] => (first, second),
            _ => skip!("two ends need two cores"),
        }
    };
}

/// A client and a server, 10.3.0.2, in network namespaces joined by a link; the error says what is missing.
fn two_hosts() -> Result<(Namespace, Namespace, Veth), String> {
    let (client, server) = (Namespace::new("client")?, Namespace::new("server")?);
    let link = veth(&client, &server, "10.3.0.1/24", "10.3.0.2/24");
    Ok((client, server, link))
}

/// Asserts that the accounting is balanced, and that a cause not in `causes` has low confidence only, or is that a
/// thread waited for a core.
#[track_caller]
fn assert_not_misleading(what: &str, causes: &[&str], document: &Value) {
    let verdict = &document["verdict"];
    let cause = verdict["cause"].as_str().unwrap_or_default();
    println!("{what}: {cause}, {}: {}", verdict["confidence"], verdict["summary"]);
    assert_eq!(document["conservation"]["holds"], true, "{what}: {:#}", document["conservation"]);
    let doubts = verdict["confidence"] == "low" || names_wait_for_core(verdict);
    assert!(causes.contains(&cause) || doubts, "{what}: {verdict:#}");
}

#[test]
fn loopback_is_never_taken_for_a_network() {
    let pair = Pair::on_loopback(PROGRAM);
    for arguments in ["-C bbr --bidir -P 2", "-C bbr --send zerocopy", "-C reno -R -P 4"] {
        assert_not_misleading(arguments, CPU_CAUSES, &pair.run(&format!("{TIME_OPTION} {arguments}")));
    }
}

/// Tests a preempted receiver and a preempted sender, with these congestion controls each.
fn judge_preempted_hosts(controls: [&[&str]; 2]) {
    let (one, other) = cores!();
    let pair = Pair::on_loopback(PROGRAM);
    for (burdened, receive, controls) in [(other, "copy", controls[0]), (one, "discard", controls[1])] {
        let _burden = CpuLoad::on(burdened, 2);
        for control in controls {
            let arguments =
                format!("{TIME_OPTION} -C {control} --cpus {one} --peer-cpus {other} --receive {receive}");
            assert_not_misleading(&arguments, CPU_CAUSES, &pair.run(&arguments));
        }
    }
}

#[test]
fn a_preempted_end_is_not_a_slow_program() {
    judge_preempted_hosts([&["cubic"], &["bbr"]]);
}

#[test]
#[ignore = "long: each end with each congestion control"]
fn a_preempted_end_is_not_a_slow_program_with_either_control() {
    judge_preempted_hosts([&["cubic", "bbr"]; 2]);
}

#[test]
fn a_small_socket_buffer_is_named_with_its_size() {
    let pair = Pair::on_loopback(PROGRAM);
    let document = pair.run(&format!("-u -b 200M -l 1448 --burst 64 -w 32K {TIME_OPTION}"));
    assert_not_misleading("small socket buffer", &["receive-buffer"], &document);
    let verdict = &document["verdict"];
    let next = verdict["next_step"].as_str().unwrap_or_default();
    assert!(verdict["cause"] != "receive-buffer" || next.contains("--window "), "{verdict:#}");
}

#[test]
fn a_preempted_udp_receiver_is_not_a_lossy_network() {
    let (one, other) = cores!();
    let pair = Pair::on_loopback(PROGRAM);
    let _burden = CpuLoad::on(other, 3);
    let arguments = format!("-u -b 4G -l 8900 {TIME_OPTION} --cpus {one} --peer-cpus {other}");
    let document = pair.run(&arguments);
    // On some hosts the receiver still gets the full rate.
    let reached = document["udp"]["loss_ratio"].as_f64().is_some_and(|loss| loss < 0.01);
    let causes = if reached { &[CPU_CAUSES, &["application"]].concat() } else { CPU_CAUSES };
    assert_not_misleading(&arguments, causes, &document);
}

#[test]
fn shaper_at_the_udp_sender_is_named() {
    let (client, server, link) = or_skip!(two_hosts());
    let shape = "qdisc add dev OUT root tbf rate 20mbit burst 16kb limit 60kb".replace("OUT", &link.a);
    client.exec(std::iter::once("tc").chain(shape.split(' ')));
    let document = Pair::across(PROGRAM, &client, &server, "10.3.0.2").run(&format!("-u -b 40M {TIME_OPTION}"));
    assert_not_misleading("tbf", &["local-qdisc"], &document);
    if document["verdict"]["cause"] == "local-qdisc" {
        assert_eq!(document["verdict"]["place"], "client, qdisc");
    }
}

#[test]
fn htb_at_the_sender_is_named_without_segmentation_offload() {
    let (client, server, link) = or_skip!(two_hosts());
    for command in [
        "ethtool -K OUT tso off gso off",
        "tc qdisc add dev OUT root handle 1: htb default 1",
        "tc class add dev OUT parent 1: classid 1:1 htb rate 100mbit",
    ] {
        client.exec(command.replace("OUT", &link.a).split(' '));
    }
    let pair = Pair::across(PROGRAM, &client, &server, "10.3.0.2");
    for congestion in ["cubic", "bbr"] {
        let document = pair.run(&format!("-C {congestion} {TIME_OPTION}"));
        assert_not_misleading("htb", &["local-qdisc"], &document);
        // A host without CPU time sends less than the class allows.
        if document["summary"]["goodput_bps"].as_f64() >= Some(90e6) {
            assert_eq!(document["verdict"]["cause"], "local-qdisc", "{:#}", document["verdict"]);
        }
    }
}

#[test]
fn a_packet_filter_at_the_receiver_is_named_without_privilege() {
    let (client, server, _link) = or_skip!(two_hosts());
    server.nft(
        "table ip f { chain in { type filter hook input priority 0; udp dport 5210 numgen random mod 20 0 drop; }; }",
    );
    let document = Pair::across(PROGRAM, &client, &server, "10.3.0.2").run(&format!("-u -b 40M {TIME_OPTION}"));
    assert_not_misleading("filter", &["firewall"], &document);
    if document["verdict"]["cause"] == "firewall" {
        assert_eq!(document["verdict"]["place"], "server, packet filter");
    }
}

#[test]
fn a_path_that_goes_down_is_shown_and_named() {
    let (client, server, _link) = or_skip!(two_hosts());
    let pair = Pair::across(PROGRAM, &client, &server, "10.3.0.2");
    let mut command = landspeed();
    command.args(["run", pair.target(), "-t", "4"]);
    let run = client.run(|| Process::start(command));
    until(TIMEOUT_S, "the first interval", || run.stdout().contains("0.0-1.0 s"));
    server.nft(
        "table ip down {
            chain in { type filter hook input priority 0; drop; }
            chain out { type filter hook output priority 0; drop; }
        }",
    );
    let ended = run.end(TIMEOUT_S);
    assert_eq!(ended.code, 1, "{ended:?}");
    for part in ["0 b/s  no ACK since", "the path is down: no packet from the peer", "cause    path down"] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
}

#[test]
fn a_run_too_short_to_judge_is_undetermined() {
    let pair = Pair::on_loopback(PROGRAM);
    let verdict = pair.run("-t 0.3")["verdict"].clone();
    // On a busy host a thread that waits for a core is named however short the run is.
    let cause = verdict["cause"].as_str().unwrap_or_default();
    assert!(["undetermined", "sender-cpu", "receiver-cpu"].contains(&cause), "{verdict:#}");
    assert_eq!(verdict["confidence"], "low", "{verdict:#}");
    let document = pair.run("-t 0.5");
    assert_not_misleading("half a second", &["sender-cpu", "receiver-cpu", "undetermined"], &document);
    assert_ne!(document["verdict"]["confidence"], "high", "{:#}", document["verdict"]);
}
