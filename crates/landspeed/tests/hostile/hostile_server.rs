//! Servers that send invalid or false messages.

use landspeed_flow::control::message::{Accepted, ToClient, ToServer};
use landspeed_flow::control::preface::{self, Status, Token};
use landspeed_flow::end::{EndReport, PhaseEnds};
use landspeed_flow::progress::{LiveReading, SenderDone, TcpState};
use landspeed_model::{Direction, ErrorEntry, HostSnapshot, Parameters};

use crate::hostile::common::{Run, TIMEOUT_S, begin, finish};
use crate::hostile::raw;

fn accepted(parameters: Parameters) -> Accepted {
    Accepted {
        id: "0123456789abcdef".into(),
        token: Token([7; 32]).to_hex(),
        version: "0".into(),
        parameters,
        notes: Vec::new(),
        host: HostSnapshot::default(),
    }
}

/// Runs a client whose greeting is answered with `answer`.
fn answered(answer: impl FnOnce(Parameters) -> ToClient) -> Run {
    let (listener, addr) = raw::listener();
    let client = begin(&addr.to_string(), &["-t", "1"]);
    let (mut tx, rx, asked) = raw::accept_client(&listener, None);
    tx.queue(&answer(asked)).unwrap();
    drop((tx, rx));
    finish(client.end(TIMEOUT_S))
}

#[test]
fn acceptance_of_other_parameters_is_refused() {
    let others: Vec<fn(Parameters) -> Parameters> = vec![
        |p| Parameters { streams: 100, ..p },
        |p| Parameters { streams: u32::MAX, ..p },
        |p| Parameters { time_ns: Some(u64::MAX), omit_ns: u64::MAX, ..p },
        |p| Parameters { time_ns: Some(3_600_000_000_000), ..p },
        |p| Parameters { direction: Direction::Both, ..p },
        |p| Parameters { write_bytes: u64::MAX, ..p },
        |p| Parameters { interval_ns: 0, host_interval_ns: 0, ..p },
        |p| Parameters { client_cpus: vec![u32::MAX], ..p },
        |p| Parameters { bind: Some("192.0.2.1".into()), ..p },
    ];
    for other in others {
        let run = answered(|asked| ToClient::Accepted(Box::new(accepted(other(asked)))));
        run.assert_failed("protocol");
    }
}

#[test]
fn server_messages_are_printed_without_control_characters() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\nlandspeed: all is well\u{9b}1m";
    let entry = ErrorEntry { code: evil.into(), message: evil.into(), advice: Some(format!("try {evil}")) };
    let run = answered(|_| ToClient::Refused(entry));
    assert_eq!(run.ended.code, 2);
    crate::hostile::common::assert_short_error(&run.ended);
    assert!(run.ended.stderr.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", run.ended);
}

#[test]
fn a_wrong_or_missing_message_ends_the_attempt() {
    for answer in [ToClient::Ready, ToClient::Pong { n: 0, now_ns: u64::MAX }] {
        answered(|_| answer).assert_failed("protocol");
    }
    let run = answered(|asked| ToClient::Accepted(Box::new(Accepted { token: "short".into(), ..accepted(asked) })));
    run.assert_failed("protocol");
    answered(|asked| ToClient::Accepted(Box::new(accepted(asked)))).assert_failed("peer-lost");
}

/// Runs a client against a server that follows the protocol of a one-stream test up to the start, and then
/// sends `report`.
fn run_with_report(report: &str) -> Run {
    let (listener, addr) = raw::listener();
    let client = begin(&addr.to_string(), &["-t", "0.3"]);
    let (mut tx, mut rx, asked) = raw::accept_client(&listener, None);
    tx.queue(&ToClient::Accepted(Box::new(accepted(asked)))).unwrap();
    let mut streams = Vec::new();
    loop {
        match rx.poll::<ToServer>(raw::IO_TIMEOUT) {
            Ok(Some(ToServer::Ping { n })) => {
                tx.queue(&ToClient::Pong { n, now_ns: u64::MAX / 2 }).unwrap();
                if n == 9 {
                    let answer = Status::Welcome;
                    streams.push(raw::welcome(&listener, preface::encode_answer(answer)));
                }
            }
            Ok(Some(ToServer::Opened)) => tx.queue(&ToClient::Ready).unwrap(),
            Ok(Some(ToServer::Start { .. })) => break,
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
    tx.queue(&ToClient::Progress(LiveReading {
        t_ns: u64::MAX,
        received: u64::MAX,
        sent: u64::MAX,
        tcp: Some(TcpState { retransmits: u64::MAX, rtt_us: u64::MAX, cwnd_bytes: u64::MAX, silent_ms: u64::MAX }),
        ..LiveReading::default()
    }))
    .unwrap();
    let done = SenderDone { stream: 0, bytes: u64::MAX, packets: u64::MAX, stopped_ns: u64::MAX };
    tx.queue(&ToClient::SenderDone(done)).unwrap();
    tx.queue(&ToClient::Report { text: report.to_owned(), last: true }).unwrap();
    let mut stream = streams.pop().expect("one");
    std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
    finish(client.end(TIMEOUT_S))
}

#[test]
fn invalid_reports_leave_a_document() {
    let empty = serde_json::to_string(&EndReport::default()).unwrap();
    let run = run_with_report(&empty);
    assert_ne!(run.document["conservation"]["holds"], true, "a server that saw nothing has no balanced accounting");
    let run = run_with_report("{\"streams\": 7}");
    assert_eq!((run.ended.code, run.status()), (1, "partial"));
    assert!(run.errors().contains(&"protocol"), "{:?}", run.errors());
}

#[test]
fn impossible_report_figures_are_rejected() {
    let end = serde_json::json!({ "bytes": u64::MAX, "syscalls": u64::MAX, "thread_cpu_ns": u64::MAX });
    let mut report = serde_json::to_value(EndReport {
        cuts: PhaseEnds {
            startup_end_ns: Some(u64::MAX),
            omit_end_ns: Some(0),
            steady_end_ns: Some(1),
            end_ns: Some(0),
        },
        ..EndReport::default()
    })
    .unwrap();
    let whole = serde_json::to_value(landspeed_model::StreamEnd::default()).unwrap();
    let mut stream = whole;
    for (key, value) in end.as_object().unwrap() {
        stream[key] = value.clone();
    }
    stream["samples"] = serde_json::json!([
        { "t_ns": u64::MAX, "bytes": u64::MAX },
        { "t_ns": 0, "bytes": 0 },
        { "t_ns": 1, "bytes": u64::MAX },
    ]);
    report["streams"] = serde_json::json!([
        { "id": 0, "direction": "upload", "sends": false, "local_addr": "\u{1b}[2J", "peer_addr": "", "end": stream },
        { "id": 0, "direction": "download", "sends": true, "local_addr": "", "peer_addr": "", "end": stream },
        { "id": 4_000_000_000_u32, "direction": "both", "sends": false, "local_addr": "", "peer_addr": "", "end": stream },
    ]);
    let run = run_with_report(&report.to_string());
    assert_eq!((run.ended.code, run.status()), (1, "partial"));
    assert!(run.errors().contains(&"protocol"), "{:?}", run.errors());
}
