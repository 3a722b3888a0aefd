//! sockperf (Debian package). By default it reports half of the round trip as latency; `--full-rtt` reports the
//! whole, as landspeed does.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{RoundTrips, Transport, limit, strip_colors};
use crate::bench::child::{Running, run_checked};
use crate::bench::net;

/// Path of the program.
pub struct Sockperf(pub PathBuf);

impl Sockperf {
    /// Starts its server, pinned to `core` if given.
    pub fn serve(&self, port: u16, transport: Transport, core: Option<usize>) -> Result<Running> {
        let mut command = pinned(&self.0, core);
        command.args(["sr", "-i", "127.0.0.1", "-p", &port.to_string()]).args(flag(transport));
        Running::start(&mut command)?.until("listening", |_| match transport {
            Transport::Tcp => net::is_listening(port),
            Transport::Udp => net::is_bound(port),
        })
    }

    /// Runs ping-pong with messages of `size` bytes, pinned to `core` if given.
    pub fn ping_pong(
        &self,
        port: u16,
        seconds: u32,
        size: u32,
        transport: Transport,
        core: Option<usize>,
    ) -> Result<RoundTrips> {
        let mut command = pinned(&self.0, core);
        command
            .args(["pp", "-i", "127.0.0.1", "-p", &port.to_string(), "-t", &seconds.to_string()])
            .args(["-m", &size.to_string(), "--full-rtt"])
            .args(flag(transport));
        parse(&run_checked(&mut command, limit(seconds))?.stdout)
    }
}

fn flag(transport: Transport) -> Option<&'static str> {
    (transport == Transport::Tcp).then_some("--tcp")
}

/// Returns `program`, or `taskset -c CORE program`.
pub fn pinned(program: &std::path::Path, core: Option<usize>) -> Command {
    let Some(core) = core else { return Command::new(program) };
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]).arg(program);
    command
}

fn parse(stdout: &str) -> Result<RoundTrips> {
    let lines: Vec<String> = stdout.lines().map(strip_colors).collect();
    // Without --full-rtt the summary contains "Latency is".
    let whole = lines.iter().any(|line| line.contains("Round trip is"));
    let last = lines.iter().rev().find(|line| !line.is_empty()).map_or("nothing", String::as_str);
    ensure!(whole, "sockperf did not report whole round trips; it closed with: {last}");
    let duration =
        lines.iter().find(|line| line.contains("[Valid Duration]")).context("sockperf said no duration")?;
    let field = |name: &str| {
        let rest = duration.split_once(name)?.1;
        rest.split([' ', ';']).next()?.parse::<f64>().ok()
    };
    let seconds = field("RunTime=").context("sockperf said no RunTime")?;
    let received = field("ReceivedMessages=").context("sockperf said no ReceivedMessages")?;
    let median =
        lines.iter().find_map(|line| line.split_once("percentile 50.000 =")).context("sockperf said no median")?;
    let p50_us: f64 = median.1.trim().parse().context("sockperf's median is not a number")?;
    Ok(RoundTrips { per_s: received / seconds, p50_ns: p50_us * 1e3 })
}

#[cfg(test)]
mod tests {
    use super::super::recorded;
    use super::*;

    #[test]
    fn rate_and_full_round_trip_are_parsed() {
        let udp = parse(&recorded("sockperf-udp-full.txt")).unwrap();
        assert_eq!(udp, RoundTrips { per_s: 276_719.0 / 1.55, p50_ns: 3_398.0 });
        let tcp = parse(&recorded("sockperf-tcp-full.txt")).unwrap();
        assert_eq!(tcp, RoundTrips { per_s: 102_031.0 / 1.55, p50_ns: 14_796.0 });
    }

    #[test]
    fn half_round_trip_output_is_rejected() {
        let halved = recorded("sockperf-udp-full.txt").replace("Round trip is", "Latency is");
        assert!(parse(&halved).is_err());
    }
}
