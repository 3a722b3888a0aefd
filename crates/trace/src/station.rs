//! Frames of one station: rates in bins, gaps, packet trains, spacing of ACKs.

use landspeed_model::{AckSpacing, BinRates, GapClass, TraceStation, Trains};

use crate::bursts::Bursts;
use crate::framing::Framing;
use crate::histogram::Histogram;

/// Size classes of frames, bytes, both bounds included: pure ACKs, frames up to a 1500-byte MTU, larger ones.
const CLASSES: [(u32, u32); 3] = [(0, 128), (129, 1522), (1523, u32::MAX)];
const MILLISECOND_NS: u64 = 1_000_000;
/// Maximum gap between ACKs that were sent, or held back, together, nanoseconds.
const BUNCHED_NS: u64 = 1_000;
/// Minimum gap considered for the most common gap between ACKs, which may show a framing below IP, nanoseconds.
const MIN_ACK_GAP_NS: u64 = 2_000;
/// Minimum frames of a train for an estimate of the link's rate.
const MIN_TRAIN_FRAMES: u64 = 10;

/// Rates in bins of one width.
#[derive(Debug, Clone)]
struct Bins {
    width_ns: u64,
    /// End of the open bin; 0 before the first frame.
    end_ns: u64,
    bytes: u64,
    bins: u64,
    empty: u64,
    total_bytes: u64,
    max_bytes: u64,
    above_bytes: Option<u64>,
    above: u64,
    /// Bytes of the bins that are not empty.
    filled: Histogram,
}

impl Bins {
    fn new(width_ns: u64, above_bps: Option<u64>) -> Self {
        let above_bytes = above_bps.map(|bps| (u128::from(bps) * u128::from(width_ns) / 8_000_000_000) as u64);
        Self {
            width_ns,
            end_ns: 0,
            bytes: 0,
            bins: 0,
            empty: 0,
            total_bytes: 0,
            max_bytes: 0,
            above_bytes,
            above: 0,
            filled: Histogram::new(),
        }
    }

    /// Opens the bin that contains a time. Frames that step back in time count in the open bin.
    fn open_bin(&mut self, time_ns: u64) {
        if time_ns < self.end_ns {
            return;
        }
        if self.end_ns > 0 {
            self.close();
            let skipped = (time_ns - self.end_ns) / self.width_ns;
            self.bins += skipped;
            self.empty += skipped;
        }
        self.end_ns = time_ns - time_ns % self.width_ns + self.width_ns;
    }

    fn close(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.bins += 1;
        if bytes == 0 {
            self.empty += 1;
            return;
        }
        self.total_bytes += bytes;
        self.max_bytes = self.max_bytes.max(bytes);
        self.above += u64::from(self.above_bytes.is_some_and(|most| bytes > most));
        self.filled.record(bytes);
    }

    fn rates(mut self) -> BinRates {
        if self.end_ns == 0 {
            return BinRates::default();
        }
        self.close();
        let bps = |bytes: f64| bytes * 8e9 / self.width_ns as f64;
        // Quantile over all bins, of which the empty ones rank first.
        let quantile = |share: f64| {
            let rank = share * self.bins as f64 - self.empty as f64;
            if rank <= 0.0 {
                return 0.0;
            }
            let among = (rank / self.filled.total().max(1) as f64).min(1.0);
            bps(self.filled.quantile(among).unwrap_or(0).min(self.max_bytes) as f64)
        };
        BinRates {
            bins: self.bins,
            mean_bps: bps(self.total_bytes as f64 / self.bins as f64),
            p50_bps: quantile(0.5),
            p99_bps: quantile(0.99),
            max_bps: bps(self.max_bytes as f64),
            above: self.above_bytes.map(|_| self.above),
        }
    }
}

/// Start of the current train.
#[derive(Debug, Clone, Copy, Default)]
struct Train {
    first_ns: u64,
    /// Number of the station's frames before the train.
    frames: u64,
    /// The station's bytes up to and including the train's first frame.
    bytes: u64,
}

/// A source of frames: a MAC address on an interface.
#[derive(Debug, Clone)]
pub struct Station {
    /// Interface number in the capture.
    pub interface: u32,
    /// Source address of its frames; `None` where the link has none.
    pub mac: Option<[u8; 6]>,
    frames: u64,
    /// Bins of 1 ms, in which every frame is counted.
    fine: Bins,
    /// Bins of 10 ms. They get the bytes of a bin of `fine` when that is closed.
    coarse: Bins,
    last_ns: u64,
    gaps: [Histogram; 3],
    train: Train,
    train_gap_ns: u64,
    trains: Histogram,
    longest: u64,
    train_rates: Histogram,
    last_ack_ns: Option<u64>,
    ack_gaps: Histogram,
    acks: u64,
    framing: Framing,
    bursts: Option<Box<Bursts>>,
}

impl Station {
    /// Creates a station without frames.
    pub fn new(interface: u32, mac: Option<[u8; 6]>, train_gap_ns: u64, above_bps: Option<u64>) -> Self {
        Self {
            interface,
            mac,
            frames: 0,
            fine: Bins::new(MILLISECOND_NS, above_bps),
            coarse: Bins::new(10 * MILLISECOND_NS, above_bps),
            last_ns: 0,
            gaps: CLASSES.map(|_| Histogram::new()),
            train: Train::default(),
            train_gap_ns,
            trains: Histogram::new(),
            longest: 0,
            train_rates: Histogram::new(),
            last_ack_ns: None,
            ack_gaps: Histogram::new(),
            acks: 0,
            framing: Framing::default(),
            bursts: above_bps.map(|above_bps| Box::new(Bursts::new(above_bps))),
        }
    }

    /// Accounts for a frame that the network duplicated, known only at the end: its time is that of an earlier bin.
    pub fn add_duplicate(&mut self, time_ns: u64, wire: u32) {
        if self.frames == 0 {
            self.frame(time_ns, wire, false);
        } else {
            self.frames += 1;
            self.fine.bytes += u64::from(wire);
        }
    }

    /// Accounts for a frame. Returns the gap to the previous one, nanoseconds.
    #[inline(always)]
    pub fn frame(&mut self, time_ns: u64, wire: u32, pure_ack: bool) -> Option<u64> {
        if time_ns >= self.fine.end_ns {
            self.open_bin(time_ns);
        }
        if let Some(bursts) = &mut self.bursts {
            bursts.frame(time_ns, wire);
        }
        let mut gap_ns = None;
        if self.frames == 0 {
            self.train = Train { first_ns: time_ns, frames: 0, bytes: u64::from(wire) };
        } else {
            let gap = time_ns.saturating_sub(self.last_ns);
            gap_ns = Some(gap);
            let class = usize::from(wire > CLASSES[0].1) + usize::from(wire > CLASSES[1].1);
            self.gaps[class].record(gap);
            if gap > self.train_gap_ns {
                self.end_train();
                let bytes = self.wire_bytes() + u64::from(wire);
                self.train = Train { first_ns: time_ns, frames: self.frames, bytes };
            }
        }
        self.frames += 1;
        self.fine.bytes += u64::from(wire);
        self.last_ns = time_ns;
        if pure_ack {
            self.acks += 1;
            self.framing.acknowledgement(time_ns);
            if let Some(last_ns) = self.last_ack_ns.replace(time_ns) {
                self.ack_gaps.record(time_ns.saturating_sub(last_ns));
            }
        }
        gap_ns
    }

    /// Returns the number of bytes so far.
    fn wire_bytes(&self) -> u64 {
        self.fine.total_bytes + self.fine.bytes
    }

    /// Opens the bins that contain a time after the end of the open one.
    #[cold]
    fn open_bin(&mut self, time_ns: u64) {
        self.coarse.bytes += self.fine.bytes;
        self.fine.open_bin(time_ns);
        self.coarse.open_bin(time_ns);
    }

    fn end_train(&mut self) {
        let train = self.train;
        let frames = self.frames - train.frames;
        if frames < 2 {
            return;
        }
        self.trains.record(frames);
        self.longest = self.longest.max(frames);
        let span_ns = self.last_ns.saturating_sub(train.first_ns);
        if frames >= MIN_TRAIN_FRAMES && span_ns > 0 {
            // In Mb/s, so that every link rate is far from the end of the histogram.
            self.train_rates.record((self.wire_bytes() - train.bytes).saturating_mul(8_000) / span_ns);
        }
    }

    /// Returns the station for the document; times are relative to `zero_ns`.
    pub fn document(mut self, interface: String, zero_ns: u64) -> TraceStation {
        self.end_train();
        let wire_bytes = self.wire_bytes();
        self.coarse.bytes += self.fine.bytes;
        let classes = CLASSES.iter().zip(&self.gaps).filter(|(_, gaps)| gaps.total() > 0);
        let gaps = classes.map(|(&(from_bytes, to_bytes), gaps)| GapClass {
            from_bytes,
            to_bytes,
            p50_ns: gaps.quantile(0.5).unwrap_or(0),
            p99_ns: gaps.quantile(0.99).unwrap_or(0),
            histogram: gaps.buckets(),
        });
        let gaps = gaps.collect();
        let trains = Trains {
            gap_ns: self.train_gap_ns,
            trains: self.trains.total(),
            p50_frames: self.trains.quantile(0.5).unwrap_or(0),
            p99_frames: self.trains.quantile(0.99).unwrap_or(0),
            longest_frames: self.longest,
            rate_bps: self.train_rates.quantile(0.5).map(|mbps| mbps as f64 * 1e6),
        };
        let (total, usual) = (self.ack_gaps.total(), self.ack_gaps.mode_from(MIN_ACK_GAP_NS));
        let period = self.framing.period();
        let ack_spacing = (total > 0).then(|| AckSpacing {
            acks: self.acks,
            bunched: self.ack_gaps.below(BUNCHED_NS) as f64 / total as f64,
            usual_gap_ns: usual.map(|(gap, _)| gap),
            usual_gap_share: usual.map(|(_, count)| count as f64 / total as f64),
            period_ns: period.map(|period| period.period_ns),
            period_confidence: period.map(|period| period.agreement),
            histogram: self.ack_gaps.buckets(),
        });
        let mac = self.mac.map(|mac| mac.map(|byte| format!("{byte:02x}")).join(":"));
        TraceStation {
            interface,
            mac,
            frames: self.frames,
            wire_bytes,
            per_1ms: self.fine.rates(),
            per_10ms: self.coarse.rates(),
            gaps,
            trains,
            microbursts: self.bursts.map(|bursts| bursts.document(zero_ns)),
            ack_spacing,
        }
    }
}
