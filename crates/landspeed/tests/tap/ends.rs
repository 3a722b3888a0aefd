//! End conditions of a tap, and its output files.

use std::process::Command;

use landspeed_sys::clock;
use landspeed_testkit::process::until;
use serde_json::Value;

use crate::tap::{
    NamespacePair, TIMEOUT_S, directory, document, landspeed, read, spawn, start, stop, wait_until_capturing,
};

#[test]
fn signals_end_a_capture_with_all_packets_written() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let directory = directory();
    for signal in ["INT", "TERM", "HUP"] {
        let path = directory.path().join(format!("{signal}.pcapng"));
        let name = path.to_str().expect("plain");
        let tap = start(&net.left, &["-i", &net.link.a, "-w", name, "udp dst port 9"]);
        net.send(777, 20);
        tap.signal(signal);
        let ended = tap.end(TIMEOUT_S);
        assert_eq!((ended.code, read(&path).0.len()), (0, 777), "{signal}: {}", ended.stderr);
    }
}

#[test]
fn limits_end_a_capture_with_exact_counts() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let directory = directory();
    let path = directory.path().join("x.pcapng");
    let name = path.to_str().expect("plain");
    for (option, value, ended) in [("-c", "100", "packets"), ("--size", "20k", "size"), ("-t", "0.3", "time")] {
        let tap = start(&net.left, &["-i", &net.link.a, "-w", name, option, value, "--json", "-", "udp dst port 9"]);
        net.send(400, 20);
        let document = document(&tap.end(TIMEOUT_S));
        let frames = read(&path).0.len() as u64;
        assert_eq!(document["ended"], ended);
        assert_eq!(document["written"].as_u64(), Some(frames));
        let whole = ["written", "unwritten", "dropped"].iter().filter_map(|key| document[*key].as_u64()).sum::<u64>();
        assert_eq!(document["packets"].as_u64(), Some(whole), "{document}");
        match ended {
            "packets" => assert_eq!(frames, 100),
            "size" => assert!((50..300).contains(&frames), "{frames}"),
            _ => assert_eq!(frames, 400),
        }
    }
}

#[test]
fn ring_files_are_readable_separately_and_complete() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let directory = directory();
    let name = directory.path().join("ring.pcapng");
    let name = name.to_str().expect("plain");
    let options = ["-i", &net.link.a, "-w", name, "--file-size", "20k", "--json", "-", "udp dst port 9"];
    let tap = start(&net.left, &options);
    net.send(1000, 20);
    let document = document(&stop(tap));
    let files = document["files"].as_array().expect("a list");
    assert!(files.len() >= 5, "{}", files.len());
    let each: Vec<_> = files.iter().map(|file| read(file["path"].as_str().expect("a path").as_ref())).collect();
    assert_eq!(each.iter().map(|(frames, _)| frames.len()).sum::<usize>(), 1000);
    assert!(each.iter().all(|(_, counts)| counts.is_some()), "each ends with its counts");
    assert!(files.iter().all(|file| file["bytes"].as_u64().is_some_and(|bytes| bytes < 22_000)), "{files:?}");
    let first: Vec<u64> = each.iter().filter_map(|(frames, _)| Some(frames.first()?.time_ns)).collect();
    assert!(first.is_sorted());
}

#[test]
fn a_removed_interface_ends_the_capture_cleanly() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let directory = directory();
    let path = directory.path().join("x.pcapng");
    let name = path.to_str().expect("plain");
    let tap = start(&net.left, &["-i", &net.link.a, "-w", name, "--json", "-", "udp dst port 9"]);
    net.send(50, 20);
    net.left.exec(["ip", "link", "delete", &net.link.a]);
    let ended = tap.end(TIMEOUT_S);
    let document = document(&ended);
    assert_eq!((ended.code, &document["ended"]), (1, &Value::from("interface-gone")), "{}", ended.stderr);
    assert_eq!(document["interfaces"][0]["gone"], true);
    assert_eq!(read(&path).0.len(), 50);
}

#[test]
fn capture_continues_after_the_interface_was_down() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let tap = start(&net.left, &["-i", &net.link.a, "--json", "-", "udp dst port 9"]);
    net.send(5, 20);
    net.left.exec(["ip", "link", "set", &net.link.a, "down"]);
    // Long enough for the tap to notice.
    clock::sleep_until(clock::monotonic_ns() + 400_000_000);
    net.left.exec(["ip", "link", "set", &net.link.a, "up"]);
    let carrier = || net.left.exec(["ip", "-o", "link", "show", &net.link.a]).contains("LOWER_UP");
    until(TIMEOUT_S, "a carrier", carrier);
    net.send(5, 20);
    let document = document(&stop(tap));
    assert!(document["packets"].as_u64() > Some(5), "{document}");
    assert!(document.to_string().contains("was down for a while"), "{document}");
}

#[test]
fn a_full_disk_keeps_the_earlier_packets_readable() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let directory = directory();
    let (disk, saved) = (directory.path().join("disk"), directory.path().join("saved.pcapng"));
    std::fs::create_dir(&disk).expect("a directory");
    let file = disk.join("x.pcapng");
    // A small file system that disappears with its mount namespace.
    let script = format!(
        "mount -t tmpfs -o size=400k none {disk} || exit 77; {program} tap -i {interface} -w {file} --json {json} udp dst \
         port 9; code=$?; cp {file} {saved}; exit $code",
        disk = disk.display(),
        program = landspeed().get_program().to_string_lossy(),
        interface = net.link.a,
        file = file.display(),
        json = directory.path().join("x.json").display(),
        saved = saved.display(),
    );
    let tap = spawn(&net.left, Command::new("unshare").args(["--mount", "sh", "-c", &script]));
    wait_until_capturing(&tap);
    net.send(5000, 100);
    let ended = tap.end(TIMEOUT_S);
    if ended.code == 77 {
        landspeed_testkit::skip!("no tmpfs can be mounted here: {}", ended.stderr);
    }
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("No space left on device"), "{}", ended.stderr);
    let frames = read(&saved).0.len() as u64;
    let text = std::fs::read(directory.path().join("x.json")).expect("it is written");
    let document: Value = serde_json::from_slice(&text).expect("JSON");
    let count = |key: &str| document[key].as_u64().expect(key);
    assert_eq!((&document["ended"], count("written")), (&Value::from("write-failed"), frames));
    assert!(frames > 100 && count("unwritten") > 0, "{document}");
    assert_eq!(count("written") + count("unwritten") + count("dropped"), count("packets"));
}

#[test]
fn capture_can_be_piped() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let directory = directory();
    let path = directory.path().join("x.pcapng");
    let tap = ["tap", "-i", &net.link.a, "-w", "-", "-c", "20", "udp dst port 9"];
    let mut piped = Command::new("bash");
    piped.args(["-o", "pipefail", "-c", "\"$0\" \"$@\" | cat > \"$FILE\""]).env("FILE", &path);
    let tap = spawn(&net.left, piped.arg(landspeed().get_program()).args(tap));
    wait_until_capturing(&tap);
    net.send(20, 20);
    let ended = tap.end(TIMEOUT_S);
    assert_eq!((ended.code, read(&path).0.len()), (0, 20), "{}", ended.stderr);
    assert!(ended.stderr.contains("20 packets"), "the summary goes elsewhere: {}", ended.stderr);
}

#[test]
fn a_header_trace_is_complete_and_small() {
    let net = landspeed_testkit::or_skip!(NamespacePair::new());
    let directory = directory();
    let path = directory.path().join("x.parquet");
    let name = path.to_str().expect("plain");
    let tap = start(&net.left, &["-i", &net.link.a, "-w", name, "udp dst port 9"]);
    net.send(20_000, 50);
    assert!(!path.exists(), "it is not whole yet");
    let ended = stop(tap);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let bytes = std::fs::metadata(&path).expect("it is whole").len();
    let traced = landspeed().args(["trace", name, "--json", "-"]).output().expect("the program runs");
    let document: Value = serde_json::from_slice(&traced.stdout).expect("a document");
    assert_eq!(document["flows"][0]["forward"]["packets"], 20_000);
    assert_eq!(document["flows"][0]["forward"]["payload_bytes"], 20_000 * 50);
    assert!(bytes < 20_000 * 4, "{bytes} bytes");
    let left: Vec<_> = std::fs::read_dir(directory.path()).expect("it is there").collect();
    assert_eq!(left.len(), 1, "nothing is left beside it");
}
