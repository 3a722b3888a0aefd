//! Runs a test on the server.

use std::time::Duration;

use landspeed_sys::clock;

use super::admission::RateGuard;
use super::{Shared, TestKind};
use crate::control::channel::{Receiver, Sender};
use crate::control::deadline::timeout_ns;
use crate::control::message::{ToClient, ToServer};
use crate::end::{self, EndPlan, EndReport, Peer, Watch};
use crate::error::FlowError;
use crate::progress::SenderDone;

/// Timeout without a message from the client during a test, in addition to four round trips, nanoseconds.
const SILENCE_TIMEOUT_NS: u64 = 15_000_000_000;
/// Interval of live readings, aligned to a grid of this period, nanoseconds.
const PROGRESS_NS: u64 = 200_000_000;

/// Runs the test: traffic on its own threads, control connection on this one. Returns the report and the number
/// of requests answered.
///
/// Does not block on the client: rate limit, timeouts and the stop flag are checked every 20 ms, whatever the
/// client sends or leaves unread.
///
/// # Errors
/// When the client disconnected, stopped responding, or exceeded its rate limit.
pub fn run_end(
    plan: EndPlan,
    tx: &mut Sender,
    rx: &mut Receiver,
    (shared, kind): (&Shared, TestKind),
    rate_limit_bps: Option<u64>,
) -> Result<(EndReport, u64), FlowError> {
    let watch = Watch::new(&plan);
    let (t0_ns, now) = (plan.t0_ns, clock::monotonic_ns());
    let guard = rate_limit_bps.map(|rate| RateGuard::new(rate, t0_ns));
    let silence_ns = timeout_ns(SILENCE_TIMEOUT_NS, plan.rtt_ns);
    let mut client = Client {
        tx,
        rx,
        shared,
        guard,
        t0_ns,
        silence_ns,
        last_message_ns: now,
        progress_ns: now,
        last_progress_ns: 0,
        server_stopped: false,
    };
    let traffic = shared.admission.begin_traffic();
    let (report, conversation) = end::drive(plan, &watch, &mut client);
    let server_stopped = client.server_stopped;
    let mut report = EndReport { server_stopped, ..report? };
    report.other_tests = Some(traffic.others());
    drop(traffic);
    shared.counts.count_traffic(kind, &report, watch.answered());
    conversation?;
    Ok((report, watch.answered()))
}

/// Control connection to the client during a test.
struct Client<'a> {
    tx: &'a mut Sender,
    rx: &'a mut Receiver,
    shared: &'a Shared,
    guard: Option<RateGuard>,
    t0_ns: u64,
    /// Timeout without a message.
    silence_ns: u64,
    /// Time of its last message.
    last_message_ns: u64,
    /// Time of the next live reading.
    progress_ns: u64,
    /// Time of the last live reading sent, nanoseconds after the start.
    last_progress_ns: u64,
    /// Whether the server was stopped before the test had ended.
    server_stopped: bool,
}

impl Peer for Client<'_> {
    type Error = FlowError;

    fn report_done(&mut self, done: SenderDone) -> Result<(), FlowError> {
        self.tx.queue(&ToClient::SenderDone(done))
    }

    fn serve_peer(&mut self, watch: &Watch) -> Result<(), FlowError> {
        let now = clock::monotonic_ns();
        self.tx.flush()?;
        if self.guard.as_ref().is_some_and(|guard| guard.is_exceeded(now, watch)) {
            return Err(FlowError::rate_exceeded());
        }
        if now > self.last_message_ns + self.silence_ns {
            return Err(FlowError::Timeout {
                what: "a message from the client",
                seconds: self.silence_ns / 1_000_000_000,
            });
        }
        if self.shared.stopping() {
            self.server_stopped = true;
            watch.stop_all();
        }
        let live = watch.live();
        let due = now > self.progress_ns || live.t_ns / PROGRESS_NS > self.last_progress_ns / PROGRESS_NS;
        if due && now > self.t0_ns && !self.tx.is_blocked() {
            (self.progress_ns, self.last_progress_ns) = (now + PROGRESS_NS, live.t_ns);
            self.tx.queue(&ToClient::Progress(live))?;
        }
        let Some(message) = self.rx.poll::<ToServer>(Duration::from_millis(20))? else { return Ok(()) };
        self.last_message_ns = clock::monotonic_ns();
        match message {
            ToServer::SenderDone(done) => watch.peer_sender_done(&done, self.t0_ns),
            ToServer::Stop => watch.stop.stop_sending(),
            ToServer::Bye => watch.stop_all(),
            _ => {}
        }
        Ok(())
    }
}
