use super::if_fq_exists;
use crate::prelude::*;

declare_check! {
    /// Default qdisc of new interfaces.
    ///
    /// **Reads** `net.core.default_qdisc`.
    ///
    /// **Matters** because interfaces get it after the next boot, a changed number of queues or a reset of the
    /// driver. It does not affect existing queues: see QDISC-001.
    ///
    /// **Leave it alone** on a router and on a host of small messages, where `fq_codel` is as good or better.
    code: "QDISC-004",
    title: "Default qdisc",
    severity: Note,
    sources: ["Linux Documentation/admin-guide/sysctl/net.rst, default_qdisc", esnet_2016!("TCP option: Fair Queuing Scheduler (FQ)")],
    bad: |facts, _| example::sysctl(facts, "net.core.default_qdisc", "pfifo_fast"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    const NAME: &str = "net.core.default_qdisc";
    let value = known!(view.sysctl(NAME));
    if value == "fq" {
        return Outcome::pass("fq");
    }
    let fair = matches!(value, "fq_codel" | "cake");
    if fair && matches!(view.role(), Role::Router | Role::Latency) {
        return Outcome::pass(format!("{value}: it suits this role"));
    }
    let problem = Problem {
        effect: Effect::stated(
            "None until a qdisc is attached again; QDISC-001 has the gain",
            "Linux Documentation/admin-guide/sysctl/net.rst, default_qdisc",
        ),
        ..advice::sysctl(
            NAME,
            value,
            "fq",
            "New queues get it: after a boot, a driver's reset or more channels they do not pace.",
        )
    };
    Outcome::found(if_fq_exists(view, problem))
}
