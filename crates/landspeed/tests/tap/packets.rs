//! Contents of capture files.

use std::net::UdpSocket;
use std::process::Command;

use landspeed_testkit::netns::veth;

use crate::tap::{NamespacePair, directory, document, read, start, stop};

#[test]
fn every_packet_is_written_with_length_and_time() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let (directory, file) = (directory(), "x.pcapng");
    let path = directory.path().join(file);
    let before_ns = landspeed_sys::clock::realtime_ns();
    let name = path.to_str().expect("plain");
    let tap = start(&net.left, &["-i", &net.link.a, "-w", name, "-s", "60", "--json", "-", "udp dst port 9"]);
    net.send(5000, 1000);
    let ended = stop(tap);
    let after_ns = landspeed_sys::clock::realtime_ns();
    let (document, (frames, counts)) = (document(&ended), read(&path));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for key in ["packets", "written"] {
        assert_eq!(document[key], 5000, "{key}");
    }
    assert_eq!((document["dropped"].as_u64(), document["unwritten"].as_u64()), (Some(0), Some(0)));
    assert_eq!(document["interfaces"][0]["packets_out"], 5000);
    assert_eq!(document["ended"], "stopped");
    assert_eq!(frames.len(), 5000, "none is lost at the end");
    assert!(frames.iter().all(|frame| frame.data.len() == 60 && frame.original == 1042));
    assert!(frames.iter().all(|frame| (before_ns..=after_ns).contains(&frame.time_ns)));
    assert!(frames.is_sorted_by_key(|frame| frame.time_ns));
    let (received, dropped) = counts.expect("they are at the end");
    assert!(received >= 5000 && dropped == 0, "the interface's own count: {received}");
    assert_eq!(document["files"][0]["bytes"].as_u64(), std::fs::metadata(&path).ok().map(|meta| meta.len()));
}

#[test]
fn drops_at_a_full_ring_are_counted() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let directory = directory();
    let path = directory.path().join("x.pcapng");
    let name = path.to_str().expect("plain");
    let options = ["-i", &net.link.a, "-w", name, "-s", "1514", "--ring", "128K", "--json", "-", "udp dst port 9"];
    let tap = start(&net.left, &options);
    // The tap is stopped meanwhile, so the ring overflows.
    tap.signal("STOP");
    net.send(2000, 1400);
    tap.signal("CONT");
    let ended = stop(tap);
    let (document, (frames, counts)) = (document(&ended), read(&path));
    let count = |key: &str| document[key].as_u64().expect(key);
    assert_eq!(count("packets"), 2000);
    assert!(count("dropped") > 0 && count("written") > 0, "{document}");
    assert_eq!(count("written") + count("dropped") + count("unwritten"), 2000);
    assert_eq!(frames.len() as u64, count("written"));
    assert_eq!(counts.map(|(_, dropped)| dropped), Some(count("dropped")), "also in the file");
    assert_eq!(ended.code, 1, "drops are findings");
}

#[test]
fn a_removed_vlan_tag_is_restored() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let (left, right) = (&net.left, &net.right);
    let tagged = ["ip", "link", "add", "link", &net.link.a, "name", "tagged", "type", "vlan", "id", "5"];
    let made = left.run(|| Command::new(tagged[0]).args(&tagged[1..]).output()).expect("iproute2");
    if !made.status.success() {
        landspeed_testkit::in_lab_kernel!(
            "no VLAN interfaces here: {}",
            String::from_utf8_lossy(&made.stderr).trim()
        );
    }
    left.exec(["ip", "link", "delete", "tagged"]);
    for (namespace, parent, address) in [(left, &net.link.a, "10.92.0.1/24"), (right, &net.link.b, "10.92.0.2/24")] {
        namespace.exec(["ip", "link", "add", "link", parent, "name", "tagged", "type", "vlan", "id", "5"]);
        landspeed_testkit::netns::address(namespace, "tagged", address);
        namespace.exec(["ip", "link", "set", "tagged", "up"]);
    }
    let directory = directory();
    let path = directory.path().join("x.pcapng");
    let name = path.to_str().expect("plain");
    let tap = start(right, &["-i", &net.link.b, "-w", name, "vlan 5 and udp dst port 9"]);
    left.run(|| {
        let socket = UdpSocket::bind("10.92.0.1:0").expect("an address");
        for _ in 0..10 {
            socket.send_to(&[7; 100], "10.92.0.2:9").expect("a route");
        }
    });
    net.send(10, 100);
    let ended = stop(tap);
    let (frames, _) = read(&path);
    assert_eq!(frames.len(), 10, "{}", ended.stderr);
    for frame in frames {
        assert_eq!(frame.data[12..18], [0x81, 0x00, 0x00, 0x05, 0x08, 0x00]);
        assert_eq!((frame.original, frame.data.len()), (146, 128 + 4));
    }
}

#[test]
fn packets_of_two_interfaces_are_ordered_by_time() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let second = veth(&net.left, &net.right, "10.93.0.1/24", "10.93.0.2/24");
    let directory = directory();
    let path = directory.path().join("x.pcapng");
    let name = path.to_str().expect("plain");
    let tap = start(&net.left, &["-i", &net.link.a, "-i", &second.a, "-w", name, "--rings", "2", "udp dst port 9"]);
    net.left.run(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("an address");
        for _ in 0..500 {
            for to in ["10.91.0.2:9", "10.93.0.2:9"] {
                socket.send_to(&[7; 100], to).expect("a route");
            }
        }
    });
    let ended = stop(tap);
    let (frames, _) = read(&path);
    assert_eq!(frames.len(), 1000, "{}", ended.stderr);
    assert!(frames.is_sorted_by_key(|frame| frame.time_ns));
    let interfaces: Vec<u32> = frames.iter().map(|frame| frame.interface).collect();
    assert_eq!(interfaces, [0, 1].repeat(500));
}

#[test]
fn concurrent_taps_capture_the_same_packets() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let directory = directory();
    let paths = ["one.pcapng", "two.pcapng"].map(|name| directory.path().join(name));
    let tap = |path: &std::path::Path| {
        start(&net.left, &["-i", &net.link.a, "-w", path.to_str().expect("plain"), "udp dst port 9"])
    };
    let taps = [tap(&paths[0]), tap(&paths[1])];
    net.send(300, 50);
    for tap in taps {
        assert_eq!(stop(tap).code, 0);
    }
    let [one, two] = paths.map(|path| read(&path).0);
    assert_eq!(one.len(), 300);
    assert!(one.iter().zip(&two).all(|(a, b)| (a.original, &a.data) == (b.original, &b.data)));
}

#[test]
fn loopback_packets_are_captured_once_in_each_direction() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let directory = directory();
    for (interface, direction, expected) in [("lo", "both", 20), ("lo", "out", 20), ("lo", "in", 20)] {
        let path = directory.path().join(format!("{direction}.pcapng"));
        let name = path.to_str().expect("plain");
        let tap = start(&net.left, &["-i", interface, "--direction", direction, "-w", name, "udp dst port 9"]);
        net.left.run(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("an address");
            for _ in 0..20 {
                let _ = socket.send_to(&[7; 100], "127.0.0.1:9");
                // An ICMP port unreachable is reported as an error of the next call.
                let _ = socket.take_error();
            }
        });
        assert_eq!(stop(tap).code, 0);
        let frames = read(&path).0.len();
        assert!((expected / 2..=expected).contains(&frames), "{direction}: {frames}");
    }
}

#[test]
fn a_missing_hardware_clock_is_reported() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let tap = start(&net.left, &["-i", &net.link.a, "--clock", "hardware", "-J", "-", "udp dst port 9"]);
    net.send(10, 10);
    let document = document(&stop(tap));
    assert_eq!(document["interfaces"][0]["clock"], "software");
    let codes: Vec<&str> =
        document["warnings"].as_array().expect("a list").iter().filter_map(|w| w["code"].as_str()).collect();
    assert!(codes.contains(&"software-time"), "{codes:?}");
}
