//! The running host.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, UNIX_EPOCH};

use landspeed_model::{
    ChannelFacts, CoalescingFacts, DriverFacts, Extent, Fact, FeatureFacts, PauseFacts, RingFacts,
};
use landspeed_netlink::ethtool::{Ethtool, EthtoolError};
use landspeed_netlink::{EthtoolFamily, LINK_STATS_NAMES, Link, LinkId, Netlink, NetlinkError};
use landspeed_sys::{clock, process};

use super::answers::{ClockAnswer, DriverAnswer, InterfaceAnswers, KernelAnswers, LinkAnswer, QdiscAnswer};
use super::{Host, is_absent};
use crate::collect::{SERVICE_NAMES, is_kept_statistic};
use crate::files::Files;

/// Bytes of a device's configuration space with the capabilities read here (PCI Local Bus 3.0, 6.1). The space
/// behind them (serial numbers among others) is not read.
const PCI_CONFIG_BYTES: u64 = 256;
/// `IFF_LOOPBACK` (linux/if.h).
const IFF_LOOPBACK: u32 = 0x8;
/// Maximum number of processes that are examined.
const MAX_PROCESSES: usize = 65_536;

/// The running host, in the network namespace of the calling thread.
#[derive(Debug, Clone)]
pub struct LiveHost {
    files: Files,
}

impl LiveHost {
    /// Creates a host without opening anything.
    pub fn new() -> Self {
        Self { files: Files::live() }
    }
}

impl Default for LiveHost {
    fn default() -> Self {
        Self::new()
    }
}

impl Host for LiveHost {
    fn read(&self, path: &str) -> io::Result<String> {
        Host::read(&self.files, path)
    }

    fn link(&self, path: &str) -> io::Result<String> {
        Host::link(&self.files, path)
    }

    fn names(&self, directory: &str, prefix: &str) -> io::Result<Vec<String>> {
        Host::names(&self.files, directory, prefix)
    }

    fn kernel(&self) -> KernelAnswers {
        let mut answers = KernelAnswers {
            taken: humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(clock::realtime_ns()))
                .to_string(),
            root: process::is_root(),
            // The build's architecture is that of the machine, except for the word size.
            machine: Fact::Known(std::env::consts::ARCH.into()),
            clock: clock::discipline().map_or_else(
                |why| Fact::Unknown(format!("cannot ask how well the clock is kept: {why}")),
                |found| {
                    let estimated_error_us = found.estimated_error_us;
                    Fact::Known(ClockAnswer { synchronised: found.synchronised, estimated_error_us })
                },
            ),
            processes: processes(&self.files),
            dma_latency_us: dma_latency(),
            ..KernelAnswers::default()
        };
        match Netlink::open() {
            Ok(mut netlink) => {
                answers.default_interface = default_interface(&mut netlink);
                answers.links = links(&mut netlink).map_or_else(unknown, Fact::Known);
                answers.qdiscs = qdiscs(&mut netlink).map_or_else(unknown, Fact::Known);
            }
            Err(why) => {
                answers.default_interface = Fact::Unknown(why.to_string());
                answers.links = Fact::Unknown(why.to_string());
                answers.qdiscs = Fact::Unknown(why.to_string());
            }
        }
        answers
    }

    fn interface(&self, name: &str) -> InterfaceAnswers {
        match Ethtool::new(name) {
            Ok(mut ethtool) => ask(name, &mut ethtool),
            Err(why) => InterfaceAnswers { driver: unknown(&why), ..InterfaceAnswers::default() },
        }
    }

    fn pci_config(&self, address: &str) -> Fact<Vec<u8>> {
        let path = format!("/sys/bus/pci/devices/{address}/config");
        let mut bytes = Vec::new();
        match File::open(&path).and_then(|file| file.take(PCI_CONFIG_BYTES).read_to_end(&mut bytes)) {
            Ok(_) => Fact::Known(bytes),
            Err(why) if is_absent(&why) => Fact::Absent(format!("{path} is not there")),
            Err(why) => Fact::Unknown(format!("cannot read {path}: {why}")),
        }
    }
}

fn unknown<T>(why: impl Display) -> Fact<T> {
    Fact::Unknown(why.to_string())
}

/// Converts an ethtool result to a fact: absent if the driver lacks the feature, unknown if it failed to report
/// it.
fn answer<T>(outcome: Result<T, EthtoolError>) -> Fact<T> {
    match outcome {
        Ok(value) => Fact::Known(value),
        Err(why) if why.is_unsupported() => Fact::Absent(why.to_string()),
        Err(why) => unknown(why),
    }
}

fn default_interface(netlink: &mut Netlink) -> Fact<String> {
    // Addresses reserved for documentation (RFC 5737, RFC 3849): only a default route leads there.
    let v6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let targets = [(Ipv4Addr::new(192, 0, 2, 1), 0).into(), (v6, 0).into()];
    let route = targets.into_iter().find_map(|target| netlink.route(target).ok());
    match route.map(|route| netlink.link(LinkId::Index(route.out_ifindex))) {
        Some(Ok(link)) => Fact::Known(link.name),
        Some(Err(why)) => unknown(why),
        None => Fact::Absent("there is no default route".into()),
    }
}

fn links(netlink: &mut Netlink) -> Result<Vec<LinkAnswer>, NetlinkError> {
    let mut links: Vec<_> = netlink.links()?.into_iter().map(link).collect();
    links.sort_by_key(|link| link.index);
    // Without IPv6, or without any address, the links are still reported.
    for address in netlink.addresses().unwrap_or_default() {
        if let Some(link) = links.iter_mut().find(|link| link.index == address.ifindex) {
            link.addresses.push(format!("{}/{}", address.ip, address.prefix_bits));
        }
    }
    Ok(links)
}

fn link(link: Link) -> LinkAnswer {
    // States of RFC 2863, with the names of sysfs.
    let states = ["unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up"];
    let state = link.state.and_then(|state| states.get(usize::from(state))).unwrap_or(&"unknown");
    LinkAnswer {
        index: link.index,
        name: link.name,
        loopback: link.flags & IFF_LOOPBACK != 0,
        kind: link.kind,
        link: link.lower,
        master: link.master,
        mac: link.address.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"),
        state: (*state).into(),
        mtu_bytes: link.mtu_bytes,
        max_mtu_bytes: link.mtu_limits_bytes.1,
        tx_queue_len: link.tx_queue_len,
        gso_max_size_bytes: link.gso_max_size_bytes,
        gro_max_size_bytes: link.gro_max_size_bytes,
        gso_ipv4_max_size_bytes: link.gso_ipv4_max_size_bytes,
        gro_ipv4_max_size_bytes: link.gro_ipv4_max_size_bytes,
        tso_max_size_bytes: link.tso_max_size_bytes,
        xdp: link.xdp,
        addresses: Vec::new(),
        statistics: LINK_STATS_NAMES.iter().map(|name| (*name).to_owned()).zip(link.stats).collect(),
    }
}

fn qdiscs(netlink: &mut Netlink) -> Result<Vec<QdiscAnswer>, NetlinkError> {
    let answer = |qdisc: landspeed_netlink::Qdisc| QdiscAnswer {
        ifindex: qdisc.ifindex,
        kind: qdisc.kind,
        handle: qdisc.handle,
        parent: qdisc.parent,
        max_rate_bytes_per_s: qdisc.max_rate_bytes_per_s,
        drops: qdisc.drops.into(),
    };
    Ok(netlink.all_qdiscs()?.into_iter().map(answer).collect())
}

fn ask(name: &str, ethtool: &mut Ethtool) -> InterfaceAnswers {
    let some = |text: String| (!text.is_empty() && text != "N/A").then_some(text);
    let driver = answer(ethtool.driver()).map(|info| DriverAnswer {
        facts: DriverFacts { name: info.driver, version: some(info.version), firmware: some(info.firmware) },
        bus: info.bus,
    });
    let (speed_bps, full_duplex) = match answer(ethtool.link_mode()) {
        Fact::Known(link) => {
            let none = |what| format!("the link of {name} reports no {what} (it is down, or virtual)");
            (
                link.speed_bps.map_or_else(|| Fact::Absent(none("speed")), Fact::Known),
                link.full_duplex.map_or_else(|| Fact::Absent(none("duplex")), Fact::Known),
            )
        }
        Fact::Absent(why) => (Fact::Absent(why.clone()), Fact::Absent(why)),
        Fact::Unknown(why) => (Fact::Unknown(why.clone()), Fact::Unknown(why)),
    };
    let extent = |(now, max)| Extent { now, max };
    InterfaceAnswers {
        driver,
        speed_bps,
        full_duplex,
        rings: answer(ethtool.rings()).map(|rings| RingFacts { rx: extent(rings.rx), tx: extent(rings.tx) }),
        channels: answer(ethtool.channels()).map(|channels| ChannelFacts {
            rx: extent(channels.rx),
            tx: extent(channels.tx),
            combined: extent(channels.combined),
        }),
        coalescing: coalescing(name, ethtool),
        pause: answer(ethtool.pause()).map(|pause| PauseFacts {
            autonegotiate: pause.autonegotiate,
            rx: pause.rx,
            tx: pause.tx,
        }),
        features: answer(ethtool.features()).map(|features| {
            let kept = features.into_iter().filter(|feature| feature.active || feature.changeable);
            kept.map(|f| (f.name, FeatureFacts { active: f.active, changeable: f.changeable })).collect()
        }),
        rss_table: answer(ethtool.rss_table()),
        statistics: answer(statistics(ethtool)),
    }
}

/// Reads coalescing from the netlink family, which distinguishes 0 from none, if the kernel has it.
fn coalescing(name: &str, ethtool: &mut Ethtool) -> Fact<CoalescingFacts> {
    let outcome = match EthtoolFamily::open() {
        Ok(mut family) => match family.coalescing(name) {
            Ok(found) => Fact::Known(found),
            Err(why) if why.is_unsupported() => {
                Fact::Absent(format!("the driver of {name} offers no interrupt coalescing"))
            }
            Err(why) => unknown(why),
        },
        Err(_) => answer(ethtool.coalescing()),
    };
    outcome.map(|found| CoalescingFacts {
        adaptive_rx: found.adaptive_rx,
        adaptive_tx: found.adaptive_tx,
        rx_us: found.rx_us,
        rx_frames: found.rx_frames,
        tx_us: found.tx_us,
        tx_frames: found.tx_frames,
    })
}

fn statistics(ethtool: &mut Ethtool) -> Result<BTreeMap<String, u64>, EthtoolError> {
    let names = ethtool.statistics_names()?;
    let values = ethtool.statistics(names.len())?;
    Ok(names.into_iter().zip(values).filter(|(name, value)| is_kept_statistic(name, *value)).collect())
}

/// Returns which of `names` are running. In a PID namespace, or with a `/proc` that hides other users'
/// processes, a missing process is no proof that it does not run.
fn processes(files: &Files) -> Fact<Vec<String>> {
    let pids = match files.names_with_prefix("/proc", "") {
        Ok(names) => names,
        Err(why) => return Fact::Unknown(format!("cannot list /proc: {why}")),
    };
    let pids = pids.into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).take(MAX_PROCESSES);
    let mut found: Vec<_> = pids
        .filter_map(|pid| files.word(&format!("/proc/{pid}/comm")).ok())
        .filter(|name| SERVICE_NAMES.iter().any(|(_, comm)| comm == name))
        .collect();
    found.sort_unstable();
    found.dedup();
    Fact::Known(found)
}

/// Returns the smallest latency limit that programs have set to keep CPUs out of deep C-states: they keep this
/// file open, and a read returns the smallest limit (`Documentation/power/pm_qos_interface.rst`).
fn dma_latency() -> Fact<u32> {
    const PATH: &str = "/dev/cpu_dma_latency";
    /// `PM_QOS_CPU_LATENCY_DEFAULT_VALUE`: no limit.
    const NO_LIMIT_US: i32 = 2_000_000_000;
    let mut bytes = [0; 4];
    match File::open(PATH).and_then(|mut file| file.read_exact(&mut bytes)) {
        Ok(()) => match i32::from_ne_bytes(bytes) {
            NO_LIMIT_US => Fact::Absent(format!("no process limits the latency through {PATH}")),
            us => u32::try_from(us).map_or_else(|_| unknown(format!("{PATH} says {us}")), Fact::Known),
        },
        Err(why) if is_absent(&why) => Fact::Absent(format!("{PATH} is not there")),
        Err(why) => unknown(format!("cannot read {PATH}: {why}")),
    }
}
