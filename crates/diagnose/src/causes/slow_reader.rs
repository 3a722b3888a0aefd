//! The receiving application does not read fast enough.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, Scales, Strength};
use crate::flow::Flow;
use crate::reader::{Limited, Reader, reader, window_limited};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{
    BACKLOG, RATE_REACHED, READER_BEHIND, READER_KEEPS_UP, RWND_LIMITED, STILL_FILLS, WAITS, WINDOW_FULL,
};

/// The window is full and so is the receive queue: data waits for the application, which has CPU time left.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.is_rr() || flow.udp.is_some() {
        return Finding::not_applicable(Cause::SlowReader);
    }
    let mut scales = Scales::new(flow, Cause::SlowReader);
    weigh(&mut scales, flow, true);
    let asked = asked_read_bps(flow).map(|rate| flow.goodput_bps / rate);
    let end = Some(flow.receiver.end);
    scales.optional(
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
        scales.figure(metric, waited, "ratio", Bound::AtLeast(WAITS), "receiver.app_wait_ns");
    }
    let strength = match (reader(flow), window_limited(flow)) {
        // The rate is the reader's, and the path limits the sender all the same, until the receive buffer is full.
        (_, limited)
            if asked.is_some_and(|asked| asked >= RATE_REACHED)
                && limited != Some(Limited::Plainly)
                && still_fills(flow) =>
        {
            Strength::Weak
        }
        // It kept to its own schedule: nothing needs inferring from a queue, nor, where data queues, from the window
        // (under BBR the sender adapts to what is read and leaves the window open).
        (Reader::Behind, _) | (_, Some(Limited::Plainly | Limited::Partly)) if reads_on_schedule(flow) => {
            Strength::Strong
        }
        // The rate it was to read at is the rate that was reached.
        _ if asked.is_some_and(|asked| asked >= RATE_REACHED) => Strength::Strong,
        (Reader::Behind, Some(Limited::Plainly | Limited::Partly)) => Strength::Strong,
        // Of a flow that is observed from the receiving end nothing else can be visible: the queue and the window it left decide.
        (Reader::Behind, None)
            if flow.observed && flow.figure(StreamView::receive_backlog).is_some_and(|f| f.value >= BACKLOG) =>
        {
            Strength::Strong
        }
        (Reader::Behind, _) => Strength::Moderate,
        (Reader::SeemsBehind, Some(Limited::Plainly | Limited::Partly)) => {
            scales.lacks("the receive queue, which separates a slow reader from a small buffer");
            Strength::Weak
        }
        _ => return scales.refuted(),
    };
    // Threads that report how they spent their time and had no schedule read all they could, as landspeed's do: a full queue
    // then has another cause, a core or one that was not visible.
    let reported =
        flow.streams.iter().all(|stream| stream.receiving_thread().is_some_and(|thread| thread.wait.is_some()));
    let strength = if reported && !flow.observed && !reads_on_schedule(flow) { Strength::Weak } else { strength };
    // A rate that was asked for and reached needs neither a full queue nor a full window.
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
    let mut finding = scales.holds(strength, why, next_step(flow));
    finding.direct = reads_on_schedule(flow);
    finding.place = Some(format!("{}, receiving application", flow.receiver.name()));
    finding
}

/// More arrives at the receiving host than its application reads.
fn still_fills(flow: &Flow) -> bool {
    let acknowledged = flow.moved(|tcp| tcp.bytes_acked);
    acknowledged.is_some_and(|bytes| bytes * 8.0 / flow.seconds() >= flow.goodput_bps * STILL_FILLS)
}

/// The readings that window and reader share. `behind` says which way the queue is held.
pub(crate) fn weigh(scales: &mut Scales, flow: &Flow, behind: bool) {
    scales.figure(
        "time limited by the receive window over busy time",
        flow.rwnd_limited(),
        "ratio",
        Bound::AtLeast(RWND_LIMITED),
        "sender.samples[].tcp.rwnd_limited_us",
    );
    scales.flight_over_window(Bound::AtLeast(WINDOW_FULL));
    let bound = if behind { Bound::AtLeast(READER_BEHIND) } else { Bound::Below(READER_KEEPS_UP) };
    let fill = flow.figure(StreamView::receive_fill);
    scales.figure("unread bytes over SO_RCVBUF", fill, "ratio", bound, "receiver.samples[].receive_queue_bytes");
    let backlog = flow.figure(StreamView::receive_backlog);
    if behind && backlog.is_some() {
        scales.figure(
            "unread bytes over unread bytes and open window",
            backlog,
            "ratio",
            Bound::AtLeast(BACKLOG),
            "receiver.samples[].tcp.rcv_wnd_bytes",
        );
    }
}

/// Whether the receivers kept to a reading schedule: they have --read-rate and reached it, or waited for their own schedule.
pub(crate) fn reads_on_schedule(flow: &Flow) -> bool {
    waits_to_read(flow) || asked_read_bps(flow).is_some_and(|asked| flow.goodput_bps / asked >= RATE_REACHED)
}

fn waits_to_read(flow: &Flow) -> bool {
    flow.figure(StreamView::read_wait_share).is_some_and(|figure| figure.value >= WAITS)
}

/// --read-rate of the receivers, all streams, bits/s.
fn asked_read_bps(flow: &Flow) -> Option<f64> {
    flow.parameters.read_rate_bps.map(|rate| rate as f64 * flow.streams.len() as f64).filter(|&rate| rate > 0.0)
}

fn next_step(flow: &Flow) -> String {
    let rate = text::rate(flow.goodput_bps);
    if let Some(asked) = asked_read_bps(flow) {
        return format!("Raise or drop --read-rate: it is {} in all.", text::rate(asked));
    }
    format!(
        "The receiving application on {} read at {rate}: find what it waits for (disk, its own processing); \
         neither buffers nor the network are the limit.",
        flow.label(&flow.receiver)
    )
}
