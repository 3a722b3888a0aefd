//! Validation of test parameters. Both sides validate: the client to report errors early, the server because it
//! does not trust clients.

use landspeed_model::{Parameters, Protocol};
use landspeed_settings::{MAX_BUFFERS, MAX_UDP_PAYLOAD};
use landspeed_units::Nanos;

use crate::dialect::Dialect;
use crate::end::RrSlot;
use crate::error::FlowError;

/// Error for an invalid parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// Name of the setting, if it is a single one: `congestion`.
    pub setting: Option<&'static str>,
    message: String,
}

impl From<String> for Invalid {
    fn from(message: String) -> Self {
        Self { setting: None, message }
    }
}

impl From<&landspeed_settings::Problem> for Invalid {
    fn from(problem: &landspeed_settings::Problem) -> Self {
        Self { setting: Some(problem.setting.name), message: problem.to_string() }
    }
}

/// Validates the parameters of a test between two landspeed programs.
///
/// # Errors
/// The first invalid parameter.
pub fn check(p: &Parameters) -> Result<(), Invalid> {
    check_in(p, Dialect::LANDSPEED)
}

/// Refuses a distance that light cannot travel there and back within the RTT, nanoseconds; 0 if it is unknown.
///
/// # Errors
/// The distance, with the time that light needs.
pub fn check_distance(p: &Parameters, rtt_ns: u64) -> Result<(), FlowError> {
    let Some(metres) = p.distance_m.filter(|_| rtt_ns > 0) else { return Ok(()) };
    let nanos = |seconds: f64| Nanos::new((seconds * 1e9) as u64);
    let needed = nanos(landspeed_calc::vacuum_rtt_s(metres));
    if needed.get() <= rtt_ns {
        return Ok(());
    }
    Err(FlowError::Other {
        code: "bad-parameters",
        message: format!(
            "--distance: the RTT of {} is too short for {} km: light needs {needed}, in fibre {}",
            Nanos::new(rtt_ns),
            metres / 1e3,
            nanos(landspeed_calc::fibre_rtt_s(metres))
        ),
        advice: "give the length of the path between the two hosts, or leave --distance out",
    })
}

/// Validates the parameters of a test in `dialect`: each setting by its declaration, then what several settings or the dialect
/// limit together.
///
/// # Errors
/// The first invalid parameter.
pub fn check_in(p: &Parameters, dialect: Dialect) -> Result<(), Invalid> {
    if let Some(problem) = landspeed_settings::problems(p).first() {
        return Err(problem.into());
    }
    let within = |ok: bool, message: &str| if ok { Ok(()) } else { Err(Invalid::from(message.to_owned())) };
    within(p.time_ns.is_some() || p.bytes.is_some(), "a test needs an end: --time or --bytes")?;
    if p.stream_dscp.iter().any(|dscp| *dscp > 63) {
        let message = "--stream-dscp: 0 to 63 (the TOS byte divided by four)".to_owned();
        return Err(Invalid { setting: Some("stream-dscp"), message });
    }
    let buffers = p.write_bytes * u64::from(p.streams) * p.direction.parts().len() as u64;
    let message = "--len times --parallel: at most 1GiB in all directions together";
    within(buffers <= MAX_BUFFERS, message).map_err(|invalid| Invalid { setting: Some("len"), ..invalid })?;
    match p.protocol {
        Protocol::Tcp => {}
        Protocol::Udp => {
            let Some(udp) = &p.udp else { return within(false, "a UDP test needs UDP parameters") };
            let least = dialect.format(0).bytes() as u32;
            if udp.payload_bytes < least {
                let message = format!(
                    "--len: a UDP payload of {least} (the header that losses are counted by) to {MAX_UDP_PAYLOAD} bytes"
                );
                return Err(Invalid { setting: Some("len"), message });
            }
        }
        Protocol::TcpRr | Protocol::UdpRr => {
            let Some(rr) = &p.rr else { return within(false, "a request/response test needs its sizes") };
            within((1..=64).contains(&rr.sizes.len()), "--sizes: 1 to 64 of them")?;
            within(p.time_ns.is_some(), "request/response is bounded by time: use -t")?;
            within(
                p.streams * rr.sizes.len() as u32 <= 1024,
                "--parallel times the number of --sizes: at most 1024",
            )?;
            let largest = if p.protocol == Protocol::UdpRr { MAX_UDP_PAYLOAD } else { 1 << 20 };
            for size in &rr.sizes {
                within(
                    (1..=largest).contains(&size.request_bytes) && (1..=largest).contains(&size.response_bytes),
                    "--sizes: 1 byte to 1MiB over TCP, to 65507 bytes over UDP",
                )?;
            }
            RrSlot::all(p).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// Checks that a server granted the requested parameters, or less where a setting permits it.
///
/// # Errors
/// The settings that the server may not change.
pub fn granted(requested: &Parameters, granted: &Parameters) -> Result<(), String> {
    check(granted).map_err(|invalid| invalid.to_string())?;
    let changed = landspeed_settings::differences(requested, granted);
    if changed.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = changed.iter().map(|setting| setting.name).collect();
    Err(format!("the server granted another test than requested: it changed {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use landspeed_model::Direction;

    use super::*;

    #[test]
    fn distances_farther_than_light_travels_are_refused() {
        let at = |km: f64| Parameters { distance_m: Some(km * 1e3), ..Parameters::default() };
        let error = check_distance(&at(9000.0), 4_000).expect_err("light needs 60 ms");
        assert_eq!(
            error.to_string(),
            "--distance: the RTT of 4.00 µs is too short for 9000 km: light needs 60.0 ms, in fibre 90.1 ms"
        );
        assert!(check_distance(&at(9000.0), 60_100_000).is_ok(), "a path in vacuum");
        assert!(check_distance(&at(9000.0), 0).is_ok(), "the RTT is unknown");
        assert!(check_distance(&at(1e30), u64::MAX - 1).is_err());
        assert!(check_distance(&Parameters::default(), 4_000).is_ok());
    }

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
    fn a_class_beyond_six_bits_is_refused() {
        let marked = |dscp| Parameters { stream_dscp: vec![0, dscp], ..Parameters::default() };
        assert_eq!(check(&marked(63)), Ok(()));
        assert_eq!(check(&marked(64)).expect_err("seven bits").setting, Some("stream-dscp"));
    }

    #[test]
    fn buffers_of_all_streams_together_are_bounded() {
        let greedy = Parameters { streams: 128, write_bytes: 64 << 20, ..Parameters::default() };
        assert!(check(&greedy).expect_err("8 GiB").to_string().contains("--len"));
    }
}
