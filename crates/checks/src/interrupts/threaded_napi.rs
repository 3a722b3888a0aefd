use crate::prelude::*;

declare_check! {
    /// Whether packets are processed in kernel threads (threaded NAPI) rather than on the interrupt's CPU.
    ///
    /// **Reads** `/sys/class/net/X/threaded`.
    ///
    /// **Matters** because the scheduler then decides which CPU does the work: placing interrupts no longer
    /// determines it. The threads (`napi/X-N`) have to be pinned themselves.
    ///
    /// **Leave it alone** where it was enabled so that packet processing can be scheduled. Pin the threads next
    /// to the NIC.
    code: "IRQ-012",
    title: "Threaded NAPI",
    scope: Port,
    severity: Note,
    sources: ["Linux kernel, Documentation/networking/napi.rst: Threaded NAPI"],
    bad: |facts, _| example::port(facts).threaded_napi = Fact::Known(true),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    if !*known!(port.threaded_napi.as_ref()) {
        return Outcome::pass("off: packets are processed where their interrupt is handled");
    }
    let target = Target::InterfaceFile { interface: port.name.clone(), file: "threaded".into() };
    Outcome::found(Problem {
        observed: "on".into(),
        recommended: "off, or the threads pinned to CPUs near the NIC".into(),
        why: "The scheduler chooses where packets are processed: placing interrupts no longer decides it.".into(),
        by_hand: format!("cat /sys/class/net/{0}/threaded; ps -eLo psr,comm | grep napi/{0}", shell_word(&port.name)),
        applicability: Applicability::NeedsCare,
        changes: vec![Change::new(target, "0")],
        ..Problem::default()
    })
}
