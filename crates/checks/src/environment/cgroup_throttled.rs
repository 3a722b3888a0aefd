use crate::prelude::*;

declare_check! {
    /// Whether this cgroup was throttled.
    ///
    /// **Reads** `nr_throttled` of `cpu.stat`.
    ///
    /// **Matters** because each throttling stops every thread of the cgroup for up to one period, 100 ms by
    /// default: long enough to fill the receive buffer on any fast path.
    ///
    /// **Leave it alone** if it comes from work that has nothing to do with transfers.
    code: "ENV-007",
    title: "CPU throttling",
    severity: Minor,
    sources: ["Linux Documentation/scheduler/sched-bwc.rst, nr_throttled"],
    bad: |facts, _| facts.cgroup.throttled_periods = Fact::Known(1200),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let periods = *known!(&view.facts.cgroup.throttled_periods);
    if periods == 0 {
        return Outcome::pass("none");
    }
    let problem = advice::manual_problem(
        format!("{periods} throttled periods"),
        "0: a higher cpu.max, or transfers in a group without one (ENV-004)",
        "Each stops all threads of the group for up to 100 ms.",
        "cat /sys/fs/cgroup/$(cut -d: -f3 /proc/self/cgroup)/cpu.stat",
    );
    Outcome::found(problem.with_effect(Effect::stated(
        "A throttled group does not run until the next period, 100 ms by default",
        "Linux Documentation/scheduler/sched-bwc.rst",
    )))
}
