use super::disabled_offloads;
use crate::prelude::*;

declare_check! {
    /// Whether receive checksum offload and GRO are on.
    ///
    /// **Reads** the offloads `rx-checksum` and `rx-gro`.
    ///
    /// **Matters** because generic receive offload (GRO) turns dozens of packets into one before the protocol
    /// sees them; the receiver limits most fast flows. Without checksums from the NIC the kernel reads every
    /// byte once more.
    ///
    /// **Leave it alone** while capturing packets as they are on the wire. Unlike LRO, GRO is exactly
    /// reversible and safe for routers.
    code: "NIC-008",
    title: "Receive offloads",
    scope: Port,
    severity: Minor,
    sources: [
        "Linux kernel, Documentation/networking/segmentation-offloads.rst: Generic Receive Offload",
        esnet_2016!("Settings to leave alone in CentOS7"),
        tokyo_2006!("Linux 2.6.12 IPv6 Xeon Performance"),
    ],
    bad: |facts, _| example::feature(facts, "rx-gro", false),
}

/// Rate below which one CPU manages without these offloads, bits/s.
const SLOW_LINK_BPS: u64 = 10_000_000_000;

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let features = known!(port.features.as_ref());
    if features.is_empty() {
        return Outcome::unknown("its offloads cannot be read");
    }
    let (off, changes) = disabled_offloads(port, features, &["rx-checksum", "rx-gro"]);
    if off.is_empty() {
        return Outcome::pass("all that the device offers are on");
    }
    let slow = matches!(view.rate_bps(), Fact::Known(rate) if rate < SLOW_LINK_BPS);
    Outcome::found(Problem {
        severity: slow.then_some(Severity::Minor),
        observed: format!("off: {}", off.join(", ")),
        recommended: "on".into(),
        why: "The receiver handles each packet by itself, and the receiver is where most fast flows end.".into(),
        effect: Effect::measured(
            "Without checksum offload the summing functions took 36.5 % of an IPv6 receiver's profile (23.7 and 12.9 %)",
            &[&source::CHECKSUM_PROFILE],
        ),
        by_hand: format!("ethtool -k {} | grep -E 'rx-checksumming|generic-receive'", shell_word(&port.name)),
        applicability: Applicability::Safe,
        changes,
    })
}
