//! Checks of CPUs, frequency, idle states and NUMA nodes, one per file.

use landspeed_model::{Applicability, CpuPolicy};

use crate::check::{Check, Group};
use crate::hardware::list_text;
use crate::view::cpu_list;

mod boost;
mod clock_rate;
mod core_count;
mod energy_preference;
mod frequency_cap;
mod governor;
mod idle_states;
mod isolated_interrupts;
mod memory_nodes;
mod mitigations;
mod numa_balancing;
mod resume_latency;
mod scaling_driver;
mod smt;
mod zone_reclaim;

const GROUP: Group = Group::Cpu;

/// Checks of this group, by code.
pub(crate) static CHECKS: &[&Check] = &[
    &governor::CHECK,
    &scaling_driver::CHECK,
    &energy_preference::CHECK,
    &frequency_cap::CHECK,
    &boost::CHECK,
    &idle_states::CHECK,
    &resume_latency::CHECK,
    &smt::CHECK,
    &memory_nodes::CHECK,
    &core_count::CHECK,
    &isolated_interrupts::CHECK,
    &mitigations::CHECK,
    &numa_balancing::CHECK,
    &zone_reclaim::CHECK,
    &clock_rate::CHECK,
];

/// Formats the CPUs of some policies as a kernel list; the policies' names if their lists cannot be read.
fn cpus_of(policies: &[&CpuPolicy]) -> String {
    // `affected_cpus` separates with spaces, other files with commas.
    let list = |policy: &&CpuPolicy| cpu_list(&policy.cpus.split_whitespace().collect::<Vec<_>>().join(","));
    match policies.iter().map(list).collect::<Option<Vec<_>>>() {
        Some(lists) => format!("cpu {}", list_text(&lists.concat())),
        None => policies.iter().map(|policy| policy.name.as_str()).collect::<Vec<_>>().join(", "),
    }
}

/// Joins the distinct values in order of appearance.
fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen.join(", ")
}

/// Returns `Safe` if there are changes, else `DisplayOnly`.
fn applicability_of(changes: &[landspeed_model::Change]) -> Applicability {
    if changes.is_empty() { Applicability::DisplayOnly } else { Applicability::Safe }
}
