//! A tap beside a test: at the near end of `run --tap`, and at the far end for clients of `serve --allow-tap`.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_flow::server::{RunningTap, Tapper};
use landspeed_model::TapDocument;
use landspeed_sys::netlink::{LinkId, Netlink};
use landspeed_tap::{Limits, Options, Output, Tap};

/// A tap has so long to begin.
const PATIENCE: Duration = Duration::from_secs(5);
/// Taps at once for clients: each holds memory for its ring.
const MOST: usize = 4;
/// Ring of a tap for a client, bytes.
const CLIENT_RING_BYTES: u64 = 16 << 20;

/// A tap on a thread of its own.
pub struct Attendant {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<TapDocument>>,
}

impl Attendant {
    /// Begins to capture what passes between two addresses, on the interface that leads from one to the other, until told
    /// to stop (also by setting `stop`) or so many bytes are written. It takes packets when this returns.
    pub fn begin(
        (local, peer, server_port, control_port): (SocketAddr, SocketAddr, u16, u16),
        file: &Path,
        most_bytes: Option<u64>,
        ring_bytes: u64,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let (here, there) = (local.ip().to_canonical(), peer.ip().to_canonical());
        let options = Options {
            interfaces: vec![interface_towards(peer)?],
            filter: Some(between(here, there, server_port, control_port)),
            output: Output::File(file.to_owned()),
            limits: Limits { bytes: most_bytes, ..Limits::default() },
            ring_bytes,
            application: format!("landspeed {}", env!("CARGO_PKG_VERSION")),
            ..Options::default()
        };
        // On this thread: it is in the network namespace of the test.
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
        let attendant = Self { stop, thread: Some(thread) };
        begun.recv_timeout(PATIENCE).map_err(|_| "the capture did not begin in time".to_owned())?;
        Ok(attendant)
    }

    /// Ends it; everything that passed until now is in the file.
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

impl Drop for Attendant {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The data of a test: what is on the server's one port and not the control connection, by the client's port of that.
fn between(here: IpAddr, there: IpAddr, server_port: u16, control_port: u16) -> String {
    let hosts = if here == there { format!("host {here}") } else { format!("host {here} and host {there}") };
    format!("{hosts} and port {server_port} and not tcp port {control_port}")
}

/// The interface that packets to an address leave by.
fn interface_towards(peer: SocketAddr) -> Result<String, String> {
    let mut netlink = Netlink::open().map_err(|error| error.to_string())?;
    let route = netlink.route(peer).map_err(|error| error.to_string())?;
    let link = netlink.link(LinkId::Index(route.out_ifindex)).map_err(|error| error.to_string())?;
    Ok(link.name)
}

/// Captures for the clients of a server.
pub struct ForClients {
    most_bytes: u64,
    running: Arc<AtomicUsize>,
}

impl ForClients {
    /// Each client gets so many bytes at most.
    pub fn new(most_bytes: u64) -> Self {
        Self { most_bytes, running: Arc::default() }
    }
}

/// One capture for a client: its file goes with it.
struct ForClient {
    attendant: Option<Attendant>,
    file: PathBuf,
    running: Arc<AtomicUsize>,
}

impl Drop for ForClient {
    fn drop(&mut self) {
        self.attendant = None;
        let _ = std::fs::remove_file(&self.file);
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Tapper for ForClients {
    fn begin(&self, local: SocketAddr, peer: SocketAddr) -> Result<Box<dyn RunningTap>, String> {
        if self.running.fetch_add(1, Ordering::Relaxed) >= MOST {
            self.running.fetch_sub(1, Ordering::Relaxed);
            return Err(format!("it captures for {MOST} clients already"));
        }
        let unique = landspeed_sys::random::bytes::<8>().map_or(0, u64::from_ne_bytes);
        let file = std::env::temp_dir().join(format!("landspeed-tap-{}-{unique:016x}.pcapng", std::process::id()));
        let mut tap = ForClient { attendant: None, file, running: Arc::clone(&self.running) };
        // Nobody else may read it, nor have put a link there.
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&tap.file)
            .map_err(|why| format!("it has no room for a capture: {why}"))?;
        let ends = (local, peer, local.port(), peer.port());
        let most_bytes = Some(self.most_bytes);
        let begun = Attendant::begin(ends, &tap.file, most_bytes, CLIENT_RING_BYTES, Arc::default());
        tap.attendant = Some(begun?);
        Ok(Box::new(tap))
    }
}

impl RunningTap for ForClient {
    fn finish(mut self: Box<Self>) -> Result<Box<dyn Read>, String> {
        if let Some(attendant) = self.attendant.take() {
            attendant.finish()?;
        }
        // The name goes with this value, the content with the reader.
        let content = File::open(&self.file).map_err(|why| format!("it cannot read its capture: {why}"))?;
        Ok(Box::new(content))
    }
}
