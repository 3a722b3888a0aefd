//! Advice on socket buffer and pacing values, computed from the measured rate and RTT.

use landspeed_calc::{MAX_BUFFER_BYTES, MAX_WINDOW_BYTES, bdp_bytes, socket_buffer_bytes};

use crate::flow::Flow;
use crate::host::HostView;
use crate::text;

/// Headroom when the capacity of the path is unknown: multiple of the measured rate.
const UNKNOWN_RATE_HEADROOM: f64 = 2.0;

/// Share of the path's rate to pace at: leaves capacity for headers and retransmits.
const PACE_SHARE: f64 = 0.95;

/// A socket buffer and the settings that bound it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buffer {
    /// The sysctl whose third value (`max`) bounds autotuning.
    pub sysctl: &'static str,
    /// The sysctl that bounds a size set with `setsockopt`.
    pub explicit: &'static str,
    /// The socket option that sets the size.
    pub option: &'static str,
}

/// TCP receive buffer.
pub(crate) const RECEIVE: Buffer =
    Buffer { sysctl: "net.ipv4.tcp_rmem", explicit: "net.core.rmem_max", option: "SO_RCVBUF" };

/// TCP send buffer.
pub(crate) const SEND: Buffer =
    Buffer { sysctl: "net.ipv4.tcp_wmem", explicit: "net.core.wmem_max", option: "SO_SNDBUF" };

/// Returns advice on how to enlarge `buffer` on `host`; `now` is its current size in bytes.
pub(crate) fn enlarge(flow: &Flow, host: &HostView, buffer: Buffer, now: Option<f64>) -> String {
    let label = flow.label(host);
    let again = if flow.observed { "start the transfer again" } else { "run again" };
    let (target_bps, known) = target(flow);
    let rtt_us =
        flow.min_rtt_us().or_else(|| flow.document.path.as_ref().map(|path| path.control_rtt_ns as f64 / 1e3));
    let rtt_us = rtt_us.filter(|&us| us > 0.0);
    let need = rtt_us.filter(|_| target_bps > 0.0).map(|us| socket_buffer_bytes(target_bps, us / 1e6));
    let basis = rtt_us.map(|us| {
        let whose = if known { "" } else { " (twice the rate measured: the path's rate is unknown)" };
        format!("BDP of {} × {}{whose}", text::rate(target_bps), text::micros(us))
    });
    if let Some(asked) = flow.parameters.window_bytes {
        let asked = text::bytes(asked as f64);
        let locked = format!("{} was fixed at {asked} by --window: drop --window", buffer.option);
        let (Some(need), Some(basis)) = (need, basis) else { return format!("{locked}, then run again.") };
        // The kernel doubles the size that a program asks for (socket(7)).
        let ask = need / 2.0;
        let bound = host.sysctl_max(buffer.explicit).filter(|&bytes| (bytes as f64) < ask);
        let bound =
            bound.map(|bytes| format!(", which {} of {} forbids", buffer.explicit, text::bytes(bytes as f64)));
        return format!(
            "{locked} to let the kernel size it, or ask for at least {} ({basis}; the kernel doubles it){}; then run again.",
            text::bytes(ask),
            bound.unwrap_or_default()
        );
    }
    let limit = host.sysctl_max(buffer.sysctl).map(|bytes| bytes as f64);
    let (Some(need), Some(basis)) = (need, basis) else {
        return format!("Raise {}[2] on {label} to 2 × BDP of the path, then {again}.", buffer.sysctl);
    };
    if let (Some(limit), Some(now)) = (limit, now)
        && now < limit * 0.5
    {
        let cause = if host.sysctl("net.ipv4.tcp_moderate_rcvbuf") == Some("0") && buffer.option == "SO_RCVBUF" {
            "net.ipv4.tcp_moderate_rcvbuf is 0: set it to 1".to_owned()
        } else {
            format!("look for a program or wrapper that sets {}, and for TCP memory pressure", buffer.option)
        };
        return format!(
            "The buffer stayed at {} though {}[2] on {label} allows {}: {cause}; then {again}.",
            text::bytes(now),
            buffer.sysctl,
            text::bytes(limit)
        );
    }
    if let Some(limit) = limit.filter(|&limit| limit >= MAX_BUFFER_BYTES) {
        return format!(
            "Use parallel streams: {}[2] on {label} is {}, and the kernel has no larger buffers; then {again}.",
            buffer.sysctl,
            text::bytes(limit)
        );
    }
    // The limit was reached and did limit the flow: raise it even if the computed BDP is below it.
    let (need, basis) = match limit {
        Some(limit) if need <= limit => {
            ((limit * 2.0).min(MAX_BUFFER_BYTES), "twice the limit that was reached".to_owned())
        }
        _ => (need, format!("2 × {basis}")),
    };
    let now = limit.map_or(String::new(), |limit| format!("; it is {} now", text::bytes(limit)));
    let ceiling = rtt_us.map_or(0.0, |us| bdp_bytes(target_bps, us / 1e6));
    let flows =
        if ceiling > MAX_WINDOW_BYTES { " No TCP window passes 1 GiB: use parallel streams as well." } else { "" };
    format!(
        "Raise {}[2] on {label} and {again}: `sysctl -w {}`. That is {}: {basis}{now}.{flows}",
        buffer.sysctl,
        assignment(host, buffer, need),
        text::bytes(need)
    )
}

/// Formats an assignment such as `net.ipv4.tcp_rmem='4096 131072 12582912'`. Min and default are the host's
/// own values, or the kernel's defaults.
fn assignment(host: &HostView, buffer: Buffer, need: f64) -> String {
    let now: Vec<&str> = host.sysctl(buffer.sysctl).map(|text| text.split_whitespace().collect()).unwrap_or_default();
    let known = now.len() == 3 && now.iter().all(|figure| figure.bytes().all(|byte| byte.is_ascii_digit()));
    let (least, usual) = match (known, buffer.option) {
        (true, _) => (now[0], now[1]),
        (false, "SO_SNDBUF") => ("4096", "16384"),
        (false, _) => ("4096", "131072"),
    };
    format!("{}='{least} {usual} {}'", buffer.sysctl, need.ceil())
}

/// Returns the target rate per stream in bits/s, and whether it is the known path capacity (else a multiple
/// of the measured rate).
fn target(flow: &Flow) -> (f64, bool) {
    let streams = flow.streams.len().max(1) as f64;
    match flow.capacity_bps() {
        Some(capacity) if capacity >= flow.goodput_bps => (capacity / streams, true),
        _ => (flow.goodput_bps * UNKNOWN_RATE_HEADROOM / streams, false),
    }
}

/// Formats `--pace 1.9G`: the pacing rate per stream, with headroom for bursts, from the path capacity if
/// known, else from the measured rate.
pub(crate) fn pace(flow: &Flow) -> String {
    let streams = flow.streams.len().max(1) as f64;
    let rate = flow.capacity_bps().map_or(flow.goodput_bps, |capacity| capacity.max(flow.goodput_bps));
    format!("--pace {}", text::rate_argument(rate * PACE_SHARE / streams))
}
