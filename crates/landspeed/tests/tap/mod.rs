//! `landspeed tap` from the command line: in namespaces with traffic of the test only, and with invalid
//! options.

mod bad;
mod ends;
mod multipath;
mod own_data;
mod packets;
mod tests_of_runs;

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;

use landspeed_testkit::netns::{Namespace, Veth, veth};
use landspeed_testkit::process::{Ended, Process, until};
use landspeed_wire::capture::{CaptureItem, Reader};
use serde_json::Value;

use crate::common::landspeed;

/// Timeout of every step here, seconds; allows for a busy machine.
const TIMEOUT_S: u64 = 60;

/// Two namespaces and the link between them.
struct NamespacePair {
    left: Namespace,
    right: Namespace,
    link: Veth,
    /// Link-layer address of `right`.
    right_mac: String,
    /// Receives the test's datagrams without reading them, so that no ICMP error is sent.
    _sink: UdpSocket,
}

impl NamespacePair {
    /// `left` has 10.91.0.1, `right` 10.91.0.2. The error names what is missing.
    fn new() -> Result<Self, String> {
        let (left, right) = (Namespace::new("left")?, Namespace::new("right")?);
        let link = veth(&left, &right, "10.91.0.1/24", "10.91.0.2/24");
        let sink =
            right.run(|| UdpSocket::bind("0.0.0.0:9")).map_err(|why| format!("no port for datagrams: {why}"))?;
        let shown = right.exec(["ip", "-o", "link", "show", "dev", &link.b]);
        let mut words = shown.split_whitespace().skip_while(|&word| word != "link/ether");
        let right_mac = words.nth(1).ok_or_else(|| format!("no address in `{shown}`"))?.to_owned();
        Ok(Self { left, right, link, right_mac, _sink: sink })
    }

    /// Sends `count` datagrams of this payload size from left to right, to a socket that is never read.
    fn send(&self, count: usize, bytes: usize) {
        // Without ARP, each datagram has left when its system call returns.
        let neighbour = ["ip", "neigh", "replace", "10.91.0.2", "lladdr", &self.right_mac, "nud", "permanent", "dev"];
        self.left.exec(neighbour.into_iter().chain([self.link.a.as_str()]));
        self.left.run(|| {
            let socket = UdpSocket::bind("10.91.0.1:0").expect("an address");
            for _ in 0..count {
                socket.send_to(&vec![7; bytes], "10.91.0.2:9").expect("a route");
            }
        });
    }
}

/// Starts `tap` in a namespace and waits until it captures.
fn start(namespace: &Namespace, arguments: &[&str]) -> Process {
    let tap = spawn(namespace, landspeed().arg("tap").args(arguments));
    wait_until_capturing(&tap);
    tap
}

/// Starts a command in a namespace.
fn spawn(namespace: &Namespace, command: &mut Command) -> Process {
    namespace.run(|| Process::start(command))
}

/// Waits until a tap captures.
fn wait_until_capturing(tap: &Process) {
    until(TIMEOUT_S, "it begins", || tap.stderr().contains("capturing on"));
}

/// Stops a tap with SIGINT.
fn stop(tap: Process) -> Ended {
    tap.signal("INT");
    tap.end(TIMEOUT_S)
}

/// Parses the document of a tap with `--json -`.
fn document(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|why| panic!("{why}: {}", ended.stderr))
}

/// Starts `serve` in the right namespace and waits until `at` is reachable from the left one.
fn serve(net: &NamespacePair, at: SocketAddr, options: &[&str]) -> Process {
    let server = spawn(&net.right, landspeed().arg("serve").args(options));
    until(TIMEOUT_S, "the server", || net.left.run(|| TcpStream::connect(at).is_ok()));
    server
}

/// A frame of a capture file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    interface: u32,
    time_ns: u64,
    original: u32,
    data: Vec<u8>,
}

/// Reads all frames of a pcapng file, and the last counters of its first interface: (received, dropped).
fn read(path: &Path) -> (Vec<Frame>, Option<(u64, u64)>) {
    let bytes = std::fs::read(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let (mut reader, mut rest) = (Reader::new(), &bytes[..]);
    let (mut frames, mut counts) = (Vec::new(), None);
    while !rest.is_empty() {
        let (used, next) = reader.next(rest).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        match next {
            CaptureItem::Frame(frame) => frames.push(Frame {
                interface: frame.interface,
                time_ns: frame.time_ns,
                original: frame.original,
                data: frame.data.to_vec(),
            }),
            CaptureItem::Statistics(statistics) if statistics.interface == 0 => {
                counts = Some((statistics.received.unwrap_or(0), statistics.dropped.unwrap_or(0)));
            }
            CaptureItem::More(_) => panic!("{} ends in the middle of a block", path.display()),
            _ => {}
        }
        rest = &rest[used..];
    }
    (frames, counts)
}

/// A temporary directory.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}
