use super::distinct;
use crate::prelude::*;

declare_check! {
    /// Whether the CPU's own frequency driver is in use rather than the generic ACPI one.
    ///
    /// **Reads** `cpufreq/policy*/scaling_driver`, the CPU's model and the kernel's command line.
    ///
    /// **Matters** because `acpi-cpufreq` picks from a short table that the firmware supplies, while `intel_pstate` and
    /// `amd-pstate` let the CPU choose within its whole range, turbo included. ESnet measured 79 Gb/s with
    /// `intel_pstate` and 72 Gb/s with `acpi-cpufreq`, both under `performance`, on a local network; on a path of 92 ms
    /// there was no difference (36 Gb/s).
    ///
    /// **Leave it alone** on CPUs older than the drivers, where the firmware controls the frequency, and where
    /// a benchmark needs a fixed frequency from the table.
    code: "CPU-002",
    title: "CPU frequency driver",
    severity: Minor,
    sources: [
        esnet_2016!("CPU frequency"),
        "Linux kernel, Documentation/admin-guide/pm/intel_pstate.rst",
        "Linux kernel, Documentation/admin-guide/pm/amd-pstate.rst",
    ],
    bad: |facts, _| example::policies(facts, |p| p.driver = "acpi-cpufreq".into()),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let cpus = known!(view.cpus());
    let policies = known!(cpus.policies.as_ref());
    let drivers = distinct(policies.iter().map(|policy| policy.driver.as_str()));
    if !policies.iter().any(|policy| policy.driver == "acpi-cpufreq") {
        return Outcome::pass(drivers);
    }
    let model = known!(cpus.model.as_ref());
    let (wanted, parameter) = if model.contains("Intel") {
        ("intel_pstate", "intel_pstate")
    } else if model.contains("AMD") {
        // The driver was added in 5.17 (Documentation/admin-guide/pm/amd-pstate.rst).
        if view.facts.kernel.at_least(5, 17) == Some(false) {
            return Outcome::not_applicable(format!(
                "amd-pstate needs Linux 5.17; this is {}",
                view.facts.kernel.release
            ));
        }
        ("amd-pstate", "amd_pstate")
    } else {
        return Outcome::pass(drivers);
    };
    let disabled = view.facts.kernel.parameter(parameter).filter(|value| *value == "disable");
    Outcome::found(Problem {
        observed: match disabled {
            Some(value) => format!("acpi-cpufreq, because the command line says {parameter}={value}"),
            None => "acpi-cpufreq".into(),
        },
        recommended: match disabled {
            Some(value) => format!("{wanted}: take {parameter}={value} off the kernel's command line and reboot"),
            None => format!(
                "{wanted}: leave P-states to the operating system in the firmware's setup (for AMD switch CPPC on), and reboot"
            ),
        },
        why: "acpi-cpufreq knows the few frequencies in the firmware's table and not the whole turbo range.".into(),
        effect: Effect::measured(
            "Both under performance, on a LAN: 72 Gb/s with acpi-cpufreq, 79 Gb/s with intel_pstate; on a WAN 36 Gb/s with both",
            &[&source::FREQUENCY],
        ),
        by_hand: "cat /sys/devices/system/cpu/cpufreq/policy0/scaling_driver".into(),
        ..Problem::default()
    })
}
