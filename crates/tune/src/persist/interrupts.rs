//! Where interrupts are handled. Their numbers differ from boot to boot and no configuration file of the system names them: a
//! service of our own finds them by their names, once, when the host is up.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use landspeed_model::Target;

use super::{Kept, PersistPlan, banner, read};
use crate::Value;
use crate::transaction::TuneError;

const SERVICE: &str = "etc/systemd/system/landspeed-interrupts.service";
/// Pulls in the service by a drop-in file instead of a link.
const WANTED: &str = "etc/systemd/system/multi-user.target.d/landspeed-interrupts.conf";

pub(super) fn plan(kept: &[Kept<'_>], root: &Path, plan: &mut PersistPlan) -> Result<(), TuneError> {
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    let obstacle = obstacle(root);
    for setting in kept {
        let (Target::InterruptAffinity { name, .. }, Value::Text(value)) = (setting.target, setting.value) else {
            continue;
        };
        let value = value.trim();
        // What goes into a command line of a shell and a unit: nothing that either would read as more than a name.
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._@:-".contains(c));
        let plain_list = value.chars().all(|c| c.is_ascii_digit() || ",-".contains(c));
        if let Some(why) = obstacle.as_ref() {
            plan.hand(setting.target, format!("{why}; its CPUs are {value}"));
        } else if !plain || !plain_list {
            plan.hand(
                setting.target,
                format!("its name has special characters: write {value} to its smp_affinity_list in a service"),
            );
        } else {
            lines.insert(format!("ExecStart=/bin/sh -c 'for i in /proc/irq/*/{name}; do echo "), value.to_owned());
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
        "[Unit]\nDescription=Interrupt affinities kept by landspeed\nAfter=network.target\n\n[Service]\nType=oneshot\n\
         RemainAfterExit=yes\n",
    );
    for line in all {
        let _ = writeln!(text, "{line}");
    }
    plan.file(root, SERVICE, text)?;
    let wanted = banner("the service is wanted at boot") + "[Unit]\nWants=landspeed-interrupts.service\n";
    plan.file(root, WANTED, wanted)
}

/// Why a service would not do; `None` if it would.
fn obstacle(root: &Path) -> Option<String> {
    if !root.join("usr/lib/systemd/systemd").exists() && !root.join("lib/systemd/systemd").exists() {
        return Some(
            "this host has no systemd: write it to its smp_affinity_list where the distribution starts things".into(),
        );
    }
    let wants = "etc/systemd/system/multi-user.target.wants/irqbalance.service";
    // A link, often to a unit of another root.
    std::fs::symlink_metadata(root.join(wants)).is_ok().then(|| {
        "irqbalance is started at boot and moves every interrupt that is not banned. Ban it there (IRQBALANCE_ARGS=--banirq) or \
         disable it"
            .into()
    })
}
