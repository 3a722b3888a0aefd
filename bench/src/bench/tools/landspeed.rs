//! Landspeed, run like the other tools: by its command line, with the JSON document as the result.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::sockperf::pinned;
use super::{Bulk, Offer, Place, RoundTrips, Transfer, Transport, limit, number};
use crate::bench::child::{Finished, Running};

/// Path of the program, and where its server runs.
pub struct Landspeed(pub PathBuf, pub Place);

/// A running client, and the file of its document.
pub struct Client {
    running: Running,
    document: tempfile::NamedTempFile,
    seconds: u32,
}

impl Landspeed {
    /// Starts the server, pinned to `core` if given.
    pub fn serve_on(&self, port: u16, core: Option<usize>, extra: &[&str]) -> Result<Running> {
        let mut command = self.1.server(&self.0, core);
        command.args(["serve", "--listen", &format!("{}:{port}", self.1.host())]).args(extra);
        Running::start(&mut command)?.until("listening", |_| self.1.is_listening(port))
    }

    /// Starts the server with `port` as the port for iperf3 clients.
    pub fn serve_iperf3(&self, port: u16) -> Result<Running> {
        let mut command = self.1.server(&self.0, None);
        command.args(["serve", "--listen", &format!("{}:0", self.1.host()), "--iperf3-port", &port.to_string()]);
        Running::start(&mut command)?.until("listening", |_| self.1.is_listening(port))
    }

    /// Starts a client.
    pub fn start(&self, port: u16, seconds: u32, core: Option<usize>, arguments: &[&str]) -> Result<Client> {
        let document = tempfile::NamedTempFile::new()?;
        let mut command = pinned(&self.0, core);
        command
            .args(["run", &format!("{}:{port}", self.1.host()), "-t", &seconds.to_string(), "--json"])
            .arg(document.path())
            .args(arguments);
        Ok(Client { running: Running::start(&mut command)?, document, seconds })
    }

    /// Runs request/response with messages of `size` bytes, pinned to `core` if given.
    pub fn round_trips(
        &self,
        port: u16,
        seconds: u32,
        size: u32,
        transport: Transport,
        core: Option<usize>,
    ) -> Result<RoundTrips> {
        let size = size.to_string();
        let mut arguments = vec!["--rr", "--sizes", &size];
        if transport == Transport::Udp {
            arguments.push("--udp");
        }
        let document = self.start(port, seconds, core, &arguments)?.finish()?;
        Ok(RoundTrips {
            per_s: number(&document, "/summary/transactions_per_s")?,
            p50_ns: number(&document, "/summary/latency_p50_ns")?,
        })
    }
}

impl Client {
    /// Waits for the client to end and reads its document. Exit status 1 (findings) is not a failure.
    pub fn finish(self) -> Result<Value> {
        let finished = self.running.finish(limit(self.seconds))?;
        ensure!(matches!(finished.status.code(), Some(0 | 1)), "landspeed: {}", complaint(&finished));
        let text = std::fs::read_to_string(self.document.path()).context("cannot read landspeed's document")?;
        let document: Value = serde_json::from_str(&text).context("landspeed's document is not JSON")?;
        match document.pointer("/status").and_then(Value::as_str) {
            Some("complete") => Ok(document),
            other => bail!("landspeed's test was {}", other.unwrap_or("of unknown status")),
        }
    }
}

fn complaint(finished: &Finished) -> String {
    format!("{} ({})", finished.last_line(), finished.status)
}

impl Bulk for Landspeed {
    fn serve(&self, port: u16) -> Result<Option<Running>> {
        self.serve_on(port, None, &[]).map(Some)
    }

    fn tcp(&self, port: u16, seconds: u32, extra: &[&str]) -> Result<Transfer> {
        tcp(&self.start(port, seconds, None, extra)?.finish()?)
    }

    fn udp(&self, port: u16, seconds: u32, offer: Offer, extra: &[&str]) -> Result<Transfer> {
        let size = offer.size.to_string();
        let rate = offer.rate_bps.map_or_else(|| "unlimited".to_owned(), |rate| format!("{rate:.0}"));
        let arguments = [&["--udp", "--len", &size, "--rate", &rate], extra].concat();
        udp(&self.start(port, seconds, None, &arguments)?.finish()?, f64::from(seconds))
    }
}

fn tcp(document: &Value) -> Result<Transfer> {
    let goodput_bps = number(document, "/summary/goodput_bps")?;
    let bytes = number(document, "/summary/bytes_delivered")?;
    Ok(Transfer { goodput_bps, bytes, sent_bps: goodput_bps, lost: 0 })
}

fn udp(document: &Value, seconds: f64) -> Result<Transfer> {
    let sent = number(document, "/udp/sent_packets")? * number(document, "/udp/payload_bytes")?;
    let lost = number(document, "/udp/lost_packets")? + number(document, "/udp/refused_packets")?;
    Ok(Transfer { sent_bps: sent * 8.0 / seconds, lost: lost.max(0.0) as u64, ..tcp(document)? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn udp_transfer_counts_refused_datagrams_as_losses() {
        let document = json!({
            "summary": { "goodput_bps": 1e9, "bytes_delivered": 250_000_000 },
            "udp": { "sent_packets": 200_000, "lost_packets": 3, "refused_packets": 2, "payload_bytes": 1448 },
        });
        let transfer = udp(&document, 2.0).unwrap();
        let sent_bps = 200_000.0 * 1448.0 * 4.0;
        assert_eq!(transfer, Transfer { goodput_bps: 1e9, bytes: 250e6, sent_bps, lost: 5 });
    }

    #[test]
    fn a_missing_figure_is_an_error_that_names_it() {
        let error = tcp(&json!({ "summary": { "goodput_bps": null } })).unwrap_err();
        assert_eq!(error.to_string(), "no number at /summary/goodput_bps");
    }
}
