use super::{by_hand, queueing};
use crate::advice::tc_rate;
use crate::prelude::*;

/// Minimum goal for pacing at a fixed rate, bits/s: the decks' experiments begin there.
const MIN_GOAL_BPS: u64 = 10_000_000_000;

/// Streams of one transfer, as in the ESnet experiments; more if their share exceeds the pacing limit.
const STREAMS: u64 = 4;

/// The fastest flow that `fq` paces reliably (2016 deck), bits/s. The maximum of `maxrate` is a little higher,
/// 34.36 Gb/s.
const MAX_PACED_BPS: u64 = 32_000_000_000;

/// Share of the goal for all streams together, per cent: four times 2.4 of 10 Gb/s in the 2016 deck's test of
/// parallel streams, four times 20 of 100 Gb/s in its test over 92 ms.
const SHARE_AT_10G: u64 = 96;
const SHARE_ABOVE_10G: u64 = 80;

declare_check! {
    /// Whether flows are paced to a rate that the path supports.
    ///
    /// **Reads** `maxrate` of every `fq`, the goal's rate and RTT.
    ///
    /// **Matters** because the sender is often faster than the host behind the last switch: four streams from a
    /// 100 Gb/s host overrun a 10 Gb/s receiver and slow down after the losses. Paced to a little less than the
    /// slower side in total, they do not. `maxrate` is per flow: in the 2016 deck four streams were best with
    /// 2.4 Gb/s each. `fq` paces reliably up to 32 Gb/s per flow; faster goals need more streams.
    ///
    /// **Leave it alone** where transfers use one stream that must have the whole rate, where programs pace
    /// themselves (`SO_MAX_PACING_RATE`, `iperf3 --fq-rate`), and on a short path, where recovery from loss is
    /// quick.
    code: "QDISC-005",
    title: "Pacing for parallel streams",
    scope: Port,
    severity: Minor,
    sources: [
        esnet_2016!("Parallel Stream Test 1"),
        esnet_2016!("FQ on 100G Hosts"),
        esnet_2016!("TCP option: Fair Queuing Scheduler (FQ)"),
        "tc-fq(8), maxrate",
    ],
    bad: |facts, _| example::for_each_qdisc(facts, |qdisc| qdisc.max_rate_bps = None),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let queueing = queueing!(port);
    if view.role() != Role::Dtn {
        return Outcome::not_applicable("a fixed rate is for production transfers");
    }
    if !is_long_path(view) {
        return Outcome::not_applicable("no long path was given (--rtt)");
    }
    if !queueing.all_fq() {
        return Outcome::not_applicable("only fq holds flows to a rate (QDISC-001)");
    }
    if !queueing.per_queue() && *known!(&port.tx_queues) > 1 {
        return Outcome::not_applicable("one qdisc serves all transmit queues (QDISC-003)");
    }
    let rates = queueing.rates();
    if rates.iter().any(Option::is_some) {
        let slowest = rates.iter().flatten().min().copied().unwrap_or(0);
        return Outcome::pass(format!("each flow is held to {}", rate_text(slowest)));
    }
    let goal = known!(view.rate_bps());
    if goal < MIN_GOAL_BPS {
        return Outcome::not_applicable(format!("below {} TCP's own pacing does", rate_text(MIN_GOAL_BPS)));
    }
    let share = if goal <= MIN_GOAL_BPS { SHARE_AT_10G } else { SHARE_ABOVE_10G };
    let together = goal / 100 * share;
    let streams = together.div_ceil(MAX_PACED_BPS).max(STREAMS);
    let each = together / streams / 1_000_000 * 1_000_000;
    let desired = format!("fq maxrate {}", tc_rate(each));
    Outcome::found(Problem {
        severity: None,
        observed: format!("fq without maxrate, goal {}", view.path_text()),
        recommended: format!("{desired}: {streams} streams share {share} % of {}", rate_text(goal)),
        why: "Nothing keeps parallel streams from overrunning the slowest link together. A single stream will be held to \
              this rate too: use more streams, or set it for as many as you use."
            .into(),
        effect: if goal <= MIN_GOAL_BPS {
            Effect::measured("Four streams were best balanced and fastest when paced to 2.4 Gb/s each", &[&source::PACED_STREAMS])
        } else {
            Effect::measured("The deck compares 4 streams over 92 ms at 100 Gb/s without pacing and with 20 Gb/s each, in graphs without totals; fq paced reliably up to 32 Gb/s per flow", &[&source::PACED_100G, &source::FQ_PACING_LIMIT])
        },
        by_hand: by_hand(port),
        applicability: Applicability::NeedsCare,
        changes: vec![Change::new(Target::Qdisc { interface: port.name.clone() }, desired)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_gigabits_are_paced_as_four_streams_of_2400_megabits() {
        let (mut facts, mut goal) = (example::facts(), example::goal());
        example::for_each_qdisc(&mut facts, |qdisc| qdisc.max_rate_bps = None);
        goal.rate_bps = Some(10_000_000_000);
        let audit = CHECK.audit_alone(&facts, &goal);
        let change = &audit.findings[0].changes[0];
        assert_eq!(change.desired, "fq maxrate 2400mbit");
        assert_eq!(change.target, Target::Qdisc { interface: "ens1f0np0".into() });
    }

    #[test]
    fn recommended_rates_stay_within_the_fq_maximum() {
        for (gigabits, desired) in [(25, "5gbit"), (100, "20gbit"), (200, "32gbit"), (400, "32gbit"), (800, "32gbit")]
        {
            let (mut facts, mut goal) = (example::facts(), example::goal());
            example::for_each_qdisc(&mut facts, |qdisc| qdisc.max_rate_bps = None);
            goal.rate_bps = Some(gigabits * 1_000_000_000);
            let audit = CHECK.audit_alone(&facts, &goal);
            assert_eq!(audit.findings[0].changes[0].desired, format!("fq maxrate {desired}"), "{gigabits} Gb/s");
        }
    }
}
