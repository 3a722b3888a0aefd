use landspeed_model::{Applicability, Severity};

use super::{NO_ROOM, largest};
use crate::check::{Outcome, Problem};
use crate::example;
use crate::hardware::{loss_severity, share_text};
use crate::view::View;

declare_check! {
    /// Whether packets that reached the host were lost in it.
    ///
    /// **Reads** the counters of packets without room (`rx_missed_errors`, `rx_out_of_buffer` and their like) and
    /// `rx_dropped`, against packets received.
    ///
    /// **Matters** because loss inside the receiver looks like loss on the path: ESnet's decks show 0.0046 % bringing a
    /// 10 Gb/s flow down within a few milliseconds of round trip.
    ///
    /// **Leave it alone** while it is less than one in ten million, or where `rx_dropped` only counts frames that nobody
    /// here listens to.
    code: "NIC-014",
    name: "receive-drops",
    group: Interface,
    title: "Packets lost in the receiver",
    scope: Port,
    severity: Minor,
    since: "0.1",
    sources: [
        "Linux kernel, Documentation/networking/statistics.rst: rx_missed_errors, rx_dropped, rx_fifo_errors",
        "Tierney, Pouyoul and Hanford (ESnet), Experiences with 40G Hosts, 2014: throughput with 0.0046 % loss",
        "Linux kernel, Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst: rx_out_of_buffer, rx_discards_phy",
    ],
    example: {
        good: example::as_is,
        bad: |facts, _| {
            example::port(facts).statistics.insert("rx_missed_errors".into(), 230_000);
        },
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let Some(&packets) = port.statistics.get("rx_packets") else {
        return Outcome::unknown("its statistics cannot be read");
    };
    let room = largest(port, NO_ROOM).and_then(|(lost, name)| Some((loss_severity(lost, packets)?, lost, name)));
    // What nobody listens to is dropped here as well: never more than a hint.
    let dropped = largest(port, &["rx_dropped"])
        .and_then(|(lost, name)| loss_severity(lost, packets).map(|_| (Severity::Note, lost, name)));
    let Some((severity, lost, name)) = room.or(dropped) else {
        let most = largest(port, NO_ROOM).map_or(0, |(lost, _)| lost);
        return Outcome::pass(format!("{most} of {packets} since the driver was loaded"));
    };
    let (recommended, why) = if name == "rx_dropped" {
        (
            "find out which: drop reasons with `perf trace -e skb:kfree_skb` or dropwatch",
            "The kernel dropped them, for want of memory or of anybody who listens.",
        )
    } else {
        (
            "none: larger rings (NIC-006), more queues and cores near the NIC, flow control (NIC-012), paced senders",
            "They arrived and found no room: the host empties the NIC too slowly, or bursts are too long.",
        )
    };
    Outcome::found(Problem {
        severity: Some(severity),
        observed: format!("{name} {}, since the driver was loaded", share_text(lost, packets)),
        recommended: recommended.into(),
        why: why.into(),
        effect: "ESnet 2014: 0.0046 % loss cuts a 10 Gb/s flow down as soon as the round trip is more than local."
            .into(),
        by_hand: format!("ip -s -s link show {0}; ethtool -S {0} | grep -iE 'drop|miss|buffer|discard'", port.name),
        applicability: Applicability::DisplayOnly,
        changes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::audit_with;

    #[test]
    fn what_nobody_listened_to_is_only_a_note() {
        // Of five thousand million packets.
        for (name, lost, weight) in [
            ("rx_missed_errors", 499, None),
            ("rx_missed_errors", 500, Some(Severity::Minor)),
            ("rx_out_of_buffer", 50_000, Some(Severity::Major)),
            ("rx_dropped", 50_000, Some(Severity::Note)),
        ] {
            let mut facts = example::facts();
            example::port(&mut facts).statistics.insert(name.into(), lost);
            let audit = audit_with(&facts, &example::goal(), [&CHECK]).expect("audited");
            assert_eq!(audit.findings.first().map(|finding| finding.severity), weight, "{name} {lost}");
        }
    }
}
