//! Stream threads of one side: set up a socket, move its bytes, report its totals.

use std::os::fd::{AsFd, BorrowedFd};

use landspeed_model::{Direction, NumaPolicy, Parameters, ReceiveMode, SendMode};
use landspeed_sys::{socket, thread};

use super::plan::{DataSocket, Job, Side, StreamPlan};
use super::task::{Finished, Task, read_info};
use super::{bulk, transactions};
use crate::call_cost::{self, DataCall};

/// Records how many acknowledged bytes belong to each connection's preface, and how many datagrams each
/// receiving UDP socket has dropped. Done before the threads start: a receiving thread may first run after the
/// first drops.
pub(super) fn read_baselines(streams: &mut [StreamPlan]) {
    for stream in streams.iter_mut().filter(|s| !s.socket.is_tcp() && !s.job.sends()) {
        stream.drops_before = stream.socket.fd().and_then(|fd| socket::mem_info(fd).ok()).map(|memory| memory.drops);
    }
    for stream in streams.iter_mut().filter(|s| s.socket.is_tcp() && s.job.sends()) {
        stream.acked_before = stream.socket.fd().map_or(0, preface_bytes);
    }
}

/// Bytes of a connection that are acknowledged or will be, before its first data.
fn preface_bytes(fd: BorrowedFd<'_>) -> u64 {
    let queued = || socket::send_queue(fd).map_or(0, u64::from);
    loop {
        let before = queued();
        let acked = read_info(fd).and_then(|info| info.bytes_acked).unwrap_or(0);
        // An ACK between the two readings would count twice. Nothing is written here, so the queue only empties.
        if queued() == before {
            return acked + before;
        }
    }
}

/// Runs one stream; the body of its thread.
pub(super) fn run(task: &Task<'_>) -> Finished {
    let Task { stream, parameters, side, t0_ns, watch, .. } = *task;
    let mut finished = Finished::default();
    stream.counters.adopt_thread();
    let meter = thread::ThreadMeter::open(thread::id()).ok();
    let cpu = place_thread(stream, parameters, side, &mut finished.notes);
    thread::set_timer_slack_ns(1);
    begin_charges(stream, parameters);
    let before = thread::thread_time();
    let waited = meter.as_ref().and_then(thread::ThreadMeter::read).map(|s| s.wait_ns);
    match (&stream.socket, stream.job) {
        (DataSocket::Tcp(tcp), Job::Send) => bulk::send_tcp(task, tcp, &mut finished),
        (DataSocket::Tcp(tcp), Job::Receive) => bulk::receive_tcp(task, tcp, &mut finished),
        (DataSocket::Udp(udp), Job::Send) => bulk::send_udp(task, udp, &mut finished),
        (DataSocket::Udp(udp), Job::Receive) => bulk::receive_udp(task, udp, &mut finished),
        _ => transactions::run(stream, t0_ns, watch, &mut finished.end, &mut finished.rr),
    }
    let after = thread::thread_time();
    let end = &mut finished.end;
    end.cpu = cpu;
    let waits = meter.as_ref().and_then(thread::ThreadMeter::read).map(|s| s.wait_ns);
    end.thread_wait_ns = waits.zip(waited).map(|(after, before)| after.saturating_sub(before));
    end.thread_user_ns = Some(after.user_ns.saturating_sub(before.user_ns));
    end.thread_system_ns = Some(after.system_ns.saturating_sub(before.system_ns));
    end.thread_cpu_ns = Some(after.total_ns.saturating_sub(before.total_ns));
    if let Some(charged) = call_cost::end() {
        // In the lab nothing else takes CPU time.
        end.thread_system_ns = Some(charged.cpu_ns);
        end.thread_cpu_ns = Some(charged.cpu_ns);
        end.thread_wait_ns = Some(charged.wait_ns);
    }
    let since_start = |t: u64| t.saturating_sub(t0_ns);
    // The end of a stream without bytes is not the time of a byte.
    let moved = end.bytes > 0 || !stream.job.is_bulk();
    end.first_byte_ns = stream.counters.first_ns().filter(|_| moved).map(since_start);
    end.last_byte_ns = stream.counters.last_ns().filter(|_| moved).map(since_start);
    finished
}

/// Begins to charge the calls of a bulk stream, if its host's CPU is a model.
fn begin_charges(stream: &StreamPlan, parameters: &Parameters) {
    if !stream.job.is_bulk() {
        return;
    }
    let sends = stream.job.sends();
    let (local, copies, mss_bytes) = match &stream.socket {
        DataSocket::Tcp(tcp) => {
            let copies =
                if sends { parameters.send == SendMode::Copy } else { parameters.receive == ReceiveMode::Copy };
            let mss_bytes = read_info(tcp.as_fd()).map_or(0, |info| info.snd_mss_bytes.into());
            (tcp.local_addr().ok(), copies, mss_bytes)
        }
        DataSocket::Udp(udp) => (udp.local_addr().ok(), true, 0),
        _ => return,
    };
    call_cost::begin(local, DataCall { sends, copies, bytes: 0, datagrams: 0, mss_bytes });
}

fn place_thread(stream: &StreamPlan, parameters: &Parameters, side: Side, notes: &mut Vec<String>) -> Option<u32> {
    let (cpus, auto, numa) = match side {
        Side::Client => (&parameters.client_cpus, parameters.client_cpus_auto, parameters.client_numa),
        Side::Server => (&parameters.server_cpus, parameters.server_cpus_auto, parameters.server_numa),
    };
    if let Some(policy) = numa {
        let policy = match policy {
            NumaPolicy::Local => thread::MemoryPolicy::Local,
            NumaPolicy::Bind(node) => thread::MemoryPolicy::Bind(node),
            NumaPolicy::Preferred(node) => thread::MemoryPolicy::Preferred(node),
        };
        if let Err(error) = thread::set_memory_policy(policy) {
            notes.push(format!("stream {}: cannot set the memory policy: {error}", stream.id));
        }
    }
    // With --bidir the second direction takes the next cores of the list instead of sharing those of the first.
    let offset = if stream.direction == Direction::Download && parameters.direction == Direction::Both {
        parameters.streams
    } else {
        0
    };
    let listed = (!cpus.is_empty()).then(|| cpus[(stream.index + offset) as usize % cpus.len()]);
    let Some(core) = stream.core.or(listed) else {
        if auto {
            notes.push(format!("stream {}: not pinned: landspeed may use one core of this host", stream.id));
        }
        return None;
    };
    match thread::pin_to_core(core) {
        Ok(()) => Some(core),
        Err(error) => {
            notes.push(format!("stream {}: cannot run on core {core}: {error}", stream.id));
            None
        }
    }
}
