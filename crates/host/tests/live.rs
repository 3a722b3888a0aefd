//! The running kernel, in network namespaces where that takes one.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;

use landspeed_host::{HostSampler, MIN_SPAN_NS, cores_between, snapshot, use_between};
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
fn this_host_is_described_and_a_peer_here_is_reached_over_lo() {
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
fn work_of_this_thread_shows_on_a_core() {
    let t0_ns = monotonic_ns();
    let mut sampler = HostSampler::new(Some("lo"), t0_ns);
    let spin_until_ns = thread_cpu_ns() + 300_000_000;
    while thread_cpu_ns() < spin_until_ns {
        sampler.sample(monotonic_ns());
    }
    let now_ns = monotonic_ns();
    let series = sampler.finish(now_ns, t0_ns);
    let spent = use_between(&series, 0, (now_ns - t0_ns) as i64).expect("covered");
    // Ticks are charged when they fall: of 300 ms a few may be missed.
    assert!(spent.cpu_s > 0.2, "{spent:?}");
    assert_eq!(spent.covered_ns, now_ns - t0_ns, "spans have no gaps");
    let cores = cores_between(&series, 0, i64::MAX);
    assert!(cores.iter().flatten().any(|core| core.busy() > 0.1), "{cores:?}");
    let spans: Vec<_> = series.samples.iter().map(|sample| sample.end_ns - sample.start_ns).collect();
    assert!(spans.iter().all(|&ns| ns >= MIN_SPAN_NS as i64), "{spans:?}");
    assert!(series.sampler_cpu_ns > 0 && series.sampler_cpu_ns < 300_000_000);
}

#[test]
fn packets_a_qdisc_dropped_during_a_test_are_told_and_those_before_are_not() {
    let outcome = netns::in_new(|| {
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
        // The bucket gives one packet a second: at most one of the second lot found room.
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
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(why)) => skip!("{why}"),
        Err(why) => skip!("no privilege for a network namespace: {why}"),
    }
}

#[test]
fn an_interface_of_the_same_name_elsewhere_is_not_mistaken_for_this_one() {
    let Some(outer) = snapshot(None).nic else { skip!("no default route on this host") };
    let outcome = netns::in_new(|| {
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
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(why)) => skip!("{why}"),
        Err(why) => skip!("no privilege for a network namespace: {why}"),
    }
}
