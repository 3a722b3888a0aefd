use crate::prelude::*;

declare_check! {
    /// Whether the kernel reclaims page cache before it uses another node's memory.
    ///
    /// **Reads** `vm.zone_reclaim_mode`.
    ///
    /// **Matters** on hosts that serve files: with it on, a node that is full reclaims its page cache while the
    /// other node has free memory, and allocations, those for packets included, wait for it. The kernel turned
    /// the default off in 2014 because it often degraded performance without being noticed.
    ///
    /// **Leave it alone** where jobs are partitioned so that each fits into its node, as on some HPC hosts.
    code: "CPU-014",
    title: "Zone reclaim",
    severity: Minor,
    sources: [
        "Linux kernel, Documentation/admin-guide/sysctl/vm.rst: zone_reclaim_mode",
        "Linux commit 4f9b16a64753 (2014), mm: disable zone_reclaim_mode by default",
    ],
    bad: |facts, _| example::sysctl(facts, "vm.zone_reclaim_mode", "1"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let nodes = known!(view.facts.numa.as_ref()).len();
    if nodes < 2 {
        return Outcome::not_applicable("there is one NUMA node");
    }
    let value = known!(view.sysctl("vm.zone_reclaim_mode"));
    if value == "0" {
        return Outcome::pass("off");
    }
    Outcome::found(Problem {
        severity: None,
        observed: format!("vm.zone_reclaim_mode = {value} on {nodes} nodes"),
        recommended: "0".into(),
        why: "A full node reclaims cached files while another has free memory, and allocations wait for it.".into(),
        effect: Effect::stated(
            "The caching effect is likely to be more important than data locality: file servers should leave it off",
            "Linux kernel, Documentation/admin-guide/sysctl/vm.rst",
        ),
        by_hand: "sysctl vm.zone_reclaim_mode".into(),
        applicability: Applicability::Safe,
        changes: vec![Change::sysctl("vm.zone_reclaim_mode", "0")],
    })
}
