use crate::prelude::*;

declare_check! {
    /// Whether the CPUs may exceed their nominal frequency.
    ///
    /// **Reads** `/sys/devices/system/cpu/cpufreq/boost` or `intel_pstate/no_turbo`.
    ///
    /// **Matters** because a single flow keeps one CPU busy among idle ones, which is where turbo gains most.
    /// Benchmarks need the opposite: turbo depends on temperature and on the load of other CPUs, so that two
    /// runs have different clocks.
    ///
    /// **Leave it alone** where a power budget forbids turbo. For a benchmark this check only notes that it is on.
    code: "CPU-005",
    title: "Turbo or boost",
    severity: Minor,
    sources: [
        esnet_2016!("BIOS Setting"),
        "Linux kernel, Documentation/admin-guide/pm/cpufreq.rst: Frequency Boost Support",
    ],
    bad: |facts, _| facts.cpu.boost = Fact::Known(false),
}

const VERIFY_COMMAND: &str =
    "cat /sys/devices/system/cpu/intel_pstate/no_turbo /sys/devices/system/cpu/cpufreq/boost";

fn evaluate(view: &View<'_>) -> Outcome {
    let boost = *known!(known!(view.cpus()).boost.as_ref());
    let benchmark = view.role() == Role::Benchmark;
    match (boost, benchmark) {
        (true, false) => Outcome::pass("on"),
        (false, true) => Outcome::pass("off: the clock is the same in every run"),
        (true, true) => Outcome::found(Problem {
            severity: Some(Severity::Note),
            observed: "on".into(),
            recommended:
                "a fixed frequency for the measurement (`cpupower -c all frequency-set -f FREQ`), and turbo on again \
                          afterwards"
                    .into(),
            why: "Turbo follows temperature and the other CPUs' load: runs differ though nothing was changed.".into(),
            effect: Effect::measured(
                "A frequency set by hand instead of performance, with acpi-cpufreq: 67 instead of 72 Gb/s on a LAN, 27 instead of 36 Gb/s on a WAN",
                &[&source::FREQUENCY],
            ),
            by_hand: VERIFY_COMMAND.into(),
            ..Problem::default()
        }),
        (false, false) => Outcome::found(Problem {
            observed: "off".into(),
            recommended: "on".into(),
            why: "One busy CPU among idle ones, which is what one flow makes, gains most from turbo.".into(),
            effect: Effect::measured(
                "On a LAN 79 Gb/s with intel_pstate, the only driver with turbo, 72 Gb/s with acpi-cpufreq; on a WAN 36 Gb/s with both",
                &[&source::FREQUENCY, &source::TURBO],
            ),
            by_hand: VERIFY_COMMAND.into(),
            ..Problem::default()
        }),
    }
}
