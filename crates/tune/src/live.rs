//! Settings of this machine.
//!
//! `/sys/class/net` shows the network namespace of its mount, which may differ from the caller's: before a
//! file there is used, its interface is compared with netlink's.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use landspeed_model::{Side, Target};
use landspeed_netlink::configure::LinkSettings;
use landspeed_netlink::ethtool::{CoalescingParameter, Ethtool, EthtoolError};
use landspeed_netlink::{Link, LinkId, Netlink, NetlinkError};
use landspeed_sys::clock;

use crate::knobs::DeviceDependents;
use crate::{Device, KnobError, Knobs, Value};

mod egress;
mod network;
mod qdisc;

/// Timeout for a link to come back after a reset, nanoseconds. Link training of 100G optics takes seconds.
const CARRIER_WAIT_NS: u64 = 20_000_000_000;
/// Polling interval of the carrier, nanoseconds.
const CARRIER_POLL_NS: u64 = 50_000_000;
const IFF_UP: u32 = 0x1;
const IFF_LOWER_UP: u32 = 0x1_0000;

/// Reads and writes the settings of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveKnobs;

impl LiveKnobs {
    fn link(target: &Target, interface: &str) -> Result<(Netlink, Link), KnobError> {
        let found = Netlink::open().and_then(|mut netlink| {
            let link = netlink.link(LinkId::Name(interface))?;
            Ok((netlink, link))
        });
        found.map_err(|why| {
            if is_no_device(&why) {
                KnobError::absent(target, format!("there is no interface {interface}"))
            } else {
                KnobError::unreadable(target, why)
            }
        })
    }

    fn ethtool(target: &Target, interface: &str) -> Result<Ethtool, KnobError> {
        Ethtool::new(interface).map_err(|why| KnobError::unreadable(target, why))
    }

    /// Returns the directory of an interface in `/sys/class/net`, if it shows this namespace.
    fn directory(target: &Target, interface: &str) -> Result<PathBuf, KnobError> {
        let (_, link) = Self::link(target, interface)?;
        directory_of(&link).ok_or_else(|| {
            KnobError::absent(
                target,
                format!(
                    "/sys/class/net/{interface} is missing or shows another network namespace; use `ip netns exec`"
                ),
            )
        })
    }

    fn path(target: &Target) -> Result<Option<PathBuf>, KnobError> {
        Ok(Some(match target {
            Target::Sysctl { name } => crate::sysctl::path(name),
            Target::Queue { interface, queue, file } => {
                Self::directory(target, interface)?.join("queues").join(queue).join(file)
            }
            Target::InterfaceFile { interface, file } => Self::directory(target, interface)?.join(file),
            Target::Governor { policy } => cpufreq(policy).join("scaling_governor"),
            Target::EnergyPreference { policy } => cpufreq(policy).join("energy_performance_preference"),
            Target::ResumeLatency { cpu } => {
                PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us"))
            }
            Target::InterruptAffinity { number, name } => interrupt(*number, name)
                .ok_or_else(|| KnobError::absent(target, "no interrupt has that name now"))?
                .join("smp_affinity_list"),
            _ => return Ok(None),
        }))
    }

    fn read_link(target: &Target, interface: &str) -> Result<Value, KnobError> {
        let (_, link) = Self::link(target, interface)?;
        let number = match target {
            Target::Mtu { .. } => Some(link.mtu_bytes),
            Target::TxQueueLen { .. } => link.tx_queue_len,
            Target::SegmentLimit { name, .. } => match name.as_str() {
                "gso_max_size" => link.gso_max_size_bytes,
                "gro_max_size" => link.gro_max_size_bytes,
                "gso_ipv4_max_size" => link.gso_ipv4_max_size_bytes,
                _ => link.gro_ipv4_max_size_bytes,
            },
            _ => None,
        };
        number
            .map(|number| Value::text(number.to_string()))
            .ok_or_else(|| KnobError::absent(target, "this kernel does not have it"))
    }

    fn read_driver(target: &Target, interface: &str) -> Result<Value, KnobError> {
        let mut nic = Self::ethtool(target, interface)?;
        let fail = |why: EthtoolError| {
            if why.is_unsupported() { KnobError::absent(target, why) } else { KnobError::unreadable(target, why) }
        };
        let switch = |on| Value::text(if on { "on" } else { "off" });
        Ok(match target {
            Target::Ring { side, .. } => {
                let rings = nic.rings().map_err(fail)?;
                Value::text(if *side == Side::Rx { rings.rx.0 } else { rings.tx.0 }.to_string())
            }
            Target::Channels { .. } => match nic.channels().map_err(fail)?.combined {
                (_, 0) => return Err(KnobError::absent(target, "the driver has no combined channels")),
                (now, _) => Value::text(now.to_string()),
            },
            Target::Pause { side, .. } => {
                let pause = nic.pause().map_err(fail)?;
                switch(if *side == Side::Rx { pause.rx } else { pause.tx })
            }
            Target::Coalescing { parameter, .. } => {
                let known = coalescing(target, parameter)?;
                let value = nic.coalescing_parameter(known).map_err(fail)?;
                if known.is_switch() { switch(value != 0) } else { Value::text(value.to_string()) }
            }
            Target::Feature { name, .. } => {
                let features = nic.features().map_err(fail)?;
                let feature = features
                    .into_iter()
                    .find(|feature| feature.name == *name)
                    .ok_or_else(|| KnobError::absent(target, "this kernel has no such feature"))?;
                switch(feature.active)
            }
            _ => return Err(KnobError::absent(target, "not read from the driver")),
        })
    }

    fn write_link(target: &Target, interface: &str, text: &str) -> Result<(), KnobError> {
        let (mut netlink, link) = Self::link(target, interface)?;
        let number: u32 = parse(target, text)?;
        let mut settings = LinkSettings::default();
        match target {
            Target::Mtu { .. } => settings.mtu_bytes = Some(number),
            Target::TxQueueLen { .. } => settings.tx_queue_len = Some(number),
            Target::SegmentLimit { name, .. } => match name.as_str() {
                // Up to 64 KiB the kernel also sets IPv4's limit with this attribute: send IPv4's current value in the
                // same message to keep it.
                "gso_max_size" => {
                    settings.gso_max_size_bytes = Some(number);
                    settings.gso_ipv4_max_size_bytes = link.gso_ipv4_max_size_bytes;
                }
                "gro_max_size" => {
                    settings.gro_max_size_bytes = Some(number);
                    settings.gro_ipv4_max_size_bytes = link.gro_ipv4_max_size_bytes;
                }
                "gso_ipv4_max_size" => settings.gso_ipv4_max_size_bytes = Some(number),
                _ => settings.gro_ipv4_max_size_bytes = Some(number),
            },
            _ => {}
        }
        netlink.set_link(LinkId::Index(link.index), &settings).map_err(|why| KnobError::unwritable(target, why))
    }

    fn write_driver(target: &Target, interface: &str, text: &str) -> Result<(), KnobError> {
        let mut nic = Self::ethtool(target, interface)?;
        let outcome = match target {
            Target::Ring { side, .. } => {
                let entries = parse(target, text)?;
                if *side == Side::Rx {
                    nic.set_rings(Some(entries), None)
                } else {
                    nic.set_rings(None, Some(entries))
                }
            }
            Target::Channels { .. } => nic.set_combined_channels(parse(target, text)?),
            Target::Pause { side, .. } => {
                let on = switch(target, text)?;
                if *side == Side::Rx { nic.set_pause(Some(on), None) } else { nic.set_pause(None, Some(on)) }
            }
            Target::Coalescing { parameter, .. } => {
                let known = coalescing(target, parameter)?;
                let value = if known.is_switch() { u32::from(switch(target, text)?) } else { parse(target, text)? };
                nic.set_coalescing(known, value)
            }
            Target::Feature { name, .. } => nic.set_features(&[name.as_str()], switch(target, text)?),
            _ => return Err(KnobError::unwritable(target, "not written to the driver")),
        };
        outcome.map_err(|why| KnobError::unwritable(target, why))
    }
}

impl Knobs for LiveKnobs {
    fn read(&self, target: &Target) -> Result<Value, KnobError> {
        if let Some(path) = Self::path(target)? {
            return match std::fs::read_to_string(&path) {
                Ok(text) => Ok(Value::text(text.trim_end_matches('\n'))),
                Err(why) if matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    Err(KnobError::absent(target, format!("{} does not exist here", path.display())))
                }
                Err(why) => Err(KnobError::unreadable(target, format!("{}: {why}", path.display()))),
            };
        }
        match target {
            Target::Qdisc { interface } => qdisc::read(target, interface).map(Value::Qdiscs),
            Target::EgressRate { cgroup, interface } => egress::read(target, cgroup, interface),
            Target::Mtu { interface } | Target::TxQueueLen { interface } | Target::SegmentLimit { interface, .. } => {
                Self::read_link(target, interface)
            }
            other => match other.interface() {
                Some(interface) => Self::read_driver(target, interface),
                None => Err(KnobError::absent(target, "not known here")),
            },
        }
    }

    fn write(&self, target: &Target, value: &Value) -> Result<(), KnobError> {
        let text = match (target, value) {
            (Target::Qdisc { interface }, Value::Text(text)) => return qdisc::set(target, interface, text),
            (Target::Qdisc { interface }, Value::Qdiscs(tree)) => return qdisc::restore(target, interface, tree),
            (_, Value::Qdiscs(_)) => return Err(KnobError::unwritable(target, "it is not a queueing discipline")),
            (_, Value::Text(text)) => text,
        };
        if let Some(path) = Self::path(target)? {
            let write = || OpenOptions::new().write(true).open(&path)?.write_all(text.as_bytes());
            return write().map_err(|why| KnobError::unwritable(target, explain(target, text, &why)));
        }
        match target {
            Target::EgressRate { cgroup, interface } => egress::write(target, cgroup, interface, text),
            Target::Mtu { interface } | Target::TxQueueLen { interface } | Target::SegmentLimit { interface, .. } => {
                Self::write_link(target, interface, text)
            }
            other => match other.interface() {
                Some(interface) => Self::write_driver(target, interface, text),
                None => Err(KnobError::unwritable(target, "not known here")),
            },
        }
    }

    fn read_only(&self, target: &Target) -> Option<String> {
        if let Target::Feature { interface, name } = target {
            let features = Ethtool::new(interface).and_then(|mut nic| nic.features()).ok()?;
            let fixed = features.iter().any(|feature| feature.name == *name && !feature.changeable);
            return fixed.then(|| "the driver keeps it fixed".to_owned());
        }
        let path = Self::path(target).ok()??;
        let fixed = std::fs::metadata(path).ok()?.permissions().readonly();
        fixed.then(|| match target {
            Target::Sysctl { .. } => {
                "it is read-only here: outside the machine's first network namespace some sysctls are".to_owned()
            }
            _ => "it is read-only here".to_owned(),
        })
    }

    fn is_network_interrupt(&self, target: &Target) -> bool {
        // A change names another interrupt if none has this number and name.
        let Target::InterruptAffinity { number, name } = target else { return false };
        let directory = interrupt(*number, name);
        let number = directory.as_deref().and_then(Path::file_name);
        number.is_some_and(network::has_interrupt)
    }

    fn device(&self, interface: &str) -> Result<Device, KnobError> {
        let target = Target::Mtu { interface: interface.to_owned() };
        let (_, link) = Self::link(&target, interface)?;
        Ok(device(&link))
    }

    fn find(&self, seen: &Device) -> Option<String> {
        let mut netlink = Netlink::open().ok()?;
        let link = netlink.link(LinkId::Index(seen.ifindex)).ok()?;
        device(&link).is(seen).then_some(link.name)
    }

    fn forget(&self, target: &Target, device: &Device) {
        if let Target::EgressRate { cgroup, .. } = target {
            egress::forget(cgroup, device.ifindex);
        }
    }

    fn dependents(&self, interface: &str) -> DeviceDependents {
        network::dependents(interface)
    }

    fn wait_for_carrier(&self, interface: &str, had_carrier: bool) -> bool {
        let deadline = clock::monotonic_ns() + CARRIER_WAIT_NS;
        while had_carrier && !self.carrier(interface) && clock::monotonic_ns() < deadline {
            clock::sleep_until(clock::monotonic_ns() + CARRIER_POLL_NS);
        }
        self.carrier(interface)
    }

    fn carrier(&self, interface: &str) -> bool {
        let link = Netlink::open().and_then(|mut netlink| netlink.link(LinkId::Name(interface)));
        link.is_ok_and(|link| link.flags & (IFF_UP | IFF_LOWER_UP) == IFF_UP | IFF_LOWER_UP)
    }

    fn default_routes(&self) -> Vec<String> {
        network::default_routes()
    }

    fn unreachable(&self, peer: &str) -> Option<String> {
        network::unreachable(peer)
    }
}

/// The kernel reports ENODEV for a missing interface.
fn is_no_device(error: &NetlinkError) -> bool {
    const ENODEV: i32 = 19;
    error.os_error() == Some(ENODEV)
}

fn device(link: &Link) -> Device {
    let mac: Vec<String> = link.address.iter().map(|byte| format!("{byte:02x}")).collect();
    let bus = directory_of(link).and_then(|directory| std::fs::read_link(directory.join("device")).ok());
    let bus =
        bus.and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned())).unwrap_or_default();
    Device { name: link.name.clone(), ifindex: link.index, mac: mac.join(":"), bus }
}

/// Returns the link's directory in `/sys`, if it shows this namespace's link.
fn directory_of(link: &Link) -> Option<PathBuf> {
    let directory = PathBuf::from("/sys/class/net").join(&link.name);
    let read = |file: &str| std::fs::read_to_string(directory.join(file)).ok();
    let index: u32 = read("ifindex")?.trim().parse().ok()?;
    let mac: Vec<String> = link.address.iter().map(|byte| format!("{byte:02x}")).collect();
    (index == link.index && read("address")?.trim() == mac.join(":")).then_some(directory)
}

fn cpufreq(policy: &str) -> PathBuf {
    PathBuf::from("/sys/devices/system/cpu/cpufreq").join(policy)
}

/// Returns the directory of an interrupt: by number if it still has the name, or else by name.
fn interrupt(number: u32, name: &str) -> Option<PathBuf> {
    let by_number = PathBuf::from(format!("/proc/irq/{number}"));
    if by_number.join(name).is_dir() {
        return Some(by_number);
    }
    let mut named =
        std::fs::read_dir("/proc/irq").ok()?.flatten().map(|entry| entry.path()).filter(|p| p.join(name).is_dir());
    let only = named.next()?;
    named.next().is_none().then_some(only)
}

fn coalescing(target: &Target, parameter: &str) -> Result<CoalescingParameter, KnobError> {
    CoalescingParameter::from_name(parameter).ok_or_else(|| KnobError::absent(target, "no such parameter"))
}

fn parse(target: &Target, text: &str) -> Result<u32, KnobError> {
    text.trim().parse().map_err(|_| KnobError::unwritable(target, format!("`{text}` is not a number")))
}

fn switch(target: &Target, text: &str) -> Result<bool, KnobError> {
    match text.trim() {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(KnobError::unwritable(target, format!("`{other}` is neither on nor off"))),
    }
}

/// Adds advice to an error of the operating system.
fn explain(target: &Target, text: &str, why: &io::Error) -> String {
    let hint = match (target, why.kind()) {
        (_, io::ErrorKind::PermissionDenied) => {
            "; run it as root, in the machine's own network namespace where it has to be"
        }
        (Target::Sysctl { name }, io::ErrorKind::NotFound) if name.ends_with("congestion_control") => {
            "; this kernel lacks it: see net.ipv4.tcp_available_congestion_control, or load its module"
        }
        (Target::Sysctl { name }, io::ErrorKind::NotFound) if name.ends_with("default_qdisc") => {
            "; this kernel lacks it, or its module sch_* is missing"
        }
        (_, io::ErrorKind::InvalidInput) => "; the kernel does not take this value",
        _ => "",
    };
    format!("`{text}`: {why}{hint}")
}
