//! Persists interrupt affinities. Interrupt numbers change between boots, and no system configuration file
//! refers to interrupts by name: a service written here finds them by name, once, after boot.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use landspeed_model::Target;

use super::plan::{PersistPlan, PersistedSetting, banner, read};
use crate::Value;
use crate::error::TuneError;

const SERVICE: &str = "etc/systemd/system/landspeed-interrupts.service";
/// Drop-in that pulls in the service, instead of a link.
const WANTED: &str = "etc/systemd/system/multi-user.target.d/landspeed-interrupts.conf";

pub(super) fn plan(kept: &[PersistedSetting<'_>], root: &Path, plan: &mut PersistPlan) -> Result<(), TuneError> {
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    let unsupported_reason = unsupported_reason(root);
    for setting in kept {
        let (Target::InterruptAffinity { name, .. }, Value::Text(value)) = (setting.target, setting.value) else {
            continue;
        };
        let value = value.trim();
        // Both go into a shell command in a unit: allow only characters without special meaning.
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._@:-".contains(c));
        let plain_list = value.chars().all(|c| c.is_ascii_digit() || ",-".contains(c));
        if let Some(why) = unsupported_reason.as_ref() {
            plan.hand(setting.target, format!("{why}; its CPUs are {value}"));
        } else if !plain || !plain_list {
            plan.hand(
                setting.target,
                format!("its name has special characters: write {value} to its smp_affinity_list in a service"),
            );
        } else {
            lines.insert(start_of_line(name), value.to_owned());
            plan.covered.push(setting.target.to_string());
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    let old = read(&root.join(SERVICE))?.unwrap_or_default();
    let mut all: Vec<String> = old
        .lines()
        .filter(|line| line.starts_with("ExecStart=") && !lines.keys().any(|place| line.starts_with(place.as_str())))
        .map(ToOwned::to_owned)
        .collect();
    all.extend(
        lines.iter().map(|(place, value)| format!("{place}{value} > \"$${{i%%/*}}/smp_affinity_list\"; done'")),
    );
    all.sort_unstable();
    let mut text = banner("where interrupts are handled, by their names");
    text.push_str(
        // Without the default dependencies the boot does not wait for the service.
        "[Unit]\nDescription=Interrupt affinities kept by landspeed\nDefaultDependencies=no\n\
         After=sysinit.target network.target\nConflicts=shutdown.target\nBefore=shutdown.target\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\n",
    );
    for line in all {
        let _ = writeln!(text, "{line}");
    }
    plan.file(root, SERVICE, text)?;
    let wanted = banner("the service is wanted at boot") + "[Unit]\nWants=landspeed-interrupts.service\n";
    plan.file(root, WANTED, wanted)
}

/// Returns the command that sets the CPUs of the interrupts with this name, up to the CPUs. A driver requests its interrupts
/// when the interface is set up, which network managers do after the boot has gone on: the command waits two minutes for
/// them.
fn start_of_line(name: &str) -> String {
    let files = format!("/proc/irq/*/{name}");
    format!(
        "ExecStart=/bin/sh -c 'n=0; until ls -d {files} >/dev/null 2>&1 || [ $$n = 120 ]; do sleep 1; n=$$((n+1)); done; \
         for i in {files}; do echo "
    )
}

/// Returns why a service does not work on this host; `None` if it does.
fn unsupported_reason(root: &Path) -> Option<String> {
    if !root.join("usr/lib/systemd/systemd").exists() && !root.join("lib/systemd/systemd").exists() {
        return Some(
            "this host has no systemd: write it to its smp_affinity_list where the distribution starts things".into(),
        );
    }
    let wants = "etc/systemd/system/multi-user.target.wants/irqbalance.service";
    // A masked service is an empty file or a link to /dev/null, and is not started although it is wanted.
    let mask = root.join("etc/systemd/system/irqbalance.service");
    let is_masked = std::fs::read_link(&mask).is_ok_and(|to| to == Path::new("/dev/null"))
        || std::fs::metadata(&mask).is_ok_and(|file| file.len() == 0);
    // Checked as a link, because its target may be in another root.
    (!is_masked && std::fs::symlink_metadata(root.join(wants)).is_ok()).then(|| {
        "irqbalance is started at boot and moves every interrupt that is not banned. Ban it there (IRQBALANCE_ARGS=--banirq) or \
         disable it"
            .into()
    })
}
