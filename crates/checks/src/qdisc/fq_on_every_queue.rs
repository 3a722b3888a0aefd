use super::{by_hand, desired, if_fq_exists, queueing};
use crate::prelude::*;

declare_check! {
    /// Whether every transmit queue has `fq`.
    ///
    /// **Reads** all qdiscs of the port.
    ///
    /// **Matters** because `fq` paces a flow's packets at the rate TCP requests and serves the flows in turn;
    /// without it a flow leaves in bursts of up to 64 KiB and more, which small buffers on the path drop. Every
    /// queue counts: a flow stays on the queue its hash picked, so one leaf with another qdisc slows down some
    /// flows and not others.
    ///
    /// **Leave it alone** on a router (it sees other hosts' packets, `fq_codel` or `cake` suit it better) and
    /// where a shaper was configured on purpose. Since Linux 4.13 TCP paces by itself for BBR without `fq`, at
    /// the cost of one timer for each flow.
    code: "QDISC-001",
    title: "fq on every transmit queue",
    scope: Port,
    severity: Major,
    sources: [
        lbnl_2015!("Fair Queuing and Pacing in Kernel 4.1.4"),
        esnet_2016!("Fair Queuing and Small Switch Buffers"),
        "iproute2, tc-fq(8)",
    ],
    bad: |facts, _| {
        example::for_each_qdisc(facts, |qdisc| {
            if qdisc.parent.as_deref() == Some("8001:3") {
                qdisc.kind = "fq_codel".into();
            }
        });
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
        return Outcome::unknown(format!("the kernel named no qdisc below the root {}", queueing.root));
    }
    if queueing.all_fq() {
        return Outcome::pass(format!("{} ({})", queueing.kinds(), queueing.root));
    }
    if !queueing.per_queue() && *known!(&port.tx_queues) > 1 {
        return Outcome::not_applicable("one qdisc serves all transmit queues (QDISC-003)");
    }
    if view.role() == Role::Latency && queueing.leaves.iter().all(|leaf| leaf.kind == "fq_codel") {
        return Outcome::pass(format!("{}: short queues for short messages", queueing.kinds()));
    }
    let desired = desired(view, &queueing);
    let problem = Problem {
        severity: (!is_long_path(view)).then_some(Severity::Minor),
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
        effect: Effect::measured(
            "About 1.25 Gb/s more at 10 Gb/s through a congested switch with small buffers",
            &[&source::FQ_SMALL_BUFFER],
        ),
        by_hand: by_hand(port),
        applicability: Applicability::NeedsCare,
        changes: vec![Change::new(Target::Qdisc { interface: port.name.clone() }, desired)],
    };
    Outcome::found(if_fq_exists(view, problem))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use landspeed_model::Facts;

    use super::*;

    fn configure(facts: &mut Facts, value: Option<&str>) {
        let Fact::Known(options) = &mut facts.kernel.configuration else { panic!("the example has one") };
        options.remove("CONFIG_NET_SCH_FQ");
        options.extend(value.map(|value| ("CONFIG_NET_SCH_FQ".to_owned(), value.to_owned())));
    }

    /// Removes everything that shows that the kernel has fq.
    fn hide_fq(facts: &mut Facts) {
        example::for_each_qdisc(facts, |qdisc| {
            if qdisc.kind == "fq" {
                qdisc.kind = "pfifo_fast".into();
            }
        });
        example::sysctl(facts, "net.core.default_qdisc", "pfifo_fast");
        facts.modules = Fact::Known(BTreeMap::new());
    }

    #[test]
    fn a_kernel_built_without_fq_gets_no_change() {
        let (mut facts, goal) = crate::failing_example(&CHECK);
        hide_fq(&mut facts);
        configure(&mut facts, Some("n"));
        let findings = CHECK.audit_alone(&facts, &goal).findings;
        assert!(findings[0].changes.is_empty() && findings[0].recommended.contains("CONFIG_NET_SCH_FQ"));
    }

    #[test]
    fn a_missing_fq_option_keeps_the_change() {
        let (mut facts, goal) = crate::failing_example(&CHECK);
        hide_fq(&mut facts);
        configure(&mut facts, None);
        let findings = CHECK.audit_alone(&facts, &goal).findings;
        assert!(!findings[0].changes.is_empty() && !findings[0].recommended.contains("without fq"));
    }

    #[test]
    fn an_attached_fq_overrides_the_configuration() {
        let (mut facts, goal) = crate::failing_example(&CHECK);
        configure(&mut facts, Some("n"));
        let findings = CHECK.audit_alone(&facts, &goal).findings;
        assert!(!findings[0].changes.is_empty() && !findings[0].recommended.contains("without fq"));
    }
}
