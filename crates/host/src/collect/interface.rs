//! The network interfaces.

use std::collections::BTreeMap;

use landspeed_model::{Fact, InterfaceFacts, QdiscFacts, QueueFacts, RssFacts};

use super::pci;
use crate::host::{FactReader, InterfaceAnswers, KernelAnswers, LinkAnswer, QdiscAnswer};

const NET: &str = "/sys/class/net";
/// `TC_H_ROOT` (linux/pkt_sched.h).
const ROOT: u32 = 0xffff_ffff;
/// `TC_H_INGRESS`, the parent of `ingress` and `clsact`.
const INGRESS: u32 = 0xffff_fff1;
/// Kinds of links whose `IFLA_LINK` is the link below them. For a veth it is the peer, for a tunnel the
/// outgoing interface.
const STACKED_KINDS: [&str; 8] = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec", "dsa", "qmimux"];

/// Returns all interfaces of the namespace except the loopback.
pub(super) fn all(look: FactReader<'_>, answers: &KernelAnswers) -> Vec<InterfaceFacts> {
    let links = answers.links.known().map_or(&[][..], Vec::as_slice);
    let real = links.iter().filter(|link| !link.loopback && !link.name.is_empty());
    real.map(|link| interface(look, link, links, &answers.qdiscs)).collect()
}

fn interface(
    look: FactReader<'_>,
    link: &LinkAnswer,
    links: &[LinkAnswer],
    qdiscs: &Fact<Vec<QdiscAnswer>>,
) -> InterfaceFacts {
    let answers = look.0.interface(&link.name);
    let files = Files::of(look, link);
    let name_of = |index: u32| links.iter().find(|other| other.index == index).map(|other| other.name.clone());
    let bus = answers.driver.known().map(|driver| driver.bus.as_str()).filter(|bus| pci::is_address(bus));
    let address = files.address(look).or_else(|| bus.map(str::to_owned));
    let missing = |what: &str| {
        format!("the kernel reports no {what} of {} (an older kernel, or another kind of device)", link.name)
    };
    let reported = |value: Option<u32>, what: &str| value.map_or_else(|| Fact::Absent(missing(what)), Fact::Known);
    InterfaceFacts {
        name: link.name.clone(),
        ifindex: link.index,
        kind: link.kind.clone(),
        lower: lower(link, links),
        master: link.master.and_then(name_of),
        mac: link.mac.clone(),
        addresses: link.addresses.clone(),
        state: link.state.clone(),
        mtu_bytes: link.mtu_bytes,
        max_mtu_bytes: match link.max_mtu_bytes {
            Some(0) => Fact::Absent(format!("the driver of {} names no limit", link.name)),
            other => reported(other, "largest MTU"),
        },
        gso_max_size_bytes: reported(link.gso_max_size_bytes, "gso_max_size"),
        gro_max_size_bytes: reported(link.gro_max_size_bytes, "gro_max_size"),
        gso_ipv4_max_size_bytes: reported(link.gso_ipv4_max_size_bytes, "gso_ipv4_max_size"),
        gro_ipv4_max_size_bytes: reported(link.gro_ipv4_max_size_bytes, "gro_ipv4_max_size"),
        tso_max_size_bytes: reported(link.tso_max_size_bytes, "tso_max_size"),
        tx_queue_len: reported(link.tx_queue_len, "txqueuelen"),
        xdp: link.xdp.map_or_else(|| Fact::Unknown(missing("XDP state")), Fact::Known),
        qdiscs: qdiscs.as_ref().map(|all| tree(all, link.index)),
        pci: match &address {
            Some(address) => Fact::Known(pci::device(look, address)),
            None => files.no_device(),
        },
        virtual_functions: match &address {
            Some(address) => pci::virtual_functions(look, address),
            None => files.no_device(),
        },
        tx_queues: files.count(look, "tx-"),
        rx_queues: files.count(look, "rx-"),
        queues: files.queues(look),
        interrupts: address.map(|address| interrupts(look, &address)).unwrap_or_default(),
        gro_flush_timeout_ns: files.number(look, "gro_flush_timeout"),
        napi_defer_hard_irqs: files.number(look, "napi_defer_hard_irqs"),
        threaded_napi: files.number::<u32>(look, "threaded").map(|mode| mode != 0),
        rss: rss(&answers),
        statistics: statistics(link, &answers),
        driver: answers.driver.map(|driver| driver.facts),
        speed_bps: speed(answers.speed_bps, files.number::<i64>(look, "speed")),
        full_duplex: answers.full_duplex,
        rings: answers.rings,
        channels: answers.channels,
        coalescing: answers.coalescing,
        pause: answers.pause,
        features: answers.features,
    }
}

/// Files of an interface. `/sys` shows the network namespace it was mounted in; if that is another one, there
/// are none.
struct Files {
    directory: Fact<String>,
    virtual_device: bool,
}

impl Files {
    fn of(look: FactReader<'_>, link: &LinkAnswer) -> Self {
        let directory = format!("{NET}/{}", link.name);
        let index = look.number_fact::<u32>(&format!("{directory}/ifindex"));
        let mac = look.word(&format!("{directory}/address")).unwrap_or_default();
        let directory = match index {
            Fact::Known(index) if index == link.index && mac.eq_ignore_ascii_case(&link.mac) => {
                Fact::Known(directory)
            }
            Fact::Known(_) | Fact::Absent(_) => Fact::Unknown(format!(
                "/sys shows another network namespace than {} is in (mount it anew there, as `ip netns exec` does)",
                link.name
            )),
            Fact::Unknown(why) => Fact::Unknown(why),
        };
        let target = directory.known().and_then(|directory| look.0.link(directory).ok()).unwrap_or_default();
        Self { directory, virtual_device: link.kind.is_some() || target.contains("/devices/virtual/") }
    }

    /// Returns the PCI address in the path of the interface's device.
    fn address(&self, look: FactReader<'_>) -> Option<String> {
        let target = look.0.link(self.directory.known()?).ok()?;
        pci::address_in(&target).map(str::to_owned)
    }

    fn no_device<T>(&self) -> Fact<T> {
        match &self.directory {
            _ if self.virtual_device => Fact::Absent("a virtual interface, on no device".into()),
            Fact::Unknown(why) => Fact::Unknown(why.clone()),
            _ => Fact::Absent("not on a PCI bus".into()),
        }
    }

    fn number<T: std::str::FromStr>(&self, look: FactReader<'_>, file: &str) -> Fact<T> {
        match &self.directory {
            Fact::Known(directory) => look.number_fact(&format!("{directory}/{file}")),
            Fact::Absent(why) => Fact::Absent(why.clone()),
            Fact::Unknown(why) => Fact::Unknown(why.clone()),
        }
    }

    fn count(&self, look: FactReader<'_>, prefix: &str) -> Fact<u32> {
        self.directory.as_ref().map(|directory| look.numbered(&format!("{directory}/queues"), prefix).len() as u32)
    }

    fn queues(&self, look: FactReader<'_>) -> Fact<Vec<QueueFacts>> {
        self.directory.as_ref().map(|directory| {
            let names = ["rx-", "tx-"].map(|prefix| look.numbered(&format!("{directory}/queues"), prefix));
            let queue = |name: String| {
                let word = |file: &str| look.word(&format!("{directory}/queues/{name}/{file}")).ok();
                let receive = name.starts_with("rx-");
                QueueFacts {
                    rps_cpus: receive.then(|| word("rps_cpus")).flatten(),
                    rps_flow_count: receive.then(|| word("rps_flow_cnt")).flatten().and_then(|n| n.parse().ok()),
                    // ENOENT where the driver has a single queue (net/core/net-sysfs.c).
                    xps_cpus: (!receive).then(|| word("xps_cpus")).flatten(),
                    name,
                }
            };
            names.into_iter().flat_map(BTreeMap::into_values).map(queue).collect()
        })
    }
}

/// Returns the ports of a bond or bridge, or the device of a VLAN.
fn lower(link: &LinkAnswer, links: &[LinkAnswer]) -> Vec<String> {
    let ports = links.iter().filter(|other| other.master == Some(link.index));
    let stacked = link.kind.as_deref().is_some_and(|kind| STACKED_KINDS.contains(&kind));
    let below = links.iter().filter(|other| stacked && link.link == Some(other.index));
    ports.chain(below).map(|other| other.name.clone()).collect()
}

/// Returns the message-signalled interrupts; for a virtio device, those of the PCI device it is on.
fn interrupts(look: FactReader<'_>, address: &str) -> Vec<u32> {
    look.numbered(&format!("/sys/bus/pci/devices/{address}/msi_irqs"), "").into_keys().collect()
}

/// Returns ethtool's speed, else that of sysfs (for a bond, the sum of its ports).
fn speed(asked: Fact<u64>, megabits: Fact<i64>) -> Fact<u64> {
    match (asked, megabits) {
        (Fact::Known(bps), _) => Fact::Known(bps),
        (_, Fact::Known(mbps)) if mbps > 0 => Fact::Known((mbps as u64).saturating_mul(1_000_000)),
        (asked, _) => asked,
    }
}

fn rss(answers: &InterfaceAnswers) -> Fact<RssFacts> {
    answers.rss_table.as_ref().map(|table| {
        let mut queues = table.clone();
        queues.sort_unstable();
        queues.dedup();
        RssFacts { entries: table.len() as u32, queues }
    })
}

/// Merges the kernel's counters and the driver's; for equal names the kernel's are kept.
fn statistics(link: &LinkAnswer, answers: &InterfaceAnswers) -> BTreeMap<String, u64> {
    let mut all = answers.statistics.known().cloned().unwrap_or_default();
    all.extend(link.statistics.iter().map(|(name, &value)| (name.clone(), value)));
    all
}

/// Returns the qdiscs of an interface, the root first. Ingress qdiscs (`ingress`, `clsact`) are not part of the
/// tree.
fn tree(all: &[QdiscAnswer], index: u32) -> Vec<QdiscFacts> {
    let mut own: Vec<_> = all.iter().filter(|qdisc| qdisc.ifindex == index).collect();
    own.sort_by_key(|qdisc| match qdisc.parent {
        ROOT => 0,
        INGRESS => 2,
        _ => 1,
    });
    let facts = |qdisc: &QdiscAnswer| QdiscFacts {
        kind: qdisc.kind.clone(),
        handle: format!("{:x}:", qdisc.handle >> 16),
        parent: match (qdisc.parent, qdisc.parent >> 16, qdisc.parent & 0xffff) {
            (ROOT, ..) => None,
            (INGRESS, ..) => Some("ingress".into()),
            (_, 0, minor) => Some(format!(":{minor:x}")),
            (_, major, 0) => Some(format!("{major:x}:")),
            (_, major, minor) => Some(format!("{major:x}:{minor:x}")),
        },
        max_rate_bps: qdisc.max_rate_bytes_per_s.map(|bytes| u64::from(bytes) * 8),
        drops: qdisc.drops,
    };
    own.into_iter().map(facts).collect()
}
