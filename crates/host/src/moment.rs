//! Counters of an interface and of the network stack at one moment, for spans that are not known in advance.

use landspeed_model::{CounterDelta, HostSeries, SoftnetDelta};
use landspeed_netlink::{LINK_STATS_NAMES, LinkId, Netlink, NetlinkError, Qdisc};

use crate::counters::{deltas, qdisc_deltas, read_qdiscs};
use crate::files::Files;
use crate::parse::{Counters, SoftnetRow, paired_lines, softnet_rows};

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
    /// Rows of each core, or why they could not be read.
    softnet: Result<Vec<SoftnetRow>, String>,
    /// SNMP counters, or why they could not be read.
    snmp: Result<Counters, String>,
    conntrack: Option<u64>,
}

impl StackCounters {
    /// Reads the current values, in the calling thread's network namespace.
    pub fn read(files: &Files) -> Self {
        let text = |path: &str| files.read(path).map_err(|why| why.to_string());
        let softnet = text("/proc/thread-self/net/softnet_stat").map(|text| {
            let mut rows = Vec::new();
            softnet_rows(&text, &mut rows);
            rows
        });
        let snmp = text("/proc/thread-self/net/snmp").map(|text| {
            let mut counters = Counters::default();
            paired_lines(&text, &mut counters);
            counters
        });
        let conntrack = text("/proc/thread-self/net/stat/nf_conntrack").ok();
        Self { softnet, snmp, conntrack: conntrack.as_deref().and_then(parse_conntrack_drops) }
    }

    /// Returns the number of packets since `before` that conntrack dropped or could not assign to a connection. `None` if
    /// it is unknown, or smaller now: the counters were reset.
    pub fn conntrack_drops_since(&self, before: &Self) -> Option<u64> {
        self.conntrack?.checked_sub(before.conntrack?)
    }
}

/// Returns the changes between two moments, as a series without samples over time. What one of the two could not read
/// is in `unavailable`.
pub fn series_between(
    stack: Option<(&StackCounters, &StackCounters)>,
    interface: Option<(&InterfaceCounters, &InterfaceCounters)>,
) -> HostSeries {
    let mut series = HostSeries::default();
    if let Some((before, now)) = stack {
        match (&before.snmp, &now.snmp) {
            (Ok(before), Ok(now)) => series.snmp = now.moved_since(before),
            (Err(why), _) | (_, Err(why)) => {
                series.unavailable.insert("snmp".into(), why.clone());
            }
        }
        match (&before.softnet, &now.softnet) {
            (Ok(before), Ok(now)) => {
                for row in now {
                    if let Some(then) = before.iter().find(|then| then.core == row.core) {
                        add(&mut series.softnet, &row.since(*then));
                    }
                }
            }
            (Err(why), _) | (_, Err(why)) => {
                series.unavailable.insert("softnet".into(), why.clone());
            }
        }
    }
    if let Some((before, now)) = interface {
        let names = LINK_STATS_NAMES.iter().map(|name| format!("rtnl.{name}"));
        let moved: Vec<CounterDelta> = deltas(names, &before.standard, &now.standard);
        series.nic = moved;
        let missing = &mut series.unavailable;
        let changes = [0, 1].map(|at| qdisc_deltas(&before.qdiscs[at], &now.qdiscs[at], missing));
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

    fn write(root: &std::path::Path, path: &str, text: &str) {
        let path = root.join("proc/thread-self/net").join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }

    #[test]
    fn counters_that_were_not_read_before_have_no_change() {
        let root = tempfile::tempdir().expect("a directory");
        let files = Files::recorded(root.path());
        let unread = StackCounters::read(&files);
        write(root.path(), "snmp", "Tcp: RetransSegs\nTcp: 5000\n");
        write(root.path(), "softnet_stat", "00000010 00000005 00000000\n");
        let now = StackCounters::read(&files);
        for moments in [(&unread, &now), (&now, &unread)] {
            let series = series_between(Some(moments), None);
            assert_eq!((series.snmp.as_slice(), series.softnet), ([].as_slice(), SoftnetDelta::default()));
            let unavailable: Vec<&str> = series.unavailable.keys().map(String::as_str).collect();
            assert_eq!(unavailable, ["snmp", "softnet"]);
        }
        write(root.path(), "snmp", "Tcp: RetransSegs\nTcp: 5003\n");
        let series = series_between(Some((&now, &StackCounters::read(&files))), None);
        assert_eq!((series.snmp[0].delta, series.unavailable.len()), (3, 0));
    }

    #[test]
    fn reset_conntrack_counters_are_unknown() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |drops: &str| {
            write(root.path(), "stat/nf_conntrack", &format!("entries drop\n1 {drops}\n"));
            StackCounters::read(&Files::recorded(root.path()))
        };
        let (before, more, reset) = (at("a"), at("f"), at("2"));
        assert_eq!((more.conntrack_drops_since(&before), reset.conntrack_drops_since(&before)), (Some(5), None));
    }
}
