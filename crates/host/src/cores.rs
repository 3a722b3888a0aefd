//! Topology of cores, for placing threads.

use crate::files::Files;
use crate::parse::list_numbers;

/// A logical CPU, its physical core and its NUMA node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuLocation {
    /// Number of the logical CPU.
    pub cpu: u32,
    /// First of the logical CPUs that share its physical core (SMT); its own number if the topology is unknown.
    pub physical: u32,
    /// NUMA node; 0 if unknown.
    pub node: u32,
}

/// Returns the location of each of `cpus`, from sysfs.
pub fn cpu_locations(files: &Files, cpus: &[u32]) -> Vec<CpuLocation> {
    const NODES: &str = "/sys/devices/system/node";
    let list = |path: &str| files.read(path).ok().as_deref().and_then(list_numbers).unwrap_or_default();
    let nodes: Vec<(u32, Vec<u32>)> = list(&format!("{NODES}/online"))
        .into_iter()
        .map(|node| (node, list(&format!("{NODES}/node{node}/cpulist"))))
        .collect();
    let site = |&cpu: &u32| {
        let siblings = list(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
        let node = nodes.iter().find(|(_, cpus)| cpus.contains(&cpu)).map_or(0, |(node, _)| *node);
        CpuLocation { cpu, physical: siblings.first().copied().unwrap_or(cpu), node }
    };
    cpus.iter().map(site).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_and_nodes_come_from_sysfs() {
        let root = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        };
        write("sys/devices/system/node/online", "0,2\n");
        write("sys/devices/system/node/node0/cpulist", "0-1\n");
        write("sys/devices/system/node/node2/cpulist", "2-3\n");
        write("sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "2-3\n");
        let sites = cpu_locations(&Files::recorded(root.path()), &[0, 3]);
        let expected = [CpuLocation { cpu: 0, physical: 0, node: 0 }, CpuLocation { cpu: 3, physical: 2, node: 2 }];
        assert_eq!(sites, expected);
    }
}
