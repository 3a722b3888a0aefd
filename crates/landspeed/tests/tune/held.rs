//! Changes held for a measurement, on this host and on a server: whichever process ends, and however, both
//! hosts are restored byte for byte.

use std::path::{Path, PathBuf};
use std::process::Command;

use landspeed_testkit::netns::{Namespace, veth};
use landspeed_testkit::or_skip;
use landspeed_testkit::process::Process;

use crate::common::{chosen_program, in_namespace};
use crate::tune::bench::{Bench, alive, output_text, signal, wait_until};

/// Changes of the server's host.
const CHANGES: &[&str] = &["--set", "net.ipv4.tcp_rmem=4096 65536 33554432", "--set", "v0:qdisc=pfifo limit 77"];
const SERVER: &str = "10.99.0.2";

/// The server's host (a bench) and the client's.
struct TestHosts {
    server: Bench,
    client: Namespace,
    states: [PathBuf; 2],
}

impl TestHosts {
    fn new() -> Result<Self, String> {
        let server = Bench::new()?;
        let client = Namespace::new("client")?;
        veth(&client, &server.namespace, "10.99.0.1/24", "10.99.0.2/24");
        let state = |inode: &str| {
            let inode: String = inode.chars().filter(char::is_ascii_digit).collect();
            Path::new("/run/landspeed/held").join(inode)
        };
        let link = "readlink /proc/self/ns/net";
        let states = [state(&server.shell(link)), state(&client.exec(["sh", "-c", link]))];
        wait_until("the link is up", || !server.shell("ip address show").contains("tentative"));
        Ok(Self { server, client, states })
    }

    /// Starts a server and waits until it listens.
    fn serve(&self, options: &[&str]) -> Process {
        let arguments = [&["serve", "--no-iperf3", "--listen", "10.99.0.2:5210"], options].concat();
        let server = Process::start(command_in_namespace(&self.server.namespace, &arguments));
        wait_until("the server listens", || server.stdout().contains("listening on"));
        server
    }

    fn serve_changes(&self) -> Process {
        self.serve(&["--allow-host-changes"])
    }

    /// Starts `tune hold` for changes of the server's host.
    fn hold(&self, changes: &[&str]) -> Process {
        Process::start(command_in_namespace(&self.client, &[&["tune", "hold", "--server", SERVER], changes].concat()))
    }

    /// As [`Self::hold`], and waits until the changes are applied.
    fn held(&self, changes: &[&str]) -> Process {
        let client = self.hold(changes);
        wait_until("changes are held", || client.stdout().contains("\nheld: ") || !client.stderr().is_empty());
        assert_eq!(client.stderr(), "");
        client
    }

    /// Asserts that the changes are applied on the server's host.
    fn assert_changed(&self) {
        assert_eq!(self.server.shell("cat /proc/sys/net/ipv4/tcp_rmem").trim(), "4096\t65536\t33554432");
        let qdiscs = self.server.shell("tc qdisc show dev v0");
        assert!(qdiscs.contains("pfifo") && qdiscs.contains("limit 77p"), "{qdiscs}");
    }

    /// Process ids of the watchdogs on the server's host.
    fn watchdogs(&self) -> Vec<u32> {
        watchdogs(&self.states[0])
    }
}

/// Process ids of the watchdogs of a state directory.
fn watchdogs(state: &Path) -> Vec<u32> {
    let state = state.to_string_lossy().into_owned();
    let all = std::fs::read_dir("/proc").expect("processes").flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("watchdog") && line.contains(state.as_str())
    })
    .collect()
}

impl Drop for TestHosts {
    fn drop(&mut self) {
        // A watchdog exits with its transaction; that of a failed test would keep the namespaces.
        for state in &self.states {
            for id in watchdogs(state) {
                signal(id, "KILL");
            }
            let _ = std::fs::remove_dir_all(state);
        }
    }
}

/// The program in a network namespace, as if it were not started over SSH.
fn command_in_namespace(namespace: &Namespace, arguments: &[&str]) -> Command {
    let mut command = in_namespace(namespace, arguments);
    command.env("NO_COLOR", "1").env_remove("SSH_CONNECTION");
    command
}

/// State letters of a process's children.
fn children(process: u32) -> Vec<char> {
    let text = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|id| crate::tune::bench::state_of(id.parse().ok()?)).collect()
}

#[test]
fn killed_client_restores_the_server_host() {
    let two = or_skip!(TestHosts::new());
    let before = two.server.snapshot();
    let server = two.serve_changes();
    let mut client = two.held(CHANGES);
    two.assert_changed();
    client.kill();
    wait_until("the server rolls back", || server.stdout().contains("rolled back"));
    two.server.snapshot().must_equal(&before, &"the client was killed");
    // The server logs each change and the reason for its end.
    let log = server.stdout();
    assert!(log.contains("net.ipv4.tcp_rmem: ") && log.contains(" -> 4096 65536 33554432"), "{log}");
    assert!(log.contains("v0 qdisc: ") && log.contains("lost the connection"), "{log}");
    wait_until("no zombie is left", || children(server.id()).iter().all(|&state| state != 'Z'));
    // The next client is allowed to change the host.
    let client = two.held(CHANGES);
    client.signal("INT");
    let ended = client.end(30);
    assert!(ended.code == 0 && ended.stdout.ends_with("rolled back\n"), "{ended:?}");
    two.server.snapshot().must_equal(&before, &"the client was interrupted");
}

#[test]
fn killed_server_restores_its_host() {
    let two = or_skip!(TestHosts::new());
    let before = two.server.snapshot();
    let mut server = two.serve_changes();
    let client = two.held(CHANGES);
    two.assert_changed();
    assert_eq!(two.watchdogs().len(), 1);
    server.kill();
    wait_until("the watchdog ends", || two.watchdogs().is_empty());
    two.server.snapshot().must_equal(&before, &"the server was killed");
    client.signal("INT");
    let ended = client.end(30);
    assert!(ended.code == 2 && ended.stderr.contains("lost the connection"), "{ended:?}");
}

#[test]
fn a_stopped_server_rolls_back_first() {
    let two = or_skip!(TestHosts::new());
    let before = two.server.snapshot();
    let server = two.serve_changes();
    let _client = two.held(CHANGES);
    server.signal("TERM");
    let ended = server.end(30);
    assert!(ended.code == 0 && ended.stdout.contains("rolled back"), "{ended:?}");
    two.server.snapshot().must_equal(&before, &"the server was stopped");
}

#[test]
fn next_server_restores_the_host_after_a_crash() {
    let two = or_skip!(TestHosts::new());
    let before = two.server.snapshot();
    let mut server = two.serve_changes();
    let mut client = two.held(CHANGES);
    for id in two.watchdogs() {
        signal(id, "KILL");
        wait_until("the watchdog is gone", || !alive(id));
    }
    server.kill();
    client.kill();
    two.assert_changed();
    let _server = two.serve_changes();
    two.server.snapshot().must_equal(&before, &"server and watchdog were killed");
}

#[test]
fn a_server_without_permission_changes_nothing() {
    let two = or_skip!(TestHosts::new());
    let before = two.server.snapshot();
    let _server = two.serve(&[]);
    let ended = two.hold(CHANGES).end(30);
    assert!(ended.code == 2 && ended.stderr.contains("--allow-host-changes"), "{ended:?}");
    two.server.snapshot().must_equal(&before, &"not permitted");
}

#[test]
fn invalid_settings_are_refused_without_changes() {
    let two = or_skip!(TestHosts::new());
    let before = two.server.snapshot();
    let server = two.serve_changes();
    for (setting, name) in [
        // Settings of the second attack (issue 29).
        ("net.ipv4.tcp_fastopen=1539", "net.ipv4.tcp_fastopen"),
        ("net.ipv4.tcp_synack_retries=255", "net.ipv4.tcp_synack_retries"),
        ("net.core.rmem_max=2147483647", "65536 to 1073741824"),
        ("net.ipv4.tcp_congestion_control=nosuch", "tcp_available_congestion_control"),
        ("kernel.core_pattern=|/tmp/x", "kernel.core_pattern"),
        ("net.ipv4.ip_forward=1", "net.ipv4.ip_forward"),
        ("net.ipv4.tcp_syncookies=0", "net.ipv4.tcp_syncookies"),
        ("net.ipv4.tcp_nosuch=1", "net.ipv4.tcp_nosuch"),
        ("net.ipv4.tcp_rmem=3 2 1", "net.ipv4.tcp_rmem"),
        ("nosuch0:qdisc=fq", "nosuch0"),
        ("v0:qdisc=nosuch", "v0 qdisc"),
        ("v0:mtu=12", "v0 mtu"),
        ("v0:cgroup/a=9gbit", "a"),
    ] {
        let ended = two.hold(&[CHANGES, &["--set", setting]].concat()).end(30);
        assert!(ended.code == 2 && ended.stderr.contains(name), "{setting}: {ended:?}");
        two.server.snapshot().must_equal(&before, &setting);
    }
    assert!(!server.stdout().contains("->"), "{}", server.stdout());
}

#[test]
fn one_client_at_a_time_changes_a_host() {
    let two = or_skip!(TestHosts::new());
    let before = two.server.snapshot();
    let _server = two.serve_changes();
    let mut first = two.held(CHANGES);
    let ended = two.hold(&["--set", "v0:txqueuelen=77"]).end(30);
    assert!(ended.code == 2 && ended.stderr.contains("another client"), "{ended:?}");
    two.assert_changed();
    // An administrator's own transaction is refused meanwhile.
    let state = two.states[0].clone();
    let apply = ["apply", "--set", "v0:txqueuelen=77", "--confirm", "60"];
    let output = crate::tune::bench::run(two.server.tune_with(&[], &apply, &state));
    assert!(output.code == 2 && output_text(&output).contains("awaits its confirmation"), "{output:?}");
    let output = crate::tune::bench::run(two.server.tune_with(&[], &["confirm"], &state));
    assert!(output.code == 2 && output_text(&output).contains("is held by process"), "{output:?}");
    let status = output_text(&crate::tune::bench::run(two.server.tune_with(&[], &["status"], &state)));
    assert!(status.contains("held by process"), "{status}");
    first.kill();
    wait_until("it is rolled back", || two.watchdogs().is_empty());
    two.server.snapshot().must_equal(&before, &"both have left");
}

#[test]
fn client_and_server_on_one_machine_hold_changes() {
    let two = or_skip!(TestHosts::new());
    let before = two.server.snapshot();
    let rmem = || two.client.exec(["cat", "/proc/sys/net/ipv4/tcp_rmem"]);
    let mine = rmem();
    let _server = two.serve_changes();
    let remote = two.held(CHANGES);
    let mut local = Process::start(command_in_namespace(&two.client, &["tune", "hold", CHANGES[0], CHANGES[1]]));
    wait_until("changes are held here", || local.stdout().contains("\nheld: "));
    assert_ne!(rmem(), mine);
    two.assert_changed();
    local.kill();
    wait_until("the watchdog restores this host", || rmem() == mine);
    two.assert_changed();
    remote.signal("INT");
    assert_eq!(remote.end(30).code, 0);
    two.server.snapshot().must_equal(&before, &"both were held");
}

#[test]
fn a_value_of_another_program_is_left_and_reported() {
    let two = or_skip!(TestHosts::new());
    let _server = two.serve_changes();
    let client = two.held(CHANGES);
    two.server.shell("echo 4096 65536 22222222 > /proc/sys/net/ipv4/tcp_rmem");
    client.signal("INT");
    let ended = client.end(30);
    assert!(ended.code == 1 && ended.stderr.contains("net.ipv4.tcp_rmem"), "{ended:?}");
    assert_eq!(two.server.shell("cat /proc/sys/net/ipv4/tcp_rmem").trim(), "4096\t65536\t22222222");
    assert!(!two.server.shell("tc qdisc show dev v0").contains("pfifo limit"), "the rest is rolled back");
}

#[test]
fn a_client_cannot_keep_changes() {
    let two = or_skip!(TestHosts::new());
    let before = two.server.snapshot();
    let server = two.serve_changes();
    let ended = two.hold(&[CHANGES, &["--keep"]].concat()).end(30);
    assert!(ended.code == 2 && ended.stderr.contains("--keep"), "{ended:?}");
    assert!(!server.stdout().contains("kept"), "{}", server.stdout());
    two.server.snapshot().must_equal(&before, &"refused");
}

#[test]
fn allow_host_changes_needs_cap_net_admin() {
    let two = or_skip!(TestHosts::new());
    let serve = ["serve", "--allow-host-changes", "--listen", "10.99.0.2:5210"];
    let mut command = Command::new("ip");
    command.args(["netns", "exec", two.server.namespace.name(), "setpriv", "--bounding-set=-net_admin"]);
    command.arg(chosen_program()).args(serve);
    let ended = Process::start(command).end(30);
    assert!(ended.code == 2 && ended.stderr.contains("CAP_NET_ADMIN"), "{ended:?}");
}
