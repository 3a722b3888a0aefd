use crate::prelude::*;

/// Steal time from which it is reported: at 1 %, the virtual CPU is stopped for milliseconds at a stretch, and
/// receive rings overflow.
const MIN_STEAL_SHARE: f64 = 0.01;

/// Steal time from which it is severe: no setting in the guest makes up for 5 % of the CPU.
const MAJOR_STEAL_SHARE: f64 = 0.05;

declare_check! {
    /// Share of CPU time taken by the hypervisor (steal time).
    ///
    /// **Reads** the share of time stolen since boot (`/proc/stat`).
    ///
    /// **Matters** because a virtual CPU that does not run cannot empty its ring or send ACKs; the network
    /// looks lossy and slow, and no setting inside the guest helps.
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
    if stolen < MIN_STEAL_SHARE {
        return Outcome::pass(text);
    }
    Outcome::found(Problem {
        severity: (stolen >= MAJOR_STEAL_SHARE).then_some(Severity::Major),
        effect: Effect::arithmetic(format!("{} of the CPU time is not available to the guest.", percent(stolen))),
        ..advice::manual_problem(
            text,
            format!("below {}: dedicated CPUs, or a less loaded host", percent(MIN_STEAL_SHARE)),
            "While the virtual CPU does not run, packets wait or are lost.",
            "vmstat 1 5  # column st",
        )
    })
}
