//! Status of an emulated path, for programs that measure over it: by a local socket of the network namespace, named
//! after the interface that leads into the path, or in band. The socket needs no environment variable and disappears
//! with the process.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_emulation::LoadedPath;
use landspeed_model::{EmulatePlacement, EmulationStatus};
use landspeed_sys::clock::{monotonic_ns, realtime_ns, sleep_until};
use landspeed_sys::rendezvous::{self, Peer};
use landspeed_sys::socket::{Readiness, wait};
use landspeed_sys::tun::wait_readable;

use crate::certificate::emulated;
use crate::error::EmulateError;
use crate::exchange::{CHECK_MS, ExchangeLimit, StatusError, check};
use crate::in_band::InBand;
use crate::live::Live;

/// Time limit for sending a status, nanoseconds.
const SEND_NS: u64 = 1_000_000_000;
/// Maximum size of a status, bytes.
const MAX_STATUS_BYTES: usize = 16 << 20;
/// Maximum wait between checks of the stop flag, nanoseconds.
const STOP_CHECK_NS: u64 = 50_000_000;
/// Wait before another attempt at a listener that is busy, nanoseconds.
const BUSY_NS: u64 = 5_000_000;
/// Maximum number of requests at one interface served before those at the other.
const BATCH: usize = 16;

/// Names of status sockets at an interface.
fn prefix(ifindex: u32) -> String {
    format!("landspeed-emulate-status-{ifindex}-")
}

/// Listens for status requests at an interface of the calling thread's network namespace.
pub(crate) fn listen(ifindex: u32) -> Result<UnixListener, EmulateError> {
    rendezvous::listen(&prefix(ifindex)).map_err(EmulateError::system("listen for status requests"))
}

/// Source of status requests.
pub enum StatusRequests {
    /// Local sockets, one for each interface that leads into the path.
    LocalSockets(Vec<UnixListener>),
    /// UDP datagrams over the path.
    InBand(InBand),
}

/// Replies to status requests until `stop` is set.
pub fn serve_status(
    requests: StatusRequests,
    path: &LoadedPath,
    placement: &EmulatePlacement,
    live: &Live,
    stop: &AtomicBool,
) {
    let status = || status(path, placement, live);
    match requests {
        StatusRequests::LocalSockets(listeners) => {
            let (Some(first), Some(last)) = (listeners.first(), listeners.last()) else { return };
            while !stop.load(Ordering::Relaxed) {
                wait_readable([first.as_fd(), last.as_fd()], STOP_CHECK_NS);
                for stream in
                    listeners.iter().flat_map(|listener| listener.incoming().map_while(Result::ok).take(BATCH))
                {
                    // A client that does not read gets no reply.
                    let _ = send_status(&stream, &status(), stop);
                }
            }
        }
        StatusRequests::InBand(mut in_band) => {
            while !stop.load(Ordering::Relaxed) {
                wait_readable(in_band.fds(), STOP_CHECK_NS);
                in_band.reply(status);
            }
        }
    }
}

fn status(path: &LoadedPath, placement: &EmulatePlacement, live: &Live) -> EmulationStatus {
    let snapshot = live.snapshot();
    EmulationStatus {
        path: emulated(path),
        placement: placement.clone(),
        start_unix_ns: snapshot.start_unix_ns,
        elapsed_ns: snapshot.elapsed_ns,
        invalid: snapshot.invalid,
    }
}

/// Sends a status. Every local user may measure over the path and gets it; only root and the own user are waited for.
fn send_status(mut stream: &UnixStream, status: &EmulationStatus, stop: &AtomicBool) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let waits = Peer::of(stream.as_fd())?.is_trusted();
    let limit = ExchangeLimit::new(SEND_NS, stop);
    let text = serde_json::to_vec(status)?;
    let mut rest = text.as_slice();
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && waits && limit.left_ns().is_ok() => {
                wait(stream.as_fd(), Readiness::Writable, CHECK_MS)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Requests the status of the emulation at an interface of the calling thread's network namespace; `None` if there is none.
/// Only a process of root or of the own user is trusted.
///
/// # Errors
/// The status is unknown: `limit` ended the exchange, or the answer cannot be used.
pub fn request_status(ifindex: u32, limit: &ExchangeLimit<'_>) -> Result<Option<EmulationStatus>, StatusError> {
    loop {
        let mut busy = false;
        for name in rendezvous::names(&prefix(ifindex))? {
            limit.left_ns()?;
            match rendezvous::connect(&name) {
                Ok(stream) if Peer::of(stream.as_fd()).is_ok_and(Peer::is_trusted) => {
                    let status: EmulationStatus = serde_json::from_slice(&read_reply(&stream, limit)?)
                        .map_err(|error| StatusError::Unreadable(error.to_string()))?;
                    return check(&status, realtime_ns()).map(|()| Some(status));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => busy = true,
                Ok(_) | Err(_) => {}
            }
        }
        if !busy {
            return Ok(None);
        }
        sleep_until(monotonic_ns() + BUSY_NS);
        limit.left_ns()?;
    }
}

/// Reads until the peer closes.
fn read_reply(mut stream: &UnixStream, limit: &ExchangeLimit<'_>) -> Result<Vec<u8>, StatusError> {
    let mut text = Vec::new();
    let mut part = vec![0; 64 << 10];
    loop {
        limit.left_ns()?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(text),
            Ok(length) if text.len() + length > MAX_STATUS_BYTES => {
                return Err(StatusError::TooLong(MAX_STATUS_BYTES));
            }
            Ok(length) => text.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait(stream.as_fd(), Readiness::Readable, CHECK_MS)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use landspeed_model::{EmulateSecond, InvalidReason, InvalidSecond};

    use super::*;

    /// An interface index that no interface and no other test has.
    fn unused_index(number: u32) -> u32 {
        u32::MAX - std::process::id() * 8 - number
    }

    /// Serves one connection at a status socket with `answer`; returns what a request with this time limit gets.
    fn request(
        ifindex: u32,
        length_ns: u64,
        stop: &AtomicBool,
        answer: impl FnOnce(UnixStream) + Send + 'static,
    ) -> Result<Option<EmulationStatus>, StatusError> {
        let listener = listen(ifindex).expect("a socket");
        listener.set_nonblocking(false).expect("set");
        let serving = std::thread::spawn(move || answer(listener.accept().expect("a request").0));
        let found = request_status(ifindex, &ExchangeLimit::new(length_ns, stop));
        serving.join().expect("no panic");
        found
    }

    #[test]
    fn status_reports_invalid_seconds_so_far() {
        let text = "name = \"a path\"\n[[link]]\nrate = \"1G\"\n";
        let path = landspeed_emulation::load(text, &mut |_| Err(String::new())).unwrap_or_else(|e| panic!("{e}"));
        let placement =
            EmulatePlacement::Peers { interface: "eth0".to_owned(), peers: vec!["192.0.2.1/32".to_owned()] };
        let ifindex = unused_index(0);
        let (live, stop, never) = (Live::default(), AtomicBool::new(false), AtomicBool::new(false));
        let limit = ExchangeLimit::new(60_000_000_000, &never);
        assert_eq!(request_status(ifindex, &limit), Ok(None));
        let requests = StatusRequests::LocalSockets(vec![listen(ifindex).expect("a socket")]);
        live.begin(5);
        let invalid = InvalidSecond { second: 0, reasons: vec![InvalidReason::Late], message: "late".to_owned() };
        live.add(EmulateSecond::default(), vec![invalid.clone()], 1_000_000_000);
        let status = std::thread::scope(|scope| {
            scope.spawn(|| serve_status(requests, &path, &placement, &live, &stop));
            let status = request_status(ifindex, &limit);
            stop.store(true, Ordering::Relaxed);
            status.expect("a reply").expect("a status")
        });
        assert_eq!((status.start_unix_ns, status.elapsed_ns), (5, 1_000_000_000));
        assert_eq!((status.path.name.as_str(), status.invalid), ("a path", vec![invalid]));
        assert_eq!(status.placement, placement);
    }

    #[test]
    fn dripping_server_is_cut_off_at_the_deadline() {
        let stop = AtomicBool::new(false);
        let found = request(unused_index(1), 300_000_000, &stop, |mut stream| {
            // A byte at a time, until the client hangs up.
            while stream.write_all(b" ").is_ok() {
                sleep_until(monotonic_ns() + 1_000_000);
            }
        });
        assert_eq!(found, Err(StatusError::Timeout));
    }

    #[test]
    fn stop_flag_ends_the_exchange() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let found = request(unused_index(2), u64::MAX, &STOP, |mut stream| {
            stream.write_all(b" ").expect("the client listens");
            STOP.store(true, Ordering::Relaxed);
            assert!(!matches!(stream.read(&mut [0]), Ok(1..)), "the client hangs up");
        });
        assert_eq!(found, Err(StatusError::Interrupted));
    }

    #[test]
    fn unusable_answers_are_unknown() {
        let stop = AtomicBool::new(false);
        let answered = |number, text: &'static [u8]| {
            request(unused_index(number), 60_000_000_000, &stop, move |mut stream| {
                stream.write_all(text).expect("the client reads");
            })
        };
        assert!(matches!(answered(3, b"{}"), Err(StatusError::Unreadable(_))));
        let future = br#"{"path":{"name":"a","seed":1,"mtu_bytes":1500,"links":1},"placement":{"between":{"first":"a","second":"b"}},
            "start_unix_ns":18000000000000000000,"elapsed_ns":9,"invalid":[]}"#;
        assert!(matches!(answered(4, future), Err(StatusError::Implausible(_))));
        let long = request(unused_index(5), 60_000_000_000, &stop, |mut stream| {
            let part = vec![b' '; 1 << 20];
            while stream.write_all(&part).is_ok() {}
        });
        assert_eq!(long, Err(StatusError::TooLong(MAX_STATUS_BYTES)));
    }

    #[test]
    fn clients_that_do_not_read_delay_the_reply_only_within_the_limit() {
        let invalid =
            |second| InvalidSecond { second, reasons: vec![InvalidReason::Late], message: "x".repeat(1000) };
        let status = EmulationStatus {
            path: landspeed_model::EmulatedPath { name: String::new(), seed: 1, mtu_bytes: 1500, links: 1 },
            placement: EmulatePlacement::Between { first: String::new(), second: String::new() },
            start_unix_ns: 0,
            elapsed_ns: 0,
            invalid: (0..2000).map(invalid).collect(),
        };
        let (near, _far) = UnixStream::pair().expect("a pair");
        // The end of the emulation ends the wait at once.
        let error = send_status(&near, &status, &AtomicBool::new(true)).expect_err("the peer does not read");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
}
