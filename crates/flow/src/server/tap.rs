//! A capture at the server's end of a test. How packets are captured is not this crate's business: whoever sets up the
//! server gives it something that can.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use landspeed_sys::clock;

use crate::control::channel::Sender;
use crate::control::message::{CAPTURE_PART, ToClient};
use crate::error::FlowError;

/// How long a capture may take to leave, nanoseconds.
const LEAVE_NS: u64 = 600_000_000_000;

/// What can capture.
pub trait Tapper: Send + Sync {
    /// Begins to capture what passes between two addresses, the near one's port included; takes packets when it returns.
    /// The error says why not, in words for the client.
    fn begin(&self, local: SocketAddr, peer: SocketAddr) -> Result<Box<dyn RunningTap>, String>;
}

/// A capture that is being taken. Dropping it ends it and leaves nothing behind.
pub trait RunningTap: Send {
    /// Ends it; what it took can then be read.
    fn finish(self: Box<Self>) -> Result<Box<dyn Read>, String>;
}

/// The tapper of a server's set-up.
#[derive(Clone)]
pub struct TapHook(pub Arc<dyn Tapper>);

impl std::fmt::Debug for TapHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TapHook")
    }
}

/// Begins a capture for a client that asked for one, and tells it.
pub(super) fn begin(
    hook: Option<&TapHook>,
    local: SocketAddr,
    peer: SocketAddr,
    tx: &mut Sender,
) -> Result<Option<Box<dyn RunningTap>>, FlowError> {
    let begun = match hook {
        None => Err("it does not capture for clients; `landspeed serve --allow-tap` does".to_owned()),
        Some(hook) => hook.0.begin(local, peer),
    };
    let (tap, refused) = match begun {
        Ok(tap) => (Some(tap), None),
        Err(why) => (None, Some(why)),
    };
    tx.send(&ToClient::Tapping { refused })?;
    Ok(tap)
}

/// Ends a capture and sends it.
pub(super) fn deliver(tap: Box<dyn RunningTap>, tx: &mut Sender) -> Result<(), FlowError> {
    let until_ns = clock::monotonic_ns() + LEAVE_NS;
    let fail = |tx: &mut Sender, why: String| {
        tx.send(&ToClient::Capture { data: String::new(), last: true, failed: Some(why) })
    };
    let mut content = match tap.finish() {
        Ok(content) => content,
        Err(why) => return fail(tx, why),
    };
    let mut part = Vec::with_capacity(CAPTURE_PART);
    loop {
        part.clear();
        if let Err(why) = content.by_ref().take(CAPTURE_PART as u64).read_to_end(&mut part) {
            return fail(tx, why.to_string());
        }
        let last = part.len() < CAPTURE_PART;
        tx.send(&ToClient::Capture { data: STANDARD_NO_PAD.encode(&part), last, failed: None })?;
        if last {
            return Ok(());
        }
        if clock::monotonic_ns() > until_ns {
            return Err(FlowError::Timeout {
                what: "the client to take its capture",
                seconds: LEAVE_NS / 1_000_000_000,
            });
        }
    }
}
