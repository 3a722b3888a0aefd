//! Receive loop.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use landspeed_model::ReceiveMode;
use landspeed_sys::payload::RepeatedBuffer;
use landspeed_sys::{clock, socket};

use super::is_tick;
use crate::call_cost;
use crate::shared::{Counters, Stop};

/// Longest time that one discarding read may wait for more data. Published counters lag by at most this.
const GATHER_TIMEOUT: Duration = Duration::from_millis(1);

/// Plan of a receiver.
#[derive(Debug, Clone)]
pub struct ReceivePlan {
    /// Copy the data to user space, or discard it in the kernel.
    pub mode: ReceiveMode,
    /// Bytes per read.
    pub read_bytes: usize,
    /// Read rate limit, bytes/s (to reproduce a slow reader).
    pub rate_bytes_per_s: Option<u64>,
    /// Start of the test, and of the slow reader's schedule, monotonic nanoseconds.
    pub start_ns: u64,
    /// Read the clock after each read: the last byte ends the test.
    pub stamps_reads: bool,
}

/// Outcome of a receiver.
#[derive(Debug, Default)]
pub struct ReceiveOutcome {
    /// Payload bytes read.
    pub bytes: u64,
    /// Number of data system calls.
    pub syscalls: u64,
    /// Time a slow reader waited for its own schedule, nanoseconds.
    pub app_wait_ns: u64,
    /// Whether end of file was read.
    pub complete: bool,
    /// Error that ended it early.
    pub error: Option<io::Error>,
}

/// Reads until end of file, a stop, or an error of the connection.
pub fn receive_stream(fd: BorrowedFd<'_>, plan: &ReceivePlan, counters: &Counters, stop: &Stop) -> ReceiveOutcome {
    let mut outcome = ReceiveOutcome::default();
    outcome.error = drive(fd, plan, counters, stop, &mut outcome).err();
    outcome
}

fn drive(
    fd: BorrowedFd<'_>,
    plan: &ReceivePlan,
    counters: &Counters,
    stop: &Stop,
    outcome: &mut ReceiveOutcome,
) -> io::Result<()> {
    let mut buffer = match plan.mode {
        ReceiveMode::Copy => Some(RepeatedBuffer::new(plan.read_bytes)?),
        ReceiveMode::Discard => None,
    };
    let read_bytes = match plan.rate_bytes_per_s {
        // Short reads (10 ms of the rate), so that a slow reader's rate is smooth in the samples.
        Some(rate) => plan.read_bytes.min((rate / 100).max(1) as usize),
        None => plan.read_bytes,
    };
    // Discarded data needs no return to user space for each packet: the call stays in the kernel, which receives
    // and acknowledges packets as they arrive. It would return up to a millisecond after the last byte.
    let gathers = buffer.is_none() && plan.rate_bytes_per_s.is_none() && !plan.stamps_reads;
    let mut last_ns = 0;
    while !stop.receiving() {
        if let Some(rate) = plan.rate_bytes_per_s
            && !stop.sending()
        {
            let due = plan.start_ns + (u128::from(outcome.bytes) * 1_000_000_000 / u128::from(rate.max(1))) as u64;
            let now = clock::monotonic_ns();
            if now < due {
                clock::sleep_until(due.min(now + super::TICK_MS * 1_000_000));
                outcome.app_wait_ns += clock::monotonic_ns() - now;
                continue;
            }
        }
        outcome.syscalls += 1;
        let result = match &mut buffer {
            Some(buffer) => buffer.receive(fd, read_bytes),
            None => socket::recv_discard(fd, read_bytes, gathers && outcome.bytes > 0 && !stop.sending()),
        };
        match result {
            Ok(0) => {
                outcome.complete = true;
                break;
            }
            Ok(n) => {
                if outcome.bytes == 0 {
                    counters.stamp_first(clock::monotonic_ns());
                    if gathers {
                        socket::set_receive_timeout(fd, GATHER_TIMEOUT)?;
                    }
                }
                outcome.bytes += n as u64;
                counters.publish(outcome.bytes, 0);
                call_cost::charge(n as u64, 0);
                // Reading the clock for each read would be expensive; the time of the last byte matters
                // only at the end, so it is read once a stop is near and at end of file.
                if plan.stamps_reads || stop.sending() {
                    last_ns = clock::monotonic_ns();
                }
            }
            Err(error) if is_tick(&error) => {}
            Err(error) => {
                counters.stamp_last(clock::monotonic_ns());
                return Err(error);
            }
        }
    }
    counters.stamp_last(if last_ns == 0 { clock::monotonic_ns() } else { last_ns });
    Ok(())
}
