//! Flows of other programs, watched from one host: the same causes as for a run, never with high
//! confidence, with suitable advice.

use landspeed_diagnose::diagnose_watched;
use landspeed_model::{
    BufferLocks, Cause, Confidence, Direction, EpochState, RunDocument, Status, TcpInfo, Verdict, WatchHost,
};

use crate::common::Scenario;

/// The sending host's view of a scenario.
pub fn at_sender(scenario: &Scenario) -> RunDocument {
    let mut document = Scenario { receiver_report: false, ..scenario.clone() }.document();
    document.status = Status::Complete;
    document.cost.server = None;
    document
}

/// The receiving host's view of a scenario; it is the client in the document.
pub fn at_receiver(scenario: &Scenario) -> RunDocument {
    let mut document = scenario.document();
    document.hosts.client = document.hosts.server.take();
    document.host_series.client = document.host_series.server.take();
    document.cost.server = None;
    for stream in &mut document.streams {
        stream.direction = Direction::Download;
        stream.sender = None;
    }
    document.phases.iter_mut().for_each(|phase| phase.direction = Direction::Download);
    document
}

fn judged(document: &RunDocument, direction: Direction) -> Verdict {
    judge_watched(document, direction, &WatchHost::default())
}

pub fn judge_watched(document: &RunDocument, direction: Direction, beside: &WatchHost) -> Verdict {
    let verdict = diagnose_watched(document, direction, beside);
    let words = serde_json::to_string(&verdict).expect("a verdict");
    for foreign in ["--rate", "(-P", "client", "server)", "run again", "Run again", "app_wait_ns", "streams["] {
        assert!(!words.contains(foreign), "{foreign}: {words}");
    }
    assert!(verdict.confidence < Confidence::High, "one end is never sure");
    assert!(!verdict.next_step.is_empty());
    verdict
}

/// Sets the share of time with data outstanding.
fn outstanding(mut document: RunDocument, share: f64) -> RunDocument {
    for sample in document.streams.iter_mut().flat_map(|s| s.sender.iter_mut()).flat_map(|end| &mut end.samples) {
        let tcp = sample.tcp.as_mut().expect("a reading");
        tcp.busy_time_us = tcp.busy_time_us.map(|us| (us as f64 * share) as u64);
    }
    document
}

#[test]
fn full_window_seen_by_the_sender_has_low_confidence() {
    let scenario = Scenario { rwnd: 0.9, flight_wnd: 1.0, ..Scenario::default() };
    let verdict = judged(&at_sender(&scenario), Direction::Upload);
    assert_eq!((verdict.cause, verdict.confidence), (Cause::ReceiverWindow, Confidence::Low), "{}", verdict.summary);
    assert!(verdict.next_step.contains("landspeed watch"), "{}", verdict.next_step);
    assert_eq!(verdict.epochs.iter().map(|epoch| epoch.share_permille).sum::<u32>(), 1000);
}

#[test]
fn pausing_application_is_named_by_busy_time() {
    let scenario = Scenario { fill: 0.01, notsent: 0, flight_cwnd: 0.2, ..Scenario::default() };
    let verdict = judged(&outstanding(at_sender(&scenario), 0.1), Direction::Upload);
    assert_eq!((verdict.cause, verdict.confidence), (Cause::Application, Confidence::Medium), "{}", verdict.summary);
    assert!(verdict.summary.contains("nothing to send 90 % of the time"), "{}", verdict.summary);
    let trickles = judged(&at_sender(&scenario), Direction::Upload);
    assert_eq!((trickles.cause, trickles.confidence), (Cause::Application, Confidence::Low));
}

#[test]
fn spinning_on_a_full_queue_is_not_a_cpu_limit() {
    let busy = Scenario { sender_thread: 1.0, ..Scenario::default() };
    let spins = Scenario { fill: 0.9, flight_cwnd: 1.0, notsent: 3_000_000, resent_ratio: 0.01, ..busy.clone() };
    let verdict = judged(&at_sender(&spins), Direction::Upload);
    assert_ne!(verdict.cause, Cause::SenderCpu, "{}", verdict.summary);
    let late = Scenario { fill: 0.05, flight_cwnd: 0.2, notsent: 0, ..busy };
    let verdict = judged(&at_sender(&late), Direction::Upload);
    assert_eq!((verdict.cause, verdict.confidence), (Cause::SenderCpu, Confidence::Medium), "{}", verdict.summary);
}

#[test]
fn early_losses_of_watched_flows_are_not_slow_start() {
    let scenario = Scenario { flight_cwnd: 1.0, ..Scenario::default() };
    let mut document = at_sender(&scenario);
    for (k, sample) in document.streams[0].sender.as_mut().expect("a sender").samples.iter_mut().enumerate() {
        sample.tcp.as_mut().expect("a reading").total_retrans = (k as u32 * 10).min(100);
    }
    assert_ne!(judged(&document, Direction::Upload).cause, Cause::SlowStartOvershoot);
}

#[test]
fn a_full_receive_queue_is_named_at_the_receiver() {
    let behind = Scenario { recv_fill: 0.6, receiver_thread: 0.0, ..Scenario::default() };
    let verdict = judged(&at_receiver(&behind), Direction::Download);
    assert_eq!((verdict.cause, verdict.confidence), (Cause::SlowReader, Confidence::Medium), "{}", verdict.summary);
    let keeps_up = Scenario { receiver_thread: 0.0, ..Scenario::default() };
    let verdict = judged(&at_receiver(&keeps_up), Direction::Download);
    assert_eq!(verdict.cause, Cause::Undetermined, "{}", verdict.summary);
    assert!(verdict.missing.iter().any(|what| what.starts_with("the remote host")), "{:?}", verdict.missing);
    assert!(verdict.next_step.contains("on the sending host"), "{}", verdict.next_step);
}

/// Flows of which a buffer is the limit, over paths from a veth to a continent.
fn limited_by_buffers() -> Vec<RunDocument> {
    let mut documents = Vec::new();
    for (goodput_bps, min_rtt_us) in [(600e6, 4), (14e6, 40), (1e9, 20_000), (50e6, 200_000)] {
        let path = Scenario { goodput_bps, min_rtt_us, srtt_us: min_rtt_us + 1, ..Scenario::default() };
        for buffer in [2304, 131_072, 6 << 20, 64 << 20] {
            let window = Scenario { rwnd: 0.9, flight_wnd: 1.0, rcvbuf: buffer, ..path.clone() };
            let send = Scenario { fill: 0.9, notsent: 0, flight_cwnd: 0.3, sndbuf: buffer, ..path.clone() };
            documents.extend([window, send].iter().map(at_sender));
        }
    }
    documents
}

/// The values that `sysctl -w` in backticks would set, by name.
fn assignments(text: &str) -> Vec<(String, Vec<u64>)> {
    let commands = text.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("sysctl -w "));
    let parse = |command: &str| {
        let (name, values) = command.split_once('=').expect("an assignment");
        let values = values.trim_matches('\'').split(' ').map(|value| value.parse().expect("a number")).collect();
        (name.to_owned(), values)
    };
    commands.map(parse).collect()
}

#[test]
fn advice_never_lowers_a_buffer() {
    let mut named = 0;
    for document in limited_by_buffers() {
        for known in [true, false] {
            let mut document = document.clone();
            let local = document.hosts.client.as_mut().expect("this host");
            if !known {
                local.sysctls.clear();
            }
            let sysctls = local.sysctls.clone();
            let verdict = judged(&document, Direction::Upload);
            let buffer = matches!(verdict.cause, Cause::SendBuffer | Cause::ReceiverWindow);
            named += usize::from(buffer);
            for (name, values) in assignments(&verdict.next_step) {
                assert_ne!(verdict.cause, Cause::ReceiverWindow, "not read: {}", verdict.next_step);
                let now: Vec<u64> =
                    sysctls[&name].split_whitespace().map(|value| value.parse().expect("a number")).collect();
                assert!(values.iter().zip(&now).all(|(new, now)| new >= now), "{now:?}: {}", verdict.next_step);
            }
            let option = if verdict.cause == Cause::SendBuffer { "SO_SNDBUF" } else { "SO_RCVBUF" };
            let limits = verdict.next_step.contains("tcp_wmem[2]");
            assert!(!buffer || limits || verdict.next_step.contains(option), "{}", verdict.next_step);
        }
    }
    assert!(named > 40, "{named}");
}

#[test]
fn a_buffer_that_the_program_fixed_is_advised_by_its_socket_option() {
    let send = Scenario { fill: 0.9, notsent: 0, flight_cwnd: 0.3, sndbuf: 131_072, ..Scenario::default() };
    let judge = |sndbuf: u32, locked: Option<bool>| {
        let document = at_sender(&Scenario { sndbuf, ..send.clone() });
        let buffer_locks = locked.map(|send| BufferLocks { receive: false, send });
        let verdict =
            judge_watched(&document, Direction::Upload, &WatchHost { buffer_locks, ..WatchHost::default() });
        assert_eq!(verdict.cause, Cause::SendBuffer, "{}", verdict.summary);
        verdict.next_step
    };
    let fixed = judge(131_072, Some(true));
    // 2 × BDP of 2 Gb/s × 20 ms, half of which is to be asked for.
    assert!(fixed.starts_with("The program set SO_SNDBUF to 64.0 KiB, so the kernel"), "{fixed}");
    assert!(fixed.contains("at least 5 MB, for which net.core.wmem_max"), "{fixed}");
    assert!(!fixed.contains("sysctl -w"), "{fixed}");
    // Outside of what autotuning can choose.
    for impossible in [4608, 8 << 20] {
        let guessed = judge(impossible, None);
        assert!(guessed.starts_with("The program seems to have set SO_SNDBUF"), "{guessed}");
    }
    let unknown = judge(131_072, None);
    assert!(unknown.contains("look for a program or wrapper that sets SO_SNDBUF"), "{unknown}");
    let sized_by_kernel = judge(4 << 20, Some(false));
    assert!(sized_by_kernel.contains("`sysctl -w net.ipv4.tcp_wmem="), "{sized_by_kernel}");
}

#[test]
fn shares_of_time_agree_with_the_cause() {
    // CUBIC never left slow start, because the buffer and not the window limits.
    let send = Scenario { fill: 0.9, notsent: 0, flight_cwnd: 0.3, sndbuf: 131_072, ..Scenario::default() };
    let mut document = at_sender(&send);
    let samples = |document: &mut RunDocument, change: fn(&mut TcpInfo)| {
        let ends = document.streams.iter_mut().flat_map(|stream| &mut stream.sender);
        ends.flat_map(|end| &mut end.samples).for_each(|sample| change(sample.tcp.as_mut().expect("a reading")));
    };
    samples(&mut document, |tcp| tcp.snd_ssthresh = u32::MAX >> 1);
    let verdict = judged(&document, Direction::Upload);
    assert_eq!((verdict.cause, verdict.confidence), (Cause::SendBuffer, Confidence::Medium), "{}", verdict.summary);
    assert_eq!(verdict.epochs[0].state, EpochState::SendBufferLimited, "{:?}", verdict.epochs);
    // TCP counts less time at the window than the data in flight shows.
    let window = at_sender(&Scenario { rwnd: 0.35, flight_wnd: 0.97, ..Scenario::default() });
    let verdict = judged(&window, Direction::Upload);
    assert_eq!(verdict.cause, Cause::ReceiverWindow, "{}", verdict.summary);
    assert_eq!(verdict.epochs[0].state, EpochState::ReceiveWindowLimited, "{:?}", verdict.epochs);
    assert!(verdict.summary.contains("data in flight took 97 % of the receive window"), "{}", verdict.summary);
    // A cause that its shares contradict is a hint.
    let mut recovers = at_sender(&send);
    samples(&mut recovers, |tcp| tcp.ca_state = 3);
    let verdict = judged(&recovers, Direction::Upload);
    assert!(verdict.confidence == Confidence::Low, "{:?} {:?}", verdict.cause, verdict.epochs);
}

#[test]
fn a_watch_that_was_held_up_does_not_know_the_state_meanwhile() {
    let mut document = at_sender(&Scenario { fill: 0.9, notsent: 0, flight_cwnd: 0.3, ..Scenario::default() });
    let samples = &mut document.streams[0].sender.as_mut().expect("a sender").samples;
    samples.drain(40..70);
    let verdict = judged(&document, Direction::Upload);
    assert_eq!(verdict.cause, Cause::SendBuffer, "{}", verdict.summary);
    let unknown = verdict.epochs.iter().find(|epoch| epoch.state == EpochState::Unknown).expect("three seconds");
    assert_eq!(unknown.share_permille, 310);
}
