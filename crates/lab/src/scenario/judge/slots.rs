//! Senders whose own link has the rate of the port they fill.
//!
//! A full drop-tail port has room for one frame after each departure. From a sender's link with the port's own
//! rate, one frame arrives per departure, and other senders get at least half of the drops, whatever their rate;
//! from a faster link several frames arrive per departure, and most drops are the sender's own.
//! `docs/lab-validation.md` has the calculation and the measurements.

use std::collections::BTreeMap;

use super::flows::{flow_directions, protocol};
use super::links::gigabits;
use crate::scenario::judgement::Judgement;
use crate::scenario::paths::{Paths, Route};
use crate::scenario::{FlowProtocol, Scenario};

/// Relative difference up to which rates are the same: at 0.2 % the split of the drops is the same, and at 20 %
/// it is not.
const SAME_RATE: f64 = 0.01;

/// Warns about ports where a TCP sender on a link with the port's rate competes with another flow.
pub(super) fn judge(scenario: &Scenario, paths: &Paths, judgement: &mut Judgement) {
    let bulk = scenario.flow.iter().filter(|flow| matches!(protocol(flow), FlowProtocol::Tcp | FlowProtocol::Udp));
    let routes: Vec<(bool, Route)> = bulk
        .flat_map(|flow| {
            flow_directions(flow).into_iter().map(move |ends| (protocol(flow) == FlowProtocol::Tcp, ends))
        })
        .filter_map(|(tcp, (from, to))| Some((tcp, paths.route(from, to)?)))
        .collect();
    // The links of senders that are as fast as a port, by the port's link and its direction.
    let mut ports: BTreeMap<(usize, bool), Vec<usize>> = BTreeMap::new();
    for (tcp, route) in &routes {
        let own = route.hops[0];
        let Some(at) = (1..route.hops.len()).find(|&at| same_rate(route.hops[at].rate_bps, own.rate_bps)) else {
            continue;
        };
        let port = route.hops[at];
        // A slower link later on has the queue instead, and a slower one before the port spaces the frames.
        let narrowest = route.rate_bps() == port.rate_bps || same_rate(route.rate_bps(), port.rate_bps);
        let joined = routes.iter().any(|(_, other)| {
            other.hops.windows(2).any(|pair| {
                (pair[1].link, pair[1].forward) == (port.link, port.forward)
                    && pair[0].link != route.hops[at - 1].link
            })
        });
        if *tcp && narrowest && joined {
            let links = ports.entry((port.link, port.forward)).or_default();
            if !links.contains(&own.link) {
                links.push(own.link);
            }
        }
    }
    for ((link, forward), own) in ports {
        let [a, b] = &scenario.link[link].between;
        let (from, to) = if forward { (a, b) } else { (b, a) };
        let port_bps = paths.neighbours(from).find(|hop| hop.into == to).map_or(0, |hop| hop.rate_bps);
        let names: Vec<String> = own.iter().map(|link| format!("link.{link}")).collect();
        let message = format!(
            "the sender's link ({}) has the rate of the port from {from} to {to} ({}), where other flows join: losses of \
             competing flows depend on packet phase, not on their rates; make the sender's link faster, or vary the start \
             (start-spread) and repeat it",
            names.join(", "),
            gigabits(port_bps as f64)
        );
        judgement.warn("same-rate-link", &format!("link.{}.rate", own[0]), message);
    }
}

fn same_rate(a: u64, b: u64) -> bool {
    (a as f64 - b as f64).abs() <= SAME_RATE * b as f64
}
