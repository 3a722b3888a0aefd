use super::{STREAMS, by_hand, desired, queueing, streams};
use crate::prelude::*;

declare_check! {
    /// Whether `maxrate` is too low for the goal.
    ///
    /// **Reads** `maxrate` of every `fq`, and the goal's rate.
    ///
    /// **Matters** because `fq maxrate` silently limits every flow: a value that remains from a slower receiver
    /// or an experiment looks like a slow network.
    ///
    /// **Leave it alone** where more than eight streams share the goal on purpose, or a receiver is that slow.
    code: "QDISC-006",
    title: "Pacing rate below the goal",
    scope: Port,
    severity: Major,
    sources: ["tc-fq(8), maxrate: the maximum sending rate of a flow"],
    bad: |facts, _| {
        example::for_each_qdisc(facts, |qdisc| qdisc.max_rate_bps = qdisc.max_rate_bps.map(|_| 1_000_000_000));
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let queueing = queueing!(port);
    let Some(rate) = queueing.rates().into_iter().flatten().min() else {
        return Outcome::pass("no flow is held to a rate");
    };
    let goal = known!(view.rate_bps());
    let flows = goal.div_ceil(rate.max(1));
    let said = format!("each flow is held to {}, the goal is {}", rate_text(rate), rate_text(goal));
    if flows <= streams(view) {
        return Outcome::pass(said);
    }
    let desired = desired(view, &queueing);
    Outcome::found(Problem {
        severity: (flows <= STREAMS).then_some(Severity::Minor),
        observed: said,
        recommended: if desired == "fq" {
            "fq without maxrate, or with the intended rate".into()
        } else {
            format!("{desired} on all queues, or the intended rate")
        },
        why: format!(
            "The goal needs {flows} flows at once at this rate; fewer cannot reach it, whatever the path does."
        ),
        effect: Effect::arithmetic(format!(
            "{} flows carry at most {} together.",
            streams(view),
            rate_text(rate.saturating_mul(streams(view)))
        )),
        by_hand: by_hand(port),
        applicability: Applicability::NeedsCare,
        changes: vec![Change::new(Target::Qdisc { interface: port.name.clone() }, desired)],
    })
}
