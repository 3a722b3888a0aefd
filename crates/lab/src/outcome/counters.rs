//! Increases of the counters of ports.

use crate::guest::{GuestReport, PortReport};

/// Increase of a port's counters from the scenario's zero to its end.
pub(crate) struct CounterIncrease {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub tx_bytes: u64,
    /// Packets dropped by the root qdisc, including those dropped by the qdisc inside.
    pub drops: u64,
    /// Packets in the root qdisc at the end, minus those at zero.
    pub queued: i64,
    /// Frames dropped by the device, outside of its qdiscs.
    pub device_drops: u64,
    /// Frames dropped by a filter, as the scenario specifies.
    pub filtered: u64,
    /// Copies of frames made by a link that changes.
    pub copies: u64,
}

/// Returns the increase of a port's counters.
pub(crate) fn counter_increase(report: &GuestReport, node: usize, port: usize) -> CounterIncrease {
    let empty = PortReport::default();
    let at = |counters: &'_ crate::guest::HostCounters| -> PortReport {
        counters.ports.get(node).and_then(|ports| ports.get(port)).unwrap_or(&empty).clone()
    };
    let (before, after) = (at(&report.before), at(&report.after));
    let root = |it: &PortReport| it.qdiscs.iter().find(|q| q.root).cloned().unwrap_or_default();
    let (q0, q1) = (root(&before), root(&after));
    CounterIncrease {
        rx_packets: after.rx_packets - before.rx_packets,
        tx_packets: after.tx_packets - before.tx_packets,
        tx_bytes: after.tx_bytes - before.tx_bytes,
        drops: q1.drops - q0.drops,
        queued: q1.backlog_packets as i64 - q0.backlog_packets as i64,
        device_drops: (after.rx_dropped - before.rx_dropped) + (after.tx_dropped - before.tx_dropped),
        filtered: after.filtered - before.filtered,
        copies: q1.copies - q0.copies,
    }
}
