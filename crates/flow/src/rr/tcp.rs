//! Requests over one TCP connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

use landspeed_stats::SplitMix64;
use landspeed_sys::clock::monotonic_ns;
use landspeed_sys::thread::set_timer_slack_ns;

use super::cadence::Cadence;
use super::outcome::{RrError, RrOutcome};
use super::plan::{Load, PlanError, RrPlan, Transport};
use super::run::{Halt, Run, TICK_NS, Watch, wait};
use crate::shared::{Counters, Stop};

/// The largest read or write, bytes.
const CHUNK: usize = 256 * 1024;

/// Sends requests over `stream` (connected, without unread data) according to `plan` and measures the
/// responses.
///
/// `counters` count one packet for each completed transaction, and the bytes of both messages. Ends at the
/// plan's end, or soon after `stop` stops senders; outstanding responses are awaited for at most one grace
/// period.
#[expect(clippy::needless_pass_by_value, reason = "it is closed at the end")]
pub fn request_tcp(stream: TcpStream, plan: &RrPlan, counters: &Counters, stop: &Stop) -> RrOutcome {
    let mut run = Run::new(plan, counters, stop);
    if let Err(error) = plan.check(Transport::Tcp) {
        return run.refuse(error);
    }
    let ended = match plan.load {
        Load::ClosedLoop => closed_loop(&stream, &mut run),
        Load::OpenLoop { rate_per_s } => open_loop(&stream, rate_per_s, &mut run),
        Load::Connect => return run.refuse(PlanError::NeedsConnector),
    };
    run.finish(match ended {
        Ok(()) | Err(Halt::GaveUp) => None,
        Err(Halt::Failed(error)) => Some(error),
    })
}

/// Prepares a connection for small messages: `TCP_NODELAY`, and calls that return after each tick (or never
/// block, to spin).
pub(super) fn prepare(stream: &TcpStream, spin: bool) -> Result<(), RrError> {
    let tick = Some(Duration::from_nanos(TICK_NS));
    let set = || -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(spin)?;
        stream.set_read_timeout(tick)?;
        stream.set_write_timeout(tick)
    };
    set().map_err(|error| RrError::io("set up the connection", &error))
}

/// Returns the write and the read buffer for these message sizes. The read buffer is at least one byte longer
/// than a response if possible, so that surplus bytes are detected.
pub(super) fn buffers(write_bytes: u32, read_bytes: u32) -> (Box<[u8]>, Box<[u8]>) {
    let write = SplitMix64::padding((write_bytes as usize).min(CHUNK));
    let read = vec![0; (read_bytes as usize + 1).clamp(4096, CHUNK)];
    (write, read.into_boxed_slice())
}

fn closed_loop(stream: &TcpStream, run: &mut Run<'_>) -> Result<(), Halt> {
    prepare(stream, run.plan.spin)?;
    let size = run.plan.size;
    let (request, mut response) = buffers(size.request_bytes, size.response_bytes);
    let mut now_ns = run.wait_for_start();
    let mut transactions = 0;
    // The end of one transaction is the start of the next: one clock read each, and the latencies add up to the
    // duration.
    while run.watch.offering(now_ns) && run.may_start(transactions) {
        run.stamp_first(now_ns);
        now_ns = transact(stream, run, now_ns, &request, &mut response)?;
        transactions += 1;
    }
    Ok(())
}

/// Runs one transaction started at `intended_ns`. Returns the time its response was complete.
pub(super) fn transact(
    stream: &TcpStream,
    run: &mut Run<'_>,
    intended_ns: u64,
    request: &[u8],
    response: &mut [u8],
) -> Result<u64, Halt> {
    let size = run.plan.size;
    run.scheduled(intended_ns);
    write_message(stream, request, size.request_bytes as usize, &mut run.watch, &mut run.outcome.syscalls)
        .map_err(|halt| run.explain_halt(halt, 0))?;
    run.sent(intended_ns);
    read_message(stream, response, size.response_bytes as usize, &mut run.watch, &mut run.outcome.syscalls).map_err(
        |halt| {
            run.unanswered(intended_ns);
            run.explain_halt(halt, 1)
        },
    )?;
    let now_ns = monotonic_ns();
    run.completed(intended_ns, now_ns);
    Ok(now_ns)
}

#[inline]
fn write_message(
    mut stream: &TcpStream,
    buffer: &[u8],
    len: usize,
    watch: &mut Watch<'_>,
    syscalls: &mut u64,
) -> Result<(), Halt> {
    let mut written = 0;
    loop {
        *syscalls += 1;
        match stream.write(&buffer[..buffer.len().min(len - written)]) {
            Ok(n) if written + n == len => return Ok(()),
            Ok(n) => written += n,
            Err(error) if would_block(&error) => std::hint::spin_loop(),
            Err(error) => return Err(RrError::io("send a request", &error).into()),
        }
        if watch.give_up(monotonic_ns()) {
            return Err(Halt::GaveUp);
        }
    }
}

#[inline]
fn read_message(
    mut stream: &TcpStream,
    buffer: &mut [u8],
    len: usize,
    watch: &mut Watch<'_>,
    syscalls: &mut u64,
) -> Result<(), Halt> {
    let mut got = 0;
    loop {
        *syscalls += 1;
        match stream.read(buffer) {
            Ok(0) => return Err(RrError::PeerClosed.into()),
            Ok(n) => {
                got += n;
                if got == len {
                    return Ok(());
                }
                if got > len {
                    return Err(RrError::ExcessBytes.into());
                }
            }
            Err(error) if would_block(&error) => std::hint::spin_loop(),
            Err(error) => return Err(RrError::io("receive a response", &error).into()),
        }
        if watch.give_up(monotonic_ns()) {
            return Err(Halt::GaveUp);
        }
    }
}

/// Whether to retry the call: no data yet, a tick has passed, or a signal arrived.
pub(super) fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Position in an open loop's byte stream. Responses arrive in the order of the requests, so counts suffice.
#[derive(Debug, Default)]
struct Pipeline {
    /// Requests whose intended time has come.
    due: u64,
    /// Request bytes written.
    written: u64,
    /// Requests written completely.
    sent: u64,
    /// Response bytes read.
    read: u64,
    /// Responses read completely.
    completed: u64,
}

fn open_loop(stream: &TcpStream, rate_per_s: f64, run: &mut Run<'_>) -> Result<(), Halt> {
    prepare(stream, true)?;
    set_timer_slack_ns(1);
    let cadence = Cadence::new(run.plan.t0_ns, rate_per_s);
    let mut pipeline = Pipeline::default();
    run.wait_for_start();
    let ended = drive(stream, &cadence, &mut pipeline, run);
    for index in pipeline.completed..pipeline.sent {
        run.unanswered(cadence.at(index));
    }
    ended.map_err(|halt| run.explain_halt(halt, pipeline.sent - pipeline.completed))
}

fn drive(stream: &TcpStream, cadence: &Cadence, at: &mut Pipeline, run: &mut Run<'_>) -> Result<(), Halt> {
    let plan = run.plan;
    // Large enough for many small messages: after a late wake-up several are due.
    let (request, mut response) = (SplitMix64::padding(CHUNK), vec![0; CHUNK].into_boxed_slice());
    let max = plan.max_transactions.unwrap_or(u64::MAX);
    let (mut readable, mut blocked) = (false, false);
    loop {
        let now_ns = monotonic_ns();
        let cutoff_ns = run.watch.cutoff(now_ns);
        let due = cadence.before(cutoff_ns.min(now_ns + 1)).min(max);
        (at.due..due).for_each(|index| run.scheduled(cadence.at(index)));
        at.due = at.due.max(due);
        if readable {
            receive(stream, cadence, at, &mut response, run)?;
        }
        if !blocked {
            let sent = send(stream, cadence, at, &request, run);
            if sent.is_err() {
                // Responses that arrived before the connection broke still count.
                receive(stream, cadence, at, &mut response, run)?;
            }
            blocked = !sent?;
        }
        let offered_all = now_ns >= cutoff_ns || at.due == max;
        if offered_all && at.completed == at.due {
            return Ok(());
        }
        if run.watch.give_up(now_ns) {
            return Err(Halt::GaveUp);
        }
        let backlog = at.written < at.due * u64::from(plan.size.request_bytes);
        if plan.spin || (backlog && !blocked) {
            (readable, blocked) = (true, false);
            continue;
        }
        let next_ns = if offered_all { u64::MAX } else { cadence.at(at.due) };
        let idle = at.completed == at.due;
        let ready = wait(stream.as_fd(), blocked, next_ns, idle, &mut run.outcome.syscalls)
            .map_err(|error| RrError::io("wait for the connection", &error))?;
        readable = ready.readable;
        blocked &= !ready.writable;
    }
}

/// Writes due requests, at most one buffer, so that a long backlog does not delay reading responses. Returns
/// false if the send buffer is full.
fn send(
    mut stream: &TcpStream,
    cadence: &Cadence,
    at: &mut Pipeline,
    buffer: &[u8],
    run: &mut Run<'_>,
) -> Result<bool, Halt> {
    let request_bytes = u64::from(run.plan.size.request_bytes);
    let left = at.due * request_bytes - at.written;
    if left == 0 {
        return Ok(true);
    }
    run.outcome.syscalls += 1;
    let now_ns = monotonic_ns();
    match stream.write(&buffer[..(buffer.len() as u64).min(left) as usize]) {
        Ok(n) => at.written += n as u64,
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
        Err(error) if would_block(&error) => return Ok(true),
        Err(error) => return Err(RrError::io("send a request", &error).into()),
    }
    run.stamp_first(now_ns);
    while (at.sent + 1) * request_bytes <= at.written {
        let intended_ns = cadence.at(at.sent);
        run.sent(intended_ns);
        run.outcome.send_late.record(now_ns.saturating_sub(intended_ns));
        at.sent += 1;
    }
    Ok(true)
}

/// Reads available data and counts complete responses.
fn receive(
    mut stream: &TcpStream,
    cadence: &Cadence,
    at: &mut Pipeline,
    buffer: &mut [u8],
    run: &mut Run<'_>,
) -> Result<(), Halt> {
    let response_bytes = u64::from(run.plan.size.response_bytes);
    run.outcome.syscalls += 1;
    match stream.read(buffer) {
        Ok(0) => return Err(RrError::PeerClosed.into()),
        Ok(n) => at.read += n as u64,
        Err(error) if would_block(&error) => return Ok(()),
        Err(error) => return Err(RrError::io("receive a response", &error).into()),
    }
    let now_ns = monotonic_ns();
    while at.completed < at.sent && (at.completed + 1) * response_bytes <= at.read {
        run.completed(cadence.at(at.completed), now_ns);
        at.completed += 1;
    }
    // Bytes read after the last answered request must belong to a complete request.
    if at.read > at.sent * response_bytes {
        return Err(RrError::ExcessBytes.into());
    }
    Ok(())
}
