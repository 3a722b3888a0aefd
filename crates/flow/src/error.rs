//! Errors of the traffic engine, each with advice for the user.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_model::ErrorEntry;

/// An error of the traffic engine.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// The name does not resolve.
    #[error("cannot resolve {host}: {source}")]
    Resolve {
        /// Host name as given.
        host: String,
        /// Error of the resolver.
        source: io::Error,
    },
    /// The name has no address of the requested family.
    #[error("{host} has no {family} address")]
    NoAddress {
        /// Host name as given.
        host: String,
        /// `IPv4` or `IPv6`.
        family: &'static str,
    },
    /// The TCP connection failed.
    #[error("cannot connect to {addr}: {source}")]
    Connect {
        /// Address of the server.
        addr: SocketAddr,
        /// Error of `connect`.
        source: io::Error,
    },
    /// A local resource could not be set up as requested.
    #[error("cannot {what}: {source}")]
    Setup {
        /// Operation and object, as in "run on core 3".
        what: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// The congestion control is not available in the kernel, or not permitted for this user.
    #[error("cannot use congestion control {name}: {source}")]
    Congestion {
        /// Name of the congestion control.
        name: String,
        /// Error of `setsockopt`.
        source: io::Error,
    },
    /// The server has a different protocol version.
    #[error("the server speaks protocol {theirs}, this client speaks {ours}")]
    Version {
        /// Protocol version of this host.
        ours: u16,
        /// Protocol version of the server.
        theirs: u16,
    },
    /// The peer is not a landspeed server.
    #[error("{addr} is not a landspeed server")]
    NotLandspeed {
        /// Address of the peer.
        addr: SocketAddr,
        /// Whether it answers like an iperf3 server.
        iperf3: bool,
    },
    /// Error of a protocol built on this crate.
    #[error("{message}")]
    Other {
        /// Stable code for documents.
        code: &'static str,
        /// Message for the user.
        message: String,
        /// Advice for the user.
        advice: &'static str,
    },
    /// The server requires a key.
    #[error("the server requires a pre-shared key")]
    KeyRequired,
    /// The server has no key, but the client offered one.
    #[error("the server has no pre-shared key and cannot be authenticated")]
    KeyUnexpected,
    /// Client and server have different keys.
    #[error("the pre-shared keys do not match")]
    WrongKey,
    /// The test has a key, and the peer of a data socket did not prove that it has the stream's secret.
    #[error("cannot authenticate the data socket to {addr}: its other end does not have the key")]
    UnauthenticatedServer {
        /// Address of the peer.
        addr: SocketAddr,
    },
    /// No answer while opening a UDP flow.
    #[error("cannot open a UDP flow to {addr}: no answer within {seconds} s")]
    UdpUnanswered {
        /// Address of the server.
        addr: SocketAddr,
        /// Timeout, seconds.
        seconds: u64,
    },
    /// The server refused the request.
    #[error("the server refused: {message}")]
    Refused {
        /// Stable code for documents.
        code: String,
        /// Reason given by the server.
        message: String,
        /// Advice given by the server.
        advice: Option<String>,
    },
    /// A step did not complete in time.
    #[error("no answer: {what} took longer than {seconds} s")]
    Timeout {
        /// Event that was expected.
        what: &'static str,
        /// Timeout, seconds.
        seconds: u64,
    },
    /// No packet arrives from the peer's host, and the test has reached its end.
    #[error("the path is down: no packet from the peer for {seconds} s")]
    PathDown {
        /// Time since the last packet, seconds.
        seconds: u64,
    },
    /// The connection to the peer was lost.
    #[error("lost the connection to the peer {during}: {source}")]
    PeerLost {
        /// Operation in progress.
        during: &'static str,
        /// Error of the socket.
        source: io::Error,
    },
    /// The peer violated the protocol.
    #[error("protocol error {during}: {message}")]
    Protocol {
        /// Operation in progress.
        during: &'static str,
        /// Description of the violation.
        message: String,
    },
    /// The user interrupted the test.
    #[error("interrupted")]
    Interrupted,
}

/// Default port of `iperf3 -s`.
const IPERF3_PORT: u16 = 5201;
const EPROTONOSUPPORT: i32 = 93;

impl FlowError {
    /// Returns `Interrupted` if `stop` is set, otherwise `error`.
    pub fn or_interrupted(stop: &AtomicBool, error: Self) -> Self {
        if stop.load(Ordering::Relaxed) { Self::Interrupted } else { error }
    }

    /// Error of a server without a free slot for the client.
    pub(crate) fn busy() -> Self {
        Self::Refused {
            code: "server-busy".to_owned(),
            message: "it is busy".to_owned(),
            advice: Some("try again in a moment".to_owned()),
        }
    }

    /// Error of a test that exceeds its server's rate limits.
    pub(crate) fn rate_exceeded() -> Self {
        Self::Refused {
            code: "rate-exceeded".to_owned(),
            message: "the test moved more than this server's --max-rate or --max-total-rate allows".to_owned(),
            advice: Some("lower --rate, or use less or smaller requests".to_owned()),
        }
    }

    /// Returns the stable error code used in documents.
    pub fn code(&self) -> &str {
        match self {
            Self::Resolve { .. } => "unknown-host",
            Self::NoAddress { .. } => "no-address",
            Self::Connect { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused => "connection-refused",
            Self::Connect { .. } => "connect-failed",
            Self::Setup { .. } | Self::Congestion { .. } => "socket-setup",
            Self::Version { .. } => "version-mismatch",
            Self::NotLandspeed { .. } => "not-landspeed",
            Self::Other { code, .. } => code,
            Self::KeyRequired => "key-required",
            Self::KeyUnexpected => "key-unexpected",
            Self::WrongKey => "wrong-key",
            Self::UnauthenticatedServer { .. } => "unproved-server",
            Self::Refused { code, .. } => code,
            Self::UdpUnanswered { .. } | Self::Timeout { .. } => "timeout",
            Self::PathDown { .. } => "path-down",
            Self::PeerLost { .. } => "peer-lost",
            Self::Protocol { .. } => "protocol",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns advice for the user, if there is any.
    pub fn advice(&self) -> Option<String> {
        let text = match self {
            Self::Resolve { .. } => "check the spelling, or give an address",
            Self::NoAddress { .. } => "drop -4/-6, or give an address of that family",
            Self::Connect { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused => {
                "run `landspeed serve` on that host, or give its port as HOST:PORT; for an iperf3 server, add --iperf3"
            }
            Self::Connect { addr: SocketAddr::V6(v6), source }
                if v6.ip().is_unicast_link_local() && source.kind() == io::ErrorKind::InvalidInput =>
            {
                "add the interface to the link-local address: [fe80::1%eth0]:5210"
            }
            Self::Connect { .. } => "check that the host is up and that firewalls pass TCP and UDP of this port",
            Self::Setup { what, source } => return setup_advice(what, source).map(str::to_owned),
            Self::Congestion { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "run as root, or allow it in net.ipv4.tcp_allowed_congestion_control"
            }
            Self::Congestion { .. } => {
                "load it with `modprobe tcp_NAME`, or choose one of net.ipv4.tcp_available_congestion_control"
            }
            Self::Protocol { .. } | Self::Interrupted => return None,
            Self::Version { ours, theirs } if theirs > ours => "update landspeed on this host",
            Self::Version { .. } => "update landspeed on the server",
            Self::NotLandspeed { iperf3: true, .. } => {
                "it answers like an iperf3 server: add --iperf3, or name the port of `landspeed serve`, 5210"
            }
            Self::NotLandspeed { addr, .. } if addr.port() == IPERF3_PORT => {
                "5201 is iperf3's port: add --iperf3 to test against an iperf3 server, or name landspeed's port, 5210"
            }
            Self::NotLandspeed { .. } => "check the port: another service listens there",
            Self::Other { advice, .. } => advice,
            Self::KeyRequired => "pass --key-file with the server's key",
            Self::KeyUnexpected => "drop --key-file, or start the server with it",
            Self::WrongKey => "use the same key file at both ends",
            Self::UnauthenticatedServer { .. } => {
                "look for a proxy, a NAT rule or another host that answers on that address and port"
            }
            Self::UdpUnanswered { .. } => {
                "check that firewalls pass UDP of this port, and that UDP leaves from the address of the control \
                 connection (--bind sets it); else start the server with --data-from-anywhere, or use a key"
            }
            Self::Refused { advice, .. } => return advice.clone(),
            Self::Timeout { .. } => "check the path for loss, and that firewalls pass TCP and UDP of this port",
            Self::PathDown { .. } => {
                "check links, routes and packet filters on both hosts and the path; the document has what was measured until then"
            }
            Self::PeerLost { .. } => {
                "check that the other end still runs; the document has what was measured until then"
            }
        };
        Some(text.to_owned())
    }

    /// Returns the entry for a document's `errors`.
    pub fn entry(&self) -> ErrorEntry {
        ErrorEntry { code: self.code().to_owned(), message: self.to_string(), advice: self.advice() }
    }
}

/// Returns advice for a failed set-up.
fn setup_advice(what: &str, source: &io::Error) -> Option<&'static str> {
    Some(match (source.kind(), source.raw_os_error()) {
        (io::ErrorKind::AddrNotAvailable, _) => "give an address of this host: `ip address` lists them",
        (io::ErrorKind::AddrInUse, _) => "choose another port with `--listen`: a server runs on this one",
        (io::ErrorKind::PermissionDenied, _) if what.starts_with("listen") => {
            "choose another port with `--listen`, or run as root: ports below 1024 need privilege"
        }
        (_, Some(EPROTONOSUPPORT)) if what.contains("multipath") => {
            "drop --mptcp: this kernel has no multipath TCP, or net.mptcp.enabled is 0"
        }
        _ => return None,
    })
}
