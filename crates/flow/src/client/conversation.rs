//! The control connection of a client during a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use landspeed_model::ErrorEntry;
use landspeed_sys::clock;

use crate::control::channel::{Receiver, Sender};
use crate::control::deadline::timeout_ns;
use crate::control::message::{MAX_REPORT, ToClient, ToServer, inflate};
use crate::control::printable;
use crate::end::{EndReport, Watch, drain_ns};
use crate::error::FlowError;
use crate::layout::StreamSpec;
use crate::progress::LiveReading;

/// Timeout for each part of the server's report, in addition to four round trips, nanoseconds. The first part also
/// waits for the server's drain.
const REPORT_PART_NS: u64 = 15_000_000_000;
/// After an interrupt: time allowed for the server's next message, in addition to two round trips, nanoseconds.
const CLOSING_STEP_NS: u64 = 700_000_000;
/// The same in total.
const CLOSING_NS: u64 = 5_000_000_000;

/// State of the control connection during a run: messages received, and deadlines for the next ones.
pub(super) struct Conversation {
    t0_ns: u64,
    rtt_ns: u64,
    /// Time of the last complete message, monotonic nanoseconds.
    pub last_message_ns: u64,
    /// Time to send the next heartbeat to the server.
    pub next_heartbeat_ns: u64,
    stop_requested_ns: Option<u64>,
    /// Deadline for the report, or its next part.
    report_due_ns: u64,
    /// Latest live reading from the server.
    pub remote: LiveReading,
    /// Streams of the test; the server's report is checked against them.
    specs: Vec<StreamSpec>,
    report: String,
    deflated: Vec<u8>,
    /// When the server's report began to arrive, nanoseconds after the start.
    pub report_ns: Option<u64>,
    /// Report of the server, once complete.
    pub server: Option<EndReport>,
    /// Error that ended the connection.
    pub lost: Option<FlowError>,
}

impl Conversation {
    pub fn new(t0_ns: u64, specs: Vec<StreamSpec>, rtt_ns: u64) -> Self {
        let now = clock::monotonic_ns();
        Self {
            t0_ns,
            rtt_ns,
            last_message_ns: now,
            next_heartbeat_ns: now,
            stop_requested_ns: None,
            report_due_ns: u64::MAX,
            remote: LiveReading::default(),
            specs,
            report: String::new(),
            deflated: Vec::new(),
            report_ns: None,
            server: None,
            lost: None,
        }
    }

    /// Whether the user has requested a stop. The first call that sees it notifies the server.
    pub fn check_interrupt(&mut self, interrupted: &AtomicBool, tx: &mut Sender) -> bool {
        if self.stop_requested_ns.is_none() && interrupted.load(Ordering::Relaxed) {
            self.stop_requested_ns = Some(clock::monotonic_ns());
            self.queue_message(tx, &ToServer::Stop);
        }
        self.stop_requested_ns.is_some()
    }

    /// Whether the user has requested a stop.
    pub fn is_closing(&self) -> bool {
        self.stop_requested_ns.is_some()
    }

    /// Whether the user has requested a stop and the time for further messages from the server is over.
    pub fn has_close_timed_out(&self, now_ns: u64) -> bool {
        let Some(since_ns) = self.stop_requested_ns else { return false };
        let next_ns = self.last_message_ns.max(since_ns) + CLOSING_STEP_NS + 2 * self.rtt_ns;
        now_ns > next_ns.min(since_ns + CLOSING_NS + 2 * self.rtt_ns)
    }

    /// Starts waiting for the server's report, after the client has finished.
    pub fn await_report(&mut self) {
        self.report_due_ns = clock::monotonic_ns() + drain_ns(self.rtt_ns) + self.part_ns();
    }

    fn part_ns(&self) -> u64 {
        timeout_ns(REPORT_PART_NS, self.rtt_ns)
    }

    /// Records a timeout if `due_ns` has passed.
    pub fn check_timeout(&mut self, now_ns: u64, due_ns: u64, what: &'static str, limit_ns: u64) {
        if self.lost.is_none() && now_ns > due_ns {
            self.lost = Some(FlowError::Timeout { what, seconds: limit_ns / 1_000_000_000 });
        }
    }

    /// Queues a message without waiting until it is sent.
    pub fn queue_message(&mut self, tx: &mut Sender, message: &ToServer) {
        if self.lost.is_none() {
            self.lost = tx.queue(message).err();
        }
    }

    /// Handles one message, if one arrives within `patience`.
    pub fn listen(&mut self, tx: &mut Sender, rx: &mut Receiver, watch: &Watch, patience: Duration) {
        if self.lost.is_some() || self.server.is_some() {
            clock::sleep_until(clock::monotonic_ns() + patience.as_nanos() as u64);
            return;
        }
        match tx.flush().and_then(|()| rx.poll::<ToClient>(patience)) {
            Ok(None) => {}
            Ok(Some(message)) => {
                self.last_message_ns = clock::monotonic_ns();
                self.handle_message(message, watch);
            }
            Err(error) => self.lost = Some(error),
        }
        if self.report_due_ns < u64::MAX && self.server.is_none() {
            let now_ns = clock::monotonic_ns();
            let due_ns = if self.has_close_timed_out(now_ns) { 0 } else { self.report_due_ns };
            self.check_timeout(now_ns, due_ns, "the server's report", self.part_ns());
        }
    }

    /// Handles one message.
    fn handle_message(&mut self, message: ToClient, watch: &Watch) {
        match message {
            ToClient::Progress(live) => self.remote = live,
            ToClient::SenderDone(done) => watch.peer_sender_done(&done, self.t0_ns),
            ToClient::Report { text, last } => self.take_report_part(last, |this| {
                this.report.push_str(&text);
                Ok(())
            }),
            ToClient::Deflated { data, last } => self.take_report_part(last, |this| {
                this.deflated.extend(STANDARD_NO_PAD.decode(data).map_err(|error| error.to_string())?);
                if last {
                    this.report = inflate(&std::mem::take(&mut this.deflated), MAX_REPORT)?;
                }
                Ok(())
            }),
            ToClient::Error(entry) => self.lost = Some(refused(entry)),
            _ => {}
        }
    }
}

impl Conversation {
    /// Takes a part of the server's report, with `add`; reads the report after the last one.
    fn take_report_part(&mut self, last: bool, add: impl FnOnce(&mut Self) -> Result<(), String>) {
        self.report_due_ns = self.last_message_ns + self.part_ns();
        self.report_ns.get_or_insert(self.last_message_ns.saturating_sub(self.t0_ns));
        let mut read = add(self);
        if self.report.len() + self.deflated.len() > MAX_REPORT {
            read = Err("it is too large".to_owned());
        }
        let report = read.and_then(|()| {
            let text = last.then(|| std::mem::take(&mut self.report));
            text.map(|text| EndReport::parse_server_report(&text, &self.specs)).transpose()
        });
        match report {
            Ok(report) => self.server = report,
            Err(message) => self.lost = Some(FlowError::Protocol { during: "in the server's report", message }),
        }
    }
}

/// Returns the error for a refusal or an error that the server sent.
pub(super) fn refused(entry: ErrorEntry) -> FlowError {
    FlowError::Refused {
        code: printable(&entry.code, 40),
        message: printable(&entry.message, 400),
        advice: entry.advice.map(|text| printable(&text, 400)),
    }
}

/// Returns the server's own error, or a protocol error for an unexpected message.
pub(super) fn unexpected(during: &'static str, message: ToClient) -> FlowError {
    match message {
        ToClient::Refused(entry) | ToClient::Error(entry) => refused(entry),
        other => FlowError::Protocol {
            during,
            message: format!("unexpected message {}", printable(&format!("{other:?}"), 60)),
        },
    }
}
