//! Many concurrent iperf3 clients, which iperf3's own server does not support.

use landspeed_testkit::iperf3::programs;
use landspeed_testkit::skip;
use serde_json::Value;

use crate::common::list;
use crate::iperf3::parties::{landspeed_client, landspeed_server, number, start_iperf3_client};
use landspeed_testkit::process::run_concurrently;

#[test]
fn concurrent_clients_of_all_kinds_are_served() {
    let programs = programs();
    let Some(newest) = programs.last() else { skip!("no iperf3 here; `cargo xtask iperf3` downloads some") };
    let (server, target) = landspeed_server(&[]);
    let options = [
        "-t 2 -b 200M",
        "-t 2 -R -b 200M",
        "-t 2 -u -b 5M",
        "-t 2 -u -b 5M -R",
        "-t 2 -u -b 5M -P 3",
        "-t 2 --bidir -b 50M",
    ];
    let clients: Vec<_> = options
        .iter()
        .enumerate()
        .map(|(i, options)| {
            start_iperf3_client(programs.get(i % programs.len()).unwrap_or(newest), target, options).0
        })
        .collect();
    let ours = landspeed_client(&target.to_string(), "-t 2 -u -b 5M --bidir");
    for (finish, options) in clients.into_iter().zip(options) {
        let said = finish();
        assert_eq!(said["error"], Value::Null, "{options}");
        for stream in list(&said["end"]["streams"]).iter().filter(|stream| stream["udp"].is_object()) {
            // Streams of different clients are separate, otherwise each would count the others' packets.
            let packets = number(&stream["udp"]["packets"]);
            assert!(packets > 0 && number(&stream["udp"]["lost_packets"]) <= packets, "{options}: {stream:#}");
        }
    }
    assert_eq!(ours.1["status"], "complete", "{:#}", ours.1["errors"]);
    let log = server.stdout();
    assert_eq!(log.matches("end      complete").count(), options.len() + 1, "{log}");
}

#[test]
fn a_running_iperf3_server_keeps_its_port() {
    let (_first, taken) = landspeed_server(&[]);
    let port = taken.port().to_string();
    let mut command =
        crate::iperf3::parties::landspeed(&["serve", "--listen", "127.0.0.1:0", "--iperf3-port", &port]);
    command.stdin(std::process::Stdio::null());
    let ended = landspeed_testkit::process::Process::start(command).end(20);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains(&port) && ended.stderr.lines().count() == 1, "{}", ended.stderr);
}

#[test]
fn only_allowed_addresses_are_served() {
    let Some(iperf3) = programs().pop() else { skip!("no iperf3 here; `cargo xtask iperf3` downloads some") };
    let (server, target) = landspeed_server(&["--allow", "192.0.2.0/24"]);
    let said = start_iperf3_client(&iperf3, target, "-t 1").0();
    assert!(said["error"].is_string(), "{said:#}");
    let (code, document) = landspeed_client(&target.to_string(), "-t 1");
    assert_eq!((code, &document["errors"][0]["code"]), (2, &Value::from("not-iperf3")));
    assert!(server.stdout().contains("its address is not allowed here"), "{}", server.stdout());
}

#[test]
fn replies_come_from_the_requested_address() {
    let Some(iperf3) = programs().pop() else { skip!("no iperf3 here; `cargo xtask iperf3` downloads some") };
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        skip!("no IPv6 here");
    }
    let mut command = crate::iperf3::parties::landspeed(&["serve", "--listen", "[::]:0", "--iperf3-port", "0"]);
    command.stdin(std::process::Stdio::null());
    let server = landspeed_testkit::process::Process::start(command);
    let mut port = None;
    landspeed_testkit::process::until(20, "the server's address", || {
        let said = server.stdout();
        let line = said.lines().find(|line| line.contains("iperf3 clients")).map(str::to_owned);
        port = line.and_then(|line| line.split_once("[::]:")?.1.split_once(' ')?.0.parse::<u16>().ok());
        port.is_some()
    });
    let port = port.expect("just found");
    run_concurrently(["::1", "127.0.0.1", "127.0.0.2"], |host| {
        let target = std::net::SocketAddr::new(host.parse().expect("an address"), port);
        for options in ["-n 1M", "-t 1 -u -b 5M", "-t 1 -u -b 5M -R"] {
            let said = start_iperf3_client(&iperf3, target, options).0();
            assert_eq!(said["error"], Value::Null, "{host} {options}\n{}", server.stdout());
            let (code, document) = landspeed_client(&target.to_string(), &options.replace("-t 1", "-t 0.4"));
            assert!(code <= 1 && document["status"] == "complete", "{host} {options}: {:#}", document["errors"]);
        }
    });
}
