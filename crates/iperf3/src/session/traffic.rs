//! Control protocol with an iperf3 client during its test.

use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};

use landspeed_flow::control::channel::min_rtt_ns;
use landspeed_flow::control::deadline::{Deadline, timeout, timeout_ns};
use landspeed_flow::end::{Job, Peer, StreamPlan, Watch};
use landspeed_flow::layout::StreamSpec;
use landspeed_flow::progress::SenderDone;
use landspeed_flow::server::Shared;
use landspeed_flow::server::admission::RateGuard;
use landspeed_model::{Direction, Parameters, Protocol};
use landspeed_sys::{clock, socket};
use socket2::SockRef;

use super::{Ended, STEP_TIMEOUT, STOP_TIMEOUT, lost};
use crate::identity;
use crate::results::{Omitted, Results, SessionValues};
use crate::wire::{ControlConnection, MAX_CLIENT_RESULTS, Refusal, State};

/// Time without data and control messages after which a client is considered gone, nanoseconds. iperf3 uses 120
/// s too.
const IDLE_TIMEOUT_NS: u64 = 120_000_000_000;
/// Wait for outstanding data at the end of a test, in addition to two and to four round trips, nanoseconds: since the last
/// progress, and in total.
const DRAIN_IDLE_NS: u64 = 300_000_000;
const DRAIN_TIMEOUT_NS: u64 = 10_000_000_000;

/// State of the control protocol of a running test.
pub(super) struct Client<'a> {
    shared: &'a Shared,
    line: &'a mut ControlConnection,
    specs: &'a [StreamSpec],
    parameters: &'a Parameters,
    sending: Sending,
    guard: Option<RateGuard>,
    t0_ns: u64,
    rtt_ns: u64,
    stage: Stage,
    /// Values that the server knows in addition to its report.
    pub known: SessionValues,
}

/// Stage of a test. Times are of the monotonic clock, nanoseconds.
#[derive(Clone, Copy)]
enum Stage {
    /// Until the client ends the test.
    Traffic { omitting: bool, moved: Option<u64>, moved_ns: u64 },
    /// Until all sent data is acknowledged.
    Flushing { ended_ns: u64, queued: u64, since_ns: u64, deadline_ns: u64 },
    /// Until all data from the client is read, as counted by the client.
    Draining { ended_ns: u64, expected: u64, received: u64, since_ns: u64 },
}

impl<'a> Client<'a> {
    /// State for a test that starts now.
    pub fn new(
        (shared, line): (&'a Shared, &'a mut ControlConnection),
        specs: &'a [StreamSpec],
        parameters: &'a Parameters,
        sending: Sending,
        rate_limit_bps: Option<u64>,
        t0_ns: u64,
    ) -> Self {
        Self {
            shared,
            rtt_ns: min_rtt_ns(line.stream().as_fd()),
            line,
            specs,
            parameters,
            sending,
            guard: rate_limit_bps.map(|rate| RateGuard::new(rate, t0_ns)),
            t0_ns,
            stage: Stage::Traffic { omitting: parameters.omit_ns > 0, moved: None, moved_ns: t0_ns },
            known: SessionValues { omit_ns: parameters.omit_ns, ..SessionValues::default() },
        }
    }

    /// The byte count whose progress shows that the client is alive; `None` if there is none. TCP data is
    /// acknowledged, UDP data is not: if the server only sends UDP, only the keepalive of the control connection is
    /// left.
    fn progress_bytes(&self, (sent, received): (u64, u64)) -> Option<u64> {
        let receives = self.parameters.direction != Direction::Download;
        if self.parameters.protocol == Protocol::Udp { receives.then_some(received) } else { Some(sent + received) }
    }

    /// Handles one step of the traffic stage, until the client ends the test.
    fn traffic(
        &mut self,
        watch: &Watch,
        mut omitting: bool,
        mut moved: Option<u64>,
        mut moved_ns: u64,
    ) -> Result<Stage, Ended> {
        let now = clock::monotonic_ns();
        if omitting && now >= self.t0_ns + self.known.omit_ns {
            omitting = false;
            self.known.omitted = watch
                .counters()
                .map(|(id, c)| (id, Omitted { bytes: c.bytes(), packets: c.packets(), highest: c.highest() }))
                .collect();
        }
        let moves = self.progress_bytes(watch.bytes());
        if moves.is_none() || moves != moved {
            (moved, moved_ns) = (moves, now);
        }
        if self.shared.stopping() {
            let _ = self.line.send(State::ServerTerminate, &Deadline::after(STOP_TIMEOUT));
            return Err(Ended::Lost("the server stops".to_owned()));
        }
        if self.guard.as_ref().is_some_and(|guard| guard.is_exceeded(now, watch)) {
            let why = "the client moved more than this server's --max-rate or --max-total-rate allows".to_owned();
            return Err(Ended::Refused(Refusal::Rate, why));
        }
        if watch.stop.sending() {
            return Err(Ended::Refused(Refusal::Duration, "it did not end in its time".to_owned()));
        }
        if now > moved_ns + IDLE_TIMEOUT_NS {
            return Err(Ended::Refused(Refusal::Silence, "nothing moved for two minutes".to_owned()));
        }
        let wait_ms = if omitting { 1 } else { 20 };
        match self.line.poll(wait_ms).map_err(lost("running the test"))? {
            None => Ok(Stage::Traffic { omitting, moved, moved_ns }),
            Some(byte) if byte == State::TestEnd as i8 as u8 => {
                let ended_ns = clock::monotonic_ns();
                watch.stop.stop_sending();
                self.known.end_ns = Some(ended_ns - self.t0_ns);
                let deadline_ns = ended_ns + timeout_ns(DRAIN_TIMEOUT_NS, self.rtt_ns);
                Ok(Stage::Flushing { ended_ns, queued: self.sending.queued(), since_ns: ended_ns, deadline_ns })
            }
            Some(byte) if byte == State::ClientTerminate as i8 as u8 => {
                Err(Ended::Lost("the client gave up".to_owned()))
            }
            Some(byte) => Err(Ended::Lost(format!("it said {} during the test", byte as i8))),
        }
    }

    fn idle_ns(&self) -> u64 {
        DRAIN_IDLE_NS + 2 * self.rtt_ns
    }

    /// Receives the client's results, and waits for the bytes that it sent.
    fn exchange(&mut self, watch: &Watch, ended_ns: u64) -> Result<Stage, Ended> {
        self.line.send(State::ExchangeResults, &self.shared.step(STEP_TIMEOUT)).map_err(lost("ending the test"))?;
        let step = self.shared.step(timeout(STEP_TIMEOUT, self.rtt_ns));
        let text = self.line.receive_json(MAX_CLIENT_RESULTS, &step);
        let text = text.map_err(|unread| Ended::from(unread.during("in the client's results")))?;
        let theirs = Results::decode(&text).map_err(Ended::Lost)?;
        let mut expected = 0;
        for (index, spec) in self.specs.iter().enumerate().filter(|(_, spec)| spec.server_job == Job::Receive) {
            let Some(said) = theirs.stream(identity::number(index)) else { continue };
            expected += said.bytes + self.known.omitted.get(&spec.id).map_or(0, |omitted| omitted.bytes);
            if said.packets > 0 {
                self.known.sent.insert(spec.id, said.packets);
                let (stream, packets, bytes) = (spec.id, said.packets, said.bytes);
                let stopped_ns = ended_ns - self.t0_ns;
                watch.peer_sender_done(&SenderDone { stream, bytes, packets, stopped_ns }, self.t0_ns);
            }
        }
        self.known.peer = Some(theirs);
        Ok(Stage::Draining { ended_ns, expected, received: 0, since_ns: clock::monotonic_ns() })
    }
}

impl Peer for Client<'_> {
    type Error = Ended;

    fn report_done(&mut self, _: SenderDone) -> Result<(), Ended> {
        self.sending.writing = self.sending.writing.saturating_sub(1);
        Ok(())
    }

    fn serve_peer(&mut self, watch: &Watch) -> Result<(), Ended> {
        let stopping = self.shared.stopping();
        self.stage = match self.stage {
            Stage::Traffic { omitting, moved, moved_ns } => self.traffic(watch, omitting, moved, moved_ns)?,
            // Some clients read until the end of file; others stop reading, and then the queue makes no progress.
            Stage::Flushing { ended_ns, queued, since_ns, deadline_ns } => {
                let waits = queued > 0 || self.sending.writing > 0;
                if waits && clock::monotonic_ns() < deadline_ns.min(since_ns + self.idle_ns()) && !stopping {
                    clock::sleep_until(clock::monotonic_ns() + 1_000_000);
                    let left = self.sending.queued();
                    let since_ns = if left == queued { since_ns } else { clock::monotonic_ns() };
                    Stage::Flushing { ended_ns, queued: left, since_ns, deadline_ns }
                } else {
                    self.sending.shutdown();
                    self.exchange(watch, ended_ns)?
                }
            }
            Stage::Draining { ended_ns, expected, mut received, mut since_ns } => {
                let (now, bytes) = (clock::monotonic_ns(), watch.bytes().1);
                if bytes != received {
                    (received, since_ns) = (bytes, now);
                }
                // The number of bytes in the omitted part is not exact, so such a test ends after a pause only.
                let all_here = self.known.omit_ns == 0 && received >= expected && self.known.sent.is_empty();
                let late =
                    now > since_ns + self.idle_ns() || now > ended_ns + timeout_ns(DRAIN_TIMEOUT_NS, self.rtt_ns);
                if all_here || stopping || late {
                    watch.stop.stop_receiving();
                }
                clock::sleep_until(now + 500_000);
                Stage::Draining { ended_ns, expected, received, since_ns }
            }
        };
        Ok(())
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Draining { .. })
    }
}

/// Duplicated descriptors of the connections on which the server sends: to read their send queues, and to keep
/// them open until the results are sent.
pub(super) struct Sending {
    held: Vec<OwnedFd>,
    /// Number of sending threads that are still running.
    writing: usize,
}

impl Sending {
    /// Duplicates the descriptors of the sending TCP streams.
    pub fn duplicate(streams: &[StreamPlan]) -> Self {
        let sending = streams.iter().filter(|s| s.job.sends() && s.socket.is_tcp());
        let held: Vec<_> = sending.filter_map(|s| s.socket.fd()?.try_clone_to_owned().ok()).collect();
        Self { writing: held.len(), held }
    }

    /// Bytes not yet acknowledged.
    fn queued(&self) -> u64 {
        self.held.iter().filter_map(|fd| socket::send_queue(fd.as_fd()).ok()).map(u64::from).sum()
    }

    /// Closes the sending direction of the connections.
    fn shutdown(&self) {
        for fd in &self.held {
            let _ = SockRef::from(fd).shutdown(Shutdown::Write);
        }
    }
}
