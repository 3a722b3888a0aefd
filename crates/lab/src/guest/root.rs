//! The file system of a host with programs: that of the host of the lab, read-only, with empty directories where
//! programs usually write.
//!
//! Nothing can be written to the host: its file system is mounted read-only, programs have no capability to
//! change mounts, and the results directory is detached.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use landspeed_sys::guest;

use super::results::RESULTS;
use crate::plan::{OWN_PROGRAM, Plan, Role};
use crate::program::WRITABLE;

/// Size of everything that the programs of one host write, as an option of tmpfs. [`crate::scenario::estimate`] counts it.
const SCRATCH_SIZE: &str = "size=256m,mode=755";
/// Devices of every host.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// Links in `/dev` and their targets.
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
/// Permissions of directories that all users may write.
const SHARED: u32 = 0o1777;

/// Gives the calling thread, and those it starts, the file system of a host. The thread must be in the host's network namespace.
pub fn enter(plan: &Plan, node: usize) -> Result<(), String> {
    let root = PathBuf::from(format!("/root-{node}"));
    let scratch = PathBuf::from(format!("/scratch-{node}"));
    let failed = |what: &str| {
        let what = format!("{}: cannot make the file system of its programs: {what}", plan.nodes[node].name);
        move |error: std::io::Error| format!("{what}: {error}")
    };
    guest::unshare_mounts().map_err(failed("mounts"))?;
    for directory in [&root, &scratch] {
        fs::create_dir_all(directory).map_err(failed("a directory"))?;
    }
    guest::mount_read_only("hostfs", &root, "hostfs", "/").map_err(failed("hostfs"))?;
    guest::mount("tmpfs", &scratch, "tmpfs", SCRATCH_SIZE).map_err(failed("tmpfs"))?;
    devices(&root, &scratch).map_err(failed("/dev"))?;
    let own: Vec<&String> = plan.programs.iter().filter(|p| p.node == node).flat_map(|p| &p.writable).collect();
    for (number, directory) in WRITABLE.iter().copied().chain(own.iter().map(|path| path.as_str())).enumerate() {
        let target = below(&root, directory);
        // A link, such as /var/run, leads to another directory of the list.
        let exists = fs::symlink_metadata(&target).is_ok_and(|found| found.is_dir());
        if exists {
            let source = scratch.join(format!("{number}"));
            make(&source).and_then(|()| guest::bind(&source, &target)).map_err(failed(directory))?;
        } else if number >= WRITABLE.len() {
            return Err(format!("cannot make {directory} writable: this host has no such directory"));
        }
    }
    guest::mount("proc", &below(&root, "/proc"), "proc", "").map_err(failed("/proc"))?;
    guest::protect(&below(&root, "/proc/sys")).map_err(failed("/proc/sys"))?;
    guest::mount_read_only("sysfs", &below(&root, "/sys"), "sysfs", "").map_err(failed("/sys"))?;
    names(plan, &root, &scratch).map_err(failed("/etc/hosts"))?;
    let program = below(&root, OWN_PROGRAM);
    if program.parent().is_some_and(Path::is_dir) {
        File::create(&program)
            .and_then(|_| guest::bind(Path::new("/init"), &program))
            .and_then(|()| guest::protect(&program))
            .map_err(failed("landspeed"))?;
    }
    if WRITABLE.iter().any(|own| Path::new(&plan.directory).starts_with(own)) && !WRITABLE.contains(&&*plan.directory)
    {
        let directory = below(&root, &plan.directory);
        fs::create_dir_all(&directory)
            .and_then(|()| guest::mount_read_only("hostfs", &directory, "hostfs", &plan.directory))
            .map_err(failed("the working directory"))?;
    }
    guest::detach(Path::new(RESULTS)).map_err(failed("the results directory"))?;
    guest::switch_root(&root).map_err(failed("the root"))
}

/// Returns an absolute path below another root.
fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

fn make(directory: &Path) -> std::io::Result<()> {
    fs::create_dir(directory)?;
    fs::set_permissions(directory, Permissions::from_mode(SHARED))
}

/// Makes `/dev`: devices without side effects, and no console, which is a file of the lab's host.
fn devices(root: &Path, scratch: &Path) -> std::io::Result<()> {
    let (source, target) = (scratch.join("dev"), below(root, "/dev"));
    fs::create_dir(&source)?;
    guest::bind(&source, &target)?;
    for device in DEVICES {
        File::create(target.join(device))?;
        guest::bind(&Path::new("/dev").join(device), &target.join(device))?;
    }
    for (link, to) in LINKS {
        symlink(to, target.join(link))?;
    }
    fs::create_dir(target.join("shm"))
}

/// Makes the hosts of the network known by their names, and no name server.
fn names(plan: &Plan, root: &Path, scratch: &Path) -> std::io::Result<()> {
    let hosts = plan.nodes.iter().filter(|node| node.role == Role::Host);
    let lines = hosts.flat_map(|node| {
        let addresses = node.ports.iter().flat_map(|port| &port.addresses);
        addresses.filter(|(ip, _)| plan.uses_ipv6() || ip.is_ipv4()).map(|(ip, _)| format!("{ip} {}\n", node.name))
    });
    let text = format!("127.0.0.1 localhost\n{}", lines.collect::<String>());
    for (name, text) in [("hosts", text.as_str()), ("resolv.conf", "")] {
        let (source, target) = (scratch.join(name), below(root, "/etc").join(name));
        fs::write(&source, text)?;
        if fs::symlink_metadata(&target).is_ok_and(|found| found.is_file()) {
            guest::bind(&source, &target)?;
        }
    }
    Ok(())
}
