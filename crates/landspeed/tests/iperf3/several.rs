//! Many iperf3 clients at once, which iperf3's own server does not take.

use landspeed_testkit::iperf3::programs;
use landspeed_testkit::skip;
use serde_json::Value;

use crate::parties::{begin_their_client, list, number, our_client, our_server};

#[test]
fn clients_of_all_kinds_are_served_side_by_side() {
    let programs = programs();
    let Some(newest) = programs.last() else { skip!("no iperf3 here; `cargo xtask iperf3` downloads some") };
    let (server, target) = our_server(&[]);
    let options =
        ["-t 3", "-t 3 -R", "-t 3 -u -b 5M", "-t 3 -u -b 5M -R", "-t 3 -u -b 5M -P 3", "-t 3 --bidir -b 50M"];
    let clients: Vec<_> = options
        .iter()
        .enumerate()
        .map(|(i, options)| begin_their_client(programs.get(i % programs.len()).unwrap_or(newest), target, options).0)
        .collect();
    let ours = our_client(&target.to_string(), "-t 2 -u -b 5M --bidir");
    for (finish, options) in clients.into_iter().zip(options) {
        let said = finish();
        assert_eq!(said["error"], Value::Null, "{options}");
        for stream in list(&said["end"]["streams"]).iter().filter(|stream| stream["udp"].is_object()) {
            // Streams of different clients are told apart, else each would count the others' as its own.
            let packets = number(&stream["udp"]["packets"]);
            assert!(packets > 0 && number(&stream["udp"]["lost_packets"]) <= packets, "{options}: {stream:#}");
        }
    }
    assert_eq!(ours.1["status"], "complete", "{:#}", ours.1["errors"]);
    let log = server.stdout();
    assert_eq!(log.matches("end      complete").count(), options.len() + 1, "{log}");
}

#[test]
fn an_iperf3_that_serves_already_keeps_its_port_and_ours_serves_on() {
    let (_first, taken) = our_server(&[]);
    let port = taken.port().to_string();
    let mut command = crate::parties::landspeed(&["serve", "--listen", "127.0.0.1:0", "--iperf3-port", &port]);
    command.stdin(std::process::Stdio::null());
    let ended = landspeed_testkit::process::Process::start(command).end(20);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains(&port) && ended.stderr.lines().count() == 1, "{}", ended.stderr);
}
