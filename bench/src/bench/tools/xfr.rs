//! xfr, a Rust throughput tool from crates.io.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Bulk, Offer, Transfer, limit, number};
use crate::bench::child::{Running, run_checked};
use crate::bench::net;

/// Path of the program.
pub struct Xfr(pub PathBuf);

impl Xfr {
    fn client(&self, port: u16, seconds: u32, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(&self.0);
        command
            .args(["127.0.0.1", "--json", "--no-tui", "--no-update-check", "-p", &port.to_string()])
            .args(["-t", &seconds.to_string()])
            .args(arguments);
        serde_json::from_str(&run_checked(&mut command, limit(seconds))?.stdout).context("xfr wrote no JSON")
    }
}

impl Bulk for Xfr {
    fn serve(&self, port: u16) -> Result<Option<Running>> {
        Running::start(Command::new(&self.0).args([
            "serve",
            "--no-mdns",
            "--bind",
            "127.0.0.1",
            "-p",
            &port.to_string(),
        ]))?
        .until("listening", |_| net::is_listening(port))
        .map(Some)
    }

    fn tcp(&self, port: u16, seconds: u32, extra: &[&str]) -> Result<Transfer> {
        transfer(&self.client(port, seconds, extra)?)
    }

    fn udp(&self, port: u16, seconds: u32, offer: Offer, extra: &[&str]) -> Result<Transfer> {
        let (size, rate) = (offer.size.to_string(), format!("{:.0}", offer.rate_bps.unwrap_or(0.0)));
        transfer(&self.client(port, seconds, &[&["-u", "-l", &size, "-b", &rate], extra].concat())?)
    }
}

/// Parses the result: `bytes_total` is counted by the receiver; UDP has packet counts too.
fn transfer(json: &Value) -> Result<Transfer> {
    let goodput_bps = number(json, "/throughput_mbps")? * 1e6;
    let bytes = number(json, "/bytes_total")?;
    let (mut sent_bps, mut lost) = (goodput_bps, 0);
    if json.get("udp_stats").is_some_and(Value::is_object) {
        let bits = number(json, "/udp_stats/packets_sent")? * number(json, "/udp_stats/packet_size")? * 8.0;
        sent_bps = bits / (number(json, "/duration_ms")? / 1e3);
        lost = number(json, "/udp_stats/lost")?.max(0.0) as u64;
    }
    Ok(Transfer { goodput_bps, bytes, sent_bps, lost })
}

#[cfg(test)]
mod tests {
    use super::super::recorded;
    use super::*;

    fn read(name: &str) -> Transfer {
        transfer(&serde_json::from_str(&recorded(name)).unwrap()).unwrap()
    }

    #[test]
    fn tcp_result_is_parsed_from_the_document() {
        let transfer = read("xfr-tcp.json");
        assert_eq!((transfer.bytes, transfer.lost), (11_543_379_968.0, 0));
        assert!((transfer.goodput_bps - 46_173.519_872e6).abs() < 1.0);
    }

    #[test]
    fn udp_counts_what_was_sent_and_what_was_lost() {
        let transfer = read("xfr-udp.json");
        assert_eq!((transfer.lost, transfer.bytes), (26_972, 145_514.0 * 1448.0));
        assert!((transfer.sent_bps - 172_486.0 * 1448.0 * 4.0).abs() < 1.0);
    }
}
