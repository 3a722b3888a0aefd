//! Captures of the lab: the trace matches the counters of the kernels and links.

use std::ops::Range;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{count, landspeed};
use crate::trace::document;

/// A lab run with captures at both hosts.
pub struct LabRun {
    pub lab: Value,
    directory: TempDir,
}

/// A scenario of two hosts with an RTT of 20 ms at 1 Gb/s; `forward`: settings of the long link in the data
/// direction.
pub fn scenario(forward: &str, congestion: &str, host: &str) -> String {
    format!(
        r#"name = "truth"
time = "3s"
sample = "100ms"
[hosts]
qdisc = "fq"
congestion = "{congestion}"
{host}
[host.sender]
[host.receiver]
[switch.middle]
queue = {{ kind = "bfifo", limit = "16MB" }}
[[link]]
between = ["sender", "middle"]
rate = "1G"
[[link]]
between = ["middle", "receiver"]
rate = "1G"
delay = "10ms"
forward = {{ {forward} }}
[[flow]]
name = "tcp"
from = "sender"
to = "receiver"
"#
    )
}

/// Runs a scenario with a capture at each host; needs the lab's kernel. All checks of the lab pass.
pub fn run(scenario: &str, seed: u32) -> LabRun {
    let run = run_unchecked(scenario, seed);
    assert_eq!(run.lab["status"], "complete", "{:#}", run.lab["checks"]);
    run
}

/// Like [`run`], whichever checks of the lab fail.
pub fn run_unchecked(scenario: &str, seed: u32) -> LabRun {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("truth.toml");
    std::fs::write(&file, scenario).expect("room");
    let mut command = landspeed();
    command.args(["lab", "run", "--quiet", "--yes", "--json", "-", "--seed", &seed.to_string(), "--pcap-dir"]);
    command.arg(directory.path()).args(["--pcap", "sender:middle", "--pcap", "receiver:middle"]).arg(&file);
    let output = command.output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let lab: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {said}"));
    LabRun { lab, directory }
}

impl LabRun {
    pub fn file(&self, host: &str) -> String {
        let captures = self.lab["captures"].as_array().expect("a list");
        let files = captures.iter().filter_map(|capture| capture["file"].as_str());
        let name = files.map(Path::new).filter_map(Path::file_name).filter_map(|name| name.to_str());
        let name = name.into_iter().find(|name| name.starts_with(host)).expect("a capture of it").to_owned();
        self.directory.path().join(name).to_str().expect("plain").to_owned()
    }

    /// The data flow in the capture at a host.
    fn flow(&self, host: &str) -> Value {
        document(&[&self.file(host)])["flows"][0].clone()
    }

    fn retransmits(&self) -> u64 {
        self.lab["flows"][0]["retransmits"].as_u64().expect("a count")
    }

    /// Frames lost on the long link in the data direction.
    fn lost(&self) -> u64 {
        let links = self.lab["links"].as_array().expect("a list");
        let link = links.iter().find(|link| link["name"] == "middle->receiver").expect("the link");
        link["lost"].as_u64().unwrap_or_else(|| panic!("{link:#}"))
    }
}

macro_rules! lab_run {
    ($scenario:expr, $seed:expr) => {{
        landspeed_testkit::needs_lab_kernel!();
        run(&$scenario, $seed)
    }};
}

#[test]
fn link_losses_are_found_exactly_at_both_hosts() {
    for (congestion, seed) in [("cubic", 1), ("reno", 2), ("bbr", 3)] {
        let lab_run = lab_run!(scenario("loss = { every = 1500 }", congestion, ""), seed);
        let (sender, receiver) = (lab_run.flow("sender"), lab_run.flow("receiver"));
        assert!(lab_run.lost() > 3, "{congestion}: {} losses say nothing", lab_run.lost());
        assert_eq!(count(&sender["retransmits"]), lab_run.retransmits(), "{congestion}: the kernel's retransmits");
        let found = &receiver["forward"]["retransmits"];
        assert_eq!(count(&found["lost_before_tap"]), lab_run.lost(), "{congestion}: {found:#}");
        assert_eq!(sender["forward"]["unique_bytes"], receiver["forward"]["unique_bytes"], "{congestion}");
        for end in [&sender, &receiver] {
            assert_eq!((&end["forward"]["missing_bytes"], &end["forward"]["out_of_order"]), (&0.into(), &0.into()));
        }
    }
}

#[test]
fn rtt_matches_the_link_at_both_hosts() {
    let lab_run = lab_run!(scenario("loss = { every = 1500 }", "cubic", ""), 1);
    let (sender, receiver) = (lab_run.flow("sender"), lab_run.flow("receiver"));
    let least = count(&sender["forward"]["rtt"]["min_ns"]);
    assert!((20_000_000..20_100_000).contains(&least), "{least} ns over a path of 20 ms");
    assert!(count(&receiver["forward"]["rtt"]["min_ns"]) < 1_000_000);
    assert!(sender["forward"]["limits"].is_object());
    assert!(receiver["forward"]["limits"].is_null(), "a tap at the receiver does not know what is in flight");
    // Trains arrive at line rate: 1514 of the 1538 bytes that a frame takes on the wire at 1 Gb/s.
    let stations = document(&[&lab_run.file("receiver")])["stations"].clone();
    let rate = stations[0]["trains"]["rate_bps"].as_f64().expect("long trains");
    assert!((rate / 984.4e6 - 1.0).abs() < 0.05, "{rate} bit/s off a line of 1 Gb/s");
}

#[test]
fn reordering_is_not_loss() {
    let lab_run = lab_run!(scenario(r#"reorder = "1%""#, "cubic", ""), 1);
    let (sender, receiver) = (lab_run.flow("sender"), lab_run.flow("receiver"));
    assert_eq!(lab_run.lost(), 0);
    assert!(count(&receiver["forward"]["out_of_order"]) > 10, "{:#}", receiver["forward"]);
    assert_eq!(count(&receiver["forward"]["retransmits"]["lost_before_tap"]), 0, "{:#}", receiver["forward"]);
    assert_eq!(count(&sender["retransmits"]), lab_run.retransmits());
}

#[test]
fn two_taps_locate_every_loss() {
    let lab_run = lab_run!(scenario("loss = { every = 1500 }", "cubic", ""), 4);
    let both = document(&[&lab_run.file("sender"), &lab_run.file("receiver")]);
    let (flow, path) = (&both["flows"][0], &both["path"][0]);
    assert!(lab_run.lost() > 3, "{} losses say nothing", lab_run.lost());
    assert_eq!((count(&flow["lost_network"]), count(&flow["lost_receiver"])), (lab_run.lost(), 0));
    assert_eq!(count(&path["forward"]["lost_data"]) + count(&path["forward"]["lost_other"]), lab_run.lost());
    let back = &path["reverse"];
    assert_eq!((&back["lost_data"], &back["lost_other"], &back["appeared"]), (&0.into(), &0.into(), &0.into()));
    let captured: u64 =
        lab_run.lab["captures"].as_array().expect("a list").iter().map(|c| count(&c["packets"])).sum();
    assert_eq!(2 * count(&path["matched"]) + lab_run.lost(), captured, "no packet is left over");
    let round_trip = count(&path["round_trip_ns"]);
    assert!((20_000_000..20_100_000).contains(&round_trip), "{round_trip} ns over a path of 20 ms");
}

/// IP identification and sequence number of each frame of a capture with this source MAC address.
fn frames_from(file: &str, sender: [u8; 6]) -> Vec<(u16, u32)> {
    let bytes = std::fs::read(file).expect("a capture");
    let mut frames = Vec::new();
    let mut at = 24;
    while let Some(record) = bytes.get(at..at + 16) {
        let captured = u32::from_le_bytes(record[8..12].try_into().expect("four bytes")) as usize;
        let frame = &bytes[at + 16..at + 16 + captured];
        if frame[6..12] == sender {
            let tcp = 14 + usize::from(frame[14] & 15) * 4;
            let sequence = u32::from_be_bytes(frame[tcp + 4..tcp + 8].try_into().expect("four bytes"));
            frames.push((u16::from_be_bytes([frame[18], frame[19]]), sequence));
        }
        at += 16 + captured;
    }
    frames
}

#[test]
fn path_losses_and_receiver_drops_are_separated_per_packet() {
    // The link loses every 1499th frame, and the receiver drops every 997th frame that arrived, after its tap.
    let text = scenario("loss = { every = 1499 }", "cubic", "")
        .replace("[host.receiver]\n", "[host.receiver]\ndrops = { every = 997 }\n");
    let lab_run = lab_run!(text, 5);
    let dropped = count(&lab_run.lab["host_drops"][0]["dropped"]);
    let both = document(&[&lab_run.file("sender"), &lab_run.file("receiver")]);
    let flow = &both["flows"][0];
    assert!(lab_run.lost() > 5 && dropped > 8, "{} and {dropped} say nothing", lab_run.lost());
    assert_eq!((count(&flow["lost_network"]), count(&flow["lost_receiver"])), (lab_run.lost(), dropped));
    for (place, tap, every, so_many) in
        [("network", "sender", 1499, lab_run.lost()), ("receiver", "receiver", 997, dropped)]
    {
        // The tap before the loss captured every dropped frame, and consecutive drops are `every` frames apart.
        let frames = frames_from(&lab_run.file(tap), [2, 0x4c, 0, 1, 0, 0]);
        let losses = both["losses"].as_array().expect("a list").iter().filter(|loss| loss["place"] == place);
        let numbers: Vec<usize> = losses
            .map(|loss| {
                let wanted = (count(&loss["identification"]) as u16, count(&loss["sequence"]) as u32);
                let mut found = frames.iter().enumerate().filter(|(_, frame)| **frame == wanted);
                let (number, _) = found.next().expect("a frame of the capture");
                assert!(found.next().is_none(), "{wanted:?} is not one frame");
                number
            })
            .collect();
        assert_eq!(numbers.len() as u64, so_many);
        assert!(numbers.windows(2).all(|pair| pair[1] - pair[0] == every), "{place}: {numbers:?}");
    }
}

#[test]
fn only_acks_over_a_frame_clock_have_its_period() {
    landspeed_testkit::needs_lab_kernel!();
    assert_only_clock_found(&[4], &[("125us", 124_900..125_100)]);
}

#[test]
#[ignore = "long: nine transfers"]
fn only_acks_over_any_frame_clock_have_its_period() {
    landspeed_testkit::needs_lab_kernel!();
    assert_only_clock_found(&[1, 4], &[("125us", 124_900..125_100), ("250us", 249_800..250_200)]);
}

fn assert_only_clock_found(streams: &[u32], clocks: &[(&str, Range<u64>)]) {
    let found = |back: &str, streams: u32, seed: u32| -> Option<u64> {
        let text = scenario("loss = \"0.05%\"", "cubic", "")
            .replacen("rate = \"1G\"\n", &format!("rate = \"1G\"\nreverse = {{ {back} }}\n"), 1)
            .replace("to = \"receiver\"\n", &format!("to = \"receiver\"\nstreams = {streams}\n"));
        let lab_run = run(&text, seed);
        let stations = document(&[&lab_run.file("sender")])["stations"].clone();
        let mut periods = stations.as_array().expect("a list").iter().map(|it| &it["ack_spacing"]["period_ns"]);
        periods.find_map(Value::as_u64)
    };
    for streams in streams {
        assert_eq!(found("", *streams, 6), None, "{streams} streams without a framing");
    }
    // Losses may produce another period besides the clock's: a clock may be missed, but a false one
    // must not be reported.
    for (period, within) in clocks {
        let found = [6, 7, 8].map(|seed| found(&format!("frame-clock = \"{period}\""), 4, seed));
        let periods: Vec<u64> = found.iter().copied().flatten().collect();
        assert!(periods.len() >= 2 && periods.iter().all(|found| within.contains(found)), "{found:?} for {period}");
    }
    // Slotted, but without a frame clock.
    assert_eq!(found("slot = \"125us\"", 4, 6), None);
}

#[test]
fn ipv6_datagrams_are_matched_and_losses_found() {
    let text = scenario("loss = { every = 701 }", "cubic", "")
        .replace("to = \"receiver\"\n", "to = \"receiver\"\nprotocol = \"udp\"\nrate = \"100M\"\nipv6 = true\n");
    let lab_run = lab_run!(text, 7);
    let both = document(&[&lab_run.file("sender"), &lab_run.file("receiver")]);
    let (path, flow) = (&both["path"][0], &both["flows"][0]);
    assert!(lab_run.lost() > 10, "{} losses say nothing", lab_run.lost());
    assert!(flow["source"]["address"].as_str().expect("an address").contains(':'), "{}", flow["source"]);
    assert_eq!(count(&path["forward"]["lost_data"]), lab_run.lost(), "{:#}", path["forward"]);
    assert_eq!(count(&flow["lost_network"]), lab_run.lost());
    assert_eq!(
        (&path["forward"]["undetermined"], &path["forward"]["appeared"], &path["given_up"]),
        (&0.into(), &0.into(), &0.into())
    );
}
