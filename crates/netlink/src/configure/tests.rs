//! Reads configurations back: in network namespaces where the kernel has the kind, and from the encoded
//! requests for kinds that this host's kernel may lack.

use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;

use landspeed_sys::filter::Instruction;
use landspeed_sys::netns;
use landspeed_sys::ring::{PacketKind, Ring, RingOptions};
use landspeed_testkit::in_lab_kernel;
use proptest::prelude::*;

use super::*;
use crate::parse::each_attribute;
use crate::{LinkId, Qdisc, QdiscReading, ethtool};

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn up() -> LinkSettings {
    LinkSettings { up: Some(true), ..LinkSettings::default() }
}

/// Adds the pair `a0` and `b0`, both up, and returns their indices.
fn pair(netlink: &mut Netlink) -> Result<(u32, u32), NetlinkError> {
    let near = NewLink { name: "a0", settings: up(), ..NewLink::default() };
    netlink.add_veth(&near, &NewLink { name: "b0", ..NewLink::default() })?;
    netlink.set_link(LinkId::Name("b0"), &up())?;
    Ok((netlink.link(LinkId::Name("a0"))?.index, netlink.link(LinkId::Name("b0"))?.index))
}

/// Output of an iproute2 tool, or `None` if it is missing or fails.
fn command_output(command: &str) -> Option<String> {
    let words: Vec<_> = command.split(' ').collect();
    let output = Command::new(words[0]).args(&words[1..]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn assert_contains(text: Option<&str>, wanted: &[&str]) {
    for part in wanted {
        assert!(text.is_none_or(|text| text.contains(part)), "{part} in {text:?}");
    }
}

#[test]
fn veth_pair_across_two_namespaces_is_created_in_one_request() {
    let outcome = netns::run_in_new_namespace(|| {
        let other = std::thread::spawn(|| netns::unshare().and_then(|()| netns::current()));
        let other = other.join().expect("no panic").expect("another namespace");
        let mut netlink = Netlink::open()?;
        let settings = LinkSettings {
            mtu_bytes: Some(9000),
            address: Some([2, 0, 0, 0, 0, 1]),
            tx_queue_len: Some(10_000),
            gso_max_size_bytes: Some(60_000),
            ..up()
        };
        let near = NewLink { name: "a0", settings, ..NewLink::default() };
        let settings =
            LinkSettings { address: Some([2, 0, 0, 0, 0, 2]), mtu_bytes: Some(8000), ..Default::default() };
        let far = NewLink { name: "b0", namespace: Some(other.as_fd()), settings };
        netlink.add_veth(&near, &far)?;
        let link = netlink.link(LinkId::Name("a0"))?;
        assert_eq!((link.mtu_bytes, link.tx_queue_len), (9000, Some(10_000)));
        assert_eq!((link.gso_max_size_bytes, link.gso_ipv4_max_size_bytes), (Some(60_000), Some(60_000)));
        assert_eq!((link.address.as_slice(), link.kind.as_deref()), (&[2, 0, 0, 0, 0, 1][..], Some("veth")));
        assert!(link.flags & libc::IFF_UP as u32 != 0);

        netns::enter(other.as_fd()).expect("there");
        let mut there = Netlink::open()?;
        let link = there.link(LinkId::Name("b0"))?;
        assert_eq!((link.mtu_bytes, link.address[5]), (8000, 2));
        Ok::<_, NetlinkError>(())
    });
    finish(outcome);
}

fn finish(outcome: std::io::Result<Result<(), NetlinkError>>) {
    landspeed_testkit::or_lab_kernel!(outcome);
}

#[test]
fn errors_include_the_kernels_explanation() {
    let outcome = netns::run_in_new_namespace(|| {
        let mut netlink = Netlink::open()?;
        pair(&mut netlink)?;
        let small = LinkSettings { mtu_bytes: Some(20), ..LinkSettings::default() };
        let error = netlink.set_link(LinkId::Name("a0"), &small).expect_err("too small");
        let text = "netlink link set of a0: Invalid argument (os error 22): mtu less than device minimum";
        assert_eq!(error.to_string(), text);
        let long = NewLink { name: "too-long-a-name-for-it", ..NewLink::default() };
        let error = netlink.add_bridge(&long);
        assert!(error.expect_err("no name").to_string().ends_with("not an interface name"));
        let far = NewLink { name: "d0", settings: up(), ..NewLink::default() };
        let error = netlink.add_veth(&NewLink { name: "c0", ..NewLink::default() }, &far);
        assert!(error.expect_err("not yet").to_string().contains("cannot be up"), "said before the kernel does");
        Ok(())
    });
    finish(outcome);
}

#[test]
fn bridge_has_the_configured_port_and_static_entries() {
    let outcome = netns::run_in_new_namespace(|| {
        let mut netlink = Netlink::open()?;
        let (a0, b0) = pair(&mut netlink)?;
        let bridge = NewLink { name: "br0", settings: up(), ..NewLink::default() };
        netlink.add_bridge(&bridge)?;
        let master = Some(netlink.link(LinkId::Name("br0"))?.index);
        netlink.set_link(LinkId::Index(b0), &LinkSettings { master, ..LinkSettings::default() })?;
        netlink.set_bridge_entry(b0, [2, 0, 0, 0, 0, 9])?;
        let shown = command_output("ip -d link show dev br0");
        assert_contains(shown.as_deref(), &["stp_state 0", "forward_delay 0"]);
        assert_contains(command_output("ip -d link show dev b0").as_deref(), &["master br0"]);
        assert_contains(
            command_output("bridge fdb show dev b0").as_deref(),
            &["02:00:00:00:00:09 master br0 static"],
        );
        netlink.set_link(LinkId::Index(b0), &LinkSettings { master: Some(0), ..LinkSettings::default() })?;
        assert!(netlink.set_bridge_entry(a0, [2, 0, 0, 0, 0, 9]).is_err(), "no port, no entry");
        Ok(())
    });
    finish(outcome);
}

#[test]
fn route_reads_back_as_configured() {
    let outcome = netns::run_in_new_namespace(|| {
        let mut netlink = Netlink::open()?;
        let (a0, _) = pair(&mut netlink)?;
        let source = ip("10.1.0.1");
        netlink.add_address(a0, source, 24)?;
        netlink.set_neighbour(a0, ip("10.1.0.2"), [2, 0, 0, 0, 0, 2])?;
        let route = NewRoute { destination: ip("10.2.0.0"), prefix_bits: 16, ifindex: a0, source, quickack: true };
        netlink.replace_route(&route)?;
        assert_eq!(netlink.route((ip("10.2.3.4"), 9).into())?.out_ifindex, a0);
        assert_contains(
            command_output("ip route show 10.2.0.0/16").as_deref(),
            &["scope link", "src 10.1.0.1", "quickack 1"],
        );
        assert_contains(
            command_output("ip neighbour show").as_deref(),
            &["10.1.0.2 dev a0 lladdr 02:00:00:00:00:02 PERMANENT"],
        );
        Ok(())
    });
    finish(outcome);
}

/// One discipline of each kind, and the parts that `tc -d qdisc` must print for it.
fn every_kind() -> Vec<(Discipline, &'static [&'static str])> {
    let tbf =
        Tbf { rate_bytes_per_s: 12_500_000_000, burst_bytes: 100_000, limit_bytes: 5_000_000, overhead_bytes: 24 };
    let netem = Netem { delay_ns: 25_000_000, loss: Loss::Random(Probability::new(0.25)), ..Netem::default() };
    let red = Red {
        limit_bytes: 4_000_000,
        min_bytes: 300_000,
        max_bytes: 900_000,
        probability: Probability::new(0.02),
        average_packet_bytes: 1500,
        burst_packets: 334,
        bandwidth_bytes_per_s: 1_250_000_000,
        ecn: true,
    };
    let codel = Codel { limit_packets: Some(1234), target_us: Some(7000), ..Codel::default() };
    let fq = Fq { flow_limit_packets: Some(1000), flow_max_rate_bytes_per_s: Some(1_250_000_000), ..Fq::default() };
    let pie = Pie { limit_packets: Some(555), target_us: Some(20_000), ..Pie::default() };
    vec![
        (Discipline::Pfifo { limit_packets: 77 }, &["limit 77p"]),
        (Discipline::Bfifo { limit_bytes: 1_000_001 }, &["limit 1000001b"]),
        (Discipline::Tbf(tbf), &["rate 100Gbit burst"]),
        (Discipline::Htb { default_class: 16 }, &["default 0x10"]),
        (Discipline::Netem(netem), &["limit 1000 delay 25ms loss 25%"]),
        (Discipline::Red(red), &["min 300000b max 900000b", "probability 0.02"]),
        (Discipline::Codel(codel), &["limit 1234p target 7ms"]),
        (Discipline::FqCodel(FqCodel { codel, flows: Some(64), ..FqCodel::default() }), &["limit 1234p flows 64"]),
        (Discipline::Pie(pie), &["limit 555p target 20ms"]),
        (Discipline::Cake { rtt_us: Some(50_000) }, &["rtt 50ms"]),
        (Discipline::Sfq { limit_packets: 100 }, &["limit 100p"]),
        (Discipline::Fq(fq), &["flow_limit 1000p", "maxrate 10Gbit"]),
    ]
}

#[test]
fn every_qdisc_of_this_kernel_reads_back_as_configured() {
    let mut missing = Vec::new();
    let outcome = netns::run_in_new_namespace(|| {
        let mut netlink = Netlink::open()?;
        let (a0, _) = pair(&mut netlink)?;
        for (discipline, wanted) in every_kind() {
            match netlink.add_qdisc(a0, Qdisc::ROOT, handle(0x1f, 0), &discipline) {
                Ok(()) => {}
                Err(NetlinkError { cause: Cause::Io(e) | Cause::Refused(e, _), .. })
                    if e.raw_os_error() == Some(libc::ENOENT) =>
                {
                    missing.push(discipline.kind());
                    continue;
                }
                Err(error) => panic!("{error}"),
            }
            let found = netlink.qdiscs(a0)?;
            let root = found.iter().find(|qdisc| qdisc.parent == Qdisc::ROOT).expect("a root");
            assert_eq!((root.kind.as_str(), root.handle), (discipline.kind(), handle(0x1f, 0)));
            assert_contains(command_output("tc -d qdisc show dev a0").as_deref(), wanted);
            netlink.delete_qdisc(a0, Qdisc::ROOT)?;
        }
        Ok(())
    });
    finish(outcome);
    if !missing.is_empty() {
        in_lab_kernel!("this kernel has no {}", missing.join(", "));
    }
}

#[test]
fn htb_leaf_counts_backlog_and_drops() {
    let outcome = netns::run_in_new_namespace(|| {
        let mut netlink = Netlink::open()?;
        let (a0, _) = pair(&mut netlink)?;
        netlink.add_address(a0, ip("10.1.0.1"), 24)?;
        netlink.set_neighbour(a0, ip("10.1.0.2"), [2, 0, 0, 0, 0, 2])?;
        netlink.add_qdisc(a0, Qdisc::ROOT, handle(1, 0), &Discipline::Htb { default_class: 16 })?;
        let class = HtbClass { rate_bytes_per_s: 1000, burst_bytes: 1600, quantum_bytes: 1514 };
        netlink.add_htb_class(a0, handle(1, 0), handle(1, 16), &class)?;
        netlink.add_qdisc(a0, handle(1, 16), handle(2, 0), &Discipline::Bfifo { limit_bytes: 2500 })?;
        let socket = UdpSocket::bind("10.1.0.1:0").expect("a socket");
        for _ in 0..20 {
            let _ = socket.send_to(&[0; 1000], "10.1.0.2:9");
        }
        let mut readings = Vec::with_capacity(64);
        let place = readings.as_ptr();
        netlink.read_all_qdiscs(&mut readings)?;
        assert_eq!(readings.as_ptr(), place, "the vector was used again");
        let of = |handle| readings.iter().find(|r: &&QdiscReading| r.handle == handle).expect("in the dump");
        let leaf = of(handle(2, 0));
        assert_eq!(leaf.parent, handle(1, 16));
        assert!(leaf.drops > 0 && leaf.queue_packets == 2 && leaf.backlog_bytes == 2 * 1042, "{leaf:?}");
        Ok(())
    });
    finish(outcome);
}

#[test]
fn redirect_delivers_frames_to_the_other_interface() {
    let outcome = netns::run_in_new_namespace(|| {
        let mut netlink = Netlink::open()?;
        let (a0, b0) = pair(&mut netlink)?;
        netlink.add_veth(
            &NewLink { name: "c0", settings: up(), ..NewLink::default() },
            &NewLink { name: "d0", ..NewLink::default() },
        )?;
        netlink.set_link(LinkId::Name("d0"), &up())?;
        let [c0, d0] = ["c0", "d0"].map(|name| netlink.link(LinkId::Name(name)).expect("a link").index);
        netlink.add_qdisc(b0, Qdisc::INGRESS, 0, &Discipline::Ingress)?;
        netlink.redirect_ingress(b0, c0)?;
        netlink.add_address(a0, ip("10.1.0.1"), 24)?;
        netlink.set_neighbour(a0, ip("10.1.0.2"), [2, 0, 0, 0, 0, 2])?;
        let filter = &[Instruction::pass(64)];
        let options =
            RingOptions { ifindex: d0, block_bytes: 1 << 16, blocks: 1, retire_ms: 1, filter, ..Default::default() };
        let mut far = Ring::open(&options).expect("a ring");
        far.start().expect("it captures");
        let socket = UdpSocket::bind("10.1.0.1:0").expect("a socket");
        socket.send_to(&[0; 1000], "10.1.0.2:9").expect("sent");
        let mut kind = None;
        far.finish(|packet| kind = kind.or((packet.original_bytes == 1042).then_some(packet.kind)))
            .expect("a capture");
        assert_eq!(kind, Some(PacketKind::OtherHost));
        Ok(())
    });
    finish(outcome);
}

#[test]
fn super_packets_can_be_switched_off_and_on() {
    let outcome = netns::run_in_new_namespace(|| {
        let mut netlink = Netlink::open()?;
        pair(&mut netlink)?;
        let mut nic = ethtool::Ethtool::new("a0").expect("a socket");
        let super_packets = ["tx-tcp-segmentation", "rx-gro"];
        nic.set_features(&super_packets, false).expect("off");
        let active: Vec<_> = nic.features().expect("features").into_iter().filter(|f| f.active).collect();
        assert!(active.iter().all(|f| !super_packets.contains(&f.name.as_str())), "{active:?}");
        nic.set_features(&super_packets, true).expect("on");
        let error = nic.set_features(&["no-such-feature"], true).expect_err("unknown");
        assert!(error.to_string().ends_with("no-such-feature cannot be switched on"), "{error}");
        Ok(())
    });
    finish(outcome);
}

/// The value of `TCA_OPTIONS` for `discipline`.
fn options(discipline: &Discipline) -> Vec<u8> {
    let mut request = Request { bytes: Vec::new(), kind: 0, flags: 0 };
    discipline.encode(&mut request).expect("possible options");
    request.bytes[4..].to_vec()
}

fn find(attributes: &[u8], wanted: u16) -> &[u8] {
    each_attribute(attributes).find(|&(kind, _)| kind == wanted).expect("the attribute is there").1
}

#[test]
fn netem_times_and_probabilities_are_encoded_exactly() {
    let loss = Loss::Random(Probability::new(0.000_046));
    let netem = Netem { delay_ns: 25_000_000, jitter_ns: 1, loss, seed: Some(7), ..Netem::default() };
    let bytes = options(&Discipline::Netem(netem));
    // struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter.
    let word = |i: usize| u32::from_ne_bytes(bytes[4 * i..4 * i + 4].try_into().expect("a word"));
    assert_eq!((word(0), word(1), word(2)), (25_000_000 / 64, 1000, 197_568));
    let attributes = &bytes[24..];
    assert_eq!(find(attributes, 10), 25_000_000_u64.to_ne_bytes());
    assert_eq!(find(attributes, 11), 1_u64.to_ne_bytes());
    assert_eq!(find(attributes, 14), 7_u64.to_ne_bytes());
}

#[test]
fn gilbert_elliott_h_is_encoded_as_survival_probability() {
    let [failure, recovery] = [0.001, 0.1].map(Probability::new);
    let (loss_in_bad, loss_in_good) = (Probability::new(1.0), Probability::ZERO);
    let loss = Loss::GilbertElliott { failure, recovery, loss_in_bad, loss_in_good };
    let bytes = options(&Discipline::Netem(Netem { loss, ..Netem::default() }));
    let model = find(find(&bytes[24..], 5), 2);
    let wanted: Vec<u8> = [failure.bits(), recovery.bits(), 0, 0].iter().flat_map(|w| w.to_ne_bytes()).collect();
    assert_eq!(model, wanted);
}

#[test]
fn rates_beyond_32_bits_use_the_64_bit_attribute() {
    let tbf = Tbf { rate_bytes_per_s: 12_500_000_000, burst_bytes: 100_000, limit_bytes: 9, overhead_bytes: 0 };
    let bytes = options(&Discipline::Tbf(tbf));
    assert_eq!(find(&bytes, 4), 12_500_000_000_u64.to_ne_bytes());
    assert_eq!(find(&bytes, 6), 100_000_u32.to_ne_bytes());
    // struct tc_tbf_qopt: two rates of 12 bytes, limit, buffer: 100,000 bytes take 8 µs or 125 ticks.
    let parameters = find(&bytes, 1);
    assert_eq!(parameters.len(), 36);
    assert_eq!(parameters[8..12], u32::MAX.to_ne_bytes());
    assert_eq!((&parameters[24..28], &parameters[28..32]), (&9_u32.to_ne_bytes()[..], &125_u32.to_ne_bytes()[..]));
}

#[test]
fn options_that_no_kernel_accepts_are_refused() {
    let jitter = Discipline::Netem(Netem { jitter_ns: 1 << 40, ..Netem::default() });
    let rate = Discipline::Fq(Fq { flow_max_rate_bytes_per_s: Some(12_500_000_000), ..Fq::default() });
    for discipline in [jitter, rate, Discipline::Tbf(Tbf::default()), Discipline::Red(Red::default())] {
        let mut request = Request { bytes: Vec::new(), kind: 0, flags: 0 };
        assert!(discipline.encode(&mut request).is_err(), "{discipline:?}");
    }
}

#[test]
fn probabilities_have_32_bits_and_nonzero_stays_nonzero() {
    assert_eq!(Probability::new(0.5).bits(), 1 << 31);
    assert_eq!((Probability::new(1e-12).bits(), Probability::new(0.0).bits()), (1, 0));
    assert_eq!([1.0, 7.0].map(|p| Probability::new(p).bits()), [u32::MAX; 2]);
    assert_eq!((Probability::new(-1.0), Probability::new(f64::NAN)), (Probability::ZERO, Probability::ZERO));
}

proptest! {
    #[test]
    fn qdisc_reading_parser_never_panics(
        kind in prop::sample::select(vec!["fq", "red", "codel", "fq_codel", "pie", "x"]),
        stats in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut request = Request { bytes: vec![0; 20], kind: 0, flags: 0 };
        request.text(1, kind);
        request.attribute(2, &stats);
        request.nest(7, |r| r.attribute(4, &stats));
        prop_assert!(QdiscReading::parse(&request.bytes).is_ok());
        let _ = QdiscReading::parse(&stats);
    }
}
