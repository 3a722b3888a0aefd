//! `--insecure-permissions`: without it, files that other users can read or write are refused; with it, a
//! warning is printed.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use landspeed_sys::trust::{Policy, Untrusted};

/// The option, for commands that read keys, users, configurations or journals.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct TrustArgs {
    /// Use keys, configurations and state directories that other users own or can write to (keys: read); prints a warning
    #[arg(long)]
    pub insecure_permissions: bool,
}

impl TrustArgs {
    /// Returns the policy for such files.
    pub fn policy(self) -> Policy {
        if self.insecure_permissions { Policy::Report(warn) } else { Policy::Refuse }
    }
}

/// Prints each warning once, even if the file is opened several times.
fn warn(untrusted: &Untrusted) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let cause = untrusted.cause();
    let fault = cause.strip_prefix("cannot use ").unwrap_or(&cause).to_owned();
    if PRINTED.lock().unwrap_or_else(PoisonError::into_inner).insert(fault.clone()) {
        errln!("landspeed: warning: used in spite of its permissions: {fault}");
    }
}
