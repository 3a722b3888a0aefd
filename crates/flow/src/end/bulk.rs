//! Bulk streams of a test: plans for the loops of [`crate::tcp`] and [`crate::udp`], and conversion of their
//! outcomes.

use std::net::{Shutdown, TcpStream, UdpSocket};
use std::num::{NonZeroU32, NonZeroU64};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use landspeed_model::{PaceScope, Parameters, UdpParameters};
use landspeed_sys::{clock, socket};

use super::task::{Finished, Task, describe_tcp};
use super::watch::Watch;
use crate::progress::SenderDone;
use crate::udp::header::Format;
use crate::{tcp, udp};

/// Returns the pacing rate of one stream, bytes/s.
fn pace(parameters: &Parameters) -> Option<u64> {
    let rate = parameters.pace_bps? / 8;
    Some(match parameters.pace_scope {
        PaceScope::Stream => rate,
        PaceScope::Total => rate / u64::from(parameters.streams.max(1)),
    })
}

pub(super) fn send_tcp(task: &Task<'_>, tcp: &TcpStream, finished: &mut Finished) {
    let Task { stream, parameters, t0_ns, drain_ns, watch, budget, ref done, .. } = *task;
    let fd = tcp.as_fd();
    let tick = Some(Duration::from_millis(tcp::TICK_MS));
    let _ = tcp.set_write_timeout(tick);
    if let Some(rate) = pace(parameters)
        && let Err(error) = socket::set_max_pacing_rate(fd, rate)
    {
        finished.notes.push(format!("stream {}: cannot set the pacing rate: {error}", stream.id));
    }
    let plan = tcp::SendPlan {
        mode: parameters.send,
        write_bytes: parameters.write_bytes as usize,
        start_ns: t0_ns,
        rate_bytes_per_s: parameters.rate_bps.map(|bps| bps / 8),
        block_bytes: task.dialect.block_bytes,
    };
    let outcome = tcp::send_stream(fd, &plan, &stream.counters, &watch.stop, budget);
    let stopped_ns = clock::monotonic_ns().saturating_sub(t0_ns);
    let _ = done.send(SenderDone { stream: stream.id, bytes: outcome.bytes, packets: 0, stopped_ns });
    finished.acked_ns = drain(fd, drain_ns, watch).then(|| clock::monotonic_ns().saturating_sub(t0_ns));
    let end = &mut finished.end;
    end.bytes = outcome.bytes;
    end.syscalls = Some(outcome.syscalls);
    end.app_wait_ns = Some(outcome.app_wait_ns);
    end.zerocopy = outcome.zerocopy;
    end.error = outcome.error.map(|e| format!("send: {e}"));
    describe_tcp(stream, fd, end);
    if !task.dialect.streams_stay_open {
        // All counters are read: end of file can be sent now.
        let _ = tcp.shutdown(Shutdown::Write);
    }
}

/// Waits until the peer has acknowledged everything; false if the drain timeout has passed before. The time of the
/// last ACK is known to an eighth of the wait.
fn drain(fd: BorrowedFd<'_>, drain_ns: u64, watch: &Watch) -> bool {
    let begun = clock::monotonic_ns();
    while socket::send_queue(fd).is_ok_and(|n| n > 0) {
        let now = clock::monotonic_ns();
        if now >= begun + drain_ns || watch.stop.receiving() || is_connection_closed(fd) {
            return false;
        }
        clock::sleep_until(now + ((now - begun) / 8).clamp(50_000, 5_000_000));
    }
    true
}

fn is_connection_closed(fd: BorrowedFd<'_>) -> bool {
    const TCP_CLOSE: u8 = 7;
    socket::tcp_info(fd).map_or(true, |raw| raw.as_bytes().first() == Some(&TCP_CLOSE))
}

pub(super) fn receive_tcp(task: &Task<'_>, tcp: &TcpStream, finished: &mut Finished) {
    let Task { stream, parameters, t0_ns, watch, receive_cap_bps, .. } = *task;
    let fd = tcp.as_fd();
    let slowest = [parameters.read_rate_bps, receive_cap_bps].into_iter().flatten().min();
    let _ = tcp.set_read_timeout(Some(Duration::from_millis(tcp::TICK_MS)));
    let plan = tcp::ReceivePlan {
        mode: parameters.receive,
        read_bytes: read_bytes(parameters, &sender_congestion(parameters, fd)),
        rate_bytes_per_s: slowest.map(|bps| bps / 8),
        start_ns: t0_ns,
        stamps_reads: parameters.bytes.is_some(),
    };
    let outcome = tcp::receive_stream(fd, &plan, &stream.counters, &watch.stop);
    let end = &mut finished.end;
    describe_tcp(stream, fd, end);
    if outcome.complete {
        // No data follows end of file. MPTCP reports 1 here: its SIOCINQ hints that a read would return, and end of
        // file is such a read (`mptcp_inq_hint` in net/mptcp/protocol.c).
        end.receive_queue_bytes = Some(0);
    }
    end.bytes = outcome.bytes;
    end.syscalls = Some(outcome.syscalls);
    end.app_wait_ns = Some(outcome.app_wait_ns);
    end.error = match outcome.error {
        Some(error) => Some(format!("receive: {error}")),
        None if !outcome.complete && !task.dialect.streams_stay_open => {
            Some("the sender's end of file did not arrive".to_owned())
        }
        None => None,
    };
}

/// Returns the sender's congestion control: the one asked for, otherwise the receiving host's default.
fn sender_congestion(parameters: &Parameters, fd: BorrowedFd<'_>) -> String {
    parameters.congestion.clone().or_else(|| socket::congestion(fd).ok()).unwrap_or_default()
}

/// Returns the bytes per read, for the congestion control of the sender. Copying reads are as long as the sender's
/// writes, up to 1 MiB, with BBR up to 64 KiB: the kernel acknowledges after a read, and a BBR sender without `fq`
/// waits for a timer where no ACK wakes it (docs/benchmarks.md). Discarding reads use no buffer; their length makes
/// their number negligible while the counters still advance every millisecond at 10 Gb/s.
fn read_bytes(parameters: &Parameters, congestion: &str) -> usize {
    let most = if congestion == "bbr" { 64 * 1024 } else { 1 << 20 };
    match parameters.receive {
        landspeed_model::ReceiveMode::Copy => (parameters.write_bytes as usize).min(most),
        landspeed_model::ReceiveMode::Discard => 512 * 1024,
    }
}

pub(super) fn send_udp(task: &Task<'_>, udp: &UdpSocket, finished: &mut Finished) {
    let Task { stream, parameters, t0_ns, watch, budget, ref done, .. } = *task;
    let plan = udp_send_plan(parameters, task.dialect.format(stream.tag), t0_ns);
    let outcome = udp::send_stream(udp.as_fd(), &plan, &stream.counters, &watch.stop, budget);
    let stopped_ns = clock::monotonic_ns().saturating_sub(t0_ns);
    finished.acked_ns = outcome.last_ns.map(|last_ns| last_ns.saturating_sub(t0_ns));
    let packets = outcome.udp.sent_packets;
    let _ = done.send(SenderDone { stream: stream.id, bytes: outcome.bytes, packets, stopped_ns });
    let end = &mut finished.end;
    end.bytes = outcome.bytes;
    end.syscalls = Some(outcome.syscalls);
    end.app_wait_ns = Some(outcome.app_wait_ns);
    end.udp = Some(outcome.udp);
    end.error = outcome.error.map(|e| e.to_string());
    finished.notes.extend(outcome.notes.into_iter().map(|note| format!("stream {}: {note}", stream.id)));
    if let Ok(memory) = socket::mem_info(udp.as_fd()) {
        end.sndbuf_bytes = Some(u64::from(memory.sndbuf));
    }
}

pub(super) fn receive_udp(task: &Task<'_>, udp: &UdpSocket, finished: &mut Finished) {
    let Task { stream, parameters, watch, .. } = *task;
    let mut plan = udp_receive_plan(parameters, task.dialect.format(stream.tag));
    plan.drops_before = stream.drops_before;
    let outcome = udp::receive_stream(udp.as_fd(), &plan, &stream.counters, &watch.stop, &stream.finish);
    let end = &mut finished.end;
    end.bytes = outcome.bytes;
    end.syscalls = Some(outcome.syscalls);
    end.udp = Some(outcome.udp);
    end.error = outcome.error.map(|e| e.to_string());
    finished.notes.extend(outcome.notes.into_iter().map(|note| format!("stream {}: {note}", stream.id)));
    if let Ok(memory) = socket::mem_info(udp.as_fd()) {
        end.rcvbuf_bytes = Some(u64::from(memory.rcvbuf));
    }
}

/// Time without arrivals after the sender's final count until missing datagrams count as lost, nanoseconds.
const QUIET_TIMEOUT_NS: u64 = 200_000_000;

fn udp_send_plan(parameters: &Parameters, format: Format, t0_ns: u64) -> udp::SendPlan {
    let wanted = parameters.udp.clone().unwrap_or_default();
    let pacing = parameters.rate_bps.and_then(NonZeroU64::new).map(|rate_bps| udp::Pacing {
        rate_bps,
        burst_packets: NonZeroU32::new(wanted.burst_packets).unwrap_or(NonZeroU32::MIN),
        grain_ns: if wanted.exact_departures { 0 } else { udp::Pacing::ECONOMICAL_GRAIN_NS },
    });
    let length = parameters.time_ns.map(|t| t + parameters.omit_ns);
    udp::SendPlan {
        start_ns: t0_ns,
        end_ns: length.map_or(u64::MAX, |t| t0_ns.saturating_add(t)),
        format,
        payload: udp_payload(&wanted, format),
        pacing,
        gso: wanted.gso,
    }
}

fn udp_receive_plan(parameters: &Parameters, format: Format) -> udp::ReceivePlan {
    let wanted = parameters.udp.clone().unwrap_or_default();
    udp::ReceivePlan {
        format,
        payload: udp_payload(&wanted, format),
        rate_bps: parameters.rate_bps,
        gro: wanted.gro,
        quiet_ns: QUIET_TIMEOUT_NS,
        drops_before: None,
    }
}

fn udp_payload(wanted: &UdpParameters, format: Format) -> udp::Payload {
    udp::Payload::new(u64::from(wanted.payload_bytes), format).expect("validate::check bounds the payload")
}
