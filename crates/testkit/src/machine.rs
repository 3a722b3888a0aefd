//! Machines with hardware for tests: QEMU in software, so no privilege and no support of the host's kernel is needed. They
//! boot Debian's kernels with the drivers of real NICs, have NUMA nodes and interrupts, and keep their disk over a
//! reboot. Emulation is slow: settings, counters and behaviour are real, rates and times mean nothing.
//!
//! `cargo xtask machines` downloads what they boot.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use landspeed_sys::{clock, process};
use tempfile::TempDir;

mod initramfs;
mod nic;

use initramfs::TestFile;
pub use nic::Nic;

/// Environment variable with the directory that `cargo xtask machines` fills.
const DIRECTORY_VARIABLE: &str = "LANDSPEED_MACHINES";
/// Time limit of a machine, boots included: below that of a test (`.config/nextest.toml`). A boot takes 10 s, with systemd
/// 40 s; several times as long on a busy host.
const MACHINE_TIMEOUT_NS: u64 = 1_100_000_000_000;
const EMULATOR: &str = "qemu-system-x86_64";
/// Reason for skipping a test.
const NOT_DOWNLOADED: &str = "what machines boot is not downloaded (`cargo xtask machines`)";

/// The Debian suite of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// Linux 5.10.
    Bullseye,
    /// Linux 6.1.
    Bookworm,
    /// The newest kernel of Debian: 7.3 in November 2026.
    Newest,
}

impl Suite {
    fn directory(self) -> &'static str {
        match self {
            Self::Bullseye => "bullseye",
            Self::Bookworm => "bookworm",
            Self::Newest => "trixie-backports",
        }
    }
}

/// A machine to boot: two NUMA nodes, each with a core and 768 MiB of memory, and the NICs that are added. Neither the CPU nor the
/// firmware says that it is virtual, so that a program treats it as hardware.
pub struct Blueprint {
    suite: Suite,
    program: PathBuf,
    nics: Vec<Nic>,
    cores_per_node: u32,
    has_systemd: bool,
    files: Vec<TestFile>,
    kernel_arguments: String,
}

/// Result of a script in a machine.
#[derive(Debug)]
pub struct ScriptOutput {
    /// Exit status.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl ScriptOutput {
    /// Returns the standard output.
    ///
    /// # Panics
    /// If the exit status is another one.
    #[track_caller]
    pub fn expect(self, status: i32) -> String {
        assert_eq!(self.status, status, "{}{}", self.stdout, self.stderr);
        self.stdout
    }
}

impl Blueprint {
    /// Begins a machine with a suite's kernel. `program` is the static `landspeed` that is in its `PATH`.
    pub fn new(suite: Suite, program: &Path) -> Self {
        let program = program.to_owned();
        let (nics, files) = (Vec::new(), Vec::new());
        Self { suite, program, nics, cores_per_node: 1, has_systemd: false, files, kernel_arguments: String::new() }
    }

    /// Adds a NIC. The number of those before it determines its hardware address ([`Machine::interface`]).
    #[must_use]
    pub fn nic(mut self, nic: Nic) -> Self {
        self.nics.push(nic);
        self
    }

    /// Gives it this number of cores on each node. More than one make it slower.
    #[must_use]
    pub fn cores_per_node(mut self, cores: u32) -> Self {
        self.cores_per_node = cores;
        self
    }

    /// Boots Debian's systemd with udev, NetworkManager, ifupdown and systemd-networkd from a disk, instead of a shell.
    #[must_use]
    pub fn systemd(mut self) -> Self {
        self.has_systemd = true;
        self
    }

    /// Adds a file of root with these permissions, before the first boot.
    #[must_use]
    pub fn file(mut self, path: &str, permissions: u32, text: &str) -> Self {
        self.files.push((path.to_owned(), permissions, text.to_owned()));
        self
    }

    /// Adds to the kernel's command line.
    #[must_use]
    pub fn kernel_argument(mut self, argument: &str) -> Self {
        let _ = write!(self.kernel_arguments, " {argument}");
        self
    }

    /// Boots it, and waits until it runs scripts.
    ///
    /// # Errors
    /// What is missing on this host, as a reason for [`skip!`](crate::skip!).
    ///
    /// # Panics
    /// If the machine does not boot, with what it printed.
    pub fn boot(self) -> Result<Machine, String> {
        let downloads = self.downloads()?;
        let directory = tempfile::Builder::new().prefix("landspeed-machine-").tempdir().expect("a directory");
        let suite = downloads.join(self.suite.directory());
        let initrd = directory.path().join("initrd");
        initramfs::write(&initrd, &downloads, self.suite.directory(), &self.program, &self.files)
            .unwrap_or_else(|why| panic!("{}: {why}", initrd.display()));
        let disk = if self.has_systemd { downloads.join("root.img") } else { empty_disk(directory.path()) };
        let mut emulator = nic::emulator(&self.nics, EMULATOR);
        emulator
            .args(["-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max,-hypervisor", "-m", "1536"])
            .args([
                "-smp",
                &format!("{},sockets=2", 2 * self.cores_per_node),
                "-nodefaults",
                "-display",
                "none",
                "-no-user-config",
            ])
            .args(["-serial", "file:console", "-serial", "stdio", "-monitor", "unix:monitor,server=on,wait=off"]);
        for node in 0..2 {
            let (first, next) = (node * self.cores_per_node, (node + 1) * self.cores_per_node);
            emulator.args(["-object", &format!("memory-backend-ram,id=m{node},size=768M")]);
            emulator.args(["-numa", &format!("node,cpus={first}-{},memdev=m{node}", next - 1)]);
        }
        for part in 0..5 {
            emulator
                .arg("-smbios")
                .arg(format!("type={part},{}=Test", if part == 0 { "vendor" } else { "manufacturer" }));
        }
        // Writes go to a file that is removed at once; the machine keeps them over reboots.
        emulator.arg("-drive").arg(format!("file={},format=raw,if=none,id=disk,snapshot=on", disk.display()));
        emulator.args(["-device", "virtio-blk-pci,drive=disk,bus=pcie.0"]);
        nic::arguments(&self.nics, &mut emulator);
        let root = if self.has_systemd { " ls.root" } else { "" };
        emulator
            .arg("-kernel")
            .arg(suite.join("vmlinuz"))
            .arg("-initrd")
            .arg(&initrd)
            .arg("-append")
            .arg(format!("console=ttyS0 quiet{root}{}", self.kernel_arguments));
        emulator.current_dir(directory.path()).env("TMPDIR", directory.path());
        emulator.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = process::start_in_new_group(&mut emulator).spawn().expect("the emulator starts");
        let mut out = child.stdout.take().expect("piped");
        let (send, bytes) = mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while let Ok(count @ 1..) = out.read(&mut buffer) {
                if send.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take().expect("piped");
        let deadline_ns = clock::monotonic_ns() + MACHINE_TIMEOUT_NS;
        let mut machine = Machine { child, input, bytes, received: Vec::new(), scripts: 0, deadline_ns, directory };
        machine.wait_for("LS READY");
        Ok(machine)
    }

    /// Returns the directory with what machines boot, if the emulator is there and the directory has what this one needs.
    fn downloads(&self) -> Result<PathBuf, String> {
        if !cfg!(target_arch = "x86_64") {
            return Err("machines have x86-64 kernels, and the program is of another architecture".into());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        for program in [EMULATOR, "mke2fs"] {
            if !std::env::split_paths(&path).chain(["/sbin".into()]).any(|place| place.join(program).is_file()) {
                return Err(format!("{program} is not installed"));
            }
        }
        nic::check_privileges(&self.nics)?;
        let downloads = std::env::var_os(DIRECTORY_VARIABLE)
            .filter(|value| !value.is_empty())
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/machines"), PathBuf::from);
        let downloads = downloads.canonicalize().map_err(|_| NOT_DOWNLOADED.to_owned())?;
        let kernel = format!("{}/order", self.suite.directory());
        for (name, is_needed) in [(kernel.as_str(), true), ("busybox", true), ("root.img", self.has_systemd)] {
            if is_needed && !downloads.join(name).exists() {
                return Err(format!("{NOT_DOWNLOADED}: {name}"));
            }
        }
        Ok(downloads)
    }
}

/// A running machine; ended when dropped.
pub struct Machine {
    child: Child,
    input: ChildStdin,
    bytes: mpsc::Receiver<Vec<u8>>,
    received: Vec<u8>,
    scripts: u32,
    deadline_ns: u64,
    directory: TempDir,
}

impl Machine {
    /// Runs a shell script as root, without input.
    ///
    /// # Panics
    /// If the machine exceeds its time limit or ends.
    #[track_caller]
    pub fn run(&mut self, script: &str) -> ScriptOutput {
        self.scripts += 1;
        let number = self.scripts;
        write!(self.input, "{}\nLS RUN {number}\n", script.trim_end()).expect("the machine reads");
        self.input.flush().expect("the machine reads");
        let header = self.wait_for(&format!("LS {number} "));
        let numbers: Vec<usize> = header.split(' ').map(|number| number.parse().expect("a number")).collect();
        let [status, out, err] = numbers[..] else { panic!("{header}") };
        let mut text = |count| {
            while self.received.len() < count {
                self.receive("the output of a script");
            }
            String::from_utf8_lossy(&self.received.drain(..count).collect::<Vec<u8>>()).into_owned()
        };
        ScriptOutput { status: i32::try_from(status).expect("a status"), stdout: text(out), stderr: text(err) }
    }

    /// Name of the interface of the NIC that was added as the `number`th, from 0.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn interface(&mut self, number: usize) -> String {
        let address = nic::address(number);
        let files = self.run(&format!("grep -l {address} /sys/class/net/*/address")).expect(0);
        files.split('/').nth(4).expect("a path").to_owned()
    }

    /// Restarts it in order, and waits until it runs scripts.
    ///
    /// # Panics
    /// If it does not.
    pub fn reboot(&mut self) {
        let line = "LS RUN 0";
        writeln!(self.input, "sync; command -v systemctl && systemctl --no-block reboot || reboot -f\n{line}")
            .expect("the machine reads");
        self.wait_for("LS READY");
    }

    /// Restarts it as when the power fails: nothing is written first.
    ///
    /// # Panics
    /// If it does not start again.
    pub fn cut_power(&mut self) {
        let mut monitor = UnixStream::connect(self.directory.path().join("monitor")).expect("the emulator's monitor");
        monitor.write_all(b"system_reset\n").expect("the emulator reads");
        self.wait_for("LS READY");
    }

    /// Returns the rest of the next line that begins with `words`.
    #[track_caller]
    fn wait_for(&mut self, words: &str) -> String {
        loop {
            while let Some(end) = self.received.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                if let Some(rest) = line.trim_end().strip_prefix(words) {
                    return rest.to_owned();
                }
            }
            self.receive(words);
        }
    }

    /// Waits for bytes; looks for the end of the machine meanwhile.
    #[track_caller]
    fn receive(&mut self, what: &str) {
        let why = loop {
            match self.bytes.recv_timeout(Duration::from_secs(1)) {
                Ok(bytes) => return self.received.extend(bytes),
                Err(mpsc::RecvTimeoutError::Disconnected) => break "it ended",
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            if self.console().contains("Kernel panic") {
                break "its kernel panicked";
            }
            if clock::monotonic_ns() > self.deadline_ns {
                break "it took too long";
            }
        };
        panic!("no `{what}` from the machine: {why}; its console:\n{}", self.console());
    }

    /// Returns what it printed on its console.
    pub fn console(&self) -> String {
        let console = std::fs::read(self.directory.path().join("console")).unwrap_or_default();
        String::from_utf8_lossy(&console).into_owned()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        process::kill_group(self.child.id(), true);
        let _ = self.child.wait();
    }
}

/// Makes an empty file system for a machine without systemd.
fn empty_disk(directory: &Path) -> PathBuf {
    let disk = directory.join("disk");
    let made = Command::new("/sbin/mke2fs").args(["-q", "-t", "ext4"]).arg(&disk).arg("64M").output();
    assert!(made.expect("mke2fs runs").status.success());
    disk
}
