use landspeed_model::Extent;

use super::{cores_of_a_node, receive_queues};
use crate::hardware::FLOW_BPS;
use crate::prelude::*;

declare_check! {
    /// Whether the NIC has a sensible number of queues.
    ///
    /// **Reads** channels (`ethtool -l`), physical cores and NUMA nodes.
    ///
    /// **Matters** because one CPU processes each queue: too few cannot carry the rate, and more than there are
    /// cores make more interrupts for the same work. The kernel's own default is half of the physical cores;
    /// this check reports fewer than that, or queues that cannot carry the rate at 30 Gb/s each.
    ///
    /// **Leave it alone** where AF_XDP or flow rules use particular queues. Changing the number resets the link.
    code: "IRQ-004",
    title: "Number of queues",
    scope: Port,
    severity: Minor,
    sources: [
        "Linux kernel, Documentation/networking/scaling.rst: RSS Suggested Configuration",
        "Linux kernel, net/core/dev.c: netif_get_num_default_rss_queues",
        "ESnet fasterdata, 100G Network Tuning: https://fasterdata.es.net/host-tuning/linux/100g-tuning/",
    ],
    bad: |facts, _| {
        if let Fact::Known(channels) = &mut example::port(facts).channels {
            channels.combined.now = 2;
        }
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let channels = *known!(port.channels.as_ref());
    let now = known!(receive_queues(port));
    let cores = *known!(view.facts.cpu.cores.as_ref());
    let Some(near) = cores_of_a_node(view) else { return Outcome::unknown("the number of cores is unknown") };
    let Extent { now: combined, max } = channels.combined;
    if max == 0 {
        return Outcome::not_applicable("the driver has no combined channels");
    }
    let wanted = near.min(max);
    let change =
        |number: u32| vec![Change::new(Target::Channels { interface: port.name.clone() }, number.to_string())];
    let rate = view.rate_bps().known().map(|rate| rate / view.ports.max(1) as u64);
    let carries = u64::from(now).saturating_mul(FLOW_BPS);
    let short = rate.is_some_and(|rate| carries < rate);
    let (severity, why, desired) = if now < wanted && (short || now < near.div_ceil(2).min(max)) {
        let severity = if short { Severity::Major } else { Severity::Minor };
        (severity, "Each queue is the work of one CPU: so few leave CPUs near the NIC idle.", wanted)
    } else if combined > cores {
        (Severity::Minor, "More queues than cores make more interrupts for the same work.", wanted)
    } else {
        return Outcome::pass(format!("{now} of at most {max}; {near} cores in each NUMA node, {cores} in all"));
    };
    Outcome::found(Problem {
        severity: Some(severity),
        observed: format!("{now} queues of at most {max}; {near} cores in each NUMA node, {cores} in all"),
        recommended: format!("{desired}"),
        why: why.into(),
        effect: Effect::measured(
            "About 30 Gb/s for each flow, and so for each core that works",
            &[&source::EIGHT_STREAMS],
        ),
        by_hand: format!("ethtool -l {}", shell_word(&port.name)),
        applicability: Applicability::NeedsCare,
        changes: change(desired),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_counts_from_half_to_all_cores_pass() {
        // 32 cores in two nodes of 16; 100 Gb/s takes four queues at 30 Gb/s.
        for (queues, max, weight) in [
            (16, 64, None),
            (8, 64, None),
            (7, 64, Some(Severity::Minor)),
            (3, 64, Some(Severity::Major)),
            (4, 4, None),
            (32, 64, None),
            (33, 64, Some(Severity::Minor)),
        ] {
            let mut facts = example::facts();
            if let Fact::Known(channels) = &mut example::port(&mut facts).channels {
                channels.combined = Extent { now: queues, max };
            }
            let audit = CHECK.audit_alone(&facts, &example::goal());
            assert_eq!(audit.findings.first().map(|finding| finding.severity), weight, "{queues} of {max}");
        }
    }
}
