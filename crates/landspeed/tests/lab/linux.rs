//! Model of Linux's congestion avoidance, ACK by ACK: the window that follows from the response function
//! with whole packets.
//!
//! CUBIC follows net/ipv4/tcp_cubic.c: K and origin from the last maximum, target one round trip ahead, its
//! distance truncated to whole packets, fast convergence, the Reno-friendly region. Recovery takes one
//! round trip with proportional rate reduction (RFC 6937); nothing else limits the sender.

use std::collections::VecDeque;

/// Congestion control algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionControl {
    Cubic,
    Reno,
}

/// CUBIC's C in Linux: 41 × 10 / 1024.
const C: f64 = 410.0 / 1024.0;
/// CUBIC's β in Linux, over 1024.
const BETA: u64 = 717;
/// ACKs per packet of the window for one more packet in the Reno-friendly region: 3 (1 + β) / (1 − β) / 9,
/// truncated to eighths.
const RENO_FRIENDLY_RATIO: f64 = 15.0 / 8.0;

#[derive(Debug, Default)]
struct Cubic {
    last_max: u64,
    epoch_s: Option<f64>,
    k_s: f64,
    origin: f64,
    acked: f64,
    friendly: u64,
    count: u64,
    last_window: u64,
    last_ms: u64,
}

impl Cubic {
    fn on_loss(&mut self, window: u64) -> u64 {
        self.last_max = if window < self.last_max { window * (1024 + BETA) / 2048 } else { window };
        self.epoch_s = None;
        (window * BETA / 1024).max(2)
    }

    /// Returns the number of ACKs until the window grows.
    fn count(&mut self, now_s: f64, rtt_s: f64, window: u64) -> u64 {
        self.acked += 1.0;
        let now_ms = (now_s * 1000.0) as u64;
        if self.last_window == window && now_ms - self.last_ms <= 31 {
            return self.count;
        }
        if self.epoch_s.is_none() || now_ms != self.last_ms {
            (self.last_window, self.last_ms) = (window, now_ms);
            let epoch_s = *self.epoch_s.get_or_insert_with(|| {
                (self.acked, self.friendly) = (1.0, window);
                self.k_s = (self.last_max.saturating_sub(window) as f64 / C).cbrt();
                self.origin = self.last_max.max(window) as f64;
                now_s
            });
            let off_s = now_s - epoch_s + rtt_s - self.k_s;
            let distance = (C * off_s.abs().powi(3)).floor();
            let target = self.origin + distance.copysign(off_s);
            let window = window as f64;
            self.count = if target > window { (window / (target - window)) as u64 } else { 100 * window as u64 };
            if self.last_max == 0 {
                self.count = self.count.min(20);
            }
        }
        let step = (window as f64 * RENO_FRIENDLY_RATIO).floor();
        while self.acked > step {
            self.acked -= step;
            self.friendly += 1;
        }
        if self.friendly > window {
            self.count = self.count.min(window / (self.friendly - window));
        }
        self.count = self.count.max(2);
        self.count
    }
}

/// Mean packets per round trip over whole periods, of a flow that loses one packet in `period`, after it
/// has settled from a window of `start`.
pub fn steady_window(control: CongestionControl, period: u64, rtt_s: f64, start: u64) -> f64 {
    const LOSSES: usize = 30;
    const STEADY_FROM: usize = 20;
    let mut cubic = Cubic::default();
    let mut window = start;
    let (mut sent, mut credit) = (0_u64, 0_u64);
    // Packets in flight: time of the ACK, sequence number (0: a retransmission), whether it is lost.
    let mut path: VecDeque<(f64, u64, bool)> = VecDeque::new();
    // Recovery state: last packet sent before it, window before it, fraction of a packet to send.
    let mut recovery: Option<(u64, f64, f64)> = None;
    let mut losses: Vec<(f64, u64)> = Vec::new();
    let mut send = |path: &mut VecDeque<_>, at_s: f64| {
        sent += 1;
        path.push_back((at_s + rtt_s, sent, sent.is_multiple_of(period)));
        sent
    };
    let mut last = 0;
    for packet in 0..start {
        last = send(&mut path, rtt_s * packet as f64 / start as f64);
    }
    while losses.len() < LOSSES {
        let (now_s, number, lost) = path.pop_front().expect("a window is never empty");
        if lost {
            losses.push((now_s, number));
            recovery = Some((last, window as f64, 0.0));
            window = if control == CongestionControl::Cubic { cubic.on_loss(window) } else { (window / 2).max(2) };
            credit = 0;
            path.push_back((now_s + rtt_s, 0, false));
            continue;
        }
        if let Some((end, before, owed)) = &mut recovery {
            if number < *end {
                *owed += window as f64 / *before;
                if *owed >= 1.0 {
                    *owed -= 1.0;
                    last = send(&mut path, now_s);
                }
                continue;
            }
            recovery = None;
        }
        credit += 1;
        let wanted = if control == CongestionControl::Cubic { cubic.count(now_s, rtt_s, window) } else { window };
        if credit >= wanted {
            credit = 0;
            window += 1;
        }
        while (path.len() as u64) < window {
            last = send(&mut path, now_s);
        }
    }
    let (first, last) = (losses[STEADY_FROM], losses[LOSSES - 1]);
    (last.1 - first.1) as f64 / (last.0 - first.0) * rtt_s
}

/// Range of the settled windows over different start windows. CUBIC is flat around its last maximum: a loss
/// there does not change the maximum, so the settled window depends on the start.
pub fn steady_window_range(control: CongestionControl, period: u64, rtt_s: f64, about: f64) -> (f64, f64) {
    let starts = [0.3, 0.45, 0.6, 0.75, 0.9, 1.05, 1.2, 1.35, 1.5, 2.0];
    let settled = starts.map(|share| steady_window(control, period, rtt_s, (about * share) as u64));
    (settled.iter().copied().fold(f64::INFINITY, f64::min), settled.iter().copied().fold(0.0, f64::max))
}

#[test]
fn reno_is_within_one_percent_of_its_formula() {
    let window = steady_window(CongestionControl::Reno, 10_000, 0.1, 100);
    let formula = (1.5 * 10_000_f64).sqrt();
    assert!((window / formula - 1.0).abs() < 0.01, "{window} {formula}");
}

#[test]
fn cubic_in_whole_packets_settles_above_its_formula() {
    let formula = 187.4;
    let (least, most) = steady_window_range(CongestionControl::Cubic, 10_000, 0.1, formula);
    assert!(least > formula && most < formula * 1.25, "{least} to {most}");
    assert!(most > least * 1.05, "it is a range: {least} to {most}");
}
