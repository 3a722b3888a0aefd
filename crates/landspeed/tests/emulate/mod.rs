//! `landspeed emulate` from the command line: around commands, as root and as an ordinary user, and between
//! interfaces of a namespace.

mod around;
mod bad;
mod between;
mod kernel;
mod leftovers;
mod peers;
mod squatters;

use std::path::PathBuf;
use std::process::Command;

use landspeed_testkit::netns::Namespace;
use landspeed_testkit::process::{Ended, Process, until};
use serde_json::Value;
use tempfile::TempDir;

/// Timeout of every step here, seconds; allows for a busy machine.
const TIMEOUT_S: u64 = 60;

fn landspeed() -> Command {
    let mut command = crate::common::landspeed();
    command.env("LANDSPEED_ARCHIVE", "off").env_remove("SSH_CONNECTION");
    command
}

/// Creates a path file with one link, in a directory that other users may enter.
fn path_file(link: &str) -> (TempDir, PathBuf) {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).expect("ours");
    let file = directory.path().join("path.toml");
    std::fs::write(&file, format!("name = \"a test\"\n{link}\n")).expect("written");
    (directory, file)
}

/// Reads a certificate and validates it against its schema.
fn certificate(file: &std::path::Path) -> Value {
    let text = std::fs::read_to_string(file).expect("a certificate");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let schema = landspeed_model::schema("emulate").expect("a schema");
    jsonschema::validate(&schema, &document).unwrap_or_else(|why| panic!("{why}"));
    for pointer in
        ["/asked", "/delivered", "/delay_error_ns/p50", "/delay_error_ns/p99", "/delay_error_ns/max", "/invalid"]
    {
        assert!(document.pointer(pointer).is_some(), "{pointer} is pinned");
    }
    document
}

/// Returns an integer of a document, by JSON pointer.
fn number(document: &Value, pointer: &str) -> u64 {
    document.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("no number {pointer} in {document}"))
}

/// Two hosts joined by a middle namespace with the interfaces `m1` and `m2`. Only tests send traffic.
struct Wire {
    left: Namespace,
    middle: Namespace,
    right: Namespace,
}

impl Wire {
    fn new() -> Result<Self, String> {
        let wire =
            Self { left: Namespace::new("left")?, middle: Namespace::new("mid")?, right: Namespace::new("right")? };
        for namespace in [&wire.left, &wire.middle, &wire.right] {
            for every in ["all", "default"] {
                let quiet = format!("/proc/sys/net/ipv6/conf/{every}/disable_ipv6");
                let _ = namespace.run(|| std::fs::write(&quiet, "1"));
            }
        }
        for (host, own, inside, mac) in
            [(&wire.left, "l0", "m1", "02:00:00:00:00:01"), (&wire.right, "r0", "m2", "02:00:00:00:00:02")]
        {
            wire.middle.exec([
                "ip",
                "link",
                "add",
                inside,
                "type",
                "veth",
                "peer",
                "name",
                own,
                "netns",
                host.name(),
            ]);
            wire.middle.exec(["ip", "link", "set", inside, "up"]);
            host.exec(["ip", "link", "set", own, "address", mac, "up"]);
        }
        wire.left.exec(["ip", "address", "add", "10.93.0.1/24", "dev", "l0"]);
        wire.right.exec(["ip", "address", "add", "10.93.0.2/24", "dev", "r0"]);
        wire.left.exec(["ip", "neighbour", "add", "10.93.0.2", "lladdr", "02:00:00:00:00:02", "dev", "l0"]);
        wire.right.exec(["ip", "neighbour", "add", "10.93.0.1", "lladdr", "02:00:00:00:00:01", "dev", "r0"]);
        // The carrier comes up a little later.
        until(TIMEOUT_S, "the links are up", || {
            let links = wire.middle.exec(["ip", "link"]);
            ["m1", "m2"].iter().all(|name| {
                links.lines().any(|line| line.contains(&format!(" {name}@")) && line.contains("state UP"))
            })
        });
        Ok(wire)
    }

    /// Starts `emulate --between m1,m2` and waits until it carries frames.
    fn emulate(&self, file: &std::path::Path, more: &[&str]) -> Process {
        let mut command = landspeed();
        command.arg("emulate").arg(file).args(["--between", "m1,m2"]).args(more);
        let process = self.middle.run(|| Process::start(command));
        until(TIMEOUT_S, "it begins", || process.stderr().contains("asked"));
        process
    }

    /// Runs `emulate --between` until it refuses to start.
    fn refused(&self, file: &std::path::Path, between: &str) -> Ended {
        let mut command = landspeed();
        command.arg("emulate").arg(file).args(["--between", between, "--time", "5s"]);
        self.middle.run(|| Process::start(command)).end(TIMEOUT_S)
    }
}

/// Stops an emulation with SIGINT.
fn stop(process: Process) -> Ended {
    process.signal("INT");
    process.end(TIMEOUT_S)
}

/// Suspends the emulation for 0.6 s (SIGSTOP) during a run.
fn suspend(emulation: &Process, run: &Process) {
    // The run prints a line every second.
    until(TIMEOUT_S, "the run is under way", || {
        run.stdout().lines().filter(|line| line.contains("Mb/s")).count() > 1
    });
    emulation.signal("STOP");
    landspeed_sys::clock::sleep_until(landspeed_sys::clock::monotonic_ns() + 600_000_000);
    emulation.signal("CONT");
}

/// Reads the document of a run of 4 s, which must record the invalid seconds of its path.
fn run_with_invalid_seconds(file: &std::path::Path) -> Value {
    let run: Value = serde_json::from_str(&std::fs::read_to_string(file).expect("a run")).expect("JSON");
    let schema = landspeed_model::schema("run").expect("a schema");
    jsonschema::validate(&schema, &run).unwrap_or_else(|why| panic!("{why}"));
    let emulation = &run["emulation"];
    assert_eq!(emulation["path"]["name"], "a test", "{emulation}");
    assert!(emulation["covered_ns"].as_u64() >= Some(3_900_000_000), "{emulation}");
    assert!(emulation["invalid"].as_array().is_some_and(|spans| !spans.is_empty()), "{emulation}");
    let warnings = run["warnings"].to_string();
    assert!(warnings.contains("emulation-invalid"), "{warnings}");
    run
}

/// Asserts that a run of 4 s records the invalid seconds of its path, and that its verdict names no network
/// cause.
fn assert_no_network_verdict(file: &std::path::Path) {
    let run = run_with_invalid_seconds(file);
    assert_eq!(run["emulation"]["source"], "local");
    let verdict = &run["verdict"];
    let at_hosts = ["sender-cpu", "receiver-cpu", "cpu-quota", "application"];
    let cause = verdict["cause"].as_str().unwrap_or_default();
    assert!(cause == "undetermined" || at_hosts.contains(&cause), "{verdict}");
}
