use super::{by_hand, desired, if_fq_exists, queueing};
use crate::prelude::*;

/// Qdiscs that shape or order traffic, and were therefore configured on purpose.
const SHAPERS: [&str; 7] = ["htb", "hfsc", "tbf", "cake", "prio", "drr", "ets"];

declare_check! {
    /// Whether a multi-queue device has one qdisc per transmit queue.
    ///
    /// **Reads** the root qdisc and the number of transmit queues.
    ///
    /// **Matters** because a qdisc other than `mq` at the root takes all packets through one queue with one
    /// lock, regardless of the device. `tc qdisc replace dev X root fq`, as in many guides, does this to a
    /// device with many queues; so do tuning scripts that restore only the first line they saved.
    ///
    /// **Leave it alone** where a shaper (`htb`, `cake` …) must see all traffic to hold it to one rate.
    code: "QDISC-003",
    title: "One qdisc for many transmit queues",
    scope: Port,
    severity: Note,
    sources: [
        "Linux net/sched/sch_mq.c: one child for each transmit queue, each with its own lock",
        "landspeed's own experiment on Linux 6.18: `tc qdisc del dev X root` brings mq back, restoring a saved \
         line does not",
    ],
    bad: |facts, _| example::for_each_qdisc(facts, |qdisc| if qdisc.parent.is_none() { qdisc.kind = "fq".into() }),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let queueing = queueing!(port);
    let queues = *known!(&port.tx_queues);
    if queues < 2 {
        return Outcome::not_applicable("the device has one transmit queue");
    }
    if queueing.per_queue() {
        return Outcome::pass(format!("{} over {queues} transmit queues", queueing.root));
    }
    if queueing.root == "noqueue" {
        return Outcome::not_applicable("the interface has no queue (QDISC-002)");
    }
    let shaper = SHAPERS.contains(&queueing.root);
    let speed = port.speed_bps.known().map_or_else(String::new, |&bps| format!(" at {}", rate_text(bps)));
    let (recommended, changes) =
        if shaper {
            ("mq with a qdisc on each queue, if the limit is not wanted any more; to limit one group of processes, a \
          limit on its cgroup instead"
            .to_owned(), vec![])
        } else {
            let desired = desired(view, &queueing);
            let recommended = format!("mq with {desired} on each queue");
            (recommended, vec![Change::new(Target::Qdisc { interface: port.name.clone() }, desired)])
        };
    let problem = Problem {
        observed: format!("{} alone at the root, {queues} transmit queues{speed}", queueing.root),
        recommended,
        why: "All CPUs take one lock to send, though the device has a queue for each.".into(),
        by_hand: by_hand(port),
        applicability: if shaper { Applicability::DisplayOnly } else { Applicability::NeedsCare },
        changes,
        ..Problem::default()
    };
    Outcome::found(if_fq_exists(view, problem))
}
