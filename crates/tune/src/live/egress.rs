//! Egress rate limit of a cgroup v2 on an interface.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use landspeed_model::Target;
use landspeed_netlink::configure::HtbClass;
use landspeed_netlink::{Netlink, NetlinkError};
use landspeed_sys::bpf::egress::{self, Limit, LimitMethod};

use super::{LiveKnobs, qdisc};
use crate::{KnobError, Value};

/// Range of a class's burst, bytes: a millisecond's worth, with a minimum for timers and a maximum for
/// switch buffers.
const BURST_BYTES: std::ops::RangeInclusive<u64> = 16_384..=4 << 20;
/// First minor number tried for a class.
const FIRST_MINOR: u32 = 0x100;
const ENOENT: i32 = 2;

/// Returns the limit in bits/s; 0 without a limit.
pub(super) fn read(target: &Target, cgroup: &str, interface: &str) -> Result<Value, KnobError> {
    let (mut netlink, link) = LiveKnobs::link(target, interface)?;
    let limits = ours(target, cgroup, link.index)?;
    let classes = classes(target, &mut netlink, link.index, &limits)?;
    let mut rates = Vec::new();
    for limit in &limits {
        match limit.by {
            LimitMethod::Departure(rate) => rates.push(rate),
            LimitMethod::Class(class) => match classes.iter().find(|(number, _)| *number == class) {
                Some((_, rate)) => rates.push(*rate),
                None => return Ok(Value::text("a class that is gone")),
            },
        }
    }
    Ok(Value::text(rates.iter().min().map_or(0, |rate| rate * 8).to_string()))
}

pub(super) fn write(target: &Target, cgroup: &str, interface: &str, text: &str) -> Result<(), KnobError> {
    let bits: u64 =
        text.trim().parse().map_err(|_| KnobError::unwritable(target, format!("`{text}` is not a rate")))?;
    let (mut netlink, link) = LiveKnobs::link(target, interface)?;
    let old = ours(target, cgroup, link.index)?;
    let group = group(target, cgroup)?;
    let fail = |why: NetlinkError| KnobError::unwritable(target, why);
    if bits > 0 {
        let tree = qdisc::read(target, interface)?;
        let transmit_qdiscs = tree.transmit_qdiscs();
        let all = |kind: &str| !transmit_qdiscs.is_empty() && transmit_qdiscs.iter().all(|node| node.kind == kind);
        let namespace = namespace().map_err(|why| KnobError::unwritable(target, why))?;
        let limit = |by| egress::limit(&group, namespace, link.index, by);
        if all("fq") {
            limit(LimitMethod::Departure(bits / 8)).map_err(|why| KnobError::unwritable(target, explain(&why)))?;
        } else if all("htb") {
            let root = transmit_qdiscs[0].handle;
            let taken = netlink.htb_rates(link.index).map_err(fail)?;
            let class = (FIRST_MINOR..0x1_0000)
                .map(|minor| root | minor)
                .find(|class| taken.iter().all(|(number, _)| number != class))
                .ok_or_else(|| KnobError::unwritable(target, "the htb has no free class"))?;
            netlink.add_htb_class(link.index, root, class, &shape(bits / 8)).map_err(fail)?;
            if let Err(why) = limit(LimitMethod::Class(class)) {
                let _ = netlink.delete_class(link.index, class);
                return Err(KnobError::unwritable(target, explain(&why)));
            }
        } else {
            return Err(KnobError::unwritable(target, format!("{interface} sends neither by fq nor by htb: {tree}")));
        }
    }
    // The new limit is effective; now remove the old ones.
    for limit in &old {
        egress::remove_limit(&group, limit).map_err(|why| KnobError::unwritable(target, explain(&why)))?;
        if let LimitMethod::Class(class) = limit.by
            && let Err(why) = netlink.delete_class(link.index, class)
            && why.os_error() != Some(ENOENT)
        {
            return Err(fail(why));
        }
    }
    Ok(())
}

/// Removes the BPF programs for an interface that is gone.
pub(super) fn forget(cgroup: &str, ifindex: u32) {
    let target = Target::EgressRate { cgroup: cgroup.to_owned(), interface: String::new() };
    let Ok(group) = group(&target, cgroup) else { return };
    for limit in ours(&target, cgroup, ifindex).unwrap_or_default() {
        let _ = egress::remove_limit(&group, &limit);
    }
}

fn shape(rate_bytes_per_s: u64) -> HtbClass {
    let burst = (rate_bytes_per_s / 1000).clamp(*BURST_BYTES.start(), *BURST_BYTES.end());
    HtbClass {
        rate_bytes_per_s,
        burst_bytes: burst as u32,
        // The class does not borrow, but at high rates the kernel warns without a quantum.
        quantum_bytes: 65_536,
    }
}

/// Returns landspeed's limits for an interface of this namespace.
fn ours(target: &Target, cgroup: &str, ifindex: u32) -> Result<Vec<Limit>, KnobError> {
    let group = group(target, cgroup)?;
    let namespace = namespace().map_err(|why| KnobError::unreadable(target, why))?;
    let limits = egress::limits(&group).map_err(|why| KnobError::unreadable(target, explain(&why)))?;
    Ok(limits.into_iter().filter(|limit| (limit.namespace, limit.ifindex) == (namespace, ifindex)).collect())
}

/// Returns the htb classes of an interface with their rates, if one of the limits uses a class.
fn classes(
    target: &Target,
    netlink: &mut Netlink,
    ifindex: u32,
    limits: &[Limit],
) -> Result<Vec<(u32, u64)>, KnobError> {
    if limits.iter().all(|limit| matches!(limit.by, LimitMethod::Departure(_))) {
        return Ok(Vec::new());
    }
    netlink.htb_rates(ifindex).map_err(|why| KnobError::unreadable(target, why))
}

/// Returns the directory of a cgroup.
fn group(target: &Target, cgroup: &str) -> Result<PathBuf, KnobError> {
    // `ip netns exec` hides mounts below /sys; process 1 still sees them.
    let mount =
        [("/proc/self/mounts", "/"), ("/proc/1/mounts", "/proc/1/root")].into_iter().find_map(|(list, root)| {
            let mounts = std::fs::read_to_string(list).ok()?;
            let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            let found = lines.find(|words| words.get(2) == Some(&"cgroup2"))?[1].trim_start_matches('/').to_owned();
            Some(Path::new(root).join(found))
        });
    let mount = mount.ok_or_else(|| KnobError::absent(target, "no control groups of version 2 are mounted here"))?;
    let group = mount.join(cgroup.trim_matches('/'));
    if group.is_dir() {
        Ok(group)
    } else {
        Err(KnobError::absent(target, format!("there is no control group {}", group.display())))
    }
}

/// Inode of the calling thread's network namespace.
fn namespace() -> std::io::Result<u64> {
    std::fs::metadata("/proc/thread-self/ns/net").map(|file| file.ino())
}

fn explain(why: &std::io::Error) -> String {
    let hint = match why.raw_os_error() {
        Some(1 | 13) => "; it needs root",
        Some(38) => "; this kernel has no BPF",
        Some(22) => "; it needs Linux 5.8 with CONFIG_CGROUP_BPF",
        _ => "",
    };
    format!("{why}{hint}")
}
