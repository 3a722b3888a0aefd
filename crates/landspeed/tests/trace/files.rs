//! Capture files: valid, truncated, corrupt, and of other formats.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use landspeed_wire::LinkType;
use landspeed_wire::capture::write;

use crate::common::{assert_valid, landspeed};
use crate::trace::{document, trace};

/// A capture of the same UDP datagram `frames` times, one microsecond apart.
fn capture(frames: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    write::pcap_header(&mut bytes, LinkType::RAW, 65_535);
    let mut packet =
        vec![0x45, 0, 0, 128, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 9, 0, 108, 0, 0];
    packet.resize(60, 0);
    for number in 0..frames {
        write::pcap_record(&mut bytes, 1_000_000_000 + u64::from(number) * 1_000, &packet, 128);
    }
    bytes
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> String {
    let path = directory.join(name);
    std::fs::write(&path, bytes).expect("room");
    path.to_str().expect("plain").to_owned()
}

fn failure(arguments: &[&str]) -> String {
    let output = trace(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn a_document_matches_its_schema() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = write(directory.path(), "a.pcap", &capture(1000));
    let document = document(&[&file]);
    assert_valid("trace", &document);
    assert_eq!(document["schema"], "landspeed.trace/2");
    assert_eq!(document["capture"]["frames"], 1000);
    assert_eq!(document["flows"][0]["forward"]["payload_bytes"], 100_000);
    assert_eq!(document["stations"][0]["gaps"][0]["histogram"][0]["count"], 999);
    let bins: u64 =
        document["bins"]["bytes"].as_array().expect("bins").iter().filter_map(serde_json::Value::as_u64).sum();
    assert_eq!(bins, 128_000, "the bins add up to the whole");
}

#[test]
fn compression_and_pipes_give_the_same_document() {
    let directory = tempfile::tempdir().expect("a directory");
    let bytes = capture(5000);
    let plain = write(directory.path(), "plain.pcap", &bytes);
    let mut same = vec![document(&[&plain])];
    for tool in ["gzip", "zstd"] {
        let made = std::process::Command::new(tool).args(["-q", "-k", "-f", &plain]).status();
        if made.is_ok_and(|status| status.success()) {
            let suffix = if tool == "gzip" { "gz" } else { "zst" };
            same.push(document(&[&format!("{plain}.{suffix}")]));
        } else {
            println!("SKIPPED {tool}: not installed");
        }
    }
    let mut child = landspeed();
    let mut child = child
        .args(["trace", "-", "--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut input = child.stdin.take().expect("a pipe");
    let feeder = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().expect("it ends");
    feeder.join().expect("no panic").expect("it reads all");
    same.push(serde_json::from_slice(&output.stdout).expect("a document"));
    for other in &same {
        assert_eq!(other["flows"], same[0]["flows"]);
        assert_eq!(other["stations"], same[0]["stations"]);
    }
    assert!(same.len() > 2, "gzip is everywhere");
}

#[test]
fn a_truncated_capture_is_read_to_its_end_and_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let bytes = capture(100);
    let file = write(directory.path(), "cut.pcap", &bytes[..bytes.len() - 10]);
    let output = trace(&[&file]);
    assert_eq!(output.status.code(), Some(1), "something to look at, and no failure");
    let text = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("in the middle of a record"), "{text}");
    assert_eq!(document(&[&file])["capture"]["frames"], 99);
    // An impossible length in the 50th record.
    let mut damaged = bytes;
    damaged[24 + 49 * 76 + 8..][..4].fill(0xff);
    let file = write(directory.path(), "damaged.pcap", &damaged);
    let document = document(&[&file]);
    assert_eq!(document["capture"]["frames"], 49);
    assert!(document["capture"]["ended_early"].as_str().expect("why").contains(&format!("byte {}", 24 + 49 * 76)));
}

#[test]
fn a_file_that_is_not_a_capture_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let empty = write(directory.path(), "empty.pcap", b"");
    assert!(failure(&[&empty]).contains("it is empty"));
    let text = write(directory.path(), "notes.txt", b"GET / HTTP/1.1\r\n");
    assert!(failure(&[&text]).contains("neither pcap nor pcapng"));
    let short = write(directory.path(), "short.pcap", b"\xd4\xc3\xb2");
    assert!(failure(&[&short]).contains("not a capture"));
    let gzip = write(directory.path(), "broken.gz", b"\x1f\x8b not gzip at all");
    assert!(failure(&[&gzip]).contains("broken.gz"));
    assert!(failure(&[directory.path().to_str().expect("plain")]).contains("directory"));
    assert!(failure(&["/nonexistent.pcap"]).contains("/nonexistent.pcap"));
}

#[test]
fn a_capture_without_frames_is_analysed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = write(directory.path(), "none.pcap", &capture(0));
    let document = document(&[&file]);
    assert_eq!((&document["capture"]["frames"], &document["capture"]["duration_ns"]), (&0.into(), &0.into()));
    assert_eq!(document["flows"].as_array().map(Vec::len), Some(0));
}

/// One flow per source port.
#[test]
fn excess_flows_are_aggregated_with_a_warning() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut bytes = capture(3000);
    for number in 0..3000_usize {
        let port = 24 + number * 76 + 16 + 20;
        bytes[port..port + 2].copy_from_slice(&(number as u16 + 1000).to_be_bytes());
    }
    let file = write(directory.path(), "many.pcap", &bytes);
    let document = document(&[&file, "--flows", "100", "--top", "10"]);
    assert_eq!(document["capture"]["evicted_flows"], 2900);
    assert_eq!(document["flows"].as_array().map(Vec::len), Some(10));
    assert_eq!(document["unlisted"]["flows"], 2990);
    assert_eq!(document["unlisted"]["payload_bytes"], 299_000);
    let codes: Vec<&str> =
        document["warnings"].as_array().expect("a list").iter().filter_map(|w| w["code"].as_str()).collect();
    assert!(codes.contains(&"evicted-flows"), "{codes:?}");
}
