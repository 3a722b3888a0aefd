use crate::prelude::*;
use crate::qdisc::Queueing;

/// Kernel default of an Ethernet interface, packets.
const KERNEL_DEFAULT: u32 = 1000;

declare_check! {
    /// Whether `txqueuelen` was raised.
    ///
    /// **Reads** `txqueuelen` and the qdiscs of the port.
    ///
    /// **Matters** little: `fq` and `fq_codel` have their own limits and ignore it. Where `pfifo_fast` is used
    /// it is a real queue, and a long one delays every flow: 10000 packets of 9000 bytes are 72 ms at 10 Gb/s.
    ///
    /// **Leave it alone**: the 2016 ESnet deck lists it among the settings not to touch.
    code: "OLD-005",
    title: "txqueuelen raised",
    scope: Port,
    severity: Note,
    sources: [esnet_2016!("Settings to leave alone in CentOS7"), "tc-fq(8), limit and flow_limit"],
    bad: |facts, _| example::port(facts).tx_queue_len = Fact::Known(10_000),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let length = *known!(&port.tx_queue_len);
    if length <= KERNEL_DEFAULT {
        return Outcome::pass(format!("{length} packets"));
    }
    let Some(queueing) = Queueing::of(known!(&port.qdiscs)) else {
        return Outcome::unknown("the kernel named no root qdisc");
    };
    let used = queueing.leaves.iter().any(|leaf| matches!(leaf.kind.as_str(), "pfifo_fast" | "pfifo" | "bfifo"));
    Outcome::found(Problem {
        severity: used.then_some(Severity::Minor),
        observed: format!("{length} packets, {}", queueing.kinds()),
        recommended: format!("{KERNEL_DEFAULT}, the kernel default"),
        why: if used {
            "It is a real queue here: what waits in it is delay for every flow."
        } else {
            "The qdiscs here have their own limits and ignore it."
        }
        .into(),
        effect: if used { Effect::NotMeasured } else { Effect::stated("None with these qdiscs", "tc-fq(8)") },
        by_hand: format!("ip link show {}", shell_word(&port.name)),
        applicability: Applicability::Safe,
        changes: vec![Change::new(Target::TxQueueLen { interface: port.name.clone() }, KERNEL_DEFAULT.to_string())],
    })
}
