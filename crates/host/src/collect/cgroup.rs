//! The cgroup of this process, and the limits of it and of those above it.

use landspeed_model::{CgroupFacts, Fact};

use crate::host::{FactReader, known};
use crate::parse::field_of_words;

const MOUNT: &str = "/sys/fs/cgroup";
/// A version 1 limit from here on means no limit: the kernel writes the largest number of pages.
const NO_MEMORY_LIMIT: u64 = 1 << 62;

/// Cgroup version, with the mount points as in systemd.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
    Hybrid,
}

pub(super) fn read(look: FactReader<'_>) -> CgroupFacts {
    let text = match known(look.read("/proc/self/cgroup")) {
        Fact::Known(text) => text,
        Fact::Absent(_) => return all_fields(&Fact::Absent("this kernel has no control groups".into())),
        Fact::Unknown(why) => return all_fields(&Fact::Unknown(why)),
    };
    // Lines `number:controllers:path`; version 2's is `0::path`.
    let paths: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':')).collect();
    let path_of = |controller: &str| {
        paths.iter().find(|(names, _)| names.split(',').any(|name| name == controller)).map(|&(_, path)| path)
    };
    let version = if look.exists(&format!("{MOUNT}/cgroup.controllers")) {
        Version::V2
    } else if paths.iter().all(|(names, _)| names.is_empty()) {
        return all_fields(&Fact::Unknown(format!("version 2 is not mounted at {MOUNT}")));
    } else if look.exists(&format!("{MOUNT}/unified/cgroup.controllers")) {
        Version::Hybrid
    } else {
        Version::V1
    };
    if version == Version::V2 {
        return read_v2(look, path_of("").unwrap_or("/"));
    }
    let mut facts = read_v1(look, &path_of);
    facts.version = Fact::Known(if version == Version::V1 { "v1".into() } else { "hybrid".into() });
    facts.path = path_of("cpu").map_or_else(|| Fact::Absent("no cpu controller".into()), |p| Fact::Known(p.into()));
    facts
}

fn all_fields(why: &Fact<()>) -> CgroupFacts {
    fn absent_or_unknown<T>(why: &Fact<()>) -> Fact<T> {
        match why {
            Fact::Absent(why) => Fact::Absent(why.clone()),
            Fact::Unknown(why) => Fact::Unknown(why.clone()),
            Fact::Known(()) => Fact::default(),
        }
    }
    CgroupFacts {
        version: absent_or_unknown(why),
        path: absent_or_unknown(why),
        cpu_millis: absent_or_unknown(why),
        cpus: absent_or_unknown(why),
        memory_max_bytes: absent_or_unknown(why),
        throttled_periods: absent_or_unknown(why),
    }
}

fn read_v2(look: FactReader<'_>, path: &str) -> CgroupFacts {
    let groups = ancestor_paths(MOUNT, path);
    let cpu = groups.iter().filter_map(|group| quota(&look.word(&format!("{group}/cpu.max")).ok()?)).min();
    let memory = groups.iter().filter_map(|group| look.number::<u64>(&format!("{group}/memory.max"))).min();
    let nearest = |file: &str| {
        let found = groups.iter().find_map(|group| look.word(&format!("{group}/{file}")).ok());
        found.filter(|word| !word.is_empty())
    };
    // The root cgroup has no quota statistics: it is never throttled.
    let throttled = groups
        .iter()
        .find_map(|group| field_of_words(&look.read(&format!("{group}/cpu.stat")).ok()?, "nr_throttled"));
    CgroupFacts {
        version: Fact::Known("v2".into()),
        path: Fact::Known(path.into()),
        cpu_millis: none_if(cpu, "no control group up the tree has a cpu.max"),
        cpus: none_if(nearest("cpuset.cpus.effective"), "no control group up the tree has a cpuset"),
        memory_max_bytes: none_if(memory, "no control group up the tree has a memory.max"),
        throttled_periods: none_if(throttled, "no control group up the tree counts throttled periods"),
    }
}

fn read_v1<'a>(look: FactReader<'_>, path_of: &dyn Fn(&str) -> Option<&'a str>) -> CgroupFacts {
    let groups = |controller: &str, mounts: &[&str]| -> Vec<String> {
        let Some(path) = path_of(controller) else { return Vec::new() };
        mounts.iter().flat_map(|mount| ancestor_paths(&format!("{MOUNT}/{mount}"), path)).collect()
    };
    let cpu_groups = groups("cpu", &["cpu", "cpu,cpuacct"]);
    let cpu = cpu_groups.iter().filter_map(|group| {
        let number = |file: &str| look.word(&format!("{group}/{file}")).ok();
        // A quota of −1 means no limit.
        quota(&format!("{} {}", number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?))
    });
    let memory_groups = groups("memory", &["memory"]);
    let memory =
        memory_groups.iter().filter_map(|group| look.number::<u64>(&format!("{group}/memory.limit_in_bytes")));
    let cpus = groups("cpuset", &["cpuset"]).iter().find_map(|group| {
        let word = |file: &str| look.word(&format!("{group}/{file}")).ok().filter(|word| !word.is_empty());
        word("cpuset.effective_cpus").or_else(|| word("cpuset.cpus"))
    });
    let throttled = cpu_groups
        .iter()
        .find_map(|group| field_of_words(&look.read(&format!("{group}/cpu.stat")).ok()?, "nr_throttled"));
    CgroupFacts {
        cpu_millis: none_if(cpu.min(), "no control group up the tree has a quota"),
        cpus: none_if(cpus, "no cpuset controller"),
        memory_max_bytes: none_if(
            memory.filter(|&bytes| bytes < NO_MEMORY_LIMIT).min(),
            "no control group up the tree has a memory limit",
        ),
        throttled_periods: none_if(throttled, "no control group up the tree counts throttled periods"),
        ..CgroupFacts::default()
    }
}

fn none_if<T>(found: Option<T>, why: &str) -> Fact<T> {
    found.map_or_else(|| Fact::Absent(why.into()), Fact::Known)
}

/// Returns the paths of the cgroup and of all above it, the nearest first. In a cgroup namespace the path may
/// begin with `/..`: groups above the mount are not visible.
fn ancestor_paths(mount: &str, path: &str) -> Vec<String> {
    /// The kernel's own limit is the maximum length of a path.
    const MAX_DEPTH: usize = 64;
    let inside = path.trim_end_matches('/').trim_start_matches("/..");
    let mut groups = Vec::new();
    let mut rest = inside;
    while !rest.is_empty() && groups.len() < MAX_DEPTH {
        groups.push(format!("{mount}{rest}"));
        rest = rest.rfind('/').map_or("", |at| &rest[..at]);
    }
    groups.push(mount.into());
    groups
}

/// Parses `quota period` in microseconds as thousandths of a CPU; `None` without a limit (`max`, −1).
fn quota(text: &str) -> Option<u32> {
    let mut words = text.split_whitespace();
    let (quota, period): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    u32::try_from(quota.checked_mul(1000)?.checked_div(period)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_thousandths_of_a_cpu_or_none() {
        assert_eq!(quota("150000 100000"), Some(1500));
        for none in ["max 100000", "-1 100000", "", "5", "5 0", "18446744073709551615 1"] {
            assert_eq!(quota(none), None, "{none}");
        }
    }

    #[test]
    fn cgroups_are_listed_up_to_the_mount() {
        assert_eq!(ancestor_paths("/m", "/a/b"), ["/m/a/b", "/m/a", "/m"]);
        assert_eq!(ancestor_paths("/m", "/"), ["/m"]);
        assert_eq!(ancestor_paths("/m", "/../c"), ["/m/c", "/m"]);
    }
}
