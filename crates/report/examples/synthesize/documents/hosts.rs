//! Two hosts that differ in the ways hosts do, and what they did meanwhile.

use std::collections::BTreeMap;

use landspeed_model::{
    CoreUse, CounterDelta, EndCost, Governor, HostSample, HostSeries, HostSnapshot, NicSnapshot, NumaNode,
    PressureDeltas, QdiscDelta, SoftnetDelta,
};

use super::random::Random;

fn text_map<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

/// The sending host: tuned.
pub fn client() -> HostSnapshot {
    HostSnapshot {
        hostname: "dtn1.example.org".to_owned(),
        kernel_release: "6.12.38+deb13-amd64".to_owned(),
        kernel_version: "#1 SMP PREEMPT_DYNAMIC Debian 6.12.38-1 (2025-07-16)".to_owned(),
        machine: "x86_64".to_owned(),
        os: Some("Debian GNU/Linux 13 (trixie)".to_owned()),
        cpu_model: Some("AMD EPYC 9124 16-Core Processor".to_owned()),
        cores_online: 16,
        numa: vec![NumaNode { id: 0, cpus: "0-7".to_owned() }, NumaNode { id: 1, cpus: "8-15".to_owned() }],
        governor: Some(Governor {
            driver: "amd-pstate-epp".to_owned(),
            governor: "performance".to_owned(),
            min_khz: Some(1_500_000),
            max_khz: Some(3_711_914),
        }),
        smt: Some("off".to_owned()),
        virtualization: None,
        memory_bytes: 202_563_174_400,
        clock_ticks_per_s: Some(100),
        nic: Some(NicSnapshot {
            name: "enp65s0f0np0".to_owned(),
            ifindex: 4,
            driver: Some("mlx5_core".to_owned()),
            driver_version: Some("6.12.38+deb13-amd64".to_owned()),
            firmware: Some("28.39.2048 (MT_0000000834)".to_owned()),
            bus: Some("0000:41:00.0".to_owned()),
            numa_node: Some(0),
            speed_bps: Some(100_000_000_000),
            mtu_bytes: 9000,
            qdiscs: vec!["mq".to_owned(), "fq ×32".to_owned()],
            tx_queue_len: Some(1000),
            offloads: [
                ("tx-checksumming", true),
                ("rx-checksumming", true),
                ("scatter-gather", true),
                ("tcp-segmentation-offload", true),
                ("generic-segmentation-offload", true),
                ("generic-receive-offload", true),
                ("large-receive-offload", false),
                ("rx-vlan-offload", true),
                ("ntuple-filters", false),
                ("receive-hashing", true),
                ("hw-tc-offload", false),
            ]
            .into_iter()
            .map(|(k, v)| (k.to_owned(), v))
            .collect(),
            rx_ring: Some((8192, 8192)),
            tx_ring: Some((8192, 8192)),
            channels: Some((16, 16)),
            gso_max_size_bytes: Some(65_536),
            gro_max_size_bytes: Some(65_536),
        }),
        sysctls: text_map([
            ("net.core.default_qdisc", "fq"),
            ("net.core.netdev_max_backlog", "250000"),
            ("net.core.optmem_max", "1048576"),
            ("net.core.rmem_max", "536870912"),
            ("net.core.wmem_max", "536870912"),
            ("net.ipv4.tcp_congestion_control", "cubic"),
            ("net.ipv4.tcp_mtu_probing", "1"),
            ("net.ipv4.tcp_rmem", "4096\t131072\t268435456"),
            ("net.ipv4.tcp_wmem", "4096\t65536\t268435456"),
            ("net.ipv4.tcp_sack", "1"),
            ("net.ipv4.tcp_timestamps", "1"),
            ("net.ipv4.tcp_window_scaling", "1"),
        ]),
        congestion_available: ["reno", "cubic", "bbr"].map(str::to_owned).to_vec(),
        unavailable: BTreeMap::new(),
    }
}

/// The receiving host: left as installed in several ways.
pub fn server() -> HostSnapshot {
    let mut host = HostSnapshot {
        hostname: "dtn2.example.net".to_owned(),
        kernel_release: "5.14.0-503.11.1.el9_5.x86_64".to_owned(),
        kernel_version: "#1 SMP PREEMPT_DYNAMIC Tue Nov 12 09:26:05 EST 2024".to_owned(),
        os: Some("Rocky Linux 9.5 (Blue Onyx)".to_owned()),
        cpu_model: Some("Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz".to_owned()),
        governor: Some(Governor {
            driver: "intel_pstate".to_owned(),
            governor: "powersave".to_owned(),
            min_khz: Some(1_200_000),
            max_khz: Some(3_900_000),
        }),
        memory_bytes: 404_620_279_808,
        clock_ticks_per_s: Some(1000),
        ..client()
    };
    host.sysctls.insert("net.ipv4.tcp_rmem".to_owned(), "4096\t131072\t6291456".to_owned());
    host.sysctls.insert("net.core.rmem_max".to_owned(), "212992".to_owned());
    host.sysctls.insert("net.core.default_qdisc".to_owned(), "fq_codel".to_owned());
    host.sysctls.remove("net.core.optmem_max");
    let nic = host.nic.as_mut().expect("the client has one");
    "ens1f0np0".clone_into(&mut nic.name);
    nic.driver = Some("ice".to_owned());
    nic.driver_version = Some("5.14.0-503.11.1.el9_5.x86_64".to_owned());
    nic.firmware = Some("4.40 0x8001c7d5 1.3534.0".to_owned());
    nic.bus = Some("0000:5e:00.0".to_owned());
    nic.numa_node = Some(1);
    nic.qdiscs = vec!["mq".to_owned(), "fq_codel ×16".to_owned()];
    nic.offloads.insert("generic-receive-offload".to_owned(), false);
    nic.rx_ring = Some((2048, 8160));
    nic.tx_ring = Some((256, 8160));
    host.unavailable.insert("nic.pause".to_owned(), "Operation not permitted (needs CAP_NET_ADMIN)".to_owned());
    host
}

/// How one end's processors are used: cores of stream threads, the core interrupts land on, and how hard they work.
pub struct Load {
    pub threads: &'static [usize],
    pub thread_user: f64,
    pub thread_system: f64,
    pub softirq_cores: &'static [usize],
    pub softirq: f64,
    pub cores: usize,
}

/// A series of one end. `activity` is the share of full rate at a time, 0..=1.
pub fn series(
    seed: u64,
    end_ns: u64,
    interval_ns: u64,
    load: &Load,
    activity: impl Fn(u64) -> f64,
    receiver: bool,
) -> HostSeries {
    let mut random = Random::new(seed);
    let mut samples = Vec::new();
    let mut start = -(interval_ns as i64) * 3;
    let mut softnet = SoftnetDelta::default();
    while start < end_ns as i64 {
        let end = start + interval_ns as i64;
        let active = if start < 0 { 0.0 } else { activity(start as u64) };
        let cores = (0..load.cores)
            .map(|core| {
                let mut noise = || (random.normal() * 0.012).abs();
                let mut c = CoreUse { user: noise() as f32, system: noise() as f32, ..CoreUse::default() };
                if load.threads.contains(&core) {
                    c.user += (load.thread_user * active * (1.0 + random.normal() * 0.04)) as f32;
                    c.system += (load.thread_system * active * (1.0 + random.normal() * 0.04)) as f32;
                }
                if load.softirq_cores.contains(&core) {
                    c.softirq += (load.softirq * active * (1.0 + random.normal() * 0.02)) as f32;
                    c.irq += 0.01;
                }
                let busy = c.busy();
                if busy > 1.0 {
                    for part in [&mut c.user, &mut c.system, &mut c.softirq, &mut c.irq] {
                        *part /= busy;
                    }
                }
                c.idle = (1.0 - c.busy()).max(0.0);
                (core != 15 || receiver).then_some(c)
            })
            .collect();
        let packets = (active * 52_000.0 * interval_ns as f64 / 1e8) as u64;
        let squeeze = if receiver && active > 0.9 { (random.unit() * 3.0) as u64 } else { 0 };
        let here = SoftnetDelta { processed: packets, time_squeeze: squeeze, ..SoftnetDelta::default() };
        softnet.processed += here.processed;
        softnet.time_squeeze += here.time_squeeze;
        let mhz = (0..load.cores).map(|_| (3400.0 + random.normal() * 60.0).round() as f32).collect();
        samples.push(HostSample { start_ns: start, end_ns: end, cores, mhz, softnet: here });
        start = end;
    }
    let counter = |name: &str, delta: i64| CounterDelta { name: name.to_owned(), delta };
    let (snmp, nic) = if receiver {
        (
            vec![
                counter("Ip.InReceives", 5_191_338),
                counter("Tcp.InSegs", 5_191_022),
                counter("TcpExt.TCPOFOQueue", 41_277),
                counter("TcpExt.TCPRcvCoalesce", 3_107_554),
                counter("TcpExt.TCPBacklogCoalesce", 220_918),
            ],
            vec![
                counter("rx_bytes", 47_021_551_884),
                counter("rx_packets", 5_191_340),
                counter("rx_dropped.nic", 312),
                counter("tx_packets", 801_233),
            ],
        )
    } else {
        (
            vec![
                counter("Ip.OutRequests", 812_774),
                counter("Tcp.OutSegs", 5_191_645),
                counter("Tcp.RetransSegs", 623),
                counter("TcpExt.TCPFastRetrans", 601),
                counter("TcpExt.TCPLostRetransmit", 22),
                counter("TcpExt.TCPSackRecovery", 41),
                counter("TcpExt.TCPHystartTrainDetect", 4),
            ],
            vec![
                counter("tx_bytes", 47_028_312_109),
                counter("tx_packets", 5_191_652),
                counter("tx_queue_stopped", 18),
                counter("rx_packets", 801_233),
                counter("tx_pause_ctrl_phy", -2),
            ],
        )
    };
    HostSeries {
        sampler_gaps: Vec::new(),
        samples,
        snmp,
        nic,
        qdiscs: vec![QdiscDelta {
            kind: if receiver { "fq_codel" } else { "fq" }.to_owned(),
            handle: "8001:".to_owned(),
            parent: "1:1".to_owned(),
            bytes: if receiver { 52_880_112 } else { 47_028_312_109 },
            packets: if receiver { 801_233 } else { 812_774 },
            drops: 0,
            overlimits: if receiver { 0 } else { 1204 },
            requeues: if receiver { 0 } else { 18 },
            backlog_bytes: 0,
        }],
        softnet,
        pressure: Some(PressureDeltas { cpu_some_us: 12_440, memory_some_us: 0 }),
        tcp_mem_used_ratio: Some(0.031),
        sampler_cpu_ns: 38_112_009,
        unavailable: BTreeMap::new(),
    }
}

/// Cost of one end, of the order its load suggests.
pub fn cost(bytes: u64, threads_s: f64, softirq_s: f64, busiest: (u32, f32), tick_ns: u64) -> EndCost {
    let host = threads_s + softirq_s + 0.9;
    EndCost {
        host_cpu_s: host,
        thread_cpu_s: threads_s,
        softirq_cpu_s: softirq_s,
        thread_ns_per_byte: (bytes > 0).then(|| threads_s * 1e9 / bytes as f64),
        host_ns_per_byte: (bytes > 0).then(|| host * 1e9 / bytes as f64),
        busiest_core: Some(busiest),
        steal: 0.0,
        tick_ns,
    }
}
