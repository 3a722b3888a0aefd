//! All packets of a series in time buckets; neighbours are merged when there are too many.

use landspeed_model::TraceBuckets;

use super::event::{Event, PacketKind};
use crate::row::Class;

/// Initial bucket width, nanoseconds.
const MIN_BUCKET_NS: u64 = 1_024;
/// Maximum number of buckets per series.
const MAX_BUCKETS: usize = 8_192;

/// Number of values, and their range.
#[derive(Debug, Clone, Copy, Default)]
struct ValueRange {
    count: u32,
    low: i64,
    high: i64,
}

impl ValueRange {
    fn add(&mut self, low: i64, high: i64) {
        *self = if self.count == 0 {
            Self { count: 1, low, high }
        } else {
            Self { count: self.count.saturating_add(1), low: self.low.min(low), high: self.high.max(high) }
        };
    }

    fn join(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        let count = self.count.saturating_add(other.count);
        self.add(other.low, other.high);
        self.count = count;
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    at: u64,
    data: ValueRange,
    retransmits: ValueRange,
    late: ValueRange,
    ack: ValueRange,
    edge: ValueRange,
    sack: ValueRange,
    rtt: ValueRange,
    duplicate_acks: u32,
    in_flight_max: u64,
}

impl Bucket {
    fn join(&mut self, other: &Self) {
        self.data.join(other.data);
        self.retransmits.join(other.retransmits);
        self.late.join(other.late);
        self.ack.join(other.ack);
        self.edge.join(other.edge);
        self.sack.join(other.sack);
        self.rtt.join(other.rtt);
        self.duplicate_acks = self.duplicate_acks.saturating_add(other.duplicate_acks);
        self.in_flight_max = self.in_flight_max.max(other.in_flight_max);
    }
}

/// Buckets in order of time.
#[derive(Debug, Clone)]
pub struct Buckets {
    width_ns: u64,
    buckets: Vec<Bucket>,
}

impl Default for Buckets {
    fn default() -> Self {
        Self { width_ns: MIN_BUCKET_NS, buckets: Vec::new() }
    }
}

impl Buckets {
    /// Adds an event. An event earlier than the latest bucket counts in that bucket.
    #[inline]
    pub fn take(&mut self, event: &Event<'_>, in_flight: u64) {
        let at = event.since_ns / self.width_ns;
        if self.buckets.last().is_none_or(|last| last.at < at) {
            if self.buckets.len() >= MAX_BUCKETS {
                self.merge_pairs();
                return self.take(event, in_flight);
            }
            self.buckets.push(Bucket { at, ..Bucket::default() });
        }
        let Some(bucket) = self.buckets.last_mut() else { return };
        bucket.in_flight_max = bucket.in_flight_max.max(in_flight);
        match event.what {
            PacketKind::Data { class, start, end, .. } => {
                let extent = if class.is_retransmission() {
                    &mut bucket.retransmits
                } else if matches!(class, Class::OutOfOrder | Class::Copy) {
                    &mut bucket.late
                } else {
                    &mut bucket.data
                };
                extent.add(start, end);
            }
            PacketKind::Ack { ack, window, duplicate, sack, rtt_ns } => {
                bucket.ack.add(ack, ack);
                let edge = ack.saturating_add_unsigned(window);
                bucket.edge.add(edge, edge);
                bucket.duplicate_acks = bucket.duplicate_acks.saturating_add(u32::from(duplicate));
                for (index, &(low, high)) in sack.iter().enumerate() {
                    bucket.sack.add(low, high);
                    bucket.sack.count -= u32::from(index > 0);
                }
                if let Some(rtt_ns) = rtt_ns {
                    let rtt_ns = rtt_ns.min(i64::MAX as u64) as i64;
                    bucket.rtt.add(rtt_ns, rtt_ns);
                }
            }
            PacketKind::Reset => {}
        }
    }

    fn merge_pairs(&mut self) {
        self.width_ns *= 2;
        let mut joined: Vec<Bucket> = Vec::with_capacity(self.buckets.len());
        for bucket in &self.buckets {
            let at = bucket.at / 2;
            match joined.last_mut() {
                Some(last) if last.at == at => last.join(bucket),
                _ => joined.push(Bucket { at, ..*bucket }),
            }
        }
        self.buckets = joined;
    }

    /// Returns the bucket width, nanoseconds, and the buckets for the document.
    pub fn document(&self) -> (u64, TraceBuckets) {
        fn column<T>(buckets: &[Bucket], of: impl Fn(&Bucket) -> T) -> Vec<T> {
            buckets.iter().map(of).collect()
        }
        let mut all = self.buckets.clone();
        // Empty values repeat the previous ones, which keeps the differences short.
        let mut last = Bucket::default();
        for bucket in &mut all {
            let before = [last.data, last.retransmits, last.late, last.ack, last.edge, last.sack, last.rtt];
            let now = [
                &mut bucket.data,
                &mut bucket.retransmits,
                &mut bucket.late,
                &mut bucket.ack,
                &mut bucket.edge,
                &mut bucket.sack,
                &mut bucket.rtt,
            ];
            for (now, before) in now.into_iter().zip(before) {
                if now.count == 0 {
                    *now = ValueRange { count: 0, ..before };
                }
            }
            last = *bucket;
        }
        let all = &all;
        let document = TraceBuckets {
            at: column(all, |b| b.at),
            data: column(all, |b| b.data.count),
            data_low: column(all, |b| b.data.low),
            data_high: column(all, |b| b.data.high),
            retransmits: column(all, |b| b.retransmits.count),
            retransmits_low: column(all, |b| b.retransmits.low),
            retransmits_high: column(all, |b| b.retransmits.high),
            late: column(all, |b| b.late.count),
            late_low: column(all, |b| b.late.low),
            late_high: column(all, |b| b.late.high),
            acks: column(all, |b| b.ack.count),
            duplicate_acks: column(all, |b| b.duplicate_acks),
            ack_low: column(all, |b| b.ack.low),
            ack_high: column(all, |b| b.ack.high),
            edge_low: column(all, |b| b.edge.low),
            edge_high: column(all, |b| b.edge.high),
            sacks: column(all, |b| b.sack.count),
            sack_low: column(all, |b| b.sack.low),
            sack_high: column(all, |b| b.sack.high),
            in_flight_max: column(all, |b| b.in_flight_max),
            rtts: column(all, |b| b.rtt.count),
            rtt_min_ns: column(all, |b| b.rtt.low.unsigned_abs()),
            rtt_max_ns: column(all, |b| b.rtt.high.unsigned_abs()),
        };
        (self.width_ns, document)
    }
}
