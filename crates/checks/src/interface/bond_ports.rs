use landspeed_model::{Facts, Goal, InterfaceFacts};

use crate::prelude::*;

declare_check! {
    /// Whether the ports of a bond are alike.
    ///
    /// **Reads** speed and NUMA node of each port.
    ///
    /// **Matters** because a bond distributes flows evenly by hash: flows on the slower port are slow, and no
    /// tool shows why. Ports on two sockets cannot both be near the application.
    ///
    /// **Leave it alone** for active-backup bonds, whose second port is idle.
    code: "NIC-019",
    title: "Bond ports",
    scope: Interface,
    severity: Minor,
    sources: [
        "Linux kernel, Documentation/networking/bonding.rst: 802.3ad needs ports of one speed and duplex",
        "ESnet fasterdata, Interrupt Binding: https://fasterdata.es.net/host-tuning/linux/100g-tuning/interrupt-binding/",
    ],
    good: |facts, goal| bond(facts, goal, 100_000_000_000),
    bad: |facts, goal| bond(facts, goal, 40_000_000_000),
}

/// Adds a bond over the example's interface and a second one.
fn bond(facts: &mut Facts, goal: &mut Goal, second_bps: u64) {
    let mut second = facts.interfaces[0].clone();
    second.name = "ens1f1np1".into();
    second.speed_bps = Fact::Known(second_bps);
    facts.interfaces.push(second);
    facts.interfaces.push(InterfaceFacts {
        name: "bond0".into(),
        kind: Some("bond".into()),
        lower: vec!["ens1f0np0".into(), "ens1f1np1".into()],
        ..InterfaceFacts::default()
    });
    goal.interface = Some("bond0".into());
}

fn evaluate(view: &View<'_>) -> Outcome {
    let top = known!(view.interface());
    // A VLAN on a bond is common: the ports are those of the bond.
    let below = |name: &String| view.facts.interfaces.iter().find(|other| other.name == *name);
    let bond = if is_bond(top) { Some(top) } else { top.lower.iter().filter_map(below).find(|lower| is_bond(lower)) };
    let Some(bond) = bond else { return Outcome::not_applicable(format!("{} is not a bond", top.name)) };
    let ports: Vec<&InterfaceFacts> = bond.lower.iter().filter_map(below).collect();
    if ports.len() < 2 {
        return Outcome::not_applicable(format!("{} has fewer than two ports", bond.name));
    }
    let speeds: Vec<u64> = ports.iter().filter_map(|port| port.speed_bps.known().copied()).collect();
    let nodes: Vec<u32> = ports.iter().filter_map(|port| port.pci.known()?.numa_node.known().copied()).collect();
    let uneven = speeds.windows(2).any(|pair| pair[0] != pair[1]);
    let apart = nodes.windows(2).any(|pair| pair[0] != pair[1]);
    if !uneven && !apart {
        if speeds.len() < ports.len() {
            return Outcome::unknown("the speed of a port is not known");
        }
        return Outcome::pass(format!("{} ports of {}", ports.len(), rate_text(speeds[0])));
    }
    let (slowest, fastest) = (speeds.iter().min().copied(), speeds.iter().max().copied());
    let port = |port: &&InterfaceFacts| {
        let speed = port.speed_bps.known().map_or_else(|| "unknown".into(), |&bps| rate_text(bps));
        let node = port.pci.known().and_then(|pci| pci.numa_node.known());
        let node = node.map_or_else(String::new, |node| format!(" on node {node}"));
        format!("{} {speed}{node}", port.name)
    };
    Outcome::found(Problem {
        severity: (!uneven).then_some(Severity::Note),
        observed: ports.iter().map(port).collect::<Vec<_>>().join(", "),
        recommended: if uneven { "ports of one speed" } else { "ports on one socket, or one application for each" }
            .into(),
        why: if uneven {
            "Flows are dealt out evenly: those on the slower port are slow."
        } else {
            "An application can be near one of the ports only."
        }
        .into(),
        effect: if uneven {
            Effect::arithmetic(format!(
                "Flows on the slower port get at most {} of {}.",
                rate_text(slowest.unwrap_or(0)),
                rate_text(fastest.unwrap_or(0))
            ))
        } else {
            Effect::measured("Up to 2x slower for a flow on the wrong CPU socket", &[&source::SOCKET_CHOICE_EFFECT])
        },
        by_hand: ports.iter().fold(format!("cat /proc/net/bonding/{}", shell_word(&bond.name)), |line, port| {
            line + "; ethtool " + &shell_word(&port.name)
        }),
        ..Problem::default()
    })
}

fn is_bond(interface: &InterfaceFacts) -> bool {
    interface.kind.as_deref() == Some("bond")
}
