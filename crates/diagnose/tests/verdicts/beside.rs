//! Verdicts on watched flows with readings besides the socket: quota, storage, threads, requests, packet
//! filters.

use landspeed_model::{
    BlockedThread, Cause, Confidence, Direction, NumaNode, QdiscDelta, QuotaUse, RunDocument, TcpInfo, ThreadUse,
    ThreadWaits, Verdict, WatchHost,
};

use crate::common::Scenario;
use crate::watched::{at_receiver, at_sender, judge_watched};

fn named(verdict: &Verdict) -> (Cause, Confidence) {
    (verdict.cause, verdict.confidence)
}

/// A sender whose queue is empty.
fn late() -> RunDocument {
    at_sender(&Scenario { fill: 0.02, flight_cwnd: 0.2, notsent: 0, sender_thread: 0.0, ..Scenario::default() })
}

/// A sender whose queue and congestion window are full, with losses.
fn lossy() -> RunDocument {
    at_sender(&Scenario {
        fill: 0.9,
        flight_cwnd: 1.0,
        notsent: 3_000_000,
        resent_ratio: 0.01,
        ..Scenario::default()
    })
}

/// A receiver whose queue is full.
fn behind() -> RunDocument {
    at_receiver(&Scenario { recv_fill: 0.6, receiver_thread: 0.0, ..Scenario::default() })
}

pub fn quota(throttled_periods: u64) -> WatchHost {
    let quota =
        QuotaUse { group: "/a.slice".into(), directory: String::new(), cores: 0.3, periods: 100, throttled_periods };
    WatchHost { quota: Some(quota), ..WatchHost::default() }
}

pub fn blocked(share: f64, bps: Option<f64>) -> WatchHost {
    let thread = BlockedThread { tid: 12, name: "rsync".into(), share, readings: 50 };
    WatchHost { blocked: Some(thread), storage_read_bps: bps, storage_write_bps: bps, ..WatchHost::default() }
}

pub fn busy(cpu_share: f64, wait_share: f64, threads: u32) -> WatchHost {
    let thread = ThreadUse { tid: 34, name: "ssh".into(), cpu_share, wait_share, cpu: Some(1) };
    WatchHost { busiest: Some(thread), threads: Some(threads), ..WatchHost::default() }
}

/// Changes each sample of the side that reported.
pub fn each_reading(mut document: RunDocument, change: impl Fn(u32, &mut TcpInfo)) -> RunDocument {
    let ends = document.streams.iter_mut().flat_map(|s| s.sender.iter_mut().chain(&mut s.receiver));
    for (k, sample) in (0..).zip(ends.flat_map(|end| &mut end.samples)) {
        change(k, sample.tcp.as_mut().expect("a reading"));
    }
    document
}

#[test]
fn exhausted_cpu_quota_is_named_with_its_cgroup() {
    let verdict = judge_watched(&late(), Direction::Upload, &quota(60));
    assert_eq!(named(&verdict), (Cause::CpuQuota, Confidence::Medium), "{}", verdict.summary);
    assert!(
        verdict.summary.contains("/a.slice (0.30 cores) on the local host was used up in 60 %"),
        "{}",
        verdict.summary
    );
    assert!(verdict.next_step.contains("cpu.max"), "{}", verdict.next_step);
    let verdict = judge_watched(&behind(), Direction::Download, &quota(60));
    assert_eq!(named(&verdict), (Cause::CpuQuota, Confidence::Medium), "{}", verdict.summary);
}

#[test]
fn harmless_cpu_quota_is_not_named() {
    assert_ne!(judge_watched(&late(), Direction::Upload, &quota(10)).cause, Cause::CpuQuota);
    assert_ne!(judge_watched(&lossy(), Direction::Upload, &quota(90)).cause, Cause::CpuQuota, "data always waits");
}

#[test]
fn a_thread_blocked_in_file_io_is_named() {
    let verdict = judge_watched(&late(), Direction::Upload, &blocked(0.8, Some(1e9)));
    assert_eq!(named(&verdict), (Cause::Storage, Confidence::Medium), "{}", verdict.summary);
    assert!(verdict.summary.contains("rsync (TID 12) was blocked in file I/O 80 %"), "{}", verdict.summary);
    let verdict = judge_watched(&late(), Direction::Upload, &blocked(0.8, None));
    assert_eq!(named(&verdict), (Cause::Storage, Confidence::Low), "{}", verdict.summary);
    assert!(verdict.missing.iter().any(|what| what.contains("read from storage")), "{:?}", verdict.missing);
    let verdict = judge_watched(&behind(), Direction::Download, &blocked(0.5, Some(1e9)));
    assert_eq!(named(&verdict), (Cause::Storage, Confidence::Medium), "{}", verdict.summary);
}

#[test]
fn a_blocked_thread_whose_queue_is_full_is_not_the_limit() {
    assert_eq!(judge_watched(&late(), Direction::Upload, &blocked(0.1, Some(1e9))).cause, Cause::Application);
    assert_ne!(judge_watched(&lossy(), Direction::Upload, &blocked(0.9, Some(1e9))).cause, Cause::Storage);
}

#[test]
fn busy_thread_among_several_has_low_confidence() {
    let verdict = judge_watched(&late(), Direction::Upload, &busy(0.97, 0.0, 8));
    assert_eq!(named(&verdict), (Cause::SenderCpu, Confidence::Low), "{}", verdict.summary);
    assert!(verdict.summary.contains("busiest thread ssh (TID 34)"), "{}", verdict.summary);
    assert!(verdict.next_step.contains("perf top -t 34"), "{}", verdict.next_step);
    assert_eq!(judge_watched(&late(), Direction::Upload, &busy(0.3, 0.0, 8)).cause, Cause::Application);
    assert_ne!(judge_watched(&lossy(), Direction::Upload, &busy(0.97, 0.0, 8)).cause, Cause::SenderCpu);
}

#[test]
fn advice_separates_thread_and_receive_queue_on_one_core() {
    let mut beside = busy(0.97, 0.0, 1);
    beside.receive_cpu = Some(1);
    let verdict = judge_watched(&behind(), Direction::Download, &beside);
    assert_eq!(verdict.cause, Cause::ReceiverCpu, "{}", verdict.summary);
    assert!(verdict.next_step.contains("Its core 1 also takes in the flow's segments"), "{}", verdict.next_step);
    beside.receive_cpu = Some(0);
    let verdict = judge_watched(&behind(), Direction::Download, &beside);
    assert!(!verdict.next_step.contains("takes in"), "one node: {}", verdict.next_step);
}

#[test]
fn a_receive_queue_on_another_numa_node_is_evidence() {
    let node = |id: u32, cpus: &str| NumaNode { id, cpus: cpus.into() };
    let mut document = behind();
    let host = document.hosts.client.get_or_insert_default();
    host.numa = vec![node(0, "0-7"), node(1, "8-15")];
    let mut beside = busy(0.97, 0.0, 1);
    for (receive, far) in [(9, true), (2, false), (99, false)] {
        beside.receive_cpu = Some(receive);
        let verdict = judge_watched(&document, Direction::Download, &beside);
        assert_eq!(verdict.cause, Cause::ReceiverCpu, "{}", verdict.summary);
        let named = verdict.evidence.iter().any(|reading| {
            reading.met && reading.metric.contains("core (1, node 0) and its receive queue's (9, node 1)")
        });
        assert_eq!(named, far, "core {receive}: {:?}", verdict.evidence);
        assert_eq!(verdict.next_step.contains("`numactl -N 1`"), far, "core {receive}: {}", verdict.next_step);
    }
    beside.receive_cpu = Some(9);
    let verdict = judge_watched(&late(), Direction::Upload, &beside);
    assert!(verdict.evidence.iter().all(|reading| !reading.metric.contains("NUMA")), "a host with one node");
}

#[test]
fn frequent_requeues_are_evidence_for_local_qdisc() {
    let with = |requeues: u64| {
        let mut document = lossy();
        let (drops, bytes, packets) = (20_000, 1_300_000_000, 900_000);
        let qdisc = QdiscDelta {
            kind: "tbf".into(),
            parent: "root".into(),
            drops,
            bytes,
            packets,
            requeues,
            ..QdiscDelta::default()
        };
        document.host_series.client.as_mut().expect("a series").qdiscs.push(qdisc);
        let verdict = judge_watched(&document, Direction::Upload, &WatchHost::default());
        assert_eq!(verdict.cause, Cause::LocalQdisc, "{}", verdict.summary);
        verdict.evidence.iter().any(|reading| reading.metric.starts_with("requeues over packets"))
    };
    assert_eq!([0, 900, 90_000].map(with), [false, false, true]);
}

#[test]
fn a_thread_that_waits_for_a_core_is_no_slow_application() {
    let verdict = judge_watched(&late(), Direction::Upload, &busy(0.2, 0.62, 1));
    assert_eq!(named(&verdict), (Cause::SenderCpu, Confidence::Medium), "{}", verdict.summary);
    assert!(verdict.summary.contains("waited for it 62 %"), "{}", verdict.summary);
    assert!(verdict.next_step.contains("taskset -cp 34"), "{}", verdict.next_step);
    let verdict = judge_watched(&late(), Direction::Upload, &busy(0.2, 0.62, 8));
    assert_eq!(named(&verdict), (Cause::SenderCpu, Confidence::Low), "one of several: {}", verdict.summary);
    // It mostly sleeps, and may also lack a core.
    let verdict = judge_watched(&late(), Direction::Upload, &busy(0.1, 0.2, 1));
    assert_eq!(named(&verdict), (Cause::Application, Confidence::Low), "{}", verdict.summary);
    let verdict = judge_watched(&behind(), Direction::Download, &busy(0.2, 0.62, 1));
    assert_eq!(verdict.cause, Cause::ReceiverCpu, "{}", verdict.summary);
}

/// What the serving thread waits for: a receive call, a send call, poll, sleep.
fn waits(receive: f64, send: f64, poll: f64, sleep: f64) -> WatchHost {
    let (tid, name, readings) = (34, "nginx".to_owned(), 50);
    let waits = ThreadWaits { tid, name, readings, runs: 0.0, receive, send, poll, sleep, other: 0.0 };
    WatchHost { waits: Some(waits), ..WatchHost::default() }
}

#[test]
fn short_gaps_between_requests_are_told_by_the_threads_system_call() {
    // Request and answer within one tick, and gaps of 30 ms: the ages are the same and below 20 ms mostly.
    let short = each_reading(late(), |k, tcp| {
        tcp.busy_time_us = tcp.busy_time_us.map(|us| us / 10);
        (tcp.unacked, tcp.last_data_sent_ms, tcp.last_data_recv_ms) = (0, k % 30, k % 30);
        tcp.min_rtt_us = Some(40);
        tcp.bytes_received = Some(u64::from(k) * 100);
    });
    let unknown = judge_watched(&short, Direction::Upload, &WatchHost::default());
    assert!(unknown.confidence == Confidence::Low, "{:?} {}", unknown.cause, unknown.summary);
    assert!(unknown.missing.iter().any(|what| what.contains("which end waits")), "{:?}", unknown.missing);
    let verdict = judge_watched(&short, Direction::Upload, &waits(0.9, 0.0, 0.0, 0.0));
    assert_eq!(named(&verdict), (Cause::RequestGaps, Confidence::Medium), "{}", verdict.summary);
    let verdict = judge_watched(&short, Direction::Upload, &waits(0.1, 0.0, 0.0, 0.9));
    assert_eq!(named(&verdict), (Cause::Application, Confidence::Medium), "{}", verdict.summary);
    assert!(verdict.next_step.contains("nginx (TID 34) sleeps"), "{}", verdict.next_step);
    let verdict = judge_watched(&short, Direction::Upload, &waits(0.0, 0.0, 0.9, 0.0));
    assert_eq!(verdict.confidence, Confidence::Low, "poll does not say for whom: {}", verdict.summary);
    let verdict = judge_watched(&late(), Direction::Upload, &waits(0.0, 0.9, 0.0, 0.0));
    assert_ne!(verdict.cause, Cause::Application, "it waits for space: {}", verdict.summary);
    // Over 20 ms equal ages mean that the answer came after the request.
    let long = each_reading(short, |_, tcp| {
        (tcp.min_rtt_us, tcp.last_data_sent_ms, tcp.last_data_recv_ms) = (Some(20_000), 30, 30);
    });
    let verdict = judge_watched(&long, Direction::Upload, &WatchHost::default());
    assert_eq!(named(&verdict), (Cause::RequestGaps, Confidence::Medium), "{}", verdict.summary);
}

#[test]
fn request_gaps_differ_from_slow_answers() {
    let serves = |sent_ms: u32, recv_ms: u32| {
        each_reading(late(), |k, tcp| {
            tcp.busy_time_us = tcp.busy_time_us.map(|us| us / 10);
            (tcp.unacked, tcp.last_data_sent_ms, tcp.last_data_recv_ms) = (0, sent_ms, recv_ms);
            tcp.bytes_received = Some(u64::from(k) * 100);
        })
    };
    let verdict = judge_watched(&serves(40, 60), Direction::Upload, &WatchHost::default());
    assert_eq!(named(&verdict), (Cause::RequestGaps, Confidence::Medium), "{}", verdict.summary);
    let verdict = judge_watched(&serves(60, 40), Direction::Upload, &WatchHost::default());
    assert_eq!(verdict.cause, Cause::Application, "the request waits for its answer: {}", verdict.summary);
    let verdict = judge_watched(&serves(2, 90), Direction::Upload, &WatchHost::default());
    assert_eq!(verdict.cause, Cause::Application, "the answer may have a second part: {}", verdict.summary);
    let silent = each_reading(serves(40, 60), |_, tcp| tcp.bytes_received = Some(0));
    assert_eq!(judge_watched(&silent, Direction::Upload, &WatchHost::default()).cause, Cause::Application);
}

#[test]
fn request_gaps_are_named_at_the_requesting_host() {
    let asks = |sent_ms: u32, recv_ms: u32| {
        let keeps_up = at_receiver(&Scenario { receiver_thread: 0.0, recv_fill: 0.0, ..Scenario::default() });
        each_reading(keeps_up, |k, tcp| {
            (tcp.last_data_sent_ms, tcp.last_data_recv_ms) = (sent_ms, recv_ms);
            tcp.data_segs_out = Some(k);
        })
    };
    let verdict = judge_watched(&asks(90, 60), Direction::Download, &WatchHost::default());
    assert_eq!(named(&verdict), (Cause::RequestGaps, Confidence::Medium), "{}", verdict.summary);
    let verdict = judge_watched(&asks(40, 60), Direction::Download, &WatchHost::default());
    assert_eq!(named(&verdict), (Cause::Application, Confidence::Low), "the answer is late: {}", verdict.summary);
    assert!(verdict.place.as_deref().is_some_and(|place| place.starts_with("remote host")), "{:?}", verdict.place);
}

#[test]
fn packet_filter_drops_are_named_only_with_lost_segments() {
    let drops = |nft_drops: u64| WatchHost { nft_drops: Some(nft_drops), ..WatchHost::default() };
    let verdict = judge_watched(&lossy(), Direction::Upload, &drops(100_000));
    assert_eq!(verdict.cause, Cause::Firewall, "{}", verdict.summary);
    assert!(verdict.next_step.contains("nft list ruleset"), "{}", verdict.next_step);
    assert_ne!(judge_watched(&lossy(), Direction::Upload, &drops(5)).cause, Cause::Firewall, "too few");
    assert_ne!(judge_watched(&late(), Direction::Upload, &drops(100_000)).cause, Cause::Firewall, "nothing is lost");
    let disordered = |per_reading: u32| {
        let receiver = at_receiver(&Scenario { receiver_thread: 0.0, ..Scenario::default() });
        each_reading(receiver, move |k, tcp| tcp.rcv_ooopack = Some(k * per_reading))
    };
    let verdict = judge_watched(&disordered(100), Direction::Download, &drops(50));
    assert_eq!(named(&verdict), (Cause::Firewall, Confidence::Low), "{}", verdict.summary);
    let verdict = judge_watched(&disordered(1), Direction::Download, &drops(50_000));
    assert_ne!(verdict.cause, Cause::Firewall, "others' packets");
}

#[test]
fn backlog_drops_are_named_only_with_out_of_order_segments() {
    let receiver = |dropped: u64, per_reading: u32| {
        let receiver = at_receiver(&Scenario { receiver_thread: 0.0, ..Scenario::default() });
        let mut document = each_reading(receiver, move |k, tcp| tcp.rcv_ooopack = Some(k * per_reading));
        document.host_series.client.as_mut().expect("a series").softnet.dropped = dropped;
        document
    };
    let verdict = judge_watched(&receiver(60, 50), Direction::Download, &WatchHost::default());
    assert_eq!(named(&verdict), (Cause::ReceiverHostDrops, Confidence::Low), "{}", verdict.summary);
    for (dropped, per_reading) in [(60, 0), (0, 50), (60_000, 1)] {
        let verdict = judge_watched(&receiver(dropped, per_reading), Direction::Download, &WatchHost::default());
        assert_ne!(verdict.cause, Cause::ReceiverHostDrops, "{dropped} {per_reading}: {}", verdict.summary);
    }
}

#[test]
fn shared_qdisc_drops_have_low_confidence() {
    let with = |drops: u64, bytes: u64| {
        let mut document = lossy();
        let qdisc = QdiscDelta { kind: "tbf".into(), parent: "root".into(), drops, bytes, ..QdiscDelta::default() };
        document.host_series.client.as_mut().expect("a series").qdiscs.push(qdisc);
        judge_watched(&document, Direction::Upload, &WatchHost::default())
    };
    // 1 Gb/s for 10 s.
    let verdict = with(20_000, 1_300_000_000);
    assert_eq!(named(&verdict), (Cause::LocalQdisc, Confidence::Medium), "{}", verdict.summary);
    let verdict = with(20_000, 9_000_000_000);
    assert_eq!(named(&verdict), (Cause::LocalQdisc, Confidence::Low), "{}", verdict.summary);
    assert_ne!(with(3, 9_000_000_000).cause, Cause::LocalQdisc);
}
