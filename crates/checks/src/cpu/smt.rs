use crate::prelude::*;

declare_check! {
    /// Whether two threads share each core (SMT).
    ///
    /// **Reads** `/sys/devices/system/cpu/smt/control`.
    ///
    /// **Matters** where one flow needs a whole core: its sibling thread may be the one that handles the
    /// interrupts, and both then run more slowly, by an amount that varies from run to run. ESnet saw 51 to 77
    /// Gb/s on a local network with it on, and calls the results very inconsistent on AMD hosts in particular.
    ///
    /// **Leave it alone** below 100 Gb/s, and on hosts that run many transfers at once or have other work: there it adds
    /// throughput.
    code: "CPU-008",
    title: "Simultaneous multithreading",
    severity: Minor,
    sources: [
        "ESnet fasterdata, 100G Network Tuning: https://fasterdata.es.net/host-tuning/linux/100g-tuning/",
        esnet_2016!("BIOS Setting"),
        "Linux kernel, Documentation/ABI/testing/sysfs-devices-system-cpu: smt/control",
    ],
    bad: |facts, _| facts.cpu.smt = Fact::Known("on".into()),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let control = known!(known!(view.cpus()).smt.as_ref());
    if control != "on" {
        return Outcome::pass(control.clone());
    }
    let rate = view.rate_bps().known().copied();
    let severity = match (view.role(), rate) {
        (Role::Benchmark, _) => Severity::Major,
        (_, Some(rate)) if rate >= FAST_BPS => Severity::Minor,
        (Role::Latency, _) => Severity::Note,
        (_, Some(rate)) => return Outcome::pass(format!("on, which does no harm at {}", rate_text(rate))),
        (_, None) => return Outcome::unknown("it is on; whether that matters depends on the rate: give --goal"),
    };
    Outcome::found(Problem {
        severity: Some(severity),
        observed: "on".into(),
        recommended:
            "off, in the firmware or with `echo off > /sys/devices/system/cpu/smt/control` until the next boot".into(),
        why:
            "A thread that moves data and one that handles interrupts may share a core, and do so in some runs only."
                .into(),
        effect: Effect::measured(
            "On a LAN with it on: between 51 and 77 Gb/s from run to run",
            &[&source::HYPERTHREADING],
        ),
        by_hand: "cat /sys/devices/system/cpu/smt/control /sys/devices/system/cpu/smt/active".into(),
        ..Problem::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_depends_on_rate_and_role() {
        let weight = |rate, role| {
            let (mut facts, mut goal) = (example::facts(), example::goal());
            facts.cpu.smt = Fact::Known("on".into());
            (goal.rate_bps, goal.role) = (Some(rate), role);
            let audit = CHECK.audit_alone(&facts, &goal);
            audit.findings.first().map(|finding| finding.severity)
        };
        assert_eq!(weight(99_000_000_000, Role::Dtn), None);
        assert_eq!(weight(100_000_000_000, Role::Dtn), Some(Severity::Minor));
        assert_eq!(weight(10_000_000_000, Role::Benchmark), Some(Severity::Major));
        assert_eq!(weight(100_000_000_000, Role::Guest), None);
    }
}
