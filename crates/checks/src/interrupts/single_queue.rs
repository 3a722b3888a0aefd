use super::{receive_queues, side};
use crate::hardware::{cpu_mask, handled_by, list_text, mask_text};
use crate::prelude::*;

declare_check! {
    /// Whether one CPU handles all packets of a NIC with one receive queue.
    ///
    /// **Reads** the number of receive queues, `queues/rx-0/rps_cpus` and where the interrupt is handled.
    ///
    /// **Matters** where many flows come in: with one queue, one CPU handles every packet. Receive packet steering
    /// (RPS) spreads the flows over others in software. Wagner's deck of 2012 shows it for a single-queue e1000e.
    ///
    /// **Leave it alone** for single flows, which stay on one CPU either way, and where the NIC or the virtual
    /// machine can have more queues, which is better and recommended by another check.
    code: "IRQ-007",
    title: "RPS for a single receive queue",
    scope: Port,
    severity: Minor,
    sources: [
        "Linux kernel, Documentation/networking/scaling.rst: RPS Suggested Configuration",
        red_hat_2012!("Receive Steering – improved message rates"),
    ],
    good: |facts, _| {
        example::single_queue(facts);
        example::queues(facts, "rx-", |queue| queue.rps_cpus = Some("0000fffe".into()));
    },
    bad: |facts, _| example::single_queue(facts),
}

/// Minimum number of CPUs: with fewer, only the CPU of the application could take packets.
const MIN_CPUS: usize = 4;

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let count = known!(receive_queues(port));
    if count != 1 {
        return Outcome::not_applicable(format!("{} has {count} receive queues", port.name));
    }
    let queues = known!(port.queues.as_ref());
    let Some(queue) = side(queues, "rx-").first().copied() else {
        return Outcome::unknown("its receive queue cannot be read");
    };
    let Some(mask) = queue.rps_cpus.as_deref() else {
        return Outcome::not_applicable("the receive queue has no rps_cpus");
    };
    let online = view.facts.cpu.online.len();
    if online < MIN_CPUS {
        return Outcome::not_applicable(format!("{online} CPUs are too few to spread over"));
    }
    let most = port.channels.known().map_or(0, |channels| channels.combined.max.max(channels.rx.max));
    if most > 1 {
        return Outcome::not_applicable(format!("it can have {most} queues, which is better (IRQ-004)"));
    }
    if let Some(cpus) = cpu_mask(mask).filter(|cpus| !cpus.is_empty()) {
        return Outcome::pass(format!("RPS over cpu {}", list_text(&cpus)));
    }
    let busy = view.queue_interrupts().known().and_then(|all| handled_by(all.first()?)).unwrap_or_default();
    let isolated = view.facts.cpu.isolated.known().and_then(|text| cpu_list(text)).unwrap_or_default();
    let near = view.local_cpus().known().cloned().unwrap_or_else(|| view.facts.cpu.online.clone());
    // The kernel's documentation recommends CPUs other than the interrupted one.
    let spread: Vec<u32> =
        near.into_iter().filter(|cpu| !isolated.contains(cpu) && (busy.len() > 1 || !busy.contains(cpu))).collect();
    if spread.is_empty() {
        return Outcome::not_applicable("no other CPU near the NIC could take packets");
    }
    let target = Target::Queue { interface: port.name.clone(), queue: queue.name.clone(), file: "rps_cpus".into() };
    Outcome::found(Problem {
        severity: (view.role() != Role::Guest && !view.is_guest()).then_some(Severity::Note),
        observed: format!("one receive queue for {online} CPUs, RPS off"),
        recommended: format!("RPS over cpu {} (mask {})", list_text(&spread), mask_text(&spread)),
        why: "One CPU handles every packet that comes in.".into(),
        effect: Effect::stated(
            "The deck's graph shows more transactions per second for 100 concurrent flows on a single-queue NIC, without figures; a single flow gains nothing",
            red_hat_2012!("Receive Steering – improved message rates"),
        ),
        by_hand: format!("cat /sys/class/net/{}/queues/{}/rps_cpus", shell_word(&port.name), shell_word(&queue.name)),
        applicability: Applicability::NeedsCare,
        changes: vec![Change::new(target, mask_text(&spread))],
    })
}
