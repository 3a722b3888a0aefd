//! Search for the process that holds a socket, with its systemd unit and container.
//!
//! `/proc/PID/fd` is the only source, and reading it for all processes is expensive. So only requested sockets
//! are searched for, first in processes that hold others; later, results are checked instead of searched for
//! again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use landspeed_host::Host;
use landspeed_sys::foreign::{ForeignSocket, options_of};

/// Maximum number of processes read in one search.
const MAX_PROCESSES: usize = 65_536;
/// Interval at which known results are checked, nanoseconds.
const CHECK_NS: u64 = 5_000_000_000;
/// Interval at which a socket that was not found is searched for again, nanoseconds.
const RETRY_NS: u64 = 10_000_000_000;

/// A process that holds a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id in this PID namespace.
    pub pid: u32,
    /// Command name (`comm`).
    pub command: String,
    /// systemd unit, derived from its cgroup.
    pub unit: Option<String>,
    /// Container, derived from its cgroup.
    pub container: Option<String>,
    /// Number of threads.
    pub threads: usize,
}

/// Descriptor in which a socket was found.
#[derive(Debug)]
struct Holder {
    pid: u32,
    /// Path `/proc/PID/fd/N`.
    path: String,
    checked_ns: u64,
}

/// Known holders of sockets, and their processes.
#[derive(Debug, Default)]
pub struct Processes {
    holders: HashMap<u32, Holder>,
    not_found_ns: HashMap<u32, u64>,
    processes: BTreeMap<u32, Process>,
    denied: bool,
}

impl Processes {
    /// Searches for the processes that hold `inodes`, unless known and recently checked. Forgets sockets that are
    /// not requested.
    pub fn find(&mut self, host: &dyn Host, inodes: &HashSet<u32>, now_ns: u64) {
        self.holders.retain(|inode, _| inodes.contains(inode));
        self.not_found_ns.retain(|inode, _| inodes.contains(inode));
        for (inode, holder) in &mut self.holders {
            if now_ns.saturating_sub(holder.checked_ns) >= CHECK_NS {
                holder.checked_ns = now_ns;
                // Threads and name may have changed.
                self.processes.remove(&holder.pid);
                if host.link(&holder.path).ok().and_then(|target| socket_inode(&target)) != Some(*inode) {
                    holder.pid = 0;
                }
            }
        }
        self.holders.retain(|_, holder| holder.pid != 0);
        let missing = |inode: &&u32| {
            **inode != 0
                && !self.holders.contains_key(inode)
                && self.not_found_ns.get(inode).is_none_or(|at| now_ns.saturating_sub(*at) >= RETRY_NS)
        };
        let mut wanted: HashSet<u32> = inodes.iter().filter(missing).copied().collect();
        if !wanted.is_empty() {
            self.search(host, &mut wanted, now_ns);
            self.not_found_ns.extend(wanted.into_iter().map(|inode| (inode, now_ns)));
        }
        let held: HashSet<u32> = self.holders.values().map(|holder| holder.pid).collect();
        self.processes.retain(|pid, _| held.contains(pid));
        for pid in held {
            self.processes.entry(pid).or_insert_with(|| describe(host, pid));
        }
    }

    /// Searches processes until all wanted sockets are found: first those known to hold sockets, then the youngest
    /// first. If a parent and a child hold the same socket, the child is assumed to use it.
    fn search(&mut self, host: &dyn Host, wanted: &mut HashSet<u32>, now_ns: u64) {
        self.denied = false;
        let mut order: Vec<u32> = self.processes.keys().rev().copied().collect();
        let mut all: Vec<u32> =
            host.names("/proc", "").unwrap_or_default().iter().filter_map(|name| name.parse().ok()).collect();
        all.sort_unstable_by_key(|pid| std::cmp::Reverse(*pid));
        order.extend(all);
        order.truncate(MAX_PROCESSES);
        for pid in order {
            match sockets_of(host, pid) {
                Ok(sockets) => {
                    for (inode, path) in sockets {
                        if wanted.remove(&inode) {
                            self.holders.insert(inode, Holder { pid, path, checked_ns: now_ns });
                        }
                    }
                }
                Err(why) => self.denied |= why.kind() == io::ErrorKind::PermissionDenied,
            }
            if wanted.is_empty() {
                return;
            }
        }
    }

    /// The process that holds a socket, or the reason why it is unknown.
    pub fn of(&self, inode: u32) -> Result<&Process, &'static str> {
        let holder = self.holders.get(&inode).and_then(|holder| self.processes.get(&holder.pid));
        holder.ok_or(match () {
            () if inode == 0 => "no process holds the socket any more",
            () if self.denied => "held by a process of another user (root sees all processes)",
            () => "no process of this PID namespace holds the socket",
        })
    }

    /// Descriptor number of a socket in the process that holds it.
    pub fn descriptor(&self, inode: u32) -> Option<u32> {
        self.holders.get(&inode)?.path.rsplit('/').next()?.parse().ok()
    }

    /// Options of a socket that sock_diag does not report; `None` without root.
    pub fn options(&self, inode: u32, cookie: u64) -> Option<ForeignSocket> {
        options_of(self.holders.get(&inode)?.pid, self.descriptor(inode)?, cookie).ok()
    }

    /// Whether there were processes whose descriptors could not be read.
    pub fn denied(&self) -> bool {
        self.denied
    }
}

/// Inodes of a process's sockets.
pub(crate) fn inodes_of(host: &dyn Host, pid: u32) -> io::Result<Vec<u32>> {
    Ok(sockets_of(host, pid)?.into_iter().map(|(inode, _)| inode).collect())
}

/// Processes in a cgroup and its descendants. `path` is as in `/proc/PID/cgroup`, or the directory itself.
pub(crate) fn processes_in_cgroup(host: &dyn Host, path: &str) -> io::Result<Vec<u32>> {
    let mounts = ["", "/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/cpu"];
    let roots = landspeed_host::roots(host).flat_map(|root| mounts.map(|mount| format!("{root}{mount}")));
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for root in roots {
        let directory = format!("{root}/{}", path.trim_matches('/'));
        match host.read(&format!("{directory}/cgroup.procs")) {
            Ok(text) => {
                let mut found = Vec::new();
                collect_below(host, &directory, &text, &mut found, 0);
                return Ok(found);
            }
            // The root of an ancestor may be closed, whether the group exists or not.
            Err(_) if root.starts_with("/proc/") => {}
            Err(why) => last = why,
        }
    }
    Err(last)
}

/// Adds the processes of a cgroup and its descendants.
fn collect_below(host: &dyn Host, directory: &str, processes: &str, found: &mut Vec<u32>, depth: usize) {
    /// Maximum depth searched. By default cgroups have no depth limit (`cgroup.max.depth`); systemd uses about five
    /// levels.
    const MAX_DEPTH: usize = 32;
    found.extend(processes.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    if depth == MAX_DEPTH || found.len() >= MAX_PROCESSES {
        return;
    }
    for name in host.names(directory, "").unwrap_or_default() {
        let child = format!("{directory}/{name}");
        if let Ok(text) = host.read(&format!("{child}/cgroup.procs")) {
            collect_below(host, &child, &text, found, depth + 1);
        }
    }
}

fn sockets_of(host: &dyn Host, pid: u32) -> io::Result<Vec<(u32, String)>> {
    let directory = format!("/proc/{pid}/fd");
    let mut found = Vec::new();
    for name in host.names(&directory, "")? {
        let path = format!("{directory}/{name}");
        if let Some(inode) = host.link(&path).ok().and_then(|target| socket_inode(&target)) {
            found.push((inode, path));
        }
    }
    Ok(found)
}

/// Parses `socket:[1234]`.
fn socket_inode(target: &str) -> Option<u32> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn describe(host: &dyn Host, pid: u32) -> Process {
    let word = |name: &str| host.read(&format!("/proc/{pid}/{name}")).unwrap_or_default();
    let (unit, container) = place(&word("cgroup"));
    let command: String = word("comm").trim_end().chars().filter(|c| !c.is_control()).collect();
    let threads = host.names(&format!("/proc/{pid}/task"), "").map_or(0, |names| names.len());
    Process { pid, command, unit, container, threads }
}

/// Unit and container, from the contents of `/proc/PID/cgroup`.
fn place(text: &str) -> (Option<String>, Option<String>) {
    let parts = || text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).flat_map(|path| path.split('/').rev());
    let unit = parts().find(|part| [".service", ".scope"].into_iter().any(|kind| part.ends_with(kind)));
    let container = parts().find_map(container_in);
    (unit.map(str::to_owned), container)
}

/// Container in a component of a cgroup path: the id (64 hex digits, shortened to 12) in `docker-HEX.scope`,
/// `cri-containerd-HEX.scope` or `HEX`, or the name in `lxc.payload.NAME`.
fn container_in(part: &str) -> Option<String> {
    if let Some(name) = part.strip_prefix("lxc.payload.") {
        return Some(name.to_owned());
    }
    let part = part.strip_suffix(".scope").unwrap_or(part);
    let identifier = part.rsplit(['-', ':']).next()?;
    let hex = identifier.len() == 64 && identifier.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex.then(|| identifier[..12].to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use landspeed_host::Files;

    use super::*;

    /// Creates a process in a recorded `/proc`.
    fn process(root: &Path, pid: u32, command: &str, cgroup: &str, sockets: &[u32]) {
        let directory = root.join(format!("proc/{pid}"));
        std::fs::create_dir_all(directory.join("fd")).expect("a directory");
        std::fs::create_dir_all(directory.join(format!("task/{pid}"))).expect("a directory");
        std::fs::write(directory.join("comm"), format!("{command}\n")).expect("a file");
        std::fs::write(directory.join("cgroup"), cgroup).expect("a file");
        for (number, inode) in sockets.iter().enumerate() {
            symlink(format!("socket:[{inode}]"), directory.join(format!("fd/{number}"))).expect("a link");
        }
    }

    #[test]
    fn process_unit_and_container_of_a_socket_are_found() {
        let root = tempfile::tempdir().expect("a directory");
        process(root.path(), 10, "sshd", "0::/system.slice/ssh.service\n", &[7, 8]);
        process(root.path(), 11, "sshd-session", "0::/user.slice/user-1.slice/session-3.scope\n", &[8]);
        let id = "0123456789abcdef".repeat(4);
        process(root.path(), 12, "nginx", &format!("0::/system.slice/docker-{id}.scope\n"), &[9]);
        let host = Files::recorded(root.path());
        let mut processes = Processes::default();
        processes.find(&host, &HashSet::from([7, 8, 9, 99]), 0);
        assert_eq!(processes.of(7).map(|p| (p.pid, p.unit.as_deref())), Ok((10, Some("ssh.service"))));
        let child = processes.of(8).expect("found");
        assert_eq!((child.pid, child.command.as_str()), (11, "sshd-session"), "the child does the work");
        assert_eq!(processes.of(9).expect("found").container.as_deref(), Some("0123456789ab"));
        assert!(processes.of(99).unwrap_err().contains("PID namespace"));
        assert!(processes.of(0).unwrap_err().contains("any more"));
    }

    #[test]
    fn sockets_passed_to_another_process_are_found() {
        let root = tempfile::tempdir().expect("a directory");
        process(root.path(), 10, "inetd", "", &[7]);
        let host = Files::recorded(root.path());
        let mut processes = Processes::default();
        let wanted = HashSet::from([7]);
        processes.find(&host, &wanted, 0);
        assert_eq!(processes.of(7).expect("found").pid, 10);
        std::fs::remove_dir_all(root.path().join("proc/10")).expect("gone");
        process(root.path(), 5, "worker", "", &[7]);
        processes.find(&host, &wanted, CHECK_NS);
        assert_eq!(processes.of(7).expect("found").command, "worker");
    }

    #[test]
    fn cgroups_include_processes_of_their_descendants() {
        let root = tempfile::tempdir().expect("a directory");
        let slice = root.path().join("sys/fs/cgroup/system.slice");
        std::fs::create_dir_all(slice.join("nginx.service")).expect("a directory");
        std::fs::write(slice.join("cgroup.procs"), "").expect("a file");
        std::fs::write(slice.join("nginx.service/cgroup.procs"), "12\n13\n").expect("a file");
        let host = Files::recorded(root.path());
        assert_eq!(processes_in_cgroup(&host, "/system.slice").expect("there"), [12, 13]);
        assert!(processes_in_cgroup(&host, "/none.slice").is_err());
        let beside = root.path().join("proc/1/root/sys/fs/cgroup/hidden.slice");
        std::fs::create_dir_all(&beside).expect("a directory");
        std::fs::write(beside.join("cgroup.procs"), "14\n").expect("a file");
        assert_eq!(processes_in_cgroup(&host, "/hidden.slice").expect("there"), [14]);
    }

    #[test]
    fn invalid_cgroup_paths_have_no_unit_or_container() {
        for text in ["", "0::/", "garbage", "0::/a/b\n1:cpu:", "::::", &"x".repeat(10_000)] {
            assert_eq!(place(text), (None, None), "{text:.20}");
        }
        assert_eq!(place("0::/lxc.payload.web/init.scope\n").1.as_deref(), Some("web"));
    }
}
