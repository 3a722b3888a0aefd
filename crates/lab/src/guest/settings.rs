//! Sysctls that change during the run.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_sys::{clock, netns};

use super::network::Network;
use crate::plan::{Plan, PlannedSetting};

/// Maximum sleep, virtual nanoseconds: then the end of the run is noticed.
const MAX_SLEEP_NS: u64 = 100_000_000;

/// Sets each sysctl at its time; returns for each the time after zero, nanoseconds, or the reason why it was not set.
pub fn apply(plan: &Plan, network: &Network, zero_ns: u64, over: &AtomicBool) -> Vec<Result<u64, String>> {
    super::set_observer_policy();
    let mut results = Vec::with_capacity(plan.settings.len());
    for setting in &plan.settings {
        let due_ns = zero_ns.saturating_add(setting.at_ns);
        while !over.load(Ordering::Relaxed) && clock::monotonic_ns() < due_ns {
            clock::sleep_until(due_ns.min(clock::monotonic_ns() + MAX_SLEEP_NS));
        }
        let is_due = clock::monotonic_ns() >= due_ns;
        results.push(if is_due { set(setting, network, zero_ns) } else { Err("the run ended before".to_owned()) });
    }
    results
}

fn set(setting: &PlannedSetting, network: &Network, zero_ns: u64) -> Result<u64, String> {
    netns::enter(network.namespace(setting.node)).map_err(|e| format!("cannot enter a namespace: {e}"))?;
    std::fs::write(Path::new("/proc/sys").join(&setting.file), &setting.value).map_err(|e| e.to_string())?;
    Ok(clock::monotonic_ns() - zero_ns)
}
