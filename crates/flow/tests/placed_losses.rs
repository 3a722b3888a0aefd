//! Losses are placed by the drop counters of both hosts, each drop once.

use landspeed_flow::assemble::{self, CollectedRun};
use landspeed_model::{LossLocation, QdiscDelta};
use landspeed_testkit::missing::recordings;

/// Packets that the recorded run below loses besides what it lost.
const LOST: u64 = 1_000;

/// Returns the accounting of a recorded UDP upload that lost packets, after a change: places, packets and sources.
fn placed(change: impl Fn(&mut CollectedRun)) -> Vec<(LossLocation, u64, String)> {
    let (_, recording) = recordings().into_iter().find(|(name, _)| name == "udp").expect("a recording");
    let mut run: CollectedRun = serde_json::from_value(recording).expect("a recorded run");
    for end in [run.client.as_mut(), run.server.as_mut()].into_iter().flatten() {
        end.host.qdiscs.clear();
        end.host.nic.clear();
        end.host.softnet.dropped = 0;
    }
    for stream in &mut run.server.as_mut().expect("a server").streams {
        stream.end.udp.as_mut().expect("UDP").socket_drops = Some(0);
    }
    let sent = run.client.as_ref().expect("a client").streams[0].end.udp.as_ref().expect("UDP").sent_packets;
    let received = run.server.as_mut().expect("a server").streams[0].end.udp.as_mut().expect("UDP");
    received.delivered_packets = sent - LOST;
    change(&mut run);
    let losses = assemble::document(run).conservation.losses;
    losses.into_iter().map(|loss| (loss.place, loss.packets, loss.source)).collect()
}

fn drops(kind: &str, parent: &str, drops: u64) -> QdiscDelta {
    QdiscDelta { kind: kind.into(), parent: parent.into(), drops, ..QdiscDelta::default() }
}

#[track_caller]
fn are_placed(found: &[(LossLocation, u64, String)], expected: &[(LossLocation, u64)]) {
    let places: Vec<(LossLocation, u64)> = found.iter().map(|&(place, packets, _)| (place, packets)).collect();
    assert_eq!(places, expected, "{found:?}");
}

#[test]
fn refused_datagrams_do_not_explain_losses() {
    let refusing = |dropped: u64, refused: u64| {
        placed(|run| {
            let client = run.client.as_mut().expect("a client");
            client.host.qdiscs = vec![drops("tbf", "root", dropped), drops("bfifo", "8003:1", dropped)];
            client.streams[0].end.udp.as_mut().expect("UDP").send_errors = Some(refused);
        })
    };
    are_placed(&refusing(700, 700), &[(LossLocation::Network, LOST)]);
    are_placed(&refusing(900, 300), &[(LossLocation::SenderQdisc, 600), (LossLocation::Network, 400)]);
    are_placed(&refusing(5_000, 0), &[(LossLocation::SenderQdisc, LOST)]);
}

#[test]
fn drops_of_a_policer_are_at_the_receivers_interface() {
    let policed = |kind: &str| {
        placed(|run| {
            run.server.as_mut().expect("a server").host.qdiscs =
                vec![drops("noqueue", "root", 0), drops(kind, "ingress", 700)];
        })
    };
    for kind in ["ingress", "clsact"] {
        let found = policed(kind);
        are_placed(&found, &[(LossLocation::ReceiverNic, 700), (LossLocation::Network, 300)]);
        assert_eq!(found[0].2, "ingress qdisc statistics");
    }
}
