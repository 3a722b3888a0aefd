//! A path of sender, router and receiver namespaces, with nftables rules that count drops, and tcpdump.

use std::path::{Path, PathBuf};
use std::process::Command;

use landspeed_testkit::netns::{Namespace, Veth, veth};
use landspeed_testkit::process::{Process, until};
use serde_json::Value;

/// Sender, router and receiver, with segmentation offloads disabled.
pub struct RoutedPath {
    pub sender: Namespace,
    pub router: Namespace,
    pub receiver: Namespace,
    pub sender_side: Veth,
    pub receiver_side: Veth,
}

/// Address of the receiver.
pub const RECEIVER: &str = "10.9.2.2";

impl RoutedPath {
    pub fn new() -> Result<Self, String> {
        let [sender, router, receiver] = ["sender", "router", "receiver"].map(Namespace::new);
        let (sender, router, receiver) = (sender?, router?, receiver?);
        let sender_side = veth(&sender, &router, "10.9.1.1/24", "10.9.1.2/24");
        let receiver_side = veth(&router, &receiver, "10.9.2.1/24", "10.9.2.2/24");
        for (namespace, interface) in [
            (&sender, &sender_side.a),
            (&router, &sender_side.b),
            (&router, &receiver_side.a),
            (&receiver, &receiver_side.b),
        ] {
            namespace.exec(["ethtool", "-K", interface, "tso", "off", "gso", "off", "gro", "off"]);
        }
        router.forward();
        sender.exec(["ip", "route", "add", "default", "via", "10.9.1.2"]);
        receiver.exec(["ip", "route", "add", "default", "via", "10.9.2.1"]);
        Ok(Self { sender, router, receiver, sender_side, receiver_side })
    }

    /// Packets dropped by the rules of a namespace.
    pub fn dropped(namespace: &Namespace) -> u64 {
        let rules: Value = serde_json::from_str(&namespace.exec(["nft", "--json", "list", "ruleset"])).expect("JSON");
        let entries = rules["nftables"].as_array().expect("a list");
        let counters = entries.iter().filter_map(|entry| entry["counter"]["packets"].as_u64());
        counters.sum()
    }
}

/// tcpdump of headers on an interface; killed on drop.
pub struct Tcpdump {
    process: Process,
    file: PathBuf,
}

impl Tcpdump {
    pub fn start(namespace: &Namespace, interface: &str, file: &Path) -> Self {
        let mut command = Command::new("tcpdump");
        command.args(["-i", interface, "-s", "128", "-B", "32768", "-w"]).arg(file);
        command.args(["-Z", "root", "--time-stamp-precision=nano", "--immediate-mode"]);
        let process = namespace.run(|| Process::start(command));
        until(60, "tcpdump to listen", || process.stderr().contains("listening on"));
        Self { process, file: file.to_owned() }
    }

    pub fn stop(self) -> String {
        // tcpdump flushes its buffer on SIGINT.
        self.process.signal("INT");
        assert_eq!(self.process.end(60).code, 0);
        self.file.to_str().expect("plain").to_owned()
    }
}

/// An nftables rule that drops and counts one data packet in `every`. The ingress hook comes after the tap.
pub fn drop_one_in(interface: &str, protocol: &str, every: u32) -> String {
    let offset = every / 2;
    format!(
        "table netdev t {{\ncounter lost {{ }}\nchain c {{\n\
         type filter hook ingress device \"{interface}\" priority 0;\n\
         meta length > 1000 ip protocol {protocol} numgen inc mod {every} == {offset} counter name lost drop\n}}\n}}\n"
    )
}
