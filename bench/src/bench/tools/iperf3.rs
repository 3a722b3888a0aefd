//! iperf3, from Debian or built by `bench rivals`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{Bulk, Offer, Place, Transfer, limit, number};
use crate::bench::child::{Running, run};

/// Path of the program, and where its server runs.
pub struct Iperf3(pub PathBuf, pub Place);

impl Iperf3 {
    fn client(&self, port: u16, seconds: u32, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(&self.0);
        command
            .args(["-c", &self.1.host(), "-J", "-p", &port.to_string(), "-t", &seconds.to_string()])
            .args(arguments);
        parse(&run(&mut command, limit(seconds))?.stdout)
    }
}

impl Bulk for Iperf3 {
    fn serve(&self, port: u16) -> Result<Option<Running>> {
        let mut command = self.1.server(&self.0, None);
        Running::start(command.args(["-s", "-B", &self.1.host(), "-p", &port.to_string()]))?
            .until("listening", |_| self.1.is_listening(port))
            .map(Some)
    }

    fn tcp(&self, port: u16, seconds: u32, extra: &[&str]) -> Result<Transfer> {
        tcp(&self.client(port, seconds, extra)?)
    }

    fn udp(&self, port: u16, seconds: u32, offer: Offer, extra: &[&str]) -> Result<Transfer> {
        let (size, rate) = (offer.size.to_string(), format!("{:.0}", offer.rate_bps.unwrap_or(0.0)));
        udp(&self.client(port, seconds, &[&["-u", "-l", &size, "-b", &rate], extra].concat())?, offer.size)
    }
}

/// An error may be in the document while the exit status is 0.
fn parse(stdout: &str) -> Result<Value> {
    let json: Value = serde_json::from_str(stdout).context("iperf3 wrote no JSON")?;
    match json.get("error").and_then(Value::as_str) {
        Some(error) => bail!("iperf3: {error}"),
        None => Ok(json),
    }
}

fn tcp(json: &Value) -> Result<Transfer> {
    let goodput_bps = number(json, "/end/sum_received/bits_per_second")?;
    let bytes = number(json, "/end/sum_received/bytes")?;
    Ok(Transfer { goodput_bps, bytes, sent_bps: number(json, "/end/sum_sent/bits_per_second")?, lost: 0 })
}

/// Version 3.12 reports sent datagrams in `sum` and received ones in `sum_received`. Older versions only have
/// `sum`, whose `packets` are those known to the server.
fn udp(json: &Value, size: u64) -> Result<Transfer> {
    let lost = number(json, "/end/sum/lost_packets")?.max(0.0);
    let (goodput_bps, bytes) = if let Ok(bytes) = number(json, "/end/sum_received/bytes") {
        (number(json, "/end/sum_received/bits_per_second")?, bytes)
    } else {
        let arrived = (number(json, "/end/sum/packets")? - lost) * size as f64;
        (arrived * 8.0 / number(json, "/end/sum/seconds")?, arrived)
    };
    let sent_bps =
        number(json, "/end/sum_sent/bits_per_second").or_else(|_| number(json, "/end/sum/bits_per_second"))?;
    Ok(Transfer { goodput_bps, bytes, sent_bps, lost: lost as u64 })
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "counts, exact as they were recorded")]
mod tests {
    use super::super::recorded;
    use super::*;

    #[test]
    fn tcp_goodput_is_that_of_the_receiver() {
        let transfer = tcp(&parse(&recorded("iperf3-tcp.json")).unwrap()).unwrap();
        assert_eq!((transfer.goodput_bps.round(), transfer.bytes), (50_327_513_617.0, 12_585_533_440.0));
    }

    #[test]
    fn udp_loss_and_both_rates_are_parsed() {
        let transfer = udp(&parse(&recorded("iperf3-udp.json")).unwrap(), 1448).unwrap();
        assert_eq!(transfer.lost, 116);
        assert_eq!((transfer.sent_bps.round(), transfer.goodput_bps.round()), (999_570_632.0, 998_878_816.0));
        assert_eq!(transfer.bytes, (172_586.0 - 116.0) * 1448.0);
    }

    #[test]
    fn udp_without_receiver_sums_is_computed_from_packets() {
        let mut json = parse(&recorded("iperf3-udp.json")).unwrap();
        let end = json.get_mut("end").and_then(Value::as_object_mut).unwrap();
        end.remove("sum_received");
        end.remove("sum_sent");
        let transfer = udp(&json, 1448).unwrap();
        assert_eq!(transfer.bytes, (172_586.0 - 116.0) * 1448.0);
        assert!((transfer.goodput_bps / 998_878_816.0 - 1.0).abs() < 1e-4);
    }

    #[test]
    fn an_error_inside_the_document_is_an_error() {
        let error = parse(&recorded("iperf3-refused.json")).unwrap_err();
        assert_eq!(error.to_string(), "iperf3: unable to connect to server: Connection refused");
    }
}
