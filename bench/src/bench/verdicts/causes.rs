//! Scenario families, one per cause.

use super::draw::Draw;
use super::setup::{Limits, Setup, kilobits};
use super::truth::{Accept, View};

/// A generated scenario, not yet named.
pub struct GeneratedScenario {
    /// The path and its settings.
    pub setup: Setup,
    /// The limit on the flow, in words.
    pub what: String,
    /// Other causes that an expert could name with equal justification.
    pub accept: Vec<Accept>,
}

/// Generates a scenario in which its cause limits the flow; `None` if the drawn values do not fit. The last
/// argument selects a variant of the cause.
type CauseGenerator = fn(&mut Draw, &'static str, usize) -> Option<GeneratedScenario>;

/// Congestion controls used in turn.
const CONTROLS: &[&str] = &["cubic", "bbr", "reno"];
/// Congestion controls that reduce cwnd on every loss. (BBR version 1 does not.)
const LOSS_BASED: &[&str] = &["cubic", "reno"];

/// All causes, each with its family and the congestion controls used in turn.
pub const ALL: &[(&str, CauseGenerator, &[&str])] = &[
    ("receiver-window", receiver_window, CONTROLS),
    ("slow-reader", slow_reader, CONTROLS),
    ("send-buffer", send_buffer, CONTROLS),
    ("application", application, CONTROLS),
    ("pacing", pacing, CONTROLS),
    ("link-rate", link_rate, CONTROLS),
    ("network-path", network_path, CONTROLS),
    ("network-congestion", network_congestion, CONTROLS),
    ("network-loss", network_loss, CONTROLS),
    ("slow-start-overshoot", slow_start_overshoot, LOSS_BASED),
    ("shallow-buffer", shallow_buffer, CONTROLS),
    ("policer", policer, CONTROLS),
    ("reordering", reordering, CONTROLS),
    ("receiver-host-drops", receiver_host_drops, CONTROLS),
    ("ack-path", ack_path, CONTROLS),
    ("local-qdisc", local_qdisc, CONTROLS),
    ("path-mtu", path_mtu, CONTROLS),
    ("round-trip", round_trip, CONTROLS),
];

#[expect(clippy::unnecessary_wraps, reason = "the value of every family")]
fn drawn(setup: Setup, what: &str, accept: &[Accept]) -> Option<GeneratedScenario> {
    Some(GeneratedScenario { setup, what: what.to_owned(), accept: accept.to_vec() })
}

const fn accept(cause: &'static str, from: View) -> Accept {
    Accept { cause, from }
}

fn receiver_window(draw: &mut Draw, control: &'static str, variety: usize) -> Option<GeneratedScenario> {
    let limits = Limits { bdp_bytes: (8e5, f64::INFINITY), ..Limits::default() };
    let mut setup = Setup::draw(draw, control, limits);
    let share = setup.bdp_per_stream_bytes();
    (share > 2e5).then_some(())?;
    // The kernel offers half of the receive buffer or more as the window.
    let buffer = (share * draw.within(0.15, 0.75)).max(8192.0).round() as u64;
    match variety % 4 {
        0 => {
            setup.receiver = format!("buffers = \"{buffer}\"");
            drawn(setup, "the receiver's buffers are below the BDP", &[])
        }
        1 => {
            "sysctl = { \"net.ipv4.tcp_window_scaling\" = 0 }".clone_into(&mut setup.receiver);
            drawn(setup, "window scaling is off at the receiver", &[])
        }
        2 => {
            let least = 131_072.min(buffer);
            setup.receiver = format!("sysctl = {{ \"net.ipv4.tcp_rmem\" = \"4096 {least} {buffer}\" }}");
            drawn(setup, "tcp_rmem[2] is below the BDP", &[])
        }
        // Both hosts get this buffer; the send buffer holds more payload than the receive window allows.
        _ => {
            setup.flow = format!("window = \"{}\"", buffer / 2);
            drawn(setup, "fixed socket buffers are below the BDP", &[accept("send-buffer", View::Lab)])
        }
    }
}

fn slow_reader(draw: &mut Draw, control: &'static str, _: usize) -> Option<GeneratedScenario> {
    let mut setup = Setup::draw(draw, control, Limits::default());
    setup.flow = format!("read-rate = \"{}\"", part(draw, &setup));
    drawn(
        setup,
        "the receiving application reads below the path's rate",
        &[accept("receiver-window", View::SenderOnly)],
    )
}

fn send_buffer(draw: &mut Draw, control: &'static str, variety: usize) -> Option<GeneratedScenario> {
    let limits = Limits { bdp_bytes: (4e5, f64::INFINITY), ..Limits::default() };
    let mut setup = Setup::draw(draw, control, limits);
    // The kernel lets a send buffer overflow by one 64 KiB segment.
    (setup.bdp_per_stream_bytes() > 4e5).then_some(())?;
    let buffer = (setup.bdp_per_stream_bytes() * draw.within(0.1, 0.5)).max(8192.0).round() as u64;
    if variety.is_multiple_of(2) {
        setup.sender = format!("buffers = \"{buffer}\"");
        drawn(setup, "the sender's buffers are below the BDP", &[])
    } else {
        let least = 16_384.min(buffer);
        setup.sender = format!("sysctl = {{ \"net.ipv4.tcp_wmem\" = \"4096 {least} {buffer}\" }}");
        drawn(setup, "tcp_wmem[2] is below the BDP", &[])
    }
}

fn application(draw: &mut Draw, control: &'static str, _: usize) -> Option<GeneratedScenario> {
    let mut setup = Setup::draw(draw, control, Limits::default());
    setup.flow = format!("rate = \"{}\"", part(draw, &setup));
    drawn(setup, "the sending application offers less than the path's rate", &[])
}

fn pacing(draw: &mut Draw, control: &'static str, _: usize) -> Option<GeneratedScenario> {
    let mut setup = Setup::draw(draw, control, Limits::default());
    setup.flow = format!("pace = \"{}\"", part(draw, &setup));
    drawn(setup, "SO_MAX_PACING_RATE is below the path's rate", &[])
}

/// Draws a rate below each stream's share of the path.
fn part(draw: &mut Draw, setup: &Setup) -> String {
    kilobits(setup.rate_bps / f64::from(setup.streams) * draw.within(0.05, 0.75))
}

fn link_rate(draw: &mut Draw, control: &'static str, variety: usize) -> Option<GeneratedScenario> {
    let limits = Limits {
        rates_mbps: &[100, 1_000, 1_000, 2_500, 10_000, 25_000, 40_000],
        bdp_bytes: (0.0, 2e7),
        ..Limits::default()
    };
    let mut setup = Setup::draw(draw, control, limits);
    let nic_bps = setup.rate_bps;
    setup.rate_bps *= draw.pick(&[2.0, 4.0, 10.0]);
    if variety.is_multiple_of(2) {
        (setup.sender_nic_bps, setup.receiver_nic_bps) = (nic_bps, setup.rate_bps);
        drawn(setup, "the sender's interface is full", &[])
    } else {
        (setup.sender_nic_bps, setup.receiver_nic_bps) = (setup.rate_bps, nic_bps);
        setup.buffer_bytes = setup.buffer_bytes.max(3e7);
        // The sender cannot see the speed of the receiver's interface.
        drawn(setup, "the receiver's interface is full", &[accept("network-path", View::SenderOnly)])
    }
}

fn network_path(draw: &mut Draw, control: &'static str, _: usize) -> Option<GeneratedScenario> {
    let limits = Limits { bdp_bytes: (0.0, 1e8), ..Limits::default() };
    let mut setup = Setup::draw(draw, control, limits);
    setup.buffer_bytes = (6.0 * setup.bdp_bytes()).max(3e7);
    drawn(setup, "the path is full, its buffer is large, nothing is lost", &[])
}

fn network_congestion(draw: &mut Draw, control: &'static str, variety: usize) -> Option<GeneratedScenario> {
    let limits = Limits {
        rtts_us: &[1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 80_000],
        streams: &[1, 2, 4, 8],
        ..Limits::default()
    };
    let mut setup = Setup::draw(draw, control, limits);
    setup.buffer_bytes = (setup.bdp_bytes() * draw.within(0.9, 1.5)).max(60.0 * f64::from(setup.mtu));
    if control == "bbr" || variety % 3 == 2 {
        setup.cross_bps = Some(setup.rate_bps * draw.within(0.4, 0.7));
        (setup.rate_bps < 6e8 && setup.extend_to_four_sawteeth()).then_some(())?;
        return drawn(setup, "the queue overflows beside UDP", &[]);
    }
    setup.extend_to_four_sawteeth().then_some(())?;
    drawn(setup, "a queue of about the BDP overflows", &[])
}

/// Draws a loss ratio that limits a loss-based congestion control to a small part of the path (Mathis 1997) and
/// causes at least about ten losses per stream.
fn loss(draw: &mut Draw, setup: &Setup) -> f64 {
    if setup.congestion == "bbr" {
        return draw.within(0.17, 0.3);
    }
    let window = (setup.bdp_per_stream_bytes() / f64::from(setup.mtu - 52) * draw.within(0.06, 0.6)).max(4.0);
    let mathis = (1.22 / window).powi(2);
    mathis.max(10.0 * f64::from(setup.streams) / (setup.packets() * 0.4)).min(0.03)
}

const LOSS_LIMITS: Limits = Limits {
    rates_mbps: &[100, 200, 500, 1_000, 1_000, 2_500, 10_000, 25_000, 40_000],
    rtts_us: &[1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 80_000, 150_000, 300_000],
    bdp_bytes: (2e5, 6e7),
    streams: &[1, 1, 2, 4, 8],
};

fn network_loss(draw: &mut Draw, control: &'static str, variety: usize) -> Option<GeneratedScenario> {
    let mut setup = Setup::draw(draw, control, LOSS_LIMITS);
    let loss = loss(draw, &setup);
    if variety % 3 == 2 && control != "bbr" {
        setup.link = format!(
            "forward = {{ loss = {{ gilbert-elliott = {{ p = \"{:.5}%\", r = \"33%\" }} }} }}",
            loss / 3.0 * 100.0
        );
        return drawn(setup, "the link loses packets in bursts", &[]);
    }
    setup.link = format!("forward = {{ loss = \"{:.5}%\" }}", loss * 100.0);
    drawn(setup, "the link loses packets at random", &[])
}

fn receiver_host_drops(draw: &mut Draw, control: &'static str, _: usize) -> Option<GeneratedScenario> {
    let mut setup = Setup::draw(draw, control, LOSS_LIMITS);
    let every = (1.0 / loss(draw, &setup)).round().max(3.0) as u64;
    setup.receiver = format!("drops = {{ every = {every} }}");
    // No counter of the host shows these drops; only the lab knows where they happen.
    drawn(setup, "the receiving host drops packets that arrived", &[accept("network-loss", View::BothHosts)])
}

fn slow_start_overshoot(draw: &mut Draw, control: &'static str, variety: usize) -> Option<GeneratedScenario> {
    let limits = Limits {
        rtts_us: &[20_000, 40_000, 80_000, 150_000],
        bdp_bytes: (3e6, 1e8),
        streams: &[1, 1, 2],
        ..Limits::default()
    };
    let mut setup = Setup::draw(draw, control, limits);
    setup.buffer_bytes = setup.bdp_bytes() * draw.within(0.03, 0.15);
    setup.omit_s = (20.0 * setup.rtt_us / 1e6).max(0.5);
    setup.time_s = (20.0 * setup.rtt_us / 1e6).clamp(2.2, 5.0);
    (setup.sawtooth_s() > 1.5 * (setup.omit_s + setup.time_s)).then_some(())?;
    let accept = [accept("shallow-buffer", View::Lab)];
    if variety % 3 == 2 {
        setup.cross_bps = Some(setup.rate_bps * 0.2);
        setup.is_quick().then_some(())?;
        return drawn(setup, "slow start overflows a small buffer beside UDP, then the window grows slowly", &accept);
    }
    drawn(setup, "slow start overflows a small buffer, then the window grows slowly", &accept)
}

fn shallow_buffer(draw: &mut Draw, control: &'static str, _: usize) -> Option<GeneratedScenario> {
    let limits = Limits {
        rtts_us: &[2_000, 5_000, 10_000, 20_000, 40_000, 80_000],
        bdp_bytes: (4e5, 5e7),
        streams: &[1, 2, 4, 8],
        ..Limits::default()
    };
    let mut setup = Setup::draw(draw, control, limits);
    let share = setup.bdp_bytes() / f64::from(setup.streams).sqrt();
    setup.buffer_bytes = (share * draw.within(0.01, 0.08)).max(10.0 * f64::from(setup.mtu));
    (setup.buffer_bytes < 0.1 * share && setup.extend_to_four_sawteeth()).then_some(())?;
    drawn(setup, "a buffer far below the BDP overflows", &[accept("network-congestion", View::Lab)])
}

fn policer(draw: &mut Draw, control: &'static str, _: usize) -> Option<GeneratedScenario> {
    let limits = Limits {
        rates_mbps: &[50, 100, 200, 500, 1_000],
        rtts_us: &[2_000, 5_000, 10_000, 20_000, 40_000, 80_000],
        bdp_bytes: (1e5, 1e7),
        streams: &[1, 1, 2, 4, 8],
    };
    let mut setup = Setup::draw(draw, control, limits);
    setup.buffer_bytes = 3100.0;
    setup.sender_nic_bps = setup.rate_bps * 10.0;
    setup.extend_to_four_sawteeth().then_some(())?;
    drawn(setup, "a token bucket of two frames", &[accept("shallow-buffer", View::Lab)])
}

fn reordering(draw: &mut Draw, control: &'static str, _: usize) -> Option<GeneratedScenario> {
    let limits =
        Limits { rtts_us: &[5_000, 10_000, 20_000, 40_000, 80_000], bdp_bytes: (5e5, 3e7), ..Limits::default() };
    let mut setup = Setup::draw(draw, control, limits);
    setup.buffer_bytes = (6.0 * setup.bdp_bytes()).max(3e7);
    let share = if control == "bbr" { draw.pick(&[2, 4, 8]) } else { draw.pick(&[1, 2, 4]) };
    setup.link = format!("forward = {{ reorder = \"{share}%\" }}");
    drawn(setup, "packets overtake others, none is lost", &[])
}

fn ack_path(draw: &mut Draw, control: &'static str, _: usize) -> Option<GeneratedScenario> {
    let limits = Limits {
        rates_mbps: &[100, 500, 1_000, 1_000, 2_500, 10_000],
        rtts_us: &[1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 80_000],
        ..Limits::default()
    };
    let mut setup = Setup::draw(draw, control, limits);
    // One ACK per two segments, 90 bytes each on the wire with framing.
    let acks_bps = setup.rate_bps / f64::from(setup.mtu) / 2.0 * 90.0;
    setup.link = format!("reverse = {{ rate = \"{}\" }}", kilobits((acks_bps * draw.within(0.02, 0.3)).max(16e3)));
    setup.back_buffer_bytes = draw.pick(&[20e3, 50e3, 100e3, 1e6]);
    drawn(
        setup,
        "the reverse path is too narrow for the ACKs",
        &[accept("network-path", View::SenderOnly), accept("network-congestion", View::SenderOnly)],
    )
}

fn local_qdisc(draw: &mut Draw, control: &'static str, variety: usize) -> Option<GeneratedScenario> {
    match variety % 3 {
        0 => {
            let mut setup = Setup::draw(draw, control, Limits::default());
            setup.sender = format!("qdisc = {{ kind = \"fq\", max-rate = \"{}\" }}", part(draw, &setup));
            drawn(setup, "fq maxrate on the sender is below the path's rate", &[accept("pacing", View::Lab)])
        }
        1 => {
            let limits = Limits { bdp_bytes: (4e6, 6e7), streams: &[4, 8], ..Limits::default() };
            let mut setup = Setup::draw(draw, control, limits);
            (setup.sender_nic_bps, setup.receiver_nic_bps) = (setup.rate_bps, setup.rate_bps * 10.0);
            setup.rate_bps *= 10.0;
            setup.sender = format!("qdisc = {{ kind = \"pfifo\", packets = {} }}", draw.pick(&[1, 2, 3]));
            drawn(setup, "a short pfifo on the sender drops packets", &[])
        }
        _ => {
            let mut setup = Setup::draw(draw, control, LOSS_LIMITS);
            // At the qdisc a packet is a GSO segment of up to 64 KiB.
            let share = (loss(draw, &setup) * 5.0).min(0.2);
            setup.sender =
                format!("qdisc = {{ kind = \"netem\", loss = \"{:.4}%\", packets = 100000 }}", share * 100.0);
            drawn(setup, "netem on the sender drops packets", &[])
        }
    }
}

fn path_mtu(draw: &mut Draw, control: &'static str, variety: usize) -> Option<GeneratedScenario> {
    let limits = Limits {
        rates_mbps: &[100, 500, 1_000],
        rtts_us: &[1_000, 5_000, 20_000, 80_000],
        streams: &[1, 1, 2],
        ..Limits::default()
    };
    let mut setup = Setup::draw(draw, control, limits);
    setup.mtu = 1500;
    (setup.omit_s, setup.time_s) = (0.5, 6.0);
    setup.link = format!("forward = {{ loss = {{ longer-than = {} }} }}", draw.pick(&[1400, 1476, 1492]));
    if variety % 2 == 1 {
        "sysctl = { \"net.ipv4.tcp_mtu_probing\" = 1 }".clone_into(&mut setup.hosts);
        return drawn(setup, "a hop drops full packets silently until MTU probing finds its size", &[]);
    }
    drawn(setup, "a hop drops full packets silently", &[])
}

fn round_trip(draw: &mut Draw, control: &'static str, variety: usize) -> Option<GeneratedScenario> {
    let limits = Limits { rates_mbps: &[100, 1_000, 10_000], ..Limits::default() };
    let mut setup = Setup::draw(draw, control, limits);
    setup.time_s = 3.0;
    let connect = if variety % 3 == 2 { "connect = true" } else { "" };
    setup.flow = format!(
        "protocol = \"tcp-rr\"\nrequest = {}\nresponse = {}\n{connect}",
        draw.pick(&[1, 64, 1000]),
        draw.pick(&[1, 100, 1400])
    );
    drawn(setup, "every request waits for the response before it", &[])
}
