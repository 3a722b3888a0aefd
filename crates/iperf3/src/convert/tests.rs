use landspeed_flow::assemble::CollectedRun;
use landspeed_flow::client::{Request, Target};

use super::*;

#[test]
fn report_times_cover_the_whole_test() {
    let s = SECOND_NS;
    assert_eq!(report_times(0, 2 * s + 5, s), [0, s, 2 * s + 5]);
    assert_eq!(report_times(s + s / 2, 3 * s + s / 2, s), [0, s, s + s / 2, 2 * s + s / 2, 3 * s + s / 2]);
    assert_eq!(report_times(0, s / 2, s), [0, s / 2]);
}

#[test]
fn timestamps_are_written_in_http_format() {
    let at = timestamp("2026-11-22T06:13:24.657Z").expect("a moment");
    assert_eq!(at.time, "Sun, 22 Nov 2026 06:13:24 GMT");
    assert_eq!((at.timesecs, at.timemillisecs), (1_795_328_004, Some(1_795_328_004_657)));
    assert_eq!(timestamp("yesterday"), None);
}

const S: u64 = SECOND_NS;

/// A run of 3 s of which the first is omitted, with one stream. The local end has sent or received 1000 bytes and 10
/// packets by then.
fn omitting(protocol: Protocol, direction: Direction, sender: StreamEnd, receiver: StreamEnd) -> RunDocument {
    let p = Parameters { protocol, direction, omit_ns: S, time_ns: Some(2 * S), streams: 1, ..Parameters::default() };
    let request = Request {
        target: Target { host: "192.0.2.1".to_owned(), port: None },
        parameters: p,
        key: None,
        command: Vec::new(),
        data: None,
        local_port: None,
        start_ns: None,
    };
    let mut run = landspeed_flow::assemble::document(CollectedRun::new(&request));
    run.status = Status::Complete;
    run.streams = vec![Stream {
        id: 0,
        direction,
        client_addr: String::new(),
        server_addr: String::new(),
        intervals: Vec::new(),
        intervals_from: "receiver".to_owned(),
        sender: Some(sender),
        receiver: Some(receiver),
    }];
    run
}

/// A local end with samples at 1 s and 3 s.
fn local(bytes: u64, udp: Option<UdpEnd>, retransmits: Option<[u32; 2]>) -> StreamEnd {
    let tcp = |at: usize| {
        let mut tcp = TcpInfo::decode(&[0; 248]);
        tcp.total_retrans = retransmits?[at];
        Some(Box::new(tcp))
    };
    let packets = |count| udp.as_ref().map(|_| count);
    let samples = vec![
        Sample { t_ns: S, bytes: 1000, packets: packets(10), tcp: tcp(0), ..Sample::default() },
        Sample { t_ns: 3 * S, bytes, packets: packets(30), tcp: tcp(1), ..Sample::default() },
    ];
    let retransmits = retransmits.map(|all| u64::from(all[1]));
    StreamEnd { bytes, udp, samples, retransmits, ..StreamEnd::default() }
}

fn sent(packets: u64) -> UdpEnd {
    UdpEnd { sent_packets: packets, ..UdpEnd::default() }
}

fn arrived(packets: u64) -> UdpEnd {
    let reordered_packets = Some(1);
    UdpEnd { delivered_packets: packets, highest_seq: 30, jitter_ns: Some(9), reordered_packets, ..UdpEnd::default() }
}

fn options(remote_after_omit: bool) -> ReportOptions {
    ReportOptions { interval_ns: S, remote_after_omit, ..ReportOptions::default() }
}

#[test]
fn losses_after_an_omitted_part_are_unknown() {
    // All of the 30 losses may be in the first second.
    let receiver = StreamEnd { bytes: 0, udp: Some(arrived(0)), ..StreamEnd::default() };
    let run = omitting(Protocol::Udp, Direction::Upload, local(3000, Some(sent(30)), None), receiver);
    let end = document(&run, &options(false)).end;
    let row = end.streams[0].udp.as_ref().expect("a row");
    assert_eq!((row.packets, row.bytes), (Some(20), 2000));
    assert_eq!((row.lost_packets, row.lost_percent, row.out_of_order), (None, None, None));
    assert!(end.sum_received.is_none(), "{end:?}");
    assert_eq!(end.sum_sent.and_then(|sum| sum.packets), Some(20));
    // Without an omitted part, both ends count the same packets.
    let mut whole = run;
    whole.requested.omit_ns = 0;
    let row = document(&whole, &options(false)).end.streams.remove(0).udp.expect("a row");
    assert_eq!((row.packets, row.lost_packets, row.lost_percent), (Some(30), Some(30), Some(100.0)));
}

#[test]
fn losses_of_the_measured_part_are_those_of_the_receiver() {
    let results = |omitted: serde_json::Value| {
        let mut stream = serde_json::json!({"id": 1, "bytes": 1700, "packets": 30, "errors": 4, "jitter": 0.0});
        stream.as_object_mut().expect("an object").extend(omitted.as_object().cloned().unwrap_or_default());
        serde_json::json!({ "streams": [stream] })
    };
    let receiver = || StreamEnd { bytes: 2600, udp: Some(arrived(26)), ..StreamEnd::default() };
    let mut run = omitting(Protocol::Udp, Direction::Upload, local(3000, Some(sent(30)), None), receiver());
    let mut end = |omitted| {
        let results = results(omitted);
        run.iperf3 = Some(landspeed_model::Iperf3End { results, output: None, not_visible: Vec::new() });
        document(&run, &options(false)).end
    };
    // 3.14 and later say how many of the lost packets were lost in the omitted part.
    let full = end(serde_json::json!({"omitted_errors": 1, "omitted_packets": 10}));
    let row = full.streams[0].udp.as_ref().expect("a row");
    assert_eq!((row.packets, row.lost_packets, row.lost_percent), (Some(20), Some(3), Some(15.0)));
    assert_eq!(full.sum_received.map(|sum| sum.bytes), Some(1700));
    for impossible in [serde_json::json!({}), serde_json::json!({"omitted_errors": 5, "omitted_packets": 10})] {
        let row = end(impossible).streams.remove(0).udp.expect("a row");
        assert_eq!((row.packets, row.lost_packets), (Some(20), None));
    }
}

#[test]
fn local_receiver_counts_its_bytes_after_the_omitted_part() {
    let sender = StreamEnd { bytes: 3000, udp: Some(sent(30)), ..StreamEnd::default() };
    let run = omitting(Protocol::Udp, Direction::Download, sender, local(2500, Some(arrived(25)), None));
    let end = document(&run, &options(false)).end;
    let row = end.streams[0].udp.as_ref().expect("a row");
    assert_eq!((row.packets, row.lost_packets), (None, None), "the sender did not count the omitted part");
    let received = end.sum_received.expect("counted here");
    assert_eq!((received.bytes, received.lost_packets), (1500, None));
}

#[test]
fn remote_totals_without_the_omitted_part_stay_as_they_are() {
    let client = StreamEnd { bytes: 2000, retransmits: Some(3), ..StreamEnd::default() };
    let run = omitting(Protocol::Tcp, Direction::Download, client, local(3000, None, Some([5, 9])));
    let row = document(&run, &options(true)).end.streams.remove(0);
    let (sender, receiver) = (row.sender.expect("a row"), row.receiver.expect("a row"));
    assert_eq!((sender.bytes, receiver.bytes, sender.retransmits), (2000, 2000, Some(3)));
    // A server that was not asked to omit anything counts all: its retransmits after the first second are unknown.
    let row = document(&run, &options(false)).end.streams.remove(0);
    assert_eq!(row.sender.map(|sender| (sender.bytes, sender.retransmits)), Some((1000, None)));
}

#[test]
fn retransmits_since_an_unknown_count_are_unknown() {
    let receiver = || StreamEnd { bytes: 3000, ..StreamEnd::default() };
    let mut run = omitting(Protocol::Tcp, Direction::Upload, local(3000, None, Some([5, 9])), receiver());
    let retransmits = |run: &RunDocument| -> Vec<Option<i64>> {
        document(run, &ReportOptions { interval_ns: 2 * S, ..ReportOptions::default() })
            .intervals
            .iter()
            .map(|interval| interval.sum.retransmits)
            .collect()
    };
    assert_eq!(retransmits(&run), [Some(5), Some(4)]);
    let end = document(&run, &options(false)).end.streams.remove(0);
    assert_eq!(end.sender.and_then(|sender| sender.retransmits), Some(4));
    // The reading at 1 s failed.
    run.streams[0].sender.as_mut().expect("local").samples[0].tcp = None;
    assert_eq!(retransmits(&run), [None, None]);
    let end = document(&run, &options(false)).end.streams.remove(0);
    assert_eq!(end.sender.and_then(|sender| sender.retransmits), None);
}
