//! A private Slurm cluster on this machine: munged, slurmctld and two slurmd on loopback, with all files in one
//! directory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use landspeed_sys::clock;
use tempfile::TempDir;

use crate::process::{free_port, until};

/// Programs that the cluster needs.
const PROGRAMS: [&str; 6] = ["munged", "mungekey", "slurmctld", "slurmd", "sbatch", "scontrol"];
/// Time limit for the cluster to become ready, seconds.
const READY_S: u64 = 60;
/// Search path for programs, including the sbin directories.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A cluster with the partition `p` and the nodes `n1` and `n2`, one core each. Its processes are killed when it
/// is dropped.
pub struct Slurm {
    directory: TempDir,
    /// Daemons that were started, by name and process id.
    daemons: Vec<Daemon>,
}

struct Daemon {
    name: String,
    pid: u32,
}

impl Slurm {
    /// Starts the cluster.
    ///
    /// # Errors
    /// If this is not possible here: not root, or a program is missing.
    ///
    /// # Panics
    /// If all programs exist but the cluster does not become ready.
    pub fn start() -> Result<Self, String> {
        for program in PROGRAMS {
            let found = SEARCH_PATH.split(':').any(|place| Path::new(place).join(program).exists());
            if !found {
                return Err(format!("{program} is not installed (Debian: slurmctld slurmd slurm-client munge)"));
            }
        }
        if !is_root() {
            return Err("slurmctld and slurmd need root".to_owned());
        }
        let directory = tempfile::Builder::new().prefix("landspeed-slurm-").tempdir().expect("a directory");
        let mut cluster = Self { directory, daemons: Vec::new() };
        cluster.boot();
        Ok(cluster)
    }

    fn boot(&mut self) {
        let directory = self.directory.path().to_owned();
        let at = |name: &str| directory.join(name);
        set_mode(self.directory.path(), 0o755);
        for name in ["state", "spool.n1", "spool.n2", "shared"] {
            std::fs::create_dir(at(name)).expect("a directory");
        }
        run(Command::new("mungekey").arg("--create").arg("--keyfile").arg(at("munge.key")));
        std::fs::write(at("slurm.conf"), self.configuration()).expect("written");
        let mut munged = Command::new("munged");
        for (option, name) in [
            ("key-file", "munge.key"),
            ("socket", "munge.sock"),
            ("pid-file", "munged.pid"),
            ("log-file", "munged.log"),
            ("seed-file", "munge.seed"),
        ] {
            munged.arg(format!("--{option}={}", at(name).display()));
        }
        munged.arg("--num-threads=1");
        self.daemon("munged", &mut munged);
        self.daemon("slurmctld", &mut Command::new("slurmctld"));
        for node in ["n1", "n2"] {
            self.start_node(node);
        }
        until(READY_S, "both nodes to be idle", || {
            let output = self.command("sinfo").args(["--noheader", "--format=%D %t"]).output();
            output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == "2 idle")
        });
    }

    fn configuration(&self) -> String {
        let directory = self.directory.path().display();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let host = host.trim();
        let ports = std::array::from_fn(|_| free_port());
        let [controller, first, second] = ports;
        let mut text = format!(
            "ClusterName=landspeed\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={controller}\nSlurmUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={directory}/munge.sock,cred_expire=10\nCredType=cred/munge\n\
             StateSaveLocation={directory}/state\nSlurmctldPidFile={directory}/slurmctld.pid\n\
             SlurmctldLogFile={directory}/slurmctld.log\nSlurmdSpoolDir={directory}/spool.%n\n\
             SlurmdPidFile={directory}/slurmd.%n.pid\nSlurmdLogFile={directory}/slurmd.%n.log\n\
             ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nMpiDefault=none\nSelectType=select/cons_tres\n\
             SelectTypeParameters=CR_Core\nReturnToService=2\nSlurmdTimeout=6\nSlurmctldTimeout=30\nKillWait=2\n\
             InactiveLimit=0\nMinJobAge=300\nJobRequeue=1\nMaxArraySize=1001\n\
             SlurmdParameters=config_overrides\n\
             SchedulerParameters=batch_sched_delay=0,sched_min_interval=0\n"
        );
        for (node, port) in [("n1", first), ("n2", second)] {
            let _ = writeln!(
                text,
                "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=16000"
            );
        }
        text + "PartitionName=p Nodes=n1,n2 Default=YES State=UP MaxTime=INFINITE\n\
                PartitionName=closed Nodes=n1,n2 State=DOWN\n"
    }

    /// Starts the daemon (slurmd) of a node.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_node(&mut self, node: &str) {
        self.daemon(&format!("slurmd.{node}"), Command::new("slurmd").args(["-N", node]));
    }

    /// Kills the daemon of a node and all its processes, like a power failure.
    ///
    /// # Panics
    /// If the node's daemon is not running.
    pub fn kill_node(&mut self, node: &str) {
        let name = format!("slurmd.{node}");
        let at = self.daemons.iter().position(|daemon| daemon.name == name).expect("a daemon of this node");
        let daemon = self.daemons.swap_remove(at);
        // The daemon first, since it would report the end of the others.
        let spool = self.directory.path().join(format!("spool.{node}"));
        let steps = slurmstepd_processes(node, &spool);
        kill(daemon.pid);
        for step in steps {
            let below = descendants(step);
            kill(step);
            below.into_iter().for_each(kill);
        }
    }

    /// Returns a directory that all nodes share.
    pub fn shared(&self) -> PathBuf {
        self.directory.path().join("shared")
    }

    /// Returns the path of the cluster's configuration, the value of `SLURM_CONF`.
    pub fn conf(&self) -> PathBuf {
        self.directory.path().join("slurm.conf")
    }

    /// Returns a command for `program` that uses this cluster.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.conf()).env("PATH", SEARCH_PATH).stdin(Stdio::null());
        command
    }

    /// Returns the controller's log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("slurmctld.log")).unwrap_or_default()
    }

    fn daemon(&mut self, name: &str, command: &mut Command) {
        command.env("SLURM_CONF", self.conf()).env("PATH", SEARCH_PATH).current_dir(self.directory.path());
        run(command);
        let file = self.directory.path().join(format!("{name}.pid"));
        let mut pid = None;
        until(READY_S, &format!("the number of {name}"), || {
            pid = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
            pid.is_some()
        });
        self.daemons.push(Daemon { name: name.to_owned(), pid: pid.expect("just read") });
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // Jobs first: without the daemons their processes would be orphaned.
        let quietly = |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let _ = quietly(self.command("scancel").args(["--state=PENDING", "--user=root"]));
        let _ = quietly(self.command("scancel").args(["--signal=KILL", "--full", "--user=root"]));
        let _ = quietly(self.command("scancel").arg("--user=root"));
        for node in ["n1", "n2"] {
            for step in slurmstepd_processes(node, &self.directory.path().join(format!("spool.{node}"))) {
                let below = descendants(step);
                kill(step);
                below.into_iter().for_each(kill);
            }
        }
        for daemon in self.daemons.drain(..).rev() {
            kill(daemon.pid);
        }
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("own directory");
}

fn run(command: &mut Command) {
    let output = command.env("PATH", SEARCH_PATH).stdin(Stdio::null()).output().expect("it is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", command.get_program().display());
}

/// Sends SIGKILL and waits until the process has ended.
fn kill(pid: u32) {
    let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
    let deadline_ns = clock::monotonic_ns() + Duration::from_secs(5).as_nanos() as u64;
    while is_running(pid) && clock::monotonic_ns() < deadline_ns {
        clock::sleep_until(clock::monotonic_ns() + 5_000_000);
    }
}

/// Whether the process exists and is not a zombie.
fn is_running(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Returns the `slurmstepd` processes of a node, which are detached from its daemon. They have its log or a file
/// in its spool directory open.
fn slurmstepd_processes(node: &str, spool: &Path) -> Vec<u32> {
    processes()
        .filter(|&pid| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let ours = || {
                let links = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
                let mut open = links.filter_map(|link| std::fs::read_link(link.path()).ok());
                let log = spool.with_file_name(format!("slurmd.{node}.log"));
                open.any(|file| file.starts_with(spool) || file == log)
            };
            (name.starts_with("slurmstepd") || words.starts_with(b"slurmstepd")) && ours()
        })
        .collect()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns all descendants of a process.
fn descendants(pid: u32) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let pairs: Vec<(u32, u32)> = processes().filter_map(|child| Some((parent(child)?, child))).collect();
    let mut found = vec![pid];
    let mut at = 0;
    while at < found.len() {
        let next = found[at];
        found.extend(pairs.iter().filter(|(parent, _)| *parent == next).map(|(_, child)| *child));
        at += 1;
    }
    found.split_off(1)
}
