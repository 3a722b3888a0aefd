//! A capture at the server during a test. This crate does not capture packets: the code that sets up the
//! server passes in a [`Tapper`].

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::Shared;
use super::registry::Slot;
use crate::control::channel::Sender;
use crate::control::message::{CAPTURE_PART, ToClient};
use crate::error::FlowError;
use crate::layout::{Link, StreamSpec};

/// How long a capture may take to leave.
const LEAVE: Duration = Duration::from_mins(10);

/// The transport of a data socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TestTransport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A data socket of a test that the server accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestFlow {
    /// Its transport.
    pub transport: TestTransport,
    /// Its client's address and port.
    pub client: SocketAddr,
    /// When it was accepted, nanoseconds since the Unix epoch: after its handshake and before its data.
    pub arrived_unix_ns: u64,
}

/// Gets every data socket of a test.
pub type FlowSink = dyn Fn(TestFlow) + Send + Sync;

/// What can capture.
pub trait Tapper: Send + Sync {
    /// Begins to capture the data of a test between two addresses, the near one's port included; takes packets when it
    /// returns. The far one's port is that of the control connection, which is not to be captured. The error says why not,
    /// in words for the client.
    fn begin(&self, local: SocketAddr, peer: SocketAddr) -> Result<Box<dyn RunningTap>, String>;
}

/// A capture that is being taken. Dropping it ends it and leaves nothing behind.
pub trait RunningTap: Send {
    /// Where the test's data sockets are reported: only packets of these leave the server.
    fn flows(&self) -> Arc<FlowSink>;
    /// All data sockets have arrived: packets of other sockets are no longer needed.
    fn all_arrived(&mut self);
    /// Ends it; what it took of the test's own data sockets can then be read.
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

/// The capture of one test, if its client asks for one.
pub(super) struct Capture<'a> {
    hook: Option<&'a TapHook>,
    local: SocketAddr,
    peer: SocketAddr,
    slot: &'a Slot,
    tap: Option<Box<dyn RunningTap>>,
}

impl<'a> Capture<'a> {
    /// None is taken yet.
    pub fn new(hook: Option<&'a TapHook>, (local, peer): (SocketAddr, SocketAddr), slot: &'a Slot) -> Self {
        Self { hook, local, peer, slot, tap: None }
    }

    /// Begins a capture for a client that asked for one, and informs it. A second request changes nothing.
    pub fn begin(&mut self, tx: &mut Sender) -> Result<(), FlowError> {
        if self.tap.is_some() {
            return Ok(());
        }
        let begun = match self.hook {
            None => Err("it does not capture for clients; `landspeed serve --allow-tap` does".to_owned()),
            Some(hook) => hook.0.begin(self.local, self.peer),
        };
        let refused = match begun {
            Ok(tap) => {
                self.slot.report_flows(tap.flows());
                self.tap = Some(tap);
                None
            }
            Err(why) => Some(why),
        };
        tx.queue(&ToClient::Tapping { refused })
    }

    /// All data sockets of the test are here, unless each transaction opens one.
    pub fn all_arrived(&mut self, specs: &[StreamSpec]) {
        if let Some(tap) = &mut self.tap
            && specs.iter().all(|spec| spec.link != Link::Connect)
        {
            tap.all_arrived();
        }
    }

    /// Ends the capture and sends it.
    pub fn deliver(self, tx: &mut Sender, shared: &Shared) -> Result<(), FlowError> {
        self.tap.map_or(Ok(()), |tap| deliver(tap, tx, shared))
    }
}

/// Ends a capture and sends it.
fn deliver(tap: Box<dyn RunningTap>, tx: &mut Sender, shared: &Shared) -> Result<(), FlowError> {
    let deadline = shared.step(LEAVE);
    let fail = |tx: &mut Sender, why: String| {
        tx.send(&ToClient::Capture { data: String::new(), last: true, failed: Some(why) }, &deadline)
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
        tx.send(&ToClient::Capture { data: STANDARD_NO_PAD.encode(&part), last, failed: None }, &deadline)?;
        if last {
            return Ok(());
        }
    }
}
