//! Flows: from the scenario to the parameters of the flow engine.

use std::net::IpAddr;

use landspeed_model::{Parameters, Protocol, QualifySection, ReceiveMode, SendMode};

use super::address::splitmix;
use super::network::Network;
use super::{PlanError, PlannedFlow, PlannedSection};
use crate::scenario::{Flow, FlowProtocol, HostCpu, QUALIFY_TIME_NS, Scenario};

/// Time before a flow's start in which its connections are opened, in addition to round trips, nanoseconds. It
/// covers the control messages, and a handshake that has to be repeated once.
const LEAD_NS: u64 = 1_500_000_000;
/// Number of RTTs that opening a flow's connections may take: handshake, introduction, and a repetition of one of
/// them.
const LEAD_ROUND_TRIPS: u64 = 4;
/// Idle time in which probes run before the load begins, nanoseconds, with a margin for their transactions.
const PROBE_LEAD_NS: u64 = 3_000_000_000;

/// Plans every flow.
pub fn plan(scenario: &Scenario, network: &Network) -> Result<Vec<PlannedFlow>, PlanError> {
    let mut flows: Vec<PlannedFlow> = Vec::with_capacity(scenario.flow.len());
    for (index, flow) in scenario.flow.iter().enumerate() {
        let (from, to) = (network.host(&flow.from)?, network.host(&flow.to)?);
        let rtt_ns = network.rtt_ns(from, to)?;
        let mut lead_ns = LEAD_NS + LEAD_ROUND_TRIPS * rtt_ns;
        if flow.probe.is_some() {
            lead_ns += PROBE_LEAD_NS;
        }
        let default = format!("{}-{}", flow.from, flow.to);
        let mut name = flow.name.clone().unwrap_or(default);
        if flows.iter().any(|other| other.name == name) {
            name = format!("{name}-{}", index + 1);
        }
        let address = |node: usize| network.address(node, flow.ipv6);
        flows.push(PlannedFlow {
            name,
            from,
            to,
            control: network.control(to)?,
            data: (address(from)?, address(to)?),
            start_ns: start_ns(scenario, index),
            lead_ns,
            parameters: parameters(scenario, flow, address(from)?, network.path_mtu(from, to)?),
            section: section(flow, network, from, to)?,
        });
    }
    Ok(flows)
}

/// Returns the section that a flow tests; `None` for other protocols. RTT, MTU and the rate of the sender's interface are those of
/// the links: control connections use a different network.
fn section(flow: &Flow, network: &Network, from: usize, to: usize) -> Result<Option<PlannedSection>, PlanError> {
    if flow.protocol != Some(FlowProtocol::Qualify) {
        return Ok(None);
    }
    let target = flow.section_target().map_err(PlanError)?;
    let sender = if flow.reverse { to } else { from };
    Ok(Some(PlannedSection {
        target: target.document(),
        section: QualifySection {
            client_addr: Some(network.address(from, flow.ipv6)?.to_string()),
            server_addr: Some(network.address(to, flow.ipv6)?.to_string()),
            rtt_ns: Some(network.rtt_ns(from, to)?),
            path_mtu_bytes: Some(network.path_mtu(from, to)?),
            line_rate_bps: network.nodes[sender].ports.first().map(|port| port.egress.rate_bps),
        },
        max_test_ns: flow.time.map_or(QUALIFY_TIME_NS, |time| time.0.get()),
    }))
}

/// Returns the start of a flow, nanoseconds from zero: as in the scenario, plus its own random part of the
/// spread.
fn start_ns(scenario: &Scenario, index: usize) -> u64 {
    let flow = &scenario.flow[index];
    let spread_ns = flow.start_spread.map_or(0, |t| t.0.get());
    let drawn = splitmix(scenario.seed ^ splitmix(!(index as u64)));
    // The upper half of a product is uniform over the range, without the bias of a division.
    let late_ns = (u128::from(drawn) * u128::from(spread_ns)) >> 64;
    flow.start.map_or(0, |t| t.0.get()) + late_ns as u64
}

/// Returns the expected end of a flow, nanoseconds from the scenario's zero.
pub fn end_ns(flow: &PlannedFlow) -> u64 {
    flow.start_ns + flow.parameters.omit_ns + flow.parameters.time_ns.unwrap_or(0)
}

fn host_cpu(scenario: &Scenario, name: &str) -> Option<HostCpu> {
    scenario.host.get(name)?.or(&scenario.hosts).cpu
}

fn parameters(scenario: &Scenario, flow: &Flow, bind: IpAddr, mtu: u32) -> Parameters {
    let mut p = flow.parameters();
    p.bind = Some(bind.to_string());
    if flow.time.is_none() && flow.bytes.is_none() {
        p.time_ns = Some(scenario.time.0.get());
    }
    if p.protocol == Protocol::Tcp {
        // A copy costs real time only, unless the scenario has its cost.
        let cpus = || [&flow.from, &flow.to].into_iter().filter_map(|name| host_cpu(scenario, name));
        let copied = (cpus().any(|cpu| cpu.send.is_some()), cpus().any(|cpu| cpu.read.is_some()));
        p.send = flow.send.unwrap_or(if copied.0 { SendMode::Copy } else { SendMode::Sendfile });
        p.receive = flow.receive.unwrap_or(if copied.1 { ReceiveMode::Copy } else { ReceiveMode::Discard });
    }
    if let Some(udp) = &mut p.udp {
        let headers = if flow.ipv6 { 48 } else { 28 };
        if flow.len.is_none() {
            // The payload that fits one frame.
            udp.payload_bytes = mtu.saturating_sub(headers);
        }
        // Each datagram stays one packet on the whole path, because queues and losses count packets.
        (udp.gso, udp.gro) = (false, false);
    }
    p
}

#[cfg(test)]
mod tests {
    use crate::scenario::read;

    const PATH: &str = "name = \"n\"\nrepeats = 40\n[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1G\"\n\
                        [[flow]]\nfrom = \"a\"\nto = \"b\"\nstart = \"1s\"\n";

    fn starts(flow: &str) -> Vec<u64> {
        let cells = read(&format!("{PATH}{flow}")).unwrap_or_else(|problems| panic!("{problems}"));
        cells.iter().map(|cell| super::start_ns(&cell.scenario, 0)).collect()
    }

    #[test]
    fn a_flow_without_spread_starts_at_its_start() {
        assert!(starts("").iter().all(|start| *start == 1_000_000_000));
    }

    #[test]
    fn seeds_draw_repeatable_starts_from_the_whole_spread() {
        let drawn = starts("start-spread = \"100ms\"");
        assert_eq!(drawn, starts("start-spread = \"100ms\""));
        let (low, high) = (1_000_000_000, 1_100_000_000);
        assert!(drawn.iter().all(|start| (low..high).contains(start)), "{drawn:?}");
        // With forty uniform draws, some quarter is empty once in 25,000 cases; these seeds are fixed.
        for quarter in 0..4 {
            let within = low + quarter * 25_000_000..low + (quarter + 1) * 25_000_000;
            assert!(drawn.iter().any(|start| within.contains(start)), "{drawn:?}");
        }
    }
}
