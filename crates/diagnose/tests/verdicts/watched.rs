//! Flows of other programs, watched from one host: the same causes as for a run, never with high
//! confidence, with suitable advice.

use landspeed_diagnose::diagnose_watched;
use landspeed_model::{Cause, Confidence, Direction, RunDocument, Status, Verdict, WatchHost};

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
