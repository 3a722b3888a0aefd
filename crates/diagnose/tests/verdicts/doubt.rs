//! Confidence is limited by contradictions, missing reports, few samples and malformed documents.

use crate::common::{Scenario, idle};
use landspeed_diagnose::{diagnose, warnings};
use landspeed_model::{
    Cause, Confidence, CoreUse, CounterDelta, Direction, EmulatedPath, EmulationSource, InvalidReason, InvalidSpan,
    LatencyResult, MtuProbe, NicSnapshot, NumaNode, Protocol, RrMode, RrParameters, RrSize, RunDocument,
    RunEmulation, Status, Verdict, ZeroCopyUse,
};

fn judge(document: &RunDocument) -> Verdict {
    diagnose(document, Direction::Upload)
}

fn receiver_window() -> Scenario {
    Scenario { rwnd: 1.0, flight_cwnd: 0.37, flight_wnd: 1.04, notsent: 600_000, ..Scenario::default() }
}

fn send_buffer() -> Scenario {
    Scenario { sndbuf: 64 << 10, fill: 1.06, flight_cwnd: 0.15, notsent: 0, ..Scenario::default() }
}

/// A probe that found a path MTU of 1300 bytes behind an interface of 1500.
pub fn probe_of_1300_bytes() -> MtuProbe {
    MtuProbe {
        direction: Direction::Upload,
        path_mtu_bytes: Some(1300),
        smallest_failed_bytes: Some(1301),
        interface_mtu_bytes: Some(1500),
        probes: 9,
        silent: 3,
        note: None,
    }
}

#[test]
fn contradicting_evidence_never_has_high_confidence() {
    let cases = [
        // The receive window and the send buffer are both full.
        Scenario { rwnd: 1.0, flight_wnd: 1.0, ..send_buffer() },
        // The sender's thread is fully busy, yet the receive window is full.
        Scenario { sender_thread: 0.97, ..receiver_window() },
        // `rwnd_limited` names the window, the gauges do not.
        Scenario { rwnd: 0.5, ..Scenario::default() },
        // The window is full, the receive queue half full.
        Scenario { recv_fill: 0.3, ..receiver_window() },
        // A pacing rate was reached by a fully busy sender.
        Scenario { max_pacing_bps: Some(1e9), sender_thread: 0.99, ..Scenario::default() },
        // The thread is fully busy while it mostly waits for its schedule.
        Scenario { sender_thread: 0.99, wait: 0.8, ..send_buffer() },
    ];
    for scenario in cases {
        let verdict = judge(&scenario.document());
        assert!(verdict.confidence != Confidence::High, "{scenario:?}\n{verdict:#?}");
    }
}

#[test]
fn three_contenders_leave_the_cause_undetermined() {
    let scenario = Scenario { sender_thread: 0.97, rwnd: 1.0, flight_wnd: 1.0, ..send_buffer() };
    let verdict = judge(&scenario.document());
    assert_eq!(verdict.cause, Cause::Undetermined, "{verdict:#?}");
    assert!(verdict.summary.contains("contradict"), "{}", verdict.summary);
}

/// A run over an emulated path that was invalid in one span.
fn emulated(scenario: &Scenario, start_ns: u64, end_ns: u64) -> RunDocument {
    let span = InvalidSpan {
        start_ns,
        end_ns,
        reasons: vec![InvalidReason::Late],
        message: "9 of 9 frames late".to_owned(),
    };
    let path = EmulatedPath { name: "a path".to_owned(), seed: 1, mtu_bytes: 1500, links: 1 };
    RunDocument {
        emulation: Some(RunEmulation {
            path,
            source: EmulationSource::Local,
            covered_ns: end_ns,
            invalid: vec![span],
        }),
        ..scenario.document()
    }
}

#[test]
fn invalid_emulated_seconds_withdraw_network_verdicts() {
    let judged = judge(&receiver_window().document());
    assert_eq!(judged.cause, Cause::ReceiverWindow);
    let document = emulated(&receiver_window(), 2_000_000_000, 3_000_000_000);
    let verdict = judge(&document);
    assert_eq!((verdict.cause, verdict.confidence), (Cause::Undetermined, Confidence::Low), "{verdict:#?}");
    assert!(verdict.summary.contains("the emulated path was not what its file says (9 of 9 frames late)"));
    assert!(warnings(&document).iter().any(|warning| warning.code == "emulation-invalid"));
    // The invalid span is after the steady phase.
    let end_ns = document.phases[0].end_ns;
    assert_eq!(judge(&emulated(&receiver_window(), end_ns, end_ns + 1)), judged);
    // A busy thread does not depend on the path.
    let busy = Scenario { sender_thread: 0.99, ..Scenario::default() };
    assert_eq!(judge(&emulated(&busy, 0, 1_000_000_000)), judge(&busy.document()));
}

#[test]
fn unauthenticated_answers_from_the_path_change_no_verdict() {
    let judged = judge(&receiver_window().document());
    let mut document = emulated(&receiver_window(), 2_000_000_000, 3_000_000_000);
    document.emulation.as_mut().unwrap().source = EmulationSource::Path;
    assert_eq!(judge(&document), judged);
    let warnings = warnings(&document);
    let warning = warnings.iter().find(|warning| warning.code == "emulation-invalid").expect("a warning");
    assert!(warning.message.contains("unauthenticated"), "{}", warning.message);
}

#[test]
fn one_sided_reports_never_have_high_confidence() {
    for scenario in [send_buffer(), receiver_window()] {
        let scenario = Scenario { receiver_report: false, ..scenario };
        let verdict = judge(&scenario.document());
        assert_ne!(verdict.confidence, Confidence::High, "{verdict:#?}");
        assert!(verdict.missing.iter().any(|what| what.contains("server's report")), "{verdict:#?}");
        assert!(warnings(&scenario.document()).iter().any(|warning| warning.code == "one-ended"));
    }
}

#[test]
fn few_samples_never_have_high_confidence() {
    let short = Scenario { samples: 10, ..send_buffer() };
    let verdict = judge(&short.document());
    assert_eq!((verdict.cause, verdict.confidence), (Cause::SendBuffer, Confidence::Medium));
    assert!(verdict.missing.iter().any(|what| what.starts_with("samples: ")), "{verdict:#?}");
    assert!(warnings(&short.document()).iter().any(|warning| warning.code == "few-samples"));
    let brief = Scenario { samples: 50, interval_ms: 10, ..send_buffer() };
    assert_eq!(judge(&brief.document()).confidence, Confidence::Medium);
}

#[test]
fn three_samples_or_a_third_of_a_second_have_low_confidence() {
    for (samples, interval_ms) in [(3, 100), (30, 10), (3, 1000)] {
        let verdict = judge(&Scenario { samples, interval_ms, ..send_buffer() }.document());
        assert_eq!((verdict.cause, verdict.confidence), (Cause::SendBuffer, Confidence::Low), "{samples}");
    }
}

#[test]
fn run_without_bytes_is_undetermined() {
    let verdict = judge(&Scenario { goodput_bps: 0.0, ..Scenario::default() }.document());
    assert_eq!((verdict.cause, verdict.confidence), (Cause::Undetermined, Confidence::Low));
    assert!(verdict.summary.contains("No data"), "{}", verdict.summary);
}

#[test]
fn direction_that_was_not_run_is_undetermined() {
    let verdict = diagnose(&send_buffer().document(), Direction::Download);
    assert_eq!(verdict.cause, Cause::Undetermined);
}

#[test]
fn run_without_steady_phase_is_judged_by_all_samples() {
    let mut document = send_buffer().document();
    document.phases.clear();
    document.status = Status::Partial;
    let verdict = judge(&document);
    assert_eq!((verdict.cause, verdict.confidence), (Cause::SendBuffer, Confidence::Low), "{verdict:#?}");
}

#[test]
fn the_worst_stream_is_shown_when_it_disagrees() {
    let mut document = Scenario { streams: 4, ..send_buffer() }.document();
    for sample in &mut document.streams[2].sender.as_mut().unwrap().samples {
        let tcp = sample.tcp.as_mut().unwrap();
        tcp.rwnd_limited_us = tcp.busy_time_us.map(|busy| busy / 2);
    }
    let verdict = judge(&document);
    assert_eq!(verdict.cause, Cause::SendBuffer, "{verdict:#?}");
    let worst = verdict.ruled_out.iter().chain(&verdict.evidence).find(|line| line.metric.ends_with("worst stream"));
    // Only readings that were not met rule a cause out, so the worst stream appears only if it is listed
    // there.
    assert!(worst.is_none_or(|line| line.stream == Some(2)), "{verdict:#?}");
}

#[test]
fn evidence_names_its_source_in_the_document() {
    let verdict = judge(&send_buffer().document());
    for line in verdict.evidence.iter().chain(&verdict.ruled_out) {
        assert!(!line.source.is_empty() && !line.threshold.is_empty() && !line.unit.is_empty(), "{line:?}");
        assert_eq!(line.span_ns, Some((0, 10_000_000_000)));
    }
    let fill = verdict.evidence.iter().find(|line| line.source == "streams[0].sender.samples[].wmem_queued_bytes");
    let fill = fill.expect("the deciding reading is among the evidence");
    assert!(fill.met && fill.host.as_deref() == Some("client") && fill.stream == Some(0));
}

#[test]
fn buffer_advice_is_two_bdp() {
    let ten_gig = Scenario {
        rcvbuf: 6 << 20,
        min_rtt_us: 50_000,
        srtt_us: 50_100,
        line_rate_bps: Some(10_000_000_000),
        ..receiver_window()
    };
    let advice = judge(&ten_gig.document()).next_step;
    assert!(advice.contains("`sysctl -w net.ipv4.tcp_rmem='4096 131072 117685306'`"), "{advice}");
    assert!(advice.contains("2 × BDP of 9.41 Gb/s × 50.0 ms; it is 6.00 MiB now"), "{advice}");
    let mut locked = ten_gig;
    locked.parameters.window_bytes = Some(65_536);
    let advice = judge(&locked.document()).next_step;
    assert!(advice.contains("fixed at 64.0 KiB by --window"), "{advice}");
}

#[test]
fn dropping_a_window_is_advised_only_where_the_kernel_allows_more() {
    let advice = |rtt_us: u32, limit_bytes: u64| {
        let mut locked = Scenario {
            rcvbuf: 128 << 10,
            min_rtt_us: rtt_us,
            srtt_us: rtt_us + 100,
            line_rate_bps: Some(10_000_000_000),
            ..receiver_window()
        };
        locked.parameters.window_bytes = Some(64 << 10);
        let mut document = locked.document();
        let host = document.hosts.server.as_mut().expect("a host");
        host.sysctls.insert("net.ipv4.tcp_rmem".to_owned(), format!("4096 65536 {limit_bytes}"));
        let verdict = judge(&document);
        assert_eq!(verdict.cause, Cause::ReceiverWindow, "{}", verdict.summary);
        verdict.next_step
    };
    let free = advice(50_000, 6 << 20);
    assert!(free.contains("drop --window to let the kernel size it, or ask for at least"), "{free}");
    let lower = advice(50_000, 128 << 10);
    assert!(!lower.contains("drop --window") && lower.contains("by --window: ask for at least"), "{lower}");
}

pub fn rr(mode: RrMode, offered: Option<f64>, achieved: f64, mean_ns: f64) -> RunDocument {
    let mut scenario = Scenario::default();
    scenario.parameters.protocol = Protocol::TcpRr;
    let size = RrSize { request_bytes: 1, response_bytes: 1 };
    scenario.parameters.rr = Some(RrParameters { mode, rate_per_s: offered, sizes: vec![size] });
    let mut document = scenario.document();
    document.latency.push(LatencyResult {
        request_bytes: 1,
        response_bytes: 1,
        mode,
        offered_per_s: offered,
        achieved_per_s: achieved,
        scheduled: 1000,
        sent: 1000,
        completed: 1000,
        unanswered: 0,
        send_late_p99_ns: None,
        stray_responses: 0,
        duration_ns: 10_000_000_000,
        min_ns: Some(1),
        mean_ns: Some(mean_ns),
        p50_ns: Some(mean_ns as u64),
        p90_ns: Some(0),
        p99_ns: Some(0),
        p999_ns: Some(0),
        p9999_ns: Some(0),
        max_ns: Some(0),
        histogram: Vec::new(),
    });
    document
}

#[test]
fn a_closed_loop_is_bound_by_its_round_trips() {
    let verdict = judge(&rr(RrMode::ClosedLoop, None, 48.0, 20.5e6));
    assert_eq!((verdict.cause, verdict.confidence), (Cause::RoundTrip, Confidence::High), "{verdict:#?}");
}

#[test]
fn an_answered_open_loop_is_limited_by_its_schedule() {
    let verdict = judge(&rr(RrMode::OpenLoop, Some(1000.0), 999.0, 1e6));
    assert_eq!((verdict.cause, verdict.confidence), (Cause::Application, Confidence::High), "{verdict:#?}");
    let verdict = judge(&rr(RrMode::OpenLoop, Some(1000.0), 600.0, 1e6));
    assert_eq!(verdict.cause, Cause::Undetermined, "{verdict:#?}");
}

#[test]
fn unreliable_figures_are_warned_of() {
    let mut document = Scenario { loopback: true, goodput_bps: 10e9, ..Scenario::default() }.document();
    document.streams[0].sender.as_mut().unwrap().zerocopy =
        Some(ZeroCopyUse { completions: 100, copied: 100, enobufs: 1 });
    document.cost.client.as_mut().unwrap().host_cpu_s = Some(20.0);
    document.cost.client.as_mut().unwrap().softirq_cpu_s = Some(0.0);
    document.cost.server = document.cost.client.clone();
    document.path.as_mut().unwrap().clock.uncertainty_ns = 1_000_000_000;
    let series = document.host_series.client.as_mut().unwrap();
    series.softnet.dropped = 5;
    series.snmp.push(CounterDelta { name: "TcpExt.TCPMemoryPressures".to_owned(), delta: 1 });
    for core in series.samples.iter_mut().flat_map(|sample| sample.cores.iter_mut().flatten()) {
        core.steal = 0.1;
        core.idle = 0.9;
    }
    let client = document.hosts.client.as_mut().unwrap();
    client.sysctls.insert("net.ipv4.tcp_notsent_lowat".to_owned(), "131072".to_owned());
    let codes: Vec<String> = warnings(&document).into_iter().map(|warning| warning.code).collect();
    for code in [
        "loopback",
        "zerocopy-copied",
        "zerocopy-refused",
        "other-load",
        "steal",
        "softnet-drops",
        "tcp-memory",
        "clock-uncertain",
        "notsent-lowat",
    ] {
        assert!(codes.iter().any(|found| found == code), "{code} is missing of {codes:?}");
    }
    assert!(warnings(&Scenario { samples: 300, ..Scenario::default() }.document()).is_empty());
}

fn warning<'a>(found: &'a [landspeed_model::Warning], code: &str) -> Option<&'a str> {
    found.iter().find(|warning| warning.code == code).map(|warning| warning.message.as_str())
}

#[test]
fn datagrams_over_the_mtu_are_fragments() {
    let scenario = Scenario { line_rate_bps: Some(10_000_000_000), ..Scenario::default() };
    let sized = |payload_bytes| {
        let mut document = scenario.udp(Some(1_000_000_000), 1000, 1000, 0);
        for parameters in document.effective.iter_mut().chain([&mut document.requested]) {
            parameters.udp.as_mut().expect("UDP").payload_bytes = payload_bytes;
        }
        document
    };
    assert_eq!(warning(&warnings(&sized(1472)), "fragments"), None);
    let found = warnings(&sized(9000));
    let message = warning(&found, "fragments").expect("9028 bytes over an MTU of 1500");
    assert!(message.contains("7 fragments") && message.contains("-l 1472"), "{message}");
    // A probe of the path counts as well.
    let mut narrow = sized(1472);
    narrow.path.as_mut().expect("a path").mtu.push(probe_of_1300_bytes());
    let found = warnings(&narrow);
    assert!(warning(&found, "fragments").expect("1500 over 1300").contains("the path MTU (1300 bytes)"));
}

#[test]
fn gro_that_delivers_is_not_called_off() {
    let scenario = Scenario { line_rate_bps: Some(10_000_000_000), ..Scenario::default() };
    let received = |timestamps: &str| {
        let mut document = scenario.udp(Some(1_000_000_000), 1000, 1000, 0);
        for host in [&mut document.hosts.client, &mut document.hosts.server] {
            let offloads = &mut host.as_mut().expect("a host").nic.as_mut().expect("an interface").offloads;
            offloads.insert("rx-gro".to_owned(), false);
        }
        let receiver = document.streams[0].receiver.as_mut().expect("a receiver");
        receiver.udp.as_mut().expect("UDP").timestamps = Some(timestamps.to_owned());
        warnings(&document)
    };
    let off = |found: &[landspeed_model::Warning]| -> Vec<bool> {
        let hosts = ["of the client", "of the server"];
        hosts.map(|host| found.iter().any(|w| w.code == "offload-off" && w.message.contains(host))).to_vec()
    };
    assert_eq!(off(&received("kernel")), [true, true]);
    let found = received("kernel, coalesced");
    assert_eq!(off(&found), [true, false]);
    assert!(warning(&found, "jitter-coalesced").is_some());
}

#[test]
fn pinned_streams_are_not_advised_to_be_pinned() {
    let full = CoreUse { user: 0.5, system: 0.5, ..CoreUse::default() };
    let busy = Scenario { sender_thread: 0.99, sender_cores: vec![full, idle()], ..Scenario::default() };
    let advice = |cpu, node: &str| {
        let mut document = busy.document();
        document.streams[0].sender.as_mut().expect("a sender").cpu = cpu;
        let host = document.hosts.client.as_mut().expect("a host");
        let numa = |id, cpus: &str| NumaNode { id, cpus: cpus.to_owned() };
        host.numa = vec![numa(0, node), numa(1, "8-15")];
        host.nic = Some(NicSnapshot { numa_node: Some(0), ..NicSnapshot::default() });
        judge(&document).next_step
    };
    assert!(advice(None, "0-7").contains("pin the streams to the NIC's node"), "{}", advice(None, "0-7"));
    assert!(!advice(Some(3), "0-7").contains("the streams to"), "{}", advice(Some(3), "0-7"));
    assert!(advice(Some(9), "0-7").contains("move the streams to the NIC's node"), "{}", advice(Some(9), "0-7"));
}

#[test]
fn a_probed_path_mtu_is_named_where_nothing_passes() {
    let mut document = Scenario { goodput_bps: 0.0, ..Scenario::default() }.document();
    for sample in &mut document.streams[0].sender.as_mut().expect("a sender").samples {
        let tcp = sample.tcp.as_mut().expect("tcp_info");
        (tcp.unacked, tcp.backoff, tcp.pmtu_bytes) = (10, 4, 1500);
    }
    let unknown = judge(&document);
    assert_eq!((unknown.cause, unknown.confidence), (Cause::PathMtu, Confidence::Medium), "{unknown:#?}");
    document.path.as_mut().expect("a path").mtu.push(probe_of_1300_bytes());
    let verdict = judge(&document);
    assert_eq!((verdict.cause, verdict.confidence), (Cause::PathMtu, Confidence::High), "{verdict:#?}");
    assert!(verdict.summary.contains("the path's MTU is 1300"), "{}", verdict.summary);
    assert!(verdict.next_step.contains("set the interface's MTU to 1300"), "{}", verdict.next_step);
}
