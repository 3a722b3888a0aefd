//! Validation of test parameters. Both sides validate: the client to report errors early, the server because it
//! does not trust clients.

use landspeed_model::{Direction, Parameters, Protocol, RrMode, RrParameters, SendMode};

use crate::dialect::Dialect;
use crate::end::RrSlot;

/// Maximum number of parallel streams in each direction.
pub const MAX_STREAMS: u32 = 128;
/// Maximum duration of a test, nanoseconds (30 days).
pub const MAX_TIME_NS: u64 = 30 * 86_400 * 1_000_000_000;
/// Maximum length of a write, bytes.
pub const MAX_WRITE: u64 = 64 << 20;
/// Maximum number of bytes of a test (1 EiB).
pub const MAX_BYTES: u64 = 1 << 60;
/// Maximum memory for the write buffers of a test on one side, bytes.
pub const MAX_BUFFERS: u64 = 1 << 30;
/// Largest UDP payload over IPv4 (65535 − 20 − 8); IPv6 allows slightly more, but one limit is easier to
/// explain.
pub const MAX_UDP_PAYLOAD: u32 = 65_507;
/// Shortest sampling interval, nanoseconds.
pub const MIN_INTERVAL_NS: u64 = 1_000_000;
/// Longest sampling interval, nanoseconds.
pub const MAX_INTERVAL_NS: u64 = 10_000_000_000;

/// Error for an invalid parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// Kind of parameter, for iperf3's error numbers.
    pub about: ParameterKind,
    message: String,
}

/// Kind of parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// The congestion control.
    Congestion,
    /// The length of a write or datagram.
    Size,
    /// Any other parameter.
    Other,
}

impl From<String> for Invalid {
    fn from(message: String) -> Self {
        Self { about: ParameterKind::Other, message }
    }
}

impl Invalid {
    fn of(about: ParameterKind) -> impl FnOnce(Self) -> Self {
        move |invalid| Self { about, ..invalid }
    }
}

/// Validates the parameters of a test between two landspeed programs.
///
/// # Errors
/// The first invalid parameter.
pub fn check(p: &Parameters) -> Result<(), Invalid> {
    check_in(p, Dialect::LANDSPEED)
}

/// Validates the parameters of a test in `dialect`.
///
/// # Errors
/// The first invalid parameter.
pub fn check_in(p: &Parameters, dialect: Dialect) -> Result<(), Invalid> {
    let within = |ok: bool, message: &str| if ok { Ok(()) } else { Err(Invalid::from(message.to_owned())) };
    within((1..=MAX_STREAMS).contains(&p.streams), "--parallel: 1 to 128 streams")?;
    within(p.time_ns.is_some() || p.bytes.is_some(), "a test needs an end: --time or --bytes")?;
    within(p.time_ns.is_none_or(|t| (1_000_000..=MAX_TIME_NS).contains(&t)), "--time: 1ms to 30 days")?;
    within(p.omit_ns <= 3_600_000_000_000, "--omit: at most one hour")?;
    within(p.bytes.is_none_or(|n| (1..=MAX_BYTES).contains(&n)), "--bytes: 1 byte to 1 EiB")?;
    within((MIN_INTERVAL_NS..=MAX_INTERVAL_NS).contains(&p.interval_ns), "--interval: 1ms to 10s")?;
    within(p.host_interval_ns >= MIN_INTERVAL_NS, "host sampling interval: at least 1ms")?;
    within((1..=MAX_WRITE).contains(&p.write_bytes), "--len: 1 byte to 64MiB for each write")
        .map_err(Invalid::of(ParameterKind::Size))?;
    let buffers = p.write_bytes * u64::from(p.streams) * p.direction.parts().len() as u64;
    within(buffers <= MAX_BUFFERS, "--len times --parallel: at most 1GiB in all directions together")
        .map_err(Invalid::of(ParameterKind::Size))?;
    within(p.window_bytes.is_none_or(|w| (1024..=i32::MAX as u64 / 2).contains(&w)), "--window: 1KiB to 1GiB")?;
    within(p.mss_bytes.is_none_or(|m| (88..=65_495).contains(&m)), "--mss: 88 to 65495 bytes")?;
    within(p.dscp.is_none_or(|d| d < 64), "--dscp: 0 to 63")?;
    within(p.pace_bps.is_none_or(|r| r >= 8), "--pace: at least 8 bits/s")?;
    within(p.rate_bps.is_none_or(|r| r >= 8), "--rate: at least 8 bits/s")?;
    within(p.read_rate_bps.is_none_or(|r| r >= 8), "--read-rate: at least 8 bits/s")?;
    within(p.probe_rate_per_s.is_none_or(|r| (0.1..=10_000.0).contains(&r)), "--probe: 0.1 to 10000 per second")?;
    within(
        p.congestion.as_ref().is_none_or(|c| is_identifier(c, 15)),
        "--congestion: a name of at most 15 letters, such as cubic or bbr",
    )
    .map_err(Invalid::of(ParameterKind::Congestion))?;
    within(p.distance_m.is_none_or(|m| m.is_finite() && m > 0.0), "--distance: above 0")?;
    within(p.title.as_ref().is_none_or(|t| t.len() <= 1024), "--title: at most 1024 bytes")?;
    within(p.bind.as_ref().is_none_or(|b| b.len() <= 256), "--bind: an address of this host")?;
    within(p.client_cpus.len() <= 1024 && p.server_cpus.len() <= 1024, "--cpus: at most 1024 in a list")?;
    match p.protocol {
        Protocol::Tcp => {}
        Protocol::Udp => {
            let Some(udp) = &p.udp else { return within(false, "a UDP test needs UDP parameters") };
            let least = dialect.format(0).bytes() as u32;
            if !(least..=MAX_UDP_PAYLOAD).contains(&udp.payload_bytes) {
                let message =
                    format!("--len: a UDP payload of {least} (the header that losses are counted by) to 65507 bytes");
                return Err(Invalid { about: ParameterKind::Size, message });
            }
            within((1..=65_536).contains(&udp.burst_packets), "--burst: 1 to 65536 packets")?;
            within(p.send == SendMode::Copy, "UDP is sent by copy: drop --send")?;
            within(
                p.read_rate_bps.is_none(),
                "--read-rate holds a TCP receiver back: drop it, or -u (UDP has no flow control)",
            )?;
            within(!p.mptcp, "multipath TCP has no UDP: drop --mptcp")?;
        }
        Protocol::TcpRr | Protocol::UdpRr => {
            let Some(rr) = &p.rr else { return within(false, "a request/response test needs its sizes") };
            within((1..=64).contains(&rr.sizes.len()), "--sizes: 1 to 64 of them")?;
            within(
                p.direction == Direction::Upload,
                "request/response goes both ways by itself: drop -R and --bidir",
            )?;
            within(p.time_ns.is_some(), "request/response is bounded by time: use -t")?;
            within(
                p.streams * rr.sizes.len() as u32 <= 1024,
                "--parallel times the number of --sizes: at most 1024",
            )?;
            within(
                !(p.protocol == Protocol::UdpRr && rr.mode == RrMode::Connect),
                "connect/request/response needs TCP: UDP has no connections",
            )?;
            let largest = if p.protocol == Protocol::UdpRr { MAX_UDP_PAYLOAD } else { 1 << 20 };
            for size in &rr.sizes {
                within(
                    (1..=largest).contains(&size.request_bytes) && (1..=largest).contains(&size.response_bytes),
                    "--sizes: 1 byte to 1MiB over TCP, to 65507 bytes over UDP",
                )?;
            }
            within(p.read_rate_bps.is_none(), "--read-rate is for bulk TCP: drop it, or --rr")?;
            RrSlot::all(p).map_err(|e| e.to_string())?;
            if let Some(rate) = rr.rate_per_s {
                within((1e-3..=1e7).contains(&rate), "--rate: 0.001 to 10000000 requests per second")?;
            }
        }
    }
    Ok(())
}

/// Checks that a server granted the requested parameters or less: it may only lower rates and lengths, and
/// sample less often.
pub fn granted(asked: &Parameters, granted: &Parameters) -> Result<(), String> {
    check(granted).map_err(|invalid| invalid.to_string())?;
    let rates = [
        (asked.rate_bps, granted.rate_bps),
        (asked.pace_bps, granted.pace_bps),
        (asked.read_rate_bps, granted.read_rate_bps),
        (asked.time_ns, granted.time_ns),
        (asked.bytes, granted.bytes),
    ];
    let less = rates.iter().all(|pair| match pair {
        (Some(asked), Some(granted)) => granted <= asked,
        (Some(_), None) => false,
        (None, _) => true,
    });
    let coarser = granted.interval_ns >= asked.interval_ns && granted.host_interval_ns >= asked.host_interval_ns;
    // Compare all parameters that must be equal; fractions may lose their last digit in JSON.
    let rest = Parameters {
        rate_bps: asked.rate_bps,
        pace_bps: asked.pace_bps,
        read_rate_bps: asked.read_rate_bps,
        time_ns: asked.time_ns,
        bytes: asked.bytes,
        interval_ns: asked.interval_ns,
        host_interval_ns: asked.host_interval_ns,
        probe_rate_per_s: asked.probe_rate_per_s,
        distance_m: asked.distance_m,
        rr: match (granted.rr.clone(), &asked.rr) {
            (Some(rr), Some(wanted)) => Some(RrParameters { rate_per_s: wanted.rate_per_s, ..rr }),
            (rr, _) => rr,
        },
        ..granted.clone()
    };
    let fraction = |p: &Parameters| (p.probe_rate_per_s, p.rr.as_ref().and_then(|rr| rr.rate_per_s));
    let near = |pair: (Option<f64>, Option<f64>)| match pair {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs(),
        (a, b) => a == b,
    };
    let ((asked_probe, asked_rr), (probe, rr)) = (fraction(asked), fraction(granted));
    if less && coarser && rest == *asked && near((asked_probe, probe)) && near((asked_rr, rr)) {
        Ok(())
    } else {
        Err("the server granted another test than was asked for".to_owned())
    }
}

fn is_identifier(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_beyond_the_request_are_rejected() {
        let asked = Parameters::default();
        assert_eq!(granted(&asked, &asked), Ok(()));
        let less = Parameters { rate_bps: Some(1_000), interval_ns: 1_000_000_000, ..asked.clone() };
        assert_eq!(granted(&asked, &less), Ok(()));
        for other in [
            Parameters { streams: 2, ..asked.clone() },
            Parameters { time_ns: Some(20_000_000_000), ..asked.clone() },
            Parameters { time_ns: None, bytes: Some(1), ..asked.clone() },
            Parameters { direction: Direction::Download, ..asked.clone() },
            Parameters { write_bytes: 1, ..asked.clone() },
            Parameters { interval_ns: 1_000_000, ..asked.clone() },
        ] {
            assert!(granted(&asked, &other).is_err(), "{other:?}");
        }
    }

    #[test]
    fn buffers_of_all_streams_together_are_bounded() {
        let greedy = Parameters { streams: 128, write_bytes: MAX_WRITE, ..Parameters::default() };
        assert!(check(&greedy).expect_err("8 GiB").to_string().contains("--len"));
    }
}
