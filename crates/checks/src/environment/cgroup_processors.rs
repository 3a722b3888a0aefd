use crate::prelude::*;

/// CPU quota that a fast transfer needs, thousandths of a CPU: one CPU for the program, one for the kernel's
/// work on its behalf.
const MIN_CPU_MILLIS: u32 = 2000;

declare_check! {
    /// Whether this cgroup has a CPU quota.
    ///
    /// **Reads** the tightest `cpu.max` (or `cfs_quota_us`) of this cgroup and those above it.
    ///
    /// **Matters** because a group that has used up its quota is throttled until the end of the period, up to 100 ms:
    /// windows close, UDP is lost, and the average still looks harmless.
    ///
    /// **Leave it alone** where the quota is intended and the goal fits into it.
    code: "ENV-004",
    title: "CPU quota",
    severity: Minor,
    sources: ["Linux Documentation/admin-guide/cgroup-v2.rst, cpu.max"],
    bad: |facts, _| facts.cgroup.cpu_millis = Fact::Known(1500),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let millis = match &view.facts.cgroup.cpu_millis {
        Fact::Known(millis) => *millis,
        Fact::Absent(why) => return Outcome::pass(why.clone()),
        Fact::Unknown(why) => return Outcome::unknown(why.clone()),
    };
    let online = view.facts.cpu.online.len() as u64;
    let text = format!("{:.1} CPUs of quota, {online} online", f64::from(millis) / 1000.0);
    if u64::from(millis) >= online * 1000 {
        return Outcome::pass(text);
    }
    Outcome::found(Problem {
        severity: (millis < MIN_CPU_MILLIS).then_some(Severity::Major),
        effect: Effect::arithmetic(format!(
            "Two busy threads stall for {:.0} ms of every 100 ms (the default period).",
            (100.0 - f64::from(millis) / 20.0).max(0.0)
        )),
        ..advice::manual_problem(
            text,
            "no limit for what transfers or measures (cpu.max = max), or one well above two CPUs",
            "When the quota is used up, the program is throttled until the end of the period.",
            "cat /sys/fs/cgroup/$(cut -d: -f3 /proc/self/cgroup)/cpu.max",
        )
    })
}
