use crate::hardware::{handled_by, list_text, spread};
use crate::prelude::*;

declare_check! {
    /// Whether the NIC's interrupts are handled on isolated CPUs.
    ///
    /// **Reads** `/sys/devices/system/cpu/isolated` and the CPUs that handle the interrupts of the NIC's
    /// queues.
    ///
    /// **Matters** because an interrupt on an isolated CPU disturbs the program that the CPU is reserved for,
    /// and the scheduler does not move the work that follows the interrupt to an idle CPU.
    ///
    /// **Leave it alone** where the isolated CPUs are reserved for the network itself.
    code: "CPU-011",
    title: "Interrupts on isolated CPUs",
    scope: Port,
    severity: Note,
    sources: [
        "Linux kernel, Documentation/admin-guide/kernel-parameters.txt: isolcpus=, irqaffinity=",
        "Linux kernel, Documentation/core-api/irq/irq-affinity.rst",
    ],
    good: |facts, _| facts.cpu.isolated = Fact::Known("16-31".into()),
    bad: |facts, _| facts.cpu.isolated = Fact::Known("0-3".into()),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let cpus = known!(view.cpus());
    let text = known!(cpus.isolated.as_ref());
    let Some(isolated) = cpu_list(text) else {
        return Outcome::unknown(format!("`{text}` is not a list of CPUs"));
    };
    if isolated.is_empty() {
        return Outcome::not_applicable("no CPU is isolated");
    }
    let interrupts = known!(view.queue_interrupts());
    let inside = |cpus: Vec<u32>| cpus.iter().any(|cpu| isolated.contains(cpu));
    let (there, elsewhere): (Vec<_>, Vec<_>) =
        interrupts.into_iter().partition(|interrupt| handled_by(interrupt).is_some_and(inside));
    if there.is_empty() {
        return Outcome::pass(format!("none on cpu {text}"));
    }
    let near = view.local_cpus().known().cloned().unwrap_or_else(|| cpus.online.clone());
    let allowed: Vec<u32> = near.into_iter().filter(|cpu| !isolated.contains(cpu)).collect();
    let changes = spread(&there, &elsewhere, &allowed);
    let numbers: Vec<u32> = there.iter().map(|interrupt| interrupt.number).collect();
    Outcome::found(Problem {
        observed: format!("interrupts {} handled on isolated cpu {text}", list_text(&numbers)),
        recommended: if allowed.is_empty() {
            "every CPU near the NIC is isolated: leave some for its interrupts".into()
        } else {
            format!("cpu {}", list_text(&allowed))
        },
        why: "An interrupt disturbs the program its CPU was isolated for, and its work is not moved elsewhere."
            .into(),
        by_hand: "cat /sys/devices/system/cpu/isolated; grep . /proc/irq/*/effective_affinity_list".into(),
        applicability: if changes.is_empty() { Applicability::DisplayOnly } else { Applicability::Safe },
        changes,
        ..Problem::default()
    })
}
