use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::process::Command;

use landspeed_sys::netns;
use proptest::prelude::*;

use super::*;

/// Runs an iproute2 command in the calling thread's namespace.
fn run(command: &str) -> Result<String, String> {
    let words: Vec<_> = command.split(' ').collect();
    let output = Command::new(words[0]).args(&words[1..]).output().map_err(|e| format!("{command}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

#[test]
fn loopback_link_is_readable_without_privilege() {
    let mut netlink = Netlink::open().expect("a netlink socket needs no privilege");
    let link = netlink.link(LinkId::Name("lo")).expect("every namespace has lo");
    assert_eq!((link.name.as_str(), link.address.as_slice()), ("lo", &[0; 6][..]));
    assert!(link.stats.len() >= 23, "{} counters", link.stats.len());
    assert!(link.mtu_bytes > 0 && link.flags & libc::IFF_LOOPBACK as u32 != 0);
    assert_eq!(netlink.link(LinkId::Index(link.index)).expect("by index").name, "lo");
    let root = netlink.qdiscs(link.index).expect("a dump");
    assert!(root.iter().any(|qdisc| qdisc.parent == Qdisc::ROOT), "{root:?}");
}

#[test]
fn routes_to_local_addresses_use_loopback() {
    let mut netlink = Netlink::open().expect("a socket");
    let lo = netlink.link(LinkId::Name("lo")).expect("lo").index;
    for address in ["127.0.0.1:1", "[::ffff:127.0.0.1]:1"] {
        let route = netlink.route(address.parse().expect("an address")).expect("a route");
        assert!(route.local && route.out_ifindex == lo, "{address}: {route:?}");
    }
}

#[test]
fn dumps_agree_with_single_requests() {
    let mut netlink = Netlink::open().expect("a socket");
    let links = netlink.links().expect("a dump");
    let lo = links.iter().find(|link| link.name == "lo").expect("every namespace has lo");
    assert_eq!(netlink.link(LinkId::Index(lo.index)).expect("by index").address, lo.address);
    assert!(lo.state.is_some() && lo.master.is_none() && lo.xdp != Some(true), "{lo:?}");
    let addresses = netlink.addresses().expect("a dump");
    let local = addresses.iter().find(|address| address.ip == Ipv4Addr::LOCALHOST).expect("127.0.0.1");
    assert_eq!((local.ifindex, local.prefix_bits), (lo.index, 8));
    let all = netlink.all_qdiscs().expect("a dump");
    let of_lo: Vec<_> = all.into_iter().filter(|qdisc| qdisc.ifindex == lo.index).map(|qdisc| qdisc.kind).collect();
    let asked: Vec<_> = netlink.qdiscs(lo.index).expect("a dump").into_iter().map(|qdisc| qdisc.kind).collect();
    assert_eq!(of_lo, asked);
}

#[test]
fn errors_name_the_missing_link() {
    let mut netlink = Netlink::open().expect("a socket");
    let error = netlink.link(LinkId::Name("nosuch0")).expect_err("no such link");
    assert_eq!(error.to_string(), "netlink link of nosuch0: No such device (os error 19)");
    assert!(netlink.link(LinkId::Name(&"x".repeat(70_000))).is_err());
    assert_eq!(netlink.qdiscs(u32::MAX - 7).expect("an empty dump"), []);
    assert!(netlink.link(LinkId::Name("lo")).is_ok(), "an error does not spoil the socket");
}

/// Creates a veth pair whose sender has a shaper with two leaves; the second leaf queues at most two packets.
fn build_shaped_pair() -> Result<(), String> {
    run("ip link add a0 type veth peer name b0")?;
    // IPv6 would send packets by itself.
    run("ip link set a0 addrgenmode none")?;
    run("ip link set a0 mtu 1400 up")?;
    run("ip link set b0 up")?;
    run("ip address add 10.9.8.1/24 dev a0")?;
    run("ip neighbour add 10.9.8.2 lladdr 02:00:00:00:00:02 dev a0")?;
    run("ip route add 10.77.0.0/16 via 10.9.8.2 src 10.9.8.1 mtu 1280")?;
    run("tc qdisc add dev a0 root handle 1: htb default 20")?;
    run("tc class add dev a0 parent 1: classid 1:10 htb rate 1gbit")?;
    run("tc class add dev a0 parent 1: classid 1:20 htb rate 8kbit burst 1600")?;
    run("tc qdisc add dev a0 parent 1:10 handle 10: fq")?;
    run("tc qdisc add dev a0 parent 1:20 handle 20: pfifo limit 2")?;
    Ok(())
}

#[test]
fn qdisc_dump_has_every_leaf_with_its_drops() {
    let outcome = netns::run_in_new_namespace(|| {
        build_shaped_pair()?;
        let mut netlink = Netlink::open().expect("a socket");
        let link = netlink.link(LinkId::Name("a0")).expect("a link");
        assert_eq!((link.mtu_bytes, link.kind.as_deref(), link.qdisc.as_deref()), (1400, Some("veth"), Some("htb")));

        let route = netlink.route((Ipv4Addr::new(10, 77, 1, 1), 9).into()).expect("a route");
        assert_eq!((route.out_ifindex, route.local, route.mtu_bytes), (link.index, false, Some(1280)));
        let error = netlink.route((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 9).into()).expect_err("no route");
        assert!(error.to_string().starts_with("netlink route of 2001:db8::1: "), "{error}");

        let socket = UdpSocket::bind("10.9.8.1:0").expect("a socket");
        for _ in 0..20 {
            let _ = socket.send_to(&[0; 1000], "10.9.8.2:9");
        }
        let qdiscs = netlink.qdiscs(link.index).expect("a dump");
        let of = |handle: &str| qdiscs.iter().find(|q| q.handle_text() == handle).expect("in the dump");
        assert_eq!((of("1:").kind.as_str(), of("1:").parent_text().as_str()), ("htb", "root"));
        assert_eq!((of("10:").kind.as_str(), of("10:").parent_text().as_str()), ("fq", "1:10"));
        let leaf = of("20:");
        assert!(leaf.drops > 0 && leaf.queue_packets == 2, "{leaf:?}");
        assert_eq!(leaf.backlog_bytes, 2 * (1000 + 8 + 20 + 14), "two packets wait, with their headers");
        assert!(of("1:").overlimits > 0, "the shaper held packets back");

        let printed = run("tc -s qdisc show dev a0")?;
        let dropped = format!("dropped {}", leaf.drops);
        assert!(printed.contains(&dropped), "tc says the same: {dropped} in {printed}");
        Ok::<_, String>(())
    });
    landspeed_testkit::or_lab_kernel!(outcome);
}

#[test]
fn qdiscs_hidden_by_tc_are_dumped() {
    let outcome = netns::run_in_new_namespace(|| {
        run("ip link add a0 numtxqueues 4 type veth peer name b0")?;
        run("ip link set a0 up")?;
        run("tc qdisc add dev a0 root handle 1: htb default 1")?;
        run("tc class add dev a0 parent 1: classid 1:1 htb rate 1gbit")?;
        let mut netlink = Netlink::open().expect("a socket");
        let index = netlink.link(LinkId::Name("a0")).expect("a link").index;
        let leaves = netlink.qdiscs(index).expect("a dump");
        assert!(leaves.iter().any(|qdisc| qdisc.parent_text() == "1:1"), "{leaves:?}");
        Ok::<_, String>(())
    });
    landspeed_testkit::or_lab_kernel!(outcome);
}

#[test]
fn rates_of_shapers_are_dumped() {
    let outcome = netns::run_in_new_namespace(|| {
        run("ip link add a0 type veth peer name b0")?;
        let mut netlink = Netlink::open().expect("a socket");
        let index = netlink.link(LinkId::Name("a0")).expect("a link").index;
        // The second rates do not fit in 32 bits of bytes per second.
        for (tc, bits) in [("300mbit", 300_000_000), ("40gbit", 40_000_000_000_u64)] {
            run(&format!("tc qdisc add dev a0 root tbf rate {tc} burst 1mb latency 5ms"))?;
            let tbf = netlink.qdiscs(index).expect("a dump");
            assert_eq!(tbf[0].shaped_bytes_per_s, Some(bits / 8), "{tbf:?}");
            run("tc qdisc del dev a0 root")?;
            run("tc qdisc add dev a0 root handle 1: htb default 1")?;
            run(&format!("tc class add dev a0 parent 1: classid 1:1 htb rate 1mbit ceil {tc}"))?;
            let classes = netlink.classes(index).expect("a dump");
            assert_eq!(classes.len(), 1, "{classes:?}");
            assert_eq!((classes[0].handle_text().as_str(), classes[0].shaped_bytes_per_s), ("1:1", Some(bits / 8)));
            assert_eq!(netlink.qdiscs(index).expect("a dump")[0].shaped_bytes_per_s, None, "the qdisc has no rate");
            run("tc qdisc del dev a0 root")?;
        }
        Ok::<_, String>(())
    });
    landspeed_testkit::or_lab_kernel!(outcome);
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut request = Request { bytes: Vec::new(), kind: 0, flags: 0 };
    request.attribute(kind, value);
    request.bytes
}

/// A qdisc message: header, kind, then `stats`.
fn qdisc_message(stats: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 4];
    for word in [7_u32, 0x8001_0000, Qdisc::ROOT, 2] {
        message.extend(word.to_ne_bytes());
    }
    message.extend(attribute(1, b"fq\0"));
    message.extend(stats);
    message
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn packet_counts_beyond_32_bits_are_parsed() {
    let mut basic = 1_u64.to_ne_bytes().to_vec();
    basic.extend(words(&[5, 0]));
    let mut nested = attribute(1, &basic);
    nested.extend(attribute(8, &((1_u64 << 32) + 5).to_ne_bytes()));
    nested.extend(attribute(99, b"from a kernel to come"));
    let message = qdisc_message(&attribute(7 | 0x8000, &nested));
    let qdisc = Qdisc::parse(&message).expect("whole").expect("has a kind");
    assert_eq!((qdisc.packets, qdisc.packets_wrap), ((1 << 32) + 5, false));
}

proptest! {
    #[test]
    fn parsers_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = (Link::parse(&bytes), Qdisc::parse(&bytes), Route::parse(&bytes), parse::acknowledge(0x200, &bytes));
    }

    #[test]
    fn corrupt_qdisc_messages_still_parse(
        at in 0_usize..200, value in any::<u8>(), cut in 0_usize..200, stats in prop::collection::vec(any::<u8>(), 0..80)
    ) {
        let mut message = qdisc_message(&attribute(7, &stats));
        if let Some(byte) = message.get_mut(at) {
            *byte = value;
        }
        message.truncate(cut.max(20));
        prop_assert!(Qdisc::parse(&message).is_ok());
    }
}
