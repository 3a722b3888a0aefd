//! Services that manage or change settings on this host.

use std::collections::BTreeMap;

use landspeed_model::{Fact, ServiceFacts};

use crate::host::{FactReader, KernelAnswers};

/// Services that are searched for: reported name and process name. The kernel keeps 15 characters of it.
pub(crate) const SERVICE_NAMES: [(&str, &str); 12] = [
    ("tuned", "tuned"),
    ("NetworkManager", "NetworkManager"),
    ("systemd-networkd", "systemd-network"),
    ("irqbalance", "irqbalance"),
    ("bpftune", "bpftune"),
    ("chronyd", "chronyd"),
    ("ntpd", "ntpd"),
    ("systemd-timesyncd", "systemd-timesyn"),
    ("ptp4l", "ptp4l"),
    ("phc2sys", "phc2sys"),
    ("power-profiles-daemon", "power-profiles-"),
    ("thermald", "thermald"),
];

/// Directories with links to units that start at boot (systemd.unit(5)).
const WANTED_BY: [&str; 2] =
    ["/etc/systemd/system/multi-user.target.wants", "/etc/systemd/system/basic.target.wants"];

pub(super) fn read(look: FactReader<'_>, answers: &KernelAnswers) -> BTreeMap<String, Fact<ServiceFacts>> {
    let own_processes = look.link_name("/proc/self/ns/pid").filter(|name| name != "pid:[4026531836]");
    let mut services: BTreeMap<String, Fact<ServiceFacts>> = SERVICE_NAMES
        .iter()
        .map(|(service, process)| {
            let running = answers.processes.as_ref().map(|names| names.iter().any(|name| name == process));
            let fact = match running {
                Fact::Known(false) if own_processes.is_some() => {
                    Fact::Unknown("this process namespace does not show the host's processes".into())
                }
                other => other.map(|running| ServiceFacts { running, detail: detail(look, service) }),
            };
            ((*service).to_owned(), fact)
        })
        .collect();
    // cpupower sets the governor at boot and exits: there is no process to find.
    let enabled =
        WANTED_BY.iter().any(|directory| look.names(directory, "cpupower").contains(&"cpupower.service".into()));
    let detail = enabled.then(|| "enabled".to_owned());
    services.insert("cpupower".into(), Fact::Known(ServiceFacts { running: false, detail }));
    services
}

fn detail(look: FactReader<'_>, service: &str) -> Option<String> {
    (service == "tuned")
        .then(|| look.word("/etc/tuned/active_profile").ok())
        .flatten()
        .filter(|name| !name.is_empty())
}
