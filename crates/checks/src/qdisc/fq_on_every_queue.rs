use landspeed_model::{Applicability, Change, Role, Severity, Target};

use super::{by_hand, desired, if_fq_exists, queueing};
use crate::advice::{ESNET_2016, long_path};
use crate::check::{Outcome, Problem};
use crate::example;
use crate::view::View;

declare_check! {
    /// Whether `fq` sits on every transmit queue.
    ///
    /// **Reads** the queueing disciplines of the port, every class of them.
    ///
    /// **Matters** because `fq` spaces a flow's packets at the rate TCP asks for and takes the flows in turn; without
    /// it a flow leaves in bursts of up to 64 KiB and more, which small buffers on the path drop. Every queue counts: a
    /// flow stays on the queue its hash picked, so one leaf with another discipline slows down some flows and not
    /// others.
    ///
    /// **Leave it alone** on a router (it sees other hosts' packets, `fq_codel` or `cake` suit it better) and where a
    /// shaper was put on purpose. Since Linux 4.13 TCP paces by itself for BBR without `fq`, at the cost of one timer
    /// for each flow.
    code: "QDISC-001",
    name: "fq-on-every-queue",
    group: Qdisc,
    title: "Fair queueing with pacing on every transmit queue",
    scope: Port,
    severity: Major,
    since: "0.1",
    sources: [ESNET_2016, "iproute2, tc-fq(8)"],
    example: {
        good: example::as_is,
        bad: |facts, _| {
            example::each_qdisc(facts, |qdisc| {
                if qdisc.parent.as_deref() == Some("8001:3") {
                    qdisc.kind = "fq_codel".into();
                }
            });
        },
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let queueing = queueing!(port);
    if view.role() == Role::Router {
        return Outcome::not_applicable("fq is for what this host sends; a router forwards others' packets");
    }
    if queueing.root == "noqueue" {
        return Outcome::not_applicable("the interface has no queue (QDISC-002)");
    }
    if queueing.leaves.is_empty() {
        return Outcome::unknown(format!("the kernel named no discipline below the root {}", queueing.root));
    }
    if queueing.all_fq() {
        return Outcome::pass(format!("{} ({})", queueing.kinds(), queueing.root));
    }
    if !queueing.per_queue() && port.tx_queues.known().is_some_and(|&queues| queues > 1) {
        return Outcome::not_applicable("one discipline serves all transmit queues (QDISC-003)");
    }
    if view.role() == Role::Latency && queueing.leaves.iter().all(|leaf| leaf.kind == "fq_codel") {
        return Outcome::pass(format!("{}: short queues for short messages", queueing.kinds()));
    }
    let desired = desired(view, &queueing);
    let problem = Problem {
        severity: (!long_path(view)).then_some(Severity::Minor),
        observed: if queueing.per_queue() {
            format!("{} below {}", queueing.kinds(), queueing.root)
        } else {
            format!("{} at the root", queueing.root)
        },
        recommended: format!("{desired} on every transmit queue"),
        why:
            "Without fq a flow leaves in bursts that small buffers on the path drop; a single queue without it slows \
              down just the flows that hash to it."
                .into(),
        effect: "About 1.25 Gb/s more at 10 Gb/s through a congested small-buffer switch (Smitasin, in the 2016 \
                 ESnet deck)."
            .into(),
        by_hand: by_hand(port),
        applicability: Applicability::NeedsCare,
        changes: vec![Change::new(Target::Qdisc { interface: port.name.clone() }, desired)],
    };
    Outcome::found(if_fq_exists(view, problem))
}

#[cfg(test)]
mod tests {
    use landspeed_model::Fact;

    use crate::audit::audit_with;
    use crate::example;

    #[test]
    fn a_kernel_without_fq_is_asked_for_no_change() {
        let (mut facts, mut goal) = (example::facts(), example::goal());
        (super::CHECK.example.bad)(&mut facts, &mut goal);
        if let Fact::Known(options) = &mut facts.kernel.configuration {
            options.remove("CONFIG_NET_SCH_FQ");
        }
        let findings = audit_with(&facts, &goal, [&super::CHECK]).expect("audited").findings;
        assert!(findings[0].changes.is_empty() && findings[0].recommended.contains("CONFIG_NET_SCH_FQ"));
    }
}
