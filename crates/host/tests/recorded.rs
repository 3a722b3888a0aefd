//! Hosts as trees of files, intact and damaged.

use std::fs;
use std::path::{Path, PathBuf};

use landspeed_host::{Files, HostSampler, TICK_NS, cpu_use_between, snapshot_from};
use landspeed_model::HostSeries;

/// Damages the content of a file.
type Edit = fn(Vec<u8>) -> Vec<u8>;

/// Time between readings in these tests: 100 ms on the monotonic clock.
const STEP_NS: u64 = 10 * TICK_NS;

/// Two nodes of 16 cores, with core 5 offline: the files that are not repeated for each core, `|` for the end
/// of a line.
const DTN: &str = "
boot/config-5.14.0-427.13.1.el9_4.x86_64: CONFIG_HZ_1000=y|CONFIG_HZ=1000
etc/os-release: NAME=\"Rocky Linux\"|PRETTY_NAME=\"Rocky Linux 9.4 (Blue Onyx)\"
proc/meminfo: MemTotal:       263856412 kB|MemFree:        201234567 kB
proc/sys/kernel/hostname: dtn01
proc/sys/kernel/osrelease: 5.14.0-427.13.1.el9_4.x86_64
proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC
proc/sys/net/ipv4/tcp_allowed_congestion_control: reno cubic
proc/sys/net/ipv4/tcp_available_congestion_control: reno cubic bbr
proc/sys/net/ipv4/tcp_mem: 3081477\t4108637\t6162954
proc/sys/net/ipv4/tcp_rmem: 4096\t87380\t536870912
proc/thread-self/net/netstat: TcpExt: TCPTimeouts TCPMemoryPressures|TcpExt: 1 0|IpExt: InOctets|IpExt: 12345
proc/thread-self/net/route: Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\
|eno1\t00000000\t010200C0\t0003\t0\t0\t400\t00000000|enp202s0f0np0\t00000000\t016433C6\t0003\t0\t0\t100\t00000000\
|enp202s0f0np0\t006433C6\t00000000\t0001\t0\t0\t100\t00FFFFFF
proc/thread-self/net/snmp: Tcp: RtoAlgorithm MaxConn CurrEstab RetransSegs|Tcp: 1 -1 40 7|Udp: InDatagrams RcvbufErrors|Udp: 5 0
proc/thread-self/net/sockstat: sockets: used 1200|TCP: inuse 40 orphan 0 tw 2 alloc 44 mem 600000|UDP: inuse 6 mem 3
sys/class/dmi/id/product_name: PowerEdge R650
sys/class/dmi/id/sys_vendor: Dell Inc.
sys/class/net/enp202s0f0np0/address: 02:00:00:00:00:04
sys/class/net/enp202s0f0np0/device: -> ../../../devices/pci0000:c9/0000:ca:00.0
sys/class/net/enp202s0f0np0/ifindex: 4
sys/class/net/enp202s0f0np0/mtu: 9000
sys/class/net/enp202s0f0np0/speed: 100000
sys/class/net/enp202s0f0np0/tx_queue_len: 1000
sys/devices/pci0000:c9/0000:ca:00.0/driver: -> ../../../bus/pci/drivers/mlx5_core
sys/devices/pci0000:c9/0000:ca:00.0/numa_node: 1
sys/devices/system/cpu/cpu0/cpufreq/scaling_driver: intel_pstate
sys/devices/system/cpu/cpu0/cpufreq/scaling_governor: performance
sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq: 3600000
sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq: 800000
sys/devices/system/cpu/online: 0-4,6-31
sys/devices/system/cpu/smt/control: on
sys/devices/system/node/node0/cpulist: 0-4,6-7,16-23
sys/devices/system/node/node1/cpulist: 8-15,24-31
";

/// A virtual machine without firmware tables.
const VM: &str = "
etc/os-release: PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"
proc/cpuinfo: processor\t: 0|model name\t: Intel(R) Xeon(R) Processor|cpu MHz\t\t: 2700.000|flags\t\t: fpu sse2 hypervisor\
||processor\t: 1|model name\t: Intel(R) Xeon(R) Processor|cpu MHz\t\t: 2700.000|flags\t\t: fpu sse2 hypervisor|
proc/interrupts:            CPU0       CPU1       | 26:          0         13   IO-APIC   4-edge      ttyS0\
| 31: 4294967290          0   PCI-MSIX-0000:00:03.0   1-edge      virtio1-input.0\
| 40:        900        900   PCI-MSIX-0000:00:04.0   1-edge      virtio2-req.0|LOC:        100        200   Local timer interrupts|ERR:          0
proc/meminfo: MemTotal:       24684096 kB
proc/pressure/cpu: some avg10=32.09 avg60=28.28 avg300=22.66 total=224934706|full avg10=0.00 avg60=0.00 avg300=0.00 total=0
proc/pressure/memory: some avg10=0.00 avg60=0.00 avg300=0.00 total=0|full avg10=0.00 avg60=0.00 avg300=0.00 total=0
proc/softirqs:                     CPU0       CPU1       |       TIMER:      27745      47023|      NET_RX:       1214       1926
proc/stat: cpu  106000 27000 32000 360000 1400 0 6700 2900 0 0|cpu0 53000 13552 16000 180000 700 0 3300 1400 0 0\
|cpu1 53321 13552 16037 180035 710 0 3356 1476 0 0|intr 12345 0 0 7|ctxt 99
proc/sys/kernel/arch: x86_64
proc/sys/kernel/hostname: vm
proc/sys/kernel/osrelease: 6.18.44
proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC @0
proc/sys/net/ipv4/tcp_available_congestion_control: reno cubic bbr
proc/sys/net/ipv4/tcp_mem: 287607\t383476\t575214
proc/thread-self/net/netstat: TcpExt: TCPTimeouts TCPMemoryPressures|TcpExt: 63 0|IpExt: InOctets OutOctets|IpExt: 1074372213994 7
proc/thread-self/net/route: Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\
|eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000  |eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF  |
proc/thread-self/net/snmp: Icmp: InMsgs InErrors|Icmp: 219 0|Tcp: RtoAlgorithm MaxConn CurrEstab RetransSegs|Tcp: 1 -1 0 10736
proc/thread-self/net/snmp6: Ip6InReceives                   \t44835|Ip6InHdrErrors                  \t0
proc/thread-self/net/sockstat: sockets: used 19|TCP: inuse 1 orphan 0 tw 7 alloc 2 mem 0|UDP: inuse 4 mem 0|FRAG: inuse 0 memory 0
proc/thread-self/net/softnet_stat: 03286b6c 00000000 00000002 00000000 00000000|019b4750 00000000 00000003 00000000 00000000
sys/class/net/eth0/address: 02:00:00:00:00:01
sys/class/net/eth0/device: -> ../../../devices/pci0000:00/0000:00:03.0/virtio1
sys/class/net/eth0/ifindex: 2
sys/class/net/eth0/mtu: 1400
sys/class/net/eth0/speed: -1
sys/devices/pci0000:00/0000:00:03.0/msi_irqs/31: msix
sys/devices/pci0000:00/0000:00:03.0/virtio1/driver: -> ../../../../bus/virtio/drivers/virtio_net
sys/devices/system/clocksource/clocksource0/available_clocksource: tsc kvm-clock
sys/devices/system/cpu/cpu1/cpuidle/state0/latency: 0
sys/devices/system/cpu/cpu1/cpuidle/state0/name: POLL
sys/devices/system/cpu/cpu1/cpuidle/state0/time: 1000
sys/devices/system/cpu/cpu1/cpuidle/state0/usage: 10
sys/devices/system/cpu/cpu1/cpuidle/state1/latency: 133
sys/devices/system/cpu/cpu1/cpuidle/state1/name: C6
sys/devices/system/cpu/cpu1/cpuidle/state1/time: 5000
sys/devices/system/cpu/cpu1/cpuidle/state1/usage: 50
sys/devices/system/cpu/online: 0-1
sys/devices/system/cpu/smt/control: notsupported
sys/devices/system/node/node0/cpulist: 0-1
sys/devices/system/node/node0/numastat: numa_hit 1000|numa_miss 5|numa_foreign 0|interleave_hit 10|local_node 1000|other_node 5
sys/devices/system/node/node1/numastat: numa_hit 7|numa_miss 0|numa_foreign 0|interleave_hit 0|local_node 7|other_node 0
";

/// Writes a tree of files, one per line: the path, then the content or the target of a link.
fn tree(lines: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("directory");
    for (path, text) in lines.lines().filter_map(|line| line.split_once(": ")) {
        write(&directory, path, text);
    }
    directory
}

fn write(directory: &tempfile::TempDir, path: &str, text: &str) {
    let path = directory.path().join(path);
    fs::create_dir_all(path.parent().expect("a directory")).expect("directory");
    match text.strip_prefix("-> ") {
        Some(target) => std::os::unix::fs::symlink(target, &path).expect("link"),
        None => fs::write(&path, text.replace('|', "\n") + "\n").expect("written"),
    }
}

/// [`DTN`] with the files that are repeated for each core.
fn dtn() -> tempfile::TempDir {
    let directory = tree(DTN);
    let cores = || (0..32_u32).filter(|core| *core != 5);
    let each = |text: &dyn Fn(u32) -> String| cores().map(text).collect::<String>();
    let cpuinfo = |core: u32| {
        format!(
            "processor\t: {core}|model name\t: Intel(R) Xeon(R) Gold 6346 CPU @ 3.10GHz|cpu MHz\t\t: 3100.000\
             |physical id\t: {}|flags\t\t: fpu sse2 avx512f||",
            core / 16
        )
    };
    let ticks = |core: u32| {
        let softirq = if core.is_multiple_of(8) { 30 } else { 0 };
        format!("cpu{core} {} 10 500 {} 20 0 {softirq} 0 0 0|", 1000 + core, 900_000 + core)
    };
    let softnet = |core: u32| {
        let zeros = "00000000 ".repeat(9);
        format!("{:08x} 00000000 {:08x} {zeros}{core:08x} 00000000 00000000|", core * 1000 + 7, core % 3)
    };
    write(&directory, "proc/cpuinfo", &each(&cpuinfo));
    write(
        &directory,
        "proc/stat",
        &format!("cpu  32496 310 15500 27900000 620 0 120 0 0 0|{}ctxt 4711", each(&ticks)),
    );
    write(&directory, "proc/thread-self/net/softnet_stat", &each(&softnet));
    for core in cores() {
        write(&directory, &format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq"), "3600000");
    }
    directory
}

fn all_files(below: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(below).expect("tree").flatten() {
        let kind = entry.file_type().expect("type");
        if kind.is_dir() {
            files.extend(all_files(&entry.path()));
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    files.sort_unstable();
    files
}

#[test]
fn a_transfer_node_is_described_from_its_files() {
    let host = snapshot_from(&Files::recorded(dtn().path()), None);
    assert_eq!(host.hostname, "dtn01");
    assert_eq!(host.os.as_deref(), Some("Rocky Linux 9.4 (Blue Onyx)"));
    assert_eq!(host.cpu_model.as_deref(), Some("Intel(R) Xeon(R) Gold 6346 CPU @ 3.10GHz"));
    assert_eq!(host.cores_online, 31);
    let nodes: Vec<_> = host.numa.iter().map(|node| (node.id, node.cpus.as_str())).collect();
    assert_eq!(nodes, [(0, "0-4,6-7,16-23"), (1, "8-15,24-31")]);
    let governor = host.governor.expect("cpufreq");
    assert_eq!((governor.governor.as_str(), governor.max_khz), ("performance", Some(3_600_000)));
    assert_eq!((host.smt.as_deref(), host.virtualization), (Some("on"), None));
    assert_eq!((host.memory_bytes, host.clock_ticks_per_s), (263_856_412 * 1024, Some(1000)));
    assert_eq!(host.sysctls["net.ipv4.tcp_rmem"], "4096 87380 536870912");
    assert_eq!(host.congestion_available, ["reno", "cubic"]);
    let nic = host.nic.expect("the default route's interface");
    assert_eq!((nic.name.as_str(), nic.ifindex, nic.mtu_bytes), ("enp202s0f0np0", 4, 9000));
    assert_eq!((nic.driver.as_deref(), nic.bus.as_deref()), (Some("mlx5_core"), Some("0000:ca:00.0")));
    assert_eq!((nic.numa_node, nic.speed_bps), (Some(1), Some(100_000_000_000)));
    let missing: Vec<_> = host.unavailable.keys().map(String::as_str).collect();
    assert_eq!(missing, ["machine", "nic.netlink"]);
}

#[test]
fn a_virtual_machine_is_recognised_by_its_clock() {
    let host = snapshot_from(&Files::recorded(tree(VM).path()), None);
    assert_eq!(host.virtualization.as_deref(), Some("kvm"));
    assert_eq!((host.cores_online, host.machine.as_str()), (2, "x86_64"));
    assert_eq!(host.smt.as_deref(), Some("notsupported"));
    let nic = host.nic.expect("the default route's interface");
    assert_eq!((nic.driver.as_deref(), nic.speed_bps), (Some("virtio_net"), None));
    let missing: Vec<_> = host.unavailable.keys().map(String::as_str).collect();
    let expected = ["clock_ticks_per_s", "governor", "nic.netlink", "nic.numa_node", "nic.speed_bps"];
    assert_eq!(missing, expected);
}

#[test]
fn an_empty_tree_reports_every_value_as_unavailable() {
    let directory = tempfile::tempdir().expect("directory");
    let files = Files::recorded(directory.path());
    let host = snapshot_from(&files, None);
    assert_eq!((host.nic, host.cores_online, host.memory_bytes), (None, 0, 0));
    for what in
        ["cpu_model", "cores_online", "kernel.hostname", "memory_bytes", "nic", "numa", "os", "smt", "sysctls"]
    {
        assert!(host.unavailable.contains_key(what), "{what} in {:?}", host.unavailable);
    }
    let mut sampler = HostSampler::from_files(&files, None, 0);
    sampler.sample(STEP_NS);
    let series = sampler.finish(2 * STEP_NS, 0);
    assert_eq!((series.samples.len(), series.pressure, series.tcp_mem_used_ratio), (2, None, None));
    assert!(series.samples.iter().all(|sample| sample.cores.is_empty() && sample.mhz.is_empty()));
    for what in [
        "cores",
        "idle_states",
        "interrupts",
        "mhz",
        "netstat",
        "nic",
        "numa",
        "pressure",
        "snmp",
        "snmp6",
        "softirqs",
        "softnet",
        "tcp_mem_used_ratio",
    ] {
        assert!(series.unavailable.contains_key(what), "{what} in {:?}", series.unavailable);
    }
}

#[test]
fn container_marks_are_ignored_in_the_initial_pid_namespace() {
    let tree = tree(VM);
    fs::write(tree.path().join(".dockerenv"), "").expect("written");
    let files = Files::recorded(tree.path());
    assert_eq!(snapshot_from(&files, None).virtualization.as_deref(), Some("docker+kvm"));
    fs::create_dir_all(tree.path().join("proc/self/ns")).expect("directory");
    std::os::unix::fs::symlink("pid:[4026531836]", tree.path().join("proc/self/ns/pid")).expect("link");
    assert_eq!(snapshot_from(&files, None).virtualization.as_deref(), Some("kvm"));
}

#[test]
fn differences_and_core_numbers_are_correct_with_one_offline() {
    let tree = dtn();
    let change = |path: &str, edit: &dyn Fn(String) -> String| {
        let path = tree.path().join(path);
        fs::write(&path, edit(fs::read_to_string(&path).expect("file"))).expect("written");
    };
    let mut sampler = HostSampler::from_files(&Files::recorded(tree.path()), None, 1_000 * STEP_NS);
    change("proc/stat", &|stat| {
        stat.replace("cpu8 1008 10 500 900008 20 0 30 0 0 0", "cpu8 1010 11 501 900010 20 0 34 0 0 0")
            .replace("cpu0 1000 10 500 900000 20 0 30 0 0 0\n", "")
    });
    change("proc/thread-self/net/softnet_stat", &|text| {
        text.replacen("00000007 00000000 00000000", "0000000a 00000002 00000001", 1)
    });
    change("proc/thread-self/net/snmp", &|text| text.replace("1 -1 40 7", "1 -1 38 9"));
    change("proc/thread-self/net/netstat", &|text| text.replace("TcpExt: 1 0", "TcpExt: 1 3"));
    sampler.sample(1_001 * STEP_NS);
    sampler.sample(1_001 * STEP_NS + 1);
    let series = sampler.finish(1_001 * STEP_NS + 2, 1_000 * STEP_NS);

    assert_eq!(series.samples.len(), 1, "a moment later is too soon for another reading");
    let sample = &series.samples[0];
    assert_eq!((sample.start_ns, sample.end_ns), (0, STEP_NS as i64 + 2));
    assert_eq!(sample.cores.len(), 32);
    assert_eq!((sample.cores[0], sample.cores[5]), (None, None), "core 0 went, core 5 was never there");
    let eight = sample.cores[8].expect("online");
    assert!((eight.user - 0.3).abs() < 1e-6 && (eight.system - 0.1).abs() < 1e-6, "{eight:?}");
    assert!((eight.softirq - 0.4).abs() < 1e-6 && (eight.idle - 0.2).abs() < 1e-6, "{eight:?}");
    assert_eq!(sample.mhz.len(), 32);
    assert!((sample.mhz[8] - 3600.0).abs() < 0.1 && sample.mhz[5].abs() < 0.1, "{:?}", sample.mhz);
    assert_eq!((series.softnet.processed, series.softnet.dropped, series.softnet.time_squeeze), (3, 2, 1));
    let moved: Vec<_> = series.snmp.iter().map(|c| (c.name.as_str(), c.delta)).collect();
    assert_eq!(moved, [("Tcp.CurrEstab", -2), ("Tcp.RetransSegs", 2), ("TcpExt.TCPMemoryPressures", 3)]);
    let ratio = series.tcp_mem_used_ratio.expect("sockstat and tcp_mem");
    assert!((ratio - 600_000.0 / 4_108_637.0).abs() < 1e-9);
    let spent = cpu_use_between(&series, 0, STEP_NS as i64).expect("covered");
    assert_eq!(spent.busiest_core.map(|(core, _)| core), Some(8));
    assert!((spent.cpu_s - 0.08).abs() < 1e-6, "{spent:?}");
}

/// Replaces a part of a file's text.
fn change(tree: &tempfile::TempDir, path: &str, from: &str, to: &str) {
    let path = tree.path().join(path);
    let text = fs::read_to_string(&path).expect("file");
    assert!(text.contains(from), "{from} in {text}");
    fs::write(&path, text.replace(from, to)).expect("written");
}

#[test]
fn totals_of_cores_queues_and_nodes_are_differences() {
    let tree = tree(VM);
    let sampler = HostSampler::from_files(&Files::recorded(tree.path()), Some("eth0"), 0);
    change(&tree, "proc/interrupts", "4294967290", "4");
    change(&tree, "proc/interrupts", "100        200", "107        200");
    change(&tree, "proc/softirqs", "1926", "1930");
    change(&tree, "proc/thread-self/net/softnet_stat", "019b4750 00000000 00000003", "019b4760 00000001 00000005");
    change(&tree, "sys/devices/system/cpu/cpu1/cpuidle/state1/time", "5000", "55000");
    change(&tree, "sys/devices/system/cpu/cpu1/cpuidle/state1/usage", "50", "90");
    change(&tree, "sys/devices/system/node/node0/numastat", "numa_miss 5", "numa_miss 8");
    change(&tree, "sys/devices/system/node/node0/numastat", "other_node 5", "other_node 9");
    let series = sampler.finish(STEP_NS, 0);

    let [zero, one] = series.core_totals.as_slice() else { panic!("{:?}", series.core_totals) };
    assert_eq!((zero.core, zero.interrupts, zero.net_rx_softirqs), (0, Some(17), Some(0)), "line 31 wrapped");
    assert!(zero.idle_states.is_empty() && zero.softnet.processed == 0);
    assert_eq!((one.core, one.interrupts, one.net_rx_softirqs), (1, Some(0), Some(4)));
    assert_eq!((one.softnet.processed, one.softnet.dropped, one.softnet.time_squeeze), (16, 1, 2));
    assert_eq!(series.softnet, one.softnet, "the sum over cores");
    let [deep] = one.idle_states.as_slice() else { panic!("{:?}", one.idle_states) };
    assert_eq!((deep.name.as_str(), deep.exit_latency_us, deep.entries), ("C6", Some(133), 40));
    assert!((deep.share - 0.5).abs() < 1e-9, "50 ms of 100: {}", deep.share);
    let [line] = series.nic_interrupts.as_slice() else { panic!("{:?}", series.nic_interrupts) };
    assert_eq!(
        (line.line.as_str(), line.name.as_str(), line.cores.as_slice()),
        ("31", "virtio1-input.0", &[(0, 10)][..])
    );
    let [node] = series.numa.as_slice() else { panic!("{:?}", series.numa) };
    assert_eq!((node.node, node.numa_hit, node.numa_miss, node.other_node), (0, 0, 3, 4));
}

#[test]
fn decreasing_and_missing_counters_give_no_totals() {
    let tree = tree(VM);
    let sampler = HostSampler::from_files(&Files::recorded(tree.path()), Some("eth0"), 0);
    change(&tree, "proc/interrupts", "900        900", "2          900");
    change(&tree, "sys/devices/system/cpu/cpu1/cpuidle/state1/time", "5000", "4000");
    change(&tree, "sys/devices/system/cpu/cpu1/cpuidle/state1/usage", "50", "90");
    change(&tree, "sys/devices/system/node/node0/numastat", "numa_miss 5", "numa_miss 1");
    change(&tree, "sys/devices/system/node/node1/numastat", "numa_hit 7", "");
    fs::remove_file(tree.path().join("proc/softirqs")).expect("removed");
    let series = sampler.finish(STEP_NS, 0);
    assert_eq!((series.core_totals.len(), series.nic_interrupts.len(), series.numa.len()), (0, 0, 0), "{series:?}");
    for what in ["interrupts.reset", "numa.node0", "numa.node1", "softirqs"] {
        assert!(series.unavailable.contains_key(what), "{what} in {:?}", series.unavailable);
    }
}

#[test]
fn damaged_files_never_panic_or_break_the_json() {
    let edits: [(&str, Edit); 5] = [
        ("empty", |_| Vec::new()),
        ("cut", |bytes| bytes[..bytes.len() / 2].to_vec()),
        ("garbage", |bytes| bytes.iter().map(|b| b.wrapping_mul(167).wrapping_add(13)).collect()),
        ("huge numbers", |bytes| bytes.iter().map(|b| if b.is_ascii_digit() { b'9' } else { *b }).collect()),
        ("no blanks", |bytes| bytes.into_iter().filter(|b| *b != b' ' && *b != b'\t').collect()),
    ];
    for tree in [tree(VM), dtn()] {
        let files = Files::recorded(tree.path());
        for path in all_files(tree.path()) {
            let whole = fs::read(&path).expect("file");
            for (what, edit) in &edits {
                let mut sampler = HostSampler::from_files(&files, Some("eth0"), 0);
                fs::write(&path, edit(whole.clone())).expect("written");
                sampler.sample(STEP_NS);
                let series = sampler.finish(2 * STEP_NS, 0);
                let json = serde_json::to_string(&(snapshot_from(&files, None), &series)).expect("a document");
                assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{what} {}", path.display());
                assert_finite(&series, &format!("{what} {}", path.display()));
            }
            fs::write(&path, &whole).expect("restored");
        }
    }
}

fn assert_finite(series: &HostSeries, what: &str) {
    for sample in &series.samples {
        let shares = sample.cores.iter().flatten().map(|share| share.busy() + share.idle + share.iowait);
        assert!(shares.into_iter().all(|sum| sum.abs() < 1e-5 || (sum - 1.0).abs() < 1e-5), "{what}");
        assert!(sample.mhz.iter().all(|mhz| mhz.is_finite()), "{what}");
    }
}
