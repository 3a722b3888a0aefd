//! The path in the kernel: veth links in the path's namespace, each with the qdiscs of half a hop on its
//! egress.
//!
//! Frames that arrive at one interface of the path are redirected to the egress of the first veth link, and
//! frames that arrive at that link's peer to the egress of the next one; the last qdisc is on the egress of the
//! path's other interface. Nothing exists outside of the namespace.

use landspeed_netlink::configure::{Discipline, LinkSettings, NewLink, handle};
use landspeed_netlink::{LinkId, Netlink, NetlinkError, Qdisc, QdiscReading};

use super::tree::HopTree;
use crate::error::EmulateError;

const ENOENT: i32 = 2;
/// Handles of the root qdisc, and of the queue below a token bucket.
const ROOT: u32 = handle(1, 0);
const QUEUE: u32 = handle(2, 0);

/// The path's interfaces and links in the kernel.
#[derive(Debug)]
pub(crate) struct Network {
    pub netlink: Netlink,
    /// Indices of the first and the second interface.
    pub ends: [u32; 2],
    pub directions: [Vec<HopLinks>; 2],
}

/// Interfaces whose egress has the qdiscs of a hop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HopLinks {
    /// Interface with the token bucket and the queue.
    pub shaper: u32,
    /// Interface with netem.
    pub wire: Option<u32>,
}

/// Counters of a hop at one time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HopReading {
    pub shaper: QdiscReading,
    pub queue: QdiscReading,
    pub wire: Option<QdiscReading>,
}

impl HopReading {
    /// The counters of the hop's last qdisc.
    pub(crate) fn last(&self) -> &QdiscReading {
        self.wire.as_ref().unwrap_or(&self.shaper)
    }
}

impl Network {
    /// Builds the path between two interfaces of the calling thread's namespace.
    pub(crate) fn build(names: &[String; 2], trees: &[Vec<HopTree>; 2]) -> Result<Self, EmulateError> {
        let mut netlink = Netlink::open()?;
        let links = [netlink.link(LinkId::Name(&names[0]))?, netlink.link(LinkId::Name(&names[1]))?];
        let ends = [links[0].index, links[1].index];
        let mtu_bytes = links[0].mtu_bytes;
        let mut directions = [Vec::new(), Vec::new()];
        for (side, hops) in trees.iter().enumerate() {
            let count = hops.iter().map(|hop| 1 + usize::from(hop.wire.is_some())).sum::<usize>();
            // For each half of a hop: the interface with its qdisc, and that interface's peer.
            let mut halves = Vec::new();
            for number in 1..count {
                halves.push(add_link(&mut netlink, ["f", "r"][side], number, mtu_bytes)?);
            }
            halves.push((ends[1 - side], 0));
            let mut free = halves.iter().map(|(leaves, _)| *leaves);
            let mut next = || free.next().unwrap_or_else(|| unreachable!("one for each half"));
            for hop in hops {
                let shaper = next();
                add(&mut netlink, shaper, Qdisc::ROOT, ROOT, &Discipline::Tbf(hop.shaper))?;
                add(&mut netlink, shaper, handle(1, 1), QUEUE, &hop.queue)?;
                let wire = hop.wire.map(|netem| (next(), netem));
                if let Some((link, netem)) = wire {
                    add(&mut netlink, link, Qdisc::ROOT, ROOT, &Discipline::Netem(netem))?;
                }
                directions[side].push(HopLinks { shaper, wire: wire.map(|(link, _)| link) });
            }
            for pair in halves.windows(2) {
                redirect(&mut netlink, pair[0].1, pair[1].0, Netlink::redirect_ingress)?;
            }
            // Frames can enter from here on.
            redirect(&mut netlink, ends[side], halves[0].0, Netlink::redirect_ingress_uncharged)?;
        }
        Ok(Self { netlink, ends, directions })
    }

    /// Stops admitting frames.
    pub(crate) fn close(&mut self) {
        for end in self.ends {
            // Fails only if the interface is gone, and then no frames arrive either.
            let _ = self.netlink.delete_qdisc(end, Qdisc::INGRESS);
        }
    }

    /// Reads the counters of every hop; `dump` is a reusable buffer.
    pub(crate) fn read(&mut self, dump: &mut Vec<QdiscReading>) -> Result<[Vec<HopReading>; 2], NetlinkError> {
        self.netlink.read_all_qdiscs(dump)?;
        let of = |link: u32, handle: u32| {
            dump.iter()
                .find(|reading| reading.ifindex == link && reading.handle == handle)
                .copied()
                .unwrap_or_default()
        };
        let hop = |links: &HopLinks| HopReading {
            shaper: of(links.shaper, ROOT),
            queue: of(links.shaper, QUEUE),
            wire: links.wire.map(|link| of(link, ROOT)),
        };
        Ok(self.directions.each_ref().map(|hops| hops.iter().map(hop).collect()))
    }
}

/// Adds a veth link; returns the indices of both interfaces.
fn add_link(
    netlink: &mut Netlink,
    direction: &str,
    number: usize,
    mtu_bytes: u32,
) -> Result<(u32, u32), EmulateError> {
    let names = ["out", "in"].map(|end| format!("{direction}{number}{end}"));
    let settings = LinkSettings { mtu_bytes: Some(mtu_bytes), ..LinkSettings::default() };
    let [own, peer] = [0, 1].map(|end| NewLink { name: &names[end], namespace: None, settings });
    netlink.add_veth(&own, &peer)?;
    for name in &names {
        netlink.set_link(LinkId::Name(name), &LinkSettings { up: Some(true), ..LinkSettings::default() })?;
    }
    Ok((netlink.link(LinkId::Name(&names[0]))?.index, netlink.link(LinkId::Name(&names[1]))?.index))
}

/// Adds a qdisc with replace, because tbf creates a default child.
fn add(
    netlink: &mut Netlink,
    link: u32,
    parent: u32,
    handle: u32,
    discipline: &Discipline,
) -> Result<(), EmulateError> {
    let kind = discipline.kind();
    netlink.replace_qdisc(link, parent, handle, discipline).map_err(|cause| match cause.os_error() {
        Some(ENOENT) => EmulateError::MissingKernelFeature {
            part: format!("queueing discipline {kind}"),
            module: format!("`modprobe sch_{kind}`, CONFIG_NET_SCH_{}", kind.to_uppercase()),
            cause,
        },
        _ => cause.into(),
    })
}

/// Redirects frames that arrive at one interface to another.
fn redirect(
    netlink: &mut Netlink,
    from: u32,
    to: u32,
    how: fn(&mut Netlink, u32, u32) -> Result<(), NetlinkError>,
) -> Result<(), EmulateError> {
    add(netlink, from, Qdisc::INGRESS, 0, &Discipline::Ingress)?;
    how(netlink, from, to).map_err(|cause| match cause.os_error() {
        Some(ENOENT) => EmulateError::MissingKernelFeature {
            part: "filter u32 or action mirred".to_owned(),
            module: "`modprobe -a cls_u32 act_mirred`, CONFIG_NET_CLS_U32 and CONFIG_NET_ACT_MIRRED".to_owned(),
            cause,
        },
        _ => cause.into(),
    })
}
