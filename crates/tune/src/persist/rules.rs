//! Persists sysfs attributes: of network devices by a udev rule, applied when the device appears; of CPUs
//! by tmpfiles.d(5).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use landspeed_model::Target;

use super::plan::{PersistPlan, PersistedSetting, banner, read};
use crate::Value;
use crate::error::TuneError;

const UDEV: &str = "etc/udev/rules.d/99-landspeed.rules";
const TMPFILES: &str = "etc/tmpfiles.d/landspeed.conf";

pub(super) fn plan(
    kept: &[PersistedSetting<'_>],
    root: &Path,
    tuned: bool,
    plan: &mut PersistPlan,
) -> Result<(), TuneError> {
    let mut udev = BTreeMap::new();
    let mut tmpfiles = BTreeMap::new();
    for setting in kept {
        let Value::Text(value) = setting.value else { continue };
        let value = value.trim();
        match setting.target {
            Target::Queue { .. } | Target::InterfaceFile { .. } => {
                let (Some(device), Some(file)) = (setting.device, attribute(setting.target)) else { continue };
                if device.bus.is_empty() {
                    plan.hand(
                        setting.target,
                        format!("{} is not hardware: write {value} to {file} where it is created", device.name),
                    );
                    continue;
                }
                let place = format!(
                    "ACTION==\"add\", SUBSYSTEM==\"net\", ATTR{{address}}==\"{}\", ATTR{{{file}}}=",
                    device.mac
                );
                udev.insert(place, format!("\"{value}\""));
                plan.covered.push(setting.target.to_string());
            }
            Target::Governor { .. } | Target::EnergyPreference { .. } | Target::ResumeLatency { .. } => {
                if tuned {
                    continue;
                }
                if let Some(path) = cpu_file(setting.target) {
                    tmpfiles.insert(format!("w {path} - - - - "), value.to_owned());
                    plan.covered.push(setting.target.to_string());
                }
            }
            _ => {}
        }
    }
    merge(root, UDEV, "files of network devices", &udev, plan)?;
    merge(root, TMPFILES, "files of CPUs", &tmpfiles, plan)
}

/// Adds lines to one of our files; existing lines with the same key are replaced.
fn merge(
    root: &Path,
    file: &str,
    what: &str,
    lines: &BTreeMap<String, String>,
    plan: &mut PersistPlan,
) -> Result<(), TuneError> {
    if lines.is_empty() {
        return Ok(());
    }
    let old = read(&root.join(file))?.unwrap_or_default();
    let kept = old
        .lines()
        .filter(|line| !line.starts_with('#') && !lines.keys().any(|place| line.starts_with(place.as_str())));
    let mut all: BTreeSet<String> = kept.map(ToOwned::to_owned).collect();
    all.extend(lines.iter().map(|(place, value)| format!("{place}{value}")));
    let mut text = banner(what);
    for line in all {
        let _ = writeln!(text, "{line}");
    }
    plan.file(root, file, text)
}

/// Path of the attribute below the device's directory.
fn attribute(target: &Target) -> Option<String> {
    match target {
        Target::Queue { queue, file, .. } => Some(format!("queues/{queue}/{file}")),
        Target::InterfaceFile { file, .. } => Some(file.clone()),
        _ => None,
    }
}

fn cpu_file(target: &Target) -> Option<String> {
    const CPU: &str = "/sys/devices/system/cpu";
    match target {
        Target::Governor { policy } => Some(format!("{CPU}/cpufreq/{policy}/scaling_governor")),
        Target::EnergyPreference { policy } => Some(format!("{CPU}/cpufreq/{policy}/energy_performance_preference")),
        Target::ResumeLatency { cpu } => Some(format!("{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us")),
        _ => None,
    }
}
