//! Receiver of a UDP stream.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use landspeed_sys::clock::{monotonic_ns, realtime_ns, sleep_until};
use landspeed_sys::socket;
use landspeed_sys::udp::{ReceiveBatch, enable_gro, enable_timestamps, set_io_timeout, socket_drops};

use super::arrivals::Arrivals;
use super::wait::STOP_CHECK_NS;
use super::{Finish, GRO_FROM_PPS, ReceiveOutcome, ReceivePlan, StreamError};
use crate::call_cost;
use crate::shared::{Counters, Stop};

/// Maximum number of messages per call.
const CALL_MESSAGES: usize = 64;
/// Longest message, as built by GRO.
const MESSAGE_BYTES: usize = 65_535;
/// Maximum number of bytes per call, so that they are still in the cache when processed.
const CALL_BYTES: usize = 256 * 1024;
/// Time to process data already in the socket's buffer after a stop, nanoseconds.
const FINAL_DRAIN_NS: u64 = 20_000_000;

/// Receives a stream from `socket`, which must be connected, until a stop, or until `finish` has the sender's
/// final count and all datagrams have arrived or none for the plan's quiet time.
///
/// After all have arrived it waits for another quarter of the quiet time for duplicates.
pub fn receive_stream(
    socket: BorrowedFd<'_>,
    plan: &ReceivePlan,
    counters: &Counters,
    stop: &Stop,
    finish: &Finish,
) -> ReceiveOutcome {
    let mut receiver = Receiver::new(socket, plan, counters, finish);
    let finished = match receiver.set_up() {
        Err(source) => Err(StreamError::Setup { option: "SO_RCVTIMEO", source }),
        Ok(()) => receiver.run(stop),
    };
    receiver.into_outcome(finished)
}

struct Receiver<'a> {
    socket: BorrowedFd<'a>,
    plan: &'a ReceivePlan,
    counters: &'a Counters,
    finish: &'a Finish,
    batch: ReceiveBatch,
    arrivals: Arrivals,
    drops_before: Option<u32>,
    /// Time of the stream's last arrival, or of the start of waiting.
    last_arrival_ns: u64,
    gather_sleep: GatherSleep,
    /// All bytes read, including foreign datagrams.
    arrived_bytes: u64,
    outcome: ReceiveOutcome,
}

impl<'a> Receiver<'a> {
    fn new(socket: BorrowedFd<'a>, plan: &'a ReceivePlan, counters: &'a Counters, finish: &'a Finish) -> Self {
        Self {
            socket,
            plan,
            counters,
            finish,
            batch: ReceiveBatch::new(CALL_MESSAGES, MESSAGE_BYTES),
            arrivals: Arrivals::new(plan.format),
            drops_before: None,
            last_arrival_ns: 0,
            gather_sleep: GatherSleep::default(),
            arrived_bytes: 0,
            outcome: ReceiveOutcome::default(),
        }
    }

    fn set_up(&mut self) -> io::Result<()> {
        set_io_timeout(self.socket, Duration::from_nanos(STOP_CHECK_NS))?;
        if let Ok(memory) = socket::mem_info(self.socket) {
            self.gather_sleep.gather_bytes = GatherSleep::gather_space(u64::from(memory.rcvbuf));
        }
        self.drops_before = self.plan.drops_before.or_else(|| socket_drops(self.socket).ok());
        for (option, result) in [
            ("SO_TIMESTAMPNS", enable_timestamps(self.socket)),
            ("UDP_GRO", enable_gro(self.socket, self.wants_gro())),
        ] {
            if let Err(error) = result {
                self.outcome.notes.push(format!("{option} is not available: {error}"));
            }
        }
        Ok(())
    }

    fn wants_gro(&self) -> bool {
        let packet_bits = u64::from(self.plan.payload.bytes()) * 8;
        self.plan.gro && self.plan.rate_bps.is_none_or(|rate| rate / packet_bits >= GRO_FROM_PPS)
    }

    fn run(&mut self, stop: &Stop) -> Result<(), StreamError> {
        let mut limit = CALL_MESSAGES;
        self.last_arrival_ns = monotonic_ns();
        loop {
            if stop.receiving() {
                return self.drain_buffer();
            }
            self.outcome.syscalls += 1;
            match self.batch.receive(self.socket, limit) {
                Ok(messages) => {
                    let now_ns = monotonic_ns();
                    let bytes = self.record_message(messages, now_ns);
                    call_cost::charge(bytes as u64, messages as u64);
                    let drained = messages < limit;
                    limit = (CALL_BYTES * messages / bytes.max(1)).clamp(2, CALL_MESSAGES);
                    let sleep_ns = self.gather_sleep.after(now_ns, messages, bytes, drained);
                    if sleep_ns > 0 {
                        sleep_until(now_ns + sleep_ns);
                    }
                }
                Err(error) if transient(&error) => {}
                Err(source) => return Err(StreamError::Receive { source }),
            }
            if self.finish.known().is_some() && self.is_over(monotonic_ns()) {
                // The quiet time may include time this thread waited for a core: process what is in the socket first.
                return self.drain_buffer();
            }
        }
    }

    /// Processes the data already in the socket's buffer.
    fn drain_buffer(&mut self) -> Result<(), StreamError> {
        let until_ns = monotonic_ns() + FINAL_DRAIN_NS;
        loop {
            self.outcome.syscalls += 1;
            let now_ns = match self.batch.receive_now(self.socket, CALL_MESSAGES) {
                Ok(messages) => {
                    let now_ns = monotonic_ns();
                    self.record_message(messages, now_ns);
                    now_ns
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if transient(&error) => monotonic_ns(),
                Err(source) => return Err(StreamError::Receive { source }),
            };
            if now_ns >= until_ns {
                return Ok(());
            }
        }
    }

    /// Processes the messages of the last call; returns their bytes.
    fn record_message(&mut self, messages: usize, now_ns: u64) -> usize {
        let mut bytes = 0;
        let (mut first_stamp_ns, mut last_stamp_ns) = (None, None);
        for i in 0..messages {
            let message = self.batch.message(i);
            bytes += message.data.len();
            let stamp_ns = message.timestamp_ns;
            if self.arrivals.record_message(message.data, message.segment_bytes, stamp_ns, now_ns) {
                first_stamp_ns = first_stamp_ns.or(Some(stamp_ns));
                last_stamp_ns = Some(stamp_ns);
            }
        }
        self.arrived_bytes += bytes as u64;
        self.counters.publish_discarded(self.arrived_bytes - self.arrivals.bytes());
        let (Some(first_stamp_ns), Some(last_stamp_ns)) = (first_stamp_ns, last_stamp_ns) else { return bytes };
        self.last_arrival_ns = now_ns;
        if self.outcome.first_ns.is_none() {
            let first_ns = arrived_ns(now_ns, first_stamp_ns);
            self.outcome.first_ns = Some(first_ns);
            self.counters.stamp_first(first_ns);
        }
        let last_ns = arrived_ns(now_ns, last_stamp_ns);
        self.outcome.last_ns = Some(last_ns);
        self.counters.stamp_last(last_ns);
        self.counters.publish_highest(self.arrivals.ledger().highest_seq());
        self.counters.publish_delay(self.arrivals.jitter_ns().map_or(0, |ns| ns.max(1)));
        self.counters.publish(self.arrivals.bytes(), self.arrivals.ledger().delivered());
        bytes
    }

    /// Whether the stream has ended; false until the sender's final count is known.
    fn is_over(&mut self, now_ns: u64) -> bool {
        let Some((sent, stopped_ns)) = self.finish.known() else { return false };
        self.arrivals.sender_stopped(stopped_ns);
        let all_here = self.arrivals.ledger().missing(sent) <= 0;
        let quiet_ns = if all_here { self.plan.quiet_ns / 4 } else { self.plan.quiet_ns };
        now_ns.saturating_sub(self.last_arrival_ns.max(stopped_ns.min(now_ns))) >= quiet_ns
    }

    fn into_outcome(mut self, finished: Result<(), StreamError>) -> ReceiveOutcome {
        if let Some((sent, stopped_ns)) = self.finish.known() {
            self.arrivals.sender_stopped(stopped_ns);
            self.outcome.missing_packets = Some(self.arrivals.ledger().missing(sent));
            self.outcome.missing_tail_packets = Some(self.arrivals.ledger().missing_tail(sent));
        }
        let ledger = self.arrivals.ledger();
        let udp = &mut self.outcome.udp;
        udp.delivered_packets = ledger.delivered();
        udp.duplicate_packets = Some(ledger.duplicates());
        udp.reordered_packets = Some(ledger.reordered());
        udp.loss_periods = ledger.loss_periods();
        udp.beyond_window_packets = Some(ledger.beyond_window());
        udp.highest_seq = ledger.highest_seq();
        udp.late_packets = Some(self.arrivals.late());
        udp.foreign_packets = Some(self.arrivals.foreign());
        udp.gro_used = self.arrivals.coalesced();
        udp.jitter_ns = self.arrivals.jitter_ns();
        udp.timestamps = udp.jitter_ns.map(|_| if udp.gro_used { "kernel, coalesced" } else { "kernel" }.to_owned());
        match (self.drops_before, socket_drops(self.socket)) {
            (Some(before), Ok(after)) => {
                let drops = u64::from(after.wrapping_sub(before));
                udp.socket_drops = Some(drops);
                if drops > 0 && udp.gro_used {
                    let note = "the kernel counts a coalesced batch that the socket drops once, whatever it held";
                    self.outcome.notes.push(note.into());
                }
            }
            _ => self.outcome.notes.push("drops of the receiving socket are not visible: SO_MEMINFO".into()),
        }
        self.outcome.bytes = self.arrivals.bytes();
        self.outcome.error = finished.err();
        self.outcome
    }
}

/// Whether a receiver continues after an error: timeouts, signals, and ICMP errors about datagrams this socket
/// may have sent.
fn transient(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, TimedOut, WouldBlock};
    matches!(
        error.kind(),
        WouldBlock | TimedOut | Interrupted | ConnectionRefused | HostUnreachable | NetworkUnreachable
    )
}

/// Converts the kernel's real-time timestamp of an arrival, shortly before `now_ns`, to the monotonic clock.
fn arrived_ns(now_ns: u64, stamp_ns: Option<u64>) -> u64 {
    let ago_ns = stamp_ns.map_or(0, |stamp_ns| realtime_ns().saturating_sub(stamp_ns));
    // A difference of more than a second is a step of the real-time clock.
    if ago_ns < 1_000_000_000 { now_ns.saturating_sub(ago_ns) } else { now_ns }
}

/// Sleeps between calls while datagrams arrive fast but one by one, instead of a wake-up for each: they collect
/// in the socket's buffer, and the kernel's timestamps stay exact.
#[derive(Debug, Default)]
struct GatherSleep {
    /// Buffer space that may fill during a sleep, bytes; 0 disables sleeping.
    gather_bytes: u64,
    since_ns: u64,
    messages: usize,
    bytes: usize,
    sleep_ns: u64,
}

impl GatherSleep {
    /// Interval between estimates of the arrival rate.
    const CHECK_INTERVAL_NS: u64 = 5_000_000;
    const MAX_SLEEP_NS: u64 = 500_000;
    /// A shorter sleep costs as much as it saves.
    const MIN_SLEEP_NS: u64 = 100_000;
    /// Minimum number of messages in the longest sleep that makes it worthwhile.
    const MIN_MESSAGES: u64 = 8;
    /// Half of the kernel's default buffer of 208 KiB.
    const SMALL_GATHER_BYTES: u64 = 104 * 1024;
    /// Buffer space per message in addition to its bytes (`skb->truesize`: `sk_buff`, shared info, rounding).
    const OVERHEAD_BYTES: u64 = 1280;

    /// Returns the space that may fill in a buffer of `rcvbuf` bytes: an eighth, which leaves the rest for a
    /// receiver that is not scheduled in time.
    fn gather_space(rcvbuf: u64) -> u64 {
        (rcvbuf / 8).max(Self::SMALL_GATHER_BYTES).min(rcvbuf / 2)
    }

    /// Records a call's messages; returns the length of the sleep before the next call, nanoseconds.
    fn after(&mut self, now_ns: u64, messages: usize, bytes: usize, drained: bool) -> u64 {
        self.messages += messages;
        self.bytes += bytes;
        let elapsed_ns = now_ns - self.since_ns;
        if elapsed_ns >= Self::CHECK_INTERVAL_NS {
            self.sleep_ns = self.compute_sleep_ns(elapsed_ns, self.messages as u64, self.bytes as u64);
            (self.since_ns, self.messages, self.bytes) = (now_ns, 0, 0);
        }
        if drained { self.sleep_ns } else { 0 }
    }

    fn compute_sleep_ns(&self, elapsed_ns: u64, messages: u64, bytes: u64) -> u64 {
        let space = (bytes + messages * Self::OVERHEAD_BYTES).max(1);
        let sleep_ns = (self.gather_bytes.saturating_mul(elapsed_ns) / space).min(Self::MAX_SLEEP_NS);
        let gathered = messages * sleep_ns / elapsed_ns;
        if sleep_ns < Self::MIN_SLEEP_NS || gathered < Self::MIN_MESSAGES { 0 } else { sleep_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    /// Kernel's default buffer, bytes.
    const DEFAULT: u64 = 208 << 10;

    fn sleep_ns(rcvbuf: u64, messages: u64, bytes: u64) -> u64 {
        GatherSleep { gather_bytes: GatherSleep::gather_space(rcvbuf), ..GatherSleep::default() }
            .compute_sleep_ns(SECOND, messages, bytes)
    }

    #[test]
    fn a_slow_stream_is_read_packet_by_packet() {
        assert_eq!(sleep_ns(DEFAULT, 1_000, 1_448_000), 0);
    }

    #[test]
    fn small_packets_at_1_gbit_s_are_read_in_batches() {
        let sleep_ns = sleep_ns(DEFAULT, 86_000, 125_000_000);
        assert!((GatherSleep::MIN_SLEEP_NS..=GatherSleep::MAX_SLEEP_NS).contains(&sleep_ns), "{sleep_ns}");
    }

    #[test]
    fn sleeps_are_shorter_than_the_buffer_takes_to_fill() {
        assert_eq!(sleep_ns(DEFAULT, 80_000, 5_000_000_000), 0);
        // A buffer of 8 MiB takes longer to fill.
        assert!(sleep_ns(8 << 20, 80_000, 5_000_000_000) >= GatherSleep::MIN_SLEEP_NS);
    }
}
