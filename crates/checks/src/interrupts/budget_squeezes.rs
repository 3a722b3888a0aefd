use crate::prelude::*;

declare_check! {
    /// Whether softirq rounds often run out of budget.
    ///
    /// **Reads** `/proc/net/softnet_stat` (processed, squeezed, since boot) and `net.core.netdev_budget`.
    ///
    /// **Matters** only where rounds are cut short often: a round ends after `netdev_budget` packets or
    /// `netdev_budget_usecs`, and what is left waits for its turn while the NIC's ring fills.
    ///
    /// **Leave it alone** otherwise, and on hosts for latency: longer rounds keep everything else waiting.
    code: "IRQ-014",
    title: "Softirq budget squeezes",
    severity: Note,
    sources: [
        "Linux kernel, Documentation/admin-guide/sysctl/net.rst: netdev_budget, netdev_budget_usecs",
    ],
    bad: |facts, _| {
        if let Fact::Known(softnet) = &mut facts.softnet {
            softnet.squeezed = 10_000_000;
        }
    },
}

/// Threshold for the share of packets in rounds that were cut short. The share is an upper bound: each such
/// round handled at most one budget. At one packet in ten, normal work reaches the limit, not only bursts.
const MIN_SQUEEZE_SHARE: f64 = 0.1;
/// Below this number of rounds cut short, as just after a boot, the share is chance.
const MIN_SQUEEZES: u64 = 100;

fn evaluate(view: &View<'_>) -> Outcome {
    let softnet = *known!(view.facts.softnet.as_ref());
    if softnet.processed == 0 {
        return Outcome::not_applicable("no packet has been processed yet");
    }
    let budget = known!(view.sysctl_last("net.core.netdev_budget"));
    let share = softnet.squeezed as f64 * budget as f64 / softnet.processed as f64;
    let seen = format!("{} rounds cut short for {} packets since boot", softnet.squeezed, softnet.processed);
    if share < MIN_SQUEEZE_SHARE || softnet.squeezed < MIN_SQUEEZES {
        return Outcome::pass(seen);
    }
    let mut changes = Vec::new();
    for (name, most) in
        [("net.core.netdev_budget", MAX_BUDGET_PACKETS), ("net.core.netdev_budget_usecs", MAX_BUDGET_US)]
    {
        if let Fact::Known(now) = view.sysctl_last(name)
            && let Some(to) = twice(now, most)
        {
            changes.push(Change::sysctl(name, to.to_string()));
        }
    }
    let settings: Vec<_> = changes.iter().map(|change| format!("{} = {}", change.target, change.desired)).collect();
    let recommended = if settings.is_empty() {
        "spread the load over more CPUs; the rounds are long enough".into()
    } else {
        settings.join(", ")
    };
    Outcome::found(Problem {
        observed: format!("{seen}: up to {:.0} % of them, with a budget of {budget}", share.min(1.0) * 100.0),
        recommended,
        why: "What is left of a round waits for its next turn while the NIC's ring fills.".into(),
        by_hand: "cat /proc/net/softnet_stat  # third column, hexadecimal, one line for each CPU".into(),
        applicability: if changes.is_empty() { Applicability::DisplayOnly } else { Applicability::NeedsCare },
        changes,
        ..Problem::default()
    })
}

/// Upper bounds: sixteen times the kernel's defaults (300 packets, 2 ms). A CPU that needs longer rounds needs
/// help, and everything else on it waits meanwhile.
const MAX_BUDGET_PACKETS: u64 = 4800;
const MAX_BUDGET_US: u64 = 32_000;

/// Returns twice the value, up to `most`; `None` if it has reached `most`.
fn twice(now: u64, most: u64) -> Option<u64> {
    (now < most).then(|| now.saturating_mul(2).min(most))
}

#[cfg(test)]
mod tests {
    use landspeed_model::SoftnetFacts;

    use super::*;

    #[test]
    fn a_few_short_rounds_after_a_boot_are_not_a_finding() {
        for (squeezed, is_found) in [(99, false), (100, true)] {
            let mut facts = example::facts();
            facts.softnet = Fact::Known(SoftnetFacts { processed: squeezed, squeezed, ..SoftnetFacts::default() });
            let audit = CHECK.audit_alone(&facts, &example::goal());
            assert_eq!(!audit.findings.is_empty(), is_found, "{squeezed}");
        }
    }

    #[test]
    fn the_budget_is_doubled_up_to_a_maximum() {
        assert_eq!(twice(300, MAX_BUDGET_PACKETS), Some(600));
        assert_eq!(twice(3000, MAX_BUDGET_PACKETS), Some(4800));
        assert_eq!(twice(4800, MAX_BUDGET_PACKETS), None);
        assert_eq!(twice(u64::MAX, MAX_BUDGET_US), None);
    }
}
