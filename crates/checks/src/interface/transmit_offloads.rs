use super::disabled_offloads;
use crate::prelude::*;

declare_check! {
    /// Whether transmit offloads are on.
    ///
    /// **Reads** the offloads scatter-gather, transmit checksums, TCP segmentation (TSO) for both IP versions and generic
    /// segmentation (GSO).
    ///
    /// **Matters** because without them the CPU segments and checksums every packet: it can do so at 10 Gb/s,
    /// but not at 40 and 100 Gb/s. Zero copy needs scatter-gather and checksums. They build on each other:
    /// without checksums the kernel switches segmentation off by itself.
    ///
    /// **Leave it alone** where a driver's offload is known to be broken, or while capturing packets as they are on the
    /// wire. TSO off was once tried against bursts into small switch buffers and brought 100 to 200 Mb/s at 10 Gb/s (ESnet
    /// 2015); pacing with fq is the better remedy.
    code: "NIC-007",
    title: "Transmit offloads",
    scope: Port,
    severity: Minor,
    sources: [
        "Linux kernel, Documentation/networking/segmentation-offloads.rst",
        tokyo_2006!("Linux 2.6.18-rc5 IPv4 TSO on"),
        lbnl_2015!("Effects of TCP Segmentation Offload"),
        "Linux kernel, Documentation/networking/netdev-features.rst: features that need others",
    ],
    bad: |facts, _| example::feature(facts, "tx-tcp-segmentation", false),
}

/// Recommended offloads. Those that others depend on come first: this is the order of the changes.
const RECOMMENDED_OFFLOADS: &[&str] = &[
    "tx-scatter-gather",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv4",
    "tx-checksum-ipv6",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-generic-segmentation",
];

/// Rate up to which ESnet saw no relevant difference, bits/s.
const NEGLIGIBLE_BPS: u64 = 10_000_000_000;

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let features = known!(port.features.as_ref());
    if features.is_empty() {
        return Outcome::unknown("its offloads cannot be read");
    }
    let (mut off, mut changes) = disabled_offloads(port, features, RECOMMENDED_OFFLOADS);
    // A device that checksums any protocol needs no checksum offload for each of them.
    if features.get("tx-checksum-ip-generic").is_some_and(|feature| feature.active) {
        let extra = |name: &str| matches!(name, "tx-checksum-ipv4" | "tx-checksum-ipv6");
        changes = changes.into_iter().zip(&off).filter(|(_, name)| !extra(name)).map(|(change, _)| change).collect();
        off.retain(|name| !extra(name));
    }
    if off.is_empty() {
        return Outcome::pass("all that the device offers are on");
    }
    let slow = matches!(view.rate_bps(), Fact::Known(rate) if rate <= NEGLIGIBLE_BPS);
    Outcome::found(Problem {
        severity: slow.then_some(Severity::Minor),
        observed: format!("off: {}", off.join(", ")),
        recommended: "on".into(),
        why: "The CPU cuts data into packets and sums them one by one, which the NIC can do.".into(),
        effect: Effect::measured(
            "One TCP flow: 5.8 Gb/s with TSO, 5.6 Gb/s without; through a congested switch with small buffers at 10 Gb/s TSO off gained 100 to 200 Mb/s, which the deck calls negligible",
            &[&source::TSO_ON_2006, &source::TSO_OFF_2006, &source::TSO_OFF],
        ),
        by_hand: format!("ethtool -k {}", shell_word(&port.name)),
        applicability: Applicability::Safe,
        changes,
    })
}
