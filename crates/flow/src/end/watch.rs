//! State shared between a running test and its control thread.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use landspeed_model::{Protocol, TcpInfo};

use super::plan::{EndPlan, Job};
use super::slots::RrSlot;
use crate::progress::{LiveReading, SenderDone, TcpState, UdpState};
use crate::shared::{Counters, Stop};
use crate::udp::Finish;

/// State of a running test, shared with the control thread.
#[derive(Debug)]
pub struct Watch {
    /// Stop flags; the control thread may set them.
    pub stop: Stop,
    counters: Vec<(u32, bool, Arc<Counters>)>,
    /// Counters of each local requester, and the larger of its message sizes, bytes.
    transactions: Vec<(Arc<Counters>, u64)>,
    /// Counters of each local responder, and the larger of its message sizes, bytes.
    answers: Vec<(Arc<Counters>, u64)>,
    finishes: Vec<(u32, Arc<Finish>)>,
    expected_senders: u32,
    peer_done: AtomicU32,
    byte_limit_reached: AtomicBool,
    udp: bool,
    live: Mutex<LiveReading>,
}

/// Returns the larger message size of a transaction, bytes.
fn larger(slot: RrSlot) -> u64 {
    u64::from(slot.size.request_bytes.max(slot.size.response_bytes))
}

impl Watch {
    /// Creates the shared state for the streams of a plan.
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
                .filter_map(|s| match s.job {
                    Job::Request(slot) => Some((Arc::clone(&s.counters), larger(slot))),
                    _ => None,
                })
                .collect(),
            answers: plan
                .streams
                .iter()
                .filter_map(|s| match s.job {
                    Job::Respond(slot) | Job::Echo(slot) => Some((Arc::clone(&s.counters), larger(slot))),
                    _ => None,
                })
                .collect(),
            finishes: plan.streams.iter().map(|s| (s.id, Arc::clone(&s.finish))).collect(),
            expected_senders: plan.streams.iter().filter(|s| s.job.is_bulk() && !s.job.sends()).count() as u32,
            peer_done: AtomicU32::new(0),
            byte_limit_reached: AtomicBool::new(false),
            udp: plan.parameters.protocol == Protocol::Udp,
            live: Mutex::default(),
        }
    }

    /// Ends the test: senders stop, and receivers give up data in flight.
    pub fn stop_all(&self) {
        self.stop.stop_sending();
        self.stop.stop_receiving();
    }

    /// Ends a test with a byte limit because its bytes were moved; only needed where a stream does not end by itself.
    pub fn reach_byte_limit(&self) {
        self.byte_limit_reached.store(true, Ordering::Release);
        self.stop.stop_sending();
    }

    /// Whether [`reach_byte_limit`](Self::reach_byte_limit) ended the test.
    pub(super) fn has_reached_byte_limit(&self) -> bool {
        self.byte_limit_reached.load(Ordering::Acquire)
    }

    /// Returns the bytes so far: (sent, received).
    pub fn bytes(&self) -> (u64, u64) {
        self.counters.iter().fold((0, 0), |(sent, received), (_, sends, counters)| {
            if *sends { (sent + counters.bytes(), received) } else { (sent, received + counters.bytes()) }
        })
    }

    /// Returns the sampler's latest local reading.
    pub fn live(&self) -> LiveReading {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the sampler's reading at `t_ns`, nanoseconds after the start, with the `tcp_info` of the local
    /// senders.
    pub(super) fn publish_live(&self, t_ns: u64, senders: impl Iterator<Item = TcpInfo>) {
        let (sent, received) = self.bytes();
        let receiving = || self.counters.iter().filter(|(_, sends, _)| self.udp && !sends).map(|(_, _, c)| c);
        let udp = receiving().next().is_some().then(|| UdpState {
            delivered: receiving().map(|counters| counters.packets()).sum(),
            lost: receiving().map(|counters| counters.highest().saturating_sub(counters.packets())).sum(),
            // A receiver that has no jitter publishes 0.
            jitter_ns: receiving()
                .all(|counters| counters.delay_ns() > 0)
                .then(|| receiving().map(|counters| counters.delay_ns()).max())
                .flatten(),
        });
        let latency_sum_ns = self.transactions.iter().map(|(counters, _)| counters.delay_ns()).sum();
        let tcp = TcpState::sum(senders);
        let live = LiveReading { t_ns, sent, received, tcp, udp, transactions: self.transactions(), latency_sum_ns };
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = live;
    }

    /// Returns the counters of the bulk streams by stream number.
    pub fn counters(&self) -> impl Iterator<Item = (u32, &Counters)> {
        self.counters.iter().map(|(id, _, counters)| (*id, &**counters))
    }

    /// Number of transactions completed by the local requesters.
    pub fn transactions(&self) -> u64 {
        self.transactions.iter().map(|(counters, _)| counters.packets()).sum()
    }

    /// Bytes that arrived on the sockets of local receivers, including unknown datagrams and duplicates.
    pub fn arrived_bytes(&self) -> u64 {
        let receiving = self.counters.iter().filter(|(_, sends, _)| !sends);
        receiving.map(|(_, _, counters)| counters.bytes() + counters.discarded()).sum()
    }

    /// Number of requests answered by the local responders.
    pub fn answered(&self) -> u64 {
        self.answers.iter().map(|(counters, _)| counters.packets()).sum()
    }

    /// Bytes moved by local requesters and responders in the direction of their larger messages, including unknown
    /// datagrams.
    pub fn exchanged_bytes(&self) -> u64 {
        let both = self.transactions.iter().chain(&self.answers);
        both.map(|(counters, larger)| counters.packets() * larger + counters.discarded()).sum()
    }

    /// Records that a sender of the peer is done: datagrams missing by now count as lost, not late.
    pub fn peer_sender_done(&self, done: &SenderDone, t0_ns: u64) {
        if let Some((_, finish)) = self.finishes.iter().find(|(id, _)| *id == done.stream) {
            finish.sender_stopped(done.packets, t0_ns.saturating_add(done.stopped_ns));
            self.peer_done.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether all senders of the peer are done.
    pub(super) fn all_peer_senders_done(&self) -> bool {
        self.expected_senders > 0 && self.peer_done.load(Ordering::Relaxed) >= self.expected_senders
    }
}
