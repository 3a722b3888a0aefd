//! Every measured cause is named from figures like the measured ones (docs/verdicts-accuracy.md), for cubic and BBR.

use crate::beside::each_reading;
use crate::common::{Scenario, idle, softirq_core};
use landspeed_diagnose::diagnose;
use landspeed_model::{
    Cause, Confidence, CoreUse, CounterDelta, Direction, LossLocation, PlacedLoss, QdiscDelta, RunDocument, Verdict,
};

fn judge(document: &RunDocument) -> Verdict {
    diagnose(document, Direction::Upload)
}

#[track_caller]
fn names(scenario: &Scenario, cause: Cause, confidence: Confidence) -> Verdict {
    is(judge(&scenario.document()), cause, confidence)
}

#[track_caller]
fn is(verdict: Verdict, cause: Cause, confidence: Confidence) -> Verdict {
    assert_eq!((verdict.cause, verdict.confidence), (cause, confidence), "{verdict:#?}");
    verdict
}

#[test]
fn a_small_send_buffer_is_named() {
    let cubic = Scenario {
        sndbuf: 64 << 10,
        sndbuf_limited: 0.01,
        fill: 1.06,
        flight_cwnd: 0.15,
        flight_wnd: 0.05,
        notsent: 0,
        ..Scenario::default()
    };
    names(&cubic, Cause::SendBuffer, Confidence::High);
    let bbr = Scenario {
        congestion: "bbr",
        sndbuf_limited: 0.42,
        fill: 1.14,
        flight_cwnd: 0.30,
        flight_wnd: 0.20,
        notsent: 9 << 10,
        ..cubic
    };
    names(&bbr, Cause::SendBuffer, Confidence::High);
}

#[test]
fn a_small_receive_buffer_is_named() {
    let cubic = Scenario {
        rcvbuf: 64 << 10,
        rwnd: 1.0,
        fill: 0.9,
        flight_cwnd: 0.37,
        flight_wnd: 1.04,
        notsent: 600_000,
        ..Scenario::default()
    };
    names(&cubic, Cause::ReceiverWindow, Confidence::High);
    let bbr = Scenario { congestion: "bbr", rwnd: 0.47, flight_cwnd: 0.29, flight_wnd: 1.03, ..cubic };
    names(&bbr, Cause::ReceiverWindow, Confidence::High);
}

#[test]
fn a_slow_reader_is_named() {
    let cubic = Scenario {
        rwnd: 1.0,
        fill: 0.9,
        flight_cwnd: 0.24,
        flight_wnd: 1.0,
        notsent: 3_000_000,
        recv_fill: 0.55,
        ..Scenario::default()
    };
    names(&cubic, Cause::SlowReader, Confidence::High);
    names(
        &Scenario { congestion: "bbr", rwnd: 0.45, flight_cwnd: 0.43, ..cubic },
        Cause::SlowReader,
        Confidence::High,
    );
}

#[test]
fn a_slow_application_is_named() {
    let cubic = Scenario {
        fill: 0.06,
        flight_cwnd: 0.16,
        flight_wnd: 0.05,
        notsent: 4 << 10,
        wait: 0.8,
        ..Scenario::default()
    };
    names(&cubic, Cause::Application, Confidence::High);
    names(
        &Scenario { congestion: "bbr", fill: 0.20, flight_cwnd: 0.13, ..cubic.clone() },
        Cause::Application,
        Confidence::High,
    );
    // Without the sender's wait time the same queue is only weak evidence.
    names(&Scenario { wait: 0.0, ..cubic }, Cause::Application, Confidence::Medium);
}

#[test]
fn an_application_rate_that_was_reached_is_named() {
    let mut scenario = Scenario { goodput_bps: 0.99e9, wait: 0.9, fill: 0.02, notsent: 0, ..Scenario::default() };
    scenario.parameters.rate_bps = Some(1_000_000_000);
    let verdict = names(&scenario, Cause::Application, Confidence::High);
    assert!(verdict.next_step.contains("--rate"), "{}", verdict.next_step);
}

/// 0.1 % loss over 20 ms: CUBIC in its Reno-friendly region reaches 21.6 Mb/s (RFC 9438 §4.3, MSS 1448).
pub fn lossy() -> Scenario {
    Scenario {
        goodput_bps: 20e6,
        fill: 0.88,
        flight_cwnd: 1.03,
        flight_wnd: 0.03,
        notsent: 2_600_000,
        resent_ratio: 0.001,
        srtt_us: 20_300,
        ..Scenario::default()
    }
}

#[test]
fn random_loss_is_named() {
    // Without different windows at losses it may be a policer.
    names(&lossy(), Cause::NetworkLoss, Confidence::Low);
}

/// [`lossy`] with a loss in every fourth sample, at the congestion windows in `windows` in turn.
pub fn losses_at(windows: &[u32]) -> RunDocument {
    let mut document = lossy().document();
    let mut delivered = 0;
    for (k, sample) in document.streams[0].sender.as_mut().unwrap().samples.iter_mut().enumerate() {
        let tcp = sample.tcp.as_mut().unwrap();
        // In every fourth sample the window is reduced to 0.7 of its value.
        let peak = windows[k / 4 % windows.len()];
        tcp.snd_cwnd = if k % 4 == 3 { peak * 7 / 10 } else { peak };
        tcp.unacked = tcp.snd_cwnd;
        delivered += tcp.snd_cwnd;
        tcp.delivered = Some(delivered);
        tcp.total_retrans = k as u32 / 4 + u32::from(k % 4 == 3);
        tcp.delivery_rate_bytes_per_s = Some(u64::from(tcp.snd_cwnd) * 1448 * 50);
    }
    document
}

#[test]
fn losses_at_varying_windows_are_random() {
    let verdict = judge(&losses_at(&[300, 1000, 500, 1400, 700, 400, 900]));
    is(verdict, Cause::NetworkLoss, Confidence::High);
}

#[test]
fn losses_at_one_window_indicate_a_shallow_buffer() {
    is(judge(&losses_at(&[1000, 1010, 990])), Cause::ShallowBuffer, Confidence::Low);
}

#[test]
fn retransmitted_syns_are_not_slow_start_overshoot() {
    let judged = |before: u32, early: u32| {
        let mut document = Scenario {
            resent_ratio: 0.0,
            streams: 12,
            growth: 1.3,
            sender_thread: 0.0,
            receiver_thread: 0.0,
            ..lossy()
        }
        .document();
        for stream in &mut document.streams {
            for sample in &mut stream.sender.as_mut().expect("a sender").samples {
                let early = if sample.t_ns > 0 { early } else { 0 };
                sample.tcp.as_mut().expect("a reading").total_retrans = before + early;
            }
        }
        judge(&document)
    };
    assert_ne!(judged(1, 0).cause, Cause::SlowStartOvershoot, "one SYN of each stream");
    is(judged(1, 4), Cause::SlowStartOvershoot, Confidence::Medium);
}

#[test]
fn a_queue_that_overflows_is_named() {
    names(&Scenario { srtt_us: 38_000, ..lossy() }, Cause::NetworkCongestion, Confidence::High);
}

#[test]
fn loss_in_every_interval_may_be_a_shallow_buffer() {
    names(&Scenario { goodput_bps: 1e9, ..lossy() }, Cause::ShallowBuffer, Confidence::Low);
}

/// A path that reorders segments and delivers unevenly; both TCPs counted the same segments.
fn judge_reordering(congestion: &'static str, srtt_us: u32) -> Verdict {
    let scenario = Scenario { congestion, srtt_us, resent_ratio: 0.005, ..lossy() };
    let mut document = each_reading(scenario.document(), |k, tcp| {
        (tcp.reord_seen, tcp.dsack_dups) = (Some(k), Some(tcp.total_retrans));
        // Uneven delivery: one interval carries more than the next.
        tcp.delivered = Some(k * 450 + k % 2 * 200);
    });
    let sent = document.streams[0].sender.as_ref().unwrap().samples.last().unwrap().tcp.as_ref().unwrap();
    let sent = sent.data_segs_out;
    let received = document.streams[0].receiver.as_mut().unwrap().samples.last_mut().unwrap();
    received.tcp.as_mut().unwrap().data_segs_in = sent;
    judge(&document)
}

#[test]
fn reordering_on_a_full_path_is_a_hint() {
    for doubtful in [judge_reordering("cubic", 60_000), judge_reordering("bbr", 20_100)] {
        assert!(
            doubtful.cause != Cause::Reordering || doubtful.confidence == Confidence::Low,
            "{}",
            doubtful.summary
        );
    }
}

#[test]
fn reordering_does_not_limit_bbr_on_a_full_path() {
    let full = judge_reordering("bbr", 60_000);
    assert_eq!(full.cause, Cause::NetworkPath, "{full:#?}");
}

#[test]
fn a_full_path_without_loss_is_named() {
    let full = Scenario { resent_ratio: 0.0, srtt_us: 60_000, ..lossy() };
    names(&full, Cause::NetworkPath, Confidence::High);
    let bbr = Scenario { congestion: "bbr", flight_cwnd: 0.55, srtt_us: 21_000, ..full };
    names(&bbr, Cause::NetworkPath, Confidence::Medium);
}

#[test]
fn growing_window_is_named_with_a_warning() {
    let scenario = Scenario { resent_ratio: 0.0, growth: 3.0, ..lossy() };
    let verdict = names(&scenario, Cause::WindowGrowth, Confidence::High);
    assert!(verdict.summary.contains("growing"), "{}", verdict.summary);
    let warnings = landspeed_diagnose::warnings(&scenario.document());
    assert!(warnings.iter().any(|warning| warning.code == "still-ramping"), "{warnings:?}");
}

#[test]
fn a_pacing_rate_that_was_reached_is_named() {
    let scenario = Scenario { goodput_bps: 0.94e9, max_pacing_bps: Some(1e9), fill: 1.0, ..Scenario::default() };
    names(&scenario, Cause::Pacing, Confidence::High);
}

#[test]
fn fully_busy_sending_thread_is_named() {
    let scenario = Scenario {
        goodput_bps: 20e9,
        fill: 0.1,
        notsent: 10_000,
        sender_thread: 0.99,
        loopback: true,
        ..Scenario::default()
    };
    let verdict = names(&scenario, Cause::SenderCpu, Confidence::High);
    assert!(verdict.place.is_some());
}

#[test]
fn a_busy_receiving_thread_is_not_a_slow_reader() {
    let scenario = Scenario {
        goodput_bps: 20e9,
        rwnd: 0.9,
        flight_wnd: 1.0,
        recv_fill: 0.6,
        receiver_thread: 0.98,
        ..Scenario::default()
    };
    names(&scenario, Cause::ReceiverCpu, Confidence::High);
}

#[test]
fn queues_identify_the_slower_of_two_busy_ends() {
    let both = Scenario { sender_thread: 0.97, receiver_thread: 0.97, loopback: true, ..Scenario::default() };
    assert_eq!(judge(&both.document()).cause, Cause::SenderCpu);
    let behind = Scenario { rwnd: 0.8, flight_wnd: 1.0, recv_fill: 0.6, ..both };
    assert_eq!(judge(&behind.document()).cause, Cause::ReceiverCpu);
}

#[test]
fn a_softirq_bound_core_ranks_before_the_loss_it_causes() {
    let scenario = Scenario { receiver_cores: vec![idle(), softirq_core()], ..lossy() };
    let verdict = names(&scenario, Cause::ReceiverCpu, Confidence::High);
    assert_eq!(verdict.place.as_deref(), Some("server core 1, softirq"));
}

#[test]
fn streams_sharing_a_softirq_core_are_named() {
    let cores = vec![idle(), softirq_core()];
    let mut document = Scenario { receiver_cores: cores, streams: 3, ..lossy() }.document();
    for (stream, cpu) in document.streams.iter_mut().zip([1, 0, 1]) {
        stream.receiver.as_mut().expect("a report").incoming_cpu = Some(cpu);
    }
    let verdict = judge(&document);
    assert_eq!(verdict.cause, Cause::ReceiverCpu);
    assert!(verdict.next_step.starts_with("Streams 0 and 2 meet on core 1 of the server, which has 2 cores."));
    assert!(
        verdict.evidence.iter().any(|reading| reading.source == "streams[].receiver.incoming_cpu" && reading.met)
    );
    // If both sides share a host, the core is the sender's.
    document.path.as_mut().expect("a path").loopback = true;
    assert!(!judge(&document).next_step.contains("meet on core"));
}

#[test]
fn advice_moves_thread_pinned_to_its_receive_queue_core() {
    let mut document =
        Scenario { rwnd: 0.9, flight_wnd: 1.0, recv_fill: 0.6, receiver_thread: 0.98, ..Scenario::default() }
            .document();
    let end = document.streams[0].receiver.as_mut().expect("a report");
    (end.cpu, end.incoming_cpu) = (Some(1), Some(1));
    let verdict = judge(&document);
    assert_eq!(verdict.cause, Cause::ReceiverCpu);
    assert!(verdict.next_step.contains("use --peer-cpus auto"), "{}", verdict.next_step);
    document.streams[0].receiver.as_mut().expect("a report").incoming_cpu = Some(0);
    assert!(!judge(&document).next_step.contains("auto"));
}

#[test]
fn load_on_an_unused_core_does_not_matter() {
    let busy = CoreUse { user: 1.0, ..CoreUse::default() };
    let scenario = Scenario { sender_cores: vec![busy, idle()], receiver_cores: vec![busy, busy], ..lossy() };
    assert_eq!(judge(&scenario.document()).cause, Cause::NetworkLoss);
}

#[test]
fn an_interface_at_its_rate_is_named() {
    let scenario = Scenario {
        goodput_bps: 9.41e9,
        line_rate_bps: Some(10_000_000_000),
        flight_cwnd: 0.95,
        srtt_us: 40_000,
        ..Scenario::default()
    };
    names(&scenario, Cause::LinkRate, Confidence::High);
}

#[test]
fn a_flow_without_any_sign_is_undetermined() {
    let verdict = names(&Scenario::default(), Cause::Undetermined, Confidence::Low);
    assert!(!verdict.ruled_out.is_empty() && !verdict.next_step.is_empty());
}

#[test]
fn fully_delivered_udp_rate_is_application_limited() {
    let scenario = Scenario { wait: 0.9, ..Scenario::default() };
    is(judge(&scenario.udp(Some(1_000_000_000), 100_000, 100_000, 0)), Cause::Application, Confidence::High);
    is(judge(&scenario.udp(Some(1_000_000_000), 100_000, 99_900, 0)), Cause::Application, Confidence::Medium);
}

#[test]
fn udp_loss_is_attributed_to_network_socket_or_cpu() {
    let scenario = Scenario::default();
    is(judge(&scenario.udp(Some(1_000_000_000), 100_000, 80_000, 0)), Cause::NetworkLoss, Confidence::High);
    is(judge(&scenario.udp(Some(1_000_000_000), 100_000, 80_000, 20_000)), Cause::ReceiveBuffer, Confidence::Medium);
    let busy = Scenario { receiver_thread: 0.99, ..scenario };
    is(judge(&busy.udp(Some(1_000_000_000), 100_000, 80_000, 20_000)), Cause::ReceiverCpu, Confidence::High);
}

#[test]
fn refused_datagrams_are_attributed_to_qdisc_or_filter() {
    let judged = |drops: Option<u64>, counters: &[(&str, i64)]| {
        let mut document = Scenario::default().udp(Some(1_500_000_000), 70_000, 70_000, 0);
        let sender = document.streams[0].sender.as_mut().expect("a sender").udp.as_mut().expect("UDP");
        sender.send_errors = Some(30_000);
        let host = document.host_series.client.as_mut().expect("a series");
        let qdisc = |drops| QdiscDelta { kind: "fq".into(), parent: "root".into(), drops, ..QdiscDelta::default() };
        host.qdiscs = drops.map(qdisc).into_iter().collect();
        let counter = |&(name, delta): &(&str, i64)| CounterDelta { name: name.to_owned(), delta };
        host.snmp = counters.iter().map(counter).collect();
        judge(&document)
    };
    // Read in two namespaces: every send call that failed counts as discarded, at a qdisc and at a filter.
    let counted = |sent| [("Ip.OutRequests", 100_100), ("Ip.OutDiscards", 30_000), ("Ip.OutTransmits", sent)];
    let verdict = is(judged(Some(0), &counted(70_100)), Cause::Firewall, Confidence::Medium);
    assert!(verdict.summary.contains("refused 30 % of the packets (EPERM)"), "{}", verdict.summary);
    is(judged(Some(0), &[]), Cause::Firewall, Confidence::Low);
    let verdict = is(judged(Some(30_000), &counted(100_100)), Cause::LocalQdisc, Confidence::High);
    assert!(verdict.summary.contains("ENOBUFS"), "{}", verdict.summary);
    is(judged(Some(30_000), &[]), Cause::LocalQdisc, Confidence::High);
    // A device below this interface: a VLAN or a bond.
    is(judged(Some(0), &counted(100_100)), Cause::LocalQdisc, Confidence::Medium);
    is(judged(None, &[]), Cause::LocalQdisc, Confidence::Medium);
}

#[test]
fn losses_placed_in_the_hosts_are_not_the_networks_in_two_directions() {
    let judged = |losses: &[(LossLocation, u64)]| {
        let mut document = Scenario::default().udp(Some(1_000_000_000), 100_000, 80_000, 0);
        document.requested.direction = Direction::Both;
        let placed = |&(place, packets): &(LossLocation, u64)| {
            let source = String::new();
            PlacedLoss { place, packets, exact: false, source }
        };
        document.conservation.losses = losses.iter().map(placed).collect();
        judge(&document)
    };
    let verdict = judged(&[(LossLocation::SenderQdisc, 19_000), (LossLocation::Network, 1_000)]);
    is(verdict.clone(), Cause::Undetermined, Confidence::Low);
    assert!(verdict.missing.iter().any(|what| what.contains("two directions")), "{:?}", verdict.missing);
    is(judged(&[(LossLocation::Network, 25_000)]), Cause::NetworkLoss, Confidence::High);
    is(judged(&[]), Cause::NetworkLoss, Confidence::High);
}

#[test]
fn packet_filters_drop_ipv6_too() {
    let judged = |v6: bool, server: bool, counters: &[(&str, i64)]| {
        let mut document = if server { lossy().document() } else { Scenario::default().document() };
        if v6 {
            document.streams[0].client_addr = "[2001:db8::1]:4000".to_owned();
        }
        let ends = &mut document.host_series;
        let series = if server { ends.server.as_mut() } else { ends.client.as_mut() }.expect("a series");
        let counter = |&(name, delta): &(&str, i64)| CounterDelta { name: name.to_owned(), delta };
        series.snmp = counters.iter().map(counter).collect();
        judge(&document)
    };
    let resent = lossy().document().streams[0].sender.as_ref().unwrap().samples.last().unwrap().tcp.clone();
    let lost = i64::from(resent.expect("a reading").total_retrans);
    // Multicast for other groups is received and not delivered.
    let received = [
        ("Ip6InReceives", 100_000),
        ("Ip6InMcastPkts", 500),
        ("Ip6InDelivers", 99_500 - lost),
        ("Ip.InReceives", 40),
    ];
    let received = |delivered| [&received[..], &[("Ip.InDelivers", delivered)]].concat();
    is(judged(true, true, &received(40)), Cause::Firewall, Confidence::Medium);
    assert_ne!(judged(false, true, &received(40)).cause, Cause::Firewall, "the flow is of IPv4");
    let sent =
        [("Ip6OutRequests", 100_000), ("Ip6OutTransmits", 80_000), ("Ip.OutRequests", 90), ("Ip.OutTransmits", 90)];
    is(judged(true, false, &sent), Cause::Firewall, Confidence::Medium);
    assert_ne!(judged(false, false, &sent).cause, Cause::Firewall, "the flow is of IPv4");
}

#[test]
fn a_small_udp_buffer_is_named_with_the_needed_size() {
    let small = Scenario { rcvbuf: 65_536, ..Scenario::default() };
    let mut document = small.udp(Some(200_000_000), 100_000, 60_000, 40_000);
    for parameters in [&mut document.requested, document.effective.as_mut().unwrap()] {
        parameters.udp.as_mut().unwrap().burst_packets = 64;
    }
    let verdict = judge(&document);
    is(verdict.clone(), Cause::ReceiveBuffer, Confidence::High);
    assert_eq!(verdict.place.as_deref(), Some("server, UDP receive buffer"));
    assert!(verdict.summary.contains("one burst takes at least 128 KiB"), "{}", verdict.summary);
    assert!(verdict.next_step.contains("--window"), "{}", verdict.next_step);
}

#[test]
fn a_udp_sender_below_its_schedule_is_cpu_bound() {
    let scenario = Scenario { sender_thread: 0.99, ..Scenario::default() };
    is(judge(&scenario.udp(Some(5_000_000_000), 100_000, 100_000, 0)), Cause::SenderCpu, Confidence::High);
    is(judge(&scenario.udp(None, 100_000, 100_000, 0)), Cause::SenderCpu, Confidence::High);
}

#[test]
fn a_spinning_udp_sender_on_schedule_is_not_cpu_bound() {
    let scenario = Scenario { sender_thread: 1.0, ..Scenario::default() };
    is(judge(&scenario.udp(Some(1_000_000_000), 100_000, 100_000, 0)), Cause::Application, Confidence::High);
}

#[test]
fn a_slow_bbr_path_is_not_a_small_send_buffer() {
    // 10 Mb/s over 20 ms: the whole send buffer is smaller than the threshold for waiting data.
    let scenario = Scenario {
        goodput_bps: 10e6,
        congestion: "bbr",
        sndbuf: 87_380,
        fill: 0.95,
        flight_cwnd: 0.5,
        notsent: 40_000,
        ..Scenario::default()
    };
    names(&scenario, Cause::NetworkPath, Confidence::Medium);
}

#[test]
fn a_rate_limited_reader_with_an_empty_queue_is_named() {
    let mut scenario = Scenario { rwnd: 0.9, flight_wnd: 1.0, goodput_bps: 0.99e9, ..Scenario::default() };
    scenario.parameters.read_rate_bps = Some(1_000_000_000);
    names(&scenario, Cause::SlowReader, Confidence::High);
}

#[test]
fn streams_that_fill_all_cores_together_are_cpu_limited() {
    let scenario = Scenario { streams: 4, sender_thread: 0.46, fill: 0.1, notsent: 0, ..Scenario::default() };
    let verdict = names(&scenario, Cause::SenderCpu, Confidence::High);
    assert_eq!(verdict.place.as_deref(), Some("client, all cores"));
}

#[test]
fn drops_by_the_receiver_host_are_not_network_loss() {
    let mut document = lossy().document();
    document.host_series.server.as_mut().unwrap().softnet.dropped = 1_000;
    is(judge(&document), Cause::ReceiverHostDrops, Confidence::Medium);
}

#[test]
fn drops_of_the_receivers_policer_are_not_network_loss() {
    let policer =
        QdiscDelta { kind: "ingress".into(), parent: "ingress".into(), drops: 19_000, ..QdiscDelta::default() };
    let policed = |mut document: RunDocument| {
        document.host_series.server.as_mut().unwrap().qdiscs.push(policer.clone());
        judge(&document)
    };
    let mut datagrams = Scenario::default().udp(Some(1_000_000_000), 100_000, 80_000, 0);
    let placed = |place, packets| PlacedLoss { place, packets, exact: false, source: String::new() };
    datagrams.conservation.losses =
        vec![placed(LossLocation::ReceiverNic, 19_000), placed(LossLocation::Network, 1_000)];
    for verdict in [policed(lossy().document()), policed(datagrams)] {
        let verdict = is(verdict, Cause::ReceiverHostDrops, Confidence::Medium);
        assert_eq!(verdict.place.as_deref(), Some("server, ingress filter"));
        assert!(verdict.next_step.contains("`tc -s filter show dev IFACE ingress`"), "{}", verdict.next_step);
    }
}

#[test]
fn ecn_marks_indicate_congestion() {
    let mut document = Scenario { resent_ratio: 0.0, ..lossy() }.document();
    for (k, sample) in (0..).zip(&mut document.streams[0].sender.as_mut().unwrap().samples) {
        sample.tcp.as_mut().unwrap().delivered_ce = Some(k);
    }
    is(judge(&document), Cause::NetworkCongestion, Confidence::High);
}

#[test]
fn rtt_correlated_with_flight_indicates_a_shallow_buffer() {
    let mut document = lossy().document();
    let mut delivered = 0;
    for sample in &mut document.streams[0].sender.as_mut().unwrap().samples {
        let tcp = sample.tcp.as_mut().unwrap();
        delivered += tcp.unacked;
        tcp.delivered = Some(delivered);
        // The RTT rises with the flight: up to 1.5 ms of queue.
        tcp.rtt_us = 20_000 + (tcp.unacked.saturating_sub(900) * 6);
    }
    is(judge(&document), Cause::ShallowBuffer, Confidence::Low);
}

#[test]
fn a_reader_that_waits_for_its_own_schedule_is_named() {
    let mut document = Scenario { rwnd: 0.9, flight_wnd: 1.0, recv_fill: 0.3, ..Scenario::default() }.document();
    document.streams[0].receiver.as_mut().unwrap().app_wait_ns = Some(6_000_000_000);
    is(judge(&document), Cause::SlowReader, Confidence::High);
}

#[test]
fn reached_read_rate_is_named_without_a_full_queue() {
    let mut scenario = Scenario::default();
    scenario.parameters.read_rate_bps = Some(scenario.goodput_bps as u64);
    let verdict = names(&scenario, Cause::SlowReader, Confidence::High);
    assert!(!verdict.summary.contains("full"), "{}", verdict.summary);
}

/// BBR between two namespaces with all of a core, as measured: 8.7 Gb/s, where Reno carried 45 Gb/s.
pub fn bbr_on_a_short_path() -> Scenario {
    Scenario {
        congestion: "bbr",
        goodput_bps: 8.7e9,
        min_rtt_us: 2,
        srtt_us: 40,
        fill: 0.3,
        flight_cwnd: 0.02,
        flight_wnd: 0.02,
        notsent: 1_300_000,
        sender_thread: 0.95,
        ..Scenario::default()
    }
}

#[test]
fn bbr_that_paces_below_a_short_path_is_named() {
    let verdict = names(&bbr_on_a_short_path(), Cause::BbrPacing, Confidence::Medium);
    assert!(verdict.next_step.contains("`-C cubic`"), "{verdict:#?}");
    // CUBIC with the same figures has a full CPU, and so has BBR over a long path.
    let cubic = Scenario { congestion: "cubic", ..bbr_on_a_short_path() };
    assert_eq!(judge(&cubic.document()).cause, Cause::SenderCpu);
    let long = Scenario { min_rtt_us: 20_000, srtt_us: 20_500, flight_cwnd: 0.5, ..bbr_on_a_short_path() };
    assert_eq!(judge(&long.document()).cause, Cause::SenderCpu);
    // A bottleneck holds more than one GSO packet.
    let queued = Scenario { srtt_us: 400, sender_thread: 0.3, flight_cwnd: 0.5, ..bbr_on_a_short_path() };
    assert_ne!(judge(&queued.document()).cause, Cause::BbrPacing);
    // Even delivery is a bottleneck's, too.
    let even = Scenario { sender_thread: 0.3, ..bbr_on_a_short_path() };
    assert_ne!(judge(&even.document()).cause, Cause::BbrPacing);
}
