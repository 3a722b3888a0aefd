//! Messages on the control connection.

use std::io::{self, Read as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use landspeed_model::{ErrorEntry, HostSnapshot, Parameters};
use serde::{Deserialize, Serialize};

use super::changes::{ChangeAnswer, ChangeRequest};
use super::third_party::{ThirdPartyEvent, ThirdPartyRequest};
use super::{identifier, printable, printable_copy};
use crate::progress::{LiveReading, SenderDone};

/// Largest message before a test is accepted, bytes: limits the memory an unauthenticated client can use.
pub const MAX_EARLY_MESSAGE: usize = 64 * 1024;
/// Largest message after the acceptance, bytes. Reports are split into smaller parts.
pub const MAX_MESSAGE: usize = 1 << 20;
/// Largest report over all parts, bytes.
pub const MAX_REPORT: usize = 512 << 20;
/// Largest description of a host over all parts, bytes: a thousand queues and interrupts take about one
/// million.
pub const MAX_FACTS: usize = 16 << 20;
/// Largest capture that a client accepts from a server, bytes.
pub const MAX_CAPTURE: u64 = 1 << 30;
/// Bytes of a capture in one part; base64 makes them a third larger.
pub const CAPTURE_PART_BYTES: usize = 192 * 1024;
/// Bytes of a report's text, or of its compressed form, in one part.
pub const REPORT_PART_BYTES: usize = 256 * 1024;

/// Messages from client to server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ToServer {
    /// Request for a test.
    Hello {
        /// Client's program version.
        version: String,
        /// Requested parameters.
        parameters: Box<Parameters>,
        /// Whether the client understands [`ToClient::Queued`]; otherwise a busy server refuses it.
        #[serde(default)]
        queue: bool,
        /// Whether the client understands [`ToClient::Deflated`]: a report takes fewer round trips.
        #[serde(default)]
        deflate: bool,
    },
    /// Request for the facts of the server's host, without a test.
    Describe {
        /// Client's program version.
        version: String,
    },
    /// Request to change the server's host while this connection lasts.
    Changes {
        /// Request number, repeated in the answer.
        n: u32,
        /// Requested operation.
        request: ChangeRequest,
    },
    /// Request to run a test, as client, against another server.
    ThirdParty {
        /// Target server and parameters.
        request: Box<ThirdPartyRequest>,
    },
    /// Request for the server's clock.
    Ping {
        /// Ping number, repeated in the answer.
        n: u32,
    },
    /// Request to capture the test on the server too, and to send the capture after the report. Sent between
    /// acceptance and start.
    Tap,
    /// All data connections are open; the server answers [`ToClient::Ready`] when it has them all.
    Opened,
    /// All data connections are ready; the test starts at this time.
    Start {
        /// Start time on the server's monotonic clock, nanoseconds.
        at_ns: u64,
        /// Time from the sending of this message to the start, nanoseconds: limits the effect of a wrong clock offset.
        #[serde(default)]
        lead_ns: Option<u64>,
    },
    /// A sending stream of the client is done; UDP receivers detect tail loss from this.
    SenderDone(SenderDone),
    /// Stop sending and report.
    Stop,
    /// Heartbeat: the client still runs.
    Alive,
    /// The client has received everything and closes.
    Bye,
}

/// Messages from server to client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ToClient {
    /// The test is accepted.
    Accepted(Box<Accepted>),
    /// The server is busy: the client waits. Sent every second.
    Queued {
        /// Position in the queue; 1 is next.
        position: u32,
        /// Number of waiting clients.
        waiting: u32,
        /// Estimated time until the test starts, nanoseconds; `None` if unknown.
        wait_ns: Option<u64>,
    },
    /// The request is refused.
    Refused(ErrorEntry),
    /// Answer to [`ToServer::Ping`].
    Pong {
        /// Number of the ping it answers.
        n: u32,
        /// Server's monotonic time when the answer was sent, nanoseconds.
        now_ns: u64,
    },
    /// The answer to [`ToServer::Changes`].
    Changes {
        /// Number of the request it answers.
        n: u32,
        /// Outcome of the request.
        answer: ChangeAnswer,
    },
    /// Progress of the test of [`ToServer::ThirdParty`]. Its result follows as [`ToClient::Report`] messages.
    ThirdParty {
        /// Event of the test.
        event: ThirdPartyEvent,
    },
    /// The answer to [`ToServer::Tap`].
    Tapping {
        /// Reason why there will be no capture; `None` if the server captures.
        refused: Option<String>,
    },
    /// A part of the server's capture, a pcapng file.
    Capture {
        /// Bytes of the file, base64 without padding.
        data: String,
        /// Whether this is the last part.
        last: bool,
        /// Reason why the capture is incomplete.
        failed: Option<String>,
    },
    /// The server has all data connections.
    Ready,
    /// Live reading of the server, for interval output only.
    Progress(LiveReading),
    /// A sending stream of the server is done.
    SenderDone(SenderDone),
    /// Part of a report, of the description of the server's host, or of a third-party test's result, as JSON text.
    Report {
        /// Text of this part; all parts concatenated are one JSON document.
        text: String,
        /// Whether this is the last part.
        last: bool,
    },
    /// Part of a compressed report, to clients that understand it.
    Deflated {
        /// Bytes of this part, base64 without padding; all parts concatenated are one JSON document, deflated (RFC 1951).
        data: String,
        /// Whether this is the last part.
        last: bool,
    },
    /// Error on the server.
    Error(ErrorEntry),
}

/// Parameters and identifiers of an accepted test.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Accepted {
    /// Identifier of the test.
    pub id: String,
    /// Token of its data connections, hex.
    pub token: String,
    /// Server's program version.
    pub version: String,
    /// Effective parameters.
    pub parameters: Parameters,
    /// Differences from the requested parameters, with reasons.
    pub notes: Vec<String>,
    /// Snapshot of the server's host.
    pub host: HostSnapshot,
}

impl Accepted {
    /// Returns the acceptance with its strings made printable: they reach terminals and documents.
    pub(crate) fn printable(self) -> Self {
        Self {
            id: identifier(&self.id),
            version: printable(&self.version, 64),
            notes: self.notes.iter().take(64).map(|note| printable(note, 400)).collect(),
            host: printable_copy(&self.host).unwrap_or_default(),
            ..self
        }
    }
}

/// Splits a report, or a host's facts, into messages.
pub fn report_parts(report: &impl Serialize) -> serde_json::Result<Vec<ToClient>> {
    let text = serde_json::to_string(report)?;
    let mut parts = Vec::new();
    let mut rest = text.as_str();
    loop {
        let mut cut = rest.len().min(REPORT_PART_BYTES);
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

/// As [`report_parts`], compressed.
pub fn deflated_parts(report: &impl Serialize) -> io::Result<Vec<ToClient>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    serde_json::to_writer(&mut encoder, report)?;
    let bytes = encoder.finish()?;
    let parts: Vec<&[u8]> = bytes.chunks(REPORT_PART_BYTES).collect();
    let message = |(at, part): (usize, &&[u8])| ToClient::Deflated {
        data: STANDARD_NO_PAD.encode(part),
        last: at + 1 == parts.len(),
    };
    Ok(parts.iter().enumerate().map(message).collect())
}

/// Decompresses a report of at most `most` bytes.
///
/// # Errors
/// It is damaged, longer, or no text.
pub fn inflate(bytes: &[u8], most: usize) -> Result<String, String> {
    let mut text = String::new();
    let read = DeflateDecoder::new(bytes).take(most as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| format!("it is damaged: {error}"))?;
    if text.len() > most { Err(format!("it is longer than {most} bytes")) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_reports_are_limited_when_decompressed() {
        let report = vec![" ".repeat(1000); 1000];
        let mut bytes = Vec::new();
        let parts = deflated_parts(&report).unwrap();
        for (at, part) in parts.iter().enumerate() {
            let ToClient::Deflated { data, last } = part else { panic!("{part:?}") };
            assert_eq!(*last, at + 1 == parts.len());
            bytes.extend(STANDARD_NO_PAD.decode(data).unwrap());
        }
        let text = serde_json::to_string(&report).unwrap();
        assert!(bytes.len() < text.len() / 50, "{}", bytes.len());
        assert_eq!(inflate(&bytes, text.len()).as_ref(), Ok(&text));
        assert!(inflate(&bytes, text.len() - 1).is_err());
        assert!(inflate(&bytes[..bytes.len() / 2], text.len()).is_err(), "a part is missing");
    }

    #[test]
    fn an_acceptance_has_no_paths_or_line_breaks() {
        let evil = || "../x\n\u{1b}[2J".to_owned();
        let accepted = Accepted {
            id: evil(),
            token: String::new(),
            version: evil(),
            parameters: Parameters::default(),
            notes: vec![evil()],
            host: HostSnapshot { hostname: evil(), ..HostSnapshot::default() },
        };
        let accepted = accepted.printable();
        assert_eq!(accepted.id, "x2J");
        for text in [&accepted.version, &accepted.notes[0], &accepted.host.hostname] {
            assert!(!text.contains(char::is_control) && text.contains("\\n"), "{text:?}");
        }
    }
}
