//! Events of a server, and one-line descriptions of tests.

use std::net::SocketAddr;

use landspeed_model::{Direction, Parameters, Protocol};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::end::EndReport;

/// Events reported by a server.
#[derive(Debug, Clone)]
pub enum ServerEvent {
    /// The server listens on an address.
    Listening {
        /// Name of the protocol.
        protocol: &'static str,
        /// Address and port of the listening socket.
        addr: SocketAddr,
    },
    /// An optional address could not be used.
    NotListening {
        /// Name of the protocol.
        protocol: &'static str,
        /// Address that could not be used.
        addr: SocketAddr,
        /// Error, for the log.
        why: String,
    },
    /// A test was accepted.
    TestStarted {
        /// Identifier of the test.
        id: String,
        /// Address of its client.
        peer: SocketAddr,
        /// Description of the test.
        what: String,
    },
    /// The facts of this host were sent to a client.
    Described {
        /// Address of the client.
        peer: SocketAddr,
    },
    /// A client changed a setting of this host, or its changes were rolled back.
    HostChanged {
        /// Address of the client.
        peer: SocketAddr,
        /// Description of the change.
        what: String,
    },
    /// A test is over.
    TestEnded {
        /// Identifier of the test.
        id: String,
        /// Address of its client.
        peer: SocketAddr,
        /// Description of the outcome.
        outcome: String,
    },
    /// A client was refused.
    Refused {
        /// Address of the client.
        peer: SocketAddr,
        /// Reason, for the log.
        why: String,
    },
    /// Events that were not reported because clients caused too many.
    LeftOut {
        /// Number of events.
        events: u64,
        /// Client of the last one.
        last_peer: SocketAddr,
        /// Whether they were [`Self::HostChanged`]; otherwise none of them was.
        host_changes: bool,
    },
}

impl ServerEvent {
    /// Returns the client that caused the event; `None` for events of the server itself.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::Listening { .. } | Self::NotListening { .. } | Self::LeftOut { .. } => None,
            Self::TestStarted { peer, .. }
            | Self::Described { peer }
            | Self::HostChanged { peer, .. }
            | Self::TestEnded { peer, .. }
            | Self::Refused { peer, .. } => Some(*peer),
        }
    }

    /// Returns the text that may contain words of a client.
    pub(super) fn text_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Listening { .. } | Self::Described { .. } | Self::LeftOut { .. } => None,
            Self::TestStarted { what: text, .. }
            | Self::HostChanged { what: text, .. }
            | Self::TestEnded { outcome: text, .. }
            | Self::NotListening { why: text, .. }
            | Self::Refused { why: text, .. } => Some(text),
        }
    }
}

/// Describes the outcome of a test: `complete: received 1.17 GiB at 9.41 Gb/s in 10.0 s`.
pub fn describe_outcome(report: &EndReport, answered: u64) -> String {
    let (sent, received) = report.streams.iter().fold((0, 0), |(s, r), stream| {
        if stream.sends { (s + stream.end.bytes, r) } else { (s, r + stream.end.bytes) }
    });
    let time = Nanos::new(report.cuts.steady_end_ns.unwrap_or(0));
    let mut parts = Vec::new();
    for (what, bytes) in [("received", Bytes::new(received)), ("sent", Bytes::new(sent))] {
        if bytes > Bytes::ZERO {
            let rate = BitRate::mean(bytes, time).map(|rate| format!(" at {rate}")).unwrap_or_default();
            parts.push(format!("{what} {bytes}{rate}"));
        }
    }
    if answered > 0 {
        parts.push(format!("answered {answered} requests"));
    }
    if parts.is_empty() {
        parts.push("no data".to_owned());
    }
    format!("complete: {} in {time}", parts.join(", "))
}

/// Describes the parameters of a test in a few words.
pub fn describe_test(p: &Parameters) -> String {
    let kind = match p.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::TcpRr => "TCP request/response",
        Protocol::UdpRr => "UDP request/response",
    };
    let direction = match p.direction {
        Direction::Upload => "upload",
        Direction::Download => "download",
        Direction::Both => "both directions",
    };
    let direction = if p.rr.is_some() { String::new() } else { format!(", {direction}") };
    format!("{kind}, {} stream{}{direction}", p.streams, if p.streams == 1 { "" } else { "s" })
}
