//! The example host in good order, to which examples add faults: a two-socket data transfer node with a 100
//! Gb/s interface, tuned for 100 Gb/s over 92 ms. Every check passes on it or does not apply.

use std::collections::BTreeMap;

use landspeed_model::{
    ChannelFacts, CoalescingFacts, CpuPolicy, DriverFacts, Extent, Fact, Facts, FeatureFacts, Goal, IdleState,
    InterfaceFacts, Interrupt, NumaNode, PauseFacts, PciFacts, QdiscFacts, QueueFacts, RingFacts, Role, RssFacts,
    ServiceFacts, SoftnetFacts, SysctlAssignment,
};

/// Number of the interface's queues, and of the CPUs of its node.
const QUEUES: u32 = 16;

/// Sets a sysctl.
pub fn sysctl(facts: &mut Facts, name: &str, value: &str) {
    facts.sysctls.insert(name.into(), Fact::Known(value.into()));
}

/// Applies a change to every cpufreq policy.
pub fn policies(facts: &mut Facts, change: impl Fn(&mut CpuPolicy)) {
    if let Fact::Known(policies) = &mut facts.cpu.policies {
        policies.iter_mut().for_each(change);
    }
}

/// Returns the interface that carries the data.
pub fn port(facts: &mut Facts) -> &mut InterfaceFacts {
    &mut facts.interfaces[0]
}

/// Applies a change to every qdisc of that interface.
pub fn for_each_qdisc(facts: &mut Facts, change: impl FnMut(&mut QdiscFacts)) {
    if let Fact::Known(qdiscs) = &mut port(facts).qdiscs {
        qdiscs.iter_mut().for_each(change);
    }
}

/// Adds an assignment to `/etc/sysctl.d/90-net.conf`.
pub fn sysctl_file(facts: &mut Facts, name: &str, value: &str) {
    let mut files = facts.sysctl_files.known().cloned().unwrap_or_default();
    let line = u32::try_from(files.len() + 1).unwrap_or(u32::MAX);
    let path = "/etc/sysctl.d/90-net.conf".into();
    files.push(SysctlAssignment { path, line, name: name.into(), value: value.into() });
    facts.sysctl_files = Fact::Known(files);
}

/// Adds a running service; `detail` is its configuration.
pub fn service(facts: &mut Facts, name: &str, detail: Option<&str>) {
    let service = ServiceFacts { running: true, detail: detail.map(Into::into) };
    facts.services.insert(name.into(), Fact::Known(service));
}

/// Sets a counter.
pub fn counter(facts: &mut Facts, name: &str, value: u64) {
    facts.counters.insert(name.into(), value);
}

/// Returns the counters after ten days of transfers over a clean path.
fn counters() -> BTreeMap<String, u64> {
    let values = [
        ("Tcp.InSegs", 5_000_000_000),
        ("Tcp.OutSegs", 5_000_000_000),
        ("Tcp.PassiveOpens", 1_000_000),
        ("Tcp.RetransSegs", 20_000),
        ("TcpExt.IPReversePathFilter", 0),
        ("TcpExt.ListenOverflows", 0),
        ("TcpExt.OfoPruned", 0),
        ("TcpExt.PruneCalled", 0),
        ("TcpExt.RcvPruned", 0),
        ("TcpExt.TCPAbortOnMemory", 0),
        ("TcpExt.TCPBacklogDrop", 0),
        ("TcpExt.TCPDSACKRecv", 100),
        ("TcpExt.TCPMemoryPressures", 0),
        ("TcpExt.TCPRcvQDrop", 0),
        ("TcpExt.TCPTimeouts", 50),
        ("TcpExt.TCPToZeroWindowAdv", 10),
        ("Udp.InDatagrams", 1_000_000),
        ("Udp.RcvbufErrors", 0),
    ];
    values.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// Returns the goal of the example host.
pub fn goal() -> Goal {
    Goal { rate_bps: Some(100_000_000_000), rtt_ns: Some(92_000_000), role: Role::Dtn, interface: None }
}

/// Applies a change to the PCI facts of the interface.
pub fn pci(facts: &mut Facts, change: impl FnOnce(&mut PciFacts)) {
    if let Fact::Known(pci) = &mut port(facts).pci {
        change(pci);
    }
}

/// Turns one of the interface's offloads on or off, and marks it as changeable.
pub fn feature(facts: &mut Facts, name: &str, active: bool) {
    if let Fact::Known(features) = &mut port(facts).features {
        features.insert(name.into(), FeatureFacts { active, changeable: true });
    }
}

/// Applies a change to every interrupt.
pub fn interrupts(facts: &mut Facts, change: impl Fn(&mut Interrupt)) {
    if let Fact::Known(interrupts) = &mut facts.interrupts {
        interrupts.iter_mut().for_each(change);
    }
}

/// Applies a change to the interface's queues whose names begin with `side`.
pub fn queues(facts: &mut Facts, side: &str, change: impl Fn(&mut QueueFacts)) {
    if let Fact::Known(queues) = &mut port(facts).queues {
        queues.iter_mut().filter(|queue| queue.name.starts_with(side)).for_each(change);
    }
}

/// Gives the interface one queue, which is also its maximum.
pub fn single_queue(facts: &mut Facts) {
    let port = port(facts);
    port.channels = Fact::Absent("the driver has one queue".into());
    (port.rx_queues, port.tx_queues) = (Fact::Known(1), Fact::Known(1));
    port.queues = Fact::Known(queue(0).into());
    port.interrupts.truncate(1);
}

/// Returns the facts of the example host.
pub fn facts() -> Facts {
    let mut facts = Facts {
        schema: landspeed_model::FACTS_SCHEMA.into(),
        root: true,
        hostname: Fact::Known("dtn.example".into()),
        os: Fact::Known("Rocky Linux 10.1 (Red Quartz)".into()),
        uptime_s: Fact::Known(864_000),
        memory_bytes: Fact::Known(256 << 30),
        numa: Fact::Known(vec![NumaNode { id: 0, cpus: "0-15".into() }, NumaNode { id: 1, cpus: "16-31".into() }]),
        sysctls: sysctls(),
        sysctl_files: Fact::Known(Vec::new()),
        interfaces: vec![interface()],
        default_interface: Fact::Known("ens1f0np0".into()),
        interrupts: Fact::Known((0..QUEUES).map(interrupt).collect()),
        softnet: Fact::Known(SoftnetFacts { processed: 9_000_000_000, ..SoftnetFacts::default() }),
        counters: counters(),
        services: services(),
        modules: Fact::Known(BTreeMap::from([("mlx5_core".into(), None), ("sch_fq".into(), None)])),
        first_network_namespace: Fact::Known(true),
        ..Facts::default()
    };
    facts.kernel.release = "6.18.5-1.el10.x86_64".into();
    facts.kernel.version = "#1 SMP PREEMPT_DYNAMIC".into();
    facts.kernel.machine = "x86_64".into();
    facts.kernel.command_line = Fact::Known("BOOT_IMAGE=/vmlinuz root=/dev/md0 ro intel_iommu=on iommu=pt".into());
    facts.kernel.configuration = Fact::Known(BTreeMap::from([
        ("CONFIG_HZ".into(), "1000".into()),
        ("CONFIG_NET_SCH_FQ".into(), "m".into()),
        ("CONFIG_TCP_CONG_BBR".into(), "m".into()),
    ]));
    facts.virtualization.hypervisor = Fact::Absent("bare metal".into());
    facts.virtualization.container = Fact::Absent("no container".into());
    facts.virtualization.steal_share = Fact::Known(0.0);
    facts.cpu.model = Fact::Known("Intel(R) Xeon(R) Gold 6346 CPU @ 3.10GHz".into());
    facts.cpu.online = (0..32).collect();
    facts.cpu.cores = Fact::Known(32);
    facts.cpu.sockets = Fact::Known(2);
    facts.cpu.smt = Fact::Known("off".into());
    facts.cpu.policies = Fact::Known((0..32).map(policy).collect());
    facts.cpu.boost = Fact::Known(true);
    facts.cpu.idle_driver = Fact::Known("intel_idle".into());
    facts.cpu.idle_states = Fact::Known(vec![
        IdleState { name: "POLL".into(), latency_us: 0, disabled: false },
        IdleState { name: "C1".into(), latency_us: 1, disabled: false },
        IdleState { name: "C1E".into(), latency_us: 4, disabled: false },
        IdleState { name: "C6".into(), latency_us: 170, disabled: false },
    ]);
    facts.cpu.resume_latency_us = Fact::Absent("no CPU is limited".into());
    facts.cpu.dma_latency_us = Fact::Absent("no program holds it".into());
    facts.cpu.isolated = Fact::Absent("no CPU is isolated".into());
    facts.cpu.vulnerabilities = BTreeMap::from([
        ("meltdown".into(), "Not affected".into()),
        ("spectre_v2".into(), "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional".into()),
    ]);
    facts.cgroup.version = Fact::Known("v2".into());
    facts.cgroup.path = Fact::Known("/user.slice/user-0.slice/session-1.scope".into());
    facts.cgroup.cpu_millis = Fact::Absent("no limit".into());
    facts.cgroup.cpus = Fact::Known("0-31".into());
    facts.cgroup.memory_max_bytes = Fact::Absent("no limit".into());
    facts.cgroup.throttled_periods = Fact::Known(0);
    facts.time.clocksource = Fact::Known("tsc".into());
    facts.time.clocksources = vec!["tsc".into(), "hpet".into(), "acpi_pm".into()];
    facts.time.synchronised = Fact::Known(true);
    facts.time.estimated_error_us = Fact::Known(12);
    facts
}

fn policy(cpu: u32) -> CpuPolicy {
    CpuPolicy {
        name: format!("policy{cpu}"),
        cpus: cpu.to_string(),
        driver: "intel_pstate".into(),
        governor: "performance".into(),
        governors: vec!["performance".into(), "powersave".into()],
        energy_preference: Some("performance".into()),
        energy_preferences: vec!["performance".into(), "balance_performance".into(), "power".into()],
        min_khz: Some(800_000),
        max_khz: Some(3_600_000),
        hardware_max_khz: Some(3_600_000),
        current_khz: Some(3_400_000),
    }
}

fn interrupt(queue: u32) -> Interrupt {
    Interrupt {
        number: 120 + queue,
        name: format!("mlx5_comp{queue}@pci:0000:3b:00.0"),
        affinity: Fact::Known(queue.to_string()),
        effective: Fact::Known(queue.to_string()),
        count: 1_000_000,
    }
}

fn services() -> BTreeMap<String, Fact<ServiceFacts>> {
    let running = |running| Fact::Known(ServiceFacts { running, detail: None });
    let names = [
        ("tuned", false),
        ("NetworkManager", false),
        ("systemd-networkd", true),
        ("irqbalance", false),
        ("bpftune", false),
        ("chronyd", true),
        ("ntpd", false),
        ("systemd-timesyncd", false),
        ("ptp4l", false),
        ("power-profiles-daemon", false),
        ("thermald", false),
    ];
    names.into_iter().map(|(name, runs)| (name.into(), running(runs))).collect()
}

fn interface() -> InterfaceFacts {
    let on = |changeable| FeatureFacts { active: true, changeable };
    let off = FeatureFacts { active: false, changeable: true };
    let features = [
        ("rx-checksum", on(true)),
        ("tx-checksum-ip-generic", on(true)),
        ("tx-scatter-gather", on(true)),
        ("tx-tcp-segmentation", on(true)),
        ("tx-tcp6-segmentation", on(true)),
        ("tx-generic-segmentation", on(true)),
        ("rx-gro", on(true)),
        ("rx-gro-hw", off),
        ("rx-lro", off),
        ("rx-hashing", on(true)),
        ("tx-udp-segmentation", on(true)),
        ("tx-nocache-copy", off),
    ];
    InterfaceFacts {
        name: "ens1f0np0".into(),
        ifindex: 2,
        mac: "02:00:00:00:00:01".into(),
        addresses: vec!["192.0.2.10/24".into(), "2001:db8::10/64".into()],
        state: "up".into(),
        mtu_bytes: 9000,
        max_mtu_bytes: Fact::Known(9978),
        speed_bps: Fact::Known(100_000_000_000),
        full_duplex: Fact::Known(true),
        driver: Fact::Known(DriverFacts {
            name: "mlx5_core".into(),
            version: Some("6.18.5-1.el10.x86_64".into()),
            firmware: Some("16.35.4030 (MT_0000000012)".into()),
        }),
        pci: Fact::Known(PciFacts {
            address: "0000:3b:00.0".into(),
            id: "15b3:1017".into(),
            numa_node: Fact::Known(0),
            local_cpus: Fact::Known("0-15".into()),
            speed_gts: Fact::Known(8.0),
            max_speed_gts: Fact::Known(8.0),
            width: Fact::Known(16),
            max_width: Fact::Known(16),
            max_read_request_bytes: Fact::Known(4096),
            max_payload_bytes: Fact::Known(256),
            relaxed_ordering: Fact::Known(true),
            virtual_function: false,
            iommu: Fact::Known("identity".into()),
        }),
        rings: Fact::Known(RingFacts { rx: Extent { now: 8192, max: 8192 }, tx: Extent { now: 8192, max: 8192 } }),
        channels: Fact::Known(ChannelFacts { combined: Extent { now: QUEUES, max: 32 }, ..ChannelFacts::default() }),
        coalescing: Fact::Known(CoalescingFacts {
            adaptive_rx: Some(true),
            adaptive_tx: Some(true),
            rx_us: Some(8),
            rx_frames: Some(128),
            tx_us: Some(8),
            tx_frames: Some(128),
        }),
        pause: Fact::Known(PauseFacts { autonegotiate: false, rx: true, tx: true }),
        features: Fact::Known(features.into_iter().map(|(name, feature)| (name.into(), feature)).collect()),
        rss: Fact::Known(RssFacts { entries: 256, queues: (0..QUEUES).collect() }),
        gso_max_size_bytes: Fact::Known(65_536),
        gro_max_size_bytes: Fact::Known(65_536),
        gso_ipv4_max_size_bytes: Fact::Known(65_536),
        gro_ipv4_max_size_bytes: Fact::Known(65_536),
        tso_max_size_bytes: Fact::Known(262_144),
        tx_queue_len: Fact::Known(1000),
        tx_queues: Fact::Known(QUEUES),
        rx_queues: Fact::Known(QUEUES),
        qdiscs: Fact::Known(qdiscs()),
        queues: Fact::Known((0..QUEUES).flat_map(queue).collect()),
        interrupts: (0..QUEUES).map(|queue| 120 + queue).collect(),
        gro_flush_timeout_ns: Fact::Known(0),
        napi_defer_hard_irqs: Fact::Known(0),
        threaded_napi: Fact::Known(false),
        xdp: Fact::Known(false),
        virtual_functions: Fact::Known((0, 8)),
        statistics: BTreeMap::from([
            ("rx_packets".into(), 5_000_000_000),
            ("tx_packets".into(), 5_000_000_000),
            ("rx_dropped".into(), 0),
            ("rx_missed_errors".into(), 0),
            ("rx_out_of_buffer".into(), 0),
            ("rx_crc_errors_phy".into(), 0),
        ]),
        ..InterfaceFacts::default()
    }
}

fn qdiscs() -> Vec<QdiscFacts> {
    let root = QdiscFacts { kind: "mq".into(), handle: "8001:".into(), ..QdiscFacts::default() };
    let leaf = |queue: u32| QdiscFacts {
        kind: "fq".into(),
        handle: format!("{:x}:", 0x8002 + queue),
        parent: Some(format!("8001:{:x}", queue + 1)),
        // ESnet's advice for a 100 Gb/s node whose peers have 10 to 100 Gb/s: four flows share 80 % of the
        // rate.
        max_rate_bps: Some(20_000_000_000),
        drops: 0,
    };
    std::iter::once(root).chain((0..QUEUES).map(leaf)).collect()
}

fn queue(number: u32) -> [QueueFacts; 2] {
    let mask = format!("00000000,{:08x}", 1_u32 << number);
    [
        QueueFacts {
            name: format!("rx-{number}"),
            rps_cpus: Some("00000000,00000000".into()),
            rps_flow_count: Some(0),
            xps_cpus: None,
        },
        QueueFacts { name: format!("tx-{number}"), rps_cpus: None, rps_flow_count: None, xps_cpus: Some(mask) },
    ]
}

/// Returns the defaults of Linux 6.18, with the changes that 100 Gb/s over 92 ms needs.
fn sysctls() -> BTreeMap<String, Fact<String>> {
    let values = [
        ("kernel.numa_balancing", "1"),
        ("vm.zone_reclaim_mode", "0"),
        ("net.core.busy_poll", "0"),
        ("net.core.busy_read", "0"),
        ("net.core.default_qdisc", "fq"),
        ("net.core.netdev_budget", "300"),
        ("net.core.netdev_budget_usecs", "8000"),
        ("net.core.netdev_max_backlog", "1000"),
        ("net.core.optmem_max", "1048576"),
        ("net.core.rmem_default", "212992"),
        ("net.core.rmem_max", "2147483647"),
        ("net.core.rps_sock_flow_entries", "0"),
        ("net.core.wmem_default", "212992"),
        ("net.core.wmem_max", "2147483647"),
        ("net.core.somaxconn", "4096"),
        ("net.ipv4.conf.all.arp_announce", "0"),
        ("net.ipv4.conf.all.arp_filter", "0"),
        ("net.ipv4.conf.all.arp_ignore", "0"),
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.ens1f0np0.arp_announce", "0"),
        ("net.ipv4.conf.ens1f0np0.arp_filter", "0"),
        ("net.ipv4.conf.ens1f0np0.arp_ignore", "0"),
        ("net.ipv4.conf.ens1f0np0.rp_filter", "0"),
        ("net.ipv4.ip_forward", "0"),
        ("net.ipv4.ip_no_pmtu_disc", "0"),
        ("net.ipv4.tcp_adv_win_scale", "1"),
        ("net.ipv4.tcp_available_congestion_control", "reno cubic bbr"),
        ("net.ipv4.tcp_congestion_control", "cubic"),
        ("net.ipv4.tcp_allowed_congestion_control", "reno cubic bbr"),
        ("net.ipv4.tcp_dsack", "1"),
        ("net.ipv4.tcp_early_retrans", "3"),
        ("net.ipv4.tcp_rto_min_us", "200000"),
        ("net.ipv4.tcp_app_win", "31"),
        ("net.ipv4.tcp_autocorking", "1"),
        ("net.ipv4.tcp_tso_win_divisor", "3"),
        ("net.ipv4.tcp_ecn", "2"),
        ("net.ipv4.tcp_fack", "0"),
        ("net.ipv4.tcp_frto", "2"),
        ("net.ipv4.tcp_limit_output_bytes", "4194304"),
        ("net.ipv4.tcp_low_latency", "0"),
        ("net.ipv4.tcp_mem", "6177000 8236000 12354000"),
        ("net.ipv4.tcp_moderate_rcvbuf", "1"),
        ("net.ipv4.tcp_mtu_probing", "1"),
        ("net.ipv4.tcp_no_metrics_save", "0"),
        ("net.ipv4.tcp_notsent_lowat", "4294967295"),
        ("net.ipv4.tcp_pacing_ca_ratio", "120"),
        ("net.ipv4.tcp_pacing_ss_ratio", "200"),
        ("net.ipv4.tcp_recovery", "1"),
        ("net.ipv4.tcp_reordering", "3"),
        ("net.ipv4.tcp_rmem", "4096 131072 2147483647"),
        ("net.ipv4.tcp_sack", "1"),
        ("net.ipv4.tcp_slow_start_after_idle", "0"),
        ("net.ipv4.tcp_timestamps", "1"),
        ("net.ipv4.tcp_window_scaling", "1"),
        ("net.ipv4.tcp_wmem", "4096 16384 2147483647"),
        ("net.ipv4.udp_mem", "12354000 16472000 24708000"),
        ("net.ipv4.udp_rmem_min", "4096"),
        ("net.ipv4.udp_wmem_min", "4096"),
    ];
    values.into_iter().map(|(name, value)| (name.into(), Fact::Known(value.into()))).collect()
}
