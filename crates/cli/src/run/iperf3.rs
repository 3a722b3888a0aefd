//! Options of `run --iperf3`.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use landspeed_iperf3::auth::{KeyError, PublicKey};
use landspeed_iperf3::{Credentials, Extras};
use landspeed_model::ErrorEntry;
use landspeed_sys::trust::{Policy, TrustError};

use super::RemoteEnd;

/// Options of `run --iperf3`. Names and meaning are iperf3's.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(id = "iperf3-options")]
pub struct Args {
    /// Get the server's output into the document
    #[arg(long, alias = "get-server-output", help_heading = "iperf3", requires = "iperf3")]
    server_output: bool,
    /// User name, for servers with users; the password is read from IPERF3_PASSWORD or the terminal
    #[arg(long, value_name = "NAME", help_heading = "iperf3", requires_all = ["iperf3", "rsa_public_key_path"])]
    username: Option<String>,
    /// The server's public key (PEM)
    #[arg(long, value_name = "FILE", help_heading = "iperf3", requires = "username")]
    rsa_public_key_path: Option<PathBuf>,
    /// Use PKCS#1 padding, as iperf3 before 3.17 does
    #[arg(long, help_heading = "iperf3", requires = "username")]
    use_pkcs1_padding: bool,
    /// Number UDP datagrams with 32 bits, for servers before 3.1
    #[arg(long, help_heading = "iperf3", requires = "iperf3")]
    udp_counters_32bit: bool,
}

impl Args {
    /// Returns the remote side of the test, with credentials if the server needs them.
    ///
    /// # Errors
    /// The public key or the password cannot be read.
    pub fn remote_end(&self, iperf3: bool, policy: Policy) -> Result<RemoteEnd, ErrorEntry> {
        if !iperf3 {
            return Ok(RemoteEnd::Landspeed);
        }
        let entry = |message| ErrorEntry { code: "bad-credentials".to_owned(), message, advice: None };
        let credentials = match (&self.username, &self.rsa_public_key_path) {
            (Some(user), Some(path)) => Some(Credentials {
                user: user.clone(),
                key: PublicKey::open(path, policy).map_err(|error| match error {
                    KeyError::File(TrustError::Untrusted(why)) => {
                        ErrorEntry { advice: Some(why.advice()), ..entry(why.cause()) }
                    }
                    other => entry(other.to_string()),
                })?,
                password: password(user).map_err(entry)?,
                pkcs1: self.use_pkcs1_padding,
            }),
            _ => None,
        };
        Ok(RemoteEnd::Iperf3(Extras {
            credentials,
            server_output: self.server_output,
            narrow_counters: self.udp_counters_32bit,
            ..Extras::default()
        }))
    }
}

/// Reads the password from IPERF3_PASSWORD, or from the terminal without echo.
///
/// # Errors
/// The variable is not set and there is no terminal.
pub fn password(user: &str) -> Result<String, String> {
    if let Ok(password) = std::env::var("IPERF3_PASSWORD") {
        return Ok(password);
    }
    if !std::io::stdin().is_terminal() {
        return Err("no password: set IPERF3_PASSWORD".to_owned());
    }
    err!("Password of {user}: ");
    rpassword::read_password().map_err(|error| format!("cannot read the password: {error}"))
}
