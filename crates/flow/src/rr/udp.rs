//! Requests over one connected UDP socket.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use landspeed_stats::SplitMix64;
use landspeed_sys::clock::{monotonic_ns, sleep_until};
use landspeed_sys::thread::set_timer_slack_ns;
use socket2::SockRef;

use super::cadence::Cadence;
use super::flights::{Answer, RequestsInFlight, SequenceCode};
use super::outcome::{RrError, RrOutcome};
use super::plan::{Load, PlanError, RrPlan, Transport};
use super::run::{Halt, Run, TICK_NS, wait};
use super::tcp::would_block;
use crate::shared::{Counters, Stop};

/// Number of consecutive ICMP refusals, and the time they must span, after which the responder counts as gone.
const MAX_REFUSED: u32 = 10;
const REFUSED_FOR_NS: u64 = 200_000_000;

/// Requested receive buffer, bytes.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Maximum number of datagrams read before the schedule is checked again.
const READ_BATCH: usize = 64;

/// Sends requests over `socket` (connected to the responder) according to `plan` and measures the responses.
///
/// A lost request or response costs `response_timeout_ns` and counts as unanswered; the measurement continues.
/// Messages of eight or more bytes contain a 64-bit number that identifies every response. Shorter ones contain
/// as much of it as fits: with one-byte messages, a response cannot be distinguished from one to the request
/// 256 before.
#[expect(clippy::needless_pass_by_value, reason = "it is closed at the end")]
pub fn request_udp(socket: UdpSocket, plan: &RrPlan, counters: &Counters, stop: &Stop) -> RrOutcome {
    let mut run = Run::new(plan, counters, stop);
    if let Err(error) = plan.check(Transport::Udp) {
        return run.refuse(error);
    }
    let ended = match plan.load {
        Load::ClosedLoop => closed_loop(&socket, &mut run),
        Load::OpenLoop { rate_per_s } => open_loop(&socket, rate_per_s, &mut run),
        Load::Connect => return run.refuse(PlanError::ConnectOverUdp),
    };
    let total = run.outcome.total();
    let error = match ended {
        Err(Halt::Failed(error)) => Some(error),
        // Single losses are part of the result; if nothing was answered, report an error.
        _ if total.completed == 0 && total.unanswered > 0 => {
            Some(RrError::PeerSilent { unanswered: total.unanswered })
        }
        _ => None,
    };
    run.finish(error)
}

/// State of a requester: socket, message buffers and requests in flight.
struct Exchange<'a> {
    socket: &'a UdpSocket,
    request: Box<[u8]>,
    response: Box<[u8]>,
    response_bytes: usize,
    code: SequenceCode,
    flights: RequestsInFlight,
    consecutive_refusals: u32,
    refused_since_ns: u64,
}

/// Result of one `recv`.
enum Received {
    /// First response to the request with this number, which has not timed out.
    Answer { index: u64 },
    /// Late, duplicate or unknown datagram.
    Other,
    /// ICMP "port unreachable".
    Refused,
    /// No datagram available.
    Nothing,
}

impl<'a> Exchange<'a> {
    fn new(socket: &'a UdpSocket, plan: &RrPlan, rate_per_s: f64) -> Self {
        let size = plan.size;
        Self {
            socket,
            request: SplitMix64::padding(size.request_bytes as usize),
            // One byte longer than a response, so that longer datagrams are detected.
            response: vec![0; size.response_bytes as usize + 1].into_boxed_slice(),
            response_bytes: size.response_bytes as usize,
            code: SequenceCode::new(plan.t0_ns, size.request_bytes, size.response_bytes),
            flights: RequestsInFlight::new(rate_per_s * plan.response_timeout_ns as f64 / 1e9),
            consecutive_refusals: 0,
            refused_since_ns: 0,
        }
    }

    /// Sends the next request at `now_ns`. Returns false if the send buffer is full.
    #[inline]
    fn send(&mut self, now_ns: u64, run: &mut Run<'_>) -> Result<bool, RrError> {
        self.code.write(self.flights.sent_count(), &mut self.request);
        loop {
            run.outcome.syscalls += 1;
            match self.socket.send(&self.request) {
                Ok(_) => {
                    self.flights.record_send(now_ns);
                    run.stamp_first(now_ns);
                    return Ok(true);
                }
                // The error belongs to an earlier datagram; this one was not sent.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => self.refused(run)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if would_block(&error) || out_of_buffers(&error) => return Ok(false),
                Err(error) => return Err(RrError::io("send a request", &error)),
            }
        }
    }

    #[inline]
    fn receive(&mut self, run: &mut Run<'_>) -> Result<Received, RrError> {
        run.outcome.syscalls += 1;
        match self.socket.recv(&mut self.response) {
            Ok(n) if n == self.response_bytes => {
                self.consecutive_refusals = 0;
                let sent_count = self.flights.sent_count();
                let Some(index) = self.code.read(&self.response, sent_count) else {
                    run.outcome.junk += 1;
                    return Ok(Received::Other);
                };
                match self.flights.answer(index) {
                    Answer::First => return Ok(Received::Answer { index }),
                    Answer::Duplicate => run.outcome.duplicate += 1,
                    Answer::Late => run.outcome.late += 1,
                    Answer::Unknown => run.outcome.junk += 1,
                }
                Ok(Received::Other)
            }
            Ok(_) => {
                run.outcome.junk += 1;
                Ok(Received::Other)
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                self.refused(run)?;
                Ok(Received::Refused)
            }
            Err(error) if would_block(&error) => Ok(Received::Nothing),
            Err(error) => Err(RrError::io("receive a response", &error)),
        }
    }

    fn refused(&mut self, run: &mut Run<'_>) -> Result<(), RrError> {
        let now_ns = monotonic_ns();
        if self.consecutive_refusals == 0 {
            self.refused_since_ns = now_ns;
        }
        run.outcome.refused += 1;
        self.consecutive_refusals += 1;
        if self.consecutive_refusals >= MAX_REFUSED && now_ns - self.refused_since_ns >= REFUSED_FOR_NS {
            return Err(RrError::Refused { times: self.consecutive_refusals });
        }
        Ok(())
    }
}

/// Whether the device queue or kernel memory was full temporarily (udp(7)).
fn out_of_buffers(error: &io::Error) -> bool {
    const ENOBUFS: i32 = 105;
    error.raw_os_error() == Some(ENOBUFS)
}

/// Prepares a socket of either side: calls return after each tick or never block, and the receive buffer is
/// enlarged.
pub(super) fn prepare(socket: &UdpSocket, nonblocking: bool, tick_ns: u64) -> Result<(), RrError> {
    // The default size fits about 250 small datagrams, which an open loop exceeds while the peer is not scheduled.
    // The kernel limits the size to net.core.rmem_max.
    let _ = SockRef::from(socket).set_recv_buffer_size(RECEIVE_BUFFER);
    let tick = Some(Duration::from_nanos(tick_ns.max(1_000)));
    let set = || -> io::Result<()> {
        socket.set_nonblocking(nonblocking)?;
        socket.set_read_timeout(tick)?;
        socket.set_write_timeout(tick)
    };
    set().map_err(|error| RrError::io("set up the socket", &error))
}

fn closed_loop(socket: &UdpSocket, run: &mut Run<'_>) -> Result<(), Halt> {
    let plan = run.plan;
    prepare(socket, plan.spin, plan.response_timeout_ns.min(TICK_NS))?;
    let mut exchange = Exchange::new(socket, plan, 0.0);
    let mut now_ns = run.wait_for_start();
    while run.watch.offering(now_ns) && run.may_start(exchange.flights.sent_count()) {
        let intended_ns = now_ns;
        run.scheduled(intended_ns);
        while !exchange.send(intended_ns, run)? {
            if run.watch.give_up(monotonic_ns()) {
                return Err(Halt::GaveUp);
            }
        }
        run.sent(intended_ns);
        now_ns = match await_response(&mut exchange, intended_ns, run) {
            Ok(Some(done_ns)) => done_ns,
            lost => {
                exchange.flights.give_up(intended_ns, |_| ());
                run.unanswered(intended_ns);
                lost?;
                monotonic_ns()
            }
        };
    }
    Ok(())
}

/// Waits for the response to the request sent at `sent_ns`. Returns its arrival time, or `None` on a timeout.
#[inline]
fn await_response(exchange: &mut Exchange<'_>, sent_ns: u64, run: &mut Run<'_>) -> Result<Option<u64>, Halt> {
    loop {
        match exchange.receive(run)? {
            // Only one request is in flight, so a first response belongs to it.
            Received::Answer { .. } => {
                let now_ns = monotonic_ns();
                run.completed(sent_ns, now_ns);
                return Ok(Some(now_ns));
            }
            // A refusal belongs to it too; pause to avoid a flood of refused requests.
            Received::Refused => {
                sleep_until(monotonic_ns() + TICK_NS);
                return Ok(None);
            }
            Received::Other | Received::Nothing => std::hint::spin_loop(),
        }
        let now_ns = monotonic_ns();
        if now_ns >= sent_ns.saturating_add(run.plan.response_timeout_ns) {
            return Ok(None);
        }
        if run.watch.give_up(now_ns) {
            return Err(Halt::GaveUp);
        }
    }
}

fn open_loop(socket: &UdpSocket, rate_per_s: f64, run: &mut Run<'_>) -> Result<(), Halt> {
    prepare(socket, true, TICK_NS)?;
    set_timer_slack_ns(1);
    let cadence = Cadence::new(run.plan.t0_ns, rate_per_s);
    let mut exchange = Exchange::new(socket, run.plan, rate_per_s);
    run.wait_for_start();
    let ended = drive(&cadence, &mut exchange, run);
    exchange.flights.give_up(u64::MAX, |index| run.unanswered(cadence.at(index)));
    ended
}

fn drive(cadence: &Cadence, exchange: &mut Exchange<'_>, run: &mut Run<'_>) -> Result<(), Halt> {
    let plan = run.plan;
    let max = plan.max_transactions.unwrap_or(u64::MAX);
    let (mut due, mut readable) = (0, false);
    loop {
        let now_ns = monotonic_ns();
        let cutoff_ns = run.watch.cutoff(now_ns);
        let now_due = cadence.before(cutoff_ns.min(now_ns + 1)).min(max).max(due);
        (due..now_due).for_each(|index| run.scheduled(cadence.at(index)));
        due = now_due;
        let blocked = !send_due(cadence, exchange, due, run)?;
        let more = readable && receive_batch(cadence, exchange, run)?;
        exchange
            .flights
            .give_up(now_ns.saturating_sub(plan.response_timeout_ns), |index| run.unanswered(cadence.at(index)));
        let idle = exchange.flights.sent_count() == due && exchange.flights.in_flight() == 0;
        let offered_all = now_ns >= cutoff_ns || due == max;
        if offered_all && idle {
            return Ok(());
        }
        if run.watch.give_up(now_ns) {
            return Err(Halt::GaveUp);
        }
        if plan.spin || more {
            readable = true;
            continue;
        }
        let next_ns = if offered_all { u64::MAX } else { cadence.at(due) };
        let ready = wait(exchange.socket.as_fd(), blocked, next_ns, idle, &mut run.outcome.syscalls)
            .map_err(|error| RrError::io("wait for the socket", &error))?;
        readable = ready.readable;
    }
}

/// Sends due requests until the window is full. Returns false if the send buffer is full.
fn send_due(cadence: &Cadence, exchange: &mut Exchange<'_>, due: u64, run: &mut Run<'_>) -> Result<bool, Halt> {
    while exchange.flights.sent_count() < due && !exchange.flights.full() {
        let intended_ns = cadence.at(exchange.flights.sent_count());
        let now_ns = monotonic_ns();
        if !exchange.send(now_ns, run)? {
            return Ok(false);
        }
        run.sent(intended_ns);
        run.outcome.send_late.record(now_ns.saturating_sub(intended_ns));
    }
    Ok(true)
}

/// Reads available datagrams. Returns true if there may be more.
fn receive_batch(cadence: &Cadence, exchange: &mut Exchange<'_>, run: &mut Run<'_>) -> Result<bool, Halt> {
    for _ in 0..READ_BATCH {
        match exchange.receive(run)? {
            Received::Answer { index } => run.completed(cadence.at(index), monotonic_ns()),
            Received::Other | Received::Refused => {}
            Received::Nothing => return Ok(false),
        }
        if exchange.flights.in_flight() == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
