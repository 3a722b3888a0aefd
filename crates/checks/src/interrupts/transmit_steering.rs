use landspeed_model::QueueFacts;

use super::side;
use crate::hardware::{cpu_mask, mask_text};
use crate::prelude::*;

declare_check! {
    /// Whether each CPU sends through its own queue.
    ///
    /// **Reads** `queues/tx-*/xps_cpus` and the CPUs online.
    ///
    /// **Matters** because without transmit packet steering (XPS) a flow's queue is chosen by hash: CPUs contend for
    /// the same queue's lock, and completions come in on a CPU that did not send.
    ///
    /// **Leave it alone** where the driver picks queues by itself, and where queues are mapped to traffic classes.
    code: "IRQ-009",
    title: "XPS maps",
    scope: Port,
    severity: Note,
    sources: ["Linux kernel, Documentation/networking/scaling.rst: XPS Suggested Configuration"],
    bad: |facts, _| example::queues(facts, "tx-", |queue| queue.xps_cpus = Some("00000000".into())),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let queues = known!(port.queues.as_ref());
    let transmit: Vec<&QueueFacts> =
        side(queues, "tx-").into_iter().filter(|queue| queue.xps_cpus.is_some()).collect();
    if transmit.len() < 2 {
        return Outcome::not_applicable(format!("{} has no transmit queues to choose from", port.name));
    }
    let online = &view.facts.cpu.online;
    if online.is_empty() {
        return Outcome::unknown("the CPUs online cannot be read");
    }
    let mapped =
        |queue: &&QueueFacts| queue.xps_cpus.as_deref().and_then(cpu_mask).is_some_and(|cpus| !cpus.is_empty());
    let with = transmit.iter().copied().filter(|queue| mapped(queue)).count();
    // With fewer CPUs than queues, it is correct that some queues have no CPU.
    if with >= transmit.len().min(online.len()) {
        return Outcome::pass(format!("{with} of {} queues mapped", transmit.len()));
    }
    let change = |(number, queue): (usize, &&QueueFacts)| {
        let cpus: Vec<u32> = online.iter().copied().skip(number).step_by(transmit.len()).collect();
        let target =
            Target::Queue { interface: port.name.clone(), queue: queue.name.clone(), file: "xps_cpus".into() };
        Change::new(target, mask_text(&cpus))
    };
    Outcome::found(Problem {
        // Without any map the kernel falls back to hashing, which works; an incomplete map leaves queues
        // unused.
        severity: (with == 0).then_some(Severity::Note),
        observed: format!("{with} of {} transmit queues mapped to CPUs", transmit.len()),
        recommended: format!("every queue mapped: {} CPUs dealt out over {} queues", online.len(), transmit.len()),
        why: "CPUs that send through the same queue wait for its lock; a queue without CPUs is not chosen.".into(),
        effect: Effect::NotMeasured,
        by_hand: format!("grep . /sys/class/net/{}/queues/tx-*/xps_cpus", shell_word(&port.name)),
        applicability: Applicability::Safe,
        changes: transmit.iter().enumerate().map(change).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_is_assigned_to_exactly_one_queue() {
        let mut facts = example::facts();
        example::queues(&mut facts, "tx-", |queue| queue.xps_cpus = Some("0".into()));
        let audit = CHECK.audit_alone(&facts, &example::goal());
        let masks = audit.findings[0].changes.iter().filter_map(|change| cpu_mask(&change.desired));
        let mut all: Vec<u32> = masks.flatten().collect();
        all.sort_unstable();
        assert_eq!(all, facts.cpu.online);
    }
}
