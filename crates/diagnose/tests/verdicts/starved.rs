//! Hosts without enough CPU time, and shapers on the sender's interface.

use std::collections::BTreeMap;

use landspeed_diagnose::diagnose;
use landspeed_model::{
    Cause, Confidence, CoreUse, Direction, HostSeries, NicSnapshot, QdiscDelta, QuotaUse, RunDocument, StreamEnd,
    Verdict,
};

use crate::beside::each_reading;
use crate::common::{Scenario, idle};

fn judge(document: &RunDocument) -> Verdict {
    diagnose(document, Direction::Upload)
}

/// Takes CPU time from one end of a run.
type Change = fn(&mut RunDocument, At);

/// A path that is full and holds a standing queue.
pub fn full_path() -> RunDocument {
    Scenario { flight_cwnd: 1.0, notsent: 3_000_000, fill: 0.9, srtt_us: 48_000, ..Scenario::default() }.document()
}

/// One end of a run.
#[derive(Debug, Clone, Copy)]
enum At {
    Sender,
    Receiver,
}

fn series(document: &mut RunDocument, at: At) -> &mut HostSeries {
    let ends = &mut document.host_series;
    match at {
        At::Sender => ends.client.as_mut(),
        At::Receiver => ends.server.as_mut(),
    }
    .expect("sampled")
}

fn end(document: &mut RunDocument, at: At) -> &mut StreamEnd {
    let stream = &mut document.streams[0];
    match at {
        At::Sender => stream.sender.as_mut(),
        At::Receiver => stream.receiver.as_mut(),
    }
    .expect("reported")
}

fn quota(throttled_periods: u64) -> QuotaUse {
    let directory = "/sys/fs/cgroup/cpu/a.slice".to_owned();
    QuotaUse { group: "/a.slice".into(), directory, cores: 0.3, periods: 54, throttled_periods }
}

#[test]
fn a_host_without_cpu_time_makes_network_causes_hints() {
    let calm = judge(&full_path());
    assert_eq!((calm.cause, calm.confidence), (Cause::NetworkPath, Confidence::High), "{}", calm.summary);
    let shortages: [(&str, Change); 4] = [
        ("a stream thread waited 20 % of the time", |document, at| {
            let end = end(document, at);
            end.thread_wait_ns = Some(2_000_000_000);
        }),
        ("the CPU quota of /a.slice was used up in 15 % of its periods", |document, at| {
            series(document, at).quota = Some(quota(8));
        }),
        ("core 0 was full of softirqs", |document, at| {
            let full = CoreUse { softirq: 0.7, system: 0.25, idle: 0.05, ..CoreUse::default() };
            for sample in &mut series(document, at).samples {
                sample.cores = vec![Some(full), Some(idle())];
            }
        }),
        ("the hypervisor took 5.0 % of its CPU time", |document, at| {
            let stolen = CoreUse { steal: 0.05, idle: 0.95, ..CoreUse::default() };
            for sample in &mut series(document, at).samples {
                sample.cores = vec![Some(stolen); 2];
            }
        }),
    ];
    for (reason, change) in shortages {
        for at in [At::Sender, At::Receiver] {
            let mut document = full_path();
            change(&mut document, at);
            let verdict = judge(&document);
            if verdict.cause == Cause::NetworkPath {
                assert_eq!(verdict.confidence, Confidence::Low, "{reason} at {at:?}: {}", verdict.summary);
                let missing = verdict.missing.join("\n");
                assert!(missing.contains(reason), "{reason} at {at:?}: {missing}");
                assert!(verdict.next_step.starts_with("Run again with idle cores"), "{}", verdict.next_step);
            } else {
                // Softirqs that fill a core are the limit themselves.
                assert!(
                    matches!(verdict.cause, Cause::SenderCpu | Cause::ReceiverCpu),
                    "{reason}: {}",
                    verdict.summary
                );
            }
        }
    }
}

#[test]
fn a_quota_at_either_end_of_a_run_is_named() {
    let slow_sender = || Scenario { fill: 0.02, flight_cwnd: 0.2, notsent: 0, ..Scenario::default() }.document();
    let slow_reader = || Scenario { recv_fill: 0.6, rwnd: 0.9, flight_wnd: 1.0, ..Scenario::default() }.document();
    for (at, mut document, host) in [(At::Sender, slow_sender(), "client"), (At::Receiver, slow_reader(), "server")] {
        series(&mut document, at).quota = Some(quota(34));
        let verdict = judge(&document);
        assert_eq!(verdict.cause, Cause::CpuQuota, "{at:?}: {}", verdict.summary);
        assert!(verdict.summary.contains("(0.30 cores)") && verdict.summary.contains("63 %"), "{}", verdict.summary);
        assert_eq!(verdict.place, Some(format!("{host}, control group /a.slice")));
        let next = &verdict.next_step;
        assert!(
            next.contains("cpu.cfs_quota_us") && next.contains("cat /sys/fs/cgroup/cpu/a.slice/cpu.stat"),
            "{next}"
        );
    }
}

#[test]
fn a_throttled_reader_with_empty_queues_is_named() {
    let mut document = Scenario::default().document();
    series(&mut document, At::Receiver).quota = Some(quota(53));
    let receiver = end(&mut document, At::Receiver);
    // It runs for 0.3 of the time, and wants to run for the rest.
    receiver.thread_wait_ns = Some(6_600_000_000);
    let verdict = judge(&document);
    assert_eq!(verdict.cause, Cause::CpuQuota, "{}", verdict.summary);
    assert_eq!(verdict.place.as_deref(), Some("server, control group /a.slice"));
}

#[test]
fn an_invisible_quota_is_missing_and_not_absent() {
    let mut document = Scenario { fill: 0.02, flight_cwnd: 0.2, notsent: 0, ..Scenario::default() }.document();
    let why = "control group /a is not visible below /sys/fs/cgroup".to_owned();
    series(&mut document, At::Sender).unavailable = BTreeMap::from([("quota".to_owned(), why)]);
    let missing = judge(&document).missing.join("\n");
    assert!(missing.contains("the CPU quota of the client (control group /a is not visible"), "{missing}");
}

#[test]
fn an_htb_class_on_the_own_interface_is_named_with_gso_packets() {
    for congestion in ["cubic", "reno", "bbr"] {
        let scenario =
            Scenario { fill: 0.9, flight_cwnd: 0.95, notsent: 3_000_000, congestion, ..Scenario::default() };
        let judged = |overlimits: u64| {
            let mut document = scenario.document();
            let qdisc = QdiscDelta { kind: "htb".into(), packets: 100_000, overlimits, ..QdiscDelta::default() };
            series(&mut document, At::Sender).qdiscs = vec![qdisc];
            let offloads = BTreeMap::from([("tx-tcp-segmentation".to_owned(), true)]);
            let nic = NicSnapshot { name: "eth0".into(), mtu_bytes: 1500, offloads, ..NicSnapshot::default() };
            document.hosts.client.as_mut().expect("a snapshot").nic = Some(nic);
            judge(&document)
        };
        // One event for each packet of 45 segments.
        let verdict = judged(2200);
        assert_eq!(verdict.cause, Cause::LocalQdisc, "{congestion}: {}", verdict.summary);
        assert_ne!(judged(100).cause, Cause::LocalQdisc, "{congestion}: one packet of twenty had to wait");
    }
}

#[test]
fn the_rate_of_the_class_that_carries_the_flow_decides() {
    // Single segments: few overlimit events for many packets.
    let scenario =
        Scenario { goodput_bps: 0.5e9, fill: 0.9, flight_cwnd: 0.95, notsent: 3_000_000, ..Scenario::default() };
    let judged = |shaped_mbps: u64, bytes: u64, overlimits: u64| {
        let mut document = scenario.document();
        let qdisc = QdiscDelta {
            kind: "htb".into(),
            packets: 500_000,
            bytes: 700_000_000,
            overlimits,
            ..QdiscDelta::default()
        };
        let class = QdiscDelta { bytes, shaped_bps: Some(shaped_mbps * 1_000_000), ..qdisc.clone() };
        let host = series(&mut document, At::Sender);
        (host.qdiscs, host.classes) = (vec![qdisc], vec![class]);
        judge(&document)
    };
    let verdict = judged(525, 700_000_000, 2_000);
    assert_eq!((verdict.cause, verdict.confidence), (Cause::LocalQdisc, Confidence::High), "{}", verdict.summary);
    assert!(verdict.summary.contains("no faster than 525 Mb/s"), "{}", verdict.summary);
    // Bursts exceed the rate for a moment, but the flow is far below it.
    assert_ne!(judged(1_000, 700_000_000, 400_000).cause, Cause::LocalQdisc);
    // Other traffic is in the slow class.
    assert_ne!(judged(525, 7_000_000, 2_000).cause, Cause::LocalQdisc);
}

#[test]
fn a_class_slower_than_the_flow_is_not_its_shaper() {
    let scenario =
        Scenario { goodput_bps: 0.19e9, fill: 0.9, flight_cwnd: 0.95, notsent: 3_000_000, ..Scenario::default() };
    let judged = |rates_mbps: &[u64]| {
        let mut document = scenario.document();
        let root = QdiscDelta {
            kind: "htb".into(),
            parent: "root".into(),
            packets: 300_000,
            bytes: 400_000_000,
            overlimits: 290_000,
            ..QdiscDelta::default()
        };
        let class =
            |mbps: &u64| QdiscDelta { bytes: 200_000_000, shaped_bps: Some(mbps * 1_000_000), ..root.clone() };
        let host = series(&mut document, At::Sender);
        (host.classes, host.qdiscs) = (rates_mbps.iter().map(class).collect(), vec![root]);
        judge(&document)
    };
    let verdict = judged(&[100, 200]);
    assert_eq!((verdict.cause, verdict.confidence), (Cause::LocalQdisc, Confidence::High), "{}", verdict.summary);
    assert!(verdict.summary.contains("no faster than 200 Mb/s"), "{}", verdict.summary);
    for others in [&[100, 1_000][..], &[100]] {
        let verdict = judged(others);
        assert_ne!(verdict.cause, Cause::LocalQdisc, "{others:?}: {}", verdict.summary);
    }
}

#[test]
fn a_path_that_goes_down_is_named_with_the_time() {
    let down = |reads: bool| {
        each_reading(full_path(), move |k, tcp| {
            if k > 26 {
                (tcp.unacked, tcp.backoff, tcp.last_ack_recv_ms) = (500, 3, if reads { (k - 26) * 100 } else { 150 });
            }
        })
    };
    let verdict = judge(&down(true));
    assert_eq!((verdict.cause, verdict.confidence), (Cause::PathDown, Confidence::High), "{}", verdict.summary);
    assert!(verdict.summary.contains("after 2.60 s (from client to server)"), "{}", verdict.summary);
    // A receiver whose window is closed answers every probe.
    assert_ne!(judge(&down(false)).cause, Cause::PathDown);
}

#[test]
fn drops_in_the_own_qdisc_limit_a_window_that_is_never_full() {
    let scenario = Scenario { flight_cwnd: 0.68, resent_ratio: 0.0, ..Scenario::default() };
    let judged = |qdiscs: &[(&str, &str, u64)]| {
        let mut document = scenario.document();
        let qdisc = |&(kind, parent, drops): &(&str, &str, u64)| {
            let (kind, parent) = (kind.to_owned(), parent.to_owned());
            QdiscDelta { kind, parent, packets: 85_000, drops, ..QdiscDelta::default() }
        };
        series(&mut document, At::Sender).qdiscs = qdiscs.iter().map(qdisc).collect();
        judge(&document)
    };
    for drops in [&[("pfifo", "root", 900)][..], &[("mq", "root", 0), ("clsact", "ingress", 900)]] {
        let verdict = judged(drops);
        let named = (verdict.cause, verdict.confidence);
        assert_eq!(named, (Cause::LocalQdisc, Confidence::Medium), "{drops:?}: {}", verdict.summary);
    }
    assert_ne!(judged(&[("pfifo", "root", 50)]).cause, Cause::LocalQdisc, "slow start overflows the queue once");
    // A root counts what its leaf drops, and `ingress` counts what was received.
    let twice = judged(&[("prio", "root", 60), ("pfifo", "1:1", 60), ("ingress", "ingress", 900)]);
    assert_ne!(twice.cause, Cause::LocalQdisc, "{}", twice.summary);
}

#[test]
fn a_long_queue_is_the_path_also_between_two_ends_of_one_host() {
    let judged = |srtt_us: u32| {
        let scenario = Scenario {
            fill: 0.98,
            flight_cwnd: 0.53,
            notsent: 0,
            sndbuf_limited: 0.7,
            srtt_us,
            ..Scenario::default()
        };
        let mut document = scenario.document();
        let (client, server) = (document.hosts.client.clone(), document.hosts.server.as_mut());
        server.expect("a snapshot").hostname = client.expect("a snapshot").hostname;
        judge(&document)
    };
    let verdict = judged(440_000);
    assert!(verdict.cause == Cause::NetworkPath || verdict.confidence == Confidence::Low, "{}", verdict.summary);
    assert_eq!(judged(20_000).cause, Cause::SendBuffer);
}
