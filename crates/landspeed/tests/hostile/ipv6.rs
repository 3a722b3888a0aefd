//! Address families and effective socket options.

use std::net::{IpAddr, SocketAddr};
use std::process::Command;

use landspeed_testkit::netns::{Namespace, address, veth};
use landspeed_testkit::skip;

use crate::common::in_namespace;
use crate::hostile::common::{Process, Server, finish, run};
use landspeed_testkit::process::run_concurrently;

const KINDS: [&[&str]; 4] = [
    &["-t", "0.2", "-b", "10m"],
    &["-t", "0.2", "-b", "10m", "-R"],
    &["-t", "0.2", "-u", "-b", "10m"],
    &["-t", "0.2", "--rr", "-u"],
];

fn lacks_ipv6() -> bool {
    std::net::UdpSocket::bind("[::1]:0").is_err()
}

#[test]
fn one_server_answers_ipv4_and_ipv6() {
    if lacks_ipv6() {
        skip!("this host has no IPv6");
    }
    let server = Server::listening("[::]:0", &[]);
    for host in ["127.0.0.1", "[::1]"] {
        let target = format!("{host}:{}", server.addr.port());
        run_concurrently(KINDS, |kind| {
            let run = run(&target, kind);
            run.assert_clean();
            let shown = run.document["path"]["server_addr"].as_str().unwrap_or_default().to_owned();
            assert_eq!(shown, target);
        });
    }
}

#[test]
fn a_server_answers_only_on_its_address() {
    if lacks_ipv6() {
        skip!("this host has no IPv6");
    }
    let server = Server::listening("[::1]:0", &[]);
    run_concurrently(KINDS, |kind| server.run(&[kind, &["-6"]].concat()).assert_clean());
    let v4 = run("::1", &["-4"]);
    v4.assert_failed("no-address");
    assert!(v4.ended.stderr.contains("-4/-6"), "{:?}", v4.ended);
    run(&format!("127.0.0.1:{}", server.addr.port()), &[]).assert_failed("connection-refused");
    let server = Server::start(&[]);
    server.run(&["-6"]).assert_failed("no-address");
    server.run(&["-t", "0.2", "-4"]).assert_clean();
}

#[test]
fn the_requested_local_address_is_used() {
    let server = Server::start(&[]);
    run_concurrently(KINDS, |kind| {
        let run = server.run(&[kind, &["--bind", "127.0.0.5"]].concat());
        run.assert_clean();
        let addr: SocketAddr = run.document["path"]["client_addr"].as_str().unwrap().parse().unwrap();
        assert_eq!(addr.ip(), IpAddr::from([127, 0, 0, 5]));
        for stream in run.document["streams"].as_array().unwrap() {
            assert!(stream["client_addr"].as_str().unwrap().starts_with("127.0.0.5:"), "{stream}");
        }
    });
    let other_family = server.run(&["--bind", "::1"]);
    other_family.assert_failed("no-address");
    let foreign = server.run(&["--bind", "203.0.113.9"]);
    foreign.assert_failed("socket-setup");
    assert!(foreign.ended.stderr.contains("ip address"), "{:?}", foreign.ended);
}

#[test]
fn mss_window_and_congestion_control_are_effective() {
    let server = Server::start(&[]);
    for direction in ["-P1", "-R"] {
        let run = server.run(&["-t", "0.3", "-M", "1000", "-w", "64K", "-C", "reno", "-N", direction]);
        run.assert_clean();
        let sender = &run.document["streams"][0]["sender"];
        assert!(sender["mss_bytes"].as_u64().is_some_and(|mss| (900..=1000).contains(&mss)), "{sender}");
        assert_eq!(sender["congestion"], "reno");
        // The kernel doubles the requested size.
        assert_eq!(sender["sndbuf_bytes"], 131_072, "{direction}");
        assert_eq!(run.document["streams"][0]["receiver"]["rcvbuf_bytes"], 131_072, "{direction}");
    }
}

#[test]
fn udp_window_is_effective() {
    let server = Server::start(&[]);
    let run = server.run(&["-t", "0.3", "-u", "-b", "1m", "-w", "64K"]);
    run.assert_clean();
    assert_eq!(run.document["streams"][0]["receiver"]["rcvbuf_bytes"], 131_072);
}

#[test]
fn multipath_tcp_accounting_balances() {
    if socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, Some(socket2::Protocol::MPTCP)).is_err() {
        skip!("this kernel has no multipath TCP");
    }
    let server = Server::start(&[]);
    for args in [&["-t", "0.5", "--mptcp"][..], &["-t", "0.5", "--mptcp", "-R"], &["-n", "1M", "--mptcp", "-P", "2"]]
    {
        let run = server.run(args);
        run.assert_clean();
        assert!(run.ended.seconds < 8.0, "{args:?}: {} s: the drain waited", run.ended.seconds);
    }
}

#[test]
fn a_link_local_address_is_reached_through_its_zone() {
    let near = landspeed_testkit::or_skip!(Namespace::new("near"));
    let far = landspeed_testkit::or_skip!(Namespace::new("far"));
    let link = veth(&near, &far, "10.9.0.1/24", "10.9.0.2/24");
    let text = |namespace: &Namespace, args: &[&str]| {
        let mut command = Command::new("ip");
        command.args(["-n", namespace.name()]).args(args);
        Process::start(command).end(20).stdout
    };
    let local = |namespace: &Namespace, interface: &str| {
        let mut found = None;
        crate::hostile::common::until(20, "a link-local address", || {
            let shown =
                text(namespace, &["-6", "-o", "address", "show", "dev", interface, "scope", "link", "-tentative"]);
            found = shown.split_whitespace().find_map(|word| word.strip_suffix("/64").map(str::to_owned));
            found.is_some()
        });
        found.expect("just found")
    };
    local(&near, &link.a);
    let there = local(&far, &link.b);
    let server = Server::of(in_namespace(&far, &["serve", "--listen", "[::]:0"]));
    let target = format!("[{there}%{}]:{}", link.a, server.addr.port());
    run_concurrently(KINDS, |kind| {
        let run =
            finish(Process::start(in_namespace(&near, &[&["run", &target, "--json", "-"], kind].concat())).end(60));
        run.assert_clean();
    });
    let unzoned = format!("[{there}]:{}", server.addr.port());
    let run = finish(Process::start(in_namespace(&near, &["run", &unzoned, "--json", "-"])).end(60));
    assert_eq!((run.ended.code, run.status()), (2, "failed"));
    assert!(run.ended.stderr.contains('%'), "says how to write a zone: {:?}", run.ended);
}

/// Bytes with DSCP EF that left a namespace by this address family, as counted by nftables.
fn marked(namespace: &Namespace, family: &str) -> u64 {
    let listed = namespace.exec(["nft", "list", "counter", "inet", "t", family]);
    let bytes = listed.split_once("bytes ").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    bytes.unwrap_or_else(|| panic!("no count in {listed}"))
}

#[test]
fn payload_has_the_requested_dscp() {
    if Command::new("nft").arg("--version").output().is_err() {
        skip!("marks are counted with nftables, which is not here");
    }
    let near = landspeed_testkit::or_skip!(Namespace::new("near"));
    let far = landspeed_testkit::or_skip!(Namespace::new("far"));
    let link = veth(&near, &far, "10.9.0.1/24", "10.9.0.2/24");
    address(&near, &link.a, "fd00:9::1/64");
    address(&far, &link.b, "fd00:9::2/64");
    for namespace in [&near, &far] {
        namespace.nft(
            "table inet t {
                counter v4 { }
                counter v6 { }
                chain c {
                    type filter hook output priority 0
                    ip dscp ef counter name v4
                    ip6 dscp ef counter name v6
                }
            }",
        );
    }
    let server = Server::of(in_namespace(&far, &["serve", "--listen", "[::]:0"]));
    run_concurrently([("10.9.0.2", "v4"), ("[fd00:9::2]", "v6")], |(host, family)| {
        for kind in KINDS {
            let target = format!("{host}:{}", server.addr.port());
            let sender = if kind.contains(&"-R") { &far } else { &near };
            let before = marked(sender, family);
            let args = [&["run", &target, "--json", "-", "--dscp", "ef"], kind].concat();
            let run = finish(Process::start(in_namespace(&near, &args)).end(60));
            run.assert_clean();
            let payload = run.document["summary"]["bytes_delivered"].as_u64().unwrap_or(1);
            let left = marked(sender, family) - before;
            assert!(left > payload, "{target} {kind:?}: {left} B marked of {payload}");
        }
    });
}
