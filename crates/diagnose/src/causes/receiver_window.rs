//! Cause: the receive window is too small for the path, because the receive buffer is.

use landspeed_model::Cause;

use crate::advice::{RECEIVE, enlarge};
use crate::arrivals::Arrivals;
use crate::causes::slow_reader::{reads_on_schedule, record_readings};
use crate::finding::{Finding, FindingBuilder, Strength};
use crate::flow::Flow;
use crate::host::HostView;
use crate::reader::{Limited, Reader, reader, window_limited};
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{BUFFER_GREW, RWND_LIMITED, WINDOW_FULL};

/// The cause is named if the window is full while the application keeps the receive queue empty: then the
/// buffer is too small.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.is_rr() || flow.udp.is_some() {
        return Finding::not_applicable(Cause::ReceiverWindow);
    }
    let mut builder = FindingBuilder::new(flow, Cause::ReceiverWindow);
    if let Some(arrivals) = Arrivals::of(flow) {
        return at_receiver(flow, builder, &arrivals);
    }
    record_readings(&mut builder, flow, false);
    let mut strength = match window_limited(flow) {
        Some(Limited::Certain) => Strength::Strong,
        Some(Limited::Possible) => Strength::Moderate,
        Some(Limited::No) | None => return builder.refuted(),
    };
    // A buffer that autotuning still enlarges does not limit a steady phase.
    if flow.parameters.window_bytes.is_none()
        && flow.figure(StreamView::rcvbuf_growth).is_some_and(|growth| growth.value >= BUFFER_GREW)
    {
        strength = strength.lowered();
    }
    let queue = match reader(flow) {
        _ if reads_on_schedule(flow) => return builder.refuted(),
        Reader::Behind | Reader::SeemsBehind => return builder.refuted(),
        Reader::KeepsUp => "the application kept its queue empty",
        Reader::Unclear => {
            strength = strength.lowered();
            "the application kept its queue partly filled"
        }
        Reader::SeemsToKeepUp | Reader::NotVisible => {
            builder.record_missing("the receive queue, which separates a small buffer from a slow reader");
            strength = Strength::Weak;
            "the receiving application's queue was not visible"
        }
    };
    let limited = flow.rwnd_limited().map_or(0.0, |figure| figure.value);
    let buffer = flow.figure(StreamView::rcvbuf).map(|figure| figure.value);
    let filled = flow.figure(StreamView::flight_over_window).is_some_and(|figure| figure.value >= WINDOW_FULL);
    // Of a watched flow the shares of time count both: the larger one is what they show.
    let full = if limited >= RWND_LIMITED && !(flow.observed && filled) {
        format!("the receive window was full {} of the time data was outstanding", text::percent(limited))
    } else {
        let share = flow.figure(StreamView::flight_over_window).map_or(0.0, |figure| figure.value);
        format!("data in flight took {} of the receive window", text::percent(share.min(1.0)))
    };
    let why = format!(
        "{full}, while {queue}{}",
        buffer.map(|bytes| format!("; the receive buffer is {}", text::bytes(bytes))).unwrap_or_default()
    );
    if let Some(end) = without_scaling(flow) {
        let why = format!("{why}; the connection has no window scaling, so the window is 64 KiB at most (RFC 7323)");
        let next = format!(
            "Turn window scaling on (`sysctl -w net.ipv4.tcp_window_scaling=1`) on {end}, and look for a firewall that removes \
             the option; then run again. No buffer size helps without it."
        );
        let mut finding = builder.holds(strength, why, next);
        finding.place = Some(format!("{}, window scaling", flow.receiver.name()));
        return finding;
    }
    let mut finding = builder.holds(strength, why, enlarge(flow, &flow.receiver, RECEIVE, buffer));
    finding.place = Some(format!("{}, receive buffer", flow.receiver.name()));
    finding
}

/// A full window, as the receiver of a watched flow sees it.
fn at_receiver(flow: &Flow, mut builder: FindingBuilder, arrivals: &Arrivals) -> Finding {
    let Some(strength) = arrivals.full_window(flow, &mut builder) else { return builder.refuted() };
    let buffer = flow.figure(StreamView::rcvbuf).map(|figure| figure.value);
    let why = format!(
        "the data of a round trip fills {} of the receive window, while the application kept its queue empty{}",
        text::percent(arrivals.window_used.unwrap_or(1.0).min(1.0)),
        buffer.map(|bytes| format!("; the receive buffer is {}", text::bytes(bytes))).unwrap_or_default()
    );
    let mut finding = builder.holds(strength, why, enlarge(flow, &flow.receiver, RECEIVE, buffer));
    finding.place = Some(format!("{}, receive buffer", flow.receiver.name()));
    finding
}

/// Names the host to blame for a connection without window scaling: one whose sysctl disables it, or else
/// either.
fn without_scaling(flow: &Flow) -> Option<String> {
    const WINDOW_SCALING: u8 = 4;
    let mut options = flow.streams.iter().filter_map(|stream| stream.tcp().next_back()).map(|tcp| tcp.options);
    let scaled = options.next().filter(|_| options.all(|options| options & WINDOW_SCALING == 0))?;
    // Without window scaling the 16-bit field limits the window.
    let largest =
        flow.streams.iter().flat_map(|s| s.tcp().filter_map(|tcp| tcp.snd_wnd_bytes).collect::<Vec<_>>()).max()?;
    if scaled & WINDOW_SCALING != 0 || largest > u32::from(u16::MAX) {
        return None;
    }
    let off = |host: &HostView| host.sysctl("net.ipv4.tcp_window_scaling") == Some("0");
    let hosts: Vec<String> =
        [&flow.sender, &flow.receiver].into_iter().filter(|host| off(host)).map(|host| flow.label(host)).collect();
    Some(if hosts.is_empty() { "both hosts".to_owned() } else { hosts.join(" and ") })
}
