//! Cause: the receiving application does not read fast enough.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::reader::{Limited, Reader, reader, window_limited};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{
    BACKLOG, RATE_REACHED, READER_BEHIND, READER_KEEPS_UP, RWND_LIMITED, STILL_FILLS, WAITS, WINDOW_FULL,
};

/// The cause is named if both the window and the receive queue are full: data waits for the application,
/// which has idle CPU time.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.is_rr() || flow.udp.is_some() {
        return Finding::not_applicable(Cause::SlowReader);
    }
    let mut builder = FindingBuilder::new(flow, Cause::SlowReader);
    record_readings(&mut builder, flow, true);
    let asked = requested_read_bps(flow).map(|rate| flow.goodput_bps / rate);
    let end = Some(flow.receiver.end);
    builder.optional(
        "goodput over --read-rate",
        asked,
        "ratio",
        Bound::AtLeast(RATE_REACHED),
        end,
        "effective.read_rate_bps",
    );
    let waited = flow.figure(StreamView::read_wait_share);
    if waits_to_read(flow) {
        let metric = "share of time waiting for --read-rate, reader";
        builder.figure(metric, waited, "ratio", Bound::AtLeast(WAITS), "receiver.app_wait_ns");
    }
    let strength = match (reader(flow), window_limited(flow)) {
        // The reader sets the goodput, but the path limits the sender until the receive buffer is full.
        (_, limited)
            if asked.is_some_and(|asked| asked >= RATE_REACHED)
                && limited != Some(Limited::Certain)
                && still_fills(flow) =>
        {
            Strength::Weak
        }
        // The reader kept its own schedule: neither the queue nor, where data queues, the window has to confirm it
        // (with BBR the sender adapts to the reader and leaves the window open).
        (Reader::Behind, _) | (_, Some(Limited::Certain | Limited::Possible)) if reads_on_schedule(flow) => {
            Strength::Strong
        }
        // The requested read rate was reached.
        _ if asked.is_some_and(|asked| asked >= RATE_REACHED) => Strength::Strong,
        (Reader::Behind, Some(Limited::Certain | Limited::Possible)) => Strength::Strong,
        // A flow watched at the receiver shows nothing else: the receive queue and the remaining window decide.
        (Reader::Behind, None)
            if flow.observed && flow.figure(StreamView::receive_backlog).is_some_and(|f| f.value >= BACKLOG) =>
        {
            Strength::Strong
        }
        (Reader::Behind, _) => Strength::Moderate,
        (Reader::SeemsBehind, Some(Limited::Certain | Limited::Possible)) => {
            builder.record_missing("the receive queue, which separates a slow reader from a small buffer");
            Strength::Weak
        }
        _ => return builder.refuted(),
    };
    // Threads that report their wait time and have no schedule, as landspeed's do, read as fast as they can:
    // then a full queue has another cause, such as a core or something not visible.
    let reported =
        flow.streams.iter().all(|stream| stream.receiving_thread().is_some_and(|thread| thread.wait.is_some()));
    let strength = if reported && !flow.observed && !reads_on_schedule(flow) { Strength::Weak } else { strength };
    // If the requested read rate was reached, neither the queue nor the window has to be full.
    let queues = matches!(reader(flow), Reader::Behind | Reader::SeemsBehind);
    let why = match flow.figure(StreamView::receive_fill) {
        _ if !queues && asked.is_some() => {
            "the receiving application reads at --read-rate, and unread data holds the sender to it".to_owned()
        }
        Some(fill) => format!(
            "the receiving application read no faster: {} of the receive buffer was unread data, and the window was full",
            text::percent(fill.value)
        ),
        None => "the receiving application seems to read no faster: the window it offers kept closing".to_owned(),
    };
    let mut finding = builder.holds(strength, why, next_step(flow));
    finding.direct = reads_on_schedule(flow);
    finding.place = Some(format!("{}, receiving application", flow.receiver.name()));
    finding
}

/// Whether the receiving host acknowledges more data than its application reads.
fn still_fills(flow: &Flow) -> bool {
    let acknowledged = flow.increase(|tcp| tcp.bytes_acked);
    acknowledged.is_some_and(|bytes| bytes * 8.0 / flow.seconds() >= flow.goodput_bps * STILL_FILLS)
}

/// Records the readings shared by the window and reader causes. `behind`: expect a full receive queue, else
/// an empty one.
pub(crate) fn record_readings(builder: &mut FindingBuilder, flow: &Flow, behind: bool) {
    builder.figure(
        "time limited by the receive window over busy time",
        flow.rwnd_limited(),
        "ratio",
        Bound::AtLeast(RWND_LIMITED),
        "sender.samples[].tcp.rwnd_limited_us",
    );
    builder.flight_over_window(Bound::AtLeast(WINDOW_FULL));
    let bound = if behind { Bound::AtLeast(READER_BEHIND) } else { Bound::Below(READER_KEEPS_UP) };
    let fill = flow.figure(StreamView::receive_fill);
    builder.figure("unread bytes over SO_RCVBUF", fill, "ratio", bound, "receiver.samples[].receive_queue_bytes");
    let backlog = flow.figure(StreamView::receive_backlog);
    if behind && backlog.is_some() {
        builder.figure(
            "unread bytes over unread bytes and open window",
            backlog,
            "ratio",
            Bound::AtLeast(BACKLOG),
            "receiver.samples[].tcp.rcv_wnd_bytes",
        );
    }
}

/// Whether the receivers kept a read schedule: `--read-rate` was reached, or they waited for their own
/// schedule.
pub(crate) fn reads_on_schedule(flow: &Flow) -> bool {
    waits_to_read(flow) || requested_read_bps(flow).is_some_and(|asked| flow.goodput_bps / asked >= RATE_REACHED)
}

fn waits_to_read(flow: &Flow) -> bool {
    flow.figure(StreamView::read_wait_share).is_some_and(|figure| figure.value >= WAITS)
}

/// `--read-rate` over all streams, bits/s.
fn requested_read_bps(flow: &Flow) -> Option<f64> {
    flow.parameters.read_rate_bps.map(|rate| rate as f64 * flow.streams.len() as f64).filter(|&rate| rate > 0.0)
}

fn next_step(flow: &Flow) -> String {
    let rate = text::rate(flow.goodput_bps);
    if let Some(asked) = requested_read_bps(flow) {
        return format!("Raise or drop --read-rate: it is {} in all.", text::rate(asked));
    }
    format!(
        "The receiving application on {} read at {rate}: find what it waits for (disk, its own processing); \
         neither buffers nor the network are the limit.",
        flow.label(&flow.receiver)
    )
}
