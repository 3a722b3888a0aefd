//! Cause: the interface transmits at its line rate.

use landspeed_model::Cause;

use crate::finding::{Bound, Finding, FindingBuilder, Standing, Strength};
use crate::flow::Flow;
use crate::host::HostView;
use crate::route::{Hop, Route};
use crate::text;
use crate::thresholds::{FULL_LINK, RATE_IMPOSSIBLE, RATE_REACHED, SEND_FULL};

/// Compares the wire rate with the speed of each host's interface; for UDP also checks whether the local
/// interface or qdisc accepted no more.
pub(crate) fn evaluate(flow: &Flow) -> Finding {
    if flow.is_rr() || flow.loopback() {
        return Finding::not_applicable(Cause::LinkRate);
    }
    let mut builder = FindingBuilder::new(flow, Cause::LinkRate);
    if let Some(route) = &flow.route {
        return in_lab(flow, route, builder);
    }
    let mut full: Option<(&HostView, f64)> = None;
    for host in [&flow.sender, &flow.receiver] {
        let Some((speed, wire)) = host.line_rate_bps().zip(flow.wire_bps()) else {
            builder.record_missing(&format!("a real interface speed ({})", host.name()));
            continue;
        };
        let bound = Bound::Within(RATE_REACHED, RATE_IMPOSSIBLE);
        let source = format!("hosts.{}.nic.speed_bps", host.name());
        let met = builder.value(
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
        let mut finding = builder.holds(Strength::Strong, why, next_step.to_owned());
        finding.direct = true;
        finding.place = Some(format!("{} {nic}", host.name()));
        return finding;
    }
    if let Some(udp) = &flow.udp
        && !udp.loses()
        && udp.reached().is_some_and(|reached| reached < RATE_REACHED)
    {
        let queued = builder.send_fill(Bound::AtLeast(SEND_FULL));
        if queued == Some(true) {
            let why = format!(
                "the {}'s interface or its qdisc took no more: the socket's send queue stayed full",
                flow.sender.name()
            );
            let next_step = format!(
                "Look for a shaper on the {} (`tc -s qdisc`), or lower --rate to the rate that leaves.",
                flow.sender.name()
            );
            let mut finding = builder.holds(Strength::Moderate, why, next_step);
            finding.place = Some(format!("{} interface", flow.sender.name()));
            return finding;
        }
    }
    builder.refuted()
}

/// The lab's link of either host was full.
fn in_lab(flow: &Flow, route: &Route, mut builder: FindingBuilder) -> Finding {
    let Some(full) = route.full() else {
        if let Some(hop) = route.forward.first() {
            read(&mut builder, hop);
        }
        return builder.refuted();
    };
    let ends = [(&flow.sender, route.forward.first()), (&flow.receiver, route.forward.last())];
    let own = ends.into_iter().find(|(_, hop)| hop.is_some_and(|hop| hop.link_index == full.link_index));
    read(&mut builder, full);
    let Some((host, _)) = own else { return builder.finish(Standing::Refuted) };
    let rate = text::rate(full.link.rate_bps as f64);
    let why = format!(
        "the {}'s own link {} is full: {} of its {rate}",
        host.name(),
        full.link.name,
        text::percent(full.utilisation.min(1.0))
    );
    let next = "This is the rate of the host's link: use a faster one, or bond several and use parallel streams.";
    let finding = builder.holds(Strength::Strong, why, next.to_owned());
    Finding { direct: true, place: Some(format!("{} link {}", host.name(), full.link.name)), ..finding }
}

fn read(builder: &mut FindingBuilder, hop: &Hop) {
    let metric = format!("utilisation of {}", hop.link.name);
    let source = format!("links[{}]", hop.link_index);
    builder.value(&metric, Some(hop.utilisation), "ratio", Bound::AtLeast(FULL_LINK), None, &source);
}
