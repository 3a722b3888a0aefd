//! What each kind counts besides: the kernel's structures, field by field; what an older kernel lacks is 0.

use super::super::configure::Probability;
use super::super::parse::{each_attribute, u32_at, u64_at};

// linux/pkt_sched.h
const TCA_CAKE_STATS_MEMORY_LIMIT: u16 = 3;
const TCA_CAKE_STATS_MEMORY_USED: u16 = 4;
const TCA_CAKE_STATS_TIN_STATS: u16 = 10;
const TCA_CAKE_TIN_STATS_SENT_PACKETS: u16 = 2;
const TCA_CAKE_TIN_STATS_DROPPED_PACKETS: u16 = 4;
const TCA_CAKE_TIN_STATS_ACKS_DROPPED_PACKETS: u16 = 6;
const TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS: u16 = 8;
const TCA_CAKE_TIN_STATS_BACKLOG_BYTES: u16 = 11;
const TCA_CAKE_TIN_STATS_PEAK_DELAY_US: u16 = 18;
const TCA_CAKE_TIN_STATS_AVG_DELAY_US: u16 = 19;

/// `struct tc_red_xstats`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RedReading {
    /// Dropped early.
    pub early_drops: u32,
    /// Dropped at the limit.
    pub limit_drops: u32,
    /// Dropped for other reasons.
    pub other_drops: u32,
    /// Marked.
    pub marked: u32,
}

/// `struct tc_codel_xstats`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodelReading {
    /// Largest packet so far, bytes.
    pub packet_bytes_max: u32,
    /// Drops since the dropping state was entered.
    pub count: u32,
    /// The same at the last entry.
    pub last_count: u32,
    /// How long the packet sent last had waited, µs.
    pub delay_us: u32,
    /// When the next packet is dropped, µs from now; may be negative.
    pub drop_next_us: i32,
    /// How often the limit was hit.
    pub limit_drops: u32,
    /// Marked instead of dropped.
    pub marked: u32,
    /// In the dropping state.
    pub dropping: bool,
    /// Marked by the threshold.
    pub threshold_marked: u32,
}

/// `struct tc_fq_codel_qd_stats`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FqCodelReading {
    /// Largest packet so far, bytes.
    pub packet_bytes_max: u32,
    /// How often the limit was hit.
    pub limit_drops: u32,
    /// Marked instead of dropped.
    pub marked: u32,
    /// How often a packet began a new flow.
    pub new_flows_total: u32,
    /// New flows with packets waiting.
    pub new_flows: u32,
    /// Old flows with packets waiting.
    pub old_flows: u32,
    /// Marked by the threshold.
    pub threshold_marked: u32,
    /// Kernel memory held, bytes.
    pub memory_bytes: u32,
    /// Dropped because of the memory limit.
    pub memory_drops: u32,
}

/// `struct tc_pie_xstats`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PieReading {
    /// Drop probability.
    pub probability: Probability,
    /// Delay, µs.
    pub delay_us: u32,
    /// Packets that came.
    pub packets_in: u32,
    /// Dropped by probability.
    pub early_drops: u32,
    /// Dropped at the limit.
    pub limit_drops: u32,
    /// Longest queue so far, packets.
    pub queue_packets_max: u32,
    /// Marked instead of dropped.
    pub marked: u32,
}

/// `struct tc_fq_pie_xstats`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FqPieReading {
    /// Packets that came.
    pub packets_in: u32,
    /// Dropped by probability.
    pub early_drops: u32,
    /// Dropped at the limit.
    pub limit_drops: u32,
    /// Dropped because of the memory limit.
    pub memory_drops: u32,
    /// Marked instead of dropped.
    pub marked: u32,
    /// How often a packet began a new flow.
    pub new_flows_total: u32,
    /// New flows with packets waiting.
    pub new_flows: u32,
    /// Old flows with packets waiting.
    pub old_flows: u32,
    /// Kernel memory held, bytes.
    pub memory_bytes: u32,
}

/// `struct tc_fq_qd_stats`; what an older kernel does not have is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FqReading {
    /// Flows forgotten to save memory.
    pub flows_collected: u64,
    /// How often a flow was held back for its pacing.
    pub throttled: u64,
    /// Dropped at the limit of one flow.
    pub flow_limit_drops: u64,
    /// Packets too long for their rate.
    pub packets_too_long: u64,
    /// Dropped for want of memory.
    pub allocation_errors: u64,
    /// When the next held-back flow is due, ns from now.
    pub next_flow_ns: i64,
    /// Flows known.
    pub flows: u32,
    /// Flows without packets.
    pub flows_inactive: u32,
    /// Flows held back.
    pub flows_throttled: u32,
    /// Lateness of its timer, ns (a moving average).
    pub unthrottle_latency_ns: u32,
    /// Marked by the threshold.
    pub threshold_marked: u64,
    /// Dropped beyond the horizon.
    pub horizon_drops: u64,
    /// Sent at the horizon.
    pub horizon_caps: u64,
    /// Sent without touching a flow, the queue being empty.
    pub fastpath_packets: u64,
    /// Dropped at the limit of a priority band.
    pub band_drops: [u64; 3],
    /// Packets waiting in each band.
    pub band_packets: [u32; 3],
}

/// What `cake` counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CakeReading {
    /// Most kernel memory it may hold, bytes.
    pub memory_limit_bytes: u32,
    /// Most it has held, bytes.
    pub memory_bytes_max: u32,
    /// How many of `tins` are in use.
    pub tins_used: u8,
    /// Its classes of traffic.
    pub tins: [CakeTin; 8],
}

/// One class of traffic of `cake`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CakeTin {
    /// Packets sent.
    pub packets: u32,
    /// Packets dropped.
    pub drops: u32,
    /// Acknowledgements dropped by the filter.
    pub ack_drops: u32,
    /// Packets marked.
    pub marked: u32,
    /// Bytes waiting.
    pub backlog_bytes: u32,
    /// Peak of the delay, µs (a moving average that rises fast).
    pub delay_us_peak: u32,
    /// Delay, µs (a moving average).
    pub delay_us_mean: u32,
}

/// `struct tc_netem_xstats`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetemReading {
    /// Delayed.
    pub delayed: u64,
    /// Lost by the loss model; a full queue is not among them, and neither in `drops` is one whose duplicate passed.
    pub lost: u64,
    /// Corrupted.
    pub corrupted: u64,
    /// Duplicated.
    pub duplicated: u64,
    /// Sent out of order.
    pub reordered: u64,
    /// Marked instead of lost.
    pub marked: u64,
    /// Failed for want of memory.
    pub allocation_errors: u64,
}

/// The words of a structure, 0 past its end.
fn words(value: &[u8]) -> impl Fn(usize) -> u32 {
    move |i| u32_at(value, 4 * i).unwrap_or(0)
}

impl RedReading {
    pub(super) fn parse(value: &[u8]) -> Self {
        let word = words(value);
        Self { early_drops: word(0), limit_drops: word(1), other_drops: word(2), marked: word(3) }
    }
}

impl CodelReading {
    pub(super) fn parse(value: &[u8]) -> Self {
        let word = words(value);
        Self {
            packet_bytes_max: word(0),
            count: word(1),
            last_count: word(2),
            delay_us: word(3),
            drop_next_us: word(4) as i32,
            limit_drops: word(5),
            marked: word(6),
            dropping: word(7) != 0,
            threshold_marked: word(8),
        }
    }
}

impl FqCodelReading {
    pub(super) fn parse(value: &[u8]) -> Self {
        let word = words(value);
        Self {
            packet_bytes_max: word(0),
            limit_drops: word(1),
            marked: word(2),
            new_flows_total: word(3),
            new_flows: word(4),
            old_flows: word(5),
            threshold_marked: word(6),
            memory_bytes: word(7),
            memory_drops: word(8),
        }
    }
}

impl PieReading {
    /// prob (u64), delay, avg_dq_rate, dq_rate_estimating, packets_in, dropped, overlimit, maxq, ecn_mark.
    pub(super) fn parse(value: &[u8]) -> Self {
        let word = words(value);
        Self {
            // The kernel's has 64 bits.
            probability: Probability::from_bits((u64_at(value, 0).unwrap_or(0) >> 32) as u32),
            delay_us: word(2),
            packets_in: word(5),
            early_drops: word(6),
            limit_drops: word(7),
            queue_packets_max: word(8),
            marked: word(9),
        }
    }
}

impl FqPieReading {
    pub(super) fn parse(value: &[u8]) -> Self {
        let word = words(value);
        Self {
            packets_in: word(0),
            early_drops: word(1),
            limit_drops: word(2),
            memory_drops: word(3),
            marked: word(4),
            new_flows_total: word(5),
            new_flows: word(6),
            old_flows: word(7),
            memory_bytes: word(8),
        }
    }
}

impl FqReading {
    /// Eight u64 (the second and third obsolete), four u32, then u64 and the bands.
    pub(super) fn parse(value: &[u8]) -> Self {
        let word = words(value);
        let long = |at: usize| u64_at(value, at).unwrap_or(0);
        Self {
            flows_collected: long(0),
            throttled: long(24),
            flow_limit_drops: long(32),
            packets_too_long: long(40),
            allocation_errors: long(48),
            next_flow_ns: long(56) as i64,
            flows: word(16),
            flows_inactive: word(17),
            flows_throttled: word(18),
            unthrottle_latency_ns: word(19),
            threshold_marked: long(80),
            horizon_drops: long(88),
            horizon_caps: long(96),
            fastpath_packets: long(104),
            band_drops: [long(112), long(120), long(128)],
            band_packets: [word(34), word(35), word(36)],
        }
    }
}

impl CakeReading {
    pub(super) fn parse(value: &[u8]) -> Self {
        let mut reading = Self::default();
        for (kind, value) in each_attribute(value) {
            match kind {
                TCA_CAKE_STATS_MEMORY_LIMIT => reading.memory_limit_bytes = words(value)(0),
                TCA_CAKE_STATS_MEMORY_USED => reading.memory_bytes_max = words(value)(0),
                TCA_CAKE_STATS_TIN_STATS => {
                    for ((_, tin), to) in each_attribute(value).zip(&mut reading.tins) {
                        *to = CakeTin::parse(tin);
                        reading.tins_used += 1;
                    }
                }
                _ => {}
            }
        }
        reading
    }
}

impl CakeTin {
    pub(super) fn parse(value: &[u8]) -> Self {
        let mut tin = Self::default();
        for (kind, value) in each_attribute(value) {
            let to = match kind {
                TCA_CAKE_TIN_STATS_SENT_PACKETS => &mut tin.packets,
                TCA_CAKE_TIN_STATS_DROPPED_PACKETS => &mut tin.drops,
                TCA_CAKE_TIN_STATS_ACKS_DROPPED_PACKETS => &mut tin.ack_drops,
                TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS => &mut tin.marked,
                TCA_CAKE_TIN_STATS_BACKLOG_BYTES => &mut tin.backlog_bytes,
                TCA_CAKE_TIN_STATS_PEAK_DELAY_US => &mut tin.delay_us_peak,
                TCA_CAKE_TIN_STATS_AVG_DELAY_US => &mut tin.delay_us_mean,
                _ => continue,
            };
            *to = words(value)(0);
        }
        tin
    }
}

impl NetemReading {
    pub(super) fn parse(value: &[u8]) -> Self {
        let long = |i: usize| u64_at(value, 8 * i).unwrap_or(0);
        Self {
            delayed: long(0),
            lost: long(1),
            corrupted: long(2),
            duplicated: long(3),
            reordered: long(4),
            marked: long(5),
            allocation_errors: long(6),
        }
    }
}
