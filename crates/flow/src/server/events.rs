//! What a server reports of its life, and how it describes tests.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use landspeed_model::{Direction, Parameters, Protocol};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::end::EndReport;

/// What a server says of its life.
#[derive(Debug, Clone)]
pub enum ServerEvent {
    /// It listens.
    Listening {
        /// What it speaks there.
        protocol: &'static str,
        /// Where.
        addr: SocketAddr,
    },
    /// It does not, though it might have.
    NotListening {
        /// What it would have spoken.
        protocol: &'static str,
        /// Where it would have.
        addr: SocketAddr,
        /// Why not.
        why: String,
    },
    /// A test was accepted.
    TestStarted {
        /// Its identifier.
        id: String,
        /// Its client.
        peer: SocketAddr,
        /// In words.
        what: String,
    },
    /// A client was sent what this host is.
    Described {
        /// Who asked.
        peer: SocketAddr,
    },
    /// A client changed a setting of this host, or its changes were rolled back.
    HostChanged {
        /// The client.
        peer: SocketAddr,
        /// In words.
        what: String,
    },
    /// A test is over.
    TestEnded {
        /// Its identifier.
        id: String,
        /// How.
        outcome: String,
    },
    /// A client was turned away.
    Refused {
        /// The client.
        peer: SocketAddr,
        /// Why.
        why: String,
    },
}

/// Counts of a server, for its log and its tests.
#[derive(Debug, Default)]
pub struct ServerCounts {
    /// Tests running, and the client that may change the host.
    pub running: AtomicUsize,
    /// Tests completed.
    pub completed: AtomicU64,
    /// Connections dropped for a bad or late preface.
    pub dropped: AtomicU64,
}

/// What a test moved, in words: `complete: received 1.17 GiB at 9.41 Gb/s in 10.0 s`.
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

/// A test in a few words.
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
