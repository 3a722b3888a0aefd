//! Parameters of a test against iperf3 in addition to those of any test.

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
    /// Local port of the first data connection; further connections use the following ports.
    pub local_port: Option<u16>,
    /// Whether to request a test of unlimited time, which the client ends.
    pub unlimited_time: bool,
    /// Report interval, nanoseconds ([`RunEvent::Readings`](landspeed_flow::client::RunEvent::Readings)).
    pub report_ns: Option<u64>,
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
