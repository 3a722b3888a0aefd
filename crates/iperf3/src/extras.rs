//! What a test against iperf3 may have beyond the parameters of any test.

use crate::auth::PublicKey;

/// Options that only iperf3 has.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// Who is asking, where the server wants to know.
    pub credentials: Option<Credentials>,
    /// Have the server send what it prints.
    pub server_output: bool,
    /// Number UDP datagrams with 32 bits, which servers before 3.1 need.
    pub narrow_counters: bool,
    /// Local port of the first data connection; the others take the next ones.
    pub local_port: Option<u16>,
    /// Ask the server for a test of unlimited time: the client ends it.
    pub endless: bool,
    /// Interval of the client's readings, nanoseconds ([`RunEvent::Readings`](landspeed_flow::client::RunEvent::Readings)).
    pub report_ns: Option<u64>,
}

/// A user of an iperf3 server.
#[derive(Clone)]
pub struct Credentials {
    /// Name.
    pub user: String,
    /// Password.
    pub password: String,
    /// The server's public key.
    pub key: PublicKey,
    /// Use PKCS#1 padding, which servers before 3.17 need.
    pub pkcs1: bool,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({}, …)", self.user)
    }
}
