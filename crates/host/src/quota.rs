//! CPU quotas (CFS bandwidth control) of a process's control groups, and how often they were used up.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use landspeed_model::QuotaUse;

use crate::files::Files;
use crate::host::Host;
use crate::roots::roots;

/// Maximum length of `cpu.stat`, bytes.
const MAX_STAT_BYTES: usize = 1024;

/// Where control groups are mounted.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// A control group with a CPU quota. Its `cpu.stat` stays open, so that a reading costs one system call.
#[derive(Debug)]
pub struct Quota {
    group: String,
    directory: String,
    cores: f64,
    stat: File,
}

/// Counters of a quota at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaCounters {
    group: String,
    periods: u64,
    throttled_periods: u64,
}

impl Quota {
    /// Returns the control groups with a CPU quota among those of a process and their ancestors; `process` is its
    /// directory, such as `/proc/self`. An error says why they are not visible.
    pub fn of_process(files: &Files, process: &str) -> Result<Vec<Self>, String> {
        quotas(files, &files.read(&format!("{process}/cgroup")).map_err(|error| error.to_string())?)
    }

    /// Reads the counters; `None` if the group has none, or is gone.
    pub fn read(&self) -> Option<QuotaCounters> {
        let mut text = [0; MAX_STAT_BYTES];
        let length = self.stat.read_at(&mut text, 0).ok()?;
        let (periods, throttled_periods) = throttled(text.get(..length)?)?;
        Some(QuotaCounters { group: self.group.clone(), periods, throttled_periods })
    }

    /// Returns the use of the quota that was used up most often between two readings of `quotas`.
    pub fn most_throttled(quotas: &[Self], before: &[QuotaCounters], now: &[QuotaCounters]) -> Option<QuotaUse> {
        let uses = now.iter().filter_map(|now| {
            let before = before.iter().find(|before| before.group == now.group)?;
            let quota = quotas.iter().find(|quota| quota.group == now.group)?;
            Some(QuotaUse {
                group: now.group.clone(),
                directory: quota.directory.clone(),
                cores: quota.cores,
                periods: now.periods.saturating_sub(before.periods),
                throttled_periods: now.throttled_periods.saturating_sub(before.throttled_periods),
            })
        });
        uses.max_by_key(|quota| quota.throttled_periods)
    }
}

/// Control groups with a CPU quota among those of a `/proc/PID/cgroup` and their ancestors.
fn quotas(files: &Files, text: &str) -> Result<Vec<Quota>, String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let mounts: &[&str] = match controllers {
            "" => &["", "/unified"],
            names if names.split(',').any(|name| name == "cpu") => &["/cpu", "/cpu,cpuacct"],
            _ => continue,
        };
        // The root cgroup has no quota.
        let ends = path.match_indices('/').skip(1).map(|(at, _)| at).chain([path.len()]);
        let groups: Vec<&str> = ends.filter_map(|end| path.get(..end)).filter(|group| group.len() > 1).collect();
        if groups.is_empty() {
            continue;
        }
        let below = |root: String| mounts.iter().map(move |mount| format!("{root}{CONTROL_GROUPS}{mount}"));
        let visible = |root: &String| Host::names(files, &format!("{root}{path}"), "").is_ok();
        let Some(root) = roots(files).flat_map(below).find(visible) else {
            // A hybrid hierarchy lists its version 2 groups too; they have no CPU controller.
            if controllers.is_empty() && text.lines().count() > 1 {
                continue;
            }
            return Err(format!("control group {path} is not visible below /sys/fs/cgroup"));
        };
        found.extend(groups.into_iter().filter_map(|group| quota(files, format!("{root}{group}"), group)));
    }
    Ok(found)
}

fn quota(files: &Files, directory: String, group: &str) -> Option<Quota> {
    let number = |name: &str| files.number::<f64>(&format!("{directory}/{name}")).ok();
    let cores = match files.word(&format!("{directory}/cpu.max")) {
        Ok(text) => {
            let (quota, period) = text.split_once(' ')?;
            quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?
        }
        Err(_) => number("cpu.cfs_quota_us").filter(|&quota| quota > 0.0)? / number("cpu.cfs_period_us")?,
    };
    let stat = files.open(&format!("{directory}/cpu.stat")).ok()?;
    cores.is_finite().then(|| Quota { group: group.to_owned(), directory, cores, stat })
}

/// `nr_periods` and `nr_throttled` of `cpu.stat`.
fn throttled(text: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(text).ok()?;
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some((value("nr_periods ")?, value("nr_throttled ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        }
        root
    }

    #[test]
    fn counters_are_found_by_name() {
        assert_eq!(throttled(b"usage_usec 5\nnr_periods 7\nnr_throttled 3\n"), Some((7, 3)));
        assert_eq!((throttled(b""), throttled(b"nr_periods x\nnr_throttled 3\n")), (None, None));
    }

    #[test]
    fn version_1_quotas_are_in_the_cpu_hierarchy() {
        let root = tree(&[
            ("proc/self/cgroup", "5:cpu,cpuacct:/docker/a\n0::/docker/a\n"),
            ("sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.cfs_quota_us", "30000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.stat", "nr_periods 4\nnr_throttled 1\n"),
        ]);
        let quotas = Quota::of_process(&Files::recorded(root.path()), "/proc/self").expect("visible");
        let before: Vec<_> = quotas.iter().filter_map(Quota::read).collect();
        std::fs::write(
            root.path().join("sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.stat"),
            "nr_periods 54\nnr_throttled 35\n",
        )
        .expect("a file");
        let now: Vec<_> = quotas.iter().filter_map(Quota::read).collect();
        let quota = Quota::most_throttled(&quotas, &before, &now).expect("a quota");
        assert_eq!((quota.cores, quota.periods, quota.throttled_periods), (0.3, 50, 34));
        assert_eq!(quota.directory, "/sys/fs/cgroup/cpu,cpuacct/docker/a");
    }

    #[test]
    fn a_hidden_group_is_unknown_and_not_without_quota() {
        let hidden = tree(&[("proc/self/cgroup", "0::/a.slice\n")]);
        let error = Quota::of_process(&Files::recorded(hidden.path()), "/proc/self").expect_err("not mounted");
        assert!(error.contains("/a.slice is not visible"), "{error}");
        // `ip netns exec` mounts an empty /sys; the one of process 1 shows the group.
        let beside = tree(&[
            ("proc/self/cgroup", "0::/a.slice\n"),
            ("proc/1/root/sys/fs/cgroup/a.slice/cpu.max", "50000 100000\n"),
            ("proc/1/root/sys/fs/cgroup/a.slice/cpu.stat", "nr_periods 4\nnr_throttled 1\n"),
        ]);
        assert_eq!(
            Quota::of_process(&Files::recorded(beside.path()), "/proc/self").map(|quotas| quotas.len()),
            Ok(1)
        );
        let root = tree(&[("proc/self/cgroup", "0::/\n")]);
        assert_eq!(Quota::of_process(&Files::recorded(root.path()), "/proc/self").map(|quotas| quotas.len()), Ok(0));
    }
}
