use landspeed_model::QueueFacts;

use super::side;
use crate::hardware::cpu_mask;
use crate::prelude::*;

declare_check! {
    /// Whether RPS spreads packets that the NIC (RSS) has already spread.
    ///
    /// **Reads** `queues/rx-*/rps_cpus`, the number of receive queues and of CPUs near the NIC.
    ///
    /// **Matters** because receive packet steering (RPS) passes each packet to another CPU with an
    /// inter-processor interrupt. Where every CPU has its own queue, this is wasted work and moves the packet's
    /// cache lines.
    ///
    /// **Leave it alone** where there are fewer queues than CPUs, and where the NIC cannot hash the traffic
    /// (tunnels it does not parse).
    code: "IRQ-006",
    title: "RPS beside enough receive queues",
    scope: Port,
    severity: Minor,
    sources: ["Linux kernel, Documentation/networking/scaling.rst: RPS Suggested Configuration"],
    bad: |facts, _| example::queues(facts, "rx-", |queue| queue.rps_cpus = Some("0000ffff".into())),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let queues = known!(port.queues.as_ref());
    let receive = side(queues, "rx-");
    let steered =
        |queue: &QueueFacts| queue.rps_cpus.as_deref().and_then(cpu_mask).is_some_and(|cpus| !cpus.is_empty());
    let with: Vec<&QueueFacts> = receive.iter().copied().filter(|queue| steered(queue)).collect();
    if with.is_empty() {
        return Outcome::pass("RPS is off");
    }
    let near = match view.local_cpus().known() {
        Some(cpus) => cpus.len(),
        None => view.facts.cpu.online.len(),
    };
    if near == 0 {
        return Outcome::unknown("the number of CPUs is unknown");
    }
    if receive.len() < near {
        return Outcome::pass(format!("RPS on {} of {} queues, for {near} CPUs", with.len(), receive.len()));
    }
    let off = |queue: &&QueueFacts| {
        let target =
            Target::Queue { interface: port.name.clone(), queue: queue.name.clone(), file: "rps_cpus".into() };
        Change::new(target, "0")
    };
    Outcome::found(Problem {
        severity: None,
        observed: format!("RPS on {} of {} queues, {near} CPUs near the NIC", with.len(), receive.len()),
        recommended: "off: there is a queue for each CPU".into(),
        why: "Each packet is handed on by software though the NIC already chose a CPU for it.".into(),
        effect: Effect::stated(
            "RPS is probably redundant and unnecessary with a hardware queue for each CPU",
            "Linux kernel, Documentation/networking/scaling.rst",
        ),
        by_hand: format!("grep . /sys/class/net/{}/queues/rx-*/rps_cpus", shell_word(&port.name)),
        applicability: Applicability::Safe,
        changes: with.iter().map(off).collect(),
    })
}
