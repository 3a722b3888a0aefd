//! An emulated path on one interface, for the given peers only.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;

use landspeed_testkit::netns::Namespace;
use landspeed_testkit::process::{Ended, Process, until};

use super::{TIMEOUT_S, certificate, landspeed, number, path_file, stop};

pub(super) const LINK: &str =
    "[[link]]\nrate = \"100M\"\ndelay = \"20ms\"\nqueue = { kind = \"bfifo\", limit = \"2MB\" }";
pub(super) const PEER: &str = "10.94.0.2";
const OTHER_PEER: &str = "10.94.0.3";

/// A host with interface `h0`, and a remote host with two addresses; the first is the peer.
pub(super) struct Hosts {
    pub host: Namespace,
    pub remote: Namespace,
}

impl Hosts {
    pub fn new() -> Result<Self, String> {
        let hosts = Self { host: Namespace::new("host")?, remote: Namespace::new("remote")? };
        for namespace in [&hosts.host, &hosts.remote] {
            for every in ["all", "default"] {
                let quiet = format!("/proc/sys/net/ipv6/conf/{every}/disable_ipv6");
                let _ = namespace.run(|| std::fs::write(&quiet, "1"));
            }
        }
        let remote = hosts.remote.name();
        hosts.host.exec(["ip", "link", "add", "h0", "type", "veth", "peer", "name", "r0", "netns", remote]);
        hosts.host.exec(["ip", "address", "add", "10.94.0.1/24", "dev", "h0"]);
        for address in ["10.94.0.2/24", "10.94.0.3/24"] {
            hosts.remote.exec(["ip", "address", "add", address, "dev", "r0"]);
        }
        hosts.remote.exec(["ip", "link", "set", "r0", "up"]);
        hosts.host.exec(["ip", "link", "set", "h0", "up"]);
        // The carrier comes up a little later.
        until(TIMEOUT_S, "the link is up", || hosts.host.exec(["ip", "link", "show", "h0"]).contains("state UP"));
        Ok(hosts)
    }

    /// The command that emulates on `h0`.
    fn command(file: &std::path::Path, peers: &str, more: &[&str]) -> Command {
        let mut command = landspeed();
        command.arg("emulate").arg(file).args(["--on", "h0", "--peer", peers]).args(more);
        command
    }

    /// Starts the emulation and waits until packets of the peer take the path. The error names a missing kernel
    /// feature.
    pub fn emulate(&self, file: &std::path::Path, more: &[&str]) -> Result<Process, String> {
        let process = self.host.run(|| Process::start(Self::command(file, PEER, more)));
        let lacks = || process.stderr().contains("cannot attach a program");
        until(TIMEOUT_S, "it begins", || lacks() || process.stderr().contains("asked"));
        if lacks() { Err(format!("no TCX programs here: {}", process.stderr())) } else { Ok(process) }
    }

    fn refused(&self, file: &std::path::Path, peers: &str) -> Ended {
        self.host.run(|| Process::start(Self::command(file, peers, &["--time", "5s"]))).end(TIMEOUT_S)
    }

    /// Sends `count` datagrams to an address, waits for their echoes and returns the minimum RTT, nanoseconds.
    fn echo(&self, address: &str, count: u32) -> u64 {
        let server = self.remote.run(|| UdpSocket::bind((address, 0))).expect("an address");
        let to = server.local_addr().expect("bound");
        let client = self.host.run(|| UdpSocket::bind("10.94.0.1:0")).expect("an address");
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
        }
        let echoing = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            for _ in 0..count {
                let (length, from) = server.recv_from(&mut buffer).expect("a datagram");
                server.send_to(&buffer[..length], from).expect("a route");
            }
        });
        let mut shortest_ns = u64::MAX;
        let mut buffer = [0; 2048];
        for number in 0..count {
            let sent_ns = landspeed_sys::clock::monotonic_ns();
            client.send_to(&number.to_be_bytes().repeat(100), to).expect("a route");
            assert_eq!(client.recv(&mut buffer).expect("an echo"), 400);
            assert_eq!(buffer[..4], number.to_be_bytes());
            shortest_ns = shortest_ns.min(landspeed_sys::clock::monotonic_ns() - sent_ns);
        }
        echoing.join().expect("no panic");
        shortest_ns
    }

    /// State of the host that an emulation may change.
    fn state(&self) -> String {
        let say = |arguments: &[&str]| {
            let output = Command::new(arguments[0]).args(&arguments[1..]).output();
            output.map_or_else(|why| why.to_string(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
        };
        self.host.run(|| {
            [
                &["ip", "-d", "link"][..],
                &["ip", "-d", "address"],
                &["ip", "-d", "route", "show", "table", "all"],
                &["ip", "-d", "rule"],
                &["nft", "list", "ruleset"],
                &["tc", "qdisc", "show"],
                &["tc", "filter", "show", "dev", "h0", "ingress"],
                &["tc", "filter", "show", "dev", "h0", "egress"],
                &["sysctl", "-a", "-r", "^net\\.(ipv4|ipv6|core)\\."],
            ]
            .map(say)
            .concat()
        })
    }
}

#[test]
fn only_packets_of_the_peer_take_the_path() {
    let hosts = landspeed_testkit::or_skip!(Hosts::new());
    let (directory, file) = path_file(LINK);
    let json = directory.path().join("certificate.json");
    let process = landspeed_testkit::or_skip!(hosts.emulate(&file, &["--json", &json.to_string_lossy()]));
    let peer_ns = hosts.echo(PEER, 20);
    let other_ns = hosts.echo(OTHER_PEER, 20);
    assert!(peer_ns >= 40_000_000, "{peer_ns}");
    assert!(other_ns < 20_000_000, "{other_ns}");
    let ended = stop(process);
    let certificate = certificate(&json);
    for direction in ["forward", "reverse"] {
        let at = |name: &str| number(&certificate, &format!("/delivered/{direction}/{name}_packets"));
        assert_eq!((at("offered"), at("delivered"), at("unhandled")), (20, 20, 0), "{}", ended.stderr);
    }
    assert_eq!(certificate["placement"]["peers"]["interface"], "h0");
    // No packet takes the path after the end.
    assert!(hosts.echo(PEER, 5) < 20_000_000);
}

#[test]
fn super_packets_take_the_path_as_single_frames() {
    let hosts = landspeed_testkit::or_skip!(Hosts::new());
    let (directory, file) = path_file(LINK);
    let json = directory.path().join("certificate.json");
    let process = landspeed_testkit::or_skip!(hosts.emulate(&file, &["--json", &json.to_string_lossy()]));
    let listener = hosts.remote.run(|| TcpListener::bind((PEER, 0))).expect("an address");
    let to = listener.local_addr().expect("bound");
    let mut client = hosts.host.run(|| TcpStream::connect(to)).expect("connected");
    let (mut server, _) = listener.accept().expect("connected");
    // In both directions: segments leave and arrive as super-packets.
    let data: Vec<u8> = (0..1_000_000_u32).map(|number| (number / 7) as u8).collect();
    let expected = data.clone();
    let receiving = std::thread::spawn(move || {
        server.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        let mut received = vec![0; expected.len()];
        server.read_exact(&mut received).expect("all of it");
        assert!(received == expected);
        server.write_all(&received).expect("sent");
    });
    client.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    client.write_all(&data).expect("sent");
    let mut back = vec![0; data.len()];
    client.read_exact(&mut back).expect("all of it");
    assert!(back == data);
    receiving.join().expect("no panic");
    stop(process);
    let certificate = certificate(&json);
    for direction in ["forward", "reverse"] {
        let at = |name: &str| number(&certificate, &format!("/delivered/{direction}/{name}"));
        assert_eq!(at("unhandled_packets"), 0, "{direction}");
        assert!(at("delivered_packets") >= 1_000_000 / 1460, "{direction}: {certificate}");
    }
}

#[test]
fn a_killed_emulation_on_an_interface_leaves_nothing() {
    let hosts = landspeed_testkit::or_skip!(Hosts::new());
    let (_directory, file) = path_file(LINK);
    hosts.echo(PEER, 1);
    let before = hosts.state();
    let mut process = landspeed_testkit::or_skip!(hosts.emulate(&file, &[]));
    assert!(hosts.echo(PEER, 2) >= 40_000_000);
    assert_ne!(hosts.state(), before, "its links exist while it runs");
    process.kill();
    let mut after = hosts.state();
    let until_ns = landspeed_sys::clock::monotonic_ns() + 20_000_000_000;
    while after != before && landspeed_sys::clock::monotonic_ns() < until_ns {
        after = hosts.state();
    }
    let differs: Vec<(&str, &str)> =
        before.lines().zip(after.lines()).filter(|(before, after)| before != after).collect();
    assert!(after == before, "before, after: {differs:#?}");
    assert!(hosts.echo(PEER, 5) < 20_000_000);
}

#[test]
fn unsuitable_peers_are_refused_with_advice() {
    let hosts = landspeed_testkit::or_skip!(Hosts::new());
    let (_directory, file) = path_file(LINK);
    hosts.host.exec(["ip", "route", "add", "default", "via", "10.94.0.9"]);
    let assert_error = |ended: &Ended, words: &str| {
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{words:?} in {}", ended.stderr);
    };
    assert_error(
        &hosts.refused(&file, "10.94.0.0/28"),
        "cannot emulate on h0: the peer 10.94.0.0/28 covers 10.94.0.9, the default",
    );
    assert_error(&hosts.refused(&file, "0.0.0.0/0"), "the peer 0.0.0.0/0 is everybody");
    assert_error(&hosts.refused(&file, "10.94.0.1"), "the peer 10.94.0.1 is this host");
    assert_error(&hosts.refused(&file, "127.0.0.1"), "the peer 127.0.0.1/32 is not another host");
    assert_error(&hosts.refused(&file, "example.net"), "`example.net` is not a network");
    let mut command = Hosts::command(&file, "10.94.0.2,10.94.0.3", &["--time", "5s"]);
    command.env("SSH_CONNECTION", "10.94.0.3 50022 10.94.0.1 22");
    let ended = hosts.host.run(|| Process::start(command)).end(TIMEOUT_S);
    assert_error(&ended, "the peer 10.94.0.3/32 covers 10.94.0.3, which has an SSH session here");
    hosts.host.exec(["ip", "link", "add", "h1", "up", "type", "veth", "peer", "name", "h2"]);
    hosts.host.exec(["ip", "link", "set", "h2", "up"]);
    hosts.host.exec(["ip", "address", "add", "10.95.0.1/24", "dev", "h1"]);
    assert_error(
        &hosts.refused(&file, "10.95.0.2"),
        "the route to the peer 10.95.0.2/32 leaves by h1\nEmulate on that one: --on h1.",
    );
    let first = landspeed_testkit::or_skip!(hosts.emulate(&file, &[]));
    assert_error(&hosts.refused(&file, OTHER_PEER), "emulates on it");
    hosts.host.exec(["ip", "link", "set", "h0", "down"]);
    assert_error(&first.end(TIMEOUT_S), "an interface disappeared or went down");
}
