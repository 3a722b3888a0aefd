//! Test bench: a network namespace with two multi-queue interfaces, a directory for journals, and the
//! program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use landspeed_testkit::netns::Namespace;
use landspeed_testkit::process::{Ended, Process, until};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{chosen_program, in_namespace};

/// Timeout of every wait, seconds.
pub const WAIT_S: u64 = 60;

/// A namespace with `v0` and `v1` (four queues each), and a directory for its journals.
pub struct Bench {
    pub namespace: Namespace,
    pub directory: TempDir,
}

/// Creates a bench, or skips the test.
macro_rules! bench {
    () => {
        landspeed_testkit::or_skip!($crate::tune::bench::Bench::new())
    };
}
pub(crate) use bench;

impl Bench {
    pub fn new() -> Result<Self, String> {
        let namespace = Namespace::new("tune")?;
        // In memory if possible: thousands of transactions wait for the disk at every record.
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let directory = directory.map_err(|why| why.to_string())?;
        let bench = Self { namespace, directory };
        bench.shell(
            "ip link add v0 numtxqueues 4 numrxqueues 4 type veth peer name v1 numtxqueues 4 numrxqueues 4
             ip address add 10.97.0.1/24 dev v0
             ip address add fd97::1/64 dev v0 nodad
             ip link set v0 up
             ip link set v1 up
             ip route add 10.98.0.0/16 via 10.97.0.2 mtu 1400
             ip route add default via 10.97.0.2",
        );
        // Carrier, duplicate address detection and link-local addresses take a moment.
        wait_until("links and addresses settle", || {
            let shown = bench.shell("ip link show; ip -6 address show");
            !["tentative", "NO-CARRIER", "LOWERLAYERDOWN"].iter().any(|state| shown.contains(state))
        });
        Ok(bench)
    }

    /// The state directory, with the journals.
    pub fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// `landspeed tune` in the namespace, with the namespace's /sys.
    pub fn tune(&self, arguments: &[&str]) -> Command {
        self.tune_with(&[], arguments, &self.state())
    }

    /// As [`Self::tune`], started through another program (`strace …`) and with another state directory.
    pub fn tune_with(&self, by: &[&str], arguments: &[&str], state: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.namespace.name()]).args(by);
        command.arg(chosen_program()).arg("tune").args(arguments).arg("--state").arg(state);
        command.stdin(Stdio::null()).env("NO_COLOR", "1").env_remove("SSH_CONNECTION");
        command
    }

    /// Returns the document of `tune plan`.
    pub fn plan(&self, arguments: &[&str]) -> Value {
        let output = run(in_namespace(&self.namespace, &[&["tune", "plan", "--json", "-"], arguments].concat()));
        assert!(matches!(output.code, 0 | 1), "{}", output_text(&output));
        serde_json::from_str(&output.stdout).expect("a document")
    }

    /// Runs a script in the namespace, asserts success and returns standard output.
    pub fn shell(&self, script: &str) -> String {
        let output = self.try_shell(script);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a script in the namespace.
    pub fn try_shell(&self, script: &str) -> Output {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.namespace.name(), "sh", "-ec", script]).stdin(Stdio::null());
        command.output().expect("ip runs")
    }

    /// The state of the namespace, see [`crate::tune::snapshot`].
    pub fn snapshot(&self) -> crate::tune::snapshot::Snapshot {
        crate::tune::snapshot::take(self)
    }

    /// Returns the document of `tune status`. The command also recovers orphaned transactions.
    pub fn status(&self) -> Value {
        let output = run(self.tune(&["status", "--json", "-"]));
        assert!(matches!(output.code, 0 | 1), "{}", output_text(&output));
        serde_json::from_str(&output.stdout).expect("a document")
    }

    /// Text of a transaction's journal; empty if there is none.
    pub fn journal(&self, id: u32) -> String {
        std::fs::read_to_string(self.state().join(format!("{id:04}.journal"))).unwrap_or_default()
    }

    /// Whether a journal has a record of this kind, such as `reverted`.
    pub fn has_record(&self, id: u32, kind: &str) -> bool {
        self.journal(id).contains(&format!("\"op\":\"{kind}\""))
    }

    /// Process id of the watchdog according to the journal, if it was armed.
    pub fn watchdog(&self, id: u32) -> Option<u32> {
        watchdog_in(&self.journal(id))
    }

    /// Removes the state directory, as [`remove_state`] does.
    pub fn remove_state(&self) {
        remove_state(&self.state());
    }

    /// Kills the watchdog of a transaction and waits until it is gone.
    pub fn kill_watchdog(&self, id: u32) {
        let Some(process) = self.watchdog(id) else { return };
        signal(process, "KILL");
        wait_until("the watchdog is gone", || !alive(process));
    }

    /// Waits until the watchdog has rolled back an incomplete transaction; reverts a complete one.
    pub fn settle(&self) {
        if self.has_record(1, "awaiting-confirm") && !self.has_record(1, "reverting") {
            expect(self.tune(&["revert"]), 0);
        } else if self.watchdog(1).is_some() {
            self.wait_reverted(1);
        }
    }

    /// Finishes a pending transaction with `tune status`, whether or not another process works on it.
    pub fn finish_recovery(&self) {
        wait_until("it is brought to an end", || {
            let status = self.status();
            let all = status["transactions"].as_array().expect("a list");
            all.iter().all(|one| ["committed", "reverted", "needs-attention"].iter().any(|end| one["state"] == *end))
        });
    }

    /// Waits until the journal records a rollback, without running a command.
    pub fn wait_reverted(&self, id: u32) {
        wait_until("the watchdog takes it back", || {
            self.has_record(id, "reverted") || self.has_record(id, "needs-attention")
        });
        if let Some(process) = self.watchdog(id) {
            wait_until("the watchdog ends", || !alive(process));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // The watchdog of a failed test would keep the namespace until its deadline.
        for id in 1..=64 {
            match self.watchdog(id) {
                Some(process) if is_ours(process) => signal(process, "KILL"),
                None if self.journal(id).is_empty() => break,
                Some(_) | None => {}
            }
        }
    }
}

fn watchdog_in(journal: &str) -> Option<u32> {
    let (_, rest) = journal.split_once("\"watchdog\":")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Removes a state directory after the watchdog of its first transaction has exited.
pub fn remove_state(state: &Path) {
    let journal = std::fs::read_to_string(state.join("0001.journal")).unwrap_or_default();
    if let Some(process) = watchdog_in(&journal) {
        wait_until("the watchdog ends", || !alive(process));
    }
    match std::fs::remove_dir_all(state) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("cannot remove the state: {error}"),
        _ => {}
    }
}

/// Runs a command to its end, with a timeout.
pub fn run(command: Command) -> Ended {
    Process::start(command).end(WAIT_S)
}

/// Runs a command and asserts its exit status; returns its output.
pub fn expect(command: Command, status: i32) -> String {
    let shown = format!("{command:?}");
    let ended = run(command);
    assert_eq!(ended.code, status, "{shown}: {}", output_text(&ended));
    output_text(&ended)
}

/// Standard output and standard error.
pub fn output_text(ended: &Ended) -> String {
    format!("{}{}", ended.stdout, ended.stderr)
}

/// Whether a process was killed by SIGKILL.
pub fn was_killed(ended: &Ended) -> bool {
    ended.code == 128 + 9
}

/// Waits until a condition is true.
pub fn wait_until(what: &str, so: impl FnMut() -> bool) {
    until(WAIT_S, what, so);
}

/// Sends a signal by name.
pub fn signal(process: u32, name: &str) {
    let _ = Command::new("kill").args([&format!("-{name}"), "--", &process.to_string()]).output();
}

/// State letter of a process; `None` if it is gone.
pub fn state_of(process: u32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Whether a process exists and is not a zombie.
pub fn alive(process: u32) -> bool {
    state_of(process).is_some_and(|state| state != 'Z' && state != 'X')
}

fn is_ours(process: u32) -> bool {
    let text = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&text).contains("watchdog")
}
