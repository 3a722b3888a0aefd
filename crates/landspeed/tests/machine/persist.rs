//! Settings that `tune persist` writes apply after a reboot of Debian with systemd, with each manager of interfaces.

use landspeed_testkit::machine::{Blueprint, Machine, Nic, Suite};
use landspeed_testkit::or_skip;

use super::{blueprint, document, interrupt, landspeed, read, set_up};
use crate::common::list;

/// Programs that may configure an interface; a machine runs one of them.
const MANAGERS: [&str; 3] = ["NetworkManager", "systemd-networkd", "networking"];
const ADDRESS: &str = "52:54:00:00:01:00";

/// A machine with this manager, or with none.
fn machine_with(manager: Option<&str>) -> Blueprint {
    let mut machine = blueprint(Suite::Bookworm).systemd().nic(Nic::e1000e().on_node(1).on_wire(1));
    machine = machine.nic(Nic::virtio(1).on_node(0).on_wire(1)).kernel_argument("systemd.mask=irqbalance.service");
    for other in MANAGERS.iter().filter(|other| manager != Some(*other)) {
        machine = machine.kernel_argument(&format!("systemd.mask={other}.service"));
    }
    machine
}

/// Values as the kernel and ethtool(8) report them.
#[track_caller]
fn observed(machine: &mut Machine, name: &str, irq: &str) -> Vec<String> {
    let number = interrupt(machine, irq);
    let script = format!(
        "ethtool -g {name} | sed -n '/Current/,$ s/^\\(RX\\|TX\\):[ \\t]*/\\1 ring /p'
         ethtool -c {name} | grep rx-usecs:
         ethtool -k {name} | grep tx-tcp-segmentation:
         cd /sys/class/net/{name}; grep . mtu tx_queue_len gro_flush_timeout queues/rx-0/rps_cpus
         echo \"interrupt $(cat /proc/irq/{number}/smp_affinity_list)\"
         tc qdisc show dev {name} | cut -d' ' -f2 | head -n 1
         cat /proc/sys/net/ipv4/tcp_congestion_control"
    );
    machine.run(&script).expect(0).lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Applies, confirms and persists settings of a NIC, reboots, and compares; then without them again.
fn persisted_settings_survive_a_reboot(blueprint: Blueprint, has_manager: bool) {
    let mut machine = or_skip!(blueprint.boot());
    let machine = &mut machine;
    let name = machine.interface(0);
    set_up(machine, &[&name]);
    if has_manager {
        // It has configured the interface: who manages it can be detected.
        machine.run(&format!("until ip addr show {name} | grep -q 10.0.0.1; do sleep 0.5; done")).expect(0);
    }
    let irq = format!("{name}-rx-0");
    let number = interrupt(machine, &irq);
    let before = observed(machine, &name, &irq);
    let mut settings = vec![
        format!("{name}:rx-ring=1024"),
        format!("{name}:tx-ring=512"),
        format!("{name}:rx-usecs=50"),
        format!("{name}:tx-tcp-segmentation=off"),
        format!("{name}:mtu=4000"),
        format!("{name}:txqueuelen=2000"),
        format!("{name}:gro_flush_timeout=20000"),
        format!("{name}:rx-0/rps_cpus=1"),
        format!("{name}:qdisc=fq"),
        "net.core.default_qdisc=fq".to_owned(),
        "net.ipv4.tcp_congestion_control=bbr".to_owned(),
    ];
    // A driver requests its interrupts when somebody sets up the interface.
    if has_manager {
        settings.push(format!("irq:{number}/{irq}=0"));
    }
    let arguments: Vec<String> = settings.iter().map(|setting| format!(" --set '{setting}'")).collect();
    landspeed(machine, &format!("tune apply --disruptive --confirm 900{}", arguments.concat())).expect(0);
    set_up(machine, &[&name]);
    landspeed(machine, "tune confirm").expect(0);
    let applied = observed(machine, &name, &irq);
    let changed = before.iter().zip(&applied).filter(|(before, applied)| before != applied).count();
    assert_eq!((before.len(), changed), (11, if has_manager { 11 } else { 10 }), "{before:?} {applied:?}");
    let persisted = document(machine, "tune persist", 0);
    let left: Vec<&str> = list(&persisted["by_hand"]).iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(left, [""; 0], "{persisted:#}");

    machine.reboot();
    assert!(
        read(machine, "/proc/uptime").split('.').next().is_some_and(|up| up.parse::<u32>().is_ok_and(|up| up < 500))
    );
    let name = machine.interface(0);
    set_up(machine, &[&name]);
    if has_manager {
        // The service waits until the manager has set up the interface, and the boot does not wait for the service.
        let wait = "while state=$(systemctl show -P ActiveState landspeed-interrupts); [ $state = activating ]; do
               sleep 0.5
             done
             systemctl status --no-pager landspeed-interrupts; [ $state = active ]";
        machine.run(wait).expect(0);
    }
    let booted = observed(machine, &name, &format!("{name}-rx-0"));
    assert_eq!(booted, applied, "{persisted:#}\n{}", machine.run("journalctl -b --no-pager -p warning").stdout);
    let status = landspeed(machine, "tune status").expect(0);
    assert!(status.contains("before the last restart"), "{status}");

    landspeed(machine, "tune revert --persisted").expect(0);
    machine.reboot();
    let name = machine.interface(0);
    set_up(machine, &[&name]);
    assert_eq!(observed(machine, &name, &format!("{name}-rx-0")), before);
}

#[test]
#[ignore = "long: three boots of systemd"]
fn persisted_settings_survive_a_reboot_with_udev_alone() {
    persisted_settings_survive_a_reboot(machine_with(None), false);
}

#[test]
#[ignore = "long: three boots of systemd"]
fn persisted_settings_survive_a_reboot_with_networkd() {
    let network =
        format!("[Match]\nMACAddress={ADDRESS}\n\n[Network]\nAddress=10.0.0.1/24\n\n[Link]\nMTUBytes=1500\n");
    let machine = machine_with(Some("systemd-networkd")).file("etc/systemd/network/10-data.network", 0o644, &network);
    let wants = "[Unit]\nWants=systemd-networkd.service\n";
    let machine = machine.file("etc/systemd/system/multi-user.target.d/networkd.conf", 0o644, wants);
    persisted_settings_survive_a_reboot(machine, true);
}

#[test]
#[ignore = "long: three boots of systemd"]
fn persisted_settings_survive_a_reboot_with_ifupdown() {
    let interfaces = "auto lo\niface lo inet loopback\n\nauto ens1\niface ens1 inet static\n  address 10.0.0.1/24\n";
    let machine = machine_with(Some("networking")).file("etc/network/interfaces", 0o644, interfaces);
    persisted_settings_survive_a_reboot(machine, true);
}

#[test]
#[ignore = "long: three boots of systemd"]
fn persisted_settings_survive_a_reboot_with_networkmanager() {
    let profile = format!(
        "[connection]\nid=data\nuuid=6f1f3a3c-5e11-4a2e-9a51-2b8f4f1d7f11\ntype=ethernet\n\n[ethernet]\nmac-address={ADDRESS}\n\n\
         [ipv4]\nmethod=manual\naddress1=10.0.0.1/24\n\n[ipv6]\nmethod=link-local\n"
    );
    let machine = machine_with(Some("NetworkManager")).file(
        "etc/NetworkManager/system-connections/data.nmconnection",
        0o600,
        &profile,
    );
    persisted_settings_survive_a_reboot(machine, true);
}
