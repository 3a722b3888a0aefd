//! Sender of a UDP stream.

use std::io;
use std::num::NonZeroU32;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use landspeed_model::DepartureError;
use landspeed_stats::{LatencyHistogram, SplitMix64};
use landspeed_sys::clock::{monotonic_ns, sleep_until};
use landspeed_sys::udp::{
    MAX_SEGMENTS, MAX_SEGMENTS_OLD, SendBatch, SendFailure, drain_error_queue, enable_send_errors, gso_supported,
    set_io_timeout,
};

use super::header::{Format, Stamp};
use super::wait::{STOP_CHECK_NS, Waiter};
use super::{Pacing, SendOutcome, SendPlan, StreamError};
use crate::call_cost;
use crate::schedule::{Departure, Pacer};
use crate::shared::{Budget, Counters, Stop};

/// Payload per system call without pacing: enough to make the cost of the call negligible, little enough that
/// the buffer stays in the cache.
const CALL_BYTES: usize = 64 * 1024;
/// Maximum number of datagrams per call with and without GSO, so that a call takes well under a millisecond.
const CALL_DATAGRAMS: usize = 1024;
const CALL_DATAGRAMS_PLAIN: usize = 64;
/// Length of schedule that may be sent together when late: the typical overshoot of a sleep.
const LATE_BATCH_NS: u64 = 50_000;
/// Time for the local queue to drain after it refused a datagram of an unpaced stream.
const BACK_OFF_NS: u64 = 50_000;
/// Time after which a peer that refuses all datagrams, with at most [`REFUSAL_PAUSE_NS`] between refusals,
/// counts as gone.
const REFUSED_FOR_NS: u64 = 3_000_000_000;
const REFUSAL_PAUSE_NS: u64 = 1_000_000_000;
/// Number of consecutive `EMSGSIZE` errors after which they are not caused by an earlier ICMP message.
const TOO_LONG_LIMIT: u32 = 3;

/// Sends a stream on `socket`, which must be connected, until the plan's end, the budget's end, or `stop`.
///
/// A budget that is not a whole number of datagrams is rounded down. The loop does not allocate.
pub fn send_stream(
    socket: BorrowedFd<'_>,
    plan: &SendPlan,
    counters: &Counters,
    stop: &Stop,
    budget: &Budget,
) -> SendOutcome {
    let mut sender = Sender::new(socket, plan, counters, stop, budget);
    let finished = match sender.set_up() {
        Err(source) => Err(StreamError::Setup { option: "SO_SNDTIMEO", source }),
        Ok(()) => match plan.pacing {
            None => sender.send_unpaced(),
            Some(pacing) => sender.send_paced(pacing),
        },
    };
    sender.into_outcome(finished)
}

struct Sender<'a> {
    socket: BorrowedFd<'a>,
    plan: &'a SendPlan,
    counters: &'a Counters,
    stop: &'a Stop,
    budget: &'a Budget,
    batch: SendBatch,
    payload: u64,
    /// Datagrams per GSO super-packet; 1 without GSO.
    segments: usize,
    /// Sequence number of the next datagram, and number of datagrams the kernel has accepted.
    seq: u64,
    /// First error of this host when it refused datagrams, if it was reported.
    refusal: Option<io::Error>,
    /// Datagrams that this host refused.
    refused: u64,
    refused_since_ns: Option<u64>,
    refused_last_ns: u64,
    too_long: u32,
    outcome: SendOutcome,
}

impl<'a> Sender<'a> {
    fn new(
        socket: BorrowedFd<'a>,
        plan: &'a SendPlan,
        counters: &'a Counters,
        stop: &'a Stop,
        budget: &'a Budget,
    ) -> Self {
        let payload = plan.payload.bytes() as usize;
        let mut batch = SendBatch::new((CALL_BYTES / payload).clamp(1, CALL_DATAGRAMS), payload);
        for (i, datagram) in batch.datagrams_mut().enumerate() {
            SplitMix64::new(i as u64).fill(datagram);
            plan.format.write_constant(datagram);
        }
        Self {
            socket,
            plan,
            counters,
            stop,
            budget,
            batch,
            payload: payload as u64,
            segments: 1,
            seq: 0,
            refusal: None,
            refused: 0,
            refused_since_ns: None,
            refused_last_ns: 0,
            too_long: 0,
            outcome: SendOutcome::default(),
        }
    }

    fn set_up(&mut self) -> io::Result<()> {
        set_io_timeout(self.socket, Duration::from_nanos(STOP_CHECK_NS))?;
        if let Err(error) = enable_send_errors(self.socket) {
            let note = format!("drops in the local qdisc stay invisible to the sender: IP_RECVERR: {error}");
            self.outcome.notes.push(note);
        }
        if self.plan.gso {
            if gso_supported(self.socket) {
                self.segments = self.batch.segments(MAX_SEGMENTS);
            } else {
                self.outcome.notes.push("the kernel has no UDP segmentation offload: sending one by one".into());
            }
        }
        Ok(())
    }

    fn send_unpaced(&mut self) -> Result<(), StreamError> {
        let mut now_ns = self.wait_for_start();
        while !self.stop.sending() && now_ns < self.plan.end_ns {
            let limit = if self.segments > 1 { CALL_DATAGRAMS } else { CALL_DATAGRAMS_PLAIN };
            let packets = self.claim(limit.min(self.batch.capacity()) as u64);
            if packets == 0 {
                break;
            }
            let refused_before = self.refused;
            self.send_packets(packets, now_ns)?;
            if self.refused > refused_before {
                sleep_until(monotonic_ns() + BACK_OFF_NS);
            }
            now_ns = monotonic_ns();
            self.outcome.last_ns = Some(now_ns);
        }
        Ok(())
    }

    fn send_paced(&mut self, pacing: Pacing) -> Result<(), StreamError> {
        let until_start_ns = self.plan.start_ns.saturating_sub(monotonic_ns());
        let mut waiter = Waiter::calibrate(until_start_ns.clamp(1_000_000, 5_000_000));
        let mut lateness = LatencyHistogram::new();
        let packet_bytes = NonZeroU32::new(self.plan.payload.bytes()).expect("a payload is not empty");
        let mut now_ns = self.wait_for_start();
        // A start time in the past does not count as a backlog.
        let start_ns = now_ns.max(self.plan.start_ns);
        let late_batch_ns = LATE_BATCH_NS.max(4 * pacing.grain_ns);
        let first_ns =
            if start_ns - self.plan.start_ns > Pacer::BACKLOG_LIMIT_NS { start_ns } else { self.plan.start_ns };
        let (rate_bps, burst) = (pacing.rate_bps, pacing.burst_packets);
        let mut pacer = Pacer::new(first_ns, self.plan.end_ns, rate_bps, packet_bytes, burst, late_batch_ns);
        // Batching is useless if bursts are further apart than a batch is long.
        let grain_ns = if pacer.gap_ns() < pacing.grain_ns { pacing.grain_ns } else { 0 };
        let limit = self.batch.capacity() as u32;
        let give_up_ns = self.plan.end_ns.saturating_add(Pacer::BACKLOG_LIMIT_NS);
        let finished = loop {
            if self.stop.sending() || now_ns >= give_up_ns {
                break Ok(());
            }
            let departure = pacer.poll(now_ns, limit, |intended_ns, packets| {
                lateness.record_n(now_ns.saturating_sub(intended_ns), u64::from(packets));
            });
            if let Departure::Now(due) = departure {
                let packets = self.claim(u64::from(due));
                if packets == 0 {
                    break Ok(());
                }
                if let Err(error) = self.send_packets(packets, now_ns) {
                    break Err(error);
                }
                now_ns = monotonic_ns();
                self.outcome.last_ns = Some(now_ns);
                // When batching, datagrams that became due during the call also wait for the next batch.
                if due == limit || grain_ns == 0 {
                    continue;
                }
            }
            if departure == Departure::Done {
                break Ok(());
            }
            let wait_precisely = pacing.grain_ns == 0 || waiter.spins_cheaply(pacer.gap_ns());
            let woken_ns = if wait_precisely {
                waiter.wait_precisely(now_ns, pacer.next_ns(), self.stop)
            } else {
                waiter.wait_economically(pacer.next_ns(), grain_ns, self.stop)
            };
            self.outcome.app_wait_ns += woken_ns - now_ns;
            now_ns = woken_ns;
        };
        // Packets still due at the end are dropped and count as slip.
        let owed_ns = if now_ns >= give_up_ns { self.plan.end_ns.saturating_sub(pacer.due_ns()) } else { 0 };
        self.outcome.slipped_ns = pacer.slipped_ns() + owed_ns;
        self.outcome.udp.departure_error = departure_error(&lateness);
        finished
    }

    /// Sleeps until the start or a stop; returns the time.
    fn wait_for_start(&self) -> u64 {
        let mut now_ns = monotonic_ns();
        while now_ns < self.plan.start_ns && !self.stop.sending() {
            sleep_until(self.plan.start_ns.min(now_ns + STOP_CHECK_NS));
            now_ns = monotonic_ns();
        }
        now_ns
    }

    /// Claims whole datagrams of the budget. A remainder smaller than a datagram is claimed and not sent, so that
    /// the budget ends.
    fn claim(&self, datagrams: u64) -> usize {
        (self.budget.claim(datagrams * self.payload) / self.payload) as usize
    }

    /// Sends `packets` datagrams, retrying temporary failures; on a stop returns the rest to the budget.
    fn send_packets(&mut self, packets: usize, now_ns: u64) -> Result<(), StreamError> {
        if self.seq == 0 && self.outcome.first_ns.is_none() {
            self.outcome.first_ns = Some(now_ns);
            self.counters.stamp_first(now_ns);
        }
        self.stamp(0, packets, now_ns);
        let mut done = 0;
        while done < packets {
            self.outcome.syscalls += 1;
            let sent = self.batch.send(self.socket, done, packets, self.segments);
            match sent {
                Ok(accepted) => {
                    self.accept(accepted);
                    done += accepted;
                    if done < packets {
                        done += self.after_short_send(packets - done, now_ns);
                        self.stamp(done, packets, monotonic_ns());
                    }
                }
                Err(SendFailure::Dropped(error)) => {
                    self.refusal.get_or_insert(error);
                    done += self.refuse(packets - done);
                    self.stamp(done, packets, monotonic_ns());
                }
                Err(failure) => {
                    self.handle_failure(failure)?;
                    if self.stop.sending() {
                        self.budget.release((packets - done) as u64 * self.payload);
                        break;
                    }
                    self.stamp(done, packets, monotonic_ns());
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn stamp(&mut self, first: usize, end: usize, now_ns: u64) {
        let format = self.plan.format;
        let sent_ns = match format {
            Format::Landspeed { .. } => now_ns.saturating_sub(self.plan.start_ns),
            Format::Timeval { .. } => now_ns,
        };
        for (seq, datagram) in (self.seq..).zip(self.batch.datagrams_mut().take(end).skip(first)) {
            format.stamp(datagram, Stamp { seq, sent_ns });
        }
    }

    #[inline]
    fn accept(&mut self, datagrams: usize) {
        self.seq += datagrams as u64;
        self.outcome.udp.gso_used |= self.segments > 1 && datagrams > 1;
        self.too_long = 0;
        self.counters.publish(self.seq * self.payload, self.seq);
        call_cost::charge(datagrams as u64 * self.payload, datagrams as u64);
    }

    /// Counts one message of up to `left` datagrams as refused by this host; returns its number of datagrams.
    fn refuse(&mut self, left: usize) -> usize {
        let datagrams = left.min(self.segments);
        self.refused += datagrams as u64;
        self.budget.release(datagrams as u64 * self.payload);
        drain_error_queue(self.socket);
        datagrams
    }

    /// Handles a `sendmmsg` call that stopped short of `left` datagrams and does not report why. Unless it waited
    /// for buffer space, the next message was refused and counts as such.
    fn after_short_send(&mut self, left: usize, called_ns: u64) -> usize {
        let waited = monotonic_ns() - called_ns >= STOP_CHECK_NS / 2;
        if waited { 0 } else { self.refuse(left) }
    }

    /// Decides whether the stream continues after a call that sent nothing.
    fn handle_failure(&mut self, failure: SendFailure) -> Result<(), StreamError> {
        match failure {
            SendFailure::Full | SendFailure::Interrupted | SendFailure::Dropped(_) => Ok(()),
            SendFailure::OffloadUnavailable(error) => {
                drain_error_queue(self.socket);
                // Kernels before 6.9 accept at most 64 segments; if 64 are refused too, the route does not support GSO.
                let fewer = if self.segments > MAX_SEGMENTS_OLD { MAX_SEGMENTS_OLD } else { 1 };
                if fewer == 1 {
                    let note = format!("segmentation offload refused on this route ({error}): sending one by one");
                    self.outcome.notes.push(note);
                }
                self.segments = fewer;
                Ok(())
            }
            SendFailure::TooLong => {
                drain_error_queue(self.socket);
                self.too_long += 1;
                let payload = self.plan.payload.bytes();
                if self.too_long < TOO_LONG_LIMIT { Ok(()) } else { Err(StreamError::TooLong { payload }) }
            }
            SendFailure::Refused(source) => {
                drain_error_queue(self.socket);
                self.outcome.refusals += 1;
                let now_ns = monotonic_ns();
                if now_ns - self.refused_last_ns > REFUSAL_PAUSE_NS {
                    self.refused_since_ns = None;
                }
                self.refused_last_ns = now_ns;
                let since_ns = *self.refused_since_ns.get_or_insert(now_ns);
                if now_ns - since_ns < REFUSED_FOR_NS { Ok(()) } else { Err(StreamError::Refused { source }) }
            }
            SendFailure::Other(source) => Err(StreamError::Send { source }),
        }
    }

    fn into_outcome(mut self, finished: Result<(), StreamError>) -> SendOutcome {
        self.outcome.udp.sent_packets = self.seq;
        self.outcome.udp.send_errors = Some(self.refused);
        self.outcome.bytes = self.seq * self.payload;
        self.outcome.error = finished.err();
        if self.refused > 0 {
            let cause = self.refusal.map_or_else(|| "sendmmsg did not say why".into(), |error| error.to_string());
            self.outcome.notes.push(format!("datagrams refused by the sending host: {cause}"));
        }
        if self.seq == 0 {
            (self.outcome.first_ns, self.outcome.last_ns) = (None, None);
        }
        self.counters.stamp_last(self.outcome.last_ns.unwrap_or(0));
        self.outcome
    }
}

fn departure_error(lateness: &LatencyHistogram) -> Option<DepartureError> {
    let max_ns = lateness.max_ns()?;
    Some(DepartureError {
        count: lateness.count(),
        p50_ns: lateness.p50().unwrap_or(max_ns),
        p99_ns: lateness.p99().unwrap_or(max_ns),
        p999_ns: lateness.p99_9().unwrap_or(max_ns),
        max_ns,
    })
}
