//! Losses in the network and in the receiver's kernel, told apart: namespaces whose nftables rules count what they drop,
//! and tcpdump at both ends.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use landspeed_testkit::netns::{Namespace, Veth, veth};
use landspeed_testkit::pair::Pair;
use landspeed_testkit::skip;
use serde_json::Value;

use crate::document;

/// A sender, a router and a receiver, frames as on a wire.
struct Road {
    sender: Namespace,
    router: Namespace,
    receiver: Namespace,
    near: Veth,
    far: Veth,
}

const RECEIVER: &str = "10.9.2.2";

impl Road {
    fn new() -> Result<Self, String> {
        let [sender, router, receiver] = ["sender", "router", "receiver"].map(Namespace::new);
        let (sender, router, receiver) = (sender?, router?, receiver?);
        let near = veth(&sender, &router, "10.9.1.1/24", "10.9.1.2/24");
        let far = veth(&router, &receiver, "10.9.2.1/24", "10.9.2.2/24");
        for (namespace, interface) in [(&sender, &near.a), (&router, &near.b), (&router, &far.a), (&receiver, &far.b)]
        {
            namespace.exec(["ethtool", "-K", interface, "tso", "off", "gso", "off", "gro", "off"]);
        }
        router.forward();
        sender.exec(["ip", "route", "add", "default", "via", "10.9.1.2"]);
        receiver.exec(["ip", "route", "add", "default", "via", "10.9.2.1"]);
        Ok(Self { sender, router, receiver, near, far })
    }

    /// What the rules of a namespace dropped.
    fn dropped(namespace: &Namespace) -> u64 {
        let rules: Value = serde_json::from_str(&namespace.exec(["nft", "--json", "list", "ruleset"])).expect("JSON");
        let entries = rules["nftables"].as_array().expect("a list");
        let counters = entries.iter().filter_map(|entry| entry["counter"]["packets"].as_u64());
        counters.sum()
    }
}

/// tcpdump on an interface, of headers. Dropping it ends it.
struct Tcpdump {
    child: Child,
    file: PathBuf,
}

impl Tcpdump {
    fn start(namespace: &Namespace, interface: &str, file: &Path) -> Self {
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            namespace.name(),
            "tcpdump",
            "-i",
            interface,
            "-s",
            "128",
            "-B",
            "32768",
            "-w",
        ]);
        command.arg(file).args(["-Z", "root", "--time-stamp-precision=nano", "--immediate-mode"]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("ip runs");
        let mut said = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            assert!(said.read_line(&mut line).expect("its output") > 0, "tcpdump ended before it listened");
        }
        Self { child, file: file.to_owned() }
    }

    fn stop(mut self) -> String {
        let id = self.child.id().to_string();
        // What is still in its buffer is written when it is asked to end.
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
        assert!(self.child.wait().expect("it ends").success());
        self.file.to_str().expect("plain").to_owned()
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Drops one data packet in so many, and counts it. A hook of the device is behind the tap.
fn drop_one_in(chain: &str, every: u32, offset: u32) -> String {
    format!(
        "table netdev t {{\ncounter lost {{ }}\nchain c {{\n{chain};\n\
         meta length > 1000 ip protocol tcp numgen inc mod {every} == {offset} counter name lost drop\n}}\n}}\n"
    )
}

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
                let hook = format!("type filter hook ingress device \"{interface}\" priority 0");
                namespace.nft(&drop_one_in(&hook, every, every / 2));
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
