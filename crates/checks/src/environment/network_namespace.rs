use crate::prelude::*;

declare_check! {
    /// Whether this is the machine's initial network namespace.
    ///
    /// **Reads** whether the namespace is the initial one.
    ///
    /// **Matters** because a container's or tester's namespace has its own settings, most of them at the kernel's
    /// defaults and not as the host set them: `tcp_rmem` is inherited, `tcp_mtu_probing`, `tcp_limit_output_bytes`,
    /// `tcp_no_metrics_save`, `tcp_slow_start_after_idle`, `tcp_notsent_lowat` and `optmem_max` are not; `tcp_mem`,
    /// `default_qdisc`, `netdev_*` and `busy_*` cannot be seen from here.
    ///
    /// **Leave it alone**: this is for information only.
    code: "ENV-020",
    title: "Network namespace",
    severity: Note,
    sources: [
        "network_namespaces(7)",
        "landspeed's own experiment on Linux 6.18: which sysctls a new namespace inherits",
    ],
    bad: |facts, _| facts.first_network_namespace = Fact::Known(false),
}

fn evaluate(view: &View<'_>) -> Outcome {
    if *known!(&view.facts.first_network_namespace) {
        return Outcome::pass("the machine's own");
    }
    Outcome::found(advice::manual_problem(
        "not the machine's first network namespace",
        "set sysctls in this namespace too, and audit the machine's own as well",
        "Most of the host's settings are not inherited; tcp_mem, default_qdisc and netdev_* are only seen outside.",
        "readlink /proc/1/ns/net /proc/self/ns/net",
    ))
}
