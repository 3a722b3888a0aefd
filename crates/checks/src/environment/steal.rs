use crate::prelude::*;

/// A CPU that is away for one per cent of the time is away for milliseconds at a stretch: receive rings overflow.
const FELT: f64 = 0.01;

/// A twentieth of the CPU cannot be had back by any setting in the guest.
const MUCH: f64 = 0.05;

declare_check! {
    /// Whether the hypervisor takes CPU time away.
    ///
    /// **Reads** the share of time stolen since boot (`/proc/stat`).
    ///
    /// **Matters** because a virtual CPU that does not run empties no ring and sends no ACK; the
    /// network looks lossy and slow, and no setting inside the guest helps.
    ///
    /// **Leave it alone** on a burstable instance that is idle most of the time.
    code: "ENV-001",
    title: "Steal time",
    severity: Minor,
    sources: ["proc_stat(5), steal", "Linux Documentation/virt/kvm/x86/msr.rst, steal time"],
    good: |facts, _| facts.virtualization.hypervisor = Fact::Known("kvm".into()),
    bad: |facts, _| {
        facts.virtualization.hypervisor = Fact::Known("kvm".into());
        facts.virtualization.steal_share = Fact::Known(0.08);
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let hypervisor = known!(&view.facts.virtualization.hypervisor);
    let stolen = *known!(&view.facts.virtualization.steal_share);
    let text = format!("{} of the time since boot, under {hypervisor}", percent(stolen));
    if stolen < FELT {
        return Outcome::pass(text);
    }
    Outcome::found(Problem {
        severity: (stolen >= MUCH).then_some(Severity::Major),
        effect: Effect::arithmetic(format!("{} of the CPU time is not available to the guest.", percent(stolen))),
        ..advice::by_person(
            text,
            format!("below {}: dedicated CPUs, or a less loaded host", percent(FELT)),
            "While the virtual CPU does not run, packets wait or are lost.",
            "vmstat 1 5  # column st",
        )
    })
}
