use landspeed_model::{Applicability, Change, Fact};

use crate::check::{Outcome, Problem};
use crate::example;
use crate::hardware::{loss_severity, share_text};
use crate::view::View;

declare_check! {
    /// Whether packets were lost between the NIC and the protocol because a processor's backlog was full.
    ///
    /// **Reads** `/proc/net/softnet_stat` (processed, dropped, since boot) and `net.core.netdev_max_backlog`.
    ///
    /// **Matters** only where there were drops: the backlog holds packets that one processor hands to another (RPS,
    /// virtual interfaces, loopback). A NIC's own queue on the usual path does not pass through it.
    ///
    /// **Leave it alone** at zero drops. Guides set 250000 blindly; ESnet lists it among the settings to leave, and a long
    /// backlog adds delay.
    code: "IRQ-013",
    name: "softnet-drops",
    group: Interrupts,
    title: "Drops in the backlog",
    scope: Host,
    severity: Minor,
    since: "0.1",
    sources: [
        "Linux kernel, Documentation/admin-guide/sysctl/net.rst: netdev_max_backlog",
        "Hanford and Tierney (ESnet), Recent Linux TCP Updates, and how to tune your 100G host, 2016: Settings to leave alone",
    ],
    example: {
        good: example::as_is,
        bad: |facts, _| {
            if let Fact::Known(softnet) = &mut facts.softnet {
                softnet.dropped = 180_000;
            }
        },
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let softnet = *known!(view.facts.softnet.as_ref());
    let seen = share_text(softnet.dropped, softnet.processed);
    let Some(severity) = loss_severity(softnet.dropped, softnet.processed) else {
        return Outcome::pass(format!("{} dropped of {} since boot", softnet.dropped, softnet.processed));
    };
    let backlog = view.sysctl_last("net.core.netdev_max_backlog");
    let doubled = backlog.known().map(|now| now.saturating_mul(2).min(i32::MAX as u64));
    let changes: Vec<_> =
        doubled.iter().map(|to| Change::sysctl("net.core.netdev_max_backlog", to.to_string())).collect();
    Outcome::found(Problem {
        severity: Some(severity),
        observed: format!("{seen} packets dropped since boot"),
        recommended: doubled.map_or_else(
            || "a larger net.core.netdev_max_backlog, which belongs to the first network namespace".into(),
            |to| {
                format!("net.core.netdev_max_backlog = {to}, then look whether drops go on; better, spread the load")
            },
        ),
        why: "A processor was handed packets faster than it could take them.".into(),
        effect: "No figure in the sources; each loss slows a long path.".into(),
        by_hand: "cat /proc/net/softnet_stat (second column, hexadecimal, one line for each processor)".into(),
        applicability: if changes.is_empty() { Applicability::DisplayOnly } else { Applicability::Safe },
        changes,
    })
}
