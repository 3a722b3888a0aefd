//! The kernel, its virtualization, its clock and its modules.

use std::collections::BTreeMap;

use landspeed_model::{Fact, KernelFacts, TimeFacts, VirtualizationFacts};

use crate::host::{FactReader, KernelAnswers, known};
use crate::machine;
use crate::parse::{CpuInfo, core_ticks, quoted_value};

const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";

/// Relevant kernel configuration options, or prefixes of their names.
const OPTIONS: &[&str] = &[
    "CONFIG_ARM64_16K_PAGES",
    "CONFIG_ARM64_4K_PAGES",
    "CONFIG_ARM64_64K_PAGES",
    "CONFIG_BQL",
    "CONFIG_CPU_FREQ_DEFAULT_GOV_",
    "CONFIG_DEFAULT_NET_SCH",
    "CONFIG_DEFAULT_TCP_CONG",
    "CONFIG_HZ",
    "CONFIG_IOMMU_DEFAULT_",
    "CONFIG_MAX_SKB_FRAGS",
    "CONFIG_NET_RX_BUSY_POLL",
    "CONFIG_NET_SCH_CAKE",
    "CONFIG_NET_SCH_FQ",
    "CONFIG_NO_HZ_FULL",
    "CONFIG_NUMA_BALANCING",
    "CONFIG_PPC_4K_PAGES",
    "CONFIG_PPC_64K_PAGES",
    "CONFIG_PREEMPT",
    "CONFIG_RFS_ACCEL",
    "CONFIG_RPS",
    "CONFIG_TCP_CONG_BBR",
    "CONFIG_TLS",
    "CONFIG_XDP_SOCKETS",
    "CONFIG_XPS",
];

/// Relevant modules, or prefixes of their names, in addition to the drivers of the interfaces.
const MODULES: &[&str] = &[
    "8021q",
    "act_",
    "bonding",
    "br_netfilter",
    "bridge",
    "cls_",
    "ebtable",
    "ib_",
    "ip6table",
    "ip_tables",
    "ip_vs",
    "iptable_",
    "mlx",
    "mpls",
    "msr",
    "nf_",
    "nft_",
    "openvswitch",
    "rdma_",
    "sch_",
    "tcp_",
    "team",
    "tls",
    "tun",
    "veth",
    "vfio",
    "vhost",
    "xt_conntrack",
    "xt_state",
];

pub(super) fn kernel(look: FactReader<'_>, answers: &KernelAnswers) -> KernelFacts {
    let word = |name: &str| look.word(&format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    let release = word("osrelease");
    // The file exists since Linux 6.1.
    let machine = look.word("/proc/sys/kernel/arch").ok().or_else(|| answers.machine.known().cloned());
    KernelFacts {
        version: word("version"),
        machine: machine.unwrap_or_default(),
        command_line: look.fact("/proc/cmdline"),
        configuration: configuration(look, &release),
        release,
    }
}

fn configuration(look: FactReader<'_>, release: &str) -> Fact<BTreeMap<String, String>> {
    let places = machine::configuration_paths(release);
    let mut refused = None;
    for path in &places {
        match known(look.read(path)) {
            Fact::Known(text) => {
                let wanted = text.lines().filter_map(assignment);
                let wanted = wanted.filter(|(name, _)| OPTIONS.iter().any(|option| name.starts_with(option)));
                return Fact::Known(wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).collect());
            }
            Fact::Unknown(why) => refused = refused.or(Some(why)),
            Fact::Absent(_) => {}
        }
    }
    refused.map_or_else(|| Fact::Absent(format!("none of {} is there", places.join(", "))), Fact::Unknown)
}

/// Parses one line of a kernel configuration as an option and its value. `# CONFIG_X is not set` has the value
/// `n`: it denies the option explicitly, unlike a missing line.
fn assignment(line: &str) -> Option<(&str, &str)> {
    if let Some(name) = line.strip_prefix("# ").and_then(|rest| rest.trim_end().strip_suffix(" is not set")) {
        return Some((name, "n"));
    }
    line.split_once('=').map(|(name, value)| (name, value.trim().trim_matches('"')))
}

pub(super) fn os(look: FactReader<'_>) -> Fact<String> {
    match known(look.read("/etc/os-release").or_else(|_| look.read("/usr/lib/os-release"))) {
        Fact::Known(text) => quoted_value(&text, "PRETTY_NAME")
            .map_or_else(|| Fact::Absent("/etc/os-release has no PRETTY_NAME".into()), Fact::Known),
        Fact::Absent(_) => Fact::Absent("neither /etc/os-release nor /usr/lib/os-release is there".into()),
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

pub(super) fn virtualization(look: FactReader<'_>) -> VirtualizationFacts {
    let cpuinfo = known(look.read("/proc/cpuinfo"));
    let bit = cpuinfo.known().is_some_and(|text| CpuInfo::parse(text).hypervisor);
    let hypervisor = match (machine::hypervisor(look, bit), &cpuinfo) {
        (Some(name), _) => Fact::Known(name),
        (None, Fact::Known(_)) => Fact::Absent("neither the CPU nor the firmware names a hypervisor".into()),
        (None, Fact::Absent(why) | Fact::Unknown(why)) => Fact::Unknown(why.clone()),
    };
    let container =
        machine::container(look).map_or_else(|| Fact::Absent("no mark of a container".into()), Fact::Known);
    VirtualizationFacts { hypervisor, container, steal_share: steal(look) }
}

fn steal(look: FactReader<'_>) -> Fact<f64> {
    match known(look.read("/proc/stat")) {
        Fact::Known(text) => {
            let mut cores = Vec::new();
            core_ticks(&text, &mut cores);
            let total = |of: fn(&crate::parse::CoreTicks) -> f64| cores.iter().flatten().map(of).sum::<f64>();
            let all = total(|t| {
                [t.user, t.system, t.softirq, t.irq, t.steal, t.iowait, t.idle].iter().map(|&n| n as f64).sum()
            });
            if all > 0.0 {
                Fact::Known(total(|ticks| ticks.steal as f64) / all)
            } else {
                Fact::Unknown("/proc/stat has no CPU times".into())
            }
        }
        Fact::Absent(why) => Fact::Absent(why),
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

pub(super) fn time(look: FactReader<'_>, answers: &KernelAnswers) -> TimeFacts {
    let list = look.word(&format!("{CLOCK}/available_clocksource")).unwrap_or_default();
    TimeFacts {
        clocksource: look.fact(&format!("{CLOCK}/current_clocksource")),
        clocksources: list.split_whitespace().map(str::to_owned).collect(),
        synchronised: answers.clock.as_ref().map(|clock| clock.synchronised),
        estimated_error_us: answers.clock.as_ref().map(|clock| clock.estimated_error_us),
    }
}

pub(super) fn modules(look: FactReader<'_>, drivers: &[String]) -> Fact<BTreeMap<String, Option<String>>> {
    known(look.read("/proc/modules")).map(|text| {
        let names = text.lines().filter_map(|line| line.split_whitespace().next());
        let matter = |name: &&str| {
            drivers.iter().any(|driver| driver == name) || MODULES.iter().any(|module| name.starts_with(module))
        };
        let version = |name: &str| look.word(&format!("/sys/module/{name}/version")).ok();
        names.filter(matter).map(|name| (name.to_owned(), version(name))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_options_are_recognised_and_comments_ignored() {
        assert_eq!(assignment("CONFIG_NET_SCH_FQ=m"), Some(("CONFIG_NET_SCH_FQ", "m")));
        assert_eq!(assignment("# CONFIG_NET_SCH_FQ is not set"), Some(("CONFIG_NET_SCH_FQ", "n")));
        assert_eq!(assignment("CONFIG_DEFAULT_TCP_CONG=\"cubic\""), Some(("CONFIG_DEFAULT_TCP_CONG", "cubic")));
        assert_eq!(assignment("# Automatically generated file; DO NOT EDIT."), None);
    }
}
