//! A path between two hosts, and the scenario file that describes it.
//!
//! ```text
//! s ── access ── w ── bottleneck, delay ── e ── access ── r
//! ```
//!
//! Some scenarios add a host `x` at `w` and a host `y` at `e` with UDP between them.

use std::fmt::Write as _;

use landspeed_lab::scenario;

use super::draw::Draw;

/// Maximum estimated wall-clock time of a scenario, seconds. A loaded machine takes several times as long.
const MAX_WALL_S: f64 = 5.0;

/// Ranges from which a path is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bottleneck rates, Mb/s.
    pub rates_mbps: &'static [u32],
    /// RTTs, µs; each is varied by a quarter.
    pub rtts_us: &'static [u32],
    /// Minimum and maximum bandwidth-delay product, bytes.
    pub bdp_bytes: (f64, f64),
    /// Numbers of streams.
    pub streams: &'static [u32],
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rates_mbps: &[100, 200, 500, 1_000, 1_000, 2_500, 10_000, 25_000, 40_000],
            rtts_us: &[200, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 80_000, 150_000, 300_000],
            bdp_bytes: (0.0, f64::INFINITY),
            streams: &[1, 1, 1, 2, 4, 8],
        }
    }
}

/// Contents of a scenario file.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Seed of the lab.
    pub seed: u64,
    /// Congestion control of every host.
    pub congestion: &'static str,
    /// Bottleneck rate, bits/s.
    pub rate_bps: f64,
    /// RTT without queues, µs.
    pub rtt_us: f64,
    /// MTU, bytes.
    pub mtu: u32,
    /// Number of streams.
    pub streams: u32,
    /// Rate of the sender's interface, bits/s.
    pub sender_nic_bps: f64,
    /// Rate of the receiver's interface, bits/s.
    pub receiver_nic_bps: f64,
    /// Queue limit at the bottleneck, bytes.
    pub buffer_bytes: f64,
    /// Queue limit in the reverse direction of the bottleneck, bytes.
    pub back_buffer_bytes: f64,
    /// Start of the flow that is excluded from the steady phase, seconds.
    pub omit_s: f64,
    /// Duration of the steady phase, seconds.
    pub time_s: f64,
    /// Queueing discipline of both hosts.
    pub qdisc: &'static str,
    /// Extra lines for `[hosts]`.
    pub hosts: String,
    /// Extra lines for `[host.s]`.
    pub sender: String,
    /// Extra lines for `[host.r]`.
    pub receiver: String,
    /// Extra lines for the bottleneck link.
    pub link: String,
    /// Extra lines for the flow.
    pub flow: String,
    /// UDP cross traffic, bits/s; negative in the reverse direction.
    pub cross_bps: Option<f64>,
}

impl Setup {
    /// Draws a path within `limits` that the lab can simulate in reasonable time.
    pub fn draw(draw: &mut Draw, congestion: &'static str, limits: Limits) -> Self {
        for _ in 0..10_000 {
            let rate_bps = f64::from(draw.pick(limits.rates_mbps)) * 1e6;
            let rtt_us = (f64::from(draw.pick(limits.rtts_us)) * draw.within(0.8, 1.25)).clamp(200.0, 300_000.0);
            let mtu = if rate_bps < 5e9 { 1500 } else { 9000 };
            let bdp = rate_bps / 8.0 * rtt_us / 1e6;
            let (least, most) = limits.bdp_bytes;
            let nic_bps = rate_bps * draw.pick(&[2.0, 4.0, 10.0]);
            let rtt_s = rtt_us / 1e6;
            let mut setup = Self {
                seed: draw.bits() % 1_000_000 + 1,
                congestion,
                rate_bps,
                rtt_us,
                mtu,
                streams: draw.pick(limits.streams),
                sender_nic_bps: nic_bps,
                receiver_nic_bps: nic_bps,
                buffer_bytes: (2.0 * bdp).max(8e6),
                back_buffer_bytes: 16e6,
                omit_s: (20.0 * rtt_s).max(0.5),
                time_s: (40.0 * rtt_s).max(2.5),
                qdisc: draw.pick(&["fq", "fq", "fq_codel", "pfifo_fast"]),
                hosts: String::new(),
                sender: String::new(),
                receiver: String::new(),
                link: String::new(),
                flow: String::new(),
                cross_bps: None,
            };
            if bdp < least || bdp > most {
                continue;
            }
            if !setup.is_quick() {
                setup.omit_s = (15.0 * rtt_s).max(0.3);
                setup.time_s = (20.0 * rtt_s).max(1.0);
            }
            if setup.is_quick() {
                return setup;
            }
        }
        panic!("no path is within {limits:?}");
    }

    /// Bandwidth-delay product of the bottleneck, bytes.
    pub fn bdp_bytes(&self) -> f64 {
        self.rate_bps / 8.0 * self.rtt_us / 1e6
    }

    /// Bandwidth-delay product per stream, bytes.
    pub fn bdp_per_stream_bytes(&self) -> f64 {
        self.bdp_bytes() / f64::from(self.streams)
    }

    /// Whether the lab simulates it in reasonable time.
    pub fn is_quick(&self) -> bool {
        scenario::load(&self.toml("estimate", "estimate"))
            .is_ok_and(|loaded| scenario::estimate(&loaded.cells[0].scenario).wall_s <= MAX_WALL_S)
    }

    /// Time between two losses of a stream that only loses packets when the buffer overflows, seconds. Reno grows by
    /// one segment per RTT from half of its largest window; CUBIC needs K (RFC 9438 section 4.2), or Reno's time if
    /// that is shorter. BBR probes for bandwidth every eight RTTs.
    pub fn sawtooth_s(&self) -> f64 {
        let window = (self.bdp_bytes() + self.buffer_bytes) / f64::from(self.streams) / f64::from(self.mtu - 52);
        let rtt_s = self.rtt_us / 1e6 + self.buffer_bytes / 2.0 / (self.rate_bps / 8.0);
        let reno = window / 2.0 * rtt_s;
        match self.congestion {
            "bbr" => 8.0 * rtt_s,
            "cubic" => reno.min((window * 0.3 / 0.4).cbrt()),
            _ => reno,
        }
    }

    /// Extends the steady phase to four sawteeth. Returns whether the run is still quick.
    pub fn extend_to_four_sawteeth(&mut self) -> bool {
        self.time_s = self.time_s.max(4.0 * self.sawtooth_s());
        self.time_s <= 15.0 && self.is_quick()
    }

    /// Packets that the bottleneck can carry in the whole run.
    pub fn packets(&self) -> f64 {
        (self.omit_s + self.time_s) * self.rate_bps / 8.0 / f64::from(self.mtu)
    }

    /// Returns the scenario file.
    pub fn toml(&self, name: &str, description: &str) -> String {
        let Self { seed, congestion, qdisc, mtu, streams, .. } = self;
        let (hosts, sender, receiver, link, flow) =
            (&self.hosts, &self.sender, &self.receiver, &self.link, &self.flow);
        let ms = |seconds: f64| (seconds * 1e3).round() as u64;
        let interval_ms = (ms(self.time_s) / 40).clamp(10, 100);
        let text = format!(
            "name = \"{name}\"
description = \"{description}\"
seed = {seed}
time = \"{time}ms\"
sample = \"{sample}ms\"
[hosts]
congestion = \"{congestion}\"
qdisc = \"{qdisc}\"
{hosts}
[host.s]
{sender}
[host.r]
{receiver}
[switch.w]
queue = {{ kind = \"bfifo\", limit = \"64MB\" }}
port.e = {{ kind = \"bfifo\", limit = \"{buffer}\" }}
[switch.e]
queue = {{ kind = \"bfifo\", limit = \"{far_buffer}\" }}
port.w = {{ kind = \"bfifo\", limit = \"{back_buffer}\" }}
[[link]]
between = [\"s\", \"w\"]
rate = \"{sender_nic}\"
mtu = {mtu}
[[link]]
between = [\"w\", \"e\"]
rate = \"{rate}\"
mtu = {mtu}
delay = \"{delay}us\"
{link}
[[link]]
between = [\"e\", \"r\"]
rate = \"{receiver_nic}\"
mtu = {mtu}
[[flow]]
name = \"main\"
from = \"s\"
to = \"r\"
omit = \"{omit}ms\"
interval = \"{interval_ms}ms\"
start-spread = \"20ms\"
streams = {streams}
{flow}
{cross}",
            time = ms(self.time_s),
            sample = interval_ms.min(20),
            buffer = self.buffer_bytes.round() as u64,
            far_buffer = (2.0 * self.bdp_bytes()).max(64e6).round() as u64,
            back_buffer = self.back_buffer_bytes.round() as u64,
            sender_nic = kilobits(self.sender_nic_bps),
            rate = kilobits(self.rate_bps),
            delay = (self.rtt_us / 2.0).round() as u64,
            receiver_nic = kilobits(self.receiver_nic_bps),
            omit = ms(self.omit_s),
            cross = self.cross(),
        );
        text.lines().filter(|line| !line.trim().is_empty()).fold(String::new(), |mut text, line| {
            text.push_str(line);
            text.push('\n');
            text
        })
    }

    fn cross(&self) -> String {
        let Some(cross_bps) = self.cross_bps else { return String::new() };
        let mut text = "[host.x]\n[host.y]\n".to_owned();
        for between in [["x", "w"], ["e", "y"]] {
            let _ = writeln!(
                text,
                "[[link]]\nbetween = {between:?}\nrate = \"{}\"\nmtu = {}",
                kilobits(self.sender_nic_bps),
                self.mtu
            );
        }
        let (from, to) = if cross_bps < 0.0 { ("y", "x") } else { ("x", "y") };
        let _ = writeln!(
            text,
            "[[flow]]\nname = \"cross\"\nfrom = \"{from}\"\nto = \"{to}\"\nprotocol = \"udp\"\nrate = \"{}\"\ntime = \"{}ms\"",
            kilobits(cross_bps.abs()),
            ((self.omit_s + self.time_s) * 1e3).round() as u64 + 2000
        );
        text
    }
}

/// Formats a rate as in scenario files.
pub fn kilobits(bps: f64) -> String {
    format!("{}k", (bps / 1e3).round() as u64)
}
