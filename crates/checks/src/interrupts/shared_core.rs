use std::collections::BTreeMap;

use landspeed_model::Interrupt;

use super::remote_node;
use crate::hardware::{handled_by, is_transmit_interrupt, list_text, severity_for_rate, spread};
use crate::prelude::*;

declare_check! {
    /// Whether several queues' interrupts share one CPU while others have none.
    ///
    /// **Reads** the CPUs that handle the interrupts of the NIC's queues, and those that may.
    ///
    /// **Matters** because two queues on one CPU perform like one: flows that the NIC spread share one CPU
    /// again, which is saturated while others idle.
    ///
    /// **Leave it alone** on a benchmark that binds all interrupts to one chosen core on purpose (ESnet's advice for
    /// repeatable single flows).
    code: "IRQ-002",
    title: "One core per receive queue",
    scope: Port,
    severity: Minor,
    sources: [
        "Linux kernel, Documentation/networking/scaling.rst: RSS IRQ Configuration",
        esnet_2016!("Benchmarking vs. Production Host Settings"),
    ],
    bad: |facts, _| example::interrupts(facts, |i| i.effective = Fact::Known("0".into())),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let mut interrupts = known!(view.queue_interrupts());
    // A queue's transmit interrupt may be where its receive interrupt is.
    if interrupts.iter().any(|interrupt| !is_transmit_interrupt(&interrupt.name)) {
        interrupts.retain(|interrupt| !is_transmit_interrupt(&interrupt.name));
    }
    // An interrupt that several CPUs may handle is inconclusive unless its effective CPU is known.
    let placed: Vec<(u32, &Interrupt)> = interrupts
        .iter()
        .filter_map(|interrupt| match handled_by(interrupt)?.as_slice() {
            [cpu] => Some((*cpu, *interrupt)),
            _ => None,
        })
        .collect();
    if placed.len() < interrupts.len() {
        return Outcome::unknown("where some of the interrupts are handled cannot be read");
    }
    let isolated = view.facts.cpu.isolated.known().and_then(|text| cpu_list(text)).unwrap_or_default();
    let near = view.local_cpus().known().cloned().unwrap_or_else(|| view.facts.cpu.online.clone());
    let allowed: Vec<u32> = near.into_iter().filter(|cpu| !isolated.contains(cpu)).collect();
    if allowed.is_empty() {
        return Outcome::unknown("which CPUs may handle them cannot be read");
    }
    let mut by_cpu: BTreeMap<u32, Vec<&Interrupt>> = BTreeMap::new();
    for (cpu, interrupt) in &placed {
        by_cpu.entry(*cpu).or_default().push(interrupt);
    }
    // With more queues than CPUs, some CPUs must share, evenly.
    let fair = placed.len().div_ceil(allowed.len());
    let most = by_cpu.values().map(Vec::len).max().unwrap_or(0);
    if most <= fair {
        return Outcome::pass(format!("{} queues on {} CPUs", placed.len(), by_cpu.len()));
    }
    let staying: Vec<_> = by_cpu.values().flat_map(|all| all.iter().take(fair).copied()).collect();
    let moving: Vec<_> = by_cpu.values().flat_map(|all| all.iter().skip(fair).copied()).collect();
    // First move misplaced interrupts to the CPUs that IRQ-001 recommends, so that both checks agree on each
    // interrupt.
    let (far, close) = match view.local_cpus() {
        Fact::Known(local) => remote_node::split_by_locality(interrupts, &local),
        Fact::Absent(_) | Fact::Unknown(_) => Default::default(),
    };
    let changes = if far.is_empty() { spread(&moving, &staying, &allowed) } else { spread(&far, &close, &allowed) };
    let name = view.port().known().map_or("IFACE", |port| port.name.as_str());
    let crowded: Vec<u32> = by_cpu.iter().filter(|(_, all)| all.len() > fair).map(|(cpu, _)| *cpu).collect();
    Outcome::found(Problem {
        severity: Some(severity_for_rate(
            view,
            if by_cpu.len() <= placed.len() / 4 { Severity::Major } else { Severity::Minor },
        )),
        observed: format!(
            "{} queues handled on {} CPUs, up to {most} on one (cpu {})",
            placed.len(),
            by_cpu.len(),
            list_text(&crowded)
        ),
        recommended: format!("at most {fair} on each of cpu {}", list_text(&allowed)),
        why: "Flows that the NIC spread over queues meet again on one CPU, which is full while others idle.".into(),
        effect: Effect::arithmetic(format!(
            "{most} queues share the time of one CPU; {} CPUs could share the work.",
            allowed.len()
        )),
        by_hand: format!(
            "ls /sys/class/net/{}/device/msi_irqs; grep . /proc/irq/*/effective_affinity_list",
            shell_word(name)
        ),
        applicability: Applicability::Safe,
        changes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_sharing_of_too_few_cpus_passes() {
        let mut facts = example::facts();
        // Half as many CPUs as queues, each with two.
        example::pci(&mut facts, |pci| pci.local_cpus = Fact::Known("0-7".into()));
        example::interrupts(&mut facts, |interrupt| {
            interrupt.effective = Fact::Known((interrupt.number % 8).to_string());
        });
        let audit = CHECK.audit_alone(&facts, &example::goal());
        assert!(audit.findings.is_empty(), "{:?}", audit.findings);
    }

    #[test]
    fn interrupts_for_sending_and_of_link_changes_may_share_a_core() {
        for (names, receive) in [
            (["eth0-rx-0", "eth0-tx-0", "eth0"], 1),
            (["virtio0-input.0", "virtio0-output.0", "virtio0-config"], 1),
            (["eth1-rxtx-0", "eth1-event-4", "eth1-rxtx-1"], 2),
        ] {
            let mut facts = example::facts();
            example::port(&mut facts).interrupts = vec![120, 121, 122];
            example::interrupts(&mut facts, |interrupt| {
                if let Some(name) = interrupt.number.checked_sub(120).and_then(|at| names.get(at as usize)) {
                    (*name).clone_into(&mut interrupt.name);
                }
                interrupt.effective = Fact::Known("3".into());
            });
            let audit = CHECK.audit_alone(&facts, &example::goal());
            assert_eq!(audit.findings.is_empty(), receive == 1, "{names:?}: {:?}", audit.findings);
            if let Some(finding) = audit.findings.first() {
                assert!(finding.observed.starts_with("2 queues handled on 1 CPUs"), "{}", finding.observed);
            }
        }
    }

    #[test]
    fn moved_interrupts_are_spread_evenly() {
        let mut facts = example::facts();
        example::interrupts(&mut facts, |interrupt| {
            interrupt.effective = Fact::Known((interrupt.number % 2).to_string());
        });
        let audit = CHECK.audit_alone(&facts, &example::goal());
        let mut desired: Vec<u32> =
            audit.findings[0].changes.iter().map(|change| change.desired.parse().expect("one CPU")).collect();
        desired.sort_unstable();
        assert_eq!(desired, (2..16).collect::<Vec<_>>());
    }

    #[test]
    fn misplaced_interrupts_get_the_changes_of_the_numa_check() {
        let mut facts = example::facts();
        // All on two CPUs of the other node.
        example::interrupts(&mut facts, |interrupt| {
            interrupt.effective = Fact::Known((16 + interrupt.number % 2).to_string());
        });
        let [own, numa] = [&CHECK, &remote_node::CHECK]
            .map(|check| check.audit_alone(&facts, &example::goal()).findings[0].changes.clone());
        assert!(!own.is_empty());
        assert_eq!(own, numa);
    }
}
