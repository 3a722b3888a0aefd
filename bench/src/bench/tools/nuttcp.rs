//! nuttcp (Debian package). Its data port is the control port + 1.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Bulk, Offer, Transfer, limit};
use crate::bench::child::{Running, run_checked};
use crate::bench::net;

/// Path of the program.
pub struct Nuttcp(pub PathBuf);

impl Nuttcp {
    fn client(&self, port: u16, seconds: u32, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.0);
        command.arg("-fparse").args(ports(port)).arg(format!("-T{seconds}")).args(arguments).arg("127.0.0.1");
        Ok(run_checked(&mut command, limit(seconds))?.stdout)
    }
}

fn ports(port: u16) -> [String; 2] {
    [format!("-P{port}"), format!("-p{}", port + 1)]
}

impl Bulk for Nuttcp {
    fn serve(&self, port: u16) -> Result<Option<Running>> {
        Running::start(Command::new(&self.0).args(["-S", "--nofork"]).args(ports(port)))?
            .until("listening", |_| net::is_listening(port))
            .map(Some)
    }

    fn tcp(&self, port: u16, seconds: u32, extra: &[&str]) -> Result<Transfer> {
        transfer(&self.client(port, seconds, extra)?, 0)
    }

    fn udp(&self, port: u16, seconds: u32, offer: Offer, extra: &[&str]) -> Result<Transfer> {
        let size = format!("-l{}", offer.size);
        // The unit of -R is kb/s.
        let rate = offer.rate_bps.map(|rate| format!("-R{:.0}", rate / 1e3));
        let mut arguments = vec!["-u", &size];
        arguments.extend(rate.as_deref());
        arguments.extend(extra);
        transfer(&self.client(port, seconds, &arguments)?, offer.size)
    }
}

/// Parses `megabytes=237.7669 real_seconds=2.00 rate_Mbps=998.6052 … drop=472 pkt=172652 …`; a megabyte is 2^20
/// bytes.
fn transfer(stdout: &str, size: u64) -> Result<Transfer> {
    let fields: Vec<(&str, &str)> = stdout.split_whitespace().filter_map(|field| field.split_once('=')).collect();
    let optional =
        |name: &str| fields.iter().find(|field| field.0 == name).and_then(|field| field.1.parse::<f64>().ok());
    let number = |name: &str| optional(name).with_context(|| format!("nuttcp said no {name}: {}", stdout.trim()));
    let goodput_bps = number("rate_Mbps")? * 1e6;
    let sent_bps = match optional("pkt") {
        Some(packets) => packets * size as f64 * 8.0 / number("real_seconds")?,
        None => goodput_bps,
    };
    let lost = optional("drop").unwrap_or(0.0).max(0.0) as u64;
    Ok(Transfer { goodput_bps, bytes: number("megabytes")? * f64::from(1 << 20), sent_bps, lost })
}

#[cfg(test)]
mod tests {
    use super::super::recorded;
    use super::*;

    #[test]
    fn tcp_result_is_parsed_from_the_machine_readable_line() {
        let transfer = transfer(&recorded("nuttcp-tcp.txt"), 0).unwrap();
        assert!((transfer.goodput_bps - 44_782.009e6).abs() < 1.0);
        assert!((transfer.bytes / (10673.9375 * 1_048_576.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn udp_counts_what_was_sent_and_what_was_dropped() {
        let transfer = transfer(&recorded("nuttcp-udp.txt"), 1448).unwrap();
        assert_eq!(transfer.lost, 472);
        assert!((transfer.sent_bps - 172_652.0 * 1448.0 * 4.0).abs() < 1.0, "{}", transfer.sent_bps);
    }

    #[test]
    fn a_line_without_figures_is_an_error_that_shows_it() {
        let error = transfer("nuttcp-t: Info: connection refused", 0).unwrap_err();
        assert!(error.to_string().contains("connection refused"), "{error}");
    }
}
