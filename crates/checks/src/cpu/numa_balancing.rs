use crate::prelude::*;

declare_check! {
    /// Whether automatic NUMA balancing is on during a benchmark that has pinned its threads.
    ///
    /// **Reads** `kernel.numa_balancing`.
    ///
    /// **Matters** because it unmaps pages to see which CPU accesses them. Where program and memory are pinned,
    /// there is nothing to move, and its page faults add variance to the figures. ESnet ran its tests with
    /// `numad` off.
    ///
    /// **Leave it alone** in production: it helps programs that are not pinned.
    code: "CPU-013",
    title: "Automatic NUMA balancing",
    severity: Minor,
    sources: [
        "Linux kernel, Documentation/admin-guide/sysctl/kernel.rst: numa_balancing",
        esnet_2016!("Test Environment"),
    ],
    good: |facts, goal| {
        goal.role = Role::Benchmark;
        example::sysctl(facts, "kernel.numa_balancing", "0");
    },
    bad: |_, goal| goal.role = Role::Benchmark,
}

fn evaluate(view: &View<'_>) -> Outcome {
    if view.role() != Role::Benchmark {
        return Outcome::not_applicable("it matters to a benchmark that has pinned its programs (--role benchmark)");
    }
    let nodes = known!(view.facts.numa.as_ref()).len();
    if nodes < 2 {
        return Outcome::not_applicable("there is one NUMA node");
    }
    let value = known!(view.sysctl("kernel.numa_balancing"));
    if value == "0" {
        return Outcome::pass("off");
    }
    Outcome::found(Problem {
        severity: None,
        observed: format!("kernel.numa_balancing = {value} on {nodes} nodes"),
        recommended: "0 for the measurement, with program and memory pinned to the NIC's node".into(),
        why: "It unmaps pages to learn who uses them; with everything pinned it only adds faults.".into(),
        effect: Effect::stated(
            "A workload that is already bound to NUMA nodes should run with it off",
            "Linux kernel, Documentation/admin-guide/sysctl/kernel.rst",
        ),
        by_hand: "sysctl kernel.numa_balancing".into(),
        applicability: Applicability::NeedsCare,
        changes: vec![Change::sysctl("kernel.numa_balancing", "0")],
    })
}
