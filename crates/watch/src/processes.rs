//! Which process holds a socket, and where it runs.
//!
//! `/proc/PID/fd` is the only source, and reading it for all processes is expensive. So only requested sockets are searched for,
//! first in processes that hold others; later, results are checked instead of searched for again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use landspeed_host::Host;
use landspeed_sys::foreign::incoming_cpu_of;

/// No more processes than this are looked at in one search.
const MOST_PROCESSES: usize = 65_536;
/// What is known is checked after this time, nanoseconds.
const CHECK_NS: u64 = 5_000_000_000;
/// A socket that was not found is looked for again after this time, nanoseconds.
const RETRY_NS: u64 = 10_000_000_000;

/// A process that holds a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number in this PID namespace.
    pub pid: u32,
    /// Its name (`comm`).
    pub command: String,
    /// Its systemd unit, from its control group.
    pub unit: Option<String>,
    /// Its container, from its control group.
    pub container: Option<String>,
    /// Threads it has.
    pub threads: usize,
}

/// Where a socket was found.
#[derive(Debug)]
struct Holder {
    pid: u32,
    /// `/proc/PID/fd/N`.
    path: String,
    checked_ns: u64,
}

/// What is known of sockets and processes.
#[derive(Debug, Default)]
pub struct Processes {
    holders: HashMap<u32, Holder>,
    missed_ns: HashMap<u32, u64>,
    processes: BTreeMap<u32, Process>,
    denied: bool,
}

impl Processes {
    /// Looks for the processes that hold `inodes`, if it is not known or was not checked lately. Sockets that are not asked for
    /// are forgotten.
    pub fn find(&mut self, host: &dyn Host, inodes: &HashSet<u32>, now_ns: u64) {
        self.holders.retain(|inode, _| inodes.contains(inode));
        self.missed_ns.retain(|inode, _| inodes.contains(inode));
        for (inode, holder) in &mut self.holders {
            if now_ns.saturating_sub(holder.checked_ns) >= CHECK_NS {
                holder.checked_ns = now_ns;
                // Its threads and its name may have changed.
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
                && self.missed_ns.get(inode).is_none_or(|at| now_ns.saturating_sub(*at) >= RETRY_NS)
        };
        let mut wanted: HashSet<u32> = inodes.iter().filter(missing).copied().collect();
        if !wanted.is_empty() {
            self.search(host, &mut wanted, now_ns);
            self.missed_ns.extend(wanted.into_iter().map(|inode| (inode, now_ns)));
        }
        let held: HashSet<u32> = self.holders.values().map(|holder| holder.pid).collect();
        self.processes.retain(|pid, _| held.contains(pid));
        for pid in held {
            self.processes.entry(pid).or_insert_with(|| describe(host, pid));
        }
    }

    /// Looks through processes until everything wanted is found: first those known to hold sockets, then the youngest first. Of a
    /// parent and a child that hold the same socket, the child does the work.
    fn search(&mut self, host: &dyn Host, wanted: &mut HashSet<u32>, now_ns: u64) {
        self.denied = false;
        let mut order: Vec<u32> = self.processes.keys().rev().copied().collect();
        let mut all: Vec<u32> =
            host.names("/proc", "").unwrap_or_default().iter().filter_map(|name| name.parse().ok()).collect();
        all.sort_unstable_by_key(|pid| std::cmp::Reverse(*pid));
        order.extend(all);
        order.truncate(MOST_PROCESSES);
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

    /// The process that holds a socket, or why it is not known.
    pub fn of(&self, inode: u32) -> Result<&Process, &'static str> {
        let holder = self.holders.get(&inode).and_then(|holder| self.processes.get(&holder.pid));
        holder.ok_or(match () {
            () if inode == 0 => "no process holds the socket any more",
            () if self.denied => "held by a process of another user (root sees all processes)",
            () => "no process of this PID namespace holds the socket",
        })
    }

    /// Core that took in the last segment of a socket. `None` without root, or before the first segment.
    pub fn receive_cpu(&self, inode: u32, cookie: u64) -> Option<u32> {
        let holder = self.holders.get(&inode)?;
        let fd = holder.path.rsplit('/').next()?.parse().ok()?;
        incoming_cpu_of(holder.pid, fd, cookie).ok()
    }

    /// Whether processes were found whose sockets may not be seen.
    pub fn denied(&self) -> bool {
        self.denied
    }
}

/// Inodes of the sockets that a process holds.
pub(crate) fn inodes_of(host: &dyn Host, pid: u32) -> io::Result<Vec<u32>> {
    Ok(sockets_of(host, pid)?.into_iter().map(|(inode, _)| inode).collect())
}

/// Processes in a control group and those below it. `path` is as in `/proc/PID/cgroup`, or the directory itself.
pub(crate) fn processes_in_cgroup(host: &dyn Host, path: &str) -> io::Result<Vec<u32>> {
    let roots = ["", "/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"];
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for root in roots {
        let directory = format!("{root}/{}", path.trim_matches('/'));
        match host.read(&format!("{directory}/cgroup.procs")) {
            Ok(text) => {
                let mut found = Vec::new();
                below(host, &directory, &text, &mut found, 0);
                return Ok(found);
            }
            Err(why) => last = why,
        }
    }
    Err(last)
}

/// Adds a control group's processes and those of its children.
fn below(host: &dyn Host, directory: &str, processes: &str, found: &mut Vec<u32>, depth: usize) {
    /// The kernel's own default limit is lower (`cgroup.max.depth` has none, systemd makes five).
    const DEEPEST: usize = 32;
    found.extend(processes.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    if depth == DEEPEST || found.len() >= MOST_PROCESSES {
        return;
    }
    for name in host.names(directory, "").unwrap_or_default() {
        let child = format!("{directory}/{name}");
        if let Ok(text) = host.read(&format!("{child}/cgroup.procs")) {
            below(host, &child, &text, found, depth + 1);
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

/// `socket:[1234]`.
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

/// Unit and container of `/proc/PID/cgroup`.
fn place(text: &str) -> (Option<String>, Option<String>) {
    let parts = || text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).flat_map(|path| path.split('/').rev());
    let unit = parts().find(|part| [".service", ".scope"].into_iter().any(|kind| part.ends_with(kind)));
    let container = parts().find_map(container_in);
    (unit.map(str::to_owned), container)
}

/// The identifier in `docker-HEX.scope`, `cri-containerd-HEX.scope`, `HEX` (64 digits, shown as 12), and the name in
/// `lxc.payload.NAME`.
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

    /// A process in a recorded `/proc`.
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
    fn a_socket_leads_to_its_process_unit_and_container() {
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
    fn a_socket_that_changed_its_process_is_found() {
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
    fn a_cgroup_holds_the_processes_below_it() {
        let root = tempfile::tempdir().expect("a directory");
        let slice = root.path().join("sys/fs/cgroup/system.slice");
        std::fs::create_dir_all(slice.join("nginx.service")).expect("a directory");
        std::fs::write(slice.join("cgroup.procs"), "").expect("a file");
        std::fs::write(slice.join("nginx.service/cgroup.procs"), "12\n13\n").expect("a file");
        let host = Files::recorded(root.path());
        assert_eq!(processes_in_cgroup(&host, "/system.slice").expect("there"), [12, 13]);
        assert!(processes_in_cgroup(&host, "/none.slice").is_err());
    }

    #[test]
    fn odd_cgroups_name_nothing() {
        for text in ["", "0::/", "garbage", "0::/a/b\n1:cpu:", "::::", &"x".repeat(10_000)] {
            assert_eq!(place(text), (None, None), "{text:.20}");
        }
        assert_eq!(place("0::/lxc.payload.web/init.scope\n").1.as_deref(), Some("web"));
    }
}
