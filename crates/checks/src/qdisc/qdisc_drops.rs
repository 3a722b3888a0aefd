use super::{by_hand, queueing};
use crate::advice::share;
use crate::prelude::*;

declare_check! {
    /// Whether a qdisc drops packets before they are sent.
    ///
    /// **Reads** drops of every qdisc, and packets sent since the driver was loaded.
    ///
    /// **Matters** because these packets are lost before they leave the host. With `fq` it is mostly one flow
    /// over its limit (UDP, or a program with very many queued packets); with other qdiscs a queue that is too
    /// short or a shaper.
    ///
    /// **Leave it alone** on a router or behind a shaper: drops are how it signals senders to slow down.
    code: "QDISC-007",
    title: "Qdisc drops",
    scope: Port,
    severity: Minor,
    sources: ["tc-fq(8), limit and flow_limit", lbnl_2015!("Impact of packet loss at different distances")],
    bad: |facts, _| example::for_each_qdisc(facts, |qdisc| qdisc.drops = 200_000),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let queueing = queueing!(port);
    let drops = queueing.leaves.iter().fold(0_u64, |sum, leaf| sum.saturating_add(leaf.drops));
    if drops == 0 {
        return Outcome::pass("none since they were attached");
    }
    let Some(&sent) = port.statistics.get("tx_packets") else {
        return Outcome::unknown(format!("{drops} dropped, but the interface does not say how many were sent"));
    };
    let dropped = share(drops, sent.saturating_add(drops));
    let said = format!("{drops} dropped, {} of what was to be sent", percent(dropped));
    if dropped < SIGNIFICANT_LOSS_RATE {
        return Outcome::pass(said);
    }
    Outcome::found(Problem {
        effect: Effect::measured(
            "Loss costs more the longer the path: 0.0046 % on a 10 Gb/s link is the deck's example",
            &[&source::LOSS_AT_A_DISTANCE],
        ),
        ..advice::manual_problem(
            said,
            format!("below {}; find the queue and the program that fills it", percent(SIGNIFICANT_LOSS_RATE)),
            "What the host drops itself is loss that no network can be blamed for.",
            by_hand(port),
        )
    })
}
