use crate::hardware::FLOW_BPS;
use crate::prelude::*;

declare_check! {
    /// Whether there are enough CPUs for the rate.
    ///
    /// **Reads** the number of physical cores, of CPUs online and the goal's rate.
    ///
    /// **Matters** because one core moves some 30 Gb/s of TCP with jumbo frames (ESnet, 3 GHz and more), and
    /// the application and the interrupts need a core each: 100 Gb/s takes eight cores, without any other work.
    ///
    /// **Leave it alone** where the kernel does not move the data (RDMA, DPDK, a NIC with its own TCP).
    code: "CPU-010",
    title: "CPU cores for the rate",
    severity: Minor,
    sources: [
        "ESnet fasterdata, 100G Network Tuning: https://fasterdata.es.net/host-tuning/linux/100g-tuning/",
        "ESnet fasterdata, Interrupt Binding: https://fasterdata.es.net/host-tuning/linux/100g-tuning/interrupt-binding/",
    ],
    bad: |facts, _| {
        facts.cpu.cores = Fact::Known(4);
        facts.cpu.online = (0..4).collect();
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let rate = *known!(view.rate_bps().as_ref());
    let online = view.facts.cpu.online.len() as u32;
    // A virtual machine's cores may be threads of the host; its own view is all that is available.
    let cores = match &view.facts.cpu.cores {
        Fact::Known(cores) => *cores,
        Fact::Absent(_) | Fact::Unknown(_) if online > 0 => online,
        Fact::Absent(why) | Fact::Unknown(why) => return Outcome::unknown(why.clone()),
    };
    let flows = rate.div_ceil(FLOW_BPS).max(1);
    // A router has no application.
    let (each, parts) = match view.role() {
        Role::Router => (1, format!("{flows} for interrupts")),
        _ => (2, format!("{flows} for interrupts and {flows} for the application")),
    };
    let wanted = u32::try_from(flows * each).unwrap_or(u32::MAX);
    if cores >= wanted {
        return Outcome::pass(format!("{cores} cores; {} wants {wanted}", rate_text(rate)));
    }
    Outcome::found(Problem {
        // With half of them, one core does both jobs, and even a perfect spread no longer carries the rate.
        severity: Some(if cores <= wanted / 2 { Severity::Major } else { Severity::Minor }),
        observed: format!("{cores} cores for {}", rate_text(rate)),
        recommended: format!("{wanted} cores: {parts}"),
        why: format!("One core moves some {} of TCP with jumbo frames.", rate_text(FLOW_BPS)),
        effect: Effect::measured(
            "Around 30 Gb/s for a single stream, over 95 Gb/s with 8",
            &[&source::EIGHT_STREAMS],
        ),
        by_hand: "lscpu".into(),
        ..Problem::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cores_are_recommended_per_thirty_gigabits() {
        for (cores, rate, weight) in [
            (2, 10_000_000_000, None),
            (8, 100_000_000_000, None),
            (7, 100_000_000_000, Some(Severity::Minor)),
            (4, 100_000_000_000, Some(Severity::Major)),
        ] {
            let (mut facts, mut goal) = (example::facts(), example::goal());
            facts.cpu.cores = Fact::Known(cores);
            goal.rate_bps = Some(rate);
            let audit = CHECK.audit_alone(&facts, &goal);
            assert_eq!(audit.findings.first().map(|finding| finding.severity), weight, "{cores} cores, {rate}");
        }
    }
}
