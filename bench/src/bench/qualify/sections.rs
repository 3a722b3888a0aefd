//! Random sections of long paths, and the scenarios that test them.
//!
//! ```text
//!            ┌── section ───┐
//! s ── nic ── a ── first ── b ── second ── c ── fast ── near
//!                                          └─── fast, delay ── far
//! ```
//!
//! `qualify` runs from `s` to `near`, TCP from `s` to `far`: the long path contains the section. A host `x` at `a` can send to `y` at `c`.

use std::fmt::Write as _;

use landspeed_model::QualifyCongestion;
use landspeed_qualify::{Suite, SuiteOptions, Target};
use landspeed_units::{BitRate, Nanos};

use crate::bench::verdicts::Draw;

/// Targets: data rate, Mb/s, and RTT, ms. The windows are 35 to 56 packets, and 259 and 518 over 150 ms: a suite sends some multiples of the
/// run length, and a paced packet costs about 50 µs of real time in the lab.
pub const TARGETS: [(u32, u32); 6] = [(30, 20), (12, 40), (40, 10), (8, 80), (20, 150), (40, 150)];
/// RTT from which a window is large, ms: a flow starts for three times as long, and Reno does not run. Its window would grow for longer than
/// the flows last, and its tests would take minutes.
const LONG_RTT_MS: u32 = 150;
/// Congestion controls of the long path, each with the model of `--for`.
pub const CONGESTION: [(&str, QualifyCongestion); 3] =
    [("cubic", QualifyCongestion::Cubic), ("bbr", QualifyCongestion::Bbr), ("reno", QualifyCongestion::Reno)];
/// What distinguishes the sections. Each is drawn equally often.
pub const FAMILIES: [&str; 13] = [
    "buffer",
    "slow-link",
    "random-loss",
    "burst-loss",
    "policer",
    "policer-behind-buffer",
    "aqm",
    "ecn",
    "two-queues",
    "cross-traffic",
    "last-link",
    "host-drops",
    "clean",
];

/// MTU of every link, bytes.
const MTU: u32 = 1500;
/// Rate of a link that carries 1 bit/s of TCP payload at this MTU, bits/s, with the lab's 24 bytes of framing.
const WIRE_PER_PAYLOAD: f64 = 1538.0 / 1448.0;
/// Share of the framed bytes of a full packet that a policer counts.
const POLICED_SHARE: f64 = 1514.0 / 1538.0;
/// One-way delay of the section, µs.
const SECTION_DELAY_US: u64 = 100;
/// Maximum time that a test of the section sends, seconds.
const TEST_S: u64 = 60;
/// Virtual time between two streams of a suite, in which cross traffic must not end, seconds.
const BETWEEN_STREAMS_S: f64 = 2.0;
/// Payload of a UDP packet of the MTU, bytes.
const FULL_PAYLOAD: u32 = MTU - 28;
/// Traffic of others over a section with bursts of losses: packets per second, and their payload, bytes.
const BACKGROUND_PPS: f64 = 100.0;
const BACKGROUND_PAYLOAD: u32 = 64;
/// Streams of a suite at most: of its tests, and of the search for the buffer.
const STREAMS: f64 = 60.0;

/// Times of the TCP flows over the long path.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    /// Flows with each congestion control.
    pub repeats: u32,
    /// Start of a flow that does not count, seconds.
    pub omit_s: u32,
    /// Steady phase that counts, seconds.
    pub steady_s: u32,
}

/// UDP traffic of other hosts over the section.
#[derive(Debug, Clone, Copy)]
struct CrossTraffic {
    /// Mean and peak rate, bits/s.
    mean_bps: f64,
    peak_bps: f64,
    /// Packets of a burst, and their payload, bytes.
    burst: u32,
    payload_bytes: u32,
}

/// A random section with a target.
#[derive(Debug, Clone)]
pub struct Section {
    /// Name of its files.
    pub name: String,
    /// Number of the section; odd ones are held out.
    pub number: usize,
    /// Kind of section, one of thirteen.
    pub family: &'static str,
    /// Target data rate, Mb/s, and RTT, ms.
    pub target: (u32, u32),
    /// Description in the tables: rate, RTT, queue and fault.
    pub what: String,
    seed: u64,
    host_qdisc: &'static str,
    nic_bps: f64,
    /// Rate of the section's two links, bits/s.
    rates: [f64; 2],
    /// Queues before them, as in a scenario.
    queues: [String; 2],
    /// Lines of the second link.
    second: String,
    /// Lines for all hosts.
    hosts: String,
    /// Lines of the host `near`.
    near: String,
    /// Lines of the flow that tests the section.
    flow: String,
    cross: Option<CrossTraffic>,
}

impl Section {
    /// Draws section `number` of a seed.
    pub fn draw(seed: u64, number: usize) -> Self {
        let family = FAMILIES[number % FAMILIES.len()];
        let name = format!("{seed}-{number:03}-{family}");
        let mut draw = Draw::new(seed, &name);
        let target = TARGETS[(number / FAMILIES.len()) % TARGETS.len()];
        let (mbps, rtt_ms) = target;
        let payload_bps = f64::from(mbps) * 1e6;
        let bdp_bytes = payload_bps / 8.0 * f64::from(rtt_ms) / 1e3;
        let wire = |headroom: f64| payload_bps * WIRE_PER_PAYLOAD * headroom;
        let log = |draw: &mut Draw, low: f64, high: f64| (draw.within(low.ln(), high.ln())).exp();
        let buffer =
            |bytes: f64| format!("{{ kind = \"bfifo\", limit = \"{}B\" }}", bytes.max(3100.0).round() as u64);
        // An uncongested link: four times the target, with a deep buffer.
        let deep = buffer(4.0 * bdp_bytes);
        let mut section = Self {
            number,
            family,
            target,
            what: String::new(),
            seed: draw.bits() % 1_000_000 + 1,
            host_qdisc: draw.pick(&["fq", "fq_codel"]),
            nic_bps: wire(draw.pick(&[4.0, 10.0])),
            rates: [wire(draw.within(1.2, 3.0)), wire(4.0)],
            queues: [deep.clone(), deep],
            second: String::new(),
            hosts: String::new(),
            near: String::new(),
            flow: String::new(),
            cross: None,
            name,
        };
        let cubic = target_of(target, QualifyCongestion::Cubic);
        let run_length = cubic.derive().map_or(1e6, |derived| derived.run_length_packets as f64);
        match family {
            "buffer" => {
                let share = log(&mut draw, 0.01, 2.0);
                section.queues[0] = buffer(share * bdp_bytes);
                section.what = format!("buffer {share:.3} BDP");
            }
            "slow-link" => {
                // Between 0.9 and 1 of the target, a link is too slow, and TCP reaches it by the definition of the truth.
                let drawn = draw.within(0.7, 1.1);
                let headroom = if drawn < 0.9 { drawn } else { drawn + 0.1 };
                section.rates[0] = wire(headroom);
                section.what = format!("link {headroom:.2} of the target");
            }
            "random-loss" => {
                let loss = log(&mut draw, 0.05, 30.0) / run_length;
                section.second = format!("loss = \"{:.7}%\"", loss * 100.0);
                section.what = format!("random loss, one in {:.0}", 1.0 / loss);
            }
            "burst-loss" => {
                let (events, length) = (log(&mut draw, 0.05, 30.0) / run_length, draw.within(2.0, 30.0));
                section.second = format!(
                    "loss = {{ gilbert-elliott = {{ p = \"{:.7}%\", r = \"{:.3}%\" }} }}",
                    events * 100.0,
                    100.0 / length
                );
                // A burst lasts for a number of packets. Between two connections only those of others end it.
                let mean_bps = BACKGROUND_PPS * f64::from(BACKGROUND_PAYLOAD) * 8.0;
                section.cross =
                    Some(CrossTraffic { mean_bps, peak_bps: wire(4.0), burst: 1, payload_bytes: BACKGROUND_PAYLOAD });
                section.what = format!("bursts of {length:.0} losses, one in {:.0}", 1.0 / events);
            }
            "policer" | "policer-behind-buffer" => {
                let headroom = draw.within(1.02, 2.5);
                let burst = log(&mut draw, 0.02, 1.0) * bdp_bytes;
                section.rates = [wire(4.0), wire(4.0)];
                if family == "policer-behind-buffer" {
                    section.rates[0] = wire(headroom * 1.3);
                }
                // A policer counts frames from the Ethernet header on.
                let rate_kbps = wire(headroom) * POLICED_SHARE / 1e3;
                let burst = burst.max(3100.0);
                section.second = format!("policer = {{ rate = \"{rate_kbps:.0}k\", burst = \"{burst:.0}B\" }}");
                section.what = format!("policer {headroom:.2} of the target, bucket {:.0} kB", burst / 1e3);
            }
            "aqm" | "ecn" => {
                let ecn = family == "ecn";
                let headroom = draw.within(1.05, 2.0);
                section.rates[0] = wire(headroom);
                let kind = if ecn {
                    draw.pick(&["fq_codel", "red", "codel"])
                } else {
                    draw.pick(&["fq_codel", "red", "codel", "pfifo"])
                };
                section.queues[0] = match kind {
                    "red" => {
                        let limit = log(&mut draw, 0.5, 4.0) * bdp_bytes;
                        let ecn = if ecn { ", ecn = true" } else { "" };
                        format!("{{ kind = \"red\", limit = \"{:.0}B\"{ecn} }}", limit.max(60_000.0))
                    }
                    "pfifo" => {
                        let packets = (log(&mut draw, 0.02, 2.0) * bdp_bytes / f64::from(MTU)).ceil().max(3.0);
                        format!("{{ kind = \"pfifo\", packets = {packets:.0} }}")
                    }
                    kind => format!("{{ kind = \"{kind}\", ecn = {ecn} }}"),
                };
                if ecn {
                    "sysctl = { \"net.ipv4.tcp_ecn\" = 1 }".clone_into(&mut section.hosts);
                }
                section.what = format!("{}, link {headroom:.2} of the target", section.queues[0]);
            }
            "two-queues" => {
                let shares = [log(&mut draw, 0.03, 1.0), log(&mut draw, 0.03, 1.0)];
                let first = draw.within(1.3, 3.0);
                section.rates = [wire(first), wire(first * draw.within(0.6, 0.95))];
                section.queues = shares.map(|share| buffer(share * bdp_bytes));
                section.what = format!("buffers of {:.2} and {:.2} BDP", shares[0], shares[1]);
            }
            "cross-traffic" => {
                let (mean, peak) = (draw.within(0.1, 0.6), draw.within(0.7, 1.2));
                let period_s = log(&mut draw, 0.5, 8.0);
                let headroom = draw.within(1.3, 2.2);
                section.rates[0] = wire(headroom);
                section.queues[0] = buffer(log(&mut draw, 0.1, 2.0) * bdp_bytes);
                let burst = mean * payload_bps * period_s / 8.0 / f64::from(FULL_PAYLOAD);
                section.cross = Some(CrossTraffic {
                    mean_bps: mean * payload_bps,
                    peak_bps: wire(peak),
                    burst: burst.ceil().max(1.0) as u32,
                    payload_bytes: FULL_PAYLOAD,
                });
                section.what = format!(
                    "cross traffic {mean:.2} of the target every {period_s:.1} s at {peak:.2}, link {headroom:.2}"
                );
            }
            "last-link" => {
                let loss = log(&mut draw, 0.2, 3.0) / run_length;
                let share = log(&mut draw, 0.05, 1.0);
                section.second = format!("loss = \"{:.7}%\"", loss * 100.0);
                section.queues[1] = buffer(share * bdp_bytes);
                section.what = format!("last link loses one in {:.0}, buffer {share:.2} BDP", 1.0 / loss);
            }
            "host-drops" => {
                // Its application reads slowly, from a small socket buffer.
                let share = draw.within(0.8, 3.0);
                let window = log(&mut draw, 8e3, 128e3).round();
                section.near = format!("cpu = {{ read = {{ byte-ns = {:.1} }} }}", 8e9 / (share * payload_bps));
                section.flow = format!("window = \"{window:.0}B\"\n");
                section.what = format!(
                    "the section's receiving host reads {share:.2} of the target, socket buffer {:.0} kB; the network is clean",
                    2.0 * window / 1e3
                );
            }
            _ => "no loss, a deep buffer".clone_into(&mut section.what),
        }
        section
    }

    /// Whether the section's results may set constants.
    pub fn is_training(&self) -> bool {
        self.number.is_multiple_of(2)
    }

    /// Whether other hosts send over the section.
    pub fn has_cross_traffic(&self) -> bool {
        self.cross.is_some()
    }

    /// Whether a congestion control runs over the long path, and its model over the section.
    pub fn runs(&self, congestion: QualifyCongestion) -> bool {
        congestion != QualifyCongestion::Reno || self.target.1 < LONG_RTT_MS
    }

    /// Target data rate, bits/s.
    pub fn target_bps(&self) -> f64 {
        f64::from(self.target.0) * 1e6
    }

    /// Returns the scenario of the tests of the section for a congestion control.
    pub fn qualify_toml(&self, congestion: QualifyCongestion, name: &str) -> String {
        let (mbps, rtt_ms) = self.target;
        let flow = format!(
            "[[flow]]\nname = \"section\"\nfrom = \"s\"\nto = \"near\"\nprotocol = \"qualify\"\ntarget = \"{mbps}M\"\n\
             target-rtt = \"{rtt_ms}ms\"\nfor = \"{name}\"\ntime = \"{TEST_S}s\"\n{}",
            self.flow
        );
        self.toml(&flow, self.suite_s(congestion))
    }

    /// Returns the scenario of the TCP flows over the long path, one after the other.
    pub fn tcp_toml(&self, truth: Truth) -> String {
        let mut flows = String::new();
        let omit_s = if self.target.1 < LONG_RTT_MS { truth.omit_s } else { 3 * truth.omit_s };
        let each_s = omit_s + truth.steady_s + 3;
        let mut start_s = 1;
        for repeat in 1..=truth.repeats {
            for (congestion, _) in CONGESTION.into_iter().filter(|(_, congestion)| self.runs(*congestion)) {
                let _ = write!(
                    flows,
                    "[[flow]]\nname = \"{congestion}-{repeat}\"\nfrom = \"s\"\nto = \"far\"\nstart = \"{start_s}s\"\nstart-spread = \
                     \"500ms\"\ncongestion = \"{congestion}\"\nomit = \"{omit_s}s\"\ntime = \"{}s\"\ninterval = \"1s\"\n",
                    truth.steady_s
                );
                start_s += each_s;
            }
        }
        self.toml(&flows, f64::from(start_s))
    }

    /// Estimated virtual time of a suite, with the search for the buffer, seconds.
    fn suite_s(&self, congestion: QualifyCongestion) -> f64 {
        let target = target_of(self.target, congestion);
        let Ok(derived) = target.derive() else { return 0.0 };
        let options = SuiteOptions {
            line_rate_bps: Some(self.nic_bps as u64),
            max_test_ns: TEST_S * 1_000_000_000,
            gentle: false,
        };
        let suite = Suite::new(target, &derived, options);
        suite.expected().1 + BETWEEN_STREAMS_S * STREAMS
    }

    fn toml(&self, flows: &str, span_s: f64) -> String {
        let kilobits = |bps: f64| format!("{}k", (bps / 1e3).round() as u64);
        let fast = kilobits(self.nic_bps.max(self.rates[0].max(self.rates[1])) * 4.0);
        let delay_us = u64::from(self.target.1) * 500 - SECTION_DELAY_US;
        let mut text = format!(
            "name = \"{}\"\ndescription = \"{}\"\nseed = {}\nsample = \"1s\"\n[hosts]\nqdisc = \"{}\"\n{}\n[host.s]\n[host.near]\n{}\n\
             [host.far]\n[switch.a]\nport.b = {}\n[switch.b]\nport.c = {}\n[switch.c]\n",
            self.name,
            self.what.replace('"', "'"),
            self.seed,
            self.host_qdisc,
            self.hosts,
            self.near,
            self.queues[0],
            self.queues[1]
        );
        let mut link = |between: [&str; 2], rate: String, lines: &str| {
            let _ = write!(text, "[[link]]\nbetween = {between:?}\nrate = \"{rate}\"\nmtu = {MTU}\n{lines}\n");
        };
        link(["s", "a"], kilobits(self.nic_bps), "");
        link(["a", "b"], kilobits(self.rates[0]), &format!("delay = \"{SECTION_DELAY_US}us\""));
        // Losses are in the direction of the data.
        let second = if self.second.is_empty() { String::new() } else { format!("forward = {{ {} }}", self.second) };
        link(["b", "c"], kilobits(self.rates[1]), &second);
        link(["c", "near"], fast.clone(), "");
        link(["c", "far"], fast.clone(), &format!("delay = \"{delay_us}us\""));
        if let Some(cross) = self.cross {
            link(["x", "a"], kilobits(cross.peak_bps), "");
            link(["c", "y"], fast, "");
            text.push_str("[host.x]\n[host.y]\n");
        }
        text.push_str(flows);
        if let Some(CrossTraffic { mean_bps, burst, payload_bytes, .. }) = self.cross {
            let _ = write!(
                text,
                "[[flow]]\nname = \"cross\"\nfrom = \"x\"\nto = \"y\"\nprotocol = \"udp\"\nrate = \"{}\"\nlen = {payload_bytes}\nburst = {burst}\n\
                 time = \"{}s\"\ninterval = \"1s\"\n",
                kilobits(mean_bps),
                span_s.ceil()
            );
        }
        text
    }
}

fn target_of((mbps, rtt_ms): (u32, u32), congestion: QualifyCongestion) -> Target {
    let rate = BitRate::from_bps(u64::from(mbps) * 1_000_000);
    Target { congestion, ..Target::new(rate, Nanos::new(u64::from(rtt_ms) * 1_000_000)) }
}

#[cfg(test)]
mod tests {
    use landspeed_lab::scenario;

    use super::*;

    #[test]
    fn every_family_is_a_sound_scenario() {
        let truth = Truth { repeats: 2, omit_s: 5, steady_s: 15 };
        for number in 0..FAMILIES.len() * TARGETS.len() {
            let section = Section::draw(1, number);
            for (name, congestion) in CONGESTION {
                let text = section.qualify_toml(congestion, name);
                scenario::load(&text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
            }
            let text = section.tcp_toml(truth);
            scenario::load(&text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
        }
    }

    #[test]
    fn draws_are_repeatable_and_half_are_held_out() {
        let sections: Vec<Section> = (0..26).map(|number| Section::draw(1, number)).collect();
        assert_eq!(
            sections[3].qualify_toml(CONGESTION[0].1, "cubic"),
            Section::draw(1, 3).qualify_toml(CONGESTION[0].1, "cubic")
        );
        assert_eq!(sections.iter().filter(|section| section.is_training()).count(), 13);
        for family in FAMILIES {
            let halves: Vec<bool> =
                sections.iter().filter(|section| section.family == family).map(Section::is_training).collect();
            assert_ne!(halves[0], halves[1], "{family}");
        }
    }
}
