//! Losses in the network and in the receiver's kernel, told apart: nftables rules count what they drop, and tcpdump runs at
//! both ends.

use std::process::Command;

use landspeed_testkit::pair::Pair;
use landspeed_testkit::skip;

use crate::document;
use crate::road::{RECEIVER, Road, Tcpdump, drop_one_in};

#[test]
fn losses_of_the_network_and_of_the_receiver_are_told_apart_packet_for_packet() {
    let road = match Road::new() {
        Ok(road) => road,
        Err(why) => skip!("{why}"),
    };
    if Command::new("tcpdump").arg("--version").output().is_err() {
        skip!("tcpdump is not installed");
    }
    let directory = tempfile::tempdir().expect("a directory");
    for (network, receiver) in [(Some(997), Some(1499)), (None, Some(701)), (Some(701), None)] {
        for (namespace, interface, every) in
            [(&road.router, &road.near.b, network), (&road.receiver, &road.far.b, receiver)]
        {
            namespace.exec(["nft", "flush", "ruleset"]);
            if let Some(every) = every {
                namespace.nft(&drop_one_in(interface, "tcp", every));
            }
        }
        let pair = Pair::across(env!("CARGO_BIN_EXE_landspeed"), &road.sender, &road.receiver, RECEIVER);
        let near = Tcpdump::start(&road.sender, &road.near.a, &directory.path().join("near.pcap"));
        let far = Tcpdump::start(&road.receiver, &road.far.b, &directory.path().join("far.pcap"));
        pair.run("--pace 200M -t 2");
        let (near, far) = (near.stop(), far.stop());
        let truth = (Road::dropped(&road.router), Road::dropped(&road.receiver));
        let said = document(&[&near, &far]);
        let flows = said["flows"].as_array().expect("a list");
        let sum = |key: &str| flows.iter().filter_map(|flow| flow[key].as_u64()).sum::<u64>();
        println!("dropped {truth:?}: {} {}", sum("lost_network"), sum("lost_receiver"));
        assert_eq!(
            (sum("lost_network"), sum("lost_receiver")),
            truth,
            "{:#}",
            said["path"][0]["forward"]["lost_data"]
        );
        assert!(truth.0 + truth.1 > 10, "{truth:?} losses say nothing");
        let listed = |place: &str| {
            let losses = said["losses"].as_array().expect("a list").iter();
            losses.filter(|loss| loss["place"] == place).count() as u64
        };
        assert_eq!((listed("network"), listed("receiver")), truth);
        assert_eq!(said["path"][0]["given_up"], 0);
    }
}
