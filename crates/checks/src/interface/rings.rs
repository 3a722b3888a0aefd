use landspeed_model::{Extent, Side};

use super::{NO_BUFFER_COUNTERS, largest};
use crate::hardware::{loss_severity, loss_text};
use crate::prelude::*;
use crate::view::ring;

declare_check! {
    /// Whether the rings are large enough for bursts.
    ///
    /// **Reads** ring sizes (`ethtool -g`), the counters of packets without a free buffer, and the kernel's
    /// version.
    ///
    /// **Matters** where packets found no free buffer: at 100 Gb/s a ring of 1024 full packets lasts 0.7 ms.
    /// The advice has changed twice: in 2016 ESnet said to leave rings alone, then to set them to the maximum
    /// (8192) at 100 Gb/s, and now that this no longer applies from Linux 6.11 on. So this check recommends
    /// larger rings where packets were lost for lack of buffers, and on older kernels at 100 Gb/s.
    ///
    /// **Leave it alone** without losses: a larger ring is a longer queue, and exceeds the CPU's cache.
    /// Changing it resets the link.
    code: "NIC-006",
    title: "Ring sizes",
    scope: Port,
    severity: Minor,
    sources: [
        "ESnet fasterdata, 100G Network Tuning: https://fasterdata.es.net/host-tuning/linux/100g-tuning/",
        esnet_2016!("Settings to leave alone in CentOS7"),
        "Linux kernel, Documentation/networking/statistics.rst: rx_missed_errors",
    ],
    bad: |facts, _| {
        let port = example::port(facts);
        if let Fact::Known(rings) = &mut port.rings {
            (rings.rx.now, rings.tx.now) = (1024, 1024);
        }
        port.statistics.insert("rx_out_of_buffer".into(), 90_000);
    },
}

/// ESnet's figure; no source recommends more.
const MAX_ENTRIES: u32 = 8192;

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let rings = *known!(port.rings.as_ref());
    let wanted = |extent: Extent| extent.max.min(MAX_ENTRIES);
    if rings.rx.max == 0 && rings.tx.max == 0 {
        return Outcome::not_applicable("the driver's rings cannot be changed");
    }
    let small = |extent: Extent| extent.now < wanted(extent);
    let text = format!("rx {} of {}, tx {} of {}", rings.rx.now, rings.rx.max, rings.tx.now, rings.tx.max);
    let packets = port.statistics.get("rx_packets").copied().unwrap_or(0);
    let lost = largest(port, NO_BUFFER_COUNTERS).filter(|(lost, _)| loss_severity(*lost, packets).is_some());
    let mut changes: Vec<Change> = Vec::new();
    if small(rings.rx) {
        changes.push(ring(port, Side::Rx, wanted(rings.rx)));
    }
    let (severity, observed, why) = if let Some((lost, name)) = lost.filter(|_| small(rings.rx)) {
        let observed = format!("{text}; {name} {}", loss_text(lost, packets));
        (loss_severity(lost, packets), observed, "Packets arrived and found no room in the ring.")
    } else {
        if small(rings.tx) {
            changes.push(ring(port, Side::Tx, wanted(rings.tx)));
        }
        let old = view.facts.kernel.at_least(6, 11) == Some(false);
        let fast = port.speed_bps.known().is_some_and(|&speed| speed >= FAST_BPS);
        let bulk = matches!(view.role(), Role::Dtn | Role::Benchmark);
        if !(old && fast && bulk) || changes.is_empty() {
            return Outcome::pass(text);
        }
        let observed = format!("{text}, on Linux {}", view.facts.kernel.release);
        (Some(Severity::Minor), observed, "At 100 Gb/s on kernels before 6.11 bursts outrun small rings.")
    };
    Outcome::found(Problem {
        severity,
        observed,
        recommended: changes.iter().map(text_of).collect::<Vec<_>>().join(", "),
        why: why.into(),
        effect: Effect::stated(
            "ESnet lists it among the most important settings at 100 Gb/s, before Linux 6.11",
            "ESnet fasterdata, 100G Network Tuning",
        ),
        by_hand: format!(
            "ethtool -g {0}; ethtool -S {0} | grep -iE 'miss|buffer|discard|fifo'",
            shell_word(&port.name)
        ),
        applicability: Applicability::NeedsCare,
        changes,
    })
}

fn text_of(change: &Change) -> String {
    format!("{} of {}", change.target, change.desired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_losses_only_old_kernels_at_100g_need_larger_rings() {
        for (release, speed, lost, findings) in [
            ("6.18.5", 100_000_000_000, 0, 0),
            ("6.18.5", 100_000_000_000, 90_000, 1),
            ("6.10.0", 100_000_000_000, 0, 1),
            ("6.10.0", 40_000_000_000, 0, 0),
            ("6.10.0", 40_000_000_000, 90_000, 1),
        ] {
            let mut facts = example::facts();
            facts.kernel.release = release.into();
            let port = example::port(&mut facts);
            port.speed_bps = Fact::Known(speed);
            port.rings = Fact::Known(landspeed_model::RingFacts {
                rx: Extent { now: 1024, max: 16384 },
                tx: Extent { now: 1024, max: 16384 },
            });
            port.statistics.insert("rx_missed_errors".into(), lost);
            let audit = CHECK.audit_alone(&facts, &example::goal());
            assert_eq!(audit.findings.len(), findings, "{release}, {speed}, {lost} lost");
            assert!(
                audit.findings.iter().flat_map(|finding| &finding.changes).all(|change| change.desired == "8192")
            );
        }
    }
}
