//! Comparison with the output of iperf3 3.12. A test cannot print both text and JSON, so the line formats of
//! two runs with the same options are compared, without the figures.

use super::*;

fn fixture(name: &str) -> String {
    let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/iperf3/3.12");
    std::fs::read_to_string(place.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Replaces every number by one digit and removes unit prefixes and padding.
fn normalize(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| {
            // The cookie is random.
            if line.contains("Cookie:") {
                return "Cookie".to_owned();
            }
            let mut out = String::new();
            let mut chars = line.chars().peekable();
            while let Some(char) = chars.next() {
                if char.is_ascii_digit() {
                    while chars.peek().is_some_and(|next| next.is_ascii_digit() || *next == '.') {
                        chars.next();
                    }
                    out.push('9');
                } else if "KMGT".contains(char) && chars.clone().collect::<String>().starts_with(['b', 'B']) {
                    // Drop the prefix: MBytes and GBytes have the same width.
                } else {
                    out.push(char);
                }
            }
            // The padding depends on the number.
            out.split_whitespace().collect::<Vec<_>>().join(" ")
        })
        .collect()
}

/// Trailing spaces of each line: scripts may cut by columns.
fn trailing_spaces(text: &str) -> Vec<usize> {
    let streams = text.lines().filter(|line| line.starts_with('[') && line.contains(" sec "));
    streams.map(|line| line.len() - line.trim_end().len()).collect()
}

#[test]
fn text_output_matches_iperf3_for_every_test_kind() {
    for name in [
        "tcp",
        "tcp-reverse",
        "tcp-parallel",
        "tcp-bidir",
        "tcp-bidir-parallel",
        "tcp-omit",
        "tcp-title",
        "udp",
        "udp-reverse",
        "udp-parallel",
        "udp-bidir",
    ] {
        let document: Document = serde_json::from_str(&fixture(&format!("{name}.json"))).expect("a document");
        let ours = client(&document, Style::default());
        let theirs = fixture(&format!("{name}.txt"));
        assert_eq!(normalize(&ours), normalize(&theirs), "{name}:\n{ours}\n{theirs}");
        assert_eq!(trailing_spaces(&ours), trailing_spaces(&theirs), "{name}");
    }
}

#[test]
fn a_receiver_of_unknown_losses_has_its_bytes() {
    let mut document: Document = serde_json::from_str(&fixture("udp.json")).expect("a document");
    let end = &mut document.end;
    for row in [end.streams[0].udp.as_mut(), end.sum_received.as_mut()].into_iter().flatten() {
        (row.lost_packets, row.lost_percent, row.packets) = (None, None, None);
    }
    let text = client(&document, Style::default());
    let totals: Vec<&str> = text.lines().filter(|line| line.ends_with("er") && line.contains(" sec ")).collect();
    let [sender, receiver] = totals[..] else { panic!("{text}") };
    assert!(sender.contains("lost: unknown  sender"), "{text}");
    assert!(receiver.starts_with("[SUM]") && receiver.contains("lost: unknown  receiver"), "{text}");
}

#[test]
fn a_download_whose_sender_is_silent_has_one_total() {
    for name in ["tcp-reverse", "udp-reverse"] {
        let mut document: Document = serde_json::from_str(&fixture(&format!("{name}.json"))).expect("a document");
        let end = &mut document.end;
        end.sum_sent = None;
        end.streams.iter_mut().for_each(|stream| (stream.sender, stream.udp) = (None, None));
        let text = client(&document, Style::default());
        assert_eq!(text.lines().filter(|line| line.ends_with("receiver")).count(), 1, "{name}: {text}");
    }
}

#[test]
fn text_columns_match_iperf3() {
    let document: Document = serde_json::from_str(&fixture("tcp.json")).expect("a document");
    let ours = client(&document, Style::default());
    let theirs = fixture("tcp.txt");
    for word in ["sec ", "Bytes ", "bits/sec", "sender", "receiver"] {
        let places = |text: &str| -> Vec<_> {
            let lines = text.lines().filter(|line| line.starts_with("[  5]") && line.contains('-'));
            lines.map(|line| line.find(word)).collect()
        };
        assert_eq!(places(&ours), places(&theirs), "{word}: {ours}");
    }
}

#[test]
fn verbose_output_matches_iperf3() {
    for name in ["tcp", "udp"] {
        let document: Document = serde_json::from_str(&fixture(&format!("{name}.json"))).expect("a document");
        let ours = client(&document, Style { verbose: true, ..Style::default() });
        let theirs = fixture(&format!("{name}.verbose.txt"));
        // The document contains neither the default UDP block size nor the MSS of the control connection of a UDP
        // test.
        let unknown = |line: &String| line.contains("UDP block size") || (name == "udp" && line.contains("MSS"));
        let lines = |text: &str| normalize(text).into_iter().filter(|line| !unknown(line)).collect::<Vec<_>>();
        assert_eq!(lines(&ours), lines(&theirs), "{name}:\n{ours}\n{theirs}");
    }
}

#[test]
fn percentages_have_two_significant_digits() {
    for (value, text) in [
        (0.0, "0"),
        (6.578_947, "6.6"),
        (100.0, "1e+02"),
        (12.4, "12"),
        (0.123, "0.12"),
        (0.000_05, "5e-05"),
        (99.7, "1e+02"),
    ] {
        assert_eq!(two_digits(value), text);
    }
}
