//! Tests on the running kernel, in network namespaces where necessary.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;

use landspeed_host::{HostSampler, LiveHost, MIN_SPAN_NS, collect, cores_between, cpu_use_between, snapshot};
use landspeed_model::Fact;
use landspeed_sys::clock::{monotonic_ns, sleep_until, thread_cpu_ns};
use landspeed_sys::netns;
use landspeed_testkit::skip;

fn run(command: &str) -> Result<(), String> {
    let words: Vec<_> = command.split(' ').collect();
    let output = Command::new(words[0]).args(&words[1..]).output().map_err(|e| format!("{command}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

#[test]
fn this_host_is_described_and_local_peers_use_lo() {
    let peer: SocketAddr = "127.0.0.1:5201".parse().expect("an address");
    let host = snapshot(Some(peer));
    assert!(!host.hostname.is_empty() && !host.kernel_release.is_empty() && !host.machine.is_empty());
    assert!(host.cores_online > 0 && host.memory_bytes > 0);
    assert!(host.sysctls.contains_key("net.ipv4.tcp_rmem"), "{:?}", host.unavailable);
    assert!(!host.congestion_available.is_empty());
    let nic = host.nic.expect("a route to this host");
    assert_eq!((nic.name.as_str(), nic.ifindex), ("lo", 1));
    assert!(nic.mtu_bytes > 0 && !nic.qdiscs.is_empty() && nic.offloads.contains_key("rx-gro"), "{nic:?}");
    assert!(host.unavailable.values().all(|why| !why.is_empty()));
}

#[test]
fn work_of_this_thread_is_attributed_to_a_core() {
    let t0_ns = monotonic_ns();
    let mut sampler = HostSampler::new(Some("lo"), t0_ns);
    let spin_until_ns = thread_cpu_ns() + 300_000_000;
    while thread_cpu_ns() < spin_until_ns {
        sampler.sample(monotonic_ns());
    }
    let now_ns = monotonic_ns();
    let series = sampler.finish(now_ns, t0_ns);
    let spent = cpu_use_between(&series, 0, (now_ns - t0_ns) as i64).expect("covered");
    // CPU time is charged per tick: of 300 ms a few ticks may be missed.
    assert!(spent.cpu_s > 0.2, "{spent:?}");
    assert_eq!(spent.covered_ns, now_ns - t0_ns, "spans have no gaps");
    let cores = cores_between(&series, 0, i64::MAX);
    assert!(cores.iter().flatten().any(|core| core.busy() > 0.1), "{cores:?}");
    let spans: Vec<_> = series.samples.iter().map(|sample| sample.end_ns - sample.start_ns).collect();
    assert!(spans.iter().all(|&ns| ns >= MIN_SPAN_NS as i64), "{spans:?}");
    assert!(series.sampler_cpu_ns > 0 && series.sampler_cpu_ns < 300_000_000);
}

#[test]
fn only_qdisc_drops_during_a_test_are_reported() {
    let outcome = netns::run_in_new_namespace(|| {
        run("ip link add a0 type veth peer name b0")?;
        run("ip link set a0 addrgenmode none")?;
        run("ip link set a0 up")?;
        run("ip link set b0 up")?;
        run("ip address add 10.9.8.1/24 dev a0")?;
        run("ip neighbour add 10.9.8.2 lladdr 02:00:00:00:00:02 dev a0")?;
        run("tc qdisc add dev a0 root handle 1: tbf rate 8kbit burst 1600 limit 3000")?;
        let socket = UdpSocket::bind("10.9.8.1:0").expect("a socket");
        let send = |packets: u32| (0..packets).for_each(|_| drop(socket.send_to(&[0; 1000], "10.9.8.2:9")));
        send(10);

        let peer: SocketAddr = "10.9.8.2:9".parse().expect("an address");
        let host = snapshot(Some(peer));
        let nic = host.nic.expect("a route");
        assert_eq!(nic.name, "a0");
        assert!(nic.qdiscs.contains(&"tbf".to_owned()), "{:?}", nic.qdiscs);
        assert_eq!((nic.driver.as_deref(), nic.speed_bps), (Some("veth"), Some(10_000_000_000)));
        assert!(!host.sysctls.contains_key("net.ipv4.tcp_mem"), "absent from namespaces: {:?}", host.sysctls);

        let t0_ns = monotonic_ns();
        let sampler = HostSampler::new(Some(&nic.name), t0_ns);
        send(20);
        sleep_until(t0_ns + MIN_SPAN_NS);
        let series = sampler.finish(monotonic_ns(), t0_ns);
        let root = series.qdiscs.iter().find(|qdisc| qdisc.parent == "root").expect("the root");
        assert_eq!((root.kind.as_str(), root.handle.as_str()), ("tbf", "1:"));
        // The token bucket admits one packet per second: at most one of the second batch passed.
        assert!((19..=20).contains(&root.drops), "{root:?}");
        assert!(root.backlog_bytes >= 1000, "{root:?}");
        let moved = |name: &str| series.snmp.iter().find(|counter| counter.name == name).map(|counter| counter.delta);
        assert_eq!(
            moved("Udp.OutDatagrams").unwrap_or(0) + moved("Udp.SndbufErrors").unwrap_or(0),
            20,
            "{:?}",
            series.snmp
        );
        let dropped = series.nic.iter().find(|counter| counter.name == "rtnl.tx_dropped");
        assert!(dropped.is_none_or(|counter| counter.delta <= 20), "{:?}", series.nic);
        assert!(series.unavailable["tcp_mem_used_ratio"].contains("tcp_mem"), "{:?}", series.unavailable);
        Ok::<_, String>(())
    });
    landspeed_testkit::or_lab_kernel!(outcome);
}

#[test]
fn same_named_interfaces_of_other_namespaces_are_distinct() {
    let Some(outer) = snapshot(None).nic else { skip!("no default route on this host") };
    let outcome = netns::run_in_new_namespace(|| {
        run(&format!("ip link add {} index {} type veth peer name b0", outer.name, outer.ifindex))?;
        run(&format!("ip link set {} up", outer.name))?;
        run("ip link set b0 up")?;
        run(&format!("ip route add default dev {}", outer.name))?;
        let host = snapshot(None);
        let nic = host.nic.expect("a default route");
        assert_eq!((&nic.name, nic.driver.as_deref()), (&outer.name, Some("veth")));
        let why = host.unavailable.get("nic.sysfs").expect("/sys is that of the outer namespace");
        assert!(why.contains("another network namespace"), "{why}");
        assert_eq!(nic.numa_node, None);
        Ok::<_, String>(())
    });
    landspeed_testkit::or_lab_kernel!(outcome);
}

#[test]
fn interfaces_of_a_namespace_have_queues_ports_and_addresses() {
    let outcome = netns::run_in_new_namespace(|| {
        run("ip link add a0 numtxqueues 4 numrxqueues 4 type veth peer name b0 numtxqueues 4 numrxqueues 4")?;
        run("ip link set a0 addrgenmode none")?;
        run("ip link set a0 mtu 9000 up")?;
        run("ip link set b0 up")?;
        run("ip address add 10.9.8.1/24 dev a0")?;
        run("ip link add link a0 name a0.7 type vlan id 7")?;
        run("ip link add br0 type bridge")?;
        run("ip link set b0 master br0")?;
        run("ip route add default via 10.9.8.2 dev a0")?;
        run("tc qdisc add dev a0 root handle 8001: mq")?;
        run("tc qdisc add dev a0 parent 8001:2 handle 9: fq maxrate 8gbit")?;
        Ok::<_, String>(collect(&LiveHost::new()))
    });
    let facts = landspeed_testkit::or_lab_kernel!(outcome);
    let named = |name: &str| facts.interfaces.iter().find(|nic| nic.name == name).expect("made above");
    let (a, b, vlan, bridge) = (named("a0"), named("b0"), named("a0.7"), named("br0"));
    assert!(facts.interfaces.iter().all(|nic| nic.name != "lo"));
    assert_eq!(facts.default_interface, Fact::Known("a0".into()));
    assert_eq!(
        (a.kind.as_deref(), a.mtu_bytes, a.addresses.as_slice()),
        (Some("veth"), 9000, &["10.9.8.1/24".to_owned()][..])
    );
    assert_eq!(
        (a.lower.len(), vlan.lower.as_slice(), bridge.lower.as_slice()),
        (0, &["a0".to_owned()][..], &["b0".to_owned()][..])
    );
    assert_eq!(b.master.as_deref(), Some("br0"));
    let tree = a.qdiscs.known().expect("qdiscs");
    assert_eq!((tree[0].kind.as_str(), tree[0].handle.as_str(), tree[0].parent.as_ref()), ("mq", "8001:", None));
    let fq = tree.iter().find(|qdisc| qdisc.kind == "fq").expect("the leaf");
    assert_eq!(
        (fq.handle.as_str(), fq.parent.as_deref(), fq.max_rate_bps),
        ("9:", Some("8001:2"), Some(8_000_000_000))
    );
    assert_eq!(facts.first_network_namespace, Fact::Known(false));
    assert!(matches!(facts.sysctls["net.ipv4.tcp_mem"], Fact::Absent(_)), "{:?}", facts.sysctls["net.ipv4.tcp_mem"]);
    assert!(facts.sysctls["net.ipv4.conf.a0/7.arp_filter"].known().is_some());
    // The thread is in a new network namespace; /sys still shows the old one.
    let Fact::Unknown(why) = &a.tx_queues else { panic!("{:?}", a.tx_queues) };
    assert!(why.contains("another network namespace"), "{why}");
    assert!(matches!(a.queues, Fact::Unknown(_)) && matches!(a.pci, Fact::Absent(_)), "{:?}", a.pci);
    assert_eq!(a.driver.known().map(|driver| driver.name.as_str()), Some("veth"));
}

#[test]
fn collecting_needs_no_privilege_and_never_fails() {
    let facts = collect(&LiveHost::new());
    assert!(facts.collect_ns > 0 && facts.schema == landspeed_model::FACTS_SCHEMA);
    assert!(!facts.kernel.release.is_empty() && !facts.cpu.online.is_empty(), "{:?}", facts.cpu);
    assert!(facts.sysctls.values().any(|value| value.known().is_some()));
    assert!(facts.counters.contains_key("Tcp.OutSegs"), "{:?}", facts.counters.keys());
    let share = facts.virtualization.steal_share.known().expect("/proc/stat");
    assert!((0.0..=1.0).contains(share), "{share}");
}

/// `cargo test --release -p landspeed-host live:: -- --ignored --nocapture`: how long collecting takes here. No
/// limit is asserted, because it depends on the machine.
#[test]
#[ignore = "a measurement, which asserts nothing"]
fn collecting_takes_bounded_time() {
    let mut all: Vec<_> = (0..20).map(|_| collect(&LiveHost::new()).collect_ns).collect();
    all.sort_unstable();
    println!("collect_ns: least {}, median {}, most {}", all[0], all[all.len() / 2], all[all.len() - 1]);
}

/// The same for the first and last reading of a test.
#[test]
#[ignore = "a measurement, which asserts nothing"]
fn first_and_last_readings_take_bounded_time() {
    let sampler = || HostSampler::new(Some("lo"), monotonic_ns()).finish(monotonic_ns(), 0).sampler_cpu_ns;
    let mut all: Vec<_> = (0..100).map(|_| sampler()).collect();
    all.sort_unstable();
    println!("sampler_cpu_ns: least {}, median {}, most {}", all[0], all[all.len() / 2], all[all.len() - 1]);
}
