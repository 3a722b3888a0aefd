//! Counters read before and after a test.

use std::collections::BTreeMap;

use landspeed_model::{CounterDelta, HostSeries, PressureDeltas, QdiscDelta};
use landspeed_netlink::ethtool::Ethtool;
use landspeed_netlink::{LINK_STATS_NAMES, LinkId, Netlink, NetlinkError, Qdisc};

use crate::files::{Files, KeptFile};
use crate::parse::{Counters, named_values, paired_lines, pressure_total_us, tcp_memory_pages};
use crate::unavailable::{Unavailable, ok_or_note};

/// Parses a file's text into counters.
type Parser = fn(&str, &mut Counters);

/// SNMP files, by the name under which their absence is reported.
const SNMP: [(&str, &str, Parser); 3] = [
    ("snmp", "/proc/thread-self/net/snmp", paired_lines),
    ("netstat", "/proc/thread-self/net/netstat", paired_lines),
    ("snmp6", "/proc/thread-self/net/snmp6", named_values),
];

/// Kernel connections and first readings of one interface.
struct Interface {
    index: u32,
    /// Hardware address.
    address: Vec<u8>,
    netlink: Netlink,
    ethtool: Option<Ethtool>,
    names: Vec<String>,
    /// Driver statistics before the test; empty if the driver has none.
    statistics: Vec<u64>,
    /// Standard statistics before the test.
    standard: Vec<u64>,
    /// Qdiscs before the test; `None` if they could not be read.
    qdiscs: Option<[Vec<Qdisc>; 2]>,
}

/// Readings before the test, to be repeated after it.
pub(crate) struct InitialReadings {
    files: Files,
    /// Opened before the test, so that they remain those of its network namespace.
    snmp: Vec<(&'static str, KeptFile, Parser, Counters)>,
    interface: Option<Interface>,
    pressure: Option<PressureDeltas>,
}

impl InitialReadings {
    pub(crate) fn read(files: &Files, nic: Option<&str>, missing: &mut Unavailable) -> Self {
        let mut buffer = Vec::new();
        let mut snmp = Vec::new();
        for (what, path, parse) in SNMP {
            let Some(kept) = ok_or_note(missing, what, files.open_kept(path)) else { continue };
            if let Some(counters) = ok_or_note(missing, what, read_counters(&kept, parse, &mut buffer)) {
                snmp.push((what, kept, parse, counters));
            }
        }
        let interface = match nic {
            None => {
                missing.insert("nic".into(), "no interface named".into());
                None
            }
            Some(_) if !files.is_live() => {
                missing.insert("nic".into(), "a recorded tree has no kernel to ask".into());
                None
            }
            Some(nic) => Interface::open(nic, missing),
        };
        let pressure = ok_or_note(missing, "pressure", pressure(files));
        Self { files: files.clone(), snmp, interface, pressure }
    }

    /// Returns index and hardware address of the interface, if the kernel has it.
    pub(crate) fn interface(&self) -> Option<(u32, &[u8])> {
        self.interface.as_ref().map(|interface| (interface.index, interface.address.as_slice()))
    }

    /// Reads everything again and writes the changes into `series`.
    pub(crate) fn finish(self, series: &mut HostSeries) {
        let missing = &mut series.unavailable;
        let mut buffer = Vec::new();
        for (what, kept, parse, before) in &self.snmp {
            if let Some(now) = ok_or_note(missing, what, read_counters(kept, *parse, &mut buffer)) {
                series.snmp.extend(now.moved_since(before));
            }
        }
        if let Some(interface) = self.interface {
            (series.nic, [series.qdiscs, series.classes]) = interface.finish(missing);
        }
        if let Some(before) = self.pressure {
            series.pressure = ok_or_note(missing, "pressure", pressure(&self.files)).map(|now| PressureDeltas {
                cpu_some_us: now.cpu_some_us.saturating_sub(before.cpu_some_us),
                memory_some_us: now.memory_some_us.saturating_sub(before.memory_some_us),
            });
        }
        series.tcp_mem_used_ratio = ok_or_note(missing, "tcp_mem_used_ratio", tcp_memory_ratio(&self.files));
    }
}

fn read_counters(kept: &KeptFile, parse: Parser, buffer: &mut Vec<u8>) -> Result<Counters, crate::FileError> {
    kept.read_into(buffer)?;
    let mut counters = Counters::default();
    parse(&String::from_utf8_lossy(buffer), &mut counters);
    Ok(counters)
}

/// Returns the pressure stall time since boot.
fn pressure(files: &Files) -> Result<PressureDeltas, String> {
    let total = |resource: &str| -> Result<u64, String> {
        let path = format!("/proc/pressure/{resource}");
        let text =
            files.read(&path).map_err(|error| format!("{error} (the kernel needs CONFIG_PSI, booted with psi=1)"))?;
        pressure_total_us(&text).ok_or_else(|| format!("{path} has no total"))
    };
    Ok(PressureDeltas { cpu_some_us: total("cpu")?, memory_some_us: total("memory")? })
}

/// Returns the TCP memory in use divided by the pressure threshold, the second figure of `tcp_mem`.
fn tcp_memory_ratio(files: &Files) -> Result<f64, String> {
    let sockstat = files.read("/proc/thread-self/net/sockstat").map_err(|e| e.to_string())?;
    let used = tcp_memory_pages(&sockstat).ok_or("sockstat has no TCP memory")?;
    // Exists only in the initial network namespace, although it counts memory of all namespaces.
    let limits = files.read("/proc/sys/net/ipv4/tcp_mem").map_err(|e| e.to_string())?;
    let pressure = limits.split_ascii_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
    let pressure = pressure.filter(|&pages| pages > 0).ok_or("tcp_mem is not three numbers")?;
    Ok(used as f64 / pressure as f64)
}

impl Interface {
    fn open(nic: &str, missing: &mut Unavailable) -> Option<Self> {
        let mut netlink = ok_or_note(missing, "nic", Netlink::open())?;
        let link = ok_or_note(missing, "nic", netlink.link(LinkId::Name(nic)))?;
        let qdiscs = ok_or_note(missing, "qdiscs", read_qdiscs(&mut netlink, link.index));
        let mut interface = Self {
            index: link.index,
            address: link.address,
            netlink,
            ethtool: ok_or_note(missing, "nic.statistics", Ethtool::new(nic)),
            names: Vec::new(),
            statistics: Vec::new(),
            standard: link.stats,
            qdiscs,
        };
        if let Some(ethtool) = &mut interface.ethtool {
            let read = ethtool.statistics_names().and_then(|names| Ok((ethtool.statistics(names.len())?, names)));
            (interface.statistics, interface.names) = ok_or_note(missing, "nic.statistics", read).unwrap_or_default();
        }
        Some(interface)
    }

    fn finish(mut self, missing: &mut Unavailable) -> (Vec<CounterDelta>, [Vec<QdiscDelta>; 2]) {
        let mut moved = Vec::new();
        if let Some(link) = ok_or_note(missing, "nic", self.netlink.link(LinkId::Index(self.index))) {
            let names = LINK_STATS_NAMES.iter().map(|name| format!("rtnl.{name}"));
            moved.extend(deltas(names, &self.standard, &link.stats));
        }
        if let Some(ethtool) = self.ethtool.as_mut().filter(|_| !self.names.is_empty())
            && let Some(now) = ok_or_note(missing, "nic.statistics", ethtool.statistics(self.names.len()))
        {
            moved.extend(deltas(self.names.into_iter(), &self.statistics, &now));
        }
        let mut qdiscs = [Vec::new(), Vec::new()];
        if let Some(before) = &self.qdiscs
            && let Some(now) = ok_or_note(missing, "qdiscs", read_qdiscs(&mut self.netlink, self.index))
        {
            qdiscs = [0, 1].map(|at| qdisc_deltas(&before[at], &now[at], missing));
        }
        (moved, qdiscs)
    }
}

/// Reads the queueing disciplines of an interface, and those of their classes that have a rate.
pub(crate) fn read_qdiscs(netlink: &mut Netlink, index: u32) -> Result<[Vec<Qdisc>; 2], NetlinkError> {
    let mut classes = netlink.classes(index)?;
    classes.retain(|class| class.shaped_bytes_per_s.is_some());
    Ok([netlink.qdiscs(index)?, classes])
}

/// Returns the counters that changed. A driver's gauge may fall; a counter of less than 64 bits that wrapped
/// appears as a fall too.
pub(crate) fn deltas(names: impl Iterator<Item = String>, before: &[u64], now: &[u64]) -> Vec<CounterDelta> {
    names
        .zip(before.iter().zip(now))
        .filter(|(_, (before, now))| before != now)
        .map(|(name, (before, now))| CounterDelta { name, delta: now.wrapping_sub(*before) as i64 })
        .collect()
}

/// Returns the changes of every current qdisc, by handle and parent. A qdisc that is new, or whose byte count
/// fell, was created during the test and counts from zero.
pub(crate) fn qdisc_deltas(before: &[Qdisc], now: &[Qdisc], missing: &mut Unavailable) -> Vec<QdiscDelta> {
    let key = |qdisc: &Qdisc| (qdisc.handle, qdisc.parent, qdisc.kind.clone());
    let known: BTreeMap<_, _> = before.iter().map(|qdisc| (key(qdisc), qdisc)).collect();
    let new = Qdisc::default();
    let mut replaced = 0;
    let mut delta = |qdisc: &Qdisc| {
        let then = known.get(&key(qdisc)).copied().filter(|then| then.bytes <= qdisc.bytes).unwrap_or_else(|| {
            replaced += 1;
            &new
        });
        let packets = qdisc.packets.wrapping_sub(then.packets);
        QdiscDelta {
            kind: qdisc.kind.clone(),
            handle: qdisc.handle_text(),
            parent: qdisc.parent_text(),
            bytes: qdisc.bytes - then.bytes,
            packets: if qdisc.packets_wrap { packets & u64::from(u32::MAX) } else { packets },
            drops: qdisc.drops.wrapping_sub(then.drops).into(),
            overlimits: qdisc.overlimits.wrapping_sub(then.overlimits).into(),
            requeues: qdisc.requeues.wrapping_sub(then.requeues).into(),
            backlog_bytes: qdisc.backlog_bytes.into(),
            shaped_bps: qdisc.shaped_bytes_per_s.map(|rate| rate.saturating_mul(8)),
        }
    };
    let deltas = now.iter().map(&mut delta).collect();
    let gone = before.iter().filter(|qdisc| !now.iter().any(|other| key(other) == key(qdisc))).count();
    if replaced + gone > 0 {
        let why = format!("{replaced} made and {gone} removed during the test: the counts of those removed are lost");
        missing.insert("qdiscs.replaced".into(), why);
    }
    deltas
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qdisc(handle: u32, bytes: u64, packets: u64, drops: u32) -> Qdisc {
        let parent = Qdisc::ROOT;
        Qdisc { kind: "fq".into(), handle, parent, bytes, packets, drops, packets_wrap: true, ..Qdisc::default() }
    }

    #[test]
    fn narrow_qdisc_counters_wrap_and_replaced_qdiscs_restart() {
        let mut missing = Unavailable::new();
        let before = [qdisc(0x8001_0000, 1000, 0xffff_fff0, u32::MAX), qdisc(0x8002_0000, 5000, 50, 5)];
        let now = [qdisc(0x8001_0000, 9000, 0x10, 1), qdisc(0x8002_0000, 100, 1, 0)];
        let deltas = qdisc_deltas(&before, &now, &mut missing);
        assert_eq!((deltas[0].bytes, deltas[0].packets, deltas[0].drops), (8000, 0x20, 2));
        assert_eq!((deltas[1].bytes, deltas[1].packets, deltas[1].drops), (100, 1, 0));
        assert_eq!((deltas[0].handle.as_str(), deltas[0].parent.as_str()), ("8001:", "root"));
        assert!(missing["qdiscs.replaced"].starts_with("1 made"), "{missing:?}");
    }

    #[test]
    fn unchanged_counters_are_not_reported() {
        let names = ["a", "b", "c"].map(String::from);
        let moved = deltas(names.into_iter(), &[1, 5, 7], &[1, 9, 4]);
        assert_eq!(moved.iter().map(|d| (d.name.as_str(), d.delta)).collect::<Vec<_>>(), [("b", 4), ("c", -3)]);
    }
}
