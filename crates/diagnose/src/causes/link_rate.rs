//! The interface runs at its rate.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, Scales, Strength};
use crate::flow::Flow;
use crate::host::HostView;
use crate::text;
use crate::thresholds::{RATE_IMPOSSIBLE, RATE_REACHED, SEND_FULL};

/// Holds the rate on the wire against the speed of each end's interface; for UDP also whether the local interface
/// took no more than it did.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.is_rr() || flow.loopback() {
        return Finding::not_applicable(Cause::LinkRate);
    }
    let mut scales = Scales::new(flow, Cause::LinkRate);
    let mut full: Option<(&HostView, f64)> = None;
    for host in [&flow.sender, &flow.receiver] {
        let Some((speed, wire)) = host.line_rate_bps().zip(flow.wire_bps()) else {
            scales.lacks(&format!("a real interface speed ({})", host.name()));
            continue;
        };
        let bound = Bound::Within(RATE_REACHED, RATE_IMPOSSIBLE);
        let source = format!("hosts.{}.nic.speed_bps", host.name());
        let met = scales.value(
            "rate on the wire over line rate",
            Some(wire / speed),
            "ratio",
            bound,
            Some(host.end),
            &source,
        );
        if met == Some(true) && full.is_none_or(|(_, slowest)| speed < slowest) {
            full = Some((host, speed));
        }
    }
    if let Some((host, speed)) = full {
        let nic = host.snapshot.and_then(|snapshot| snapshot.nic.as_ref()).map_or("its interface", |nic| &nic.name);
        let why = format!("{nic} of the {} runs at its {}", host.name(), text::rate(speed));
        let next_step =
            "This is the hardware's limit: use a faster interface, or bond several and use parallel streams.";
        let mut finding = scales.holds(Strength::Strong, why, next_step.to_owned());
        finding.direct = true;
        finding.place = Some(format!("{} {nic}", host.name()));
        return finding;
    }
    if let Some(udp) = &flow.udp
        && !udp.loses()
        && udp.reached().is_some_and(|reached| reached < RATE_REACHED)
    {
        let fill = flow.figure(crate::stream::StreamView::send_fill);
        let queued = scales.figure(
            "send queue memory over SO_SNDBUF",
            fill,
            "ratio",
            Bound::AtLeast(SEND_FULL),
            "sender.samples[].wmem_queued_bytes",
        );
        if queued == Some(true) {
            let why = format!(
                "the {}'s interface or its queueing discipline took no more: the socket's send queue stayed full",
                flow.sender.name()
            );
            let next_step = format!(
                "Look for a shaper on the {} (`tc -s qdisc`), or lower --rate to what leaves.",
                flow.sender.name()
            );
            let mut finding = scales.holds(Strength::Moderate, why, next_step);
            finding.place = Some(format!("{} interface", flow.sender.name()));
            return finding;
        }
    }
    scales.refuted()
}
