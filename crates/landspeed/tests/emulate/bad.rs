//! Invalid configurations are refused, with a reason and advice.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;

use landspeed_testkit::process::{Ended, Process, until};

use super::{TIMEOUT_S, Wire, certificate, landspeed, path_file, stop};

const LINK: &str = "[[link]]\nrate = \"1G\"\ndelay = \"5ms\"";

#[track_caller]
fn assert_error(ended: &Ended, words: &str) {
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains(words), "{words:?} in {}", ended.stderr);
}

#[test]
fn unsuitable_interfaces_are_refused_with_advice() {
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let (_directory, file) = path_file(LINK);
    assert_error(&wire.refused(&file, "m1,m3"), "cannot emulate on m3: there is no such interface\nUse two of: ");
    assert_error(&wire.refused(&file, "m1,m1"), "cannot emulate on m1: it is both ends of the path");
    assert_error(&wire.refused(&file, "m1"), "two interfaces are needed");
    assert_error(&wire.refused(&file, "m1,lo"), "cannot emulate on lo: it carries no Ethernet frames");
    wire.middle.exec(["ip", "link", "add", "p1", "type", "veth", "peer", "name", "p2"]);
    assert_error(&wire.refused(&file, "m1,p1"), "cannot emulate on p1: it is down\nSet it up: 'ip link set p1 up'.");
    wire.middle.exec(["ip", "link", "set", "p1", "up"]);
    wire.middle.exec(["ip", "link", "set", "p2", "up"]);
    assert_error(&wire.refused(&file, "p1,p2"), "what leaves by one interface arrives at the other");
    wire.middle.exec(["ip", "link", "set", "m2", "mtu", "9000"]);
    assert_error(&wire.refused(&file, "m1,m2"), "its MTU is 9000, the path's is 1500");
    wire.middle.exec(["ip", "link", "set", "m2", "mtu", "1500"]);
    wire.middle.exec(["ip", "address", "add", "10.94.0.1/24", "dev", "m2"]);
    assert_error(&wire.refused(&file, "m1,m2"), "it has the address 10.94.0.1/24");
    wire.middle.exec(["ip", "route", "add", "default", "via", "10.94.0.2"]);
    assert_error(&wire.refused(&file, "m1,m2"), "cannot emulate on m2: the default route uses it");
    wire.middle.exec(["ip", "address", "flush", "dev", "m2"]);
    wire.middle.exec(["ip", "link", "add", "bridge", "type", "bridge"]);
    wire.middle.exec(["ip", "link", "set", "m2", "master", "bridge"]);
    assert_error(&wire.refused(&file, "m1,m2"), "it is a port of a bridge, bond or VRF");
}

#[test]
fn two_emulators_on_one_interface_are_refused() {
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let (_directory, file) = path_file(LINK);
    let first = wire.emulate(&file, &[]);
    assert_error(&wire.refused(&file, "m1,m2"), "emulates on it");
    stop(first);
    let again = wire.emulate(&file, &[]);
    assert!(stop(again).code < 2);
}

#[test]
fn forwarding_loops_between_interfaces_are_refused() {
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let (_directory, file) = path_file(LINK);
    // Both cables end in one bridge, so the interfaces lead to each other.
    wire.left.exec(["ip", "link", "add", "switch", "up", "type", "bridge"]);
    wire.right.exec(["ip", "link", "set", "r0", "netns", wire.left.name()]);
    for port in ["l0", "r0"] {
        wire.left.exec(["ip", "link", "set", port, "master", "switch", "up"]);
    }
    until(TIMEOUT_S, "the ports forward", || {
        wire.left.exec(["bridge", "link"]).matches("state forwarding").count() == 2
    });
    assert_error(&wire.refused(&file, "m1,m2"), "what leaves by one interface arrives at the other");
}

#[test]
fn an_interface_that_vanishes_ends_the_emulation() {
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let (directory, file) = path_file(LINK);
    let json = directory.path().join("certificate.json");
    let process = wire.emulate(&file, &["--json", &json.to_string_lossy()]);
    wire.middle.exec(["ip", "link", "delete", "m2"]);
    let ended = process.end(TIMEOUT_S);
    assert_error(&ended, "an interface disappeared or went down");
    assert_eq!(certificate(&json)["ended"], "interface-gone");
}

#[test]
fn super_packets_are_dropped_and_invalidate_their_second() {
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let (directory, file) = path_file(LINK);
    let json = directory.path().join("certificate.json");
    let process = wire.emulate(&file, &["--json", &json.to_string_lossy()]);
    let listener = wire.right.run(|| TcpListener::bind("10.93.0.2:9010")).expect("an address");
    // The sender's interface passes 64 KiB segments (TSO), as veth does by default.
    let mut sender = wire.left.run(|| TcpStream::connect("10.93.0.2:9010")).expect("connected");
    let (mut receiver, _) = listener.accept().expect("connected");
    // Ends with the test: refused data does not arrive.
    std::thread::spawn(move || receiver.read_to_end(&mut Vec::new()));
    sender.set_write_timeout(Some(std::time::Duration::from_millis(500))).expect("set");
    let _ = sender.write_all(&vec![7; 500_000]);
    let ended = stop(process);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let certificate = certificate(&json);
    let reasons = certificate["invalid"][0]["reasons"].to_string();
    assert!(reasons.contains("super-packets"), "{reasons}");
    assert!(ended.stdout.contains("ethtool -K IF tso off gso off gro off"), "{}", ended.stdout);
}

#[test]
fn gro_on_the_interface_is_refused() {
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let (_directory, file) = path_file(LINK);
    let merges = wire.middle.run(|| {
        let mut tool = landspeed_netlink::ethtool::Ethtool::new("m1").map_err(|why| why.to_string())?;
        tool.set_features(&["rx-gro"], true).map_err(|why| why.to_string())
    });
    landspeed_testkit::or_skip!(merges);
    assert_error(
        &wire.refused(&file, "m1,m2"),
        "it merges frames on receipt (gro)\nSwitch that off: 'ethtool -K m1 gro off'.",
    );
}

#[test]
fn path_exceeding_memory_is_refused_with_the_calculation() {
    let (_directory, file) = path_file("[[link]]\nrate = \"1T\"\ndelay = \"60s\"");
    let mut command = landspeed();
    command.arg("emulate").arg(&file).args(["--", "true"]);
    let ended = Process::start(command).end(TIMEOUT_S);
    assert_error(&ended, "not enough memory for the path: forward 1000.0000 Gb/s x 60000 ms: 7500.00 GB in flight");
}

#[test]
fn missing_privilege_for_interfaces_is_reported() {
    let (directory, file) = path_file(LINK);
    let mut command = landspeed();
    if landspeed_sys::process::is_root() {
        command.uid(65_534).gid(65_534);
    }
    command.current_dir(directory.path()).arg("emulate").arg(&file).args(["--between", "eth1,eth2"]);
    let ended = Process::start(command).end(TIMEOUT_S);
    assert_error(&ended, "cannot read frames of eth1: permission denied\nRun it as root");
}

#[test]
fn invalid_command_lines_are_refused() {
    let (_directory, file) = path_file(LINK);
    let run = |arguments: &[&str]| {
        let mut command = landspeed();
        command.arg("emulate").args(arguments);
        Process::start(command).end(TIMEOUT_S)
    };
    let file = file.to_string_lossy().into_owned();
    assert_error(&run(&[&file]), "<CMD>");
    assert_error(
        &run(&["/nonexistent.toml", "--", "true"]),
        "cannot read /nonexistent.toml: No such file or directory",
    );
    assert_error(&run(&[&file, "--json", "-", "--", "true"]), "cannot write the certificate to standard output");
    assert_error(&run(&[&file, "--json", "/nonexistent/x", "--", "true"]), "cannot write /nonexistent/x");
    assert_error(&run(&[&file, "--between", "a,b", "--", "true"]), "cannot be used with");
    assert_error(&run(&["/dev/zero", "--", "true"]), "it is a device, not a regular file");
    let missing = run(&[&file, "--remote", "exec sleep 60", "--quiet", "--", "/nonexistent/program"]);
    if !missing.stderr.contains("namespace") {
        assert_error(&missing, "cannot run /nonexistent/program: No such file or directory");
    }
    let example = run(&["--example"]);
    assert_eq!((example.code, &example.stdout[..8]), (0, "# A path"));
}
