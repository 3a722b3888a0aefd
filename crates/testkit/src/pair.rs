//! The real program on both sides of a path: a running server, and clients that test against it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use landspeed_sys::thread;
use serde_json::Value;

use crate::netns::Namespace;
use crate::process::{Process, free_port};

/// Concurrent measurements would disturb each other: one pair at a time in a test process.
static ONE_PAIR_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Maximum duration of a run, seconds; a run that hangs fails its test instead of blocking the others.
const MAX_RUN_S: &str = "60";

/// A server, and the namespace of its clients. Dropping it stops the server.
pub struct Pair {
    program: PathBuf,
    client: Option<String>,
    target: String,
    server: Process,
    documents: tempfile::TempDir,
    _guard: MutexGuard<'static, ()>,
}

impl Pair {
    /// Server and clients on this machine's loopback. `program` is the landspeed binary (`CARGO_BIN_EXE_landspeed`),
    /// unless the environment variable `LANDSPEED_BINARY` names another.
    pub fn on_loopback(program: impl AsRef<Path>) -> Self {
        let guard = ONE_PAIR_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Self::start(program, None, &format!("127.0.0.1:{}", free_port()), &[], guard)
    }

    /// Server in `right`, which has `address`; clients in `left`.
    pub fn across(program: impl AsRef<Path>, left: &Namespace, right: &Namespace, address: &str) -> Self {
        Self::across_with(program, left, right, address, &[])
    }

    /// Like [`Pair::across`], with additional server options.
    pub fn across_with(
        program: impl AsRef<Path>,
        left: &Namespace,
        right: &Namespace,
        address: &str,
        options: &[&str],
    ) -> Self {
        let guard = ONE_PAIR_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Self::start(program, Some((left.name(), right.name())), &format!("{address}:5210"), options, guard)
    }

    fn start(
        program: impl AsRef<Path>,
        names: Option<(&str, &str)>,
        target: &str,
        options: &[&str],
        guard: MutexGuard<'static, ()>,
    ) -> Self {
        let program = std::env::var_os("LANDSPEED_BINARY").map_or_else(|| program.as_ref().to_owned(), PathBuf::from);
        let mut server = command(&program, names.map(|(_, right)| right));
        let server = Process::start(server.args(["serve", "--listen", target]).args(options));
        server.address_in("listening");
        Self {
            program,
            client: names.map(|(left, _)| left.to_owned()),
            target: target.to_owned(),
            server,
            documents: tempfile::tempdir().expect("a place for documents"),
            _guard: guard,
        }
    }

    /// Returns the address on which the server listens.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the process id of the server.
    pub fn server_id(&self) -> u32 {
        self.server.id()
    }

    /// Starts `landspeed run` with `arguments` (separated by blanks) and returns the process, for tests that
    /// observe, stop or continue it.
    pub fn start_run(&self, arguments: &str) -> Process {
        let mut client = command(&self.program, self.client.as_deref());
        client.args(["run", &self.target]).args(arguments.split_ascii_whitespace());
        Process::start(client)
    }

    /// Runs `landspeed run` with `arguments` (separated by blanks) and returns its document.
    ///
    /// # Panics
    /// If it writes no document.
    pub fn run(&self, arguments: &str) -> Value {
        self.run_to(&self.target, arguments)
    }

    /// Like [`Pair::run`], to another address, such as that of a relay in front of the server.
    ///
    /// # Panics
    /// If it writes no document.
    pub fn run_to(&self, target: &str, arguments: &str) -> Value {
        let path = self.documents.path().join("run.json");
        let output = command(Path::new("timeout"), self.client.as_deref())
            .args(["--kill-after=5", MAX_RUN_S])
            .arg(&self.program)
            .args(["run", target, "--json"])
            .arg(&path)
            .args(arguments.split_ascii_whitespace())
            .output()
            .expect("coreutils' timeout runs");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(&path);
        serde_json::from_str(&text).unwrap_or_else(|why| {
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            panic!("no document of `run {arguments}`: {why}\n{out}{err}")
        })
    }
}

/// Returns a command that runs in a namespace (with that namespace's /sys), or in this one.
fn command(program: &Path, namespace: Option<&str>) -> Command {
    let Some(name) = namespace else { return Command::new(program) };
    let mut command = Command::new("ip");
    command.args(["netns", "exec", name]).arg(program);
    command
}

/// A load on a core; ends when dropped.
pub struct CpuLoad {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl CpuLoad {
    /// Starts `loops` busy loops on `core`, at the same priority as the measured program.
    pub fn on(core: u32, loops: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..loops)
            .map(|_| {
                let stop = Arc::clone(&stop);
                std::thread::spawn(move || {
                    let _ = thread::pin_to_core(core);
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                })
            })
            .collect();
        Self { stop, threads }
    }
}

impl Drop for CpuLoad {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
