//! Detects an emulated path under a run: requests its status at the interface towards the server and, if the user asks for
//! it, in band.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use ipnet::IpNet;
use landspeed_emulate::{ExchangeLimit, StatusError};
use landspeed_flow::client::{deserialize_value, make_printable};
use landspeed_model::{
    EmulatePlacement, EmulationSource, EmulationStatus, InvalidSpan, RunDocument, RunEmulation, Warning,
};
use landspeed_netlink::Netlink;
use landspeed_sys::clock::realtime_ns;

/// One second, nanoseconds.
const SECOND_NS: i128 = 1_000_000_000;
/// Time limit of the exchange with a process of this host, nanoseconds; and after an interrupt.
const LOCAL_NS: u64 = 1_000_000_000;
const INTERRUPTED_NS: u64 = 100_000_000;
/// Time limit of the exchange with hosts on the path, nanoseconds: the invalid seconds of a long run need many replies.
const PATH_NS: u64 = 5_000_000_000;

/// Adds the status of a running `landspeed emulate` on the path to the run document, or a warning that it is unknown. Hosts
/// on the path are asked only with `ask_path`.
pub fn note(document: &mut RunDocument, ask_path: bool, interrupted: &AtomicBool) {
    // The client of a third-party run is another host.
    if document.third_party.is_some() {
        return;
    }
    let Some(server) = document.path.as_ref().and_then(|path| address(&path.server_addr)) else { return };
    let Some(route) = Netlink::open().and_then(|mut netlink| netlink.route(SocketAddr::new(server, 0))).ok() else {
        return;
    };
    if route.local {
        return;
    }
    let Some(start_ns) = humantime::parse_rfc3339_weak(&document.started)
        .ok()
        .and_then(|started| started.duration_since(UNIX_EPOCH).ok())
        .map(|since| since.as_nanos() as i128)
    else {
        return;
    };
    match request(server, route.out_ifindex, start_ns, ask_path, interrupted) {
        Ok(None) => {}
        Ok(Some((status, source))) => {
            let end_ns = document.phases.iter().map(|phase| phase.end_ns).max().unwrap_or(0);
            document.emulation = Some(account(&status, source, start_ns, end_ns));
        }
        Err(why) => document.warnings.push(Warning {
            code: "emulation-unknown".to_owned(),
            message: format!("The status of the emulated path is unknown: {why}."),
        }),
    }
}

/// Requests the status of an emulation on the path to `server`, of a run that began at `start_ns` (Unix time).
fn request(
    server: IpAddr,
    ifindex: u32,
    start_ns: i128,
    ask_path: bool,
    interrupted: &AtomicBool,
) -> Result<Option<(EmulationStatus, EmulationSource)>, StatusError> {
    // The interrupt that ended the run leaves a moment for a local answer; one during the exchange ends it.
    let was_interrupted = interrupted.load(Ordering::Relaxed);
    let unset = AtomicBool::new(false);
    let limit = if was_interrupted {
        ExchangeLimit::new(INTERRUPTED_NS, &unset)
    } else {
        ExchangeLimit::new(LOCAL_NS, interrupted)
    };
    let local = landspeed_emulate::request_status(ifindex, &limit)?;
    if let Some(status) = local.filter(|status| leads_to(status, server)) {
        return Ok(Some((status, EmulationSource::Local)));
    }
    if !ask_path || was_interrupted {
        return Ok(None);
    }
    let since_ns = (i128::from(realtime_ns()) - start_ns).max(0) as u64;
    let limit = ExchangeLimit::new(PATH_NS, interrupted);
    let Some(status) = landspeed_emulate::request_in_band(server, since_ns, &limit)? else { return Ok(None) };
    Ok(Some((printable(&status)?, EmulationSource::Path)))
}

/// Makes the strings of an answer from the path printable.
fn printable(status: &EmulationStatus) -> Result<EmulationStatus, StatusError> {
    let unreadable = |error: serde_json::Error| StatusError::Unreadable(error.to_string());
    let mut value = serde_json::to_value(status).map_err(unreadable)?;
    make_printable(&mut value);
    deserialize_value(&value).map_err(unreadable)
}

/// Parses an address with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let plain = text.parse::<SocketAddr>().map(|address| address.ip()).or_else(|_| text.parse::<IpAddr>()).ok()?;
    Some(plain.to_canonical())
}

/// Whether packets to `server` go through the emulated path.
fn leads_to(status: &EmulationStatus, server: IpAddr) -> bool {
    match &status.placement {
        EmulatePlacement::Command { .. } => true,
        EmulatePlacement::Between { .. } => false,
        EmulatePlacement::Peers { peers, .. } => {
            peers.iter().any(|peer| peer.parse::<IpNet>().is_ok_and(|peer| peer.contains(&server)))
        }
    }
}

/// Maps the invalid seconds to the timeline of a run that began at `start_ns` (Unix time) and took `run_ns`.
fn account(status: &EmulationStatus, source: EmulationSource, start_ns: i128, run_ns: u64) -> RunEmulation {
    let offset_ns = i128::from(status.start_unix_ns) - start_ns;
    let clip = |ns: i128| ns.clamp(0, i128::from(run_ns)) as u64;
    let span = |second: &landspeed_model::InvalidSecond| {
        let from_ns = offset_ns + i128::from(second.second) * SECOND_NS;
        let (start_ns, end_ns) = (clip(from_ns), clip(from_ns + SECOND_NS));
        (end_ns > start_ns).then(|| InvalidSpan {
            start_ns,
            end_ns,
            reasons: second.reasons.clone(),
            message: second.message.clone(),
        })
    };
    RunEmulation {
        path: status.path.clone(),
        source,
        covered_ns: clip(offset_ns + i128::from(status.elapsed_ns)) - clip(offset_ns),
        invalid: status.invalid.iter().filter_map(span).collect(),
    }
}

#[cfg(test)]
mod tests {
    use landspeed_model::{EmulatedPath, InvalidReason, InvalidSecond};

    use super::*;

    fn status() -> EmulationStatus {
        let invalid =
            |second| InvalidSecond { second, reasons: vec![InvalidReason::Late], message: format!("{second}") };
        EmulationStatus {
            path: EmulatedPath { name: "a path".to_owned(), seed: 1, mtu_bytes: 1500, links: 1 },
            placement: EmulatePlacement::Peers {
                interface: "eth0".to_owned(),
                peers: vec!["10.0.0.0/24".to_owned()],
            },
            start_unix_ns: 1_000_000_000_000,
            elapsed_ns: 8_400_000_000,
            invalid: vec![invalid(0), invalid(2), invalid(3), invalid(8)],
        }
    }

    #[test]
    fn invalid_seconds_are_placed_on_the_runs_timeline() {
        // The run began 2.25 s after the emulation and took 6 s.
        let emulation = account(&status(), EmulationSource::Local, 1_002_250_000_000, 6_000_000_000);
        let spans: Vec<(u64, u64)> = emulation.invalid.iter().map(|span| (span.start_ns, span.end_ns)).collect();
        assert_eq!(spans, [(0, 750_000_000), (750_000_000, 1_750_000_000), (5_750_000_000, 6_000_000_000)]);
        assert_eq!(emulation.covered_ns, 6_000_000_000);
    }

    #[test]
    fn only_packets_of_peers_take_the_path() {
        assert!(leads_to(&status(), "10.0.0.9".parse().expect("an address")));
        assert!(!leads_to(&status(), "10.0.1.9".parse().expect("an address")));
        assert_eq!(address("[::ffff:10.0.0.9]:5210"), "10.0.0.9".parse().ok());
    }
}
