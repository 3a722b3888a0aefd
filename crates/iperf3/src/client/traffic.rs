//! Control protocol with an iperf3 server during a test.

use std::sync::atomic::Ordering;

use landspeed_flow::client::{DirectionProgress, Progress, RunEvent};
use landspeed_flow::control::deadline::timeout_ns;
use landspeed_flow::end::{Job, Peer, Watch};
use landspeed_flow::error::FlowError;
use landspeed_flow::layout::StreamSpec;
use landspeed_flow::progress::SenderDone;
use landspeed_model::{Direction, Parameters, Sample};
use landspeed_sys::clock;

use super::conversation::{Conversation, check_path};
use super::open::DuplicatedStream;
use crate::ReportTimes;
use crate::wire::State;

/// Maximum time for data to arrive after the end was sent, in addition to four round trips, nanoseconds.
const DRAIN_TIMEOUT_NS: u64 = 10_000_000_000;
/// Time without data after which a stream is complete, nanoseconds.
const DRAIN_IDLE_NS: u64 = 500_000_000;
/// After all data is acknowledged: tolerated pause of the server's readers in addition to two RTTs, and maximum
/// total wait, nanoseconds.
const GRACE_NS: u64 = 50_000_000;
const READ_TIMEOUT_NS: u64 = 3_000_000_000;

/// State of the control protocol of a running test.
pub struct Server<'a, 'c> {
    conversation: &'a mut Conversation<'c>,
    held: &'a [DuplicatedStream],
    parameters: Parameters,
    rtt_ns: u64,
    t0_ns: u64,
    moments: Option<ReportTimes>,
    /// Time of the next report, nanoseconds after the start.
    due_ns: Option<u64>,
    senders: usize,
    senders_done: usize,
    observe: &'a mut dyn FnMut(RunEvent<'_>),
    stage: Stage,
}

/// Stage of a test. Times are of the monotonic clock, nanoseconds.
#[derive(Clone, Copy)]
enum Stage {
    /// Until the time or byte limit is reached; the sampler stops the senders when the time is up.
    Traffic,
    /// Until all sent data is acknowledged.
    Flushing { deadline_ns: u64 },
    /// Until the server has read its socket buffers. iperf3 stops reading when the test ends and does not count
    /// what is left there. Its receive windows grow while it reads, so it has read everything once they stop
    /// growing.
    Reading { widest: u64, since_ns: u64, deadline_ns: u64 },
    /// Until the data sent by the server has arrived.
    Draining { ended_ns: u64, received: u64, since_ns: u64 },
}

impl<'a, 'c> Server<'a, 'c> {
    /// State for a test that is about to start.
    pub fn new(
        conversation: &'a mut Conversation<'c>,
        held: &'a [DuplicatedStream],
        specs: &[StreamSpec],
        parameters: Parameters,
        (rtt_ns, t0_ns, report_ns): (u64, u64, Option<u64>),
        observe: &'a mut dyn FnMut(RunEvent<'_>),
    ) -> Self {
        let (omit_ns, time_ns) = (parameters.omit_ns, parameters.time_ns);
        let moments =
            report_ns.map(|every_ns| ReportTimes::new(omit_ns, time_ns.map(|time_ns| time_ns + omit_ns), every_ns));
        Self {
            conversation,
            held,
            parameters,
            rtt_ns,
            t0_ns,
            moments,
            due_ns: moments.and_then(|moments| moments.after(0)),
            senders: specs.iter().filter(|spec| spec.client_job == Job::Send).count(),
            senders_done: 0,
            observe,
            stage: Stage::Traffic,
        }
    }

    /// Handles one step of the traffic stage; returns whether the time or byte limit is reached, and stops the
    /// senders then.
    fn traffic(&mut self, watch: &Watch) -> Result<bool, FlowError> {
        if self.conversation.interrupted.load(Ordering::Relaxed) {
            watch.stop.stop_sending();
            let _ = self.conversation.send(State::ClientTerminate, "stopping");
            return Err(FlowError::Interrupted);
        }
        let t0_ns = self.t0_ns;
        let left_ns = self.due_ns.map_or(u64::MAX, |due_ns| (t0_ns + due_ns).saturating_sub(clock::monotonic_ns()));
        match self.conversation.line.poll((left_ns / 1_000_000).clamp(1, 5) as u32) {
            Ok(None) => {}
            Ok(Some(byte)) => return Err(self.conversation.unexpected_state_error(byte, "running the test").error),
            Err(source) => return Err(FlowError::PeerLost { during: "running the test", source }),
        }
        let now = clock::monotonic_ns();
        let (sent, downloaded) = watch.bytes();
        if now >= t0_ns {
            let queued: u64 = self.held.iter().map(DuplicatedStream::queued).sum();
            let (t_ns, live) = (now - t0_ns, watch.live());
            // The server reports nothing during the test: acknowledged bytes stand for received bytes.
            let upload = DirectionProgress { t_ns, bytes: sent.saturating_sub(queued), tcp: live.tcp, udp: None };
            let download = DirectionProgress { t_ns, bytes: downloaded, tcp: None, udp: live.udp };
            (self.observe)(RunEvent::Progress(Progress { t_ns, upload, download, sent, ..Progress::default() }));
        }
        if let Some(at_ns) = self.due_ns.filter(|at_ns| now >= t0_ns + at_ns) {
            let streams = self.readings(watch);
            (self.observe)(RunEvent::Readings { due_ns: at_ns, streams: &streams });
            self.due_ns = self.moments.and_then(|moments| moments.after(now - t0_ns));
        }
        let direction = self.parameters.direction;
        let received_all =
            direction != Direction::Upload && self.parameters.bytes.is_some_and(|bytes| downloaded >= bytes);
        let sent_all = self.senders > 0 && self.senders_done >= self.senders;
        let moved_all = received_all || (sent_all && direction == Direction::Upload);
        if moved_all && !watch.stop.sending() {
            watch.reach_byte_limit();
        }
        Ok(watch.stop.sending())
    }

    fn readings(&self, watch: &Watch) -> Vec<(u32, Sample)> {
        let of = |(id, counters)| {
            let held = self.held.iter().find(|held| held.stream == id)?;
            Some((id, held.reading(counters, self.t0_ns)))
        };
        watch.counters().filter_map(of).collect()
    }

    fn windows(&self) -> u64 {
        self.held.iter().map(DuplicatedStream::window).sum()
    }

    /// Sends the end of the test, after the server has read everything.
    fn end(&mut self) -> Result<Stage, FlowError> {
        self.conversation.send(State::TestEnd, "ending the test")?;
        let ended_ns = clock::monotonic_ns();
        self.conversation.expect_answer(State::ExchangeResults, "ending the test")?;
        Ok(Stage::Draining { ended_ns, received: 0, since_ns: ended_ns })
    }
}

impl Peer for Server<'_, '_> {
    type Error = FlowError;

    fn report_done(&mut self, _: SenderDone) -> Result<(), FlowError> {
        self.senders_done += 1;
        Ok(())
    }

    fn serve_peer(&mut self, watch: &Watch) -> Result<(), FlowError> {
        if !matches!(self.stage, Stage::Traffic) && self.conversation.interrupted.load(Ordering::Relaxed) {
            return Err(FlowError::Interrupted);
        }
        let nap = || clock::sleep_until(clock::monotonic_ns() + 1_000_000);
        self.stage = match self.stage {
            Stage::Traffic => {
                if self.traffic(watch)? {
                    Stage::Flushing { deadline_ns: clock::monotonic_ns() + timeout_ns(DRAIN_TIMEOUT_NS, self.rtt_ns) }
                } else {
                    Stage::Traffic
                }
            }
            Stage::Flushing { deadline_ns } => {
                if self.held.iter().any(|held| held.queued() > 0) && clock::monotonic_ns() < deadline_ns {
                    let silent = self.held.iter().filter(|held| held.queued() > 0).map(DuplicatedStream::silent_ns);
                    check_path(silent.min().unwrap_or(0), self.rtt_ns)?;
                    nap();
                    self.stage
                } else if self.held.iter().any(|held| held.sends) {
                    let (widest, since_ns) = (self.windows(), clock::monotonic_ns());
                    Stage::Reading {
                        widest,
                        since_ns,
                        deadline_ns: since_ns + READ_TIMEOUT_NS.max(2 * self.grace_ns()),
                    }
                } else {
                    self.end()?
                }
            }
            Stage::Reading { widest, since_ns, deadline_ns } => {
                if clock::monotonic_ns() < deadline_ns.min(since_ns + self.grace_ns()) {
                    nap();
                    let now_offered = self.windows();
                    let since_ns = if now_offered > widest { clock::monotonic_ns() } else { since_ns };
                    Stage::Reading { widest: widest.max(now_offered), since_ns, deadline_ns }
                } else {
                    self.end()?
                }
            }
            Stage::Draining { ended_ns, mut received, mut since_ns } => {
                let (now, bytes) = (clock::monotonic_ns(), watch.bytes().1);
                if bytes != received {
                    (received, since_ns) = (bytes, now);
                }
                if now > since_ns + DRAIN_IDLE_NS.max(3 * self.rtt_ns)
                    || now > ended_ns + timeout_ns(DRAIN_TIMEOUT_NS, self.rtt_ns)
                {
                    watch.stop.stop_receiving();
                }
                clock::sleep_until(now + 1_000_000);
                Stage::Draining { ended_ns, received, since_ns }
            }
        };
        Ok(())
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Draining { .. })
    }
}

impl Server<'_, '_> {
    /// Tolerated pause of the server's readers, nanoseconds.
    fn grace_ns(&self) -> u64 {
        GRACE_NS + 2 * self.rtt_ns
    }
}
