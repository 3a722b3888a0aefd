//! The control connection of a client during a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_sys::clock;

use super::refused;
use crate::control::channel::{Receiver, Sender};
use crate::control::message::{MAX_REPORT, ToClient, ToServer};
use crate::end::{DRAIN_NS, EndReport, LiveReading, Watch};
use crate::error::FlowError;
use crate::layout::StreamSpec;

/// How long each part of the server's report may take, nanoseconds.
const REPORT_PART_NS: u64 = 15_000_000_000;
/// How long after the client has finished the report may take to begin, the server's own drain included, nanoseconds.
const REPORT_NS: u64 = DRAIN_NS + REPORT_PART_NS;
/// After an interrupt the client waits while the server goes on talking: each whole message gives it this long, besides two
/// round trips, for the next one, and all of them together so long, nanoseconds.
const CLOSING_STEP_NS: u64 = 700_000_000;
const CLOSING_NS: u64 = 5_000_000_000;

/// What the two ends have said to each other during a run, and by when the server must say more.
pub(super) struct Conversation {
    t0_ns: u64,
    rtt_ns: u64,
    /// When the last whole message came.
    pub heard_ns: u64,
    /// When to send the next keep-alive to the server.
    pub alive_ns: u64,
    closing_ns: Option<u64>,
    /// When the report, or its next part, must be here.
    report_due_ns: u64,
    /// The server's end as it last said.
    pub remote: LiveReading,
    /// What the server's report may be about.
    specs: Vec<StreamSpec>,
    report: String,
    /// The server's report.
    pub server: Option<EndReport>,
    /// Why there is nothing more to hear.
    pub lost: Option<FlowError>,
}

impl Conversation {
    pub fn new(t0_ns: u64, specs: Vec<StreamSpec>, rtt_ns: u64) -> Self {
        let now = clock::monotonic_ns();
        Self {
            t0_ns,
            rtt_ns,
            heard_ns: now,
            alive_ns: now,
            closing_ns: None,
            report_due_ns: u64::MAX,
            remote: LiveReading::default(),
            specs,
            report: String::new(),
            server: None,
            lost: None,
        }
    }

    /// Whether the user has asked to stop. The first time the server is notified.
    pub fn sees_interrupt(&mut self, interrupted: &AtomicBool, tx: &mut Sender) -> bool {
        if self.closing_ns.is_none() && interrupted.load(Ordering::Relaxed) {
            self.closing_ns = Some(clock::monotonic_ns());
            self.say(tx, &ToServer::Stop);
        }
        self.closing_ns.is_some()
    }

    /// Whether the user has asked to stop.
    pub fn is_closing(&self) -> bool {
        self.closing_ns.is_some()
    }

    /// Whether the user has asked to stop and the server has nothing more to say.
    pub fn has_waited_enough(&self, now_ns: u64) -> bool {
        let Some(since_ns) = self.closing_ns else { return false };
        let next_ns = self.heard_ns.max(since_ns) + CLOSING_STEP_NS + 2 * self.rtt_ns;
        now_ns > next_ns.min(since_ns + CLOSING_NS)
    }

    /// This end has finished: the server's report is next.
    pub fn await_report(&mut self) {
        self.report_due_ns = clock::monotonic_ns() + REPORT_NS;
    }

    /// Gives the server up when the moment by which it had to say something has passed.
    pub fn give_up_after(&mut self, now_ns: u64, due_ns: u64, what: &'static str, limit_ns: u64) {
        if self.lost.is_none() && now_ns > due_ns {
            self.lost = Some(FlowError::Timeout { what, seconds: limit_ns / 1_000_000_000 });
        }
    }

    /// Sends a message without waiting for it to leave.
    pub fn say(&mut self, tx: &mut Sender, message: &ToServer) {
        if self.lost.is_none() {
            self.lost = tx.queue(message).err();
        }
    }

    /// Takes in one message, if one comes in time.
    pub fn listen(&mut self, tx: &mut Sender, rx: &mut Receiver, watch: &Watch, patience: Duration) {
        if self.lost.is_some() || self.server.is_some() {
            clock::sleep_until(clock::monotonic_ns() + patience.as_nanos() as u64);
            return;
        }
        match tx.flush().and_then(|()| rx.poll::<ToClient>(patience)) {
            Ok(None) => {}
            Ok(Some(message)) => {
                self.heard_ns = clock::monotonic_ns();
                self.take(message, watch);
            }
            Err(error) => self.lost = Some(error),
        }
        if self.report_due_ns < u64::MAX && self.server.is_none() {
            let now_ns = clock::monotonic_ns();
            let due_ns = if self.has_waited_enough(now_ns) { 0 } else { self.report_due_ns };
            self.give_up_after(now_ns, due_ns, "the server's report", REPORT_PART_NS);
        }
    }

    /// Takes in a message.
    fn take(&mut self, message: ToClient, watch: &Watch) {
        match message {
            ToClient::Progress(live) => self.remote = live,
            ToClient::SenderDone(done) => watch.peer_sender_done(&done, self.t0_ns),
            ToClient::Report { text, last } => {
                self.report_due_ns = self.heard_ns + REPORT_PART_NS;
                if self.report.len() + text.len() > MAX_REPORT {
                    self.lost = Some(FlowError::Protocol {
                        during: "in the server's report",
                        message: "it is too large".into(),
                    });
                    return;
                }
                self.report.push_str(&text);
                if last {
                    match EndReport::of_server(&self.report, &self.specs) {
                        Ok(report) => self.server = Some(report),
                        Err(message) => {
                            self.lost = Some(FlowError::Protocol { during: "in the server's report", message });
                        }
                    }
                    self.report = String::new();
                }
            }
            ToClient::Error(entry) => self.lost = Some(refused(entry)),
            _ => {}
        }
    }
}
