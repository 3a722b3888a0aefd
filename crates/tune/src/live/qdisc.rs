//! Qdiscs of an interface: reads a dump, sets one kind on every transmit queue, restores a tree.

use landspeed_model::Target;
use landspeed_netlink::configure::RawQdisc;
use landspeed_netlink::{Netlink, NetlinkError, Qdisc};

use super::LiveKnobs;
use crate::KnobError;
use crate::discipline::QdiscRequest;
use crate::value::{QdiscNode, QdiscTree};

pub(super) fn read(target: &Target, interface: &str) -> Result<QdiscTree, KnobError> {
    let (mut netlink, link) = LiveKnobs::link(target, interface)?;
    tree(&mut netlink, link.index).map_err(|why| KnobError::unreadable(target, why))
}

fn tree(netlink: &mut Netlink, ifindex: u32) -> Result<QdiscTree, NetlinkError> {
    let mut qdiscs = Vec::new();
    for raw in netlink.raw_qdiscs(ifindex)? {
        let mut extras: Vec<String> = raw.extras.iter().map(ToString::to_string).collect();
        // Filters refer to a handle; those of ingress hooks are not affected.
        if raw.handle != 0 && raw.parent != Qdisc::INGRESS && netlink.has_filters(ifindex, raw.handle)? {
            extras.push("filters".into());
        }
        qdiscs.push(QdiscNode {
            options: raw.options.as_deref().map(QdiscNode::encode_options),
            kind: raw.kind,
            handle: raw.handle,
            parent: raw.parent,
            extras,
        });
    }
    // The kernel lists qdiscs in hash table order.
    qdiscs.sort_by_key(|node| (!node.is_root(), node.parent, node.handle));
    let default_kind = std::fs::read_to_string("/proc/sys/net/core/default_qdisc").map(|text| text.trim().to_owned());
    Ok(QdiscTree { default_kind: default_kind.unwrap_or_else(|_| inferred_default(&qdiscs)), qdiscs })
}

/// The default qdisc is global, and not readable in other network namespaces. There it is inferred from a
/// qdisc that the kernel attached automatically, which is correct unless the default was changed since.
fn inferred_default(qdiscs: &[QdiscNode]) -> String {
    let attached = |node: &&QdiscNode| node.handle == 0 && !["mq", "noqueue"].contains(&node.kind.as_str());
    qdiscs.iter().find(attached).map(|node| node.kind.clone()).unwrap_or_default()
}

pub(super) fn set(target: &Target, interface: &str, text: &str) -> Result<(), KnobError> {
    let wanted = QdiscRequest::parse(text).map_err(|why| KnobError::unwritable(target, why))?;
    let (mut netlink, link) = LiveKnobs::link(target, interface)?;
    set_qdisc(&mut netlink, link.index, &wanted)
        .map_err(|why| KnobError::unwritable(target, module_hint(&why, &wanted)))
}

fn set_qdisc(netlink: &mut Netlink, ifindex: u32, wanted: &QdiscRequest) -> Result<(), NetlinkError> {
    let now = netlink.raw_qdiscs(ifindex)?;
    let root = now.iter().find(|qdisc| qdisc.parent == Qdisc::ROOT);
    let handle = root.map_or(0, |root| root.handle);
    if *wanted == QdiscRequest::Default {
        return if handle == 0 { Ok(()) } else { netlink.delete_qdisc(ifindex, Qdisc::ROOT) };
    }
    let Some(root) = root.filter(|root| root.kind == "mq" && !wanted.must_be_root()) else {
        return add_qdisc(netlink, ifindex, Qdisc::ROOT, wanted);
    };
    let major = if root.handle == 0 {
        // Leaves refer to their parent's handle, and the default mq has none: create it again with a handle.
        let handle = free_handle(&now);
        let mq = RawQdisc { kind: "mq".into(), handle, parent: Qdisc::ROOT, ..RawQdisc::default() };
        netlink.add_raw_qdisc(ifindex, &mq)?;
        handle
    } else {
        root.handle
    };
    let leaves: Vec<u32> = netlink
        .raw_qdiscs(ifindex)?
        .iter()
        .filter(|qdisc| qdisc.parent & 0xffff_0000 == major && qdisc.parent != Qdisc::ROOT)
        .map(|qdisc| qdisc.parent)
        .collect();
    leaves.into_iter().try_for_each(|parent| add_qdisc(netlink, ifindex, parent, wanted))
}

fn add_qdisc(netlink: &mut Netlink, ifindex: u32, parent: u32, wanted: &QdiscRequest) -> Result<(), NetlinkError> {
    match wanted {
        QdiscRequest::Default => netlink.delete_qdisc(ifindex, parent),
        QdiscRequest::DefaultOptions(kind) => {
            let raw = RawQdisc { kind: (*kind).to_owned(), parent, ..RawQdisc::default() };
            netlink.replace_raw_qdisc(ifindex, &raw)
        }
        QdiscRequest::ExplicitOptions(discipline) => netlink.replace_qdisc(ifindex, parent, 0, discipline),
    }
}

/// The lowest free major number, as a handle.
fn free_handle(qdiscs: &[RawQdisc]) -> u32 {
    (1..0x8000_u32)
        .map(|major| major << 16)
        .find(|handle| qdiscs.iter().all(|q| q.handle != *handle))
        .unwrap_or(1 << 16)
}

/// Restores a complete tree. The root is deleted first, which attaches the kernel's default; unless that is
/// the tree to restore, the root and its leaves are then created with their handles and options.
pub(super) fn restore(target: &Target, interface: &str, tree: &QdiscTree) -> Result<(), KnobError> {
    let (mut netlink, link) = LiveKnobs::link(target, interface)?;
    rebuild(&mut netlink, link.index, tree).map_err(|why| KnobError::unwritable(target, why))
}

fn rebuild(netlink: &mut Netlink, ifindex: u32, tree: &QdiscTree) -> Result<(), String> {
    let say = |why: NetlinkError| why.to_string();
    let now = netlink.raw_qdiscs(ifindex).map_err(say)?;
    if now.iter().any(|qdisc| qdisc.parent == Qdisc::ROOT && qdisc.handle != 0) {
        netlink.delete_qdisc(ifindex, Qdisc::ROOT).map_err(say)?;
    }
    if tree.is_default() {
        return Ok(());
    }
    for node in parents_first(tree) {
        let options =
            node.decode_options().ok_or("the journal's options of a queueing discipline are not readable")?;
        let options = options.map(|options| options_for_restore(&node.kind, options));
        let raw = RawQdisc {
            kind: node.kind.clone(),
            handle: node.handle,
            parent: node.parent,
            options,
            extras: Vec::new(),
        };
        netlink.add_raw_qdisc(ifindex, &raw).map_err(say)?;
    }
    Ok(())
}

/// Returns the options to send so that the original values are dumped again. CoDel stores times in units of
/// 1024 ns and rounds down both when it sets microseconds and when it dumps them (`codel_params`,
/// include/net/codel.h): a dumped value `d`, sent as `d`, is dumped as `d - 1`. `d + 1` is always in the
/// same unit: for `d = ⌊v · 1.024⌋`, `⌊(d + 1) / 1.024⌋ = v`.
fn options_for_restore(kind: &str, mut options: Vec<u8>) -> Vec<u8> {
    // TCA_CODEL_TARGET, _INTERVAL and _CE_THRESHOLD, and those of fq_codel (include/uapi/linux/pkt_sched.h).
    let times: &[u16] = match kind {
        "cake" => return without_nat(options),
        "codel" => &[1, 3, 5],
        "fq_codel" => &[1, 3, 7],
        _ => return options,
    };
    let mut at = 0;
    while let Some(head) = options.get(at..at + 4) {
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let attribute = u16::from_ne_bytes([head[2], head[3]]);
        if length < 4 {
            break;
        }
        if length == 8
            && times.contains(&attribute)
            && let Some(value) = options.get_mut(at + 4..at + 8)
        {
            let microseconds = u32::from_ne_bytes([value[0], value[1], value[2], value[3]]);
            value.copy_from_slice(&microseconds.saturating_add(1).to_ne_bytes());
        }
        at += length.next_multiple_of(4);
    }
    options
}

/// A kernel without connection tracking dumps cake's nat option as off, but refuses to set it.
fn without_nat(mut options: Vec<u8>) -> Vec<u8> {
    const TCA_CAKE_NAT: u16 = 11;
    let mut off = vec![8, 0, 0, 0, 0, 0, 0, 0];
    off[..2].copy_from_slice(&8_u16.to_ne_bytes());
    off[2..4].copy_from_slice(&TCA_CAKE_NAT.to_ne_bytes());
    if let Some(at) = options.chunks_exact(4).collect::<Vec<_>>().windows(2).position(|pair| pair.concat() == off) {
        options.drain(at * 4..at * 4 + 8);
    }
    options
}

/// Orders the root first, then each qdisc after its parent, because handles do not reflect the order.
/// Automatically attached ones come with their parents and are left out.
fn parents_first(tree: &QdiscTree) -> Vec<&QdiscNode> {
    let mut order: Vec<&QdiscNode> = tree.root().into_iter().collect();
    let mut left: Vec<&QdiscNode> = tree.leaves().filter(|leaf| leaf.handle != 0).collect();
    while let Some(at) = left.iter().position(|node| order.iter().any(|up| up.handle == node.parent & 0xffff_0000)) {
        order.push(left.remove(at));
    }
    // Qdiscs with an unknown parent are tried, too: the kernel reports the error.
    order.extend(left);
    order
}

fn module_hint(why: &NetlinkError, wanted: &QdiscRequest) -> String {
    const ENOENT: i32 = 2;
    match (why.os_error(), wanted.kind()) {
        (Some(ENOENT), Some(kind)) => format!("{why}; this kernel lacks it, or its module sch_{kind} is missing"),
        _ => why.to_string(),
    }
}
