//! Packet capture on the server during a test. This crate does not capture packets itself: the code that sets
//! up the server passes in a [`Tapper`].

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::Shared;
use super::registry::Slot;
use crate::control::channel::Sender;
use crate::control::message::{CAPTURE_PART_BYTES, ToClient};
use crate::error::FlowError;
use crate::layout::{Link, StreamSpec};

/// Timeout for sending a capture.
const SEND_TIMEOUT: Duration = Duration::from_mins(10);

/// The transport of a data socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TestTransport {
    /// TCP data connection.
    Tcp,
    /// UDP flow.
    Udp,
}

/// A data socket of a test that the server accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestFlow {
    /// TCP or UDP.
    pub transport: TestTransport,
    /// Address and port of the client.
    pub client: SocketAddr,
    /// Time of acceptance, nanoseconds since the Unix epoch: after its handshake and before its data.
    pub arrived_unix_ns: u64,
}

/// Callback for every data socket of a test.
pub type FlowSink = dyn Fn(TestFlow) + Send + Sync;

/// Captures the packets of tests on the server (`serve --allow-tap`).
pub trait Tapper: Send + Sync {
    /// Begins to capture the data of a test; packets are captured from when it returns. `local` includes the port.
    /// The port of `peer` is that of the control connection, which is not captured. The error is a message for the
    /// client.
    fn begin(&self, local: SocketAddr, peer: SocketAddr) -> Result<Box<dyn RunningTap>, String>;
}

/// A running capture. Dropping it ends it and deletes its data.
pub trait RunningTap: Send {
    /// Returns the callback for the test's data sockets: only their packets are sent to the client.
    fn flows(&self) -> Arc<FlowSink>;
    /// Reports that all data sockets have arrived: packets of other sockets are no longer needed.
    fn all_arrived(&mut self);
    /// Ends the capture; returns the packets of the test's own data sockets.
    fn finish(self: Box<Self>) -> Result<Box<dyn Read>, String>;
}

/// Tapper that a server is configured with.
#[derive(Clone)]
pub struct TapHook(pub Arc<dyn Tapper>);

impl std::fmt::Debug for TapHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TapHook")
    }
}

/// Capture of one test, if its client requests one.
pub(super) struct Capture<'a> {
    hook: Option<&'a TapHook>,
    local: SocketAddr,
    peer: SocketAddr,
    slot: &'a Slot,
    tap: Option<Box<dyn RunningTap>>,
}

impl<'a> Capture<'a> {
    /// Creates the state without a running capture.
    pub fn new(hook: Option<&'a TapHook>, (local, peer): (SocketAddr, SocketAddr), slot: &'a Slot) -> Self {
        Self { hook, local, peer, slot, tap: None }
    }

    /// Begins a capture at the client's request, and confirms it. A second request has no effect.
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

    /// Reports that all data sockets have arrived, unless each transaction opens one.
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
    let deadline = shared.step(SEND_TIMEOUT);
    let fail = |tx: &mut Sender, why: String| {
        tx.send(&ToClient::Capture { data: String::new(), last: true, failed: Some(why) }, &deadline)
    };
    let mut content = match tap.finish() {
        Ok(content) => content,
        Err(why) => return fail(tx, why),
    };
    let mut part = Vec::with_capacity(CAPTURE_PART_BYTES);
    loop {
        part.clear();
        if let Err(why) = content.by_ref().take(CAPTURE_PART_BYTES as u64).read_to_end(&mut part) {
            return fail(tx, why.to_string());
        }
        let last = part.len() < CAPTURE_PART_BYTES;
        tx.send(&ToClient::Capture { data: STANDARD_NO_PAD.encode(&part), last, failed: None }, &deadline)?;
        if last {
            return Ok(());
        }
    }
}
