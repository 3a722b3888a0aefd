//! Checks of virtual machines, containers, clocks and other programs that tune, one per file.

use landspeed_model::Fact;

use crate::check::{Check, Group};
use crate::view::View;

mod arp_flux;
mod cgroup_cpuset;
mod cgroup_memory;
mod cgroup_processors;
mod cgroup_throttled;
mod clock_source;
mod clock_synchronised;
mod emulated_device;
mod guest_queues;
mod kernel_age;
mod memory_for_the_goal;
mod network_namespace;
mod one_network_manager;
mod one_power_manager;
mod one_time_daemon;
mod reverse_path_filter;
mod self_tuning;
mod steal;
mod sysctl_drift;
mod sysctl_gone;
mod sysctl_set_twice;
mod tuned_profile;

const GROUP: Group = Group::Environment;

/// Checks of this group, by code.
pub(crate) static CHECKS: &[&Check] = &[
    &steal::CHECK,
    &guest_queues::CHECK,
    &emulated_device::CHECK,
    &cgroup_processors::CHECK,
    &cgroup_cpuset::CHECK,
    &cgroup_memory::CHECK,
    &cgroup_throttled::CHECK,
    &clock_source::CHECK,
    &clock_synchronised::CHECK,
    &one_time_daemon::CHECK,
    &one_power_manager::CHECK,
    &self_tuning::CHECK,
    &one_network_manager::CHECK,
    &tuned_profile::CHECK,
    &sysctl_drift::CHECK,
    &sysctl_set_twice::CHECK,
    &sysctl_gone::CHECK,
    &arp_flux::CHECK,
    &reverse_path_filter::CHECK,
    &network_namespace::CHECK,
    &kernel_age::CHECK,
    &memory_for_the_goal::CHECK,
];

/// Returns which of these services run; unknown if none is known to run and the state of one is unknown.
fn running<'n>(view: &View<'_>, names: &[&'n str]) -> Fact<Vec<&'n str>> {
    let (mut found, mut unknown) = (Vec::new(), None);
    for name in names {
        match view.facts.services.get(*name) {
            Some(Fact::Known(service)) if service.running => found.push(*name),
            Some(Fact::Unknown(why)) => unknown = Some(format!("whether {name} runs: {why}")),
            None => unknown = Some(format!("whether {name} runs was not read")),
            Some(Fact::Known(_) | Fact::Absent(_)) => {}
        }
    }
    match unknown {
        Some(why) if found.len() < 2 => Fact::Unknown(why),
        _ => Fact::Known(found),
    }
}

/// Returns `net.ipv4.conf.IFACE.SETTING`; a dot in the interface's name becomes a slash, as in sysctl(8).
fn conf(interface: &str, setting: &str) -> String {
    format!("net.ipv4.conf.{}.{setting}", interface.replace('.', "/"))
}

/// Returns the effective value of an interface's setting, the larger of its value and that of `all`; unknown if
/// either is unknown.
fn effective(view: &View<'_>, interface: &str, setting: &str) -> Fact<u64> {
    let all = view.sysctl_last(&conf("all", setting));
    match (all, view.sysctl_last(&conf(interface, setting))) {
        (Fact::Known(all), Fact::Known(own)) => Fact::Known(all.max(own)),
        (Fact::Known(one), Fact::Absent(_)) | (Fact::Absent(_), Fact::Known(one)) => Fact::Known(one),
        (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => Fact::Unknown(why),
        (Fact::Absent(why), Fact::Absent(_)) => Fact::Absent(why),
    }
}
