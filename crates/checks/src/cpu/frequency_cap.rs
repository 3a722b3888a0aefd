use landspeed_model::CpuPolicy;

use super::cpus_of;
use crate::hardware::severity_for_rate;
use crate::prelude::*;

declare_check! {
    /// Whether the CPU frequency is capped below the hardware maximum.
    ///
    /// **Reads** `cpufreq/policy*/scaling_max_freq` and `cpuinfo_max_freq`.
    ///
    /// **Matters** because the cap outlasts its reason: a thermal daemon, a power profile or an old benchmark
    /// may have set it. ESnet throttled a receiver to 1.2 GHz to show what a slow host does to a fast sender.
    ///
    /// **Leave it alone** where a power budget or a thermal daemon needs it. A benchmark may use a fixed
    /// frequency on purpose: there it is a note.
    code: "CPU-004",
    title: "CPU frequency limit",
    severity: Major,
    sources: [
        "Linux kernel, Documentation/admin-guide/pm/cpufreq.rst: scaling_max_freq",
        esnet_2016!("Fast Host to Slow host"),
    ],
    bad: |facts, _| example::policies(facts, |p| p.max_khz = Some(1_200_000)),
}

/// Limits above this share of the maximum stem from rounding or disabled turbo, and are not a cap.
const MIN_CAP_SHARE: f64 = 0.9;

fn evaluate(view: &View<'_>) -> Outcome {
    let cpus = known!(view.cpus());
    let policies = known!(cpus.policies.as_ref());
    let limits = |policy: &CpuPolicy| Some((policy.max_khz?, policy.hardware_max_khz?));
    if !policies.iter().any(|policy| limits(policy).is_some()) {
        return Outcome::not_applicable("the frequency driver states no limits");
    }
    // With boost off, drivers lower the limit to the nominal frequency; CPU-005 covers that.
    if cpus.boost.known() == Some(&false) {
        return Outcome::not_applicable("boost is off, which lowers the limit by itself");
    }
    let capped =
        |policy: &&CpuPolicy| limits(policy).is_some_and(|(max, most)| (max as f64) < most as f64 * MIN_CAP_SHARE);
    let slow: Vec<&CpuPolicy> = policies.iter().filter(capped).collect();
    let Some((max, most)) = slow.iter().filter_map(|policy| limits(policy)).min() else {
        let most = policies.iter().filter_map(limits).map(|(max, _)| max).min().unwrap_or(0);
        return Outcome::pass(format!("up to {}", mhz(most)));
    };
    Outcome::found(Problem {
        severity: Some(if view.role() == Role::Benchmark {
            Severity::Note
        } else {
            severity_for_rate(view, Severity::Major)
        }),
        observed: format!("{} held to {} of {}", cpus_of(&slow), mhz(max), mhz(most)),
        recommended: format!(
            "{}, after finding who set the limit: `cpupower frequency-set -u {}MHz`",
            mhz(most),
            most / 1000
        ),
        why: "A flow's rate follows the clock of the CPU it runs on.".into(),
        effect: Effect::measured(
            "A frequency set by hand instead of performance, with acpi-cpufreq: 67 instead of 72 Gb/s on a LAN, 27 instead of 36 Gb/s on a WAN",
            &[&source::FREQUENCY],
        ),
        by_hand: "grep . /sys/devices/system/cpu/cpufreq/policy*/{scaling,cpuinfo}_max_freq".into(),
        ..Problem::default()
    })
}

fn mhz(khz: u64) -> String {
    format!("{} MHz", khz / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_close_to_the_maximum_is_not_a_cap() {
        for (khz, findings) in [(3_600_000, 0), (3_240_000, 0), (3_200_000, 1)] {
            let mut facts = example::facts();
            example::policies(&mut facts, |policy| policy.max_khz = Some(khz));
            let audit = CHECK.audit_alone(&facts, &example::goal());
            assert_eq!(audit.findings.len(), findings, "{khz} kHz");
        }
    }
}
