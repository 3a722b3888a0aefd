//! Connect/request/response: one connection for each transaction.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;

use landspeed_sys::clock::{monotonic_ns, sleep_until};

use super::outcome::{RrError, RrOutcome};
use super::plan::{RrPlan, Transport};
use super::run::{Halt, Run};
use super::tcp::{buffers, prepare, transact, would_block};
use crate::shared::{Counters, Stop};

/// Number of consecutive failed connections that ends the measurement.
const MAX_FAILED: u32 = 10;

/// Pause after a failed connection, to limit the load on a server that refuses.
const PAUSE_NS: u64 = 10_000_000;

/// Timeout for the responder's close after its response.
const CLOSE_NS: u64 = 1_000_000_000;

/// Measures transactions of connect, request, response and close. Ignores `plan.load`.
///
/// `connect` opens a connection to a responder ([`super::respond_tcp`] limited to one transaction), including
/// authentication, and bounds its own time. Latency is measured from before the call to the complete response.
/// The responder closes first and keeps the TIME-WAIT state: on the requester it would use up the local ports.
///
/// A failed connection counts as a request that was not sent; ten in a row are an error.
pub fn request_connect(
    connect: &mut dyn FnMut() -> io::Result<TcpStream>,
    plan: &RrPlan,
    counters: &Counters,
    stop: &Stop,
) -> RrOutcome {
    let mut run = Run::new(plan, counters, stop);
    if let Err(error) = plan.check(Transport::Tcp) {
        return run.refuse(error);
    }
    let error = match each_connection(connect, &mut run) {
        Ok(()) | Err(Halt::GaveUp) => None,
        Err(Halt::Failed(error)) => Some(error),
    };
    run.finish(error)
}

fn each_connection(connect: &mut dyn FnMut() -> io::Result<TcpStream>, run: &mut Run<'_>) -> Result<(), Halt> {
    let size = run.plan.size;
    let (request, mut response) = buffers(size.request_bytes, size.response_bytes);
    run.wait_for_start();
    let (mut transactions, mut failed_in_a_row) = (0, 0);
    loop {
        let begun_ns = monotonic_ns();
        if !run.watch.offering(begun_ns) || !run.may_start(transactions) {
            return Ok(());
        }
        run.stamp_first(begun_ns);
        transactions += 1;
        run.outcome.syscalls += 1;
        let failure = match connect() {
            Ok(stream) => match over(&stream, begun_ns, run, &request, &mut response) {
                Ok(()) => {
                    failed_in_a_row = 0;
                    continue;
                }
                // A server that closes one connection may accept the next.
                Err(Halt::Failed(RrError::PeerClosed)) => RrError::PeerClosed.to_string(),
                Err(halt) => return Err(halt),
            },
            Err(error) => {
                run.scheduled(begun_ns);
                error.to_string()
            }
        };
        run.outcome.refused += 1;
        failed_in_a_row += 1;
        if failed_in_a_row >= MAX_FAILED {
            return Err(RrError::Connect { times: failed_in_a_row, cause: failure }.into());
        }
        sleep_until(monotonic_ns() + PAUSE_NS);
    }
}

fn over(
    stream: &TcpStream,
    begun_ns: u64,
    run: &mut Run<'_>,
    request: &[u8],
    response: &mut [u8],
) -> Result<(), Halt> {
    if let Err(error) = prepare(stream, run.plan.spin) {
        run.scheduled(begun_ns);
        return Err(error.into());
    }
    let done_ns = transact(stream, run, begun_ns, request, response)?;
    await_close(stream, done_ns, response, run);
    Ok(())
}

/// Waits for the responder's end of stream, so that it closes first.
fn await_close(mut stream: &TcpStream, done_ns: u64, buffer: &mut [u8], run: &mut Run<'_>) {
    loop {
        run.outcome.syscalls += 1;
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if would_block(&error) => {}
            // Closed, reset, or surplus bytes: in each case the wait is over.
            _ => return,
        }
        let now_ns = monotonic_ns();
        if now_ns >= done_ns + CLOSE_NS || run.watch.give_up(now_ns) {
            return;
        }
    }
}
