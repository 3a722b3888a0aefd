use crate::prelude::*;

declare_check! {
    /// Whether a benchmark has tried GRO in the NIC.
    ///
    /// **Reads** the offload `rx-gro-hw`.
    ///
    /// **Matters** where the receiver's CPU is the limit at 100 Gb/s and above: the NIC then merges packets by
    /// the rules of GRO, which are reversible. Whether it helps depends on NIC and firmware.
    ///
    /// **Leave it alone** in production until it was measured on the same NIC.
    code: "NIC-010",
    title: "Hardware GRO",
    scope: Port,
    severity: Note,
    sources: ["Linux kernel, Documentation/networking/netdev-features.rst: rx-gro-hw"],
    good: |facts, goal| {
        goal.role = Role::Benchmark;
        example::feature(facts, "rx-gro-hw", true);
    },
    bad: |_, goal| goal.role = Role::Benchmark,
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let features = known!(port.features.as_ref());
    let Some(gro) = features.get("rx-gro-hw") else {
        return Outcome::not_applicable("the device has no hardware GRO");
    };
    if gro.active {
        return Outcome::pass("on");
    }
    let fast = port.speed_bps.known().is_some_and(|&speed| speed >= FAST_BPS);
    if view.role() != Role::Benchmark || !gro.changeable || !fast {
        return Outcome::not_applicable(
            "off; a trial for benchmarks at 100 Gb/s and above, with no measured gain in the sources",
        );
    }
    Outcome::found(Problem {
        observed: "off".into(),
        recommended: "a trial with it on, and the better of the two".into(),
        why: "The receiver's CPU is usually the limit of one flow, and this takes work from it.".into(),
        by_hand: format!("ethtool -k {} | grep rx-gro-hw", shell_word(&port.name)),
        applicability: Applicability::NeedsCare,
        changes: vec![feature(port, "rx-gro-hw", true)],
        ..Problem::default()
    })
}
