//! What the two ends say to each other.

use landspeed_model::{ErrorEntry, HostSnapshot, Parameters};
use serde::{Deserialize, Serialize};

use super::changes::{ChangeAnswer, ChangeRequest};
use super::printable;
use super::third_party::{ThirdPartyEvent, ThirdPartyRequest};
use crate::end::LiveReading;

/// Largest message before a test is accepted, bytes: a stranger gets no more memory than this.
pub const MAX_GREETING: usize = 64 * 1024;
/// Largest message afterwards, bytes. Reports are cut into parts below this.
pub const MAX_MESSAGE: usize = 1 << 20;
/// Largest report, all parts together, bytes.
pub const MAX_REPORT: usize = 512 << 20;
/// Largest description of a host, all parts together, bytes: a thousand queues and interrupts are about one million.
pub const MAX_FACTS: usize = 16 << 20;
/// Largest capture that a client takes from a server, bytes.
pub const MAX_CAPTURE: u64 = 1 << 30;
/// Bytes of a capture in one part: encoded it is a third larger.
pub const CAPTURE_PART: usize = 192 * 1024;
/// Bytes of a report in one part.
pub const REPORT_PART: usize = 256 * 1024;

/// From client to server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ToServer {
    /// A test is wanted.
    Hello {
        /// Client's program version.
        version: String,
        /// What is wanted.
        parameters: Box<Parameters>,
    },
    /// The server's host is to be described, and nothing measured.
    Describe {
        /// Client's program version.
        version: String,
    },
    /// The server's host is to be changed while this connection lasts.
    Changes {
        /// Number, echoed.
        n: u32,
        /// What is wanted.
        request: ChangeRequest,
    },
    /// The server is to run a test, as client, against another server.
    ThirdParty {
        /// What is wanted.
        request: Box<ThirdPartyRequest>,
    },
    /// What time is it there?
    Ping {
        /// Number, echoed.
        n: u32,
    },
    /// Capture the test there too, and send the capture after the report. Between the acceptance and the start.
    Tap,
    /// All data connections are open: report when they have all arrived.
    Opened,
    /// Start at this moment of the server's monotonic clock, nanoseconds.
    Start {
        /// When.
        at_ns: u64,
    },
    /// A sending stream of the client is done; UDP receivers learn of tail loss from this.
    SenderDone(SenderDone),
    /// Stop sending now and report.
    Stop,
    /// Still here.
    Alive,
    /// Everything arrived; good-bye.
    Bye,
}

/// From server to client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ToClient {
    /// The test may go on.
    Accepted(Box<Accepted>),
    /// It may not.
    Refused(ErrorEntry),
    /// The server's monotonic clock, nanoseconds.
    Pong {
        /// Number of the ping.
        n: u32,
        /// When the answer was written.
        now_ns: u64,
    },
    /// The answer to [`ToServer::Changes`].
    Changes {
        /// Number of the request.
        n: u32,
        /// What was done.
        answer: ChangeAnswer,
    },
    /// How the test of [`ToServer::ThirdParty`] goes. Its result comes as reports.
    ThirdParty {
        /// What happened.
        event: ThirdPartyEvent,
    },
    /// The answer to [`ToServer::Tap`].
    Tapping {
        /// Why not, if not.
        refused: Option<String>,
    },
    /// A part of the server's capture, a pcapng file.
    Capture {
        /// The bytes, base64 without padding.
        data: String,
        /// Whether it is the last.
        last: bool,
        /// Why there is no more, if something went wrong.
        failed: Option<String>,
    },
    /// All data connections have arrived.
    Ready,
    /// The server's end so far, for interval lines only.
    Progress(LiveReading),
    /// A sending stream of the server is done.
    SenderDone(SenderDone),
    /// A part of a report, of the description of the server's host, or of a third-party test's result, JSON text.
    Report {
        /// The text of this part.
        text: String,
        /// Whether it is the last.
        last: bool,
    },
    /// Something went wrong at the server.
    Error(ErrorEntry),
}

/// What a client learns when its test is accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Accepted {
    /// Identifier of the test.
    pub id: String,
    /// Token of its data connections, hex.
    pub token: String,
    /// Server's program version.
    pub version: String,
    /// What will be in force.
    pub parameters: Parameters,
    /// Where they differ from what was asked for, and why.
    pub notes: Vec<String>,
    /// The server's host.
    pub host: HostSnapshot,
}

impl Accepted {
    /// Its words as they may be shown and kept: what a server says reaches terminals.
    pub(crate) fn printable(self) -> Self {
        Self {
            id: printable(&self.id, 64),
            version: printable(&self.version, 64),
            notes: self.notes.iter().take(64).map(|note| printable(note, 400)).collect(),
            ..self
        }
    }
}

/// The last word of a sending stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderDone {
    /// Stream number.
    pub stream: u32,
    /// Payload bytes handed to the kernel.
    pub bytes: u64,
    /// Datagrams accepted by the kernel.
    pub packets: u64,
    /// When its last write returned, nanoseconds after the agreed start.
    pub stopped_ns: u64,
}

/// Cuts a report, or a host's facts, into messages.
pub fn report_parts(report: &impl Serialize) -> serde_json::Result<Vec<ToClient>> {
    let text = serde_json::to_string(report)?;
    let mut parts = Vec::new();
    let mut rest = text.as_str();
    loop {
        let mut cut = rest.len().min(REPORT_PART);
        while !rest.is_char_boundary(cut) {
            cut -= 1;
        }
        let (part, tail) = rest.split_at(cut);
        parts.push(ToClient::Report { text: part.to_owned(), last: tail.is_empty() });
        if tail.is_empty() {
            return Ok(parts);
        }
        rest = tail;
    }
}
