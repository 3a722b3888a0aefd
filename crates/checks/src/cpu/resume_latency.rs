use crate::prelude::*;

declare_check! {
    /// Whether CPUs are kept out of deep C-states on a host that does not need it.
    ///
    /// **Reads** the lowest `/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us`, the latency limit
    /// that a program sets through `/dev/cpu_dma_latency`, and the command line (`idle=poll`,
    /// `intel_idle.max_cstate`, `CPU.max_cstate`).
    ///
    /// **Matters** because a CPU that may not sleep draws more power, without a benefit for bulk data. It does
    /// not reduce the rate: in the 2012 deck all cores, kept awake, still ran at 2.69 GHz, above their nominal
    /// 2.19 GHz.
    ///
    /// **Leave it alone** on latency hosts, and during a benchmark, where it removes a source of variance.
    code: "CPU-007",
    title: "CPUs kept awake",
    severity: Note,
    sources: [
        "Linux kernel, Documentation/admin-guide/pm/cpuidle.rst: Power Management Quality of Service for CPUs; Idle States Control Via Kernel Command Line",
        red_hat_2012!("CSTATE disabled – Note speed"),
    ],
    bad: |facts, _| facts.cpu.resume_latency_us = Fact::Known(0),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let role = view.role();
    if matches!(role, Role::Latency | Role::Benchmark) {
        return Outcome::not_applicable("keeping CPUs awake is sensible for latency and for a benchmark");
    }
    let cpu = known!(view.cpus());
    let kernel = &view.facts.kernel;
    let set = ["idle", "intel_idle.max_cstate", "CPU.max_cstate"]
        .into_iter()
        .filter_map(|name| kernel.parameter(name).map(|value| (name, value)))
        .find(|(name, value)| match *name {
            "idle" => *value == "poll",
            _ => matches!(*value, "0" | "1"),
        });
    // A limit that allows the deepest available state has no cost.
    let deepest = cpu.idle_states.known().and_then(|all| all.iter().map(|state| state.latency_us).max());
    let binds =
        |us: &Fact<u32>| us.known().copied().filter(|us| deepest.is_none_or(|deepest| u64::from(*us) < deepest));
    let (qos, held) = (binds(&cpu.resume_latency_us), binds(&cpu.dma_latency_us));
    let observed = match (set, qos, held) {
        (Some((name, value)), ..) => format!("{name}={value} on the kernel's command line"),
        (None, Some(us), _) => format!("a CPU may take at most {us} µs to wake up"),
        (None, None, Some(us)) => format!("a program holds /dev/cpu_dma_latency at {us} µs"),
        (None, None, None) => {
            let unknown = [
                unknown_reason(&cpu.resume_latency_us),
                unknown_reason(&cpu.dma_latency_us),
                unknown_reason(&kernel.command_line),
            ];
            return match unknown.into_iter().flatten().next() {
                Some(why) => Outcome::unknown(why),
                None => Outcome::pass("CPUs may sleep as deep as they can"),
            };
        }
    };
    let lift = |cpu: &u32| Change::new(Target::ResumeLatency { cpu: *cpu }, "0");
    let changes: Vec<_> = if qos.is_some() { cpu.online.iter().map(lift).collect() } else { Vec::new() };
    Outcome::found(Problem {
        severity: None,
        observed,
        recommended: "no limit, unless small messages need it".into(),
        why: "Bulk transfers keep their own CPUs awake; the others only draw power.".into(),
        effect: Effect::measured(
            "None on the rate: with C-states disabled all cores ran at 2.69 GHz, the nominal clock being 2.19 GHz",
            &[&source::AWAKE],
        ),
        by_hand:
            "grep . /sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us; fuser /dev/cpu_dma_latency; cat \
                  /proc/cmdline"
                .into(),
        applicability: if changes.is_empty() { Applicability::DisplayOnly } else { Applicability::NeedsCare },
        changes,
    })
}

/// Returns why a fact is unknown; `None` if it is known or absent.
fn unknown_reason<T>(fact: &Fact<T>) -> Option<String> {
    match fact {
        Fact::Unknown(why) => Some(why.clone()),
        Fact::Known(_) | Fact::Absent(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dma_latency_limit_is_reported_without_changes() {
        let mut facts = example::facts();
        facts.cpu.dma_latency_us = Fact::Known(0);
        let audit = CHECK.audit_alone(&facts, &example::goal());
        assert!(audit.findings[0].observed.contains("/dev/cpu_dma_latency"), "{:?}", audit.findings);
        assert!(audit.findings[0].changes.is_empty());
    }
}
