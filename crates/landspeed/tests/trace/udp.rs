//! Sequence numbers of UDP tests: the trace agrees with the sending program's counters and with nftables.

use std::process::Command;

use landspeed_testkit::pair::Pair;
use landspeed_testkit::process::{Process, until};
use landspeed_testkit::skip;
use serde_json::Value;

use crate::common::PROGRAM;
use crate::trace::document;
use crate::trace::road::{RECEIVER, RoutedPath, Tcpdump, drop_one_in};

macro_rules! road {
    () => {
        landspeed_testkit::or_skip!(RoutedPath::new())
    };
}

/// The trace's figures for the numbered datagrams in a file.
fn numbered(file: &str) -> Value {
    let said = document(&[file]);
    let flows = said["flows"].as_array().expect("a list");
    let flow = flows.iter().find(|flow| flow["transport"] == "udp").expect("a UDP flow");
    flow["forward"]["numbered"].clone()
}

#[test]
fn landspeed_datagrams_match_the_receivers_count() {
    let road = road!();
    if Command::new("tcpdump").arg("--version").output().is_err() {
        skip!("tcpdump is not installed");
    }
    road.router.nft(&drop_one_in(&road.sender_side.b, "udp", 97));
    let directory = tempfile::tempdir().expect("a directory");
    let pair = Pair::across(PROGRAM, &road.sender, &road.receiver, RECEIVER);
    let receiver_side =
        Tcpdump::start(&road.receiver, &road.receiver_side.b, &directory.path().join("receiver_side.pcap"));
    let run = pair.run("-u -b 20M -l 1200 -n 2400K --no-gso --no-gro");
    let found = numbered(&receiver_side.stop());
    let truth = &run["streams"][0]["receiver"]["udp"];
    let (delivered, past) = (truth["delivered_packets"].as_u64(), truth["highest_seq"].as_u64());
    let (delivered, past) = (delivered.expect("a count"), past.expect("one past the highest number"));
    assert_eq!(found["protocol"], "landspeed");
    assert_eq!((found["received"].as_u64(), found["lost"].as_u64()), (Some(delivered), Some(past - delivered)));
    assert!(found["lost"].as_u64() > Some(10), "{found}");
    assert_eq!((&found["reordered"], &found["duplicates"]), (&0.into(), &0.into()));
    // No rule drops the hello datagrams; a dropped last datagram is beyond the highest number.
    let dropped = RoutedPath::dropped(&road.router);
    assert!(dropped - found["lost"].as_u64().expect("a count") <= 1, "{dropped} dropped, {found}");
}

#[test]
fn iperf3_datagrams_match_iperf3s_count() {
    let road = road!();
    if [("tcpdump", "--version"), ("iperf3", "--version")]
        .iter()
        .any(|(it, v)| Command::new(it).arg(v).output().is_err())
    {
        skip!("tcpdump or iperf3 is not installed");
    }
    let directory = tempfile::tempdir().expect("a directory");
    for (option, name) in [("--udp", "iperf3"), ("--udp-counters-64bit", "iperf3, 64-bit counters")] {
        road.router.exec(["nft", "flush", "ruleset"]);
        road.router.nft(&drop_one_in(&road.sender_side.b, "udp", 101));
        let server = road.receiver.run(|| Process::start(Command::new("iperf3").args(["-s", "-1", "--forceflush"])));
        until(60, "iperf3 to listen", || server.stdout().contains("listening"));
        let receiver_side =
            Tcpdump::start(&road.receiver, &road.receiver_side.b, &directory.path().join("receiver_side.pcap"));
        // At a low rate, so that iperf3's small socket buffer loses nothing while its server waits for a core.
        let client = [
            "timeout", "20", "iperf3", "-c", RECEIVER, "--udp", option, "-b", "4M", "-l", "1200", "-k", "1200", "-J",
        ];
        let run: Value = serde_json::from_str(&road.sender.exec(client)).expect("JSON");
        drop(server);
        let found = numbered(&receiver_side.stop());
        let (lost, dropped) = (run["end"]["sum"]["lost_packets"].as_u64(), RoutedPath::dropped(&road.router));
        assert_eq!((found["protocol"].as_str(), found["lost"].as_u64()), (Some(name), Some(dropped)), "{found}");
        assert_eq!(found["received"].as_u64(), Some(1_200 - dropped));
        assert!(dropped > 10, "{dropped} losses say nothing");
        assert!(lost.is_some_and(|lost| lost.abs_diff(dropped) <= 1), "iperf3 itself says {lost:?}");
    }
}
