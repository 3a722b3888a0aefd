//! Runs one side of a test while its peer is served.

use std::sync::mpsc;

use landspeed_host::HostSampler;
use landspeed_model::Direction;
use landspeed_sys::clock;

use super::phases::drain_ns;
use super::plan::EndPlan;
use super::report::{self, EndReport};
use super::sampler::Sampler;
use super::task::{Finished, Task};
use super::watch::Watch;
use super::{placement, streams};
use crate::error::FlowError;
use crate::progress::SenderDone;
use crate::shared::Budget;

/// Poll interval while stopped streams finish, nanoseconds.
const END_POLL_NS: u64 = 2_000_000;

/// Control connection to the peer of a running test.
pub trait Peer {
    /// Error that ends the conversation early.
    type Error;

    /// Reports that a local sending stream has ended.
    fn report_done(&mut self, done: SenderDone) -> Result<(), Self::Error>;

    /// Exchanges pending messages with the peer; waits briefly, so that the test is checked often enough.
    fn serve_peer(&mut self, watch: &Watch) -> Result<(), Self::Error>;

    /// Whether no more messages are due before the report.
    fn is_over(&self) -> bool {
        true
    }
}

/// Runs one side of a test on new threads and serves its peer on the calling thread, until every stream has
/// finished and the conversation is over. If the conversation ends early, all streams are stopped.
///
/// Returns the report, or an error if a thread of the test panicked; and the result of the conversation.
pub fn drive<P: Peer>(
    plan: EndPlan,
    watch: &Watch,
    peer: &mut P,
) -> (Result<EndReport, FlowError>, Result<(), P::Error>) {
    let (done_tx, done_rx) = mpsc::channel::<SenderDone>();
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || run(plan, watch, &done_tx));
        let mut conversation = Ok(());
        while !worker.is_finished() || (conversation.is_ok() && !peer.is_over()) {
            if conversation.is_err() {
                clock::sleep_until(clock::monotonic_ns() + END_POLL_NS);
                continue;
            }
            conversation = done_rx.try_iter().try_for_each(|done| peer.report_done(done));
            conversation = conversation.and_then(|()| peer.serve_peer(watch));
            if conversation.is_err() {
                watch.stop_all();
            }
        }
        conversation = conversation.and_then(|()| done_rx.try_iter().try_for_each(|done| peer.report_done(done)));
        let report = worker.join().map_err(|_| FlowError::Protocol {
            during: "running the test",
            message: "a thread of the test panicked".to_owned(),
        });
        (report, conversation)
    })
}

/// Runs one side of a test. Blocks; bounded by the test's own limits and the drain time.
///
/// Sends the final counts of each sending stream to `done`.
fn run(mut plan: EndPlan, watch: &Watch, done: &mpsc::Sender<SenderDone>) -> EndReport {
    let parameters = plan.parameters.clone();
    let (upload, download) = (Budget::new(parameters.bytes), Budget::new(parameters.bytes));
    let mut host = HostSampler::new(plan.interface.as_deref(), clock::monotonic_ns());
    streams::read_baselines(&mut plan.streams);
    placement::place(&mut plan.streams, &parameters, plan.side);
    let (report, finished) = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(plan.streams.len());
        for stream in &plan.streams {
            let budget = if stream.direction == Direction::Upload { &upload } else { &download };
            let (t0_ns, side, parameters, done) = (plan.t0_ns, plan.side, &parameters, done.clone());
            let (dialect, receive_cap_bps, drain_ns) = (plan.dialect, plan.receive_cap_bps, drain_ns(plan.rtt_ns));
            let task =
                Task { stream, parameters, side, dialect, t0_ns, drain_ns, watch, budget, done, receive_cap_bps };
            let thread = std::thread::Builder::new()
                .name(format!("stream-{}", stream.id))
                .spawn_scoped(scope, move || streams::run(&task));
            threads.push(thread);
        }
        let mut sampler = Sampler::new(&plan, watch, &mut host);
        sampler.run(&|| threads.iter().all(|t| t.as_ref().map_or(true, std::thread::ScopedJoinHandle::is_finished)));
        let finished: Vec<_> = threads
            .into_iter()
            .map(|thread| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| Finished::failed("the stream's thread panicked")),
                Err(error) => Finished::failed(&format!("cannot start a thread: {error}")),
            })
            .collect();
        (sampler.finish(), finished)
    });
    let now_ns = clock::monotonic_ns();
    report::build(&plan, report, finished, host.finish(now_ns, plan.t0_ns))
}
