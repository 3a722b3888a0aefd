//! A client of `serve --allow-tap` receives only the headers of its test's data sockets.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use landspeed_testkit::netns::Namespace;
use landspeed_testkit::process::{Process, until};
use landspeed_wire::capture::{CaptureItem, Reader};
use landspeed_wire::{Flags, Transport, dissect_headers};
use serde_json::Value;

use crate::tap::{NamespacePair, TIMEOUT_S, directory, landspeed, spawn};

/// Starts a server on all addresses of the right namespace.
fn serve(net: &NamespacePair, at: SocketAddr) -> Process {
    crate::tap::serve(net, at, &["--listen", "[::]:5210", "--no-iperf3", "--allow-tap"])
}

fn run_command(server: SocketAddr, arguments: &[&str]) -> Command {
    let mut command = landspeed();
    command.arg("run").arg(server.to_string()).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Adds IPv6 addresses to both namespaces, usable at once.
fn with_ipv6(net: &NamespacePair) {
    for (namespace, interface, address) in
        [(&net.left, &net.link.a, "fd91::1/64"), (&net.right, &net.link.b, "fd91::2/64")]
    {
        namespace.exec(["ip", "address", "add", address, "dev", interface, "nodad"]);
    }
}

/// Ports of the client's data sockets in the document.
fn data_ports(document: &Value) -> BTreeSet<u16> {
    let streams = document["streams"].as_array().expect("a list");
    let ports = streams.iter().filter_map(|stream| stream["client_addr"].as_str()?.rsplit_once(':')?.1.parse().ok());
    ports.collect()
}

/// Summary of a capture of a server's port.
#[derive(Default)]
struct Captured {
    frames: usize,
    /// Number of SYNs of the client.
    connections: u64,
    /// Ports of the client, from all frames.
    ports: BTreeSet<u16>,
}

/// Reads a capture, and asserts that no frame contains payload.
fn captured(path: &Path, server_port: u16) -> Captured {
    let bytes = std::fs::read(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    assert!(!bytes.windows(7).any(|part| part == b"LNDSPEE" || part == b"LNDSUDP"), "payload in {}", path.display());
    let (mut reader, mut rest, mut captured) = (Reader::new(), &bytes[..], Captured::default());
    while !rest.is_empty() {
        let (used, next) = reader.next(rest).expect("a capture");
        assert!(used > 0, "it ends in the middle of a block");
        if let CaptureItem::Frame(frame) = next {
            let (packet, headers) =
                dissect_headers(frame.link, frame.data, frame.original).expect("headers are whole");
            assert_eq!(headers, frame.data.len(), "payload of {packet:?}");
            let (source, destination) = match packet.transport {
                Transport::Tcp(tcp) => {
                    captured.connections += u64::from(tcp.flags.has(Flags::SYN) && !tcp.flags.has(Flags::ACK));
                    (tcp.source, tcp.destination)
                }
                Transport::Udp { source, destination, .. } => (source, destination),
                other => panic!("{other:?}"),
            };
            captured.ports.insert(if source == server_port { destination } else { source });
            captured.frames += 1;
        }
        rest = &rest[used..];
    }
    captured
}

#[test]
fn a_clients_capture_has_only_its_headers() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    with_ipv6(&net);
    let directory = directory();
    let v4 = SocketAddr::new(IpAddr::from([10, 91, 0, 2]), 5210);
    let v6: SocketAddr = "[fd91::2]:5210".parse().expect("an address");
    let _server = serve(&net, v4);
    for server in [v4, v6] {
        // Other tests from the same address, as from behind the same NAT: they start before and during the
        // capture.
        let others =
            [&["-t", "8", "-b", "5M"][..], &["-t", "8", "-u", "-b", "2M"], &["-t", "8", "--rr", "--connect"]];
        let _others: Vec<_> = others.iter().map(|other| spawn(&net.left, &mut run_command(server, other))).collect();
        for (number, test) in [&["-P", "2", "-b", "4M"][..], &["-u", "-P", "2", "-b", "2M"], &["-R", "-b", "4M"]]
            .into_iter()
            .enumerate()
        {
            let kind = format!("{number}-{}", server.is_ipv4());
            let name = directory.path().join(&kind);
            let json = directory.path().join(format!("{kind}.json"));
            let [name, json] = [&name, &json].map(|path| path.to_str().expect("plain"));
            let status = net
                .left
                .run(|| run_command(server, &[test, &["-t", "1", "--tap", name, "--json", json]].concat()).status())
                .expect("the program runs");
            assert!(matches!(status.code(), Some(0 | 1)), "{status} {kind}");
            let document: Value = serde_json::from_slice(&std::fs::read(json).expect("written")).expect("JSON");
            let Captured { frames, ports, .. } = captured(Path::new(&format!("{name}.server.pcapng")), 5210);
            assert_eq!(ports, data_ports(&document), "ports of {kind}: {}", document["warnings"]);
            assert!(frames > 20, "{frames} frames of {kind}");
        }
    }
}

#[test]
fn connect_mode_connections_are_captured_from_the_syn() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let directory = directory();
    let server = SocketAddr::new(IpAddr::from([10, 91, 0, 2]), 5210);
    let _server = serve(&net, server);
    let other = ["-t", "6", "--rr", "--connect"];
    let _other = spawn(&net.left, &mut run_command(server, &other));
    let [name, json] = ["own", "own.json"].map(|name| directory.path().join(name));
    let [name, json] = [&name, &json].map(|path| path.to_str().expect("plain"));
    let test = ["-t", "0.5", "--rr", "--connect", "--tap", name, "--json", json];
    let status = net.left.run(|| run_command(server, &test).status()).expect("the program runs");
    assert!(matches!(status.code(), Some(0 | 1)), "{status}");
    let document: Value = serde_json::from_slice(&std::fs::read(json).expect("written")).expect("JSON");
    let traced = landspeed()
        .args(["trace", &format!("{name}.server.pcapng"), "--json", "-"])
        .output()
        .expect("the program runs");
    let trace: Value = serde_json::from_slice(&traced.stdout).expect("JSON");
    let transactions = document["latency"][0]["completed"].as_u64().expect("a count");
    // As many connections as transactions, without those of the other test. A fast host reuses ports.
    let Captured { frames, connections, .. } = captured(Path::new(&format!("{name}.server.pcapng")), 5210);
    assert!(connections.abs_diff(transactions) <= transactions / 10 + 2, "{connections} for {transactions}");
    assert!(frames as u64 >= connections * 6, "{frames} frames of {connections} connections");
    assert!(trace["flows"].as_array().is_some_and(|flows| !flows.is_empty()), "{trace}");
}

#[test]
fn each_address_has_one_capture_at_a_time() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    net.left.exec(["ip", "address", "add", "10.91.0.3/24", "dev", &net.link.a]);
    let directory = directory();
    let server = SocketAddr::new(IpAddr::from([10, 91, 0, 2]), 5210);
    let _server = serve(&net, server);
    let name = |which: &str| directory.path().join(which).to_str().expect("plain").to_owned();
    let long = ["-t", "8", "-b", "1M", "--tap", &name("first")];
    let _first = spawn(&net.left, &mut run_command(server, &long));
    let first = format!("{}.client.pcapng", name("first"));
    until(TIMEOUT_S, "a capture", || Path::new(&first).exists());
    let warnings = |namespace: &Namespace, which: &str, bind: &str| {
        let (capture, json) = (name(which), name(&format!("{which}.json")));
        let test = ["-t", "0.3", "-b", "1M", "--bind", bind, "--tap", &capture, "--json", &json];
        namespace.run(|| run_command(server, &test).status()).expect("the program runs");
        let document: Value = serde_json::from_slice(&std::fs::read(&json).expect("written")).expect("JSON");
        document["warnings"].to_string()
    };
    // The first test's server capture starts at about the time its local file appears.
    until(4, "a refusal", || {
        warnings(&net.left, "second", "10.91.0.1").contains("captures another test of this address")
    });
    assert!(!warnings(&net.left, "third", "10.91.0.3").contains("no-server-capture"));
}
