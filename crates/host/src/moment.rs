//! Counters of an interface and of the network stack at one moment, for spans that are not known in advance.

use landspeed_model::{CounterDelta, HostSeries, SoftnetDelta};
use landspeed_netlink::{LINK_STATS_NAMES, LinkId, Netlink, NetlinkError, Qdisc};

use crate::counters::{deltas, qdisc_deltas, read_qdiscs};
use crate::files::Files;
use crate::parse::{Counters, SoftnetRow, paired_lines, softnet_rows};
use crate::unavailable::Unavailable;

/// Qdiscs and standard statistics of an interface.
#[derive(Debug, Clone)]
pub struct InterfaceCounters {
    name: String,
    qdiscs: [Vec<Qdisc>; 2],
    standard: Vec<u64>,
}

impl InterfaceCounters {
    /// Reads the current values, in the network namespace of `netlink`.
    pub fn read(netlink: &mut Netlink, ifindex: u32) -> Result<Self, NetlinkError> {
        let link = netlink.link(LinkId::Index(ifindex))?;
        Ok(Self { name: link.name, qdiscs: read_qdiscs(netlink, ifindex)?, standard: link.stats })
    }

    /// Returns the name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Counters of the network stack of a namespace, over all interfaces.
#[derive(Debug, Clone)]
pub struct StackCounters {
    softnet: Vec<SoftnetRow>,
    snmp: Counters,
    conntrack: Option<u64>,
}

impl StackCounters {
    /// Reads the current values, in the calling thread's network namespace.
    pub fn read(files: &Files) -> Self {
        let text = |path: &str| files.read(path).unwrap_or_default();
        let mut softnet = Vec::new();
        softnet_rows(&text("/proc/thread-self/net/softnet_stat"), &mut softnet);
        let mut snmp = Counters::default();
        paired_lines(&text("/proc/thread-self/net/snmp"), &mut snmp);
        Self { softnet, snmp, conntrack: parse_conntrack_drops(&text("/proc/thread-self/net/stat/nf_conntrack")) }
    }

    /// Returns the number of packets since `before` that conntrack dropped or could not assign to a connection.
    pub fn conntrack_drops_since(&self, before: &Self) -> Option<u64> {
        Some(self.conntrack?.wrapping_sub(before.conntrack?))
    }
}

/// Returns the changes between two moments, as a series without samples over time.
pub fn series_between(
    stack: Option<(&StackCounters, &StackCounters)>,
    interface: Option<(&InterfaceCounters, &InterfaceCounters)>,
) -> HostSeries {
    let mut series = HostSeries::default();
    if let Some((before, now)) = stack {
        series.snmp = now.snmp.moved_since(&before.snmp);
        for row in &now.softnet {
            if let Some(then) = before.softnet.iter().find(|then| then.core == row.core) {
                add(&mut series.softnet, &row.since(*then));
            }
        }
    }
    if let Some((before, now)) = interface {
        let names = LINK_STATS_NAMES.iter().map(|name| format!("rtnl.{name}"));
        let moved: Vec<CounterDelta> = deltas(names, &before.standard, &now.standard);
        series.nic = moved;
        let changes = [0, 1].map(|at| qdisc_deltas(&before.qdiscs[at], &now.qdiscs[at], &mut Unavailable::new()));
        [series.qdiscs, series.classes] = changes;
    }
    series
}

fn add(sum: &mut SoftnetDelta, row: &SoftnetDelta) {
    sum.processed += row.processed;
    sum.dropped += row.dropped;
    sum.time_squeeze += row.time_squeeze;
    sum.received_rps += row.received_rps;
    sum.flow_limit += row.flow_limit;
}

/// Parses the sum of `drop`, `early_drop`, `insert_failed` and `invalid` over all cores: a header, then a row
/// of hexadecimal numbers for each core.
fn parse_conntrack_drops(text: &str) -> Option<u64> {
    const WANTED: [&str; 4] = ["drop", "early_drop", "insert_failed", "invalid"];
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next()?.split_ascii_whitespace().collect();
    let columns: Vec<usize> =
        header.iter().enumerate().filter(|(_, name)| WANTED.contains(name)).map(|(column, _)| column).collect();
    let rows = lines.flat_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let value = |&column: &usize| u64::from_str_radix(words.get(column)?, 16).ok();
        columns.iter().filter_map(value).collect::<Vec<u64>>()
    });
    (!columns.is_empty()).then(|| rows.fold(0, u64::wrapping_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conntracks_columns_are_found_by_name() {
        let text = "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop\n\
                    00000003 00000000 00 00 00000010 0 0 0 0 00000001 00000002 00000004\n\
                    00000003 00000000 00 00 00000001 0 0 0 0 0 0 0\n";
        assert_eq!(parse_conntrack_drops(text), Some(0x10 + 1 + 2 + 4 + 1));
        assert_eq!((parse_conntrack_drops(""), parse_conntrack_drops("a b\n1 2\n")), (None, None));
        assert_eq!(parse_conntrack_drops("drop\nzz\n\n"), Some(0));
    }
}
