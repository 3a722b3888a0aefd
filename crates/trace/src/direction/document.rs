//! What a direction looks like in the document.

use landspeed_model::{TraceDirection, TraceRtt};

use super::Direction;
use crate::histogram::Histogram;

impl Direction {
    /// As the document says it.
    pub fn document(&self) -> TraceDirection {
        let rtt = &self.rtt;
        let quantile = |share| {
            let value = rtt.histogram.as_ref()?.quantile(share)?;
            // A bucket's middle may lie beside all that was seen.
            Some(value.clamp(rtt.min_ns, rtt.max_ns))
        };
        let mut limits = self.limits;
        limits.total_ns = limits.idle_ns + limits.recovery_ns + limits.receiver_window_ns + limits.sending_ns;
        let outstanding: u64 =
            self.holes.iter().map(|hole| hole.end.min(self.acked).saturating_sub(hole.start)).sum();
        TraceDirection {
            packets: self.packets,
            wire_bytes: self.wire_bytes,
            payload_bytes: self.payload_bytes,
            unique_bytes: self.unique_bytes,
            pure_acks: self.pure_acks,
            mss: self.mss,
            window_scale: self.announced_scale,
            sack_permitted: self.sack_permitted,
            timestamps: self.timestamps,
            closed: self.closed,
            retransmits: self.retransmits,
            out_of_order: u64::from(self.out_of_order),
            duplicates: u64::from(self.duplicates),
            missing_bytes: self.missing_bytes + outstanding,
            probes: u64::from(self.probes),
            duplicate_acks: self.duplicate_acks,
            dsacks: u64::from(self.dsacks),
            zero_windows: u64::from(self.zero_windows),
            window_min_bytes: self.window_min.map(u64::from),
            window_max_bytes: self.window_max.map(u64::from),
            in_flight_max_bytes: self.in_flight_max,
            packets_per_ack: (self.advancing_acks > 0).then(|| self.data_packets as f64 / self.advancing_acks as f64),
            stretch_acks: self.stretch_acks,
            rtt: (rtt.count > 0).then(|| TraceRtt {
                samples: rtt.count,
                min_ns: rtt.min_ns,
                mean_ns: rtt.sum_ns / rtt.count,
                p50_ns: quantile(0.5),
                p90_ns: quantile(0.9),
                p99_ns: quantile(0.99),
                max_ns: rtt.max_ns,
                histogram: rtt.histogram.as_ref().map(Histogram::buckets).unwrap_or_default(),
            }),
            limits: (limits.total_ns > 0).then_some(limits),
            numbered: None,
        }
    }
}
