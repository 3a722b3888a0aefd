//! Captures during a test: on the client for `run --tap`, and on the server for clients of `serve --allow-tap`.

// Clients of a server cause what happens here: it prints nothing.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_flow::server::{FlowSink, RunningTap, Tapper, TestFlow, TestTransport};
use landspeed_model::TapDocument;
use landspeed_netlink::{LinkId, Netlink};
use landspeed_tap::{Limits, Options, Output, Selection, Tap, TapFlow, TapTransport};

/// Timeout for the start of a capture.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of concurrent captures for clients: each needs memory for its ring.
const MAX_CAPTURES: usize = 4;
/// Ring size of a capture for a client, bytes.
const CLIENT_RING_BYTES: u64 = 16 << 20;

/// Snap length that includes all headers: VLAN tags, IPv6 with extension headers, TCP with all options.
const HEADERS_BYTES: u32 = 256;

/// Memory and disk limits of a capture.
#[derive(Debug, Clone, Copy)]
pub struct CaptureLimits {
    /// Maximum number of bytes written; `None` is unlimited.
    pub most_bytes: Option<u64>,
    /// Size of the ring, bytes.
    pub ring_bytes: u64,
}

/// A capture on a separate thread.
pub struct BackgroundCapture {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<TapDocument>>,
}

impl BackgroundCapture {
    /// Captures the packets between two addresses on the interface towards the peer, until stopped (also by setting
    /// `stop`) or the limit is reached. With a selection, captures only headers of flows that may belong to the
    /// test. Returns when the capture has started.
    pub fn begin(
        (local, peer, server_port, control_port): (SocketAddr, SocketAddr, u16, u16),
        file: &Path,
        CaptureLimits { most_bytes, ring_bytes }: CaptureLimits,
        selection: Option<Arc<Selection>>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let (here, there) = (local.ip().to_canonical(), peer.ip().to_canonical());
        let options = Options {
            interfaces: vec![interface_towards(peer)?],
            filter: Some(between(here, there, server_port, control_port)),
            // With a selection only headers are kept, including the longest options.
            snap_bytes: if selection.is_some() { HEADERS_BYTES } else { Options::default().snap_bytes },
            selection,
            output: Output::File(file.to_owned()),
            limits: Limits { bytes: most_bytes, ..Limits::default() },
            ring_bytes,
            application: format!("landspeed {}", env!("CARGO_PKG_VERSION")),
            ..Options::default()
        };
        // Opened on this thread, which is in the test's network namespace.
        let tap = Tap::open(options).map_err(|error| error.to_string())?;
        let (ready, begun) = mpsc::channel();
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("tap".to_owned())
            .spawn(move || {
                tap.run(&flag, |_| {
                    let _ = ready.send(());
                })
            })
            .map_err(|why| format!("no thread for the capture: {why}"))?;
        let background = Self { stop, thread: Some(thread) };
        begun.recv_timeout(START_TIMEOUT).map_err(|_| "the capture did not begin in time".to_owned())?;
        Ok(background)
    }

    /// Stops the capture. The file contains all packets up to now.
    pub fn finish(mut self) -> Result<TapDocument, String> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or("it was ended before")?;
        let document = thread.join().map_err(|_| "its thread panicked".to_owned())?;
        match &document.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(document),
        }
    }
}

impl Drop for BackgroundCapture {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns a filter for the test's data: the server's port, without the control connection, identified by the
/// client's port.
fn between(here: IpAddr, there: IpAddr, server_port: u16, control_port: u16) -> String {
    let hosts = if here == there { format!("host {here}") } else { format!("host {here} and host {there}") };
    format!("{hosts} and port {server_port} and not tcp port {control_port}")
}

/// Returns the interface of the route to an address.
fn interface_towards(peer: SocketAddr) -> Result<String, String> {
    let mut netlink = Netlink::open().map_err(|error| error.to_string())?;
    let route = netlink.route(peer).map_err(|error| error.to_string())?;
    let link = netlink.link(LinkId::Index(route.out_ifindex)).map_err(|error| error.to_string())?;
    Ok(link.name)
}

/// Captures for the clients of a server.
pub struct ClientService {
    most_bytes: u64,
    /// Clients with a running capture: IPv4 addresses, and IPv6 /64 networks.
    running: Arc<Mutex<Vec<IpAddr>>>,
}

impl ClientService {
    /// Creates the service; each client may capture at most `most_bytes`.
    pub fn new(most_bytes: u64) -> Self {
        Self { most_bytes, running: Arc::default() }
    }
}

/// A client's slot in the list of captures, freed on drop.
struct CaptureSlot {
    client: IpAddr,
    running: Arc<Mutex<Vec<IpAddr>>>,
}

impl CaptureSlot {
    fn take(running: &Arc<Mutex<Vec<IpAddr>>>, client: IpAddr) -> Result<Self, String> {
        let client = match client.to_canonical() {
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
            v4 @ IpAddr::V4(_) => v4,
        };
        let mut taken = running.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.contains(&client) {
            return Err("it captures another test of this address already".to_owned());
        }
        if taken.len() >= MAX_CAPTURES {
            return Err(format!("it captures for {MAX_CAPTURES} clients already"));
        }
        taken.push(client);
        Ok(Self { client, running: Arc::clone(running) })
    }
}

impl Drop for CaptureSlot {
    fn drop(&mut self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).retain(|client| *client != self.client);
    }
}

/// A capture for one client.
struct ClientCapture {
    /// Dropped before the slot is freed.
    background: Option<BackgroundCapture>,
    /// The captured packets. The file is already unlinked, so it disappears when closed.
    taken: File,
    selection: Arc<Selection>,
    filter: String,
    most_bytes: u64,
    _slot: CaptureSlot,
}

/// Creates a temporary file that only this user can read. `create_new` prevents symlink attacks; the caller
/// unlinks it soon.
fn scratch_file() -> io::Result<(File, PathBuf)> {
    let unique = landspeed_sys::random::bytes::<8>().map_or(0, u64::from_ne_bytes);
    let path = std::env::temp_dir().join(format!("landspeed-tap-{}-{unique:016x}.pcapng", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    Ok((file, path))
}

impl Tapper for ClientService {
    fn begin(&self, local: SocketAddr, peer: SocketAddr) -> Result<Box<dyn RunningTap>, String> {
        let place = CaptureSlot::take(&self.running, peer.ip())?;
        let no_room = |why: io::Error| format!("it has no room for a capture: {why}");
        let (taken, path) = scratch_file().map_err(no_room)?;
        let selection = Arc::new(Selection::new(local, peer.ip()));
        let ends = (local, peer, local.port(), peer.port());
        let begun = BackgroundCapture::begin(
            ends,
            &path,
            CaptureLimits { most_bytes: Some(self.most_bytes), ring_bytes: CLIENT_RING_BYTES },
            Some(Arc::clone(&selection)),
            Arc::default(),
        );
        // Both this thread and the capture have opened the file, so it can be unlinked.
        let removed = std::fs::remove_file(&path);
        let background = Some(begun?);
        removed.map_err(no_room)?;
        let filter = between(local.ip().to_canonical(), peer.ip().to_canonical(), local.port(), peer.port());
        Ok(Box::new(ClientCapture {
            background,
            taken,
            selection,
            filter,
            most_bytes: self.most_bytes,
            _slot: place,
        }))
    }
}

impl RunningTap for ClientCapture {
    fn flows(&self) -> Arc<FlowSink> {
        let selection = Arc::clone(&self.selection);
        Arc::new(move |flow: TestFlow| {
            let transport = match flow.transport {
                TestTransport::Tcp => TapTransport::Tcp,
                TestTransport::Udp => TapTransport::Udp,
            };
            let (port, arrived_unix_ns) = (flow.client.port(), flow.arrived_unix_ns);
            selection.add(TapFlow { transport, port, arrived_unix_ns });
        })
    }

    fn all_arrived(&mut self) {
        self.selection.complete(&self.filter);
    }

    fn finish(mut self: Box<Self>) -> Result<Box<dyn Read>, String> {
        let document = self.background.take().ok_or("it was ended before")?.finish()?;
        let cannot = |why: io::Error| format!("it cannot read its capture: {why}");
        let (mut cut, path) = scratch_file().map_err(cannot)?;
        std::fs::remove_file(&path).map_err(cannot)?;
        let application = format!("landspeed {}", env!("CARGO_PKG_VERSION"));
        let about = (application.as_str(), document.dropped);
        landspeed_tap::excerpt(&mut self.taken, &mut cut, &self.selection, about, self.most_bytes).map_err(cannot)?;
        cut.rewind().map_err(cannot)?;
        Ok(Box::new(cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_limited_per_client_and_in_total() {
        let running = Arc::default();
        let take = |text: &str| CaptureSlot::take(&running, text.parse().expect("an address"));
        let first = take("192.0.2.1").expect("the first one");
        for same in ["192.0.2.1", "::ffff:192.0.2.1"] {
            assert!(take(same).is_err_and(|why| why.contains("already")), "{same}");
        }
        let _six = take("2001:db8::1").expect("another address");
        assert!(take("2001:db8::2").is_err(), "the same /64");
        let _others = [take("2001:db8:0:1::1").expect("another /64"), take("192.0.2.2").expect("another address")];
        assert!(take("192.0.2.3").is_err_and(|why| why.contains('4')), "four at once");
        drop(first);
        assert!(take("192.0.2.1").is_ok());
    }
}
