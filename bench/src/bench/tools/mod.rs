//! Landspeed and its rivals behind one interface, so that every case runs them in the same way.

mod iperf3;
mod kperf;
mod landspeed;
mod neper;
mod nuttcp;
mod place;
mod sockperf;
mod xfr;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};

use super::child::{Running, run};
use super::rivals;
use crate::machine;

pub use landspeed::Landspeed;
pub use neper::Neper;
pub use place::Place;
pub use sockperf::Sockperf;

/// Result of one bulk run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfer {
    /// Payload rate at the receiver, bits/s.
    pub goodput_bps: f64,
    /// Payload received, bytes.
    pub bytes: f64,
    /// UDP: payload rate sent, bits/s.
    pub sent_bps: f64,
    /// UDP: datagrams lost, as the tool reports.
    pub lost: u64,
}

/// Result of a request/response run over UDP or TCP.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundTrips {
    /// Transactions per second.
    pub per_s: f64,
    /// Median round-trip time, nanoseconds.
    pub p50_ns: f64,
}

/// Transport of a request/response run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP with TCP_NODELAY.
    Tcp,
    /// UDP.
    Udp,
}

/// Offered load of a UDP run.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// Payload of each datagram, bytes.
    pub size: u64,
    /// Payload rate, bits/s; `None` is unlimited.
    pub rate_bps: Option<f64>,
}

/// A tool that measures bulk transfers between its own server and client.
pub trait Bulk {
    /// Starts its server on loopback `port` and returns once it listens; `None` if each run starts its own server.
    fn serve(&self, port: u16) -> Result<Option<Running>>;
    /// Runs one TCP stream for `seconds`, client to server.
    fn tcp(&self, port: u16, seconds: u32, extra: &[&str]) -> Result<Transfer>;
    /// Runs one UDP stream for `seconds`, client to server.
    fn udp(&self, port: u16, seconds: u32, offer: Offer, extra: &[&str]) -> Result<Transfer>;
}

/// A tool, or the reason why it is missing.
pub type Found<T> = Result<Rc<T>, String>;

/// The tools that were found.
pub struct Tools {
    /// The landspeed binary under test.
    pub landspeed: Found<Landspeed>,
    /// iperf3, from the distribution or from `bench rivals`.
    pub iperf3: Found<dyn Bulk>,
    /// Whether iperf3 supports `--skip-rx-copy` and `--gsro` (3.20 and later).
    pub iperf3_is_new: bool,
    /// google/neper (from `bench rivals`).
    pub neper: Found<Neper>,
    /// facebookexperimental/kperf (from `bench rivals`).
    pub kperf: Found<dyn Bulk>,
    /// nuttcp, as packaged by Debian.
    pub nuttcp: Found<dyn Bulk>,
    /// xfr, a crate (from `bench rivals`).
    pub xfr: Found<dyn Bulk>,
    /// sockperf, as packaged by Debian.
    pub sockperf: Found<Sockperf>,
    /// Versions of the found tools, by name.
    pub versions: Vec<(String, String)>,
}

impl Tools {
    /// Looks for the rivals; `landspeed` is the binary under test or the reason why it is missing.
    pub fn find(landspeed: Result<PathBuf, String>) -> Self {
        let mut versions = Vec::new();
        let mut locate = |name: &str, flag: &str| {
            let program = machine::find(name).ok_or_else(|| format!("{name} is not installed"))?;
            versions.push((name.to_owned(), version(&program, flag)));
            Ok::<_, String>(program)
        };
        let iperf3 = locate("iperf3", "--version");
        let iperf3_is_new = iperf3.as_ref().is_ok_and(|program| {
            let help = run(Command::new(program).arg("--help"), Duration::from_secs(5));
            help.is_ok_and(|help| help.stdout.contains("--skip-rx-copy") && help.stdout.contains("--gsro"))
        });
        let iperf3 = iperf3.map(|program| Rc::new(iperf3::Iperf3(program, Place::default())) as Rc<dyn Bulk>);
        let nuttcp = locate("nuttcp", "-V").map(|program| Rc::new(nuttcp::Nuttcp(program)) as Rc<dyn Bulk>);
        let xfr = locate("xfr", "--version").map(|program| Rc::new(xfr::Xfr(program)) as Rc<dyn Bulk>);
        let neper = built("neper", "neper_tcp_stream")
            .map(|program| Rc::new(Neper::in_directory_of(&program, Place::default())));
        let kperf = built("kperf", "kperf_server");
        let kperf = kperf.map(|program| Rc::new(kperf::Kperf::in_directory_of(&program)) as Rc<dyn Bulk>);
        let sockperf = locate("sockperf", "--version").map(|program| Rc::new(Sockperf(program)));
        let landspeed = landspeed.map(|program| {
            versions.insert(0, ("landspeed".to_owned(), version(&program, "--version")));
            Rc::new(Landspeed(program, Place::default()))
        });
        for rival in rivals::built() {
            // These print no version, or are not throughput tools.
            if matches!(rival.name.as_str(), "neper" | "kperf" | "mahimahi" | "rattan") {
                let date = rival.date.as_ref().map_or(String::new(), |date| format!(" of {date}"));
                versions.push((rival.name.clone(), format!("{} {}{date}", rival.name, rival.version)));
            }
        }
        Self { landspeed, iperf3, iperf3_is_new, neper, kperf, nuttcp, xfr, sockperf, versions }
    }

    /// Landspeed, iperf3 and neper with their servers at `place`.
    pub fn at(&self, place: &Place) -> [Found<dyn Bulk>; 3] {
        let landspeed =
            self.landspeed.clone().map(|ours| Rc::new(Landspeed(ours.0.clone(), place.clone())) as Rc<dyn Bulk>);
        let iperf3 = machine::find("iperf3").ok_or_else(|| "iperf3 is not installed".to_owned());
        let iperf3 = iperf3.map(|program| Rc::new(iperf3::Iperf3(program, place.clone())) as Rc<dyn Bulk>);
        let neper = built("neper", "neper_tcp_stream");
        let neper = neper.map(|program| Rc::new(Neper::in_directory_of(&program, place.clone())) as Rc<dyn Bulk>);
        [landspeed, iperf3, neper]
    }

    /// Landspeed as a bulk tool.
    pub fn ours(&self) -> Found<dyn Bulk> {
        self.landspeed.clone().map(|ours| ours as Rc<dyn Bulk>)
    }
}

/// Returns a program that only `cargo xtask bench rivals` installs.
fn built(name: &str, program: &str) -> Result<PathBuf, String> {
    machine::find(program).ok_or_else(|| format!("{name} is not there: `cargo xtask bench rivals {name}`"))
}

/// Returns the first line of its version output.
fn version(program: &Path, flag: &str) -> String {
    let finished = run(Command::new(program).arg(flag), Duration::from_secs(5));
    let said = finished.map(|finished| if finished.stdout.is_empty() { finished.stderr } else { finished.stdout });
    said.ok().and_then(|said| said.lines().next().map(strip_colors)).unwrap_or_else(|| "unknown".to_owned())
}

/// Removes terminal colours from a line.
fn strip_colors(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        if char == '\u{1b}' {
            chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            out.push(char);
        }
    }
    out.trim().to_owned()
}

/// Time limit for a run of `seconds`; after that it counts as hung.
fn limit(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds) + 15)
}

/// Returns the number at `pointer` of a JSON document.
fn number(json: &serde_json::Value, pointer: &str) -> Result<f64> {
    json.pointer(pointer).and_then(serde_json::Value::as_f64).with_context(|| format!("no number at {pointer}"))
}

/// Reads a recorded output of a rival.
#[cfg(test)]
fn recorded(name: &str) -> String {
    let path = crate::root().join("fixtures").join("rivals").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_colours_are_removed() {
        assert_eq!(strip_colors("sockperf: \u{1b}[2;35m====> avg-rtt=5.5\u{1b}[0m"), "sockperf: ====> avg-rtt=5.5");
    }
}
