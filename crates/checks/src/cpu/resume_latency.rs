use landspeed_model::{Applicability, Change, Fact, Role, Target};

use crate::check::{Outcome, Problem};
use crate::example;
use crate::view::View;

declare_check! {
    /// Whether processors are kept awake on a host that does not need it.
    ///
    /// **Reads** the lowest `/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us` and the command line
    /// (`idle=poll`, `intel_idle.max_cstate`, `processor.max_cstate`).
    ///
    /// **Matters** because a processor that may not sleep draws power all day and takes it from the turbo of those that
    /// work. In months of production that is a bill, and for bulk data it buys nothing.
    ///
    /// **Leave it alone** on hosts for latency, and during a benchmark, where it removes one source of spread.
    code: "CPU-007",
    name: "resume-latency",
    group: Cpu,
    title: "Processors kept awake",
    scope: Host,
    severity: Note,
    since: "0.1",
    sources: [
        "Linux kernel, Documentation/admin-guide/pm/cpuidle.rst: Power Management Quality of Service for CPUs; Idle States Control Via Kernel Command Line",
    ],
    example: { good: example::as_is, bad: |facts, _| facts.cpu.resume_latency_us = Fact::Known(0) },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let role = view.role();
    if matches!(role, Role::Latency | Role::Benchmark) {
        return Outcome::not_applicable("keeping processors awake is sensible for latency and for a benchmark");
    }
    let processors = known!(view.processors());
    let kernel = &view.facts.kernel;
    let told = ["idle", "intel_idle.max_cstate", "processor.max_cstate"]
        .into_iter()
        .filter_map(|name| kernel.parameter(name).map(|value| (name, value)))
        .find(|(name, value)| match *name {
            "idle" => *value == "poll",
            _ => matches!(*value, "0" | "1"),
        });
    // A limit that allows the deepest state there is costs nothing.
    let deepest = processors.idle_states.known().and_then(|all| all.iter().map(|state| state.latency_us).max());
    let held = match &processors.resume_latency_us {
        Fact::Known(us) if deepest.is_none_or(|deepest| u64::from(*us) < deepest) => Some(*us),
        Fact::Unknown(why) if told.is_none() => return Outcome::unknown(why.clone()),
        _ => None,
    };
    let observed = match (told, held) {
        (Some((name, value)), _) => format!("{name}={value} on the kernel's command line"),
        (None, Some(us)) => format!("a processor may take at most {us} µs to wake up"),
        (None, None) => return Outcome::pass("processors may sleep as deep as they can"),
    };
    let lift = |cpu: &u32| Change::new(Target::ResumeLatency { cpu: *cpu }, "0");
    let changes: Vec<_> = if held.is_some() { processors.online.iter().map(lift).collect() } else { Vec::new() };
    Outcome::found(Problem {
        severity: None,
        observed,
        recommended: "no limit, unless small messages need it".into(),
        why: "Bulk transfers keep their own processors awake; the others draw power and take turbo from them.".into(),
        effect: "No figure in the sources: it is power, not rate.".into(),
        by_hand: "grep . /sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us; cat /proc/cmdline".into(),
        applicability: if changes.is_empty() { Applicability::DisplayOnly } else { Applicability::NeedsCare },
        changes,
    })
}
