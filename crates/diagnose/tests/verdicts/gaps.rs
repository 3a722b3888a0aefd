//! Stalls of a flow and gaps of a sampler, in documents from which bytes or samples were removed.

use std::ops::Range;

use crate::common::Scenario;
use landspeed_diagnose::warnings;
use landspeed_model::{RunDocument, Stream, StreamEnd, TimeSpan};

const MS: u64 = 1_000_000;
/// The span that most tests remove: 0.6 to 1.7 s.
const GAP: Range<u64> = 600 * MS..1700 * MS;

fn messages(document: &RunDocument, code: &str) -> Vec<String> {
    warnings(document).into_iter().filter(|warning| warning.code == code).map(|warning| warning.message).collect()
}

/// No bytes reach the receiver in `gap`, and none are acknowledged.
fn stall(stream: &mut Stream, gap: &Range<u64>) {
    for interval in &mut stream.intervals {
        if gap.contains(&interval.start_ns) {
            interval.bytes = 0;
        }
    }
    let sender = stream.sender.as_mut().unwrap();
    let mut held = None;
    for sample in sender.samples.iter_mut().filter(|sample| gap.contains(&sample.t_ns)) {
        let tcp = sample.tcp.as_mut().unwrap();
        tcp.bytes_acked = *held.get_or_insert(tcp.bytes_acked);
    }
}

/// Removes the samples of `end` in `gap`.
fn freeze(end: &mut StreamEnd, gap: &Range<u64>) {
    end.samples.retain(|sample| !(gap.start < sample.t_ns && sample.t_ns < gap.end));
}

/// Merges the intervals in `gap`, as if the receiver's sampler had not run.
fn merge(stream: &mut Stream, gap: &Range<u64>) {
    let first = stream.intervals.iter().position(|interval| gap.contains(&interval.start_ns)).unwrap();
    let bytes = stream.intervals[first].bytes;
    stream.intervals.retain(|interval| !gap.contains(&interval.start_ns) || interval.start_ns == gap.start);
    stream.intervals[first].end_ns = gap.end;
    stream.intervals[first].bytes = bytes;
}

/// Merges the host's samples in `gap` into one, with this share of idle core time accounted for.
fn host_reading(document: &mut RunDocument, gap: &Range<u64>, idle: f32) {
    let samples = &mut document.host_series.server.as_mut().unwrap().samples;
    let first = samples.iter().position(|sample| sample.start_ns == gap.start as i64).unwrap();
    samples.retain(|s| s.start_ns == gap.start as i64 || !gap.contains(&(s.start_ns as u64)));
    samples[first].end_ns = gap.end as i64;
    for core in samples[first].cores.iter_mut().flatten() {
        core.idle = idle;
    }
}

#[test]
fn a_steady_flow_has_no_gap() {
    for streams in [1, 4] {
        let document = Scenario { streams, ..Scenario::default() }.document();
        assert_eq!(messages(&document, "stall"), [""; 0]);
        assert_eq!(messages(&document, "sampler-gap"), [""; 0]);
    }
}

#[test]
fn a_stall_is_named_with_its_span() {
    let mut document = Scenario::default().document();
    stall(&mut document.streams[0], &GAP);
    assert_eq!(messages(&document, "stall"), ["The upload delivered no bytes from 0.60 to 1.70 s."]);
    assert_eq!(messages(&document, "sampler-gap"), [""; 0]);
}

#[test]
fn a_short_pause_is_not_a_stall() {
    // An RTT of 300 ms, a low rate, and a long interval.
    let long = Scenario { srtt_us: 300_000, min_rtt_us: 300_000, ..Scenario::default() };
    let mut slow = Scenario::default();
    slow.parameters.rate_bps = Some(8 * 1024 * 1024);
    let mut coarse = Scenario::default();
    coarse.parameters.interval_ns = 600 * MS;
    for scenario in [long, slow, coarse] {
        let mut document = scenario.document();
        stall(&mut document.streams[0], &GAP);
        assert_eq!(messages(&document, "stall"), [""; 0], "{scenario:?}");
    }
    let mut document = Scenario::default().document();
    stall(&mut document.streams[0], &(600 * MS..700 * MS));
    assert_eq!(messages(&document, "stall"), [""; 0]);
}

#[test]
fn one_stalled_stream_of_several_is_named() {
    let mut document = Scenario { streams: 4, ..Scenario::default() }.document();
    stall(&mut document.streams[2], &GAP);
    let said = messages(&document, "stall");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("1 of the 4 streams of the upload"), "{said:?}");
    assert!(said[0].contains("stream 2 from 0.60 to 1.70 s"), "{said:?}");
    // When all streams stall together, the direction stalls and no stream is named.
    for stream in &mut document.streams {
        stall(stream, &GAP);
    }
    assert_eq!(messages(&document, "stall"), ["The upload delivered no bytes from 0.60 to 1.70 s."]);
}

#[test]
fn a_stream_that_sent_all_its_bytes_is_not_stalled() {
    let mut scenario = Scenario { streams: 2, ..Scenario::default() };
    scenario.parameters.bytes = Some(1 << 30);
    let mut document = scenario.document();
    stall(&mut document.streams[1], &(5_000 * MS..10_000 * MS));
    assert_eq!(messages(&document, "stall"), [""; 0]);
}

#[test]
fn stall_reason_comes_from_tcp_info() {
    let mut document = Scenario::default().document();
    stall(&mut document.streams[0], &GAP);
    for sample in &mut document.streams[0].sender.as_mut().unwrap().samples {
        if GAP.contains(&sample.t_ns) {
            sample.tcp.as_mut().unwrap().snd_wnd_bytes = Some(0);
        }
    }
    let said = messages(&document, "stall");
    assert_eq!(said, ["The upload delivered no bytes from 0.60 to 1.70 s; the receive window was closed."]);
}

#[test]
fn a_frozen_sender_is_a_stall_and_a_sampler_gap() {
    let mut document = Scenario::default().document();
    stall(&mut document.streams[0], &GAP);
    freeze(document.streams[0].sender.as_mut().unwrap(), &GAP);
    document.host_series.client.as_mut().unwrap().samples.clear();
    let gaps = messages(&document, "sampler-gap");
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert!(gaps[0].starts_with("The client's sampler did not run from 0.60 to 1.70 s: "), "{gaps:?}");
    let stalls = messages(&document, "stall");
    assert!(stalls[0].contains("from 0.60 to 1.70 s; the client's sampler did not run then"), "{stalls:?}");
}

#[test]
fn a_frozen_receiver_is_a_stall_where_nothing_was_acknowledged() {
    let mut document = Scenario::default().document();
    stall(&mut document.streams[0], &GAP);
    let stream = &mut document.streams[0];
    for interval in &mut stream.intervals {
        interval.bytes = 1000;
    }
    merge(stream, &GAP);
    freeze(stream.receiver.as_mut().unwrap(), &GAP);
    for (idle, words) in
        [(1.0, "the host itself kept running"), (0.1, "the host was paused"), (0.7, "or the host was paused")]
    {
        let mut document = document.clone();
        host_reading(&mut document, &GAP, idle);
        let gaps = messages(&document, "sampler-gap");
        assert!(gaps[0].starts_with("The server's sampler did not run from 0.60 to 1.70 s: "), "{gaps:?}");
        assert!(gaps[0].contains(words), "{gaps:?}");
        // No new acknowledgement between the first and the last sample in the span.
        let stalls = messages(&document, "stall");
        assert!(stalls[0].contains("from 0.60 to 1.60 s; the server's sampler did not run then"), "{stalls:?}");
    }
}

#[test]
fn gaps_recorded_by_the_sampler_take_precedence() {
    let mut document = Scenario { interval_ms: 1000, samples: 10, ..Scenario::default() }.document();
    document.effective.as_mut().unwrap().interval_ns = 1000 * MS;
    let noted = TimeSpan { start_ns: 612 * MS, end_ns: 1733 * MS };
    document.host_series.server.as_mut().unwrap().sampler_gaps = vec![noted];
    let gaps = messages(&document, "sampler-gap");
    assert!(gaps[0].contains("from 0.61 to 1.73 s"), "{gaps:?}");
}
