//! Parameters of a test against iperf3 in addition to those of any test.

use std::net::TcpStream;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use crate::auth::PublicKey;

/// Options that exist only in tests against iperf3.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// Credentials of the user, if the server requires authorization.
    pub credentials: Option<Credentials>,
    /// Whether the server returns its output (`--get-server-output`).
    pub server_output: bool,
    /// Whether UDP datagrams have 32-bit numbers, which servers before 3.1 need.
    pub narrow_counters: bool,
    /// Whether to request a test of unlimited time, which the client ends.
    pub unlimited_time: bool,
    /// Keepalive of the control connection; `None` for the kernel's default, which is none.
    pub keep_alive: Option<KeepAlive>,
    /// Whether to ask the server for UDP segmentation and receive offload (`--gsro`).
    pub offloads: bool,
    /// Report interval, nanoseconds ([`RunEvent::Readings`](landspeed_flow::client::RunEvent::Readings)).
    pub report_ns: Option<u64>,
}

/// TCP keepalive of a control connection (`--cntl-ka`). What is `None` is the kernel's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeepAlive {
    /// Time without data before the first probe, seconds.
    pub idle_s: Option<u32>,
    /// Time between probes, seconds.
    pub interval_s: Option<u32>,
    /// Unanswered probes after which the connection is lost.
    pub probes: Option<u32>,
}

impl KeepAlive {
    /// Enables it on a connection.
    pub fn apply(self, stream: &TcpStream) {
        let seconds = |s: u32| Duration::from_secs(u64::from(s));
        let keepalive = TcpKeepalive::new();
        let keepalive = self.idle_s.map_or(keepalive.clone(), |s| keepalive.with_time(seconds(s)));
        let keepalive = self.interval_s.map_or(keepalive.clone(), |s| keepalive.with_interval(seconds(s)));
        let keepalive = self.probes.map_or(keepalive.clone(), |probes| keepalive.with_retries(probes));
        let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
    }
}

/// Credentials of a user of an iperf3 server.
#[derive(Clone)]
pub struct Credentials {
    /// As in the server's file of authorized users.
    pub user: String,
    /// Password, sent encrypted with `key`.
    pub password: String,
    /// The server's public key.
    pub key: PublicKey,
    /// Whether to use PKCS#1 padding, which servers before 3.17 need.
    pub pkcs1: bool,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({}, …)", self.user)
    }
}
