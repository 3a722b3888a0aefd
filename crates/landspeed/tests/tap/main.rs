//! `landspeed tap` as it is used: in namespaces whose traffic the test makes itself, and on bad input.

mod bad;
mod ends;
mod own_data;
mod packets;
mod tests_of_runs;

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_sys::clock;
use landspeed_testkit::netns::{Namespace, Veth, veth};
use landspeed_wire::capture::{Next, Reader};
use serde_json::Value;

/// More than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Two namespaces and the link between them.
struct Net {
    left: Namespace,
    right: Namespace,
    link: Veth,
    /// Takes what is sent to its port and reads nothing of it, so that no ICMP message answers.
    _sink: UdpSocket,
}

impl Net {
    /// `left` has 10.91.0.1, `right` 10.91.0.2. The error says what is missing.
    fn new() -> Result<Self, String> {
        let (left, right) = (Namespace::new("left")?, Namespace::new("right")?);
        let link = veth(&left, &right, "10.91.0.1/24", "10.91.0.2/24");
        let sink =
            right.run(|| UdpSocket::bind("0.0.0.0:9")).map_err(|why| format!("no port for datagrams: {why}"))?;
        Ok(Self { left, right, link, _sink: sink })
    }

    /// Sends datagrams of this many payload bytes from left to right, to a port that is never read.
    fn send(&self, count: usize, bytes: usize) {
        self.left.run(|| {
            let socket = UdpSocket::bind("10.91.0.1:0").expect("an address");
            for _ in 0..count {
                socket.send_to(&vec![7; bytes], "10.91.0.2:9").expect("a route");
            }
        });
    }
}

/// A running tap.
struct Running {
    child: Child,
    stderr: Option<JoinHandle<String>>,
    begun: mpsc::Receiver<()>,
}

/// How a tap ended.
struct Ended {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
}

impl Ended {
    /// The document, where it was asked for with `--json -`.
    fn document(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|why| panic!("{why}: {}", self.stderr))
    }
}

/// The program.
fn landspeed() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_landspeed"));
    command.stdin(Stdio::null()).env("NO_COLOR", "1");
    command
}

impl Running {
    /// Starts `tap` in a namespace; it takes packets when this returns.
    fn start(namespace: &Namespace, arguments: &[&str]) -> Self {
        let running = Self::spawn(namespace, landspeed().arg("tap").args(arguments));
        running.begun.recv_timeout(PATIENCE).expect("it begins");
        running
    }

    /// Starts a command that taps.
    fn spawn(namespace: &Namespace, command: &mut Command) -> Self {
        let mut child = namespace
            .run(|| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())
            .expect("the program starts");
        let (ready, begun) = mpsc::channel();
        let errors = child.stderr.take().expect("piped");
        let stderr = std::thread::spawn(move || {
            let mut all = String::new();
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                if line.contains("capturing on") {
                    let _ = ready.send(());
                }
                all.push_str(&line);
                all.push('\n');
            }
            all
        });
        Self { child, stderr: Some(stderr), begun }
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it takes packets.
    fn wait_until_begun(&self) {
        self.begun.recv_timeout(PATIENCE).expect("it begins");
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success(), "{kill}");
    }

    /// Waits for its end.
    fn end(mut self) -> Ended {
        let mut stdout = Vec::new();
        let pipe = self.child.stdout.take();
        let reader = std::thread::spawn(move || {
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_end(&mut stdout);
            }
            stdout
        });
        let deadline_ns = clock::monotonic_ns() + PATIENCE.as_nanos() as u64;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                break status;
            }
            assert!(clock::monotonic_ns() < deadline_ns, "it does not end");
            clock::sleep_until(clock::monotonic_ns() + 5_000_000);
        };
        let stdout = reader.join().expect("it does not panic");
        let stderr = self.stderr.take().expect("once").join().expect("it does not panic");
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ended { code: status.code(), stdout, stderr }
    }

    /// Ends it by SIGINT.
    fn stop(self) -> Ended {
        self.signal("INT");
        self.end()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A frame of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    interface: u32,
    time_ns: u64,
    original: u32,
    data: Vec<u8>,
}

/// Every frame of a pcapng file, and the last counts of its first interface: (received, dropped).
fn read(path: &Path) -> (Vec<Frame>, Option<(u64, u64)>) {
    let bytes = std::fs::read(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let (mut reader, mut rest) = (Reader::new(), &bytes[..]);
    let (mut frames, mut counts) = (Vec::new(), None);
    while !rest.is_empty() {
        let (used, next) = reader.next(rest).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        match next {
            Next::Frame(frame) => frames.push(Frame {
                interface: frame.interface,
                time_ns: frame.time_ns,
                original: frame.original,
                data: frame.data.to_vec(),
            }),
            Next::Statistics(statistics) if statistics.interface == 0 => {
                counts = Some((statistics.received.unwrap_or(0), statistics.dropped.unwrap_or(0)));
            }
            Next::More(_) => panic!("{} ends in the middle of a block", path.display()),
            _ => {}
        }
        rest = &rest[used..];
    }
    (frames, counts)
}

/// A directory of the test's own.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}
