//! Cause: the sending application does not offer enough data.

use landspeed_model::{Cause, RrMode};

use crate::arrivals::Arrivals;
use crate::causes::request_gaps::may_wait_for_requests;
use crate::finding::{Bound, Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::load::{Role, load};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{
    CWND_FULL, MOSTLY_WAITS, NOTSENT_LITTLE, ON_SCHEDULE, OUTSTANDING_LITTLE, RATE_EXCEEDED, RATE_REACHED,
    SEND_EMPTY, UDP_LOSS, WAITS,
};
use crate::waits;

/// Decided by a requested rate (`--rate`) that was reached; otherwise by the sender's own wait time and its
/// empty send queue.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    let builder = FindingBuilder::new(flow, Cause::Application);
    if flow.is_rr() {
        requests(flow, builder)
    } else if flow.udp.is_some() {
        datagrams(flow, builder)
    } else {
        stream(flow, builder)
    }
}

fn stream(flow: &Flow, mut builder: FindingBuilder) -> Finding {
    if let Some(arrivals) = Arrivals::of(flow) {
        return at_receiver(flow, builder, &arrivals);
    }
    let end = Some(flow.sender.end);
    let asked =
        flow.parameters.rate_bps.map(|rate| rate as f64 * flow.streams.len() as f64).filter(|&rate| rate > 0.0);
    let share = asked.map(|asked| flow.goodput_bps / asked);
    let reached = builder.optional(
        "goodput over --rate",
        share,
        "ratio",
        Bound::Within(RATE_REACHED, RATE_EXCEEDED),
        end,
        "effective.rate_bps",
    );
    let waited = flow.figure(StreamView::wait_share);
    let waits = if flow.observed {
        None
    } else {
        let metric = "share of time waiting for --rate";
        builder.figure(metric, waited, "ratio", Bound::AtLeast(WAITS), "sender.app_wait_ns")
    };
    // landspeed's own sender reports its wait time; for other programs only this reading is visible.
    let outstanding = flow.figure(StreamView::busy_share).filter(|_| flow.observed);
    let pauses = outstanding.is_some()
        && builder.figure(
            "time with data outstanding over time",
            outstanding,
            "ratio",
            Bound::Below(OUTSTANDING_LITTLE),
            "sender.samples[].tcp.busy_time_us",
        ) == Some(true);
    let empty = builder.send_fill(Bound::Below(SEND_EMPTY));
    let sent = builder.unsent(Bound::Below(NOTSENT_LITTLE));
    let open = builder.flight_over_cwnd(Bound::Below(CWND_FULL));
    if let (Some(asked), Some(true)) = (asked, reached) {
        let why = format!(
            "the sender offers {} (--rate) and no more, and {} of it was delivered",
            text::rate(asked),
            text::percent(share.unwrap_or(0.0))
        );
        return at_sending_application(
            flow,
            direct(builder.holds(Strength::Strong, why, "Drop --rate, or raise it.".to_owned())),
        );
    }
    let idle = empty == Some(true) && sent == Some(true) && open != Some(false);
    // tcp_notsent_lowat keeps the send queue short, however much the application offers.
    let lowat = flow.notsent_lowat().is_some();
    let mostly = waited.is_some_and(|figure| figure.value >= MOSTLY_WAITS);
    // Threads that report their wait time: a sender that never waited for a schedule offered all it could, so
    // an empty queue means that it lacked CPU time or is the slower side.
    let reported =
        flow.streams.iter().all(|stream| stream.sending_thread().is_some_and(|thread| thread.wait.is_some()));
    if reported && waits == Some(false) {
        return builder.refuted();
    }
    // A thread that waits for space has data.
    if waits::is_in(&mut builder, flow, "in a send call on this socket", |waits| waits.send) == Some(true) {
        return builder.refuted();
    }
    let doubt = doubt(flow);
    if let Some(doubt) = doubt {
        builder.record_missing(doubt);
    }
    let strength = match (idle, waits) {
        (true, _) if pauses && doubt.is_none() => Strength::Strong,
        (true, _) if pauses => Strength::Weak,
        (true, Some(true)) => Strength::Strong,
        (false, Some(true)) if mostly => Strength::Moderate,
        (true, _) if !lowat => Strength::Moderate,
        (true, _) => Strength::Weak,
        (false, _) => return builder.refuted(),
    };
    let fill = flow.figure(StreamView::send_fill).map_or(0.0, |figure| figure.value);
    let why = match waited.filter(|_| waits == Some(true)) {
        Some(waited) => format!(
            "the sending application waited for its own schedule {} of the time and kept the send queue {} full",
            text::percent(waited.value),
            text::percent(fill)
        ),
        None if pauses => format!(
            "the sending application had nothing to send {} of the time",
            text::percent(1.0 - outstanding.map_or(0.0, |figure| figure.value))
        ),
        None => format!(
            "the sending application kept the send queue only {} full, and no other limit was visible",
            text::percent(fill)
        ),
    };
    let next = if asked.is_some() {
        "Drop --rate, or raise it.".to_owned()
    } else if waits == Some(true) {
        "Let the sender write without a schedule, then run again.".to_owned()
    } else {
        format!(
            "Find what the sending application on {} waits for (its source, CPU time, its write size of {}).",
            flow.label(&flow.sender),
            text::bytes(flow.parameters.write_bytes as f64)
        )
    };
    at_sending_application(flow, builder.holds(strength, why, next))
}

/// What makes it doubtful that a watched application pauses by itself.
fn doubt(flow: &Flow) -> Option<&'static str> {
    if !flow.observed {
        None
    } else if load(flow, Role::Sender).waited_for_core() {
        Some("what the application does while its thread has a core")
    } else if may_wait_for_requests(flow) {
        Some(
            "which end waits between an answer and the next request: the kernel's ages do not tell, root sees the system call",
        )
    } else {
        None
    }
}

/// The sender's pauses, as the receiver of a watched flow sees them.
fn at_receiver(flow: &Flow, mut builder: FindingBuilder, arrivals: &Arrivals) -> Finding {
    let Some(share) = arrivals.sender_pauses(flow, &mut builder) else { return builder.refuted() };
    let why = format!(
        "the remote host had nothing to send: in {} of the readings {}nothing had arrived for several round trips, although no \
         segment was missing and the receive window was open",
        text::percent(share),
        if arrivals.answers_requests() { "a request was open and " } else { "" }
    );
    let next = "Run `landspeed watch` on the sending host to see what its application waits for.".to_owned();
    at_sending_application(flow, builder.holds(Strength::Moderate, why, next))
}

fn datagrams(flow: &Flow, mut builder: FindingBuilder) -> Finding {
    let Some(udp) = &flow.udp else { return builder.refuted() };
    let end = Some(flow.sender.end);
    let reached = builder.value(
        "offered rate over --rate",
        udp.reached(),
        "ratio",
        Bound::Within(RATE_REACHED, RATE_EXCEEDED),
        end,
        "effective.rate_bps",
    );
    let whole = builder.value("packets lost", udp.loss, "ratio", Bound::Below(UDP_LOSS), None, "udp.loss_ratio");
    let (Some(asked), Some(sent)) = (udp.requested_bps, udp.reached()) else { return builder.refuted() };
    // A sender that was late, although its kernel refused nothing, did not offer the rate asked for.
    if reached != Some(true) && (sent > RATE_REACHED || udp.refuses()) {
        return builder.refuted();
    }
    let strength = match whole {
        Some(true) if reached != Some(true) => Strength::Moderate,
        Some(true) if udp.lost == 0.0 => Strength::Strong,
        // A few packets were lost; without the receiver's count the loss is unknown.
        Some(true) => Strength::Moderate,
        None => Strength::Weak,
        Some(false) => return builder.refuted(),
    };
    let fate = match udp.loss {
        Some(_) if udp.lost == 0.0 => "all of it delivered".to_owned(),
        Some(loss) => format!("all but {} of it delivered", text::percent(loss)),
        None => "its delivery is not visible".to_owned(),
    };
    let late = sent < ON_SCHEDULE;
    let why = if late {
        let sent = text::rate(udp.offered_bps.unwrap_or(asked * sent));
        format!("the sender was late and sent {sent} of the {} asked for (--rate), {fate}", text::rate(asked))
    } else {
        format!("the sender offers {} (--rate), {fate}", text::rate(asked))
    };
    let coarse = flow.parameters.udp.as_ref().is_some_and(|udp| !udp.exact_departures);
    let next = match (late, coarse) {
        (true, false) => {
            "Send in bursts that need fewer wake-ups with `--coarse`, or free a core for the sender.".to_owned()
        }
        (true, true) => "Free a core for the sender, or use more streams (-P).".to_owned(),
        _ => {
            format!(
                "Raise --rate until packets are lost: the path carries more than {}.",
                text::rate(flow.goodput_bps)
            )
        }
    };
    let finding = builder.holds(strength, why, next);
    at_sending_application(flow, Finding { direct: reached == Some(true), ..finding })
}

/// Open-loop requests that were all answered.
fn requests(flow: &Flow, mut builder: FindingBuilder) -> Finding {
    let open = flow.parameters.rr.as_ref().is_some_and(|rr| rr.mode == RrMode::OpenLoop);
    if !open {
        return Finding::not_applicable(Cause::Application);
    }
    let latency = &flow.document.latency;
    let (offered, achieved) = latency.iter().fold((0.0, 0.0), |(offered, achieved), result| {
        (offered + result.offered_per_s.unwrap_or(0.0), achieved + result.achieved_per_s)
    });
    let share = (offered > 0.0).then(|| achieved / offered);
    let reached = builder.value(
        "requests answered over offered",
        share,
        "ratio",
        Bound::AtLeast(RATE_REACHED),
        None,
        "latency[].achieved_per_s",
    );
    if reached != Some(true) {
        return builder.refuted();
    }
    let why = format!(
        "requests leave on a schedule of {} a second, and {} were answered",
        text::number(offered.round()),
        text::percent(share.unwrap_or(0.0))
    );
    let next = "Raise the request rate until latency climbs, to find where the hosts saturate.".to_owned();
    at_sending_application(flow, direct(builder.holds(Strength::Strong, why, next)))
}

fn direct(finding: Finding) -> Finding {
    Finding { direct: true, ..finding }
}

fn at_sending_application(flow: &Flow, finding: Finding) -> Finding {
    Finding { place: Some(format!("{}, sending application", flow.sender.name())), ..finding }
}
