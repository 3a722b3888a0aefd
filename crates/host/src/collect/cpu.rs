//! CPUs: topology, frequency, idle states.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_model::{CpuFacts, CpuPolicy, Fact, IdleState};

use crate::host::{FactReader, KernelAnswers, known};
use crate::parse::{CpuInfo, core_ticks, list_numbers};

const CPU: &str = "/sys/devices/system/cpu";

pub(super) fn cpu(look: FactReader<'_>, answers: &KernelAnswers) -> CpuFacts {
    let cpuinfo = known(look.read("/proc/cpuinfo"));
    let online = online(look);
    let (cores, sockets) = topology(look, cpuinfo.known().map_or("", String::as_str), &online);
    let idle_driver = look.fact(&format!("{CPU}/cpuidle/current_driver"));
    CpuFacts {
        model: model(&cpuinfo),
        cores,
        sockets,
        smt: look.fact(&format!("{CPU}/smt/control")),
        policies: policies(look),
        boost: boost(look),
        idle_states: idle_states(look, &online, &idle_driver),
        idle_driver,
        resume_latency_us: resume_latency(look, &online),
        dma_latency_us: answers.dma_latency_us.clone(),
        vulnerabilities: vulnerabilities(look),
        isolated: isolated(look),
        online,
    }
}

fn model(cpuinfo: &Fact<String>) -> Fact<String> {
    match cpuinfo.as_ref().map(|text| CpuInfo::parse(text).model) {
        Fact::Known(Some(model)) => Fact::Known(model),
        Fact::Known(None) => Fact::Absent("/proc/cpuinfo names no model on this architecture".into()),
        Fact::Absent(why) => Fact::Absent(why),
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

fn online(look: FactReader<'_>) -> Vec<u32> {
    let listed = look.word(&format!("{CPU}/online")).ok().and_then(|list| list_numbers(&list));
    listed.filter(|numbers| !numbers.is_empty()).unwrap_or_else(|| {
        let mut cores = Vec::new();
        core_ticks(&look.read("/proc/stat").unwrap_or_default(), &mut cores);
        (0..).zip(&cores).filter(|(_, core)| core.is_some()).map(|(number, _)| number).collect()
    })
}

/// Returns the numbers of cores and sockets. On x86, `/proc/cpuinfo` has both; elsewhere each CPU's topology is
/// read.
fn topology(look: FactReader<'_>, cpuinfo: &str, online: &[u32]) -> (Fact<u32>, Fact<u32>) {
    let (mut cores, mut sockets) = (BTreeSet::new(), BTreeSet::new());
    let mut socket = "";
    for line in cpuinfo.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        match key.trim_end() {
            "physical id" => {
                socket = value.trim();
                sockets.insert(socket.to_owned());
            }
            "core id" => drop(cores.insert(format!("{socket}/{}", value.trim()))),
            _ => {}
        }
    }
    if cores.is_empty() || sockets.is_empty() {
        (cores, sockets) = (BTreeSet::new(), BTreeSet::new());
        for cpu in online {
            let word = |name: &str| look.word(&format!("{CPU}/cpu{cpu}/topology/{name}")).ok();
            cores.extend(word("thread_siblings_list"));
            // −1 if the firmware does not report it.
            sockets.extend(word("physical_package_id").filter(|id| !id.starts_with('-')));
        }
    }
    let count = |set: &BTreeSet<String>, what: &str| {
        if set.is_empty() {
            Fact::Unknown(format!("neither /proc/cpuinfo nor {CPU}/cpu*/topology has {what}"))
        } else {
            Fact::Known(set.len() as u32)
        }
    };
    (count(&cores, "cores"), count(&sockets, "sockets"))
}

fn policies(look: FactReader<'_>) -> Fact<Vec<CpuPolicy>> {
    let directory = format!("{CPU}/cpufreq");
    let policies = look.numbered(&directory, "policy");
    if policies.is_empty() {
        let why = "the kernel scales no frequency here (no cpufreq): the firmware or the hypervisor does";
        return Fact::Absent(why.into());
    }
    let policy = |name: String| {
        let path = |file: &str| format!("{directory}/{name}/{file}");
        let word = |file: &str| look.word(&path(file)).ok().filter(|word| !word.is_empty());
        let words =
            |file: &str| word(file).unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let khz = |file: &str| look.number(&path(file));
        let cpus: Vec<u32> = words("affected_cpus").iter().filter_map(|cpu| cpu.parse().ok()).collect();
        CpuPolicy {
            cpus: list_text(&cpus),
            driver: word("scaling_driver").unwrap_or_default(),
            governor: word("scaling_governor").unwrap_or_default(),
            governors: words("scaling_available_governors"),
            energy_preference: word("energy_performance_preference"),
            energy_preferences: words("energy_performance_available_preferences"),
            min_khz: khz("scaling_min_freq"),
            max_khz: khz("scaling_max_freq"),
            hardware_max_khz: khz("cpuinfo_max_freq"),
            current_khz: khz("scaling_cur_freq"),
            name,
        }
    };
    Fact::Known(policies.into_values().map(policy).collect())
}

/// Formats sorted numbers as a kernel list: `0-3,8`.
pub(crate) fn list_text(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |&(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

fn boost(look: FactReader<'_>) -> Fact<bool> {
    if let Some(off) = look.number::<u8>(&format!("{CPU}/intel_pstate/no_turbo")) {
        return Fact::Known(off == 0);
    }
    match look.number::<u8>(&format!("{CPU}/cpufreq/boost")) {
        Some(on) => Fact::Known(on != 0),
        None => Fact::Absent("neither intel_pstate/no_turbo nor cpufreq/boost is there".into()),
    }
}

fn idle_states(look: FactReader<'_>, online: &[u32], driver: &Fact<String>) -> Fact<Vec<IdleState>> {
    let Some(first) = online.first() else { return Fact::Unknown("no CPU is known to be online".into()) };
    let directory = format!("{CPU}/cpu{first}/cpuidle");
    let states = look.numbered(&directory, "state");
    if states.is_empty() {
        let driver = driver.known().map_or("none", String::as_str);
        return Fact::Absent(format!("the kernel has no idle states here (cpuidle driver: {driver})"));
    }
    let state = |name: String| {
        let path = |file: &str| format!("{directory}/{name}/{file}");
        Some(IdleState {
            name: look.word(&path("name")).ok()?,
            latency_us: look.number(&path("latency"))?,
            disabled: look.number::<u64>(&path("disable")).is_some_and(|mask| mask != 0),
        })
    };
    Fact::Known(states.into_values().filter_map(state).collect())
}

/// `n/a` means a limit of 0, and 0 means no limit (`Documentation/ABI/testing/sysfs-devices-power`).
fn resume_latency(look: FactReader<'_>, online: &[u32]) -> Fact<u32> {
    let mut seen = false;
    let limit = |cpu: &u32| {
        let word = look.word(&format!("{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us")).ok()?;
        seen = true;
        if word == "n/a" { Some(0) } else { word.parse().ok().filter(|&us: &u32| us > 0) }
    };
    let least = online.iter().filter_map(limit).min();
    match (least, seen) {
        (Some(us), _) => Fact::Known(us),
        (None, true) => Fact::Absent("no CPU is limited".into()),
        (None, false) => Fact::Unknown(format!("no {CPU}/cpu*/power/pm_qos_resume_latency_us can be read")),
    }
}

fn vulnerabilities(look: FactReader<'_>) -> BTreeMap<String, String> {
    let directory = format!("{CPU}/vulnerabilities");
    let names = look.names(&directory, "").into_iter();
    names.filter_map(|name| Some((name.clone(), look.word(&format!("{directory}/{name}")).ok()?))).collect()
}

fn isolated(look: FactReader<'_>) -> Fact<String> {
    match look.fact(&format!("{CPU}/isolated")) {
        Fact::Known(list) if list.is_empty() => Fact::Absent("no CPU is isolated".into()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_ranges() {
        assert_eq!(list_text(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!((list_text(&[]), list_text(&[u32::MAX])), (String::new(), u32::MAX.to_string()));
    }
}
