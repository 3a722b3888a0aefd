//! Recorded hosts of realistic shapes (`fixtures/hosts`), with the facts expected of each.

use landspeed_host::{RecordedHost, collect};
use landspeed_model::{CoalescingFacts, Extent, Fact, Facts, InterfaceFacts, PciFacts, QdiscFacts};
use landspeed_testkit::hosts::{names, unpack};

fn host(name: &str) -> Facts {
    let facts = collect(&RecordedHost::open(unpack(name).path()).expect("a recorded host"));
    assert_eq!((facts.taken.as_str(), facts.collect_ns), ("2026-03-01T08:00:00Z", 0));
    facts
}

fn interface<'a>(facts: &'a Facts, name: &str) -> &'a InterfaceFacts {
    facts.interfaces.iter().find(|nic| nic.name == name).expect("an interface of that name")
}

fn pci(nic: &InterfaceFacts) -> &PciFacts {
    nic.pci.known().expect("a PCI device")
}

fn qdiscs(nic: &InterfaceFacts) -> &[QdiscFacts] {
    nic.qdiscs.known().expect("queueing disciplines")
}

fn sysctl(facts: &Facts, name: &str) -> Option<String> {
    facts.sysctls.get(name)?.known().cloned()
}

fn running(facts: &Facts, name: &str) -> bool {
    facts.services[name].known().expect("it is known").running
}

fn is_absent<T>(fact: &Fact<T>) -> bool {
    matches!(fact, Fact::Absent(_))
}

fn is_unknown<T>(fact: &Fact<T>) -> bool {
    matches!(fact, Fact::Unknown(_))
}

#[test]
fn every_recorded_host_is_complete_and_names_its_sources() {
    let mut seen = 0;
    for recorded in names() {
        let source = std::fs::read_to_string(unpack(&recorded).path().join("SOURCE.md")).expect("its source");
        assert!(source.contains("Put together; no such machine was recorded."), "{source}");
        let facts = host(&recorded);
        let name = facts.default_interface.known().expect("a default route");
        let nic = interface(&facts, name);
        assert!(!facts.kernel.release.is_empty() && !facts.cpu.online.is_empty(), "{name}");
        assert!(
            nic.features.known().is_some() && nic.driver.known().is_some() && nic.qdiscs.known().is_some(),
            "{name}"
        );
        assert!(facts.softnet.known().is_some_and(|softnet| softnet.processed > 0), "{name}");
        assert_eq!(facts.counters.get("TcpExt.TCPRcvQDrop"), Some(&0), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 8);
}

#[test]
fn bus_queues_and_buffers_of_a_transfer_node_are_collected() {
    let facts = host("dtn-100g");
    assert!(facts.root);
    assert_eq!((facts.cpu.sockets.known(), facts.cpu.cores.known()), (Some(&2), Some(&16)));
    assert_eq!(facts.cpu.boost, Fact::Known(true));
    let policy = &facts.cpu.policies.known().expect("cpufreq")[9];
    assert_eq!(
        (policy.name.as_str(), policy.cpus.as_str(), policy.governor.as_str()),
        ("policy9", "9", "performance")
    );
    assert_eq!(policy.energy_preference.as_deref(), Some("performance"));
    assert_eq!(facts.cpu.idle_states.known().map(|states| states[3].latency_us), Some(170));
    assert_eq!(facts.kernel.parameter("iommu"), Some("pt"));
    let configuration = facts.kernel.configuration.known().expect("a file in /boot");
    assert_eq!(configuration.get("CONFIG_DEFAULT_TCP_CONG").map(String::as_str), Some("cubic"));
    assert!(!configuration.contains_key("CONFIG_UNRELATED"));
    assert!(is_absent(&facts.virtualization.hypervisor) && is_absent(&facts.virtualization.container));
    assert_eq!(facts.first_network_namespace, Fact::Known(true));

    let nic = interface(&facts, "ens1f0np0");
    let device = pci(nic);
    assert_eq!((device.address.as_str(), device.id.as_str()), ("0000:3b:00.0", "15b3:1017"));
    assert_eq!((device.numa_node.known(), device.local_cpus.known()), (Some(&0), Some(&"0-7".to_owned())));
    assert_eq!((device.speed_gts.known(), device.width.known()), (Some(&8.0), Some(&16)));
    assert_eq!(device.max_read_request_bytes, Fact::Known(512));
    assert_eq!((&device.max_payload_bytes, &device.relaxed_ordering), (&Fact::Known(256), &Fact::Known(true)));
    assert_eq!(device.iommu, Fact::Known("identity".into()));
    assert_eq!(nic.virtual_functions, Fact::Known((0, 8)));
    assert_eq!(nic.speed_bps, Fact::Known(100_000_000_000));
    assert_eq!(nic.rings.known().map(|rings| rings.rx), Some(Extent { now: 8192, max: 8192 }));
    assert_eq!(nic.channels.known().map(|channels| channels.combined), Some(Extent { now: 8, max: 63 }));
    assert_eq!(nic.rss.known().map(|rss| (rss.entries, rss.queues.len())), Some((256, 8)));
    assert_eq!((nic.tx_queues.known(), nic.rx_queues.known()), (Some(&8), Some(&8)));
    let queues = nic.queues.known().expect("queues");
    assert_eq!((queues[8].name.as_str(), queues[8 + 3].xps_cpus.as_deref()), ("tx-0", Some("0008")));
    let tree = qdiscs(nic);
    assert_eq!((tree.len(), tree[0].kind.as_str(), tree[0].handle.as_str()), (9, "mq", "8001:"));
    assert_eq!((tree[1].handle.as_str(), tree[1].parent.as_deref()), ("8002:", Some("8001:1")));
    assert!(tree[1..].iter().all(|leaf| leaf.kind == "fq" && leaf.max_rate_bps == Some(20_000_000_000)));
    assert_eq!(nic.interrupts.len(), 8);
    let interrupts = facts.interrupts.known().expect("interrupts");
    let third = interrupts.iter().find(|irq| irq.number == nic.interrupts[3]).expect("its row");
    assert_eq!(third.name, "mlx5_comp3@pci:0000:3b:00.0");
    assert_eq!((third.affinity.known(), third.count), (Some(&"3".to_owned()), 1_000_000));
    assert_eq!(nic.statistics.get("tx_pause_ctrl_phy"), Some(&12));

    let modules = facts.modules.known().expect("modules");
    assert!(modules.contains_key("mlx5_core") && modules.contains_key("tg3") && modules.contains_key("tcp_bbr"));
    assert!(!modules.contains_key("xfs"));
    assert!(running(&facts, "systemd-networkd") && !running(&facts, "irqbalance"));
}

#[test]
fn sysctl_files_are_listed_in_the_order_they_are_applied() {
    let facts = host("dtn-100g");
    let files = facts.sysctl_files.known().expect("they can be read");
    let of = |name: &str| {
        files
            .iter()
            .filter(|a| a.name == name)
            .map(|a| (a.path.as_str(), a.line, a.value.as_str()))
            .collect::<Vec<_>>()
    };
    // 50-default.conf comes first; the 90-dtn.conf in /etc overrides the one in /usr/lib.
    let expected = [("/usr/lib/sysctl.d/50-default.conf", 1, "fq_codel"), ("/etc/sysctl.d/90-dtn.conf", 8, "fq")];
    assert_eq!(of("net.core.default_qdisc"), expected);
    assert_eq!(of("net.core.rmem_max"), [("/etc/sysctl.d/90-dtn.conf", 2, "2147483647")]);
    assert_eq!(of("net.core.optmem_max"), [("/etc/sysctl.d/90-dtn.conf", 7, "1048576")]);
    assert_eq!(of("net.ipv4.conf.*.rp_filter").len(), 1);
    assert_eq!(sysctl(&facts, "net.ipv4.tcp_rmem").as_deref(), Some("4096 131072 2147483647"));
    assert_eq!(sysctl(&facts, "net.ipv4.conf.eno1.arp_filter").as_deref(), Some("0"));
}

#[test]
fn facts_of_an_old_kernel_are_collected() {
    let facts = host("deck-40g");
    assert_eq!(facts.kernel.number(), Some((4, 18)));
    assert_eq!(sysctl(&facts, "net.ipv4.tcp_mem").as_deref(), Some("16777216 16777216 16777216"));
    assert_eq!(sysctl(&facts, "kernel.sched_min_granularity_ns").as_deref(), Some("10000000"));
    let nic = interface(&facts, "eth4");
    let device = pci(nic);
    assert_eq!((device.numa_node.known(), device.local_cpus.known()), (Some(&1), Some(&"8-15".to_owned())));
    assert_eq!(device.speed_gts, Fact::Known(8.0), "older kernels write `8 GT/s`");
    assert_eq!((&device.max_read_request_bytes, &device.relaxed_ordering), (&Fact::Known(4096), &Fact::Known(false)));
    assert_eq!((nic.interrupts.first(), nic.interrupts.last()), (Some(&178), Some(&197)));
    assert!(
        is_absent(&nic.gro_max_size_bytes) && is_absent(&nic.tso_max_size_bytes) && is_absent(&nic.max_mtu_bytes)
    );
    assert!(is_absent(&nic.napi_defer_hard_irqs) && is_absent(&nic.threaded_napi));
    assert_eq!(nic.gro_flush_timeout_ns, Fact::Known(0));
    assert_eq!(nic.statistics.get("queue_stopped"), Some(&92_899_164));
    let tree = qdiscs(nic);
    assert_eq!(
        (tree[0].handle.as_str(), tree[1].parent.as_deref()),
        ("0:", Some(":1")),
        "attached by the kernel itself"
    );
    assert_eq!(facts.counters.get("TcpExt.PruneCalled"), Some(&831));
    assert_eq!(facts.cgroup.version, Fact::Known("v1".into()));
    assert_eq!(facts.cgroup.cpus, Fact::Known("0-15".into()));
    assert!(is_absent(&facts.cgroup.cpu_millis) && is_absent(&facts.cgroup.memory_max_bytes));
    let tuned = facts.services["tuned"].known().expect("known");
    assert_eq!((tuned.running, tuned.detail.as_deref()), (true, Some("throughput-performance")));
    assert_eq!(facts.modules.known().expect("modules")["mlx4_en"].as_deref(), Some("4.0-0"));
}

#[test]
fn facts_an_unprivileged_guest_cannot_read_have_reasons() {
    let facts = host("virtio-guest");
    assert!(!facts.root);
    assert_eq!(facts.virtualization.hypervisor, Fact::Known("kvm".into()));
    assert!(facts.virtualization.steal_share.known().is_some_and(|&share| share > 0.01 && share < 0.02));
    assert!(is_absent(&facts.cpu.policies) && is_absent(&facts.cpu.idle_states));
    let Fact::Unknown(why) = &facts.kernel.configuration else { panic!("{:?}", facts.kernel.configuration) };
    assert!(why.contains("Permission denied"), "{why}");
    let nic = interface(&facts, "enp1s0");
    let Fact::Unknown(why) = &pci(nic).max_read_request_bytes else { panic!("{:?}", nic.pci) };
    assert!(why.contains("only the first 64 bytes") && why.contains("needs root"), "{why}");
    assert!(is_absent(&pci(nic).speed_gts) && is_absent(&pci(nic).width) && is_absent(&nic.speed_bps));
    assert_eq!(nic.channels.known().map(|channels| channels.combined), Some(Extent { now: 1, max: 4 }));
    assert_eq!(nic.statistics.get("rx_queue_0_drops"), Some(&37));
    assert_eq!(facts.time.synchronised, Fact::Known(false));
    assert_eq!(facts.time.clocksource, Fact::Known("kvm-clock".into()));
    assert_eq!(nic.interrupts.len(), 5);
}

#[test]
fn a_cloud_guest_has_allowance_counters_and_no_link_speed() {
    let facts = host("cloud-sriov");
    assert_eq!(facts.virtualization.hypervisor, Fact::Known("amazon".into()));
    assert_eq!((facts.cpu.online.len(), facts.cpu.cores.known()), (8, Some(&4)));
    let nic = interface(&facts, "ens5");
    assert_eq!(nic.statistics.get("bw_out_allowance_exceeded"), Some(&18_442));
    assert!(is_absent(&nic.pause) && is_absent(&nic.speed_bps) && is_absent(&pci(nic).max_speed_gts));
    assert!(is_absent(&pci(nic).max_read_request_bytes), "{:?}", pci(nic).max_read_request_bytes);
    assert!(is_absent(&nic.gso_ipv4_max_size_bytes) && nic.gso_max_size_bytes.known().is_some());
    let expected =
        CoalescingFacts { adaptive_rx: Some(true), rx_us: Some(20), tx_us: Some(64), ..CoalescingFacts::default() };
    assert_eq!(nic.coalescing, Fact::Known(expected));
}

#[test]
fn lower_devices_of_a_vlan_on_a_bond_are_collected() {
    let facts = host("bonded");
    let vlan = interface(&facts, "bond0.100");
    assert_eq!((vlan.kind.as_deref(), vlan.lower.as_slice()), (Some("vlan"), &["bond0".to_owned()][..]));
    let bond = interface(&facts, "bond0");
    assert_eq!((bond.kind.as_deref(), bond.lower.join(" ").as_str()), (Some("bond"), "ens2f0 ens2f1"));
    assert_eq!((bond.speed_bps.known(), bond.addresses.len()), (Some(&50_000_000_000), 0));
    assert!(is_absent(&bond.pci) && is_absent(&bond.virtual_functions) && bond.interrupts.is_empty());
    for port in ["ens2f0", "ens2f1"] {
        let port = interface(&facts, port);
        assert_eq!((port.master.as_deref(), port.kind.as_deref()), (Some("bond0"), None));
        assert_eq!((port.speed_bps.known(), port.interrupts.len()), (Some(&25_000_000_000), 4));
        assert_eq!(pci(port).iommu, Fact::Known("DMA-FQ".into()));
    }
    assert_eq!(interface(&facts, "ens2f1").statistics.get("rx_missed_errors"), Some(&55));
    assert_eq!(sysctl(&facts, "net.ipv4.conf.bond0/100.arp_filter").as_deref(), Some("0"));
    assert!(running(&facts, "irqbalance") && running(&facts, "tuned"));
}

#[test]
fn facts_a_container_cannot_see_have_reasons() {
    let facts = host("container");
    assert_eq!(facts.virtualization.container, Fact::Known("docker".into()));
    assert_eq!(facts.first_network_namespace, Fact::Known(false));
    let Fact::Absent(why) = &facts.sysctls["net.ipv4.tcp_mem"] else {
        panic!("{:?}", facts.sysctls["net.ipv4.tcp_mem"])
    };
    assert!(why.contains("network namespace"), "{why}");
    assert!(facts.services.iter().filter(|(name, _)| *name != "cpupower").all(|(_, service)| is_unknown(service)));
    assert_eq!(
        (facts.cgroup.cpu_millis.known(), facts.cgroup.memory_max_bytes.known()),
        (Some(&1500), Some(&(2 << 30)))
    );
    assert_eq!(
        (facts.cgroup.cpus.known(), facts.cgroup.throttled_periods.known()),
        (Some(&"2-5".to_owned()), Some(&312))
    );
    let nic = interface(&facts, "eth0");
    assert_eq!((nic.kind.as_deref(), nic.lower.len()), (Some("veth"), 0), "its peer is not below it");
    assert!(is_absent(&nic.pci) && is_absent(&nic.rings));
    assert_eq!(facts.interrupts, Fact::Known(Vec::new()));
}

#[test]
fn an_arm_server_has_topology_and_a_half_width_link() {
    let facts = host("arm-server");
    assert_eq!(facts.kernel.machine, "aarch64");
    assert_eq!((facts.cpu.cores.known(), facts.cpu.sockets.known()), (Some(&32), Some(&1)));
    assert!(
        is_absent(&facts.cpu.model) && is_absent(&facts.virtualization.hypervisor) && is_absent(&facts.cpu.boost)
    );
    let nic = interface(&facts, "enP2p1s0f0np0");
    let device = pci(nic);
    assert_eq!(device.address, "0002:01:00.0");
    assert_eq!((device.width.known(), device.max_width.known()), (Some(&8), Some(&16)));
    let interrupts = facts.interrupts.known().expect("interrupts");
    assert!(interrupts.iter().any(|irq| irq.name == "mlx5_comp15@pci:0002:01:00.0" && irq.count > 0));
    assert_eq!(facts.cpu.policies.known().map(Vec::len), Some(32));
    assert_eq!(facts.time.clocksource, Fact::Known("arch_sys_counter".into()));
}

#[test]
fn a_laptop_has_a_default_route_without_rings_or_speed() {
    let facts = host("laptop");
    assert_eq!(facts.default_interface, Fact::Known("wlp0s20f3".into()));
    let wireless = interface(&facts, "wlp0s20f3");
    assert!(is_absent(&wireless.speed_bps) && is_absent(&wireless.rings) && is_absent(&wireless.channels));
    assert_eq!((wireless.state.as_str(), interface(&facts, "enp0s31f6").state.as_str()), ("up", "down"));
    let policy = &facts.cpu.policies.known().expect("cpufreq")[0];
    assert_eq!((policy.governor.as_str(), policy.energy_preference.as_deref()), ("powersave", Some("balance_power")));
    for service in ["NetworkManager", "power-profiles-daemon", "thermald", "chronyd"] {
        assert!(running(&facts, service), "{service}");
    }
}
