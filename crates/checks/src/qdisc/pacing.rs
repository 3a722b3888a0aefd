use landspeed_model::{Applicability, Change, Role, Target};

use super::{by_hand, queueing};
use crate::advice::{ESNET_2016, long_path, tc_rate};
use crate::check::{Outcome, Problem};
use crate::example;
use crate::view::{View, rate_text};

/// Slowest goal worth pacing by a fixed rate, bits/s: the decks' experiments begin there.
const SLOWEST_BPS: u64 = 10_000_000_000;

/// Streams of one transfer, as in the ESnet experiments.
const STREAMS: u64 = 4;

declare_check! {
    /// Whether flows are held to a rate the path can take.
    ///
    /// **Reads** `maxrate` of every `fq`, the goal's rate and round trip.
    ///
    /// **Matters** because the sender is often faster than what is behind the last switch: four streams from a 100 Gb/s
    /// host overrun a 10 Gb/s receiver and then share what loss leaves. Held to 80 to 90 % of the slower side in total,
    /// they do not. `maxrate` is for each flow: 10 Gb/s with four streams is 2 Gb/s each.
    ///
    /// **Leave it alone** where transfers use one stream that must have the whole rate, where programs pace themselves
    /// (`SO_MAX_PACING_RATE`, `iperf3 --fq-rate`), and on a short path, where loss is repaired at once.
    code: "QDISC-005",
    name: "pacing",
    group: Qdisc,
    title: "Pacing to what the path can take",
    scope: Port,
    severity: Minor,
    since: "0.1",
    sources: [ESNET_2016, "tc-fq(8), maxrate"],
    example: { good: example::as_is, bad: |facts, _| example::each_qdisc(facts, |qdisc| qdisc.max_rate_bps = None) },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let queueing = queueing!(port);
    if view.role() != Role::Dtn {
        return Outcome::not_applicable("a fixed rate is for production transfers");
    }
    if !long_path(view) {
        return Outcome::not_applicable("no long path was given (--rtt)");
    }
    if !queueing.all_fq() {
        return Outcome::not_applicable("only fq holds flows to a rate (QDISC-001)");
    }
    if !queueing.per_queue() && port.tx_queues.known().is_some_and(|&queues| queues > 1) {
        return Outcome::not_applicable("one discipline serves all transmit queues (QDISC-003)");
    }
    let rates = queueing.rates();
    if rates.iter().any(Option::is_some) {
        let slowest = rates.iter().flatten().min().copied().unwrap_or(0);
        return Outcome::pass(format!("each flow is held to {}", rate_text(slowest)));
    }
    let goal = known!(view.rate_bps());
    if goal < SLOWEST_BPS {
        return Outcome::not_applicable(format!("below {} TCP's own pacing does", rate_text(SLOWEST_BPS)));
    }
    let each = goal / 10 * 8 / STREAMS / 1_000_000 * 1_000_000;
    let desired = format!("fq maxrate {}", tc_rate(each));
    Outcome::found(Problem {
        severity: None,
        observed: format!("fq without maxrate, goal {}", view.path_text()),
        recommended: format!("{desired}: {STREAMS} streams share 80 % of {}", rate_text(goal)),
        why: "Nothing keeps parallel streams from overrunning the slowest link together. A single stream will be held to \
              this rate too: use more streams, or set it for as many as you use."
            .into(),
        effect: "The 2016 ESnet deck shows four streams over 92 ms steady with 20 Gb/s each and lossy without; it prints \
                 no totals."
            .into(),
        by_hand: by_hand(port),
        applicability: Applicability::NeedsCare,
        changes: vec![Change::new(Target::Qdisc { interface: port.name.clone() }, desired)],
    })
}

#[cfg(test)]
mod tests {
    use landspeed_model::Target;

    use crate::audit::audit_with;
    use crate::example;

    #[test]
    fn ten_gigabits_are_two_for_each_of_four_streams() {
        let (mut facts, mut goal) = (example::facts(), example::goal());
        example::each_qdisc(&mut facts, |qdisc| qdisc.max_rate_bps = None);
        goal.rate_bps = Some(10_000_000_000);
        let audit = audit_with(&facts, &goal, [&super::CHECK]).expect("audited");
        let change = &audit.findings[0].changes[0];
        assert_eq!(change.desired, "fq maxrate 2gbit");
        assert_eq!(change.target, Target::Qdisc { interface: "ens1f0np0".into() });
    }
}
