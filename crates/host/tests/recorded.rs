//! Hosts recorded as trees of files, whole and damaged.

use std::fs;
use std::path::{Path, PathBuf};

use landspeed_host::{Files, HostSampler, TICK_NS, snapshot_from, use_between};
use landspeed_model::HostSeries;

/// A way to damage a file.
type Edit = fn(Vec<u8>) -> Vec<u8>;

/// 100 ms on the monotonic clock of these tests.
const STEP_NS: u64 = 10 * TICK_NS;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// A copy that a test may change.
fn copy(name: &str) -> tempfile::TempDir {
    fn walk(from: &Path, to: &Path) {
        fs::create_dir_all(to).expect("directory");
        for entry in fs::read_dir(from).expect("fixture").flatten() {
            let (path, target) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type().expect("type");
            if kind.is_dir() {
                walk(&path, &target);
            } else if kind.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(&path).expect("link"), &target).expect("link");
            } else {
                fs::copy(&path, &target).expect("copied");
            }
        }
    }
    let directory = tempfile::tempdir().expect("directory");
    walk(&fixture(name), directory.path());
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
    let host = snapshot_from(&Files::recorded(fixture("dtn")), None);
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
    let host = snapshot_from(&Files::recorded(fixture("vm")), None);
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
fn an_empty_tree_gives_an_empty_host_that_says_so() {
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
    for what in ["cores", "mhz", "netstat", "nic", "pressure", "snmp", "snmp6", "softnet", "tcp_mem_used_ratio"] {
        assert!(series.unavailable.contains_key(what), "{what} in {:?}", series.unavailable);
    }
}

#[test]
fn a_leftover_container_mark_does_not_make_a_container() {
    let tree = copy("vm");
    fs::write(tree.path().join(".dockerenv"), "").expect("written");
    let files = Files::recorded(tree.path());
    assert_eq!(snapshot_from(&files, None).virtualization.as_deref(), Some("docker+kvm"));
    fs::create_dir_all(tree.path().join("proc/self/ns")).expect("directory");
    std::os::unix::fs::symlink("pid:[4026531836]", tree.path().join("proc/self/ns/pid")).expect("link");
    assert_eq!(snapshot_from(&files, None).virtualization.as_deref(), Some("kvm"));
}

#[test]
fn differences_are_reported_and_core_numbers_hold_with_one_offline() {
    let tree = copy("dtn");
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
    let spent = use_between(&series, 0, STEP_NS as i64).expect("covered");
    assert_eq!(spent.busiest_core.map(|(core, _)| core), Some(8));
    assert!((spent.cpu_s - 0.08).abs() < 1e-6, "{spent:?}");
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
    for name in ["vm", "dtn"] {
        let tree = copy(name);
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
