//! `run --tap`: captures a test on both hosts and analyses the captures.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use landspeed_flow::client::{self, Request, RunEvent, ServerTap};
use landspeed_model::{Direction, ErrorEntry, PathInfo, Protocol, RunDocument, TapDocument};
use landspeed_quote::shell_path;
use landspeed_sys::file;
use landspeed_sys::ring::{Ring, RingOptions};

use crate::tap::attend::{BackgroundCapture, CaptureLimits};

/// Size of the local tap's ring, bytes.
const RING_BYTES: u64 = 32 << 20;

/// Checks that this process may capture, so that a test does not start in vain.
pub fn check_permission() -> Result<(), ErrorEntry> {
    // The loopback interface has index 1 in every network namespace.
    let smallest = RingOptions { ifindex: 1, block_bytes: 4096, blocks: 1, ..RingOptions::default() };
    let Err(error) = Ring::open(&smallest) else { return Ok(()) };
    if error.cause.kind() != io::ErrorKind::PermissionDenied {
        return Ok(());
    }
    let program = std::env::current_exe().unwrap_or_else(|_| "landspeed".into());
    Err(ErrorEntry {
        code: "no-capability".to_owned(),
        message: "cannot capture with --tap: the kernel refuses packet sockets (needs CAP_NET_RAW)".to_owned(),
        advice: Some(format!("run it with sudo, or once: `sudo setcap cap_net_raw+ep {}`", shell_path(program))),
    })
}

/// The captures of a test on both hosts.
pub struct Taps {
    client: PathBuf,
    server: PathBuf,
    client_outcome: Option<Result<TapDocument, String>>,
    server_outcome: Option<Result<u64, String>>,
}

impl Taps {
    /// Derives the file names: `NAME` or `NAME.pcapng` becomes `NAME.client.pcapng` and `NAME.server.pcapng`.
    pub fn new(name: &Path) -> Self {
        let name = if name.extension().is_some_and(|ending| ending == "pcapng") {
            name.with_extension("")
        } else {
            name.to_owned()
        };
        let with = |end: &str| {
            let mut file = name.file_name().unwrap_or_default().to_os_string();
            file.push(format!(".{end}.pcapng"));
            name.with_file_name(file)
        };
        Self { client: with("client"), server: with("server"), client_outcome: None, server_outcome: None }
    }

    /// Runs a test while both hosts capture it.
    pub fn run(
        &mut self,
        request: &Request,
        interrupted: &AtomicBool,
        observe: &mut dyn FnMut(RunEvent<'_>),
    ) -> anyhow::Result<RunDocument> {
        let file = file::create(&self.server).with_context(|| format!("cannot write {}", self.server.display()))?;
        // The server's capture is sent over the same path and must not be in the local capture.
        let stop_client = Arc::new(AtomicBool::new(false));
        let mut fetched = CaptureWriter { file: BufWriter::new(file), started: Arc::clone(&stop_client) };
        let mut tap = ServerTap::new(&mut fetched);
        let mut background = None;
        let mut document = client::run_tapped(
            request,
            interrupted,
            &mut |event| {
                if let RunEvent::Accepted { path, .. } = &event {
                    background.get_or_insert_with(|| self.begin(path, Arc::clone(&stop_client)));
                }
                observe(event);
            },
            Some(&mut tap),
        );
        self.server_outcome = tap.outcome;
        self.client_outcome = background.map(|started| started.and_then(BackgroundCapture::finish));
        if !matches!(self.server_outcome, Some(Ok(bytes)) if bytes > 0) {
            let _ = file::remove(&self.server);
        }
        let ends = [("client", self.client_problem()), ("server", self.server_problem())];
        for (end, problem) in ends {
            if let Some(why) = problem {
                document.warnings.push(landspeed_model::Warning {
                    code: format!("no-{end}-capture"),
                    message: format!("the {end} was not captured: {why}"),
                });
            }
        }
        Ok(document)
    }

    fn begin(&self, path: &PathInfo, stop: Arc<AtomicBool>) -> Result<BackgroundCapture, String> {
        let local = address(&path.client_addr).ok_or("the local address is unknown")?;
        let peer = address(&path.server_addr).ok_or("the server's address is unknown")?;
        let ends = (local, peer, peer.port(), local.port());
        let room = CaptureLimits { most_bytes: None, ring_bytes: RING_BYTES };
        BackgroundCapture::begin(ends, &self.client, room, None, stop)
    }

    fn client_problem(&self) -> Option<String> {
        match &self.client_outcome {
            Some(Ok(_)) => None,
            Some(Err(why)) => Some(why.clone()),
            None => Some("the test did not begin".to_owned()),
        }
    }

    fn server_problem(&self) -> Option<String> {
        match &self.server_outcome {
            Some(Ok(bytes)) if *bytes > 0 => None,
            Some(Ok(_)) => Some("the server sent no packets".to_owned()),
            Some(Err(why)) => Some(why.clone()),
            None => Some("the test did not begin".to_owned()),
        }
    }

    /// Returns the names of the files and the summary of their analysis.
    pub fn summary(&self, document: &RunDocument) -> anyhow::Result<String> {
        let mut page = crate::text::Page::default();
        let mut files = Vec::new();
        if let Some(Ok(tap)) = &self.client_outcome {
            let dropped = if tap.dropped > 0 { format!(", {} dropped", tap.dropped) } else { String::new() };
            page.line("client", &format!("{}: {} packets{dropped}", self.client.display(), tap.written));
            files.push(self.client.clone());
        }
        if self.server_problem().is_none() {
            page.line("server", &self.server.display().to_string());
            files.push(self.server.clone());
        }
        for warning in document.warnings.iter().filter(|warning| warning.code.ends_with("-capture")) {
            page.line("note", &warning.message);
        }
        if files.is_empty() {
            return Ok(page.text);
        }
        if files.len() > 1 && is_udp_over_ipv6(document) {
            // The remote capture contains packets up to the UDP header only, and IPv6 has no identification field: datagrams
            // cannot be distinguished, and all of them would count as lost.
            page.line(
                "note",
                "over IPv6 the datagrams of the two captures cannot be matched; only the local one is analysed",
            );
            files.truncate(1);
        }
        if document.requested.direction == Direction::Download {
            files.reverse();
        }
        page.text.push('\n');
        page.text.push_str(&crate::trace::summary_of(&files)?);
        Ok(page.text)
    }
}

/// Whether the test's datagrams lack an IP identification field.
fn is_udp_over_ipv6(document: &RunDocument) -> bool {
    let server = document.path.as_ref().and_then(|path| address(&path.server_addr));
    matches!(document.requested.protocol, Protocol::Udp | Protocol::UdpRr)
        && server.is_some_and(|server| server.ip().to_canonical().is_ipv6())
}

/// Writes the server's capture to a file while it is received.
struct CaptureWriter {
    file: BufWriter<File>,
    started: Arc<AtomicBool>,
}

impl Write for CaptureWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.started.store(true, Ordering::Relaxed);
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Parses an address from the document, without its zone.
fn address(text: &str) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let (host, port) = text.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']').split('%').next()?;
    Some(SocketAddr::new(host.parse::<IpAddr>().ok()?, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_addresses_are_parsed() {
        let found = |text: &str| address(text).map(|address| (address.ip().to_string(), address.port()));
        assert_eq!(found("10.0.0.1:5210"), Some(("10.0.0.1".to_owned(), 5210)));
        assert_eq!(found("[fe80::1%eth0]:5210"), Some(("fe80::1".to_owned(), 5210)));
        assert_eq!(found("nonsense"), None);
    }

    #[test]
    fn capture_files_are_named_client_and_server() {
        for name in ["/tmp/x", "/tmp/x.pcapng"] {
            let taps = Taps::new(Path::new(name));
            assert_eq!(taps.client, Path::new("/tmp/x.client.pcapng"));
            assert_eq!(taps.server, Path::new("/tmp/x.server.pcapng"));
        }
    }
}
