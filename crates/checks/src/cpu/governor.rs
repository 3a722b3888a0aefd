use landspeed_model::CpuPolicy;

use super::{applicability_of, cpus_of, distinct};
use crate::hardware::severity_for_rate;
use crate::prelude::*;

declare_check! {
    /// Frequency governor of the CPUs.
    ///
    /// **Reads** `/sys/devices/system/cpu/cpufreq/policy*/scaling_governor`.
    ///
    /// **Matters** because a flow's rate is the clock of one CPU, and interrupts and ACKs come in bursts
    /// with gaps between them: a governor that follows the load sees a CPU that is idle half of the time and slows it
    /// down. ESnet measured 57 Gb/s with the default (`powersave`) and 79 Gb/s with `performance`, on a local network.
    ///
    /// **Leave it alone** below 10 Gb/s, where power or heat is the limit, on laptops, and in a virtual
    /// machine, whose host decides. A benchmark may set a fixed frequency with `userspace`.
    code: "CPU-001",
    title: "CPU frequency governor",
    severity: Major,
    sources: [
        esnet_2016!("CPU governor"),
        "ESnet fasterdata, 100G Network Tuning: https://fasterdata.es.net/host-tuning/linux/100g-tuning/",
        "Linux kernel, Documentation/admin-guide/pm/cpufreq.rst",
    ],
    bad: |facts, _| example::policies(facts, |p| p.governor = "powersave".into()),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let policies = known!(known!(view.cpus()).policies.as_ref());
    let fixed = view.role() == Role::Benchmark;
    let slow: Vec<&CpuPolicy> = policies
        .iter()
        .filter(|policy| policy.governor != "performance" && !(fixed && policy.governor == "userspace"))
        .collect();
    if slow.is_empty() {
        return Outcome::pass(distinct(policies.iter().map(|policy| policy.governor.as_str())));
    }
    let able = |policy: &&&CpuPolicy| policy.governors.iter().any(|name| name == "performance");
    let change = |policy: &&CpuPolicy| Change::new(Target::Governor { policy: policy.name.clone() }, "performance");
    let changes: Vec<_> = slow.iter().filter(able).map(change).collect();
    let governors = distinct(slow.iter().map(|policy| policy.governor.as_str()));
    Outcome::found(Problem {
        severity: Some(severity_for_rate(
            view,
            if view.role() == Role::Router { Severity::Minor } else { Severity::Major },
        )),
        observed: format!("{governors} on {}", cpus_of(&slow)),
        recommended: if changes.is_empty() {
            "performance, which this driver does not offer: look at the firmware's power profile".into()
        } else {
            "performance".into()
        },
        why: "A flow's rate is the clock of one CPU, and this governor slows a CPU down between bursts.".into(),
        effect: Effect::measured("On a LAN 57 Gb/s with powersave, 79 Gb/s with performance", &[&source::GOVERNOR]),
        by_hand: "grep . /sys/devices/system/cpu/cpufreq/policy*/scaling_governor".into(),
        applicability: applicability_of(&changes),
        changes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(rate_bps: u64, role: Role) -> Option<Severity> {
        let mut facts = example::facts();
        example::policies(&mut facts, |policy| policy.governor = "schedutil".into());
        let goal = landspeed_model::Goal { rate_bps: Some(rate_bps), role, ..example::goal() };
        let audit = CHECK.audit_alone(&facts, &goal);
        audit.findings.first().map(|finding| finding.severity)
    }

    #[test]
    fn slow_links_lower_the_severity_except_for_latency() {
        assert_eq!(weight(10_000_000_000, Role::Dtn), Some(Severity::Major));
        assert_eq!(weight(1_000_000_000, Role::Dtn), Some(Severity::Note));
        assert_eq!(weight(1_000_000_000, Role::Latency), Some(Severity::Major));
        assert_eq!(weight(10_000_000_000, Role::Guest), None);
    }

    #[test]
    fn fixed_frequencies_and_missing_performance_governors_are_accepted() {
        let mut facts = example::facts();
        example::policies(&mut facts, |policy| policy.governor = "userspace".into());
        let goal = landspeed_model::Goal { role: Role::Benchmark, ..example::goal() };
        assert!(CHECK.audit_alone(&facts, &goal).findings.is_empty());
        example::policies(&mut facts, |policy| policy.governors = vec!["userspace".into()]);
        let audit = CHECK.audit_alone(&facts, &example::goal());
        assert_eq!(audit.findings[0].applicability, Applicability::DisplayOnly);
    }
}
