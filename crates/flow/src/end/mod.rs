//! One end of a test: stream threads, the sampler beside them, and the report they add up to.
//!
//! Both hosts run this same code. Everything was agreed before it starts: sockets are open, the start lies a moment
//! ahead on the local monotonic clock, and nothing of the control protocol happens in here.

mod bulk;
mod live;
mod report;
mod sampler;
mod streams;
mod transactions;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use landspeed_host::HostSampler;
use landspeed_model::{Direction, Parameters, Protocol, TcpInfo};
use landspeed_sys::clock;

pub use live::{LiveReading, TcpState, UdpState};
pub use report::{Cuts, EndReport, RrReport, StreamReport};
pub use sampler::{MAX_SAMPLES, affordable_interval_ns, keep_affordable};
pub use streams::{DataSocket, Job, StreamPlan};
pub use transactions::{Connector, IDLE_NS, RrSlot};

use crate::control::message::SenderDone;
use crate::dialect::Dialect;
use crate::shared::{Budget, Counters, Stop};
use crate::udp::Finish;

/// How long after the senders stopped receivers may still wait for what is under way, nanoseconds.
pub const DRAIN_NS: u64 = 10_000_000_000;

/// Which end of the control connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that asked for the test.
    Client,
    /// The one that answered.
    Server,
}

/// Everything one end needs to run its part.
pub struct EndPlan {
    /// Which end.
    pub side: Side,
    /// Whose rules it follows.
    pub dialect: Dialect,
    /// What was agreed.
    pub parameters: Parameters,
    /// The agreed start on this host's monotonic clock, nanoseconds.
    pub t0_ns: u64,
    /// Streams with their open sockets.
    pub streams: Vec<StreamPlan>,
    /// Interface whose counters to read.
    pub interface: Option<String>,
    /// No test lasts longer than this, nanoseconds after the start, whatever bounds it.
    pub limit_ns: u64,
    /// Read each TCP stream no faster than this, bits/s, whatever its sender does.
    pub receive_cap_bps: Option<u64>,
}

/// What a running end shows to the control thread.
#[derive(Debug)]
pub struct Watch {
    /// Stop flags; the control thread may set them.
    pub stop: Stop,
    counters: Vec<(u32, bool, Arc<Counters>)>,
    transactions: Vec<Arc<Counters>>,
    /// Counters of a responder here, and the larger of its messages, bytes.
    answers: Vec<(Arc<Counters>, u64)>,
    finishes: Vec<(u32, Arc<Finish>)>,
    awaited: u32,
    peer_done: AtomicU32,
    udp: bool,
    live: Mutex<LiveReading>,
}

impl Watch {
    /// For the streams of a plan.
    pub fn new(plan: &EndPlan) -> Self {
        Self {
            stop: Stop::default(),
            counters: plan
                .streams
                .iter()
                .filter(|s| s.job.is_bulk())
                .map(|s| (s.id, s.job.sends(), Arc::clone(&s.counters)))
                .collect(),
            transactions: plan
                .streams
                .iter()
                .filter(|s| matches!(s.job, Job::Request(_)))
                .map(|s| Arc::clone(&s.counters))
                .collect(),
            answers: plan
                .streams
                .iter()
                .filter_map(|s| match s.job {
                    Job::Respond(slot) | Job::Echo(slot) => {
                        let larger = slot.size.request_bytes.max(slot.size.response_bytes);
                        Some((Arc::clone(&s.counters), u64::from(larger)))
                    }
                    _ => None,
                })
                .collect(),
            finishes: plan.streams.iter().map(|s| (s.id, Arc::clone(&s.finish))).collect(),
            awaited: plan.streams.iter().filter(|s| s.job.is_bulk() && !s.job.sends()).count() as u32,
            peer_done: AtomicU32::new(0),
            udp: plan.parameters.protocol == Protocol::Udp,
            live: Mutex::default(),
        }
    }

    /// Bytes so far: (written here, read here).
    pub fn bytes(&self) -> (u64, u64) {
        self.counters.iter().fold((0, 0), |(sent, received), (_, sends, counters)| {
            if *sends { (sent + counters.bytes(), received) } else { (sent, received + counters.bytes()) }
        })
    }

    /// The sampler's last reading of this end.
    pub fn live(&self) -> LiveReading {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the sampler's reading at `t_ns`, nanoseconds after the start, with the `tcp_info` of the senders here.
    fn publish_live(&self, t_ns: u64, senders: impl Iterator<Item = TcpInfo>) {
        let (sent, received) = self.bytes();
        let receiving = || self.counters.iter().filter(|(_, sends, _)| self.udp && !sends).map(|(_, _, c)| c);
        let udp = receiving().next().is_some().then(|| {
            receiving().fold(UdpState::default(), |sum, counters| UdpState {
                delivered: sum.delivered + counters.packets(),
                lost: sum.lost + counters.highest().saturating_sub(counters.packets()),
                jitter_ns: sum.jitter_ns.max(counters.delay_ns()),
            })
        });
        let latency_sum_ns = self.transactions.iter().map(|counters| counters.delay_ns()).sum();
        let tcp = TcpState::sum(senders);
        let live = LiveReading { t_ns, sent, received, tcp, udp, transactions: self.transactions(), latency_sum_ns };
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = live;
    }

    /// Counters of the bulk streams by number.
    pub fn counters(&self) -> impl Iterator<Item = (u32, &Counters)> {
        self.counters.iter().map(|(id, _, counters)| (*id, &**counters))
    }

    /// Transactions completed so far by requesters here.
    pub fn transactions(&self) -> u64 {
        self.transactions.iter().map(|counters| counters.packets()).sum()
    }

    /// Bytes that arrived on sockets of receivers here so far, junk and duplicates included.
    pub fn arrived_bytes(&self) -> u64 {
        let receiving = self.counters.iter().filter(|(_, sends, _)| !sends);
        receiving.map(|(_, _, counters)| counters.bytes() + counters.discarded()).sum()
    }

    /// Requests that responders here answered so far.
    pub fn answered(&self) -> u64 {
        self.answers.iter().map(|(counters, _)| counters.packets()).sum()
    }

    /// Bytes that responders here moved so far in the direction of their larger messages, junk included.
    pub fn answered_bytes(&self) -> u64 {
        self.answers.iter().map(|(counters, larger)| counters.packets() * larger + counters.discarded()).sum()
    }

    /// The peer's sender of one stream is done: what is missing by now is lost, not late.
    pub fn peer_sender_done(&self, done: &SenderDone, t0_ns: u64) {
        if let Some((_, finish)) = self.finishes.iter().find(|(id, _)| *id == done.stream) {
            finish.sender_stopped(done.packets, t0_ns.saturating_add(done.stopped_ns));
            self.peer_done.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn all_peer_senders_done(&self) -> bool {
        self.awaited > 0 && self.peer_done.load(Ordering::Relaxed) >= self.awaited
    }
}

/// Runs one end to its finish. Blocks; bounded by the test's own limits and the drain time.
///
/// `done` hears of every sending stream that has ended.
pub fn run(mut plan: EndPlan, watch: &Watch, done: &mpsc::Sender<SenderDone>) -> EndReport {
    let parameters = plan.parameters.clone();
    let (upload, download) = (Budget::new(parameters.bytes), Budget::new(parameters.bytes));
    let mut host = HostSampler::new(plan.interface.as_deref(), clock::monotonic_ns());
    streams::read_baselines(&mut plan.streams);
    let (report, finished) = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(plan.streams.len());
        for stream in &plan.streams {
            let budget = if stream.direction == Direction::Upload { &upload } else { &download };
            let (t0_ns, side, parameters, done) = (plan.t0_ns, plan.side, &parameters, done.clone());
            let (dialect, receive_cap_bps) = (plan.dialect, plan.receive_cap_bps);
            let task =
                streams::Task { stream, parameters, side, dialect, t0_ns, watch, budget, done, receive_cap_bps };
            let thread = std::thread::Builder::new()
                .name(format!("stream-{}", stream.id))
                .spawn_scoped(scope, move || streams::run(&task));
            threads.push(thread);
        }
        let mut sampler = sampler::Sampler::new(&plan, watch, &mut host);
        sampler.run(&|| threads.iter().all(|t| t.as_ref().map_or(true, std::thread::ScopedJoinHandle::is_finished)));
        let finished: Vec<_> = threads
            .into_iter()
            .map(|thread| match thread {
                Ok(thread) => {
                    thread.join().unwrap_or_else(|_| streams::Finished::failed("the stream's thread panicked"))
                }
                Err(error) => streams::Finished::failed(&format!("cannot start a thread: {error}")),
            })
            .collect();
        (sampler.finish(), finished)
    });
    let now_ns = clock::monotonic_ns();
    report::build(&plan, report, finished, host.finish(now_ns, plan.t0_ns))
}
