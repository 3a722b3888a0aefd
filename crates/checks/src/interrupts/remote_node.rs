use landspeed_model::Interrupt;
use landspeed_quote::shell_word;

use crate::hardware::{handled_by, list_text, severity_for_rate, spread};
use crate::prelude::*;

declare_check! {
    /// Whether the NIC's interrupts are handled on the socket the NIC is attached to.
    ///
    /// **Reads** the interrupts of the NIC's queues (`device/msi_irqs`), `/proc/irq/N/{effective,smp}_affinity_list` and
    /// the CPUs near the device (`device/local_cpulist`).
    ///
    /// **Matters** more than most settings: packets handled on the remote socket cross between sockets twice. A
    /// deck of 2012 shows 37 Gb/s falling to 13 Gb/s, ESnet gives a factor of 2, and in 2014 saw 39.5 against 5
    /// Gb/s between a good and a bad core.
    ///
    /// **Leave it alone** where the near CPUs are reserved for other work. Programs have to run there too:
    /// placing interrupts alone is not enough.
    code: "IRQ-001",
    title: "Interrupts on the NUMA node of the NIC",
    scope: Port,
    severity: Major,
    sources: [
        "ESnet fasterdata, Interrupt Binding: https://fasterdata.es.net/host-tuning/linux/100g-tuning/interrupt-binding/",
        red_hat_2012!("Tuning – sanity check"),
        esnet_2014!("Intel Sandy/Ivy Bridge"),
        "Linux kernel, Documentation/core-api/irq/irq-affinity.rst",
    ],
    bad: |facts, _| example::interrupts(facts, |i| i.effective = at(16 + i.number % 4)),
}

fn at(cpu: u32) -> Fact<String> {
    Fact::Known(cpu.to_string())
}

fn evaluate(view: &View<'_>) -> Outcome {
    let local = known!(view.local_cpus());
    let interrupts = known!(view.queue_interrupts());
    let placed = interrupts.iter().filter(|interrupt| handled_by(interrupt).is_some()).count();
    if placed == 0 {
        return Outcome::unknown("where the interrupts are handled cannot be read");
    }
    let (far, near) = split_by_locality(interrupts, &local);
    if far.is_empty() {
        return Outcome::pass(format!("all {placed} on cpu {}", list_text(&local)));
    }
    let isolated = view.facts.cpu.isolated.known().and_then(|text| cpu_list(text)).unwrap_or_default();
    let allowed: Vec<u32> = local.iter().copied().filter(|cpu| !isolated.contains(cpu)).collect();
    let changes = spread(&far, &near, &allowed);
    let name = view.port().known().map_or("IFACE", |port| port.name.as_str());
    let places: Vec<u32> = far.iter().filter_map(|interrupt| handled_by(interrupt)).flatten().collect();
    Outcome::found(Problem {
        // One misplaced interrupt among many queues slows the flows that hash to it, not the whole host.
        severity: Some(severity_for_rate(
            view,
            if far.len() <= placed / 4 { Severity::Minor } else { Severity::Major },
        )),
        observed: format!("{} of {placed} queue interrupts handled on cpu {}", far.len(), list_text(&places)),
        recommended: format!("cpu {}, next to the NIC, and the application on other CPUs of it", list_text(&local)),
        why: "Packets handled at the far socket cross between sockets, with their descriptors and their data.".into(),
        effect: Effect::measured(
            "37 Gb/s on the right NUMA node, 13 Gb/s across; 39.5 Gb/s on a good core, 5 Gb/s on a bad one; up to 2x slower on the wrong socket",
            &[&source::CROSS_NODE, &source::CORE_SELECTION, &source::SOCKET_CHOICE_EFFECT],
        ),
        by_hand: format!(
            "cat /sys/class/net/{}/device/local_cpulist; grep . /proc/irq/*/effective_affinity_list",
            shell_word(name)
        ),
        applicability: if changes.is_empty() { Applicability::DisplayOnly } else { Applicability::Safe },
        changes,
    })
}

/// Splits interrupts into those handled on CPUs outside `local` and the others.
pub(super) fn split_by_locality<'a>(
    interrupts: Vec<&'a Interrupt>,
    local: &[u32],
) -> (Vec<&'a Interrupt>, Vec<&'a Interrupt>) {
    let outside = |cpus: Vec<u32>| !cpus.iter().all(|cpu| local.contains(cpu));
    interrupts.into_iter().partition(|interrupt| handled_by(interrupt).is_some_and(outside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_misplaced_interrupts_move_to_free_cores() {
        let mut facts = example::facts();
        example::interrupts(&mut facts, |interrupt| {
            if interrupt.number == 123 {
                interrupt.effective = at(20);
            }
        });
        let audit = CHECK.audit_alone(&facts, &example::goal());
        assert_eq!(audit.findings[0].severity, Severity::Minor);
        assert_eq!(audit.findings[0].changes.len(), 1);
        assert_eq!(audit.findings[0].changes[0].desired, "3");
    }
}
