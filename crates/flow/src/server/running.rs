//! The run of a test at its server.

use std::sync::mpsc;
use std::time::Duration;

use landspeed_sys::clock;

use super::Shared;
use super::admission::RateGuard;
use crate::control::channel::{Receiver, Sender};
use crate::control::message::{SenderDone, ToClient, ToServer};
use crate::end::{self, EndPlan, EndReport, Watch};
use crate::error::FlowError;

/// A client that says nothing for this long during a test is gone, nanoseconds.
const SILENCE_NS: u64 = 15_000_000_000;
/// How often the live figures are sent, and the grid of their times, nanoseconds.
const PROGRESS_NS: u64 = 200_000_000;

/// The run: traffic on its own threads, the control connection on this one. Returns the report and the number of requests
/// answered.
///
/// Nothing in here waits for the client: rate, silence and the end of the server are looked at every 20 ms, whatever the
/// client sends or leaves unread.
///
/// # Errors
/// When the client went away or silent, or moved more than it may.
pub fn run_end(
    plan: EndPlan,
    tx: &mut Sender,
    rx: &mut Receiver,
    shared: &Shared,
    rate_limit_bps: Option<u64>,
) -> Result<(EndReport, u64), FlowError> {
    let guard = rate_limit_bps.map(|rate| RateGuard::new(rate, plan.t0_ns));
    let watch = Watch::new(&plan);
    let t0_ns = plan.t0_ns;
    let (done_tx, done_rx) = mpsc::channel::<SenderDone>();
    std::thread::scope(|scope| {
        let (plan, watch_ref) = (plan, &watch);
        let worker = scope.spawn(move || end::run(plan, watch_ref, &done_tx));
        let mut lost = None;
        let mut heard_ns = clock::monotonic_ns();
        let mut progress_ns = heard_ns;
        let mut shown_ns = 0;
        let give_up = || {
            watch.stop.stop_sending();
            watch.stop.stop_receiving();
        };
        while !worker.is_finished() {
            let now = clock::monotonic_ns();
            for done in done_rx.try_iter() {
                lost = lost.or_else(|| tx.queue(&ToClient::SenderDone(done)).err());
            }
            lost = lost.or_else(|| tx.flush().err());
            if lost.is_none() && guard.as_ref().is_some_and(|guard| guard.is_exceeded(now, &watch)) {
                lost = Some(FlowError::Refused {
                    code: "rate-exceeded".to_owned(),
                    message: "the client moved more than this server's --max-rate or --max-total-rate allows"
                        .to_owned(),
                    advice: Some("lower --rate, or use less or smaller requests".to_owned()),
                });
            }
            if lost.is_none() && now > heard_ns + SILENCE_NS {
                let seconds = SILENCE_NS / 1_000_000_000;
                lost = Some(FlowError::Timeout { what: "a message from the client", seconds });
            }
            if shared.stopping() {
                give_up();
            }
            if lost.is_some() {
                give_up();
                clock::sleep_until(now + 5_000_000);
                continue;
            }
            let live = watch.live();
            let due = now > progress_ns || live.t_ns / PROGRESS_NS > shown_ns / PROGRESS_NS;
            if due && now > t0_ns && !tx.is_blocked() {
                (progress_ns, shown_ns) = (now + PROGRESS_NS, live.t_ns);
                lost = tx.queue(&ToClient::Progress(live)).err();
            }
            match rx.poll::<ToServer>(Duration::from_millis(20)) {
                Ok(None) => {}
                Ok(Some(message)) => {
                    heard_ns = clock::monotonic_ns();
                    match message {
                        ToServer::SenderDone(done) => watch.peer_sender_done(&done, t0_ns),
                        ToServer::Stop => watch.stop.stop_sending(),
                        ToServer::Bye => give_up(),
                        _ => {}
                    }
                }
                Err(error) => lost = Some(error),
            }
        }
        for done in done_rx.try_iter() {
            lost = lost.or_else(|| tx.queue(&ToClient::SenderDone(done)).err());
        }
        let report = worker.join().map_err(|_| FlowError::Protocol {
            during: "running the test",
            message: "a thread of the test panicked".to_owned(),
        })?;
        match lost {
            Some(error) => Err(error),
            None => Ok((report, watch.answered())),
        }
    })
}
