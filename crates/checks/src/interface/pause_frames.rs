use super::largest;
use crate::prelude::*;

declare_check! {
    /// Rate of pause frames, and the side that sent them.
    ///
    /// **Reads** the driver's counters of pause frames received and sent.
    ///
    /// **Matters** because pauses are invisible to TCP: a sender that is often stopped looks slow for no
    /// reason. Frames received mean that the switch or the remote host could not keep up; frames sent mean that
    /// this host could not.
    ///
    /// **Leave it alone** while they are rare: occasional pauses are normal.
    code: "NIC-013",
    title: "Pause frame rate",
    scope: Port,
    severity: Minor,
    sources: [
        "IEEE 802.3, Annex 31B: a pause lasts up to 65535 times 512 bit times",
        "Linux kernel, Documentation/networking/statistics.rst: IEEE 802.3 flow control statistics",
        red_hat_2012!("Tuning – checking ethtool -S eth4"),
    ],
    good: |facts, _| {
        example::port(facts).statistics.insert("rx_pause_ctrl_phy".into(), 12);
    },
    bad: |facts, _| {
        example::port(facts).statistics.insert("rx_pause_ctrl_phy".into(), 40_000_000);
    },
}

/// Drivers' counters of pause frames received and sent (mlx5, ixgbe and igb, i40e and ice, bnxt, sfc).
const RECEIVED_PAUSE_COUNTERS: &[&str] = &[
    "rx_pause_ctrl_phy",
    "rx_global_pause",
    "rx_flow_control_xoff",
    "link_xoff_rx.nic",
    "port.link_xoff_rx",
    "rx_pause_frames",
    "port_rx_pause",
    "rx_pause",
];
const SENT_PAUSE_COUNTERS: &[&str] = &[
    "tx_pause_ctrl_phy",
    "tx_global_pause",
    "tx_flow_control_xoff",
    "link_xoff_tx.nic",
    "port.link_xoff_tx",
    "tx_pause_frames",
    "port_tx_pause",
    "tx_pause",
];

/// Pause frames per packet in the direction they stop from which they are reported: at 100 Gb/s and 9000 bytes,
/// one in a thousand is over a thousand pauses per second at full rate.
const MIN_PAUSE_RATIO: f64 = 1e-3;

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let packets = |name: &str| port.statistics.get(name).copied().unwrap_or(0);
    let (received, sent) = (largest(port, RECEIVED_PAUSE_COUNTERS), largest(port, SENT_PAUSE_COUNTERS));
    if received.is_none() && sent.is_none() {
        return Outcome::not_applicable("the driver does not count pause frames");
    }
    let many = |count: u64, of: u64| of > 0 && count as f64 >= of as f64 * MIN_PAUSE_RATIO;
    let stopped = received.filter(|(count, _)| many(*count, packets("tx_packets")));
    let stopping = sent.filter(|(count, _)| many(*count, packets("rx_packets")));
    let (observed, recommended, why) = match (stopped, stopping) {
        (None, None) => {
            let text =
                |counter: Option<(u64, &str)>| counter.map_or_else(|| "uncounted".into(), |(n, _)| n.to_string());
            return Outcome::pass(format!("received {}, sent {}", text(received), text(sent)));
        }
        (Some((count, name)), _) => (
            format!("{name} {count} for {} packets sent", packets("tx_packets")),
            "a sender that is paced to what the receiver takes; look at the switch's port and at the receiver",
            "The switch or the far host stopped this one: it cannot keep up with what is sent.",
        ),
        (None, Some((count, name))) => (
            format!("{name} {count} for {} packets received", packets("rx_packets")),
            "a host that empties its rings faster: interrupts, cores, PCIe; or senders that are paced",
            "This host stopped the other side: it cannot keep up with what arrives.",
        ),
    };
    Outcome::found(Problem {
        observed: format!("{observed}, since the driver was loaded"),
        recommended: recommended.into(),
        why: why.into(),
        effect: Effect::arithmetic(
            "Each pause frame stops the link for up to 65535 × 512 bit times: 335 µs at 100 Gb/s (IEEE 802.3, Annex 31B).",
        ),
        by_hand: format!("ethtool -S {} | grep -iE 'pause|xoff'", shell_word(&port.name)),
        ..Problem::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_direction_is_named_and_few_pauses_pass() {
        for (name, count, says) in [
            ("rx_pause_ctrl_phy", 4_999_999, None),
            ("rx_pause_ctrl_phy", 5_000_000, Some("The switch or the far host stopped this one")),
            ("tx_pause_ctrl_phy", 5_000_000, Some("This host stopped the other side")),
        ] {
            let mut facts = example::facts();
            example::port(&mut facts).statistics.insert(name.into(), count);
            let audit = CHECK.audit_alone(&facts, &example::goal());
            let why = audit.findings.first().map(|finding| finding.why.as_str());
            match says {
                None => assert_eq!(why, None, "{name} {count}"),
                Some(begins) => assert!(why.is_some_and(|why| why.starts_with(begins)), "{name} {count}: {why:?}"),
            }
        }
    }
}
