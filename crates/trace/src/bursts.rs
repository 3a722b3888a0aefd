//! Microbursts: periods in which a station's rate exceeds a threshold. The largest are kept.

use landspeed_model::{Microburst, Microbursts};

/// Averaging window of the rate, nanoseconds.
pub const WINDOW_NS: u64 = 100_000;
/// Maximum number of microbursts kept.
const MAX_BURSTS: usize = 64;

/// Microburst detection for one station.
#[derive(Debug, Clone)]
pub struct Bursts {
    above_bps: u64,
    /// Bytes per window at the threshold rate.
    above_bytes: u64,
    window: u64,
    bytes: u64,
    first_ns: u64,
    last_ns: u64,
    /// The current burst, if any; its times are those of its frames.
    open: Option<Microburst>,
    end_ns: u64,
    count: u64,
    worst: Vec<Microburst>,
}

impl Bursts {
    /// Creates a detector with a threshold, bits/s.
    pub fn new(above_bps: u64) -> Self {
        let above_bytes = (u128::from(above_bps) * u128::from(WINDOW_NS) / 8_000_000_000) as u64;
        Self {
            above_bps,
            above_bytes,
            window: 0,
            bytes: 0,
            first_ns: 0,
            last_ns: 0,
            open: None,
            end_ns: 0,
            count: 0,
            worst: Vec::new(),
        }
    }

    /// Accounts for a frame of `wire` bytes.
    #[inline]
    pub fn frame(&mut self, time_ns: u64, wire: u32) {
        let window = time_ns / WINDOW_NS;
        if window > self.window {
            self.close();
            if window > self.window + 1 {
                self.end();
            }
            self.window = window;
        }
        // Frames with earlier timestamps count in the open window.
        if self.bytes == 0 {
            (self.first_ns, self.last_ns) = (time_ns, time_ns);
        }
        self.last_ns = self.last_ns.max(time_ns);
        self.bytes += u64::from(wire);
    }

    /// Closes the window.
    fn close(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes <= self.above_bytes {
            self.end();
            return;
        }
        let rate = bytes as f64 * 8e9 / WINDOW_NS as f64;
        let burst = self.open.get_or_insert(Microburst { start_ns: self.first_ns, ..Microburst::default() });
        burst.bytes += bytes;
        burst.peak_bps = burst.peak_bps.max(rate);
        self.end_ns = self.last_ns;
    }

    /// Ends the current burst, if any, and keeps it if it is among the largest.
    fn end(&mut self) {
        let Some(burst) = self.open.take() else { return };
        self.count += 1;
        let burst = Microburst { duration_ns: self.end_ns.saturating_sub(burst.start_ns), ..burst };
        if self.worst.len() == MAX_BURSTS && self.worst.last().is_some_and(|least| least.bytes >= burst.bytes) {
            return;
        }
        let position = self.worst.partition_point(|other| other.bytes >= burst.bytes);
        self.worst.insert(position, burst);
        self.worst.truncate(MAX_BURSTS);
    }

    /// Returns the microbursts for the document; times are relative to `zero_ns`.
    pub fn document(mut self, zero_ns: u64) -> Microbursts {
        self.close();
        self.end();
        let relative = |burst: Microburst| Microburst { start_ns: burst.start_ns.saturating_sub(zero_ns), ..burst };
        Microbursts {
            above_bps: self.above_bps,
            window_ns: WINDOW_NS,
            count: self.count,
            worst: self.worst.into_iter().map(relative).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_burst_has_start_length_and_size() {
        let mut bursts = Bursts::new(1_000_000_000);
        // 1500 bytes every 100 µs are 120 Mb/s; every 2 µs, 6 Gb/s.
        let mut time_ns = 5_000_000;
        for length in [0, 200, 0, 40, 0] {
            for _ in 0..50 {
                bursts.frame(time_ns, 1500);
                time_ns += 100_000;
            }
            for _ in 0..length {
                bursts.frame(time_ns, 1500);
                time_ns += 2_000;
            }
            time_ns = time_ns.next_multiple_of(WINDOW_NS);
        }
        let document = bursts.document(5_000_000);
        assert_eq!((document.count, document.worst.len()), (2, 2));
        let [long, short] = [document.worst[0], document.worst[1]];
        assert_eq!((long.start_ns, long.duration_ns, long.bytes), (10_000_000, 398_000, 300_000));
        assert!((long.peak_bps - 6e9).abs() < 1.0);
        assert_eq!((short.duration_ns, short.bytes), (78_000, 60_000));
        assert!(short.start_ns > long.start_ns);
    }

    #[test]
    fn the_largest_bursts_are_kept() {
        let mut bursts = Bursts::new(1_000);
        for number in 0..1_000_u64 {
            bursts.frame(number * 10 * WINDOW_NS, 100 + (number * 37 % 1_000) as u32);
        }
        let document = bursts.document(0);
        assert_eq!((document.count, document.worst.len()), (1_000, MAX_BURSTS));
        assert!(document.worst.iter().all(|burst| burst.bytes >= 100 + 1_000 - MAX_BURSTS as u64));
    }
}
