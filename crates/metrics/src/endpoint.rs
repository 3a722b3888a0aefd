//! HTTP endpoint on one thread that never blocks on a scraper.
//!
//! Everything that a scraper can influence is bounded: connections, the time of each, bytes of a request, and how often
//! the text is written. The function given to [`Endpoint::start`] adds the samples; it must only read counters.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use landspeed_sys::{clock, socket};

use crate::process::{EndpointCounts, Identity, add_process};
use crate::request::{self, MAX_REQUEST, Request, Status};
use crate::samples::{Format, Samples};

/// Maximum number of connections; others wait in the kernel's queue.
pub const MAX_CONNECTIONS: usize = 16;
/// Maximum number of descriptors that an endpoint opens after its start.
pub const OPENED_DESCRIPTORS: usize = MAX_CONNECTIONS + 1;
/// Time from accepting a connection to the end of its answer, nanoseconds: the scrape timeout of Prometheus.
const CONNECTION_TIMEOUT_NS: u64 = 10_000_000_000;
/// Age at which a connection may be closed for a waiting one, nanoseconds.
const GRACE_NS: u64 = 1_000_000_000;
/// The same for the host with most connections, if it has so many, nanoseconds.
const BUSY_GRACE_NS: u64 = 50_000_000;
const BUSY_CONNECTIONS: usize = MAX_CONNECTIONS / 2;
/// Time for a scraper to close after its answer, nanoseconds.
const DRAIN_TIMEOUT_NS: u64 = 1_000_000_000;
/// Maximum number of bytes discarded after a request.
const MAX_DRAINED: usize = 64 * 1024;
/// Time for which a text is reused, nanoseconds.
const TEXT_AGE_NS: u64 = 100_000_000;
/// Interval between checks of the stop flag, and between attempts to send where a scraper reads slowly.
const TICK_MS: u32 = 100;
const SEND_TICK_MS: u32 = 10;
/// Pause when no descriptor is free for a connection, nanoseconds.
const NO_DESCRIPTOR_PAUSE_NS: u64 = 50_000_000;

/// Reason why an endpoint cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve metrics on {addr}: {source}")]
pub struct EndpointError {
    /// Address that `--metrics` requests.
    pub addr: SocketAddr,
    /// Error of the system call.
    pub source: io::Error,
}

impl EndpointError {
    /// Returns advice, if there is any.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self.source.kind() {
            io::ErrorKind::AddrInUse => "Choose another port with --metrics: a program listens on this one.",
            io::ErrorKind::AddrNotAvailable => "Give an address of this host: `ip address` lists them.",
            io::ErrorKind::PermissionDenied => "Choose a port above 1023 with --metrics, or run as root.",
            _ => return None,
        })
    }
}

/// A listening endpoint. It answers from [`Self::start`] on.
#[derive(Debug)]
pub struct Endpoint {
    listener: TcpListener,
    identity: Identity,
}

/// Placeholders for the descriptors of an endpoint, while another part of the process counts the free ones.
#[derive(Debug)]
pub struct ReservedDescriptors(Vec<File>);

/// The thread of an endpoint; stopped when dropped.
#[derive(Debug)]
pub struct RunningEndpoint {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Listens on `addr`; `version` and `command` are labels of `landspeed_build_info`.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn bind(addr: SocketAddr, version: &'static str, command: &'static str) -> Result<Self, EndpointError> {
        let listen = || {
            let listener = TcpListener::bind(addr)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(|source| EndpointError { addr, source })?;
        let started_unix_ns = clock::realtime_ns();
        Ok(Self { listener, identity: Identity { version, command, started_unix_ns } })
    }

    /// Returns the listening address.
    ///
    /// # Errors
    /// When the kernel does not report it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Opens as many descriptors as the endpoint may open later, and holds them until dropped.
    pub fn reserve_descriptors(&self) -> ReservedDescriptors {
        ReservedDescriptors((0..OPENED_DESCRIPTORS).filter_map(|_| File::open("/dev/null").ok()).collect())
    }

    /// Answers scrapers on a new thread. `collect` adds the samples, at most ten times a second for each format.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(self, collect: impl Fn(&mut Samples) + Send + 'static) -> io::Result<RunningEndpoint> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let mut service = Service {
            collect: Box::new(collect),
            identity: self.identity,
            counts: EndpointCounts::default(),
            texts: [None, None],
        };
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            let mut connections = Vec::with_capacity(MAX_CONNECTIONS);
            while !stopped.load(Ordering::Relaxed) {
                service.step(&self.listener, &mut connections);
            }
        })?;
        Ok(RunningEndpoint { stop, thread: Some(thread) })
    }
}

impl ReservedDescriptors {
    /// Number of descriptors held.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl Drop for RunningEndpoint {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A connection of a scraper.
struct Connection {
    stream: TcpStream,
    /// Address of the scraper; for IPv6 its /64.
    host: IpAddr,
    accepted_ns: u64,
    deadline_ns: u64,
    step: Step,
}

enum Step {
    /// Bytes of the request so far.
    Request(Vec<u8>),
    /// Head and body of the answer, and number of bytes sent.
    Answer(Vec<u8>, Arc<[u8]>, usize),
    /// Number of bytes discarded after the answer, so that a reset does not destroy it.
    Drain(usize),
}

/// State of the thread, besides its connections.
struct Service {
    collect: Box<dyn Fn(&mut Samples) + Send>,
    identity: Identity,
    counts: EndpointCounts,
    /// Latest text of each format, and when it was written.
    texts: [Option<(Arc<[u8]>, u64)>; 2],
}

impl Service {
    /// Waits for scrapers and serves those that are ready.
    fn step(&mut self, listener: &TcpListener, connections: &mut Vec<Connection>) {
        let full = connections.len() >= MAX_CONNECTIONS;
        let sends = connections.iter().any(|connection| matches!(connection.step, Step::Answer(..)));
        // Neither a connection that waits for a full list nor unread bytes during an answer may keep this thread awake.
        let listening = (!full).then(|| listener.as_fd());
        let receiving = connections.iter().filter(|connection| !matches!(connection.step, Step::Answer(..)));
        let fds: Vec<BorrowedFd<'_>> = listening.into_iter().chain(receiving.map(|c| c.stream.as_fd())).collect();
        let mut ready = Vec::new();
        if socket::wait_any(&fds, &mut ready, if sends { SEND_TICK_MS } else { TICK_MS }).is_err() {
            clock::sleep_until(clock::monotonic_ns() + NO_DESCRIPTOR_PAUSE_NS);
        }
        let now_ns = clock::monotonic_ns();
        connections.retain_mut(|connection| self.serve(connection, now_ns));
        self.accept(listener, connections, now_ns);
    }

    /// Accepts waiting connections. If the list is full, closes one for the next: one that has its answer, the oldest of the host
    /// with most connections, or the oldest.
    fn accept(&mut self, listener: &TcpListener, connections: &mut Vec<Connection>, now_ns: u64) {
        // At most this many at a time, so that a flood cannot starve those that are served.
        for _ in 0..MAX_CONNECTIONS {
            if connections.len() >= MAX_CONNECTIONS {
                let answered = connections.iter().position(|c| matches!(c.step, Step::Drain(_)));
                let Some(at) = answered.or_else(|| {
                    let ages: Vec<_> = connections.iter().map(|c| (c.host, c.accepted_ns)).collect();
                    victim(&ages, now_ns)
                }) else {
                    return;
                };
                if !socket::wait(listener.as_fd(), socket::Readiness::Readable, 0).unwrap_or(false) {
                    return;
                }
                connections.remove(at);
                self.counts.closed += u64::from(answered.is_none());
            }
            match listener.accept() {
                Ok((stream, peer)) => {
                    if stream.set_nonblocking(true).is_ok() {
                        let deadline_ns = now_ns + CONNECTION_TIMEOUT_NS;
                        let step = Step::Request(Vec::new());
                        let host = host(peer.ip());
                        let mut connection = Connection { stream, host, accepted_ns: now_ns, deadline_ns, step };
                        if self.serve(&mut connection, now_ns) {
                            connections.push(connection);
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // The listener stays readable, so without a pause this would spin.
                    clock::sleep_until(now_ns + NO_DESCRIPTOR_PAUSE_NS);
                    return;
                }
            }
        }
    }

    /// Serves a connection as far as possible without blocking; false if it has ended.
    fn serve(&mut self, connection: &mut Connection, now_ns: u64) -> bool {
        let open = self.advance(connection, now_ns);
        if open && now_ns < connection.deadline_ns {
            return true;
        }
        self.counts.closed += u64::from(!matches!(connection.step, Step::Drain(_)));
        false
    }

    /// Receives the request, sends the answer and discards what follows, without blocking; false if it has ended.
    fn advance(&mut self, connection: &mut Connection, now_ns: u64) -> bool {
        if let Step::Request(bytes) = &mut connection.step {
            let Ok(received) = receive(&mut connection.stream, bytes) else { return false };
            let request = if received.may_be_complete { request::parse(bytes) } else { None };
            let Some(request) = request else { return !received.ended };
            let (head, body) = self.answer(request, now_ns);
            connection.step = Step::Answer(head, body, 0);
        }
        if let Step::Answer(head, body, sent) = &mut connection.step {
            let whole = head.len() + body.len();
            while *sent < whole {
                let unsent = if *sent < head.len() { &head[*sent..] } else { &body[*sent - head.len()..] };
                match connection.stream.write(unsent) {
                    Ok(0) => return false,
                    Ok(n) => *sent += n,
                    Err(error) if is_transient(&error) => return true,
                    Err(_) => return false,
                }
            }
            if connection.stream.shutdown(Shutdown::Write).is_err() {
                return false;
            }
            connection.deadline_ns = now_ns + DRAIN_TIMEOUT_NS;
            connection.step = Step::Drain(0);
        }
        let Step::Drain(discarded) = &mut connection.step else { return true };
        let mut unread = [0; 4096];
        loop {
            match connection.stream.read(&mut unread) {
                Ok(n @ 1..) if *discarded < MAX_DRAINED => *discarded += n,
                Err(error) if is_transient(&error) => return true,
                _ => return false,
            }
        }
    }

    /// Returns head and body of the answer.
    fn answer(&mut self, request: Request, now_ns: u64) -> (Vec<u8>, Arc<[u8]>) {
        match request {
            Request::Invalid(status) => {
                self.counts.answered(status);
                (request::refusal(status), Arc::default())
            }
            Request::Metrics { format, head } => {
                self.counts.answered(Status::Ok);
                let text = self.text(format, now_ns);
                let answer = request::head(Status::Ok, format.content_type(), text.len()).into_bytes();
                (answer, if head { Arc::default() } else { text })
            }
        }
    }

    /// Returns the text, at most [`TEXT_AGE_NS`] old.
    fn text(&mut self, format: Format, now_ns: u64) -> Arc<[u8]> {
        let at = format as usize;
        if let Some((text, written_ns)) = &self.texts[at]
            && now_ns < written_ns + TEXT_AGE_NS
        {
            return Arc::clone(text);
        }
        let mut samples = Samples::default();
        add_process(&mut samples, self.identity, &self.counts);
        (self.collect)(&mut samples);
        let text: Arc<[u8]> = samples.text(format).into_bytes().into();
        self.texts[at] = Some((Arc::clone(&text), now_ns));
        text
    }
}

/// Returns the connection to close for a waiting one, if one is old enough. `connections` are hosts and times of acceptance,
/// oldest first.
fn victim(connections: &[(IpAddr, u64)], now_ns: u64) -> Option<usize> {
    let count = |host: IpAddr| connections.iter().filter(|(other, _)| *other == host).count();
    let busy = connections.iter().position(|(host, _)| count(*host) >= BUSY_CONNECTIONS);
    let is_older = |at: &usize, age_ns: u64| connections.get(*at).is_some_and(|(_, ns)| now_ns >= ns + age_ns);
    busy.filter(|at| is_older(at, BUSY_GRACE_NS)).or_else(|| Some(0).filter(|at| is_older(at, GRACE_NS)))
}

/// Returns the part of an address that identifies a host: an IPv4 address, or an IPv6 /64.
fn host(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        ip @ IpAddr::V4(_) => ip,
    }
}

/// Result of reading from a connection in its request.
struct Received {
    /// Whether the request should be parsed.
    may_be_complete: bool,
    /// Whether the scraper sends no more.
    ended: bool,
}

/// Reads what has arrived, up to [`MAX_REQUEST`].
fn receive(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<Received> {
    let before = bytes.len();
    let mut ended = false;
    let mut chunk = [0; 2048];
    while bytes.len() < MAX_REQUEST && !ended {
        let wanted = chunk.len().min(MAX_REQUEST - bytes.len());
        match stream.read(&mut chunk[..wanted]) {
            Ok(n) => {
                ended = n == 0;
                bytes.extend_from_slice(&chunk[..n]);
            }
            Err(error) if is_transient(&error) => break,
            Err(error) => return Err(error),
        }
    }
    // A request ends with a line. Parsed only then, and for its first byte: a scraper that sends single bytes costs little.
    let line = bytes[before..].contains(&b'\n') || bytes.len() >= MAX_REQUEST;
    Ok(Received { may_be_complete: line || (before == 0 && !bytes.is_empty()), ended })
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_with_most_connections_loses_its_oldest() {
        let address = |n: u8| IpAddr::from([192, 0, 2, n]);
        let mut connections = vec![(address(1), 0)];
        connections.extend((0..BUSY_CONNECTIONS).map(|_| (address(2), 10)));
        assert_eq!(victim(&connections, 9 + BUSY_GRACE_NS), None);
        assert_eq!(victim(&connections, 10 + BUSY_GRACE_NS), Some(1));
        connections.pop();
        assert_eq!(victim(&connections, 10 + BUSY_GRACE_NS), None, "none has most");
        assert_eq!(victim(&connections, GRACE_NS), Some(0));
        assert_eq!(victim(&[], GRACE_NS), None);
        let network = |text: &str| host(text.parse().expect("an address"));
        assert_eq!(network("2001:db8::1"), network("2001:db8:0:0:ffff::2"));
        assert_eq!(network("::ffff:192.0.2.1"), address(1));
    }
}
