//! Options of the connection to a server, for commands that run a series of tests.

use std::path::PathBuf;

use landspeed_flow::control::channel::Key;
use landspeed_model::Family;

use crate::options;
use crate::trust::TrustArgs;

/// Address family, local address and key.
#[derive(Debug, clap::Args)]
pub struct ConnectionArgs {
    /// IPv4 only
    #[arg(short = '4', long, conflicts_with = "v6", help_heading = "Network")]
    v4: bool,
    /// IPv6 only
    #[arg(short = '6', long, help_heading = "Network")]
    v6: bool,
    /// Local address to send from
    #[arg(short = 'B', long, value_name = "ADDRESS", help_heading = "Network")]
    pub bind: Option<String>,
    /// File with the pre-shared key of the server
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    pub key_file: Option<PathBuf>,
    #[command(flatten)]
    pub trust: TrustArgs,
}

impl ConnectionArgs {
    /// Returns the address family that the options allow.
    pub fn family(&self) -> Family {
        family(self.v4, self.v6)
    }

    /// Reads the key file, if one is given.
    ///
    /// # Errors
    /// If it cannot be read, is readable by others, or holds no key.
    pub fn key(&self) -> anyhow::Result<Option<Key>> {
        self.key_file.as_deref().map(|path| options::key(path, self.trust.policy())).transpose()
    }
}

/// Returns the address family that `-4` and `-6` select.
pub fn family(v4: bool, v6: bool) -> Family {
    match (v4, v6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    }
}
