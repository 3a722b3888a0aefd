//! How much memory the frames of a path can need.

use crate::path::{DirectionPlan, QueuePlan};

/// Bytes of the store besides a frame's own, with what aligning it takes: as many as preamble, FCS and gap.
pub const SLOT_HEADER_BYTES: usize = 16;
/// The shortest frame, bytes without FCS.
const LEAST_FRAME: u64 = 60;
/// Room for what is being received and sent, bytes.
const SLACK: u64 = 1 << 20;

/// The memory a direction needs, and its parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StorePrediction {
    /// Bytes in flight: the peak rate times the delay, over all links.
    pub flight_bytes: u64,
    /// Bytes in queues at their limits.
    pub queue_bytes: u64,
    /// Everything, with headers of the shortest frames and slack.
    pub total_bytes: u64,
}

/// Predicts the memory that the frames of one direction need at most.
pub fn predict_store(plan: &DirectionPlan) -> StorePrediction {
    let mut prediction = StorePrediction::default();
    let frame = u64::from(plan.frame_bytes);
    for hop in &plan.hops {
        // Four standard deviations of a normal delay.
        let spread_ns = hop.wire.jitter.map_or(0, |(spread_ns, _)| spread_ns.saturating_mul(4));
        let delay_ns = hop.wire.delay_ns.saturating_add(spread_ns);
        let bits = u128::from(hop.schedule.peak_bps(delay_ns)) * u128::from(delay_ns) / 1_000_000_000;
        prediction.flight_bytes = prediction.flight_bytes.saturating_add((bits / 8) as u64);
        let queue = match hop.queue {
            QueuePlan::Bytes(limit) => limit,
            QueuePlan::Red(settings) => settings.limit_bytes,
            QueuePlan::Packets(packets) | QueuePlan::Codel { packets, .. } | QueuePlan::Pie { packets, .. } => {
                packets as u64 * frame
            }
            // The oldest frame of a slow flow keeps what came after it.
            QueuePlan::FqCodel { packets, .. } => 2 * packets as u64 * frame,
        };
        prediction.queue_bytes = prediction.queue_bytes.saturating_add(queue + frame);
    }
    // The shortest frames need most: 60 bytes, a header of 16, rounded up.
    let slot = (LEAST_FRAME + SLOT_HEADER_BYTES as u64).next_multiple_of(16);
    let with_headers = |bytes: u64| (u128::from(bytes) * u128::from(slot) / u128::from(LEAST_FRAME)) as u64;
    let framed = plan.hops.iter().all(|hop| hop.framing.bytes() > 0);
    let flight = if framed { prediction.flight_bytes } else { with_headers(prediction.flight_bytes) };
    prediction.total_bytes = flight.saturating_add(with_headers(prediction.queue_bytes)).saturating_add(SLACK);
    prediction
}
