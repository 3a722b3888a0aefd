//! Losses in the network and in the receiver's kernel are distinguished: nftables rules count their drops,
//! and tcpdump captures on both hosts.

use std::process::Command;

use landspeed_testkit::pair::Pair;
use landspeed_testkit::skip;

use crate::common::PROGRAM;
use crate::trace::document;
use crate::trace::road::{RECEIVER, RoutedPath, Tcpdump, drop_one_in};

#[test]
fn network_and_receiver_losses_match_nftables_per_packet() {
    let road = landspeed_testkit::or_skip!(RoutedPath::new());
    if Command::new("tcpdump").arg("--version").output().is_err() {
        skip!("tcpdump is not installed");
    }
    let directory = tempfile::tempdir().expect("a directory");
    for (network, receiver) in [(Some(997), Some(1499)), (None, Some(701)), (Some(701), None)] {
        for (namespace, interface, every) in
            [(&road.router, &road.sender_side.b, network), (&road.receiver, &road.receiver_side.b, receiver)]
        {
            namespace.exec(["nft", "flush", "ruleset"]);
            if let Some(every) = every {
                namespace.nft(&drop_one_in(interface, "tcp", every));
            }
        }
        let pair = Pair::across(PROGRAM, &road.sender, &road.receiver, RECEIVER);
        let sender_side =
            Tcpdump::start(&road.sender, &road.sender_side.a, &directory.path().join("sender_side.pcap"));
        let receiver_side =
            Tcpdump::start(&road.receiver, &road.receiver_side.b, &directory.path().join("receiver_side.pcap"));
        pair.run("--pace 200M -t 1.2");
        let (sender_side, receiver_side) = (sender_side.stop(), receiver_side.stop());
        let truth = (RoutedPath::dropped(&road.router), RoutedPath::dropped(&road.receiver));
        let said = document(&[&sender_side, &receiver_side]);
        let flows = said["flows"].as_array().expect("a list");
        let sum = |key: &str| flows.iter().filter_map(|flow| flow[key].as_u64()).sum::<u64>();
        let lost = (sum("lost_network"), sum("lost_receiver"));
        // On a busy machine the sender retransmits data that has arrived; a drop of such a copy leaves no trace.
        let needless = sum("retransmits").saturating_sub(lost.0 + lost.1);
        println!("dropped {truth:?}: {lost:?}, {needless} needless retransmits");
        let missing = truth.0.checked_sub(lost.0).zip(truth.1.checked_sub(lost.1)).map(|(a, b)| a + b);
        let exact = missing.is_some_and(|missing| missing <= needless);
        assert!(exact, "{lost:?} of {truth:?}, {needless} needless: {:#}", said["path"][0]["forward"]["lost_data"]);
        assert!(truth.0 + truth.1 > 10, "{truth:?} losses say nothing");
        let listed = |place: &str| {
            let losses = said["losses"].as_array().expect("a list").iter();
            losses.filter(|loss| loss["place"] == place).count() as u64
        };
        assert_eq!((listed("network"), listed("receiver")), lost);
        assert_eq!(said["path"][0]["given_up"], 0);
    }
}

#[test]
fn delay_is_attributed_to_the_hop_with_the_full_queue() {
    let road = landspeed_testkit::or_skip!(RoutedPath::new());
    if Command::new("tcpdump").arg("--version").output().is_err() {
        skip!("tcpdump is not installed");
    }
    let queue = [
        "tc",
        "qdisc",
        "add",
        "dev",
        &road.receiver_side.a,
        "root",
        "tbf",
        "rate",
        "50mbit",
        "burst",
        "8kb",
        "limit",
        "1mb",
    ];
    road.router.exec(queue);
    let directory = tempfile::tempdir().expect("a directory");
    let pair = Pair::across(PROGRAM, &road.sender, &road.receiver, RECEIVER);
    let taps = [
        (&road.sender, &road.sender_side.a, "1.pcap"),
        (&road.router, &road.sender_side.b, "2.pcap"),
        (&road.receiver, &road.receiver_side.b, "3.pcap"),
    ];
    let taps =
        taps.map(|(namespace, interface, name)| Tcpdump::start(namespace, interface, &directory.path().join(name)));
    // CUBIC fills the queue; BBR, the default of some hosts, keeps it short.
    pair.run("-t 2 -C cubic");
    let files = taps.map(Tcpdump::stop);
    let said = document(&[&files[0], &files[1], &files[2]]);
    let hops = said["path"].as_array().expect("a list");
    let share = |hop: usize| hops[hop]["forward"]["delay_share"].as_f64().expect("a share");
    assert!(share(1) > 0.8, "{} and {}", share(0), share(1));
    assert!((share(0) + share(1) - 1.0).abs() < 1e-9);
    // 1 MB at 50 Mb/s takes 160 ms; within two seconds the queue fills to more than a tenth of it.
    let delays = hops[1]["forward"]["delay"]["max_ns"].as_array().expect("bins");
    let most = delays.iter().filter_map(serde_json::Value::as_u64).max().expect("packets");
    assert!((16_000_000..400_000_000).contains(&most), "{most} ns");
    assert!(delays.len() <= 512);
}
