use landspeed_model::ServiceFacts;

use crate::prelude::*;

declare_check! {
    /// Whether irqbalance moves the NIC's interrupts.
    ///
    /// **Reads** whether `irqbalance` runs, with which options, and the number of NUMA nodes.
    ///
    /// **Matters** because it reverts manual placement, within ten seconds by default, and does not know the
    /// CPU of the application. ESnet and Red Hat both stop it before placing interrupts.
    ///
    /// **Leave it alone** where interrupts are not placed by hand, in virtual machines, and for the disks and
    /// other devices of a production host: there it is better to exclude the NIC's interrupts (`--banirq`, or a
    /// policy script) than to stop it.
    code: "IRQ-003",
    title: "irqbalance",
    scope: Port,
    severity: Minor,
    sources: [
        "ESnet fasterdata, Interrupt Binding: https://fasterdata.es.net/host-tuning/linux/100g-tuning/interrupt-binding/",
        red_hat_2012!("Tuning- first pass bottleneck resolution"),
        "irqbalance(1): --banirq, --policyscript, --interval",
    ],
    bad: |facts, _| {
        let service = ServiceFacts { running: true, detail: None };
        facts.services.insert("irqbalance".into(), Fact::Known(service));
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    if let Some(guest_description) = view.guest_description() {
        return Outcome::not_applicable(format!("{guest_description}: interrupts are placed on the host below"));
    }
    let Some(service) = view.facts.services.get("irqbalance") else {
        return Outcome::unknown("whether irqbalance runs was not looked at");
    };
    let service = known!(service.as_ref());
    if !service.running {
        return Outcome::pass("not running");
    }
    let port = known!(view.device());
    if port.interrupts.len() < 2 {
        return Outcome::not_applicable(format!("{} has fewer than two interrupts to place", port.name));
    }
    if let Some(options) = service.detail.as_ref().filter(|text| text.contains("ban") || text.contains("script")) {
        return Outcome::pass(format!("running with {options}"));
    }
    let nodes = view.facts.numa.known().map_or(1, Vec::len);
    let numbers: Vec<u32> = port.interrupts.clone();
    let severity = match view.role() {
        Role::Benchmark | Role::Latency => Severity::Major,
        _ if nodes < 2 => Severity::Note,
        _ => Severity::Minor,
    };
    let stop = matches!(view.role(), Role::Benchmark | Role::Latency);
    Outcome::found(Problem {
        severity: Some(severity),
        observed: format!("running, {nodes} NUMA node{}", if nodes == 1 { "" } else { "s" }),
        recommended: if stop {
            "`systemctl stop irqbalance` for the measurement, then place the interrupts".into()
        } else {
            format!(
                "keep it for other devices and ban the NIC's {} interrupts: IRQBALANCE_ARGS with --banirq=N for each, \
                 or --policyscript",
                numbers.len()
            )
        },
        why: "It moves interrupts by load every few seconds, away from where they were placed.".into(),
        effect: Effect::measured(
            "Up to 2x slower if interrupts end up on the wrong CPU socket",
            &[&source::SOCKET_CHOICE_EFFECT],
        ),
        by_hand: "systemctl status irqbalance; cat /etc/sysconfig/irqbalance /etc/default/irqbalance".into(),
        ..Problem::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banned_interrupts_pass_and_one_node_lowers_the_severity() {
        let weight = |detail: Option<&str>, nodes: usize, role| {
            let mut facts = example::facts();
            let service = ServiceFacts { running: true, detail: detail.map(Into::into) };
            facts.services.insert("irqbalance".into(), Fact::Known(service));
            if let Fact::Known(all) = &mut facts.numa {
                all.truncate(nodes);
            }
            let goal = landspeed_model::Goal { role, ..example::goal() };
            let audit = CHECK.audit_alone(&facts, &goal);
            audit.findings.first().map(|finding| finding.severity)
        };
        assert_eq!(weight(None, 2, Role::Dtn), Some(Severity::Minor));
        assert_eq!(weight(None, 1, Role::Dtn), Some(Severity::Note));
        assert_eq!(weight(None, 2, Role::Benchmark), Some(Severity::Major));
        assert_eq!(weight(Some("--banirq=120"), 2, Role::Dtn), None);
        assert_eq!(weight(None, 2, Role::Guest), None);
    }
}
