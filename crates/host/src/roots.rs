//! Root directories in which this process may see what its own hides.

use std::iter::{once, successors};

use crate::host::Host;

/// Maximum number of ancestors besides process 1.
const MAX_ANCESTORS: usize = 16;

/// Returns the paths of root directories without a final `/`: the own one, which is empty, then those of the ancestors, nearest
/// first, to process 1. `ip netns exec` mounts another `/sys`, without control groups; root may look through these.
pub fn roots(host: &dyn Host) -> impl Iterator<Item = String> {
    let parent = |of: String| -> Option<u32> {
        let status = host.read(&format!("/proc/{of}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
    };
    let ancestors = successors(parent("self".to_owned()), move |pid| parent(pid.to_string()));
    let ancestors = ancestors.take_while(|&pid| pid > 1).take(MAX_ANCESTORS).chain([1]);
    once(String::new()).chain(ancestors.map(|pid| format!("/proc/{pid}/root")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Files;

    #[test]
    fn roots_are_those_of_the_ancestors() {
        let root = tempfile::tempdir().expect("a directory");
        for (pid, parent) in [("self", 77), ("77", 30), ("30", 1)] {
            let directory = root.path().join("proc").join(pid);
            std::fs::create_dir_all(&directory).expect("a directory");
            std::fs::write(directory.join("status"), format!("Name:\tsh\nPPid:\t{parent}\n")).expect("a file");
        }
        let found: Vec<_> = roots(&Files::recorded(root.path())).collect();
        assert_eq!(found, ["", "/proc/77/root", "/proc/30/root", "/proc/1/root"]);
        let found: Vec<_> = roots(&Files::recorded(root.path().join("none"))).collect();
        assert_eq!(found, ["", "/proc/1/root"]);
    }
}
