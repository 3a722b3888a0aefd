use super::{by_hand, desired, queueing};
use crate::prelude::*;

declare_check! {
    /// Whether all transmit queues have the same `maxrate`.
    ///
    /// **Reads** `maxrate` of every `fq`.
    ///
    /// **Matters** because a flow's queue is picked by a hash or by the CPU it runs on: with different rates
    /// the same transfer is sometimes fast and sometimes slow, and nothing in the network explains it.
    ///
    /// **Leave it alone** where queues are assigned on purpose (`mqprio`, XPS for one group of processes).
    code: "QDISC-008",
    title: "Same pacing rate on every queue",
    scope: Port,
    severity: Minor,
    sources: ["tc-fq(8), maxrate", "Linux net/sched/sch_mq.c: one child for each transmit queue"],
    bad: |facts, _| {
        example::for_each_qdisc(facts, |qdisc| {
            if qdisc.parent.as_deref() == Some("8001:5") {
                qdisc.max_rate_bps = None;
            }
        });
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let queueing = queueing!(port);
    let rates = queueing.rates();
    let text = |rate: Option<u64>| rate.map_or_else(|| "no limit".into(), rate_text);
    let [.., highest] = rates[..] else {
        return Outcome::not_applicable("there is no transmit queue with a qdisc");
    };
    if rates.len() == 1 {
        return Outcome::pass(format!("{} on all", text(highest)));
    }
    let texts: Vec<_> = rates.iter().map(|&rate| text(rate)).collect();
    let desired = desired(view, &queueing);
    Outcome::found(Problem {
        severity: None,
        observed: format!("limits of the {} queues: {}", queueing.leaves.len(), texts.join(", ")),
        recommended: format!("one for all, for example {desired}"),
        why: "Which limit a flow gets depends on its queue, and that on a hash or the CPU.".into(),
        effect: Effect::arithmetic(format!("The same transfer runs at one of {} rates.", rates.len())),
        by_hand: by_hand(port),
        applicability: Applicability::NeedsCare,
        changes: vec![Change::new(Target::Qdisc { interface: port.name.clone() }, desired)],
    })
}
