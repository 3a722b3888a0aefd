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

/// Returns advice on how to enlarge `buffer` on `host`, which limits the flow; `now` is its current size in bytes. The
/// advice never asks for less than is there, and gives no command for settings that were not read.
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
    let estimate = need.zip(basis);
    let limit = host.sysctl_max(buffer.sysctl).map(|bytes| bytes as f64);
    if let Some(asked) = flow.parameters.window_bytes {
        return without_window_option(host, buffer, asked as f64, now, estimate);
    }
    if let Some(fixed) = fixed_by_program(flow, host, buffer, now) {
        return format!("{}, then {again}.", ask_for_more(flow, host, buffer, now, estimate, fixed));
    }
    let Some(limit) = limit else { return raise_unread(&label, buffer, again, estimate) };
    let Some((need, basis)) = estimate else {
        return format!("Raise {}[2] on {label} to 2 × BDP of the path, then {again}.", buffer.sysctl);
    };
    if let Some(now) = now.filter(|&now| now < limit * 0.5) {
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
    if limit >= MAX_BUFFER_BYTES {
        return format!(
            "Use parallel streams: {}[2] on {label} is {}, and the kernel has no larger buffers; then {again}.",
            buffer.sysctl,
            text::bytes(limit)
        );
    }
    // The limit was reached and did limit the flow: raise it even if the computed BDP is below it.
    let (need, basis) = if need <= limit {
        ((limit * 2.0).min(MAX_BUFFER_BYTES), "twice the limit that was reached".to_owned())
    } else {
        (need, format!("2 × {basis}"))
    };
    let ceiling = rtt_us.map_or(0.0, |us| bdp_bytes(target_bps, us / 1e6));
    let flows =
        if ceiling > MAX_WINDOW_BYTES { " No TCP window passes 1 GiB: use parallel streams as well." } else { "" };
    let Some(assignment) = assignment(host, buffer, need) else { return raise_unread(&label, buffer, again, None) };
    format!(
        "Raise {}[2] on {label} and {again}: `sysctl -w {assignment}`. That is {}: {basis}; it is {} now.{flows}",
        buffer.sysctl,
        text::bytes(need),
        text::bytes(limit)
    )
}

/// Whether the kernel may enlarge a buffer of `now` bytes that a program no longer sizes; if its limit was not read, that is
/// unknown.
fn kernel_allows_more(host: &HostView, buffer: Buffer, now: f64) -> bool {
    host.sysctl_max(buffer.sysctl).is_some_and(|limit| limit as f64 > now)
}

/// Advice for a buffer that `--window` fixed at `asked` bytes; `now` is its size as `getsockopt` returns it.
fn without_window_option(
    host: &HostView,
    buffer: Buffer,
    asked: f64,
    now: Option<f64>,
    estimate: Option<(f64, String)>,
) -> String {
    let fixed = format!("{} was fixed at {} by --window", buffer.option, text::bytes(asked));
    // The kernel doubles the size that a program asks for (socket(7)).
    let frees = kernel_allows_more(host, buffer, now.unwrap_or(2.0 * asked));
    let free = if frees {
        "drop --window to let the kernel size it".to_owned()
    } else {
        format!("raise {}[2] above twice that and drop --window", buffer.sysctl)
    };
    let Some((ask, basis)) = estimate.map(|(need, basis)| (need / 2.0, basis)).filter(|(ask, _)| *ask > asked) else {
        return format!("{fixed}: {free}, then run again.");
    };
    let bound = host.sysctl_max(buffer.explicit).filter(|&bytes| (bytes as f64) < ask);
    let bound = bound.map(|bytes| format!(", which {} of {} forbids", buffer.explicit, text::bytes(bytes as f64)));
    let free = if frees { format!("{free}, or ") } else { String::new() };
    format!(
        "{fixed}: {free}ask for at least {} ({basis}; the kernel doubles it){}; then run again.",
        text::bytes(ask),
        bound.unwrap_or_default()
    )
}

/// Says how certain it is that the program set the size of a watched flow's local buffer, and that its kernel does not;
/// `None` if it did not, or if that is unknown.
fn fixed_by_program(flow: &Flow, host: &HostView, buffer: Buffer, now: Option<f64>) -> Option<&'static str> {
    let readings = flow.host_readings.filter(|_| host.end == flow.local().end)?;
    let now = now?;
    if let Some(locks) = readings.buffer_locks {
        let locked = if buffer.option == RECEIVE.option { locks.receive } else { locks.send };
        return locked.then_some("The program set");
    }
    // Autotuning starts at the second value and ends at the third.
    let mut sizes = host.sysctl(buffer.sysctl)?.split_ascii_whitespace().skip(1).map(str::parse::<f64>);
    let (usual, limit) = (sizes.next()?.ok()?, sizes.next()?.ok()?);
    (now < usual || now > limit).then_some("The program seems to have set")
}

/// Advice for a buffer whose size the program set; `getsockopt` returns twice what was asked for (socket(7)).
fn ask_for_more(
    flow: &Flow,
    host: &HostView,
    buffer: Buffer,
    now: Option<f64>,
    estimate: Option<(f64, String)>,
    fixed: &str,
) -> String {
    let now = now.unwrap_or(0.0);
    let need = estimate.map_or(0.0, |(need, _)| need).max(2.0 * now) / 2.0;
    let bound = host.sysctl_max(buffer.explicit).filter(|&bytes| (bytes as f64) < need);
    let bound = bound.map_or(String::new(), |bytes| {
        format!(", for which {} ({} now) has to be raised", buffer.explicit, text::bytes(bytes as f64))
    });
    let frees = kernel_allows_more(host, buffer, now);
    let free = if frees { "remove that call from the program, or " } else { "" };
    format!(
        "{fixed} {option} to {}, so the kernel on {} does not size the buffer: {free}ask for at least {}{bound}",
        text::bytes(now / 2.0),
        flow.label(host),
        text::bytes(need),
        option = buffer.option,
    )
}

/// Advice for a host whose settings were not read: what limits there is not known, and neither is what a command would
/// replace.
fn raise_unread(label: &str, buffer: Buffer, again: &str, estimate: Option<(f64, String)>) -> String {
    let to = estimate.map_or_else(
        || "2 × BDP of the path".to_owned(),
        |(need, basis)| format!("{} (2 × {basis})", text::bytes(need)),
    );
    format!(
        "On {label} see whether the program sets {}: then the kernel does not size the buffer (`ss -tm` shows the size), and the \
         call has to ask for more, or to be removed if {sysctl}[2] is larger. If not, raise {sysctl}[2] to at least {to}, and to no \
         less than it is now; then {again}.",
        buffer.option,
        sysctl = buffer.sysctl
    )
}

/// Formats an assignment such as `net.ipv4.tcp_rmem='4096 131072 12582912'` that keeps the host's own minimum and
/// default; `None` if these were not read.
fn assignment(host: &HostView, buffer: Buffer, need: f64) -> Option<String> {
    let now: Vec<&str> = host.sysctl(buffer.sysctl)?.split_whitespace().collect();
    let known = now.len() == 3 && now.iter().all(|figure| figure.bytes().all(|byte| byte.is_ascii_digit()));
    known.then(|| format!("{}='{} {} {}'", buffer.sysctl, now[0], now[1], need.ceil()))
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
