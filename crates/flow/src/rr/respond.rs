//! Responder of request/response measurements.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};

use landspeed_stats::SplitMix64;
use landspeed_sys::clock::monotonic_ns;
use landspeed_sys::udp::MAX_DATAGRAM_BYTES;

use super::flights::SequenceCode;
use super::outcome::{ResponderOutcome, RrError};
use super::plan::{RrPlan, Transport};
use super::run::TICK_NS;
use super::tcp::{self, would_block};
use super::udp;
use crate::shared::{Counters, Stop};

/// The largest read or write, bytes.
const CHUNK: usize = 256 * 1024;

/// Number of iterations without a wait between two clock reads.
const CLOCK_READ_INTERVAL: u64 = 1024;

/// State of a responder. It ends on request, or a grace period after the plan's end; checked on each tick and
/// every `CLOCK_READ_INTERVAL` iterations.
struct Responder<'a> {
    deadline_ns: u64,
    max: u64,
    transaction_bytes: u64,
    stop: &'a Stop,
    counters: &'a Counters,
    /// Counter values before it started: a stream's connections may be served one after the other.
    previous_counters: (u64, u64),
    rounds: u64,
    junk_bytes: u64,
    outcome: ResponderOutcome,
}

impl<'a> Responder<'a> {
    fn new(plan: &RrPlan, counters: &'a Counters, stop: &'a Stop) -> Self {
        Self {
            deadline_ns: plan.deadline_ns(),
            max: plan.max_transactions.unwrap_or(u64::MAX),
            transaction_bytes: u64::from(plan.size.request_bytes) + u64::from(plan.size.response_bytes),
            stop,
            counters,
            previous_counters: (counters.bytes(), counters.packets()),
            rounds: 0,
            junk_bytes: counters.discarded(),
            outcome: ResponderOutcome::default(),
        }
    }

    /// Cheap check before each blocking call.
    #[inline]
    fn is_over(&mut self) -> bool {
        self.rounds += 1;
        self.stop.receiving()
            || (self.rounds.is_multiple_of(CLOCK_READ_INTERVAL) && monotonic_ns() >= self.deadline_ns)
    }

    /// Check after a call that timed out.
    fn has_timed_out(&self) -> bool {
        self.stop.receiving() || monotonic_ns() >= self.deadline_ns
    }

    #[inline]
    fn answered(&mut self, requests: u64) {
        if self.outcome.answered == 0 {
            let now_ns = monotonic_ns();
            self.outcome.first_ns = Some(now_ns);
            if self.counters.first_ns().is_none() {
                self.counters.stamp_first(now_ns);
            }
        }
        self.outcome.answered += requests;
        let (bytes, packets) = self.previous_counters;
        self.counters
            .publish(bytes + self.outcome.answered * self.transaction_bytes, packets + self.outcome.answered);
    }

    /// Counts a datagram that is not a request.
    fn junk(&mut self, bytes: usize) {
        self.outcome.junk += 1;
        self.junk_bytes += bytes as u64;
        self.counters.publish_discarded(self.junk_bytes);
    }

    fn finish(mut self, ended: Result<(), RrError>) -> ResponderOutcome {
        let now_ns = monotonic_ns();
        self.outcome.last_ns = Some(now_ns);
        if self.outcome.answered > 0 {
            self.counters.stamp_last(now_ns);
        }
        self.outcome.error = ended.err();
        self.outcome
    }
}

/// Answers the requests on `stream` until the peer closes, `stop` stops receivers (detected within about 20
/// ms), the plan's end and grace period have passed, or `plan.max_transactions` are answered; then closes.
///
/// `counters` continue from their current values: one packet for each answered request, and the bytes of both
/// messages. Every `plan.size.request_bytes` bytes are a request, whatever their content. Requests that arrive
/// together are answered together.
#[expect(clippy::needless_pass_by_value, reason = "it is closed at the end")]
pub fn respond_tcp(stream: TcpStream, plan: &RrPlan, counters: &Counters, stop: &Stop) -> ResponderOutcome {
    let mut responder = Responder::new(plan, counters, stop);
    let ended = plan
        .check(Transport::Tcp)
        .map_err(RrError::from)
        .and_then(|()| tcp::prepare(&stream, plan.spin))
        .and_then(|()| answer_stream(&stream, plan, &mut responder));
    responder.finish(ended)
}

fn answer_stream(mut stream: &TcpStream, plan: &RrPlan, responder: &mut Responder<'_>) -> Result<(), RrError> {
    let request_bytes = u64::from(plan.size.request_bytes);
    let response_bytes = u64::from(plan.size.response_bytes);
    // Keeps the set-up of a connection for one transaction cheap.
    let room = |bytes: u64| if responder.max == 1 { bytes.min(CHUNK as u64) as usize } else { CHUNK };
    let mut requests = vec![0; room(request_bytes)];
    let responses = SplitMix64::padding(room(response_bytes));
    let mut got = 0;
    while !responder.is_over() && responder.outcome.answered < responder.max {
        responder.outcome.syscalls += 1;
        match stream.read(&mut requests) {
            Ok(0) => return Ok(()),
            Ok(n) => {
                got += n as u64;
                if got < request_bytes {
                    continue;
                }
                let whole = (got / request_bytes).min(responder.max - responder.outcome.answered);
                got -= whole * request_bytes;
                let Written::All = write_all(stream, &responses, whole * response_bytes, responder)? else {
                    return Ok(());
                };
                responder.answered(whole);
            }
            Err(error) if would_block(&error) => {
                if responder.has_timed_out() {
                    return Ok(());
                }
            }
            // A requester may reset the connection; it reports missing responses itself.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(RrError::io("receive a request", &error)),
        }
    }
    Ok(())
}

enum Written {
    All,
    Stopped,
}

#[inline]
fn write_all(
    mut stream: &TcpStream,
    buffer: &[u8],
    mut left: u64,
    responder: &mut Responder<'_>,
) -> Result<Written, RrError> {
    loop {
        responder.outcome.syscalls += 1;
        match stream.write(&buffer[..left.min(buffer.len() as u64) as usize]) {
            Ok(n) => {
                left -= n as u64;
                if left == 0 {
                    return Ok(Written::All);
                }
            }
            Err(error) if would_block(&error) => {}
            Err(error) => return Err(RrError::io("send a response", &error)),
        }
        if responder.has_timed_out() {
            return Ok(Written::Stopped);
        }
    }
}

/// Answers the requests on `socket` (connected to a requester with a validated address) until `stop` stops
/// receivers (detected within about 20 ms), the plan's end and grace period have passed, or
/// `plan.max_transactions` are answered.
///
/// A response begins with the request's number (as many of its eight bytes as fit), followed by padding.
/// Datagrams with a different length than a request are not answered.
#[expect(clippy::needless_pass_by_value, reason = "it is closed at the end")]
pub fn respond_udp(socket: UdpSocket, plan: &RrPlan, counters: &Counters, stop: &Stop) -> ResponderOutcome {
    let mut responder = Responder::new(plan, counters, stop);
    let ended = plan
        .check(Transport::Udp)
        .map_err(RrError::from)
        .and_then(|()| udp::prepare(&socket, plan.spin, TICK_NS))
        .and_then(|()| answer_datagrams(&socket, plan, &mut responder));
    responder.finish(ended)
}

fn answer_datagrams(socket: &UdpSocket, plan: &RrPlan, responder: &mut Responder<'_>) -> Result<(), RrError> {
    let request_bytes = plan.size.request_bytes as usize;
    let number = SequenceCode::len(plan.size.request_bytes, plan.size.response_bytes);
    // Large enough for any datagram: non-requests are counted by their length.
    let mut request = vec![0; MAX_DATAGRAM_BYTES + 1];
    let mut response = SplitMix64::padding(plan.size.response_bytes as usize);
    while !responder.is_over() && responder.outcome.answered < responder.max {
        responder.outcome.syscalls += 1;
        match socket.recv(&mut request) {
            Ok(n) if n == request_bytes => {
                response[..number].copy_from_slice(&request[..number]);
                responder.outcome.syscalls += 1;
                match socket.send(&response) {
                    Ok(_) => responder.answered(1),
                    // A failed send counts as a lost datagram.
                    Err(_) => responder.outcome.unsent += 1,
                }
            }
            Ok(n) => responder.junk(n),
            // The requester's port is closed: it may have ended, or not started.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) if would_block(&error) => {
                if responder.has_timed_out() {
                    return Ok(());
                }
            }
            Err(error) => return Err(RrError::io("receive a request", &error)),
        }
    }
    Ok(())
}
