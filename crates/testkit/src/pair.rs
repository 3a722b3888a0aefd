//! The real program at both ends of a path: a server that stays, and runs against it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use landspeed_sys::thread;
use serde_json::Value;

use crate::netns::Namespace;
use crate::process::{Process, free_port};

/// Measurements beside each other measure each other: one pair at a time in a test process.
static ALONE: Mutex<()> = Mutex::new(());

/// Longest run, seconds; one that hangs fails its test instead of holding up all others.
const LONGEST_S: &str = "60";

/// A server, and where its clients run. Dropping it ends the server.
pub struct Pair {
    program: PathBuf,
    client: Option<String>,
    target: String,
    server: Process,
    documents: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Pair {
    /// Both ends on this machine's loopback. `program` is the landspeed to run (`CARGO_BIN_EXE_landspeed`), unless the
    /// environment's `LANDSPEED_BINARY` names another.
    pub fn on_loopback(program: &str) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Self::start(program, None, &format!("127.0.0.1:{}", free_port()), &[], alone)
    }

    /// The server in `right`, which has `address`; clients in `left`.
    pub fn across(program: &str, left: &Namespace, right: &Namespace, address: &str) -> Self {
        Self::across_with(program, left, right, address, &[])
    }

    /// The same with more options of the server.
    pub fn across_with(program: &str, left: &Namespace, right: &Namespace, address: &str, options: &[&str]) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Self::start(program, Some((left.name(), right.name())), &format!("{address}:5210"), options, alone)
    }

    fn start(
        program: &str,
        names: Option<(&str, &str)>,
        target: &str,
        options: &[&str],
        alone: MutexGuard<'static, ()>,
    ) -> Self {
        let program = std::env::var_os("LANDSPEED_BINARY").map_or_else(|| PathBuf::from(program), PathBuf::from);
        let mut server = command(&program, names.map(|(_, right)| right));
        let server = Process::start(server.args(["serve", "--listen", target]).args(options));
        server.address_in("listening");
        Self {
            program,
            client: names.map(|(left, _)| left.to_owned()),
            target: target.to_owned(),
            server,
            documents: tempfile::tempdir().expect("a place for documents"),
            _alone: alone,
        }
    }

    /// Where the server listens.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The server's process.
    pub fn server_id(&self) -> u32 {
        self.server.id()
    }

    /// Starts `landspeed run` with `arguments` (separated by blanks): a process to watch, to stop and to continue.
    pub fn start_run(&self, arguments: &str) -> Process {
        let mut client = command(&self.program, self.client.as_deref());
        client.args(["run", &self.target]).args(arguments.split_ascii_whitespace());
        Process::start(client)
    }

    /// Runs `landspeed run` with `arguments` (separated by blanks) and returns its document.
    ///
    /// # Panics
    /// If it leaves none.
    pub fn run(&self, arguments: &str) -> Value {
        self.run_to(&self.target, arguments)
    }

    /// The same by another address, as that of a relay before the server.
    ///
    /// # Panics
    /// If it leaves no document.
    pub fn run_to(&self, target: &str, arguments: &str) -> Value {
        let path = self.documents.path().join("run.json");
        let output = command(Path::new("timeout"), self.client.as_deref())
            .args(["--kill-after=5", LONGEST_S])
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

/// A command, in a namespace (with that namespace's /sys) or here.
fn command(program: &Path, namespace: Option<&str>) -> Command {
    let Some(name) = namespace else { return Command::new(program) };
    let mut command = Command::new("ip");
    command.args(["netns", "exec", name]).arg(program);
    command
}

/// Something that keeps a core busy until it is dropped.
pub struct Burden {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Burden {
    /// So many busy loops on `core`, each as entitled to it as what is measured.
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

impl Drop for Burden {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
