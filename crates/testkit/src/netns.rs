//! Test networks: namespaces connected by veth links, removed at the end of the test, also on panic.
//!
//! ```no_run
//! use landspeed_testkit::netns::{Namespace, veth};
//! # fn example() {
//! let left = landspeed_testkit::or_skip!(Namespace::new("left"));
//! let right = landspeed_testkit::or_skip!(Namespace::new("right"));
//! let link = veth(&left, &right, "10.9.0.1/24", "10.9.0.2/24");
//! left.exec(["ip", "link", "set", &link.a, "mtu", "9000"]);
//! right.nft("table inet t { chain c { type filter hook input priority 0; meta length > 1400 drop; } }");
//! let reached = left.run(|| std::net::TcpStream::connect("10.9.0.2:80").is_ok());
//! # }
//! ```
//!
//! Needs root and iproute2 (and nftables for [`Namespace::nft`]). [`Namespace::new`] returns what is missing; all
//! other functions panic on failure, as test set-up should.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use landspeed_sys::netns;

/// Prefix of all names, which identifies leftovers of killed tests.
const MARK: &str = "lstest";
const DIRECTORY: &str = "/run/netns";

static NUMBER: AtomicU32 = AtomicU32::new(0);
static SWEEP: Once = Once::new();

/// A new network namespace with loopback up. Dropping it removes it and all its links.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Creates a namespace; `prefix` is part of its name. The error says what is missing.
    pub fn new(prefix: &str) -> Result<Self, String> {
        SWEEP.call_once(remove_leftovers);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{MARK}-{}-{number}-{prefix}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).output();
        let made = made.map_err(|why| format!("network namespaces need iproute2: cannot run ip: {why}"))?;
        if !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr).trim().to_owned();
            return Err(format!("no privilege for a network namespace: {why}"));
        }
        let namespace = Self { name };
        // Addresses (including link-local ones) are usable at once instead of after duplicate address detection. A
        // kernel without IPv6 has no such parameter.
        for every in ["all", "default"] {
            let detection = format!("/proc/sys/net/ipv6/conf/{every}/accept_dad");
            let _ = namespace.enter(|| std::fs::write(detection, "0"));
        }
        namespace.enter(|| netns::bring_up("lo")).and_then(|up| up).map_err(|why| format!("no loopback: {why}"))?;
        Ok(namespace)
    }

    /// Returns its name, as listed by `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` on a thread in the namespace and waits for it. Sockets created there stay in the namespace;
    /// threads and processes that it starts begin there. A panic is propagated to the caller.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.enter(work).unwrap_or_else(|why| panic!("cannot enter namespace {}: {why}", self.name))
    }

    /// Runs a command in the namespace and returns its output.
    ///
    /// # Panics
    /// If it cannot be started or fails; the message contains its standard error.
    pub fn exec<S: AsRef<OsStr>>(&self, command: impl IntoIterator<Item = S>) -> String {
        self.pipe(command, "")
    }

    /// Loads nftables rules. They are active when this returns.
    ///
    /// # Panics
    /// If nft is missing or rejects them.
    pub fn nft(&self, rules: &str) {
        self.pipe(["nft", "-f", "-"], rules);
    }

    /// Sets a sysctl: `ns.sysctl("net.ipv4.ip_forward", "1")`.
    pub fn sysctl(&self, name: &str, value: &str) {
        let path = PathBuf::from("/proc/sys").join(name.replace('.', "/"));
        self.run(|| std::fs::write(&path, value)).unwrap_or_else(|why| panic!("cannot set {name} to {value}: {why}"));
    }

    /// Enables IPv4 and IPv6 forwarding.
    pub fn forward(&self) {
        self.sysctl("net.ipv4.ip_forward", "1");
        self.sysctl("net.ipv6.conf.all.forwarding", "1");
    }

    fn pipe<S: AsRef<OsStr>>(&self, command: impl IntoIterator<Item = S>, input: &str) -> String {
        let words: Vec<_> = command.into_iter().map(|word| word.as_ref().to_owned()).collect();
        let shown = words.join(OsStr::new(" ")).to_string_lossy().into_owned();
        let output = self.run(|| {
            let (program, arguments) = words.split_first().expect("a command");
            let mut child = Command::new(program)
                .args(arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()?;
            // A program that does not read its input reports failure by its exit status.
            let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
            child.wait_with_output()
        });
        let output = output.unwrap_or_else(|why| panic!("cannot run {shown}: {why}"));
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{shown} in {}: {}", self.name, complaint.trim());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
        let path = Path::new(DIRECTORY).join(&self.name);
        // Named like the test's own thread, so that a skip on this thread still names the test.
        let thread =
            std::thread::Builder::new().name(std::thread::current().name().unwrap_or("namespace").to_owned());
        std::thread::scope(|scope| {
            let work = || netns::enter(File::open(&path)?.as_fd()).map(|()| work());
            let thread = thread.spawn_scoped(scope, work)?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Names of a link's two interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Veth {
    /// Interface in the first namespace.
    pub a: String,
    /// Interface in the second namespace.
    pub b: String,
}

/// Connects two namespaces by a veth link, both interfaces up, each with an address (`10.9.0.1/24`,
/// `fd09::1/64`). For a second address: `ns.exec(["ip", "address", "add", …, "dev", &link.a])` or [`address`].
///
/// # Panics
/// If the kernel rejects it.
pub fn veth(a: &Namespace, b: &Namespace, address_a: &str, address_b: &str) -> Veth {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let link = Veth { a: format!("ve{number}a"), b: format!("ve{number}b") };
    a.exec(["ip", "link", "add", &link.a, "type", "veth", "peer", "name", &link.b, "netns", b.name()]);
    for (namespace, interface, with) in [(a, &link.a, address_a), (b, &link.b, address_b)] {
        address(namespace, interface, with);
        namespace.exec(["ip", "link", "set", interface, "up"]);
    }
    link
}

/// Adds an address to an interface, usable at once (no duplicate address detection).
pub fn address(namespace: &Namespace, interface: &str, address: &str) {
    let mut command = vec!["ip", "address", "add", address, "dev", interface];
    if address.contains(':') {
        command.push("nodad");
    }
    namespace.exec(command);
}

fn remove(name: &str) {
    // Failures are ignored, as this may run while unwinding; the next test process removes leftovers.
    let _ = Command::new("ip").args(["netns", "delete", name]).output();
}

/// Removes namespaces of test processes that no longer exist (killed tests).
fn remove_leftovers() {
    let Ok(entries) = std::fs::read_dir(DIRECTORY) else { return };
    for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let owner =
            name.strip_prefix(MARK).and_then(|rest| rest.strip_prefix('-')).and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists()) {
            remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn two_namespaces_reach_each_other_over_their_link_only() {
        let a = crate::or_skip!(Namespace::new("a"));
        let b = crate::or_skip!(Namespace::new("b"));
        let link = veth(&a, &b, "10.98.0.1/24", "10.98.0.2/24");
        address(&b, &link.b, "fd98::2/64");
        let there = b.run(|| UdpSocket::bind("10.98.0.2:0")).expect("its address");
        let here = a.run(|| UdpSocket::bind("10.98.0.1:0")).expect("its address");
        here.send_to(b"hello", there.local_addr().expect("bound")).expect("a route");
        assert_eq!(there.recv(&mut [0; 8]).expect("it arrives"), 5);
        assert!(UdpSocket::bind("10.98.0.1:0").is_err(), "nothing of it is outside");
    }

    #[test]
    fn namespace_is_removed_after_a_panic() {
        let namespace = crate::or_skip!(Namespace::new("panics"));
        let path = Path::new(DIRECTORY).join(namespace.name());
        assert!(path.exists());
        let outcome = catch_unwind(AssertUnwindSafe(move || namespace.run(|| panic!("on purpose"))));
        assert!(outcome.is_err(), "the panic comes through");
        assert!(!path.exists(), "and the namespace is gone");
    }

    #[test]
    fn failed_commands_panic_with_their_error() {
        let namespace = crate::or_skip!(Namespace::new("fails"));
        let outcome = catch_unwind(AssertUnwindSafe(|| namespace.exec(["ip", "link", "show", "nosuch0"])));
        let message = *outcome.expect_err("no such link").downcast::<String>().expect("a message");
        assert!(message.contains("nosuch0"), "{message}");
    }
}
