use landspeed_model::CpuPolicy;

use super::{applicability_of, cpus_of, distinct};
use crate::prelude::*;

declare_check! {
    /// Energy performance preference of CPUs that choose their frequency themselves.
    ///
    /// **Reads** `cpufreq/policy*/energy_performance_preference` and the governor.
    ///
    /// **Matters** because with hardware-managed P-states the preference, not the governor's name, decides how
    /// fast the clock rises: `balance_power` under `powersave` raises it slowly.
    ///
    /// **Leave it alone** where power or heat is the limit. Under the governor `performance` of `intel_pstate`
    /// and `amd-pstate` the kernel sets the preference to its fastest value.
    code: "CPU-003",
    title: "Energy performance preference",
    severity: Minor,
    sources: [
        esnet_2016!("CPU governor"),
        "Linux kernel, Documentation/admin-guide/pm/intel_pstate.rst: Energy vs Performance Hints",
        "Linux kernel, Documentation/admin-guide/pm/amd-pstate.rst: energy_performance_preference",
    ],
    bad: |facts, _| example::policies(facts, |p| p.energy_preference = Some("balance_power".into())),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let policies = known!(known!(view.cpus()).policies.as_ref());
    let with: Vec<&CpuPolicy> = policies.iter().filter(|policy| policy.energy_preference.is_some()).collect();
    if with.is_empty() {
        return Outcome::not_applicable("the frequency driver has no energy preference");
    }
    // A bare number is the raw hint; 0 is the fastest.
    let fast = |policy: &&CpuPolicy| matches!(policy.energy_preference.as_deref(), Some("performance" | "0"));
    let slow: Vec<&CpuPolicy> = with.iter().copied().filter(|policy| !fast(policy)).collect();
    let said = |policies: &[&CpuPolicy]| distinct(policies.iter().filter_map(|p| p.energy_preference.as_deref()));
    if slow.is_empty() {
        return Outcome::pass(said(&with));
    }
    let able = |policy: &&&CpuPolicy| policy.energy_preferences.iter().any(|name| name == "performance");
    let change =
        |policy: &&CpuPolicy| Change::new(Target::EnergyPreference { policy: policy.name.clone() }, "performance");
    let changes: Vec<_> = slow.iter().filter(able).map(change).collect();
    // `balance_performance` is the usual default and close to the fastest.
    let mild = slow.iter().all(|policy| policy.energy_preference.as_deref() == Some("balance_performance"));
    Outcome::found(Problem {
        severity: mild.then_some(Severity::Note),
        observed: format!("{} on {}", said(&slow), cpus_of(&slow)),
        recommended: "performance".into(),
        why: "Where the CPU picks its own frequency, this preference decides how fast the clock rises.".into(),
        effect: Effect::measured(
            "57 to 79 Gb/s on a LAN for the governor, which sets this preference too",
            &[&source::GOVERNOR],
        ),
        by_hand: "grep . /sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference".into(),
        applicability: applicability_of(&changes),
        changes,
    })
}
