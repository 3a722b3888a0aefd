//! Graphs of captures: reports, comparisons, and xplot files, with tcptrace as reference.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use landspeed_testkit::skip;
use landspeed_wire::LinkType;
use landspeed_wire::capture::write;
use serde_json::Value;

use crate::common::assert_valid;
use crate::trace::{document, trace};

const MSS: u32 = 1000;

/// A capture on Ethernet under construction.
struct Capture(Vec<u8>);

impl Capture {
    fn new() -> Self {
        let mut bytes = Vec::new();
        write::pcap_header(&mut bytes, LinkType::ETHERNET, 65_535);
        Self(bytes)
    }

    /// Adds a segment: from the client with data, or from the server with an ACK and optionally a SACK block.
    fn segment(&mut self, micros: u32, flags: u8, sequence: u32, ack: u32, length: u32, sack: Option<(u32, u32)>) {
        let client = length > 0 || flags == 0x02;
        let mut frame = vec![2, 0, 0, 0, 0, 1 + u8::from(client), 2, 0, 0, 0, 0, 2 - u8::from(client), 8, 0];
        let options: u32 = if sack.is_some() { 12 } else { 0 };
        let total = (40 + options + length) as u16;
        frame.extend([0x45, 0]);
        frame.extend(total.to_be_bytes());
        frame.extend([0, (micros % 251) as u8 + 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 2 - u8::from(client)]);
        frame.extend([10, 0, 0, 1 + u8::from(client)]);
        let ports: (u16, u16) = if client { (40_000, 5_001) } else { (5_001, 40_000) };
        frame.extend(ports.0.to_be_bytes());
        frame.extend(ports.1.to_be_bytes());
        frame.extend(sequence.to_be_bytes());
        frame.extend(ack.to_be_bytes());
        frame.extend([(5 + options as u8 / 4) << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        if let Some((from, to)) = sack {
            frame.extend([1, 1, 5, 10]);
            frame.extend(from.to_be_bytes());
            frame.extend(to.to_be_bytes());
        }
        let time_ns = 1_700_000_000_000_000_000 + u64::from(micros) * 1_000;
        write::pcap_record(&mut self.0, time_ns, &frame, 14 + u32::from(total));
    }

    /// A transfer whose initial sequence number is close to the wrap, with a loss every `lose` segments.
    fn transfer(segments: u32, lose: u32) -> Self {
        let mut capture = Self::new();
        let first = u32::MAX - 10_000;
        let number = |segment: u32| first.wrapping_add(1 + segment * MSS);
        capture.segment(0, 0x02, first, 0, 0, None);
        capture.segment(20_000, 0x12, 99, first.wrapping_add(1), 0, None);
        for segment in 0..segments {
            let now = 30_000 + segment * 1_000;
            capture.segment(now, 0x10, number(segment), 100, MSS, None);
            let lost = segment / lose * lose + lose / 2;
            let since = segment.wrapping_sub(lost);
            match since {
                // Lost after the tap: no ACK.
                0 => {}
                1..=5 => {
                    let sack = (number(lost + 1), number(segment + 1));
                    capture.segment(now + 400, 0x10, 100, number(lost), 0, Some(sack));
                    if since == 4 {
                        capture.segment(now + 500, 0x10, number(lost), 100, MSS, None);
                    }
                }
                _ => capture.segment(now + 400, 0x10, 100, number(segment + 1), 0, None),
            }
        }
        capture
    }

    fn write(&self, directory: &Path, name: &str) -> String {
        let path = directory.join(name);
        fs::write(&path, &self.0).expect("room");
        path.to_str().expect("plain").to_owned()
    }
}

/// The document embedded in a report page.
fn embedded(page: &Path) -> Value {
    let page = fs::read_to_string(page).expect("a page");
    let (_, after) = page.split_once("<script type=\"application/json\" id=\"document\">").expect("a document");
    serde_json::from_str(after.split_once("</script>").expect("an end").0).expect("JSON")
}

#[test]
fn series_are_in_the_document_only_on_request() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = Capture::transfer(400, 100).write(directory.path(), "a.pcap");
    let page = directory.path().join("a.html");
    let report = page.to_str().expect("plain");
    assert!(
        document(&[&file, "--report", report])["graphs"].is_object(),
        "the series of the graphs are in the document"
    );
    assert!(document(&[&file]).get("graphs").is_none());
    let series = &embedded(&page)["graphs"]["series"][0];
    assert_eq!(series["packets"], series["kept"]);
    let found = document(&[&file, "--series"]);
    assert_eq!(found["graphs"]["series"][0]["direction"], "forward");
    assert_eq!(found["flows"][0]["retransmits"], 4);
    assert_valid("trace", &found);
}

#[test]
fn two_captures_are_compared_side_by_side() {
    let directory = tempfile::tempdir().expect("a directory");
    let a = Capture::transfer(400, 100).write(directory.path(), "a.pcap");
    let b = Capture::transfer(400, 50).write(directory.path(), "b.pcap");
    let page = directory.path().join("both.html");
    let both = document(&[&a, "--against", &b, "--report", page.to_str().expect("plain")]);
    assert_valid("tracecomparison", &both);
    let figures = both["figures"].as_array().expect("a list");
    let retransmits = figures.iter().find(|figure| figure["name"] == "retransmits").expect("this figure");
    assert_eq!((retransmits["a"].as_f64(), retransmits["b"].as_f64()), (Some(4.0), Some(8.0)));
    assert_eq!(embedded(&page)["b"]["flows"][0]["retransmits"], 8);
    let said = String::from_utf8(trace(&[&a, "--against", &b]).stdout).expect("text");
    assert!(said.lines().any(|line| line.contains("retransmits ") && line.trim_end().ends_with("2.000")), "{said}");
}

#[test]
fn errors_of_graph_options_name_the_cause() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = Capture::transfer(10, 100).write(directory.path(), "a.pcap");
    for (arguments, words) in [
        (vec!["--xplot", "x", "-"], "twice"),
        (vec![&file, "--detail", "2s..1s"], "not after the start"),
        (vec![&file, "--detail", "soon"], "START..END"),
        (vec![&file, &file, "--against", &file], "one capture"),
        (vec![&file, "--report", "/nonexistent/a.html"], "/nonexistent"),
    ] {
        let output = trace(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

/// Counts the marks of a graph by command, colour of lines, text, time in microseconds and values.
fn marks(file: &Path) -> BTreeMap<String, u32> {
    let text = fs::read_to_string(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    let micros = |time: &str| time.split_once('.').map(|(whole, rest)| format!("{whole}.{}", &rest[..6]));
    let (mut color, mut marks) = ("", BTreeMap::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split(' ').collect();
        let mark = match words.as_slice() {
            ["title" | "xlabel" | "ylabel"] => {
                lines.next();
                continue;
            }
            [alone] => {
                color = alone;
                continue;
            }
            ["line", from, low, to, high] => {
                format!("line {color} {:?} {low} {:?} {high}", micros(from), micros(to))
            }
            ["atext", time, y] => format!("{} {:?} {y}", lines.next().unwrap_or_default(), micros(time)),
            [what, time, y, ..] => format!("{what} {:?} {y}", micros(time)),
            _ => continue,
        };
        *marks.entry(mark).or_default() += 1;
    }
    marks
}

#[test]
fn xplot_graphs_have_tcptraces_marks() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = Capture::transfer(2_000, 100).write(directory.path(), "a.pcap");
    let (ours, theirs) = (directory.path().join("ours"), directory.path().join("theirs"));
    assert!(trace(&[&file, "--xplot", ours.to_str().expect("plain")]).status.success());
    let names: Vec<String> = ["a2b", "b2a"]
        .iter()
        .flat_map(|way| ["tsg", "owin", "rtt", "tput"].map(|kind| format!("{way}_{kind}.xpl")))
        .collect();
    assert!(names.iter().all(|name| ours.join(name).is_file()));
    fs::create_dir(&theirs).expect("room");
    let judge = Command::new("tcptrace").args(["-S", "-n", "-zy", &file]).current_dir(&theirs).output();
    if !judge.is_ok_and(|output| output.status.success()) {
        skip!("tcptrace is not installed");
    }
    // The sequence numbers wrap after ten segments, which tcptrace does not handle: compare only the marks
    // before.
    let before =
        |mark: &String| mark.split(' ').filter_map(|word| word.parse::<i64>().ok()).all(|y| (0..10_000).contains(&y));
    let (ours, theirs) = (marks(&ours.join("a2b_tsg.xpl")), marks(&theirs.join("a2b_tsg.xpl")));
    let kept = |all: &BTreeMap<String, u32>| -> BTreeMap<String, u32> {
        // The first ACK is a dot, which tcptrace places differently.
        let compared = |mark: &String| before(mark) && !mark.starts_with("dot ");
        all.iter().filter(|(mark, _)| compared(mark)).map(|(mark, &count)| (mark.clone(), count)).collect()
    };
    assert!(kept(&theirs).len() > 30, "there is something to compare");
    assert_eq!(kept(&ours), kept(&theirs));
    let count = |all: &BTreeMap<String, u32>, what: &str| -> u32 {
        all.iter().filter(|(mark, _)| mark.split(' ').next() == Some(what)).map(|(_, count)| count).sum()
    };
    for what in ["R", "S", "3", "darrow", "uarrow", "htick"] {
        assert_eq!(count(&ours, what), count(&theirs, what), "{what}");
    }
    assert_eq!(count(&ours, "R"), 20);
}
