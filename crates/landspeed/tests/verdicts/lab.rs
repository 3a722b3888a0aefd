//! Verdicts on a bottleneck of 100 Mb/s and 20 ms between two 1 Gb/s hosts, with one provoked limit each.

use std::fmt::Write as _;
use std::process::Command;

use serde_json::Value;

const BOTH: &[&str] = &["cubic", "bbr"];
const LOSS_BASED: &[&str] = &["cubic", "reno"];
const BBR: &[&str] = &["bbr"];

/// A provoked limit.
#[derive(Clone, Copy)]
struct Case {
    what: &'static str,
    /// Accepted causes.
    causes: &'static [&'static str],
    confidence: &'static str,
    controls: &'static [&'static str],
    /// Additional keys of the hosts, the link and the flow.
    sender: &'static str,
    receiver: &'static str,
    link: &'static str,
    flow: &'static str,
    /// Queue limit of the bottleneck.
    buffer: &'static str,
}

/// A flow that only the path limits.
const PLAIN: Case = Case {
    what: "",
    causes: &["network-path"],
    confidence: "medium",
    controls: BOTH,
    sender: "",
    receiver: "",
    link: "",
    flow: "",
    buffer: "12500KB",
};

const CASES: &[Case] = &[
    Case { what: "a queue of 50 BDP that only stands", ..PLAIN },
    Case {
        what: "a small receive buffer",
        causes: &["receiver-window"],
        confidence: "high",
        receiver: "sysctl = { \"net.ipv4.tcp_rmem\" = \"4096 65536 131072\" }",
        ..PLAIN
    },
    Case {
        what: "a small send buffer",
        causes: &["send-buffer"],
        confidence: "high",
        sender: "sysctl = { \"net.ipv4.tcp_wmem\" = \"4096 65536 65536\" }",
        ..PLAIN
    },
    Case {
        what: "fixed small socket buffers at both ends",
        causes: &["receiver-window", "send-buffer"],
        flow: "window = \"64K\"",
        ..PLAIN
    },
    Case {
        what: "a slow reader",
        causes: &["slow-reader"],
        confidence: "high",
        flow: "read-rate = \"40M\"",
        ..PLAIN
    },
    Case {
        what: "a rate asked for and reached",
        causes: &["application"],
        confidence: "high",
        flow: "rate = \"40M\"",
        ..PLAIN
    },
    Case { what: "a paced rate", causes: &["pacing"], confidence: "high", flow: "pace = \"40M\"", ..PLAIN },
    Case {
        what: "a queue of 2 BDP that overflows",
        causes: &["network-congestion"],
        controls: &["cubic"],
        flow: "time = \"8s\"",
        buffer: "500KB",
        ..PLAIN
    },
    Case {
        what: "a queue of 2 BDP",
        causes: &["network-path", "network-congestion"],
        controls: BBR,
        buffer: "500KB",
        ..PLAIN
    },
    Case {
        what: "random loss",
        causes: &["network-loss"],
        confidence: "high",
        controls: LOSS_BASED,
        link: "forward = { loss = \"1%\" }",
        ..PLAIN
    },
    Case { what: "random loss that BBR ignores", controls: BBR, link: "forward = { loss = \"1%\" }", ..PLAIN },
    Case {
        what: "requests one after the other over TCP",
        causes: &["round-trip"],
        flow: "protocol = \"tcp-rr\"",
        controls: BBR,
        ..PLAIN
    },
    Case {
        what: "requests one after the other over UDP",
        causes: &["round-trip"],
        flow: "protocol = \"udp-rr\"",
        controls: BBR,
        ..PLAIN
    },
    Case {
        what: "UDP at a rate that is delivered whole",
        causes: &["application"],
        flow: "protocol = \"udp\"\nrate = \"50M\"",
        controls: BBR,
        ..PLAIN
    },
    Case {
        what: "UDP that the path loses",
        causes: &["network-loss"],
        confidence: "high",
        link: "forward = { loss = \"5%\" }",
        flow: "protocol = \"udp\"\nrate = \"20M\"",
        controls: BBR,
        ..PLAIN
    },
];

impl Case {
    fn scenario(&self, control: &str) -> String {
        let Self { what, sender, receiver, link, flow, buffer, .. } = self;
        let time = if flow.contains("time") { "" } else { "time = \"4s\"" };
        format!(
            "name = \"{what}\"
sample = \"20ms\"
[hosts]
congestion = \"{control}\"
qdisc = \"fq_codel\"
[host.sender]
{sender}
[host.receiver]
{receiver}
[switch.west]
queue = {{ kind = \"bfifo\", limit = \"{buffer}\" }}
[switch.east]
[[link]]
between = [\"sender\", \"west\"]
rate = \"1G\"
[[link]]
between = [\"west\", \"east\"]
rate = \"100M\"
delay = \"10ms\"
{link}
[[link]]
between = [\"east\", \"receiver\"]
rate = \"1G\"
[[flow]]
name = \"main\"
from = \"sender\"
to = \"receiver\"
omit = \"1s\"
{time}
{flow}
"
        )
    }

    /// Returns what is wrong with the verdict, or `None`.
    fn wrong(&self, control: &str) -> Option<String> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("scenario.toml");
        std::fs::write(&path, self.scenario(control)).expect("written");
        let ended = Command::new(crate::common::chosen_program())
            .args(["lab", "run", "--quiet", "--yes", "--json", "-"])
            .arg(&path)
            .output()
            .expect("the program runs");
        let document: Value = serde_json::from_slice(&ended.stdout)
            .unwrap_or_else(|why| panic!("{}: {why}: {}", self.what, String::from_utf8_lossy(&ended.stderr)));
        let run = &document["flows"][0]["run"];
        let verdict = &run["verdict"];
        let (cause, confidence) = (verdict["cause"].as_str()?, verdict["confidence"].as_str()?);
        println!("{}, {control}: {cause}, {confidence}: {}", self.what, verdict["summary"]);
        assert_eq!(run["conservation"]["holds"], true, "{}: {:#}", self.what, run["conservation"]);
        let sure = confidence == "high" || (confidence == "medium" && self.confidence == "medium");
        (!self.causes.contains(&cause) || !sure).then(|| {
            format!(
                "{}, {control}: {cause} ({confidence}), not {} ({} at least)",
                self.what, self.causes[0], self.confidence
            )
        })
    }
}

/// Returns what is wrong in these cases with these congestion controls, one per line.
fn wrong<'a>(cases: impl Iterator<Item = (&'a Case, &'a str)>) -> String {
    let mut wrong = String::new();
    for why in cases.filter_map(|(case, control)| case.wrong(control)) {
        let _ = writeln!(wrong, "{why}");
    }
    wrong
}

#[test]
fn the_limit_of_a_flow_is_named() {
    landspeed_testkit::needs_lab_kernel!();
    // Each case once, with the congestion controls in turn.
    let turns = CASES.iter().enumerate().map(|(number, case)| (case, case.controls[number % case.controls.len()]));
    let found = wrong(turns);
    assert!(found.is_empty(), "{found}");
}

#[test]
#[ignore = "long: each case with each congestion control"]
fn the_limit_of_a_flow_is_named_with_each_congestion_control() {
    landspeed_testkit::needs_lab_kernel!();
    let all = CASES.iter().flat_map(|case| case.controls.iter().map(move |control| (case, *control)));
    let found = wrong(all);
    assert!(found.is_empty(), "{found}");
}
