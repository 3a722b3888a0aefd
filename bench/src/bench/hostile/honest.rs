//! The servers under attack, and an honest client that runs during the attack.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::Serialize;
use serde_json::Value;

use super::attacks::{Attack, ServerConfig};
use super::work::Work;
use crate::bench::child::{Finished, Running, run_timed};
use crate::bench::net;

/// Maximum time of an honest run beyond its nominal duration; after that it has failed.
const GRACE: Duration = Duration::from_secs(10);

/// Kind of server, with the client that tests against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Landspeed as server and client.
    Landspeed,
    /// Landspeed's port for iperf3 clients, with iperf3's client.
    LandspeedIperf3,
    /// iperf3 as server and client.
    Iperf3,
}

impl Kind {
    /// All kinds, in the order of the table.
    pub const ALL: [Self; 3] = [Self::Landspeed, Self::LandspeedIperf3, Self::Iperf3];

    /// Name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Landspeed => "landspeed",
            Self::LandspeedIperf3 => "landspeed, iperf3's protocol",
            Self::Iperf3 => "iperf3",
        }
    }

    /// Whether the goal applies to this kind.
    pub fn is_ours(self) -> bool {
        self != Self::Iperf3
    }

    /// Returns the attack for the protocol of this kind.
    pub fn work(self, attack: &Attack) -> Option<Work> {
        match self {
            Self::Landspeed => Some(attack.landspeed),
            Self::LandspeedIperf3 | Self::Iperf3 => attack.iperf3,
        }
    }
}

/// Paths of the programs, or why they are missing.
#[derive(Debug)]
pub struct Programs {
    landspeed: Result<PathBuf, String>,
    iperf3: Result<PathBuf, String>,
    /// Soft limit of open files (RLIMIT_NOFILE) for servers.
    open_files: u64,
}

impl Programs {
    /// Stores the programs, and raises this process's limit of open files: an attacker holds thousands of
    /// connections.
    pub fn new(landspeed: Result<PathBuf, String>, iperf3: Result<PathBuf, String>) -> Result<Self> {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("cannot read the limit of open files")?;
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).context("cannot raise the limit of open files")?;
        ensure!(hard >= 4096, "the limit of open files is {hard}: the attacks hold up to 2,000 connections");
        Ok(Self { landspeed, iperf3, open_files: soft })
    }

    /// Returns the reason why a kind cannot run; `None` if it can.
    pub fn missing(&self, kind: Kind) -> Option<String> {
        let (ours, iperf3) = (self.landspeed.as_ref().err(), self.iperf3.as_ref().err());
        match kind {
            Kind::Landspeed => ours,
            Kind::LandspeedIperf3 => ours.or(iperf3),
            Kind::Iperf3 => iperf3,
        }
        .cloned()
    }

    /// Starts a server on loopback and waits until it listens.
    pub fn serve(&self, kind: Kind, setting: ServerConfig) -> Result<(Running, SocketAddr)> {
        let port = net::free_port()?;
        let own = port.to_string();
        let limit = match setting {
            ServerConfig::Descriptors(most) => format!("ulimit -n {most}"),
            _ => format!("ulimit -Sn {}", self.open_files),
        };
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limit} && exec \"$0\" \"$@\"")]);
        match kind {
            Kind::Landspeed => {
                command.arg(self.ours()?).args(["serve", "--listen", &format!("127.0.0.1:{own}"), "--no-iperf3"]);
            }
            Kind::LandspeedIperf3 => {
                command.arg(self.ours()?).args(["serve", "--listen", "127.0.0.1:0", "--iperf3-port", &own]);
            }
            Kind::Iperf3 => {
                command.arg(self.theirs()?).args(["-s", "-B", "127.0.0.1", "-p", &own]);
            }
        }
        match setting {
            ServerConfig::Describe if kind.is_ours() => drop(command.arg("--describe")),
            ServerConfig::HostChanges if kind.is_ours() => drop(command.arg("--allow-host-changes")),
            _ => {}
        }
        let server = Running::start(&mut command)?.until("listening", |_| net::is_listening(port))?;
        Ok((server, SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
    }

    /// Runs one TCP upload at full speed.
    pub fn test(&self, kind: Kind, server: SocketAddr, seconds: u32) -> Run {
        let outcome = match kind {
            Kind::Landspeed => self.landspeed_test(server, seconds),
            Kind::LandspeedIperf3 | Kind::Iperf3 => self.iperf3_test(server, seconds),
        };
        match outcome {
            Ok((goodput_bps, took)) => {
                let overhead = took.as_secs_f64() - f64::from(seconds);
                Run { goodput_bps: Some(goodput_bps), overhead_s: Some(overhead), error: None }
            }
            Err(error) => Run { goodput_bps: None, overhead_s: None, error: Some(format!("{error:#}")) },
        }
    }

    fn landspeed_test(&self, server: SocketAddr, seconds: u32) -> Result<(f64, Duration)> {
        let mut command = Command::new(self.ours()?);
        command.args(["run", &server.to_string(), "-t", &seconds.to_string(), "--json", "-", "--quiet"]);
        let (finished, took) = run_timed(&mut command, limit(seconds))?;
        Ok((landspeed_goodput(&finished)?, took))
    }

    fn iperf3_test(&self, server: SocketAddr, seconds: u32) -> Result<(f64, Duration)> {
        let mut command = Command::new(self.theirs()?);
        let (host, port) = (server.ip().to_string(), server.port().to_string());
        command.args(["-c", &host, "-p", &port, "-t", &seconds.to_string(), "-J"]);
        let (finished, took) = run_timed(&mut command, limit(seconds))?;
        Ok((iperf3_goodput(&finished)?, took))
    }

    fn ours(&self) -> Result<&Path> {
        self.landspeed.as_deref().map_err(|why| anyhow::anyhow!("{why}"))
    }

    fn theirs(&self) -> Result<&Path> {
        self.iperf3.as_deref().map_err(|why| anyhow::anyhow!("{why}"))
    }
}

fn limit(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds)) + GRACE
}

/// Result of an honest run.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// Goodput at the receiver, bits/s; `None` if the run failed.
    pub goodput_bps: Option<f64>,
    /// Time from start to exit of the client process minus the nominal duration, seconds.
    pub overhead_s: Option<f64>,
    /// Error of a failed run.
    pub error: Option<String>,
}

/// Returns the goodput, bits/s; requires exit status 0 and a complete document.
fn landspeed_goodput(finished: &Finished) -> Result<f64> {
    let document: Value = serde_json::from_str(&finished.stdout).unwrap_or_default();
    if let Some(message) = document.pointer("/errors/0/message").and_then(Value::as_str) {
        bail!("landspeed: {message} ({})", finished.status);
    }
    ensure!(finished.status.success(), "landspeed: {} ({})", finished.last_line(), finished.status);
    ensure!(document["status"] == "complete", "landspeed: the document is not complete");
    document.pointer("/summary/goodput_bps").and_then(Value::as_f64).context("landspeed: the document has no goodput")
}

/// Returns the goodput, bits/s; requires exit status 0 and a document without an error.
fn iperf3_goodput(finished: &Finished) -> Result<f64> {
    let document: Value = serde_json::from_str(&finished.stdout).unwrap_or_default();
    if let Some(error) = document["error"].as_str() {
        bail!("iperf3: {error}");
    }
    ensure!(finished.status.success(), "iperf3: {} ({})", finished.last_line(), finished.status);
    let goodput = document.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64);
    goodput.context("iperf3: the document has no goodput")
}

/// Resource use of a server process at the end of an attack.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Footprint {
    /// Peak resident memory (VmHWM), bytes.
    pub memory_max_bytes: u64,
    /// Number of threads.
    pub threads: u64,
    /// Number of open descriptors; `None` if unreadable.
    pub descriptors: Option<usize>,
}

impl Footprint {
    /// Reads the resource use; `None` if the process is gone.
    pub fn read(pid: u32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map(Iterator::count).ok();
        Some(Self {
            memory_max_bytes: field(&status, "VmHWM:")? * 1024,
            threads: field(&status, "Threads:")?,
            descriptors,
        })
    }
}

fn field(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn finished(code: i32, stdout: &str) -> Finished {
        let status = ExitStatus::from_raw(code << 8);
        Finished { status, stdout: stdout.to_owned(), stderr: "last words".to_owned() }
    }

    #[test]
    fn success_needs_exit_status_0_and_a_complete_document() {
        let complete = r#"{ "status": "complete", "summary": { "goodput_bps": 1e9 } }"#;
        assert!((landspeed_goodput(&finished(0, complete)).unwrap() - 1e9).abs() < 1.0);
        assert!(landspeed_goodput(&finished(1, complete)).is_err());
        assert!(landspeed_goodput(&finished(0, &complete.replace("complete", "failed"))).is_err());
        assert!(landspeed_goodput(&finished(0, "")).is_err());
        let refused = landspeed_goodput(&finished(3, r#"{ "errors": [{ "message": "busy" }] }"#)).unwrap_err();
        assert!(refused.to_string().contains("busy"), "{refused}");
    }

    #[test]
    fn an_error_in_the_document_of_iperf3_is_a_failure() {
        let complete = r#"{ "end": { "sum_received": { "bits_per_second": 2e9 } } }"#;
        assert!((iperf3_goodput(&finished(0, complete)).unwrap() - 2e9).abs() < 1.0);
        assert!(iperf3_goodput(&finished(1, complete)).is_err());
        let busy = iperf3_goodput(&finished(0, r#"{ "error": "the server is busy" }"#)).unwrap_err();
        assert!(busy.to_string().contains("busy"), "{busy}");
    }

    #[test]
    fn the_footprint_of_this_process_is_readable() {
        let footprint = Footprint::read(std::process::id()).unwrap();
        assert!(footprint.memory_max_bytes > 1 << 20 && footprint.threads >= 1 && footprint.descriptors > Some(2));
    }
}
