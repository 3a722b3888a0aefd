//! Prediction of the memory that the frames of a path need.

use crate::path::{DirectionPlan, QueuePlan};

/// Header size of a stored frame with alignment, bytes; at most the size of preamble, FCS and gap.
pub const SLOT_HEADER_BYTES: usize = 16;
/// Minimum frame length without FCS, bytes.
const MIN_FRAME_BYTES: u64 = 60;
/// Margin for frames being received and sent, bytes.
const MARGIN_BYTES: u64 = 1 << 20;

/// Memory that a direction needs, and its components.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StorePrediction {
    /// Bytes in flight: peak rate × delay, over all links.
    pub flight_bytes: u64,
    /// Bytes in queues that are at their limits.
    pub queue_bytes: u64,
    /// Total, with headers for minimum-size frames and the margin.
    pub total_bytes: u64,
}

/// Predicts the maximum memory for the frames of one direction.
pub fn predict_store(plan: &DirectionPlan) -> StorePrediction {
    let mut prediction = StorePrediction::default();
    let frame = u64::from(plan.frame_bytes);
    for (index, hop) in plan.hops.iter().enumerate() {
        let changes = || plan.changes().iter().filter(|change| change.hop == index).map(|planned| &planned.change);
        // Four standard deviations of a normal distribution.
        let spreads = changes().filter_map(|change| change.jitter).chain(hop.wire.jitter);
        let spread_ns = spreads.map(|(spread_ns, _)| spread_ns.saturating_mul(4)).max().unwrap_or(0);
        let delays = changes().filter_map(|change| change.delay_ns);
        let delay_ns = delays.fold(hop.wire.delay_ns, u64::max).saturating_add(spread_ns);
        let peak_bps = changes().filter_map(|change| change.rate_bps).fold(hop.schedule.peak_bps(delay_ns), u64::max);
        let bits = u128::from(peak_bps) * u128::from(delay_ns) / 1_000_000_000;
        prediction.flight_bytes = prediction.flight_bytes.saturating_add((bits / 8) as u64);
        let bytes_of = |queue: QueuePlan| match queue {
            QueuePlan::Bytes(limit) => limit,
            QueuePlan::Red(settings) => settings.limit_bytes,
            QueuePlan::Packets(packets) | QueuePlan::Codel { packets, .. } | QueuePlan::Pie { packets, .. } => {
                packets as u64 * frame
            }
            // Frames are freed in order, so the oldest frame of a slow flow blocks the memory of later ones.
            QueuePlan::FqCodel { packets, .. } => 2 * packets as u64 * frame,
        };
        let queue = changes().filter_map(|change| change.queue).map(bytes_of).fold(bytes_of(hop.queue), u64::max);
        prediction.queue_bytes = prediction.queue_bytes.saturating_add(queue + frame);
    }
    // Minimum-size frames need the most: 60 bytes and a header of 16, rounded up.
    let slot = (MIN_FRAME_BYTES + SLOT_HEADER_BYTES as u64).next_multiple_of(16);
    let with_headers = |bytes: u64| (u128::from(bytes) * u128::from(slot) / u128::from(MIN_FRAME_BYTES)) as u64;
    let framed = plan.hops.iter().all(|hop| hop.framing.bytes() > 0);
    let flight = if framed { prediction.flight_bytes } else { with_headers(prediction.flight_bytes) };
    prediction.total_bytes = flight.saturating_add(with_headers(prediction.queue_bytes)).saturating_add(MARGIN_BYTES);
    prediction
}
