//! facebookexperimental/kperf: TCP only. One client controls one server, which is both source and target.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Bulk, Offer, Transfer, limit};
use crate::bench::child::{Running, run_checked};
use crate::bench::net;

/// Paths of `kperf_server` and `kperf_client`.
pub struct Kperf {
    server: PathBuf,
    client: PathBuf,
}

impl Kperf {
    /// Returns the programs in the directory of `server`.
    pub fn in_directory_of(server: &Path) -> Self {
        Self { server: server.to_owned(), client: server.with_file_name("kperf_client") }
    }
}

impl Bulk for Kperf {
    fn serve(&self, port: u16) -> Result<Option<Running>> {
        Running::start(Command::new(&self.server).args(["--no-daemon", "-p", &port.to_string()]))?
            .until("listening", |_| net::is_listening(port))
            .map(Some)
    }

    fn tcp(&self, port: u16, seconds: u32, extra: &[&str]) -> Result<Transfer> {
        let port = port.to_string();
        let mut command = Command::new(&self.client);
        command
            .args(["--src", "127.0.0.1", "--dst", "127.0.0.1", "--src-svc", &port, "--dst-svc", &port])
            .args(["--time", &seconds.to_string(), "--write-size", "1048576", "--read-size", "1048576"])
            .args(["--validate", "no"])
            .args(extra);
        let finished = run_checked(&mut command, limit(seconds))?;
        received(&format!("{}{}", finished.stdout, finished.stderr))
    }

    fn udp(&self, _port: u16, _seconds: u32, _offer: Offer, _extra: &[&str]) -> Result<Transfer> {
        bail!("kperf has no UDP")
    }
}

/// Parses the bytes received by the target: `Rx  4.491 Gbps (565121601 bytes in 1006601 usec)` after `== Target`.
fn received(said: &str) -> Result<Transfer> {
    let target = said.split_once("== Target").context("kperf reported no target")?.1;
    let line = target.lines().find(|line| line.contains("Rx ")).context("kperf reported nothing received")?;
    let counts = line.split_once('(').context("kperf counted no bytes")?.1;
    let mut numbers = counts.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
    let (bytes, usec) = numbers.next().zip(numbers.next()).context("kperf counted no bytes")?;
    let goodput_bps = bytes * 8e6 / usec.max(1.0);
    Ok(Transfer { goodput_bps, bytes, sent_bps: goodput_bps, lost: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_counts_bytes_received_by_the_target() {
        let said = "client: == Source 127.0.0.1\nclient:   Rx  0.000 Gbps (0 bytes in 1001053 usec)\n\
                    client: == Target 127.0.0.1\nclient:   Tx  0.000 Gbps (0 bytes in 1 usec)\n\
                    client:   Rx  4.491 Gbps (565121601 bytes in 1006601 usec)\n";
        let transfer = received(said).unwrap();
        assert!((transfer.goodput_bps / 4.4913e9 - 1.0).abs() < 1e-3, "{transfer:?}");
        assert!(received("nothing").is_err());
    }
}
