use super::{NO_BUFFER_COUNTERS, largest};
use crate::hardware::{loss_severity, loss_text};
use crate::prelude::*;

declare_check! {
    /// Whether the host dropped received packets.
    ///
    /// **Reads** the counters of packets without a free buffer (`rx_missed_errors`, `rx_out_of_buffer` and
    /// similar ones) and `rx_dropped`, against packets received.
    ///
    /// **Matters** because loss inside the receiver looks like loss on the path: the decks of 2014 to 2016 plot throughput
    /// over growing RTTs with 0.0046 % loss and call the difference huge.
    ///
    /// **Leave it alone** while it is less than one in ten million, or where `rx_dropped` only counts frames
    /// without a listener on this host.
    code: "NIC-014",
    title: "Packets dropped by the receiver host",
    scope: Port,
    severity: Minor,
    sources: [
        "Linux kernel, Documentation/networking/statistics.rst: rx_missed_errors, rx_dropped, rx_fifo_errors",
        esnet_2014!("A small amount of packet loss makes a huge difference in TCP performance"),
        "Linux kernel, Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst: rx_out_of_buffer, rx_discards_phy",
    ],
    bad: |facts, _| {
        example::port(facts).statistics.insert("rx_missed_errors".into(), 230_000);
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    let Some(&packets) = port.statistics.get("rx_packets") else {
        return Outcome::unknown("its statistics cannot be read");
    };
    let room =
        largest(port, NO_BUFFER_COUNTERS).and_then(|(lost, name)| Some((loss_severity(lost, packets)?, lost, name)));
    // Frames without a listener are counted here as well: report at most a note.
    let dropped = largest(port, &["rx_dropped"])
        .and_then(|(lost, name)| loss_severity(lost, packets).map(|_| (Severity::Note, lost, name)));
    let Some((severity, lost, name)) = room.or(dropped) else {
        let most = largest(port, NO_BUFFER_COUNTERS).map_or(0, |(lost, _)| lost);
        return Outcome::pass(format!("{most} of {packets} since the driver was loaded"));
    };
    let (recommended, why) = if name == "rx_dropped" {
        (
            "find out which: drop reasons with `perf trace -e skb:kfree_skb` or dropwatch",
            "The kernel dropped them, for lack of memory or of anybody who listens.",
        )
    } else {
        (
            "none: larger rings (NIC-006), more queues and cores near the NIC, flow control (NIC-012), paced senders",
            "They arrived and found no room: the host empties the NIC too slowly, or bursts are too long.",
        )
    };
    Outcome::found(Problem {
        severity: Some(severity),
        observed: format!("{name} {}, since the driver was loaded", loss_text(lost, packets)),
        recommended: recommended.into(),
        why: why.into(),
        effect: Effect::measured(
            "The deck calls the effect of 0.0046 % packet loss huge; its graph has no figures",
            &[&source::LOSS_2014],
        ),
        by_hand: format!(
            "ip -s -s link show {0}; ethtool -S {0} | grep -iE 'drop|miss|buffer|discard'",
            shell_word(&port.name)
        ),
        ..Problem::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_without_a_listener_are_only_a_note() {
        // Of five billion packets.
        for (name, lost, weight) in [
            ("rx_missed_errors", 499, None),
            ("rx_missed_errors", 501, Some(Severity::Minor)),
            ("rx_out_of_buffer", 50_001, Some(Severity::Major)),
            ("rx_dropped", 50_000, Some(Severity::Note)),
        ] {
            let mut facts = example::facts();
            example::port(&mut facts).statistics.insert(name.into(), lost);
            let audit = CHECK.audit_alone(&facts, &example::goal());
            assert_eq!(audit.findings.first().map(|finding| finding.severity), weight, "{name} {lost}");
        }
    }
}
