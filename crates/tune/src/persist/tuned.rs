//! Persists settings with tuned: a profile that includes the active one, adds settings and replaces it.
//! tuned applies its settings at every start and would otherwise override other files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use landspeed_model::Target;

use super::plan::{PersistPlan, PersistedSetting, banner, read, sections};
use crate::Value;
use crate::error::TuneError;

/// Name of our profile.
const NAME: &str = "landspeed";
const MODE: &str = "etc/tuned/profile_mode";
const ACTIVE: &str = "etc/tuned/active_profile";
const CPU: &str = "sys/devices/system/cpu";

/// tuned on a host with an active profile.
pub(super) struct Tuned {
    active: String,
    /// Whether sysctl.d is applied after tuned's own sysctls (`reapply_sysctl`, tuned-main.conf(5); on by default).
    pub(super) reapplies: bool,
    sections: BTreeMap<&'static str, BTreeMap<String, String>>,
}

impl Tuned {
    /// Detects the active profile; `None` if tuned is not used.
    pub(super) fn detect(root: &Path) -> Result<Option<Self>, TuneError> {
        let active = read(&root.join(ACTIVE))?.unwrap_or_default().trim().to_owned();
        if active.is_empty() {
            return Ok(None);
        }
        let main = read(&root.join("etc/tuned/tuned-main.conf"))?.unwrap_or_default();
        let mut pairs =
            main.lines().filter(|line| !line.trim_start().starts_with('#')).filter_map(|l| l.split_once('='));
        let off = pairs.any(|(key, value)| {
            key.trim() == "reapply_sysctl"
                && ["0", "false", "no", "off"].contains(&value.trim().to_lowercase().as_str())
        });
        Ok(Some(Self { active, reapplies: !off, sections: BTreeMap::new() }))
    }

    /// Returns why no profile can include the active one; `None` if one can.
    pub(super) fn unsupported_reason(&self) -> Option<String> {
        let several = self.active.split_whitespace().count() > 1;
        several.then(|| format!("tuned has several profiles active ({}): put it into the last of them", self.active))
    }

    /// Adds a setting to the profile.
    pub(super) fn set(&mut self, section: &'static str, key: impl Into<String>, value: impl Into<String>) {
        self.sections.entry(section).or_default().insert(key.into(), value.into());
    }

    /// Adds CPU settings, which a profile sets for all CPUs alike.
    pub(super) fn cpus(&mut self, kept: &[PersistedSetting<'_>], root: &Path, plan: &mut PersistPlan) {
        for (key, directory, prefix) in [
            ("governor", "sys/devices/system/cpu/cpufreq", "policy"),
            ("energy_performance_preference", "sys/devices/system/cpu/cpufreq", "policy"),
            ("pm_qos_resume_latency_us", CPU, "cpu"),
        ] {
            let mine: Vec<&PersistedSetting<'_>> =
                kept.iter().filter(|setting| option(setting.target) == Some(key)).collect();
            let Some(first) = mine.first() else { continue };
            let Value::Text(value) = first.value else { continue };
            let all = std::fs::read_dir(root.join(directory)).into_iter().flatten().flatten().filter(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.strip_prefix(prefix).is_some_and(|number| number.parse::<u32>().is_ok())
            });
            let alike = mine.len() == all.count() && mine.iter().all(|setting| setting.value.same(first.value));
            let why = self.unsupported_reason().or_else(|| {
                (!alike).then(|| {
                    "tuned is active, and its profiles set all CPUs alike: add an instance of [cpu] for these".into()
                })
            });
            for setting in &mine {
                match &why {
                    Some(why) => plan.hand(setting.target, format!("{why}; the value is {}", setting.value)),
                    None => plan.covered.push(setting.target.to_string()),
                }
            }
            if why.is_none() {
                self.set("cpu", key, value.trim());
            }
        }
    }

    /// Writes the profile and activates it, if it has any settings.
    pub(super) fn finish(mut self, root: &Path, plan: &mut PersistPlan) -> Result<(), TuneError> {
        if self.sections.is_empty() {
            return Ok(());
        }
        // Profiles are in a separate directory since tuned 2.23.
        let own = ["etc/tuned/profiles", "usr/lib/tuned/profiles"].iter().any(|d| root.join(d).is_dir());
        let file = format!("etc/tuned/{}{NAME}/tuned.conf", if own { "profiles/" } else { "" });
        let mut below = self.active.clone();
        let old = read(&root.join(&file))?.unwrap_or_default();
        for (section, key, value) in sections(&old) {
            match section.as_str() {
                "main" if key == "include" && self.active == NAME => below = value,
                "sysctl" => drop(self.sections.entry("sysctl").or_default().entry(key).or_insert(value)),
                "cpu" => drop(self.sections.entry("cpu").or_default().entry(key).or_insert(value)),
                _ => {}
            }
        }
        let mut text = banner("what tuned sets after the profile it includes");
        let _ = write!(text, "[main]\nsummary={below} and what landspeed tune persist keeps\ninclude={below}\n");
        for (section, lines) in &self.sections {
            let _ = writeln!(text, "\n[{section}]");
            for (key, value) in lines {
                let _ = writeln!(text, "{key}={value}");
            }
        }
        plan.file(root, &file, text)?;
        // In automatic mode tuned would select a profile itself.
        if read(&root.join(MODE))?.is_some() {
            plan.file(root, MODE, "manual\n".into())?;
        }
        // Last, because the named profile must exist.
        plan.file(root, ACTIVE, format!("{NAME}\n"))?;
        plan.notes.push(format!(
            "tuned reads its profile when it starts: from the next boot on, or now with `tuned-adm profile {NAME}`"
        ));
        Ok(())
    }
}

/// Name of the option in tuned's `cpu` plug-in.
fn option(target: &Target) -> Option<&'static str> {
    match target {
        Target::Governor { .. } => Some("governor"),
        Target::EnergyPreference { .. } => Some("energy_performance_preference"),
        Target::ResumeLatency { .. } => Some("pm_qos_resume_latency_us"),
        _ => None,
    }
}
