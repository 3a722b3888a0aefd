//! Status of an emulated path, for programs that measure over it: by an abstract socket of the network
//! namespace, named after the interface that leads into the path, or in band. The socket needs no environment
//! variable and disappears with the process.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_emulation::LoadedPath;
use landspeed_model::{EmulatePlacement, EmulationStatus};
use landspeed_sys::tun::wait_readable;

use crate::certificate::emulated;
use crate::error::EmulateError;
use crate::in_band::InBand;
use crate::live::Live;

/// Read and write timeout of both sides.
const IO_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum size of a reply, bytes.
const MAX_REPLY_BYTES: u64 = 16 << 20;
/// Maximum wait between checks of the stop flag, nanoseconds.
const STOP_CHECK_NS: u64 = 50_000_000;

fn address(ifindex: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("landspeed-emulate-status-{ifindex}"))
}

/// Listens for status requests at an interface of the calling thread's network namespace.
pub(crate) fn listen(ifindex: u32) -> Result<UnixListener, EmulateError> {
    let listen = || {
        let listener = UnixListener::bind_addr(&address(ifindex)?)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().map_err(EmulateError::system("listen for status requests"))
}

/// Source of status requests.
pub enum StatusRequests {
    /// Abstract sockets, one for each interface that leads into the path.
    AbstractSockets(Vec<UnixListener>),
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
        StatusRequests::AbstractSockets(listeners) => {
            let (Some(first), Some(last)) = (listeners.first(), listeners.last()) else { return };
            while !stop.load(Ordering::Relaxed) {
                wait_readable([first.as_fd(), last.as_fd()], STOP_CHECK_NS);
                for listener in &listeners {
                    if let Ok((stream, _)) = listener.accept() {
                        // A client that does not read gets no reply.
                        let _ = send_status(&stream, &status());
                    }
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

fn send_status(mut stream: &UnixStream, status: &EmulationStatus) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    stream.write_all(&serde_json::to_vec(status)?)
}

/// Requests the status of the emulation at an interface of the calling thread's network namespace; `None` if there is none.
pub fn request_status(ifindex: u32) -> Option<EmulationStatus> {
    let stream = UnixStream::connect_addr(&address(ifindex).ok()?).ok()?;
    stream.set_read_timeout(Some(IO_TIMEOUT)).ok()?;
    let mut text = Vec::new();
    stream.take(MAX_REPLY_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use landspeed_model::{EmulateSecond, InvalidReason, InvalidSecond};

    use super::*;

    #[test]
    fn status_reports_invalid_seconds_so_far() {
        let text = "name = \"a path\"\n[[link]]\nrate = \"1G\"\n";
        let path = landspeed_emulation::load(text, &mut |_| Err(String::new())).unwrap_or_else(|e| panic!("{e}"));
        let placement =
            EmulatePlacement::Peers { interface: "eth0".to_owned(), peers: vec!["192.0.2.1/32".to_owned()] };
        // No interface has this index; it differs between concurrent tests.
        let ifindex = u32::MAX - std::process::id();
        assert_eq!(request_status(ifindex), None);
        let requests = StatusRequests::AbstractSockets(vec![listen(ifindex).expect("an abstract socket")]);
        let (live, stop) = (Live::default(), AtomicBool::new(false));
        live.begin(5);
        let invalid = InvalidSecond { second: 0, reasons: vec![InvalidReason::Late], message: "late".to_owned() };
        live.add(EmulateSecond::default(), vec![invalid.clone()], 1_000_000_000);
        let status = std::thread::scope(|scope| {
            scope.spawn(|| serve_status(requests, &path, &placement, &live, &stop));
            let status = request_status(ifindex);
            stop.store(true, Ordering::Relaxed);
            status.expect("a reply")
        });
        assert_eq!((status.start_unix_ns, status.elapsed_ns), (5, 1_000_000_000));
        assert_eq!((status.path.name.as_str(), status.invalid), ("a path", vec![invalid]));
        assert_eq!(status.placement, placement);
    }
}
