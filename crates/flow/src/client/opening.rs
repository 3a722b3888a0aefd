//! Opens the data connections of an accepted test, and measures RTT and clock offset.
//!
//! Over a long path both happen at once: data connections open while pings are answered, and the request that the server
//! report when it has all of them is sent before they are open.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use landspeed_model::{MtuProbe, Parameters};
use landspeed_sys::clock;

use super::alignment::{Alignment, align};
use super::connect::{self, STEP_TIMEOUT};
use super::conversation::unexpected;
use crate::control::channel::{Receiver, Sender};
use crate::control::credentials::Credentials;
use crate::control::deadline::{Deadline, timeout};
use crate::control::message::{ToClient, ToServer};
use crate::end::StreamPlan;
use crate::error::FlowError;
use crate::layout::{self, Link};

/// Number of pings that estimate the clock offset.
const PINGS: u32 = 10;
/// Time that the pings may take one after the other, nanoseconds.
const PINGS_NS: u64 = 1_000_000_000;
/// Longest interval between pings that do not wait for each other's answers, nanoseconds.
const PING_INTERVAL_NS: u64 = 10_000_000;
/// RTT from which on the data connections are opened while the clocks are aligned, nanoseconds. Over shorter paths the
/// threads that open them would delay the pings.
const OVERLAP_RTT_NS: u64 = 20_000_000;

/// Data connections of an accepted test.
pub(super) struct Opening<'a> {
    /// Server's address for data.
    pub far: SocketAddr,
    /// Local address, and the port of the first stream.
    pub local: (Option<SocketAddr>, Option<u16>),
    /// Effective parameters.
    pub parameters: &'a Parameters,
    /// Authenticates the data sockets.
    pub credentials: Credentials,
    /// Set when the user interrupts.
    pub stop: &'a AtomicBool,
}

impl Opening<'_> {
    /// Opens all data sockets over a path with this RTT, nanoseconds.
    fn open(&self, rtt_ns: u64) -> Result<Vec<StreamPlan>, FlowError> {
        connect::data((self.far, rtt_ns), self.local, self.parameters, self.credentials, self.stop)
    }

    /// Opens all data sockets on another thread, if the RTT is long enough to gain from it. Not with a probe of the path MTU:
    /// while the server answers its probes, it does not repeat lost welcomes of UDP flows.
    pub fn begin<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        rtt_ns: u64,
    ) -> Result<Option<OpeningThread<'scope>>, FlowError> {
        if rtt_ns < OVERLAP_RTT_NS || self.parameters.probe_mtu {
            return Ok(None);
        }
        let thread = Builder::new().spawn_scoped(scope, move || self.open(rtt_ns));
        thread
            .map(Some)
            .map_err(|source| FlowError::Setup { what: "start a thread for data connections".into(), source })
    }

    /// Returns the data sockets that a thread has opened, or opens them now.
    pub fn finish(&self, thread: Option<OpeningThread<'_>>, rtt_ns: u64) -> Result<Vec<StreamPlan>, FlowError> {
        let Some(thread) = thread else { return self.open(rtt_ns) };
        thread.join().unwrap_or_else(|_| {
            let source = io::Error::other("its thread panicked");
            Err(FlowError::Setup { what: "open the data connections".into(), source })
        })
    }

    /// Whether the server may report the data sockets as soon as it has them. A lost welcome of a UDP flow is repeated only
    /// until then.
    pub fn may_announce(&self) -> bool {
        layout::streams(self.parameters).is_ok_and(|specs| specs.iter().all(|spec| spec.link != Link::Udp))
    }

    /// Probes the path MTU if requested.
    pub fn probe_mtu(&self, rtt_ns: u64) -> Result<Vec<MtuProbe>, FlowError> {
        if !self.parameters.probe_mtu {
            return Ok(Vec::new());
        }
        let (stream, far) = (layout::MTU_STREAM, (self.far, rtt_ns));
        let (local, credentials) = (self.local.0, &self.credentials);
        let socket = connect::open_udp_flow(far, local, self.parameters, stream, credentials, self.stop)?;
        Ok(crate::mtu::probe(&socket, credentials.datagram_tag(stream), rtt_ns, self.stop))
    }
}

/// Thread that opens the data sockets.
pub(super) type OpeningThread<'scope> = ScopedJoinHandle<'scope, Result<Vec<StreamPlan>, FlowError>>;

/// Readiness of the server for the start.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    /// Whether the request to report it was sent.
    announced: bool,
    /// Whether it has reported that it has all data sockets.
    reported: bool,
}

impl Readiness {
    /// Requests a report of the server when it has all data sockets.
    pub fn announce(&mut self, tx: &mut Sender) -> Result<(), FlowError> {
        if !std::mem::replace(&mut self.announced, true) {
            tx.queue(&ToServer::Opened)?;
        }
        Ok(())
    }

    /// Waits until the server has all data sockets.
    pub fn wait(&self, rx: &mut Receiver, rtt_ns: u64, stop: &AtomicBool) -> Result<(), FlowError> {
        let limit = timeout(STEP_TIMEOUT, rtt_ns);
        if self.reported {
            return Ok(());
        }
        match rx.wait::<ToClient>("the server to see all data connections", limit, stop)? {
            ToClient::Ready => Ok(()),
            other => Err(unexpected("before the start", other)),
        }
    }

    /// Estimates RTT and clock offset from several round trips. Over a path of `path_ns` on which they would take more than
    /// a second one after the other, and with `together`, they do not wait for each other.
    pub fn align_clocks(
        &mut self,
        (tx, rx): (&mut Sender, &mut Receiver),
        path_ns: u64,
        together: bool,
        stop: &AtomicBool,
    ) -> Result<Alignment, FlowError> {
        let together = together || path_ns * u64::from(PINGS - 1) > PINGS_NS;
        let interval_ns = (path_ns / 20).min(PING_INTERVAL_NS);
        let mut readings: Vec<(u64, i64)> = Vec::new();
        let mut sent_ns = Vec::new();
        let mut deadline = Deadline::after(timeout(STEP_TIMEOUT, path_ns)).with_stop(stop);
        while readings.len() < PINGS as usize {
            let now_ns = clock::monotonic_ns();
            let last_ns = sent_ns.last().copied();
            let due = match last_ns {
                None => true,
                Some(last_ns) if together => now_ns >= last_ns + interval_ns,
                Some(_) => sent_ns.len() == readings.len(),
            };
            if due && sent_ns.len() < PINGS as usize {
                sent_ns.push(clock::monotonic_ns());
                tx.queue(&ToServer::Ping { n: sent_ns.len() as u32 - 1 })?;
                continue;
            }
            let Ok(mut slice) = deadline.slice() else { return Err(deadline.missed("an answer to a ping")) };
            if let Some(last_ns) = last_ns.filter(|_| together && sent_ns.len() < PINGS as usize) {
                slice = slice.min(Duration::from_nanos((last_ns + interval_ns).saturating_sub(now_ns)));
            }
            match rx.poll::<ToClient>(slice)? {
                None => continue,
                Some(ToClient::Pong { n, now_ns })
                    if n as usize == readings.len() && readings.len() < sent_ns.len() =>
                {
                    let sent = sent_ns[n as usize];
                    let rtt_ns = clock::monotonic_ns() - sent;
                    // Wraps if the server's timestamp is absurd; the server then begins at once.
                    readings.push((rtt_ns, now_ns.wrapping_sub(sent + rtt_ns / 2) as i64));
                }
                Some(ToClient::Ready) if self.announced && !self.reported => self.reported = true,
                Some(other) => return Err(unexpected("while aligning the clocks", other)),
            }
            deadline = Deadline::after(timeout(STEP_TIMEOUT, path_ns)).with_stop(stop);
        }
        Ok(align(&readings))
    }
}
