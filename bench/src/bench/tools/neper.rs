//! google/neper. It has no UDP stream with a fixed size and rate; it is used for TCP and request/response.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::sockperf::pinned;
use super::{Bulk, Offer, Place, RoundTrips, Transfer, Transport, limit};
use crate::bench::child::{Running, run_checked};

/// Paths of `neper_tcp_stream`, `neper_tcp_rr` and `neper_udp_rr`.
pub struct Neper {
    stream: PathBuf,
    requests: [PathBuf; 2],
    place: Place,
}

impl Neper {
    /// Returns the programs in the directory of `stream`; servers run at `place`.
    pub fn in_directory_of(stream: &Path, place: Place) -> Self {
        let in_directory_of = |name: &str| stream.with_file_name(name);
        Self {
            stream: stream.to_owned(),
            requests: [in_directory_of("neper_tcp_rr"), in_directory_of("neper_udp_rr")],
            place,
        }
    }
}

/// Options for control and data port. A server serves one test.
fn ports(port: u16) -> [String; 4] {
    ["-C".to_owned(), port.to_string(), "-P".to_owned(), (port + 1).to_string()]
}

impl Place {
    fn serve_once(
        &self,
        program: &Path,
        core: Option<usize>,
        port: u16,
        seconds: u32,
        extra: &[&str],
    ) -> Result<Running> {
        let mut command = self.server(program, core);
        command.args(ports(port)).args(["-l", &seconds.to_string(), "--nolog"]).args(extra);
        Running::start(&mut command)?.until("listening", |_| self.is_listening(port))
    }
}

impl Bulk for Neper {
    /// The server ends with its test, so each run starts one.
    fn serve(&self, _port: u16) -> Result<Option<Running>> {
        Ok(None)
    }

    fn tcp(&self, port: u16, seconds: u32, extra: &[&str]) -> Result<Transfer> {
        let buffer = ["-B", "1048576"];
        let receiver: Vec<&str> = extra.iter().copied().filter(|option| *option != "-Z").collect();
        let _server = self.place.serve_once(&self.stream, None, port, seconds, &[&buffer[..], &receiver].concat())?;
        let mut command = Command::new(&self.stream);
        let sender: Vec<&str> = extra.iter().copied().filter(|option| *option != "--skip-rx-copy").collect();
        command
            .args(["-c", "-H", &self.place.host(), "-l", &seconds.to_string(), "--nolog"])
            .args(ports(port))
            .args(buffer)
            .args(sender);
        let said = run_checked(&mut command, limit(seconds))?.stdout;
        // Receive rate of the server, bits/s (despite the unit that neper prints).
        let goodput_bps = value(&said, "remote_throughput")?;
        let seconds = f64::from(seconds);
        Ok(Transfer { goodput_bps, bytes: goodput_bps * seconds / 8.0, sent_bps: goodput_bps, lost: 0 })
    }

    fn udp(&self, _port: u16, _seconds: u32, _offer: Offer, _extra: &[&str]) -> Result<Transfer> {
        bail!("neper has no UDP stream of a given size and rate")
    }
}

impl Neper {
    /// Runs request/response with messages of `size` bytes, one at a time; server and client are pinned to `cores`
    /// if given.
    pub fn ping_pong(
        &self,
        port: u16,
        seconds: u32,
        size: u32,
        transport: Transport,
        cores: Option<(usize, usize)>,
    ) -> Result<RoundTrips> {
        let program = &self.requests[usize::from(transport == Transport::Udp)];
        let (server_core, client_core) = cores.unzip();
        let size = size.to_string();
        let sizes = ["-Q", &size, "-R", &size];
        let _server = self.place.serve_once(program, server_core, port, seconds, &sizes)?;
        let mut command = pinned(program, client_core);
        command
            .args(["-c", "-H", &self.place.host(), "-l", &seconds.to_string(), "-p", "50", "--nolog"])
            .args(ports(port))
            .args(sizes);
        let said = run_checked(&mut command, limit(seconds))?.stdout;
        Ok(RoundTrips { per_s: value(&said, "throughput")?, p50_ns: value(&said, "latency_p50")? * 1e9 })
    }
}

/// Returns the number of a `name=value` line; the last one if there are several.
fn value(said: &str, name: &str) -> Result<f64> {
    let of = |line: &str| line.strip_prefix(name)?.strip_prefix('=')?.parse::<f64>().ok();
    said.lines().rev().find_map(of).with_context(|| format!("neper said no {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_matched_by_full_name() {
        let said = "local_throughput=7\nthroughput=1893.00\nthroughput_units=Mbit/s\nlatency_p50=0.000048\n";
        assert!((value(said, "throughput").unwrap() - 1893.0).abs() < 1e-9);
        assert!((value(said, "latency_p50").unwrap() - 48e-6).abs() < 1e-12);
        assert!(value(said, "latency_p99").is_err());
    }
}
