//! Placement of threads and interrupts by real interrupts, and drops of a real ring.

use landspeed_testkit::machine::{Blueprint, Machine, Nic, Suite};
use landspeed_testkit::or_skip;
use serde_json::Value;

use super::{blueprint, interrupt, landspeed, read, set_up};
use crate::common::list;

/// Moves the machine's second NIC into a network namespace at the other end of the wire, with a server: 10.0.0.2. Returns the
/// name of the first NIC: 10.0.0.1.
fn connect(machine: &mut Machine) -> String {
    let [near, far] = [0, 1].map(|number| machine.interface(number));
    let script = format!(
        "unshare -n sleep 2000 > /dev/null 2>&1 & echo $! > /run/peer
         while [ \"$(readlink /proc/$(cat /run/peer)/ns/net)\" = \"$(readlink /proc/self/ns/net)\" ]; do sleep 0.1; done
         ip link set {far} netns $(cat /run/peer)
         echo 'exec nsenter -t $(cat /run/peer) -n \"$@\"' > /run/at-peer
         for command in 'addr add 10.0.0.2/24 dev {far}' 'link set {far} up' 'link set lo up'; do
           sh /run/at-peer ip $command
         done
         ip addr add 10.0.0.1/24 dev {near}"
    );
    machine.run(&script).expect(0);
    set_up(machine, &[&near]);
    let serve = "export LANDSPEED_ARCHIVE=off
         sh /run/at-peer landspeed serve --allow-host-changes > /run/serve 2>&1 &
         until ping -c 1 -w 2 10.0.0.2 > /dev/null && grep -q listening /run/serve; do sleep 0.2; done";
    machine.run(serve).expect(0);
    near
}

/// Runs the program with `--json` to a file; returns the document and what was printed.
fn document(machine: &mut Machine, arguments: &str) -> (Value, String) {
    let said = landspeed(machine, &format!("{arguments} --json /run/document"));
    assert!([0, 1].contains(&said.status), "{said:?}");
    (serde_json::from_str(&read(machine, "/run/document")).expect("JSON"), said.stdout)
}

#[test]
#[ignore = "long: tests and a map in an emulated machine"]
fn threads_and_maps_follow_interrupts() {
    let nics = [Nic::e1000e().on_node(1).on_wire(1), Nic::virtio(1).on_node(0).on_wire(1)];
    let mut machine =
        or_skip!(nics.into_iter().fold(blueprint(Suite::Bookworm).cores_per_node(2), Blueprint::nic).boot());
    let machine = &mut machine;
    let near = connect(machine);
    let number = interrupt(machine, &format!("{near}-rx-0"));
    let affinity = format!("/proc/irq/{number}/smp_affinity_list");
    // The receiving thread goes beside the core of the interrupt, on its node.
    for (core, beside) in [(3, 2), (2, 3), (0, 1)] {
        machine.run(&format!("echo {core} > {affinity}; ping -c 5 -i 0.2 10.0.0.2")).expect(0);
        let (run, said) = document(machine, "run 10.0.0.2 -R --cpus auto -t 2");
        let receiver = &run["streams"][0]["receiver"];
        assert_eq!((&receiver["incoming_cpu"], &receiver["cpu"]), (&core.into(), &beside.into()), "{said}");
    }
    // A map moves the interrupt to each core, and back.
    let before = read(machine, &affinity);
    let (map, said) = document(machine, "tuneup 10.0.0.2 -R --map=1,3 --allow-host-changes -t 1 --budget 300s");
    assert_eq!(map["map"]["columns"], "interrupts", "{said}");
    let cells = list(&map["map"]["cells"]);
    assert_eq!(cells.len(), 4, "{said}");
    for cell in cells {
        assert_eq!(cell["receive_queue_cpu"], cell["column_core"], "{cell:#}\n{said}");
    }
    assert_eq!(read(machine, &affinity), before);
}

#[test]
#[ignore = "long: a transfer in an emulated machine"]
fn watch_sees_drops_of_a_full_ring() {
    // 64 descriptors: a burst of the sender overruns them.
    let nics = [Nic::realtek().on_wire(1), Nic::virtio(1).on_node(0).on_wire(1)];
    let mut machine = or_skip!(nics.into_iter().fold(blueprint(Suite::Bookworm), Blueprint::nic).boot());
    let machine = &mut machine;
    let near = connect(machine);
    let missed = format!("/sys/class/net/{near}/statistics/rx_missed_errors");
    let before: u64 = read(machine, &missed).parse().expect("a number");
    let transfer = "export LANDSPEED_ARCHIVE=off
         landspeed run 10.0.0.2 -R -t 20 > /run/run 2>&1 & sleep 3";
    machine.run(transfer).expect(0);
    let (watch, said) = document(machine, "watch --for 8s --plain --port 5210");
    let dropped = read(machine, &missed).parse::<u64>().expect("a number") - before;
    assert!(dropped > 0, "the ring was never full: {said}");
    let named = |flow: &&Value| flow["cause"] == "receiver-host-drops" && flow["place"] == "local host, receive ring";
    assert!(list(&watch["flows"]).iter().any(|flow| named(&flow)), "{said}");
}
