//! Processes of a test: their output is read continuously, they have a time limit, and none outlives its test.

use std::borrow::BorrowMut;
use std::io::{BufRead as _, BufReader, Read};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use landspeed_sys::clock;

/// Polls every few milliseconds until `holds` returns true.
///
/// # Panics
/// After `seconds`.
pub fn until(seconds: u64, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = clock::monotonic_ns() + seconds * 1_000_000_000;
    while !holds() {
        let now = clock::monotonic_ns();
        assert!(now < deadline, "{seconds} s were not enough for: {what}");
        clock::sleep_until(now + 5_000_000);
    }
}

/// Sends a signal by name (`INT`, `TERM`, `STOP`, `CONT`) to a process.
///
/// # Panics
/// If the signal cannot be sent.
pub fn signal(id: u32, name: &str) {
    let kill = format!("kill -{name} {id}");
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success(), "{kill}");
}

/// Runs every case in its own thread, for cases that mostly wait. A panic in one of them is propagated.
pub fn run_concurrently<T: Send>(cases: impl IntoIterator<Item = T>, run: impl Fn(T) + Sync) {
    let run = &run;
    std::thread::scope(|scope| {
        let threads: Vec<_> = cases.into_iter().map(|case| scope.spawn(move || run(case))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why)));
    });
}

/// Returns a port that is free for TCP and UDP and reserved for this process: it is outside the kernel's
/// ephemeral range, and locked by an abstract socket until the process ends.
///
/// # Panics
/// If no port is free.
pub fn free_port() -> u16 {
    const FIRST: u32 = 10_240;
    const PORTS: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..PORTS {
        let turn = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(std::process::id().wrapping_mul(97));
        let port = (FIRST + turn % PORTS) as u16;
        let name = UnixAddr::from_abstract_name(format!("landspeed-test-port-{port}")).expect("a short name");
        let Ok(reserved) = UnixListener::bind_addr(&name) else { continue };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() && UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            std::mem::forget(reserved);
            return port;
        }
    }
    panic!("no port is free for both TCP and UDP");
}

/// A process whose output is read continuously; killed when dropped.
pub struct Process {
    child: Child,
    out: Arc<Mutex<String>>,
    err: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
    started_ns: u64,
}

/// Result of a finished process.
#[derive(Debug)]
pub struct Ended {
    /// Exit status; 128 + n if it was ended by signal n.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Run time, seconds.
    pub seconds: f64,
}

impl Process {
    /// Starts a command.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(mut command: impl BorrowMut<Command>) -> Self {
        let command = command.borrow_mut();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let (out, err) = (Arc::default(), Arc::default());
        let readers = vec![
            collect_output(child.stdout.take().expect("piped"), Arc::clone(&out)),
            collect_output(child.stderr.take().expect("piped"), Arc::clone(&err)),
        ];
        Self { child, out, err, readers, started_ns: clock::monotonic_ns() }
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its standard output so far.
    ///
    /// # Panics
    /// Never in practice: the reader holds the lock only to append.
    pub fn stdout(&self) -> String {
        self.out.lock().unwrap().clone()
    }

    /// Returns its standard error so far.
    ///
    /// # Panics
    /// As [`Process::stdout`].
    pub fn stderr(&self) -> String {
        self.err.lock().unwrap().clone()
    }

    /// Waits for a line of standard output that contains `words`, and returns the socket address in it.
    ///
    /// # Panics
    /// If there is no such line within a minute.
    pub fn address_in(&self, words: &str) -> SocketAddr {
        let mut address = None;
        until(60, words, || {
            let said = self.stdout();
            let line = said.lines().find(|line| line.contains(words));
            address = line.and_then(|line| line.split_whitespace().find_map(|word| word.parse().ok()));
            address.is_some()
        });
        address.expect("just found")
    }

    /// Sends a signal by name (`INT`, `TERM`, `STOP`, `CONT`).
    ///
    /// # Panics
    /// If the signal cannot be sent.
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Whether it has exited.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until the process exits.
    ///
    /// # Panics
    /// If it takes longer than `seconds`; the process is killed.
    pub fn end(mut self, seconds: u64) -> Ended {
        use std::os::unix::process::ExitStatusExt as _;
        let deadline = clock::monotonic_ns() + seconds * 1_000_000_000;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                break status;
            }
            let now = clock::monotonic_ns();
            assert!(now < deadline, "still running after {seconds} s:\n{}", self.stdout());
            clock::sleep_until(now + 5_000_000);
        };
        let seconds = (clock::monotonic_ns() - self.started_ns) as f64 / 1e9;
        for reader in self.readers.drain(..) {
            reader.join().expect("a reader does not panic");
        }
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ended { code, stdout: self.stdout(), stderr: self.stderr(), seconds }
    }

    /// Returns the current numbers of open descriptors and of threads.
    pub fn resources(&self) -> (usize, usize) {
        let count = |what: &str| std::fs::read_dir(format!("/proc/{}/{what}", self.id())).map_or(0, Iterator::count);
        (count("fd"), count("task"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        // A panic in any thread of the program is a defect, whatever the test is about.
        let said = self.stderr();
        assert!(std::thread::panicking() || !said.contains("panicked"), "{said}");
    }
}

fn collect_output(from: impl Read + Send + 'static, into: Arc<Mutex<String>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            into.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
    })
}
