use crate::hardware::handled_by;
use crate::prelude::*;

declare_check! {
    /// Whether idle CPUs of a latency host may enter deep C-states.
    ///
    /// **Reads** the idle states of the first CPU (`cpuidle/state*/{latency,disable}`), `idle=poll` on the
    /// kernel's command line, `pm_qos_resume_latency_us` and the latency limit set through
    /// `/dev/cpu_dma_latency`.
    ///
    /// **Matters** for a host whose job is latency: an interrupt to a CPU in a deep state waits 100 µs and more
    /// until the CPU is awake, and the clock has to rise afterwards. Bulk transfers keep their CPUs awake
    /// anyway.
    ///
    /// **Leave it alone** on all hosts except latency hosts: sleeping CPUs save power. The advice is for the
    /// CPUs that handle the NIC's interrupts, not for all.
    code: "CPU-006",
    title: "Deep idle states",
    severity: Major,
    sources: [
        "Linux kernel, Documentation/admin-guide/pm/cpuidle.rst: Power Management Quality of Service for CPUs",
        red_hat_2012!("Cstates impact on Latency"),
    ],
    good: |facts, goal| {
        goal.role = Role::Latency;
        facts.cpu.resume_latency_us = Fact::Known(1);
    },
    bad: |_, goal| goal.role = Role::Latency,
}

/// Wake-up latency that a latency host accepts, µs: that of the shallow states (C1 takes 1 to 2 µs and C1E up
/// to 10 in the tables of `intel_idle`); deeper states take from 30 µs to several hundred.
const SHALLOW_US: u64 = 10;

fn evaluate(view: &View<'_>) -> Outcome {
    if view.role() != Role::Latency {
        return Outcome::not_applicable(
            "idle states matter to a host for latency (--role latency); others leave them alone",
        );
    }
    let cpus = known!(view.cpus());
    let states = known!(cpus.idle_states.as_ref());
    let limits = [&cpus.resume_latency_us, &cpus.dma_latency_us];
    if let Some(limit) = limits.into_iter().filter_map(Fact::known).min().filter(|us| u64::from(**us) <= SHALLOW_US) {
        return Outcome::pass(format!("limited to {limit} µs of wake-up time"));
    }
    if view.facts.kernel.parameter("idle") == Some("poll") {
        return Outcome::pass("idle=poll on the kernel's command line");
    }
    let deep: Vec<_> = states.iter().filter(|state| !state.disabled && state.latency_us > SHALLOW_US).collect();
    let Some(deepest) = deep.iter().max_by_key(|state| state.latency_us) else {
        return Outcome::pass(format!("none deeper than {SHALLOW_US} µs is allowed"));
    };
    let mut cpus: Vec<u32> = match view.queue_interrupts() {
        Fact::Known(all) => all.iter().filter_map(|interrupt| handled_by(interrupt)).flatten().collect(),
        _ => Vec::new(),
    };
    cpus.sort_unstable();
    cpus.dedup();
    let limit = |cpu: u32| Change::new(Target::ResumeLatency { cpu }, SHALLOW_US.to_string());
    let changes: Vec<_> = cpus.into_iter().map(limit).collect();
    let names: Vec<_> = deep.iter().map(|state| format!("{} {} µs", state.name, state.latency_us)).collect();
    Outcome::found(Problem {
        severity: None,
        observed: format!("{} allowed", names.join(", ")),
        recommended: format!(
            "no state that takes more than {SHALLOW_US} µs to leave, on the CPUs that handle the NIC's interrupts"
        ),
        why: format!("A message that finds its CPU in {} waits {} µs for it.", deepest.name, deepest.latency_us),
        effect: Effect::arithmetic(format!(
            "Up to {} µs less for the first message after a pause, by the CPU's own table.",
            deepest.latency_us
        )),
        by_hand: "grep . /sys/devices/system/cpu/cpu0/cpuidle/state*/{name,latency,disable}".into(),
        applicability: if changes.is_empty() { Applicability::DisplayOnly } else { Applicability::NeedsCare },
        changes,
    })
}
