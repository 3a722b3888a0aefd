//! Checks of interrupts, queues and steering, one per file.

use landspeed_model::{Fact, InterfaceFacts, QueueFacts};

use crate::check::{Check, Group};
use crate::view::View;

mod accelerated_rfs;
mod budget_squeezes;
mod coalescing;
mod hard_irq_deferral;
mod irqbalance;
mod queue_count;
mod receive_flow_steering;
mod redundant_steering;
mod remote_node;
mod rss_table;
mod shared_core;
mod single_queue;
mod softnet_drops;
mod threaded_napi;
mod transmit_steering;

const GROUP: Group = Group::Interrupts;

/// Checks of this group, by code.
pub(crate) static CHECKS: &[&Check] = &[
    &remote_node::CHECK,
    &shared_core::CHECK,
    &irqbalance::CHECK,
    &queue_count::CHECK,
    &rss_table::CHECK,
    &redundant_steering::CHECK,
    &single_queue::CHECK,
    &receive_flow_steering::CHECK,
    &transmit_steering::CHECK,
    &coalescing::CHECK,
    &hard_irq_deferral::CHECK,
    &threaded_napi::CHECK,
    &softnet_drops::CHECK,
    &budget_squeezes::CHECK,
    &accelerated_rfs::CHECK,
];

/// Returns the number of receive queues in use: the channels, else the queues of the interface.
fn receive_queues(port: &InterfaceFacts) -> Fact<u32> {
    match &port.channels {
        Fact::Known(channels) if channels.combined.now > 0 || channels.rx.now > 0 => {
            Fact::Known(channels.combined.now.saturating_add(channels.rx.now))
        }
        _ => port.rx_queues.clone(),
    }
}

/// Returns the average number of physical cores per NUMA node; `None` if it is unknown.
fn cores_of_a_node(view: &View<'_>) -> Option<u32> {
    let nodes = view.facts.numa.known().map_or(1, |nodes| nodes.iter().filter(|node| !node.cpus.is_empty()).count());
    Some(view.facts.cpu.cores.known()? / (nodes.max(1) as u32)).filter(|cores| *cores > 0)
}

/// Returns the queues whose names begin with `side` (`rx-`, `tx-`), by number.
fn side<'a>(queues: &'a [QueueFacts], side: &str) -> Vec<&'a QueueFacts> {
    let mut chosen: Vec<_> = queues.iter().filter(|queue| queue.name.starts_with(side)).collect();
    chosen.sort_by_key(|queue| queue.name[side.len()..].parse::<u32>().unwrap_or(u32::MAX));
    chosen
}
