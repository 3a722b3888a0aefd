//! `check` finds the settings of a driver, `tune` changes and restores them.

use landspeed_testkit::machine::{Blueprint, Machine, Nic, Suite};
use landspeed_testkit::or_skip;
use serde_json::{Value, json};

use super::{blueprint, document, interrupt, landspeed, read, set_up};
use crate::common::{assert_valid, list};

/// Facts of one interface that `tune` can change.
fn settings(facts: &Value, name: &str) -> Value {
    let port = port(facts, name);
    let own: Vec<&Value> = list(&facts["interrupts"]["known"])
        .iter()
        .filter(|it| list(&port["interrupts"]).contains(&it["number"]))
        .collect();
    let placed: Vec<Value> = own.iter().map(|it| json!([it["name"], it["affinity"]])).collect();
    let keys = [
        "mtu_bytes",
        "rings",
        "channels",
        "coalescing",
        "pause",
        "features",
        "tx_queue_len",
        "queues",
        "gro_flush_timeout_ns",
        "napi_defer_hard_irqs",
        "qdiscs",
    ];
    let mut all: serde_json::Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), port[*key].clone())).collect();
    all.insert("placed".into(), placed.into());
    all.into()
}

#[track_caller]
fn port<'a>(facts: &'a Value, name: &str) -> &'a Value {
    list(&facts["interfaces"]).iter().find(|port| port["name"] == name).expect("the interface")
}

#[track_caller]
fn audit(machine: &mut Machine, interface: &str) -> Value {
    document(machine, &format!("check --goal 10G --iface {interface}"), 1)
}

fn codes(audit: &Value, list_name: &str) -> Vec<String> {
    list(&audit[list_name]).iter().filter_map(|entry| entry["code"].as_str()).map(str::to_owned).collect()
}

/// Checks what the audit knows about an e1000e on node 1 and a NIC with several queues on node 0, changes it by a
/// transaction, and rolls it back.
fn settings_of_drivers(suite: Suite) {
    let nics = [Nic::e1000e().on_node(1).on_wire(1), Nic::vmxnet3().on_node(0).on_wire(1)];
    let mut machine = or_skip!(nics.into_iter().fold(blueprint(suite), Blueprint::nic).boot());
    let machine = &mut machine;
    let [near, other] = [0, 1].map(|number| machine.interface(number));
    set_up(machine, &[&near, &other]);
    let release = read(machine, "/proc/sys/kernel/osrelease");

    let before = audit(machine, &near);
    assert_valid("audit", &before);
    let facts = &before["facts"];
    let known = |fact: &str| port(facts, &near)[fact]["known"].clone();
    assert_eq!(known("driver")["name"], "e1000e", "{release}");
    let pci = known("pci");
    assert_eq!((&pci["numa_node"]["known"], &pci["local_cpus"]["known"]), (&json!(1), &json!("1")), "{pci:#}");
    assert_eq!((&pci["width"]["known"], &pci["speed_gts"]["known"]), (&json!(1), &json!(2.5)), "{pci:#}");
    assert_eq!(known("rings"), json!({ "rx": { "now": 256, "max": 4096 }, "tx": { "now": 256, "max": 4096 } }));
    assert_eq!(known("coalescing")["rx_us"], 3);
    assert_eq!(known("features")["tx-tcp-segmentation"], json!({ "active": true, "changeable": true }));
    let placed = settings(facts, &near)["placed"].clone();
    let names: Vec<&str> = list(&placed).iter().filter_map(|it| it[0].as_str()).collect();
    assert_eq!(names, [format!("{near}-rx-0"), format!("{near}-tx-0"), near.clone()]);
    let placed = settings(facts, &other)["placed"].clone();
    assert_eq!(list(&placed).iter().filter(|it| it[0].as_str().is_some_and(|name| name.contains("rxtx"))).count(), 2);
    assert_eq!(codes(&before, "unknown"), [""; 0], "{release}: {:#}", before["unknown"]);
    assert!(
        !codes(&before, "findings").iter().any(|code| code.starts_with("IRQ-00") && code != "IRQ-007"),
        "{before:#}"
    );

    // An interrupt on the other node is found, and moved back by the transaction that the finding asks for.
    let number = interrupt(machine, &format!("{near}-rx-0"));
    let affinity = format!("/proc/irq/{number}/smp_affinity_list");
    // A packet that arrives: some interrupts move when they fire.
    machine.run(&format!("ip addr add 10.0.1.1/24 dev {other}")).expect(0);
    let receive = "ping -c 2 -w 2 10.0.1.2 > /dev/null; true";
    machine.run(&format!("echo 0 > {affinity}; {receive}")).expect(0);
    let far = landspeed(machine, &format!("check --goal 10G --iface {near} --only IRQ-001")).expect(1);
    assert!(far.contains("IRQ-001"), "{far}");
    let apply = format!("tune apply --goal 10G --iface {near} --only IRQ-001 --confirm 900");
    landspeed(machine, &apply).expect(0);
    assert_eq!(read(machine, &affinity), "1");
    landspeed(machine, "tune revert").expect(0);
    assert_eq!(read(machine, &affinity), "0");
    machine.run(&format!("echo 1 > {affinity}; {receive}")).expect(0);

    let changes = [
        format!("{near}:rx-ring=1024"),
        format!("{near}:tx-ring=512"),
        format!("{near}:rx-usecs=50"),
        format!("{near}:mtu=4000"),
        format!("{near}:tx-tcp-segmentation=off"),
        format!("{near}:txqueuelen=2000"),
        format!("{near}:gro_flush_timeout=20000"),
        format!("{near}:rx-0/rps_cpus=1"),
        format!("{near}:qdisc=fq maxrate 500mbit"),
        format!("irq:{number}/{near}-rx-0=0-1"),
        format!("{other}:qdisc=fq"),
        format!("{other}:rx-ring=512"),
        format!("{other}:tx-0/xps_cpus=1"),
        "net.ipv4.tcp_congestion_control=bbr".to_owned(),
    ];
    let arguments: Vec<String> = changes.iter().map(|change| format!(" --set '{change}'")).collect();
    landspeed(machine, &format!("tune apply --disruptive --confirm 900{}", arguments.concat())).expect(0);
    set_up(machine, &[&near, &other]);
    let during = audit(machine, &near);
    let known = |fact: &str| port(&during["facts"], &near)[fact]["known"].clone();
    assert_eq!((&known("rings")["rx"]["now"], &known("rings")["tx"]["now"]), (&json!(1024), &json!(512)));
    assert_eq!(known("coalescing")["rx_us"], 50);
    assert_eq!(known("features")["tx-tcp-segmentation"]["active"], false);
    assert_eq!(known("qdiscs")[0]["kind"], "fq");
    for (file, value) in
        [("mtu", "4000"), ("tx_queue_len", "2000"), ("gro_flush_timeout", "20000"), ("queues/rx-0/rps_cpus", "1")]
    {
        assert_eq!(read(machine, &format!("/sys/class/net/{near}/{file}")), value, "{file}");
    }
    assert_eq!(read(machine, &affinity), "0-1");
    assert_eq!(read(machine, "/proc/sys/net/ipv4/tcp_congestion_control"), "bbr");
    landspeed(machine, "tune revert").expect(0);
    set_up(machine, &[&near, &other]);
    let after = audit(machine, &near);
    for name in [&near, &other] {
        assert_eq!(settings(&after["facts"], name), settings(&before["facts"], name), "{release}: {name}");
    }
}

#[test]
fn settings_of_drivers_are_found_changed_and_restored() {
    settings_of_drivers(Suite::Bookworm);
}

#[test]
#[ignore = "long: a boot of an older kernel"]
fn settings_of_drivers_on_linux_5_10() {
    settings_of_drivers(Suite::Bullseye);
}

#[test]
#[ignore = "long: a boot of a newer kernel"]
fn settings_of_drivers_on_debians_newest_linux() {
    settings_of_drivers(Suite::Newest);
}
