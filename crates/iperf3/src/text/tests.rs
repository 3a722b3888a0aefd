//! Against what iperf3 3.12 printed. A test cannot print both text and JSON: the shapes of the lines are compared, of runs
//! with the same options, figures put aside.

use super::*;

fn fixture(name: &str) -> String {
    let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/iperf3/3.12");
    std::fs::read_to_string(place.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every figure becomes one sign as wide as its format says, and units lose their prefix.
fn shape(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| {
            // The identifier is random; what a server printed is not ours.
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
                    // MBytes and GBytes are as wide.
                } else {
                    out.push(char);
                }
            }
            // Numbers are padded to columns: how far depends on the number.
            out.split_whitespace().collect::<Vec<_>>().join(" ")
        })
        .collect()
}

/// The line's tail counts: scripts cut by columns.
fn trailing(text: &str) -> Vec<usize> {
    let streams = text.lines().filter(|line| line.starts_with('[') && line.contains(" sec "));
    streams.map(|line| line.len() - line.trim_end().len()).collect()
}

#[test]
fn each_kind_of_test_is_printed_as_iperf3_prints_it() {
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
        assert_eq!(shape(&ours), shape(&theirs), "{name}:\n{ours}\n{theirs}");
        assert_eq!(trailing(&ours), trailing(&theirs), "{name}");
    }
}

#[test]
fn columns_stand_where_iperf3_has_them() {
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
fn verbose_says_what_was_agreed_and_what_it_cost() {
    for name in ["tcp", "udp"] {
        let document: Document = serde_json::from_str(&fixture(&format!("{name}.json"))).expect("a document");
        let ours = client(&document, Style { verbose: true, ..Style::default() });
        let theirs = fixture(&format!("{name}.verbose.txt"));
        // A default being chosen, and the MSS of a connection that UDP does not use: the document knows neither.
        let unknown = |line: &String| line.contains("UDP block size") || (name == "udp" && line.contains("MSS"));
        let lines = |text: &str| shape(text).into_iter().filter(|line| !unknown(line)).collect::<Vec<_>>();
        assert_eq!(lines(&ours), lines(&theirs), "{name}:\n{ours}\n{theirs}");
    }
}

#[test]
fn percentages_have_two_digits() {
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
