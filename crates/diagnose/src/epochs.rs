//! Epochs of a flow: what limited the sender at which time.
//!
//! Between two samples a sender is in one state. If several apply, the order below decides: what stops the
//! sender comes before what slows it down.

use std::collections::BTreeMap;

use landspeed_model::{CongestionDetail, Epoch, EpochState, Sample, TcpInfo};

use crate::flow::Flow;
use crate::stream::flight_segments;
use crate::thresholds::{
    CWND_FULL, CWND_MOSTLY, KEPT_WAITING, MOSTLY_WAITS, NOTSENT_LITTLE, RATE_REACHED, SEND_EMPTY, SEND_FULL,
    STALL_RTTS, THREAD_BUSY, WAITING_SHARE, WINDOW_FULL,
};

/// Maximum number of spans listed per state.
const MAX_SPANS: usize = 64;
/// Time without an ACK that never counts as a stall, milliseconds: delayed ACKs and the minimum RTO take
/// 200 ms.
const NO_STALL_MS: f64 = 250.0;
/// Interval between two samples of a watched flow from which on its state is unknown, nanoseconds: `watch` reads it ten
/// times a second, unless it lacks CPU time.
const HELD_UP_NS: u64 = 1_000_000_000;
/// Gain of BBR's startup (2/ln 2 = 2.89; BBRv3 2.77); its probing gains are at most 1.25.
const STARTUP_GAIN: f64 = 2.0;

/// Returns the states of a flow from its first sample to the end of its steady phase.
pub(crate) fn epochs(flow: &Flow) -> Vec<Epoch> {
    let mut spans: Vec<(EpochState, u64, u64)> = Vec::new();
    for (from_ns, to_ns, state) in states(flow) {
        match spans.last_mut() {
            Some((last, _, end_ns)) if *last == state && *end_ns == from_ns => *end_ns = to_ns,
            _ => spans.push((state, from_ns, to_ns)),
        }
    }
    let mut by_state: BTreeMap<EpochState, Vec<(u64, u64)>> = BTreeMap::new();
    for (state, from_ns, to_ns) in spans {
        by_state.entry(state).or_default().push((from_ns, to_ns));
    }
    let times: Vec<u64> = by_state.values().map(|spans| spans.iter().map(|(from, to)| to - from).sum()).collect();
    let shares = permille(&times);
    let mut epochs: Vec<Epoch> = by_state
        .into_iter()
        .zip(times.into_iter().zip(shares))
        .map(|((state, mut spans_ns), (time_ns, share_permille))| {
            if spans_ns.len() > MAX_SPANS {
                spans_ns.sort_by_key(|(from, to)| std::cmp::Reverse(to - from));
                spans_ns.truncate(MAX_SPANS);
                spans_ns.sort_unstable();
            }
            Epoch { state, time_ns, share_permille, spans_ns }
        })
        .collect();
    epochs.sort_by_key(|epoch| std::cmp::Reverse(epoch.time_ns));
    epochs
}

/// Share of the samples in the steady phase in which BBR was in its startup phase; 0 if its state is not visible.
pub(crate) fn startup_share(flow: &Flow) -> f64 {
    let gains: Vec<bool> = (flow.streams.iter().flat_map(|stream| &stream.sent))
        .filter_map(|sample| {
            sample.congestion.as_ref().map(|CongestionDetail::Bbr { pacing_gain, .. }| *pacing_gain > STARTUP_GAIN)
        })
        .collect();
    gains.iter().filter(|&&starts| starts).count() as f64 / gains.len().max(1) as f64
}

/// Converts times to shares per thousand that add up to 1000 (largest remainder method).
fn permille(times: &[u64]) -> Vec<u32> {
    let total: u128 = times.iter().map(|&time| u128::from(time)).sum();
    if total == 0 {
        return vec![0; times.len()];
    }
    let whole = |time: u64| u128::from(time) * 1000;
    let mut shares: Vec<u32> = times.iter().map(|&time| (whole(time) / total) as u32).collect();
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(whole(times[at]) % total));
    let missing = 1000_usize.saturating_sub(shares.iter().sum::<u32>() as usize);
    for &at in order.iter().take(missing) {
        shares[at] += 1;
    }
    shares
}

/// State of most streams in each interval between samples of the first stream: start, end, state.
fn states(flow: &Flow) -> Vec<(u64, u64, EpochState)> {
    let series: Vec<Vec<&Sample>> = flow
        .streams
        .iter()
        .map(|stream| {
            let samples = stream.sender().map(|end| end.samples.as_slice()).unwrap_or_default();
            samples.iter().filter(|sample| sample.tcp.is_some() && sample.t_ns <= flow.span_ns.1).collect()
        })
        .collect();
    let Some(first) = series.first() else { return Vec::new() };
    let model_based = flow.is_model_based();
    first
        .windows(2)
        .filter(|pair| pair[1].t_ns > pair[0].t_ns)
        .map(|pair| {
            let mut votes: BTreeMap<EpochState, usize> = BTreeMap::new();
            for samples in &series {
                let at = samples.partition_point(|sample| sample.t_ns < pair[1].t_ns);
                let Some(next) = samples.get(at) else { continue };
                let Some(before) = at.checked_sub(1).and_then(|at| samples.get(at)) else { continue };
                *votes.entry(state(before, next, model_based, flow.observed)).or_default() += 1;
            }
            let most =
                votes.into_iter().max_by_key(|&(_, count)| count).map_or(EpochState::Unknown, |(state, _)| state);
            (pair[0].t_ns, pair[1].t_ns, most)
        })
        .collect()
}

/// State of one stream between two samples of its sender.
fn state(before: &Sample, next: &Sample, model_based: bool, observed: bool) -> EpochState {
    let (Some(was), Some(tcp)) = (before.tcp.as_deref(), next.tcp.as_deref()) else { return EpochState::Unknown };
    let elapsed_ns = next.t_ns.saturating_sub(before.t_ns);
    if observed && elapsed_ns > HELD_UP_NS {
        return EpochState::Unknown;
    }
    let elapsed_us = elapsed_ns as f64 / 1e3;
    let increase = |counter: &dyn Fn(&TcpInfo) -> Option<u64>| {
        counter(tcp).zip(counter(was)).and_then(|(now, then)| now.checked_sub(then)).map_or(0.0, |us| us as f64)
    };
    let silent_ms = f64::from(tcp.last_ack_recv_ms);
    if tcp.unacked > 0 && silent_ms > NO_STALL_MS.max(STALL_RTTS * f64::from(tcp.rtt_us) / 1e3) {
        return EpochState::Stalled;
    }
    if (2..=4).contains(&tcp.ca_state) {
        return EpochState::Recovery;
    }
    if increase(&|tcp| tcp.rwnd_limited_us) >= elapsed_us * MOSTLY_WAITS {
        return EpochState::ReceiveWindowLimited;
    }
    if increase(&|tcp| tcp.sndbuf_limited_us) >= elapsed_us * MOSTLY_WAITS {
        return EpochState::SendBufferLimited;
    }
    let worked = |of: &dyn Fn(&Sample) -> Option<u64>| {
        of(next).zip(of(before)).and_then(|(now, then)| now.checked_sub(then)).map_or(0.0, |ns| ns as f64 / 1e3)
    };
    let waited = worked(&|sample| sample.thread_wait_ns);
    let busy = worked(&|sample| sample.thread_cpu_ns) + waited >= elapsed_us * THREAD_BUSY;
    let fill = next.wmem_queued_bytes.zip(next.sndbuf_bytes).filter(|&(_, limit)| limit > 0);
    let fill = fill.map_or(1.0, |(queued, limit)| f64::from(queued) / f64::from(limit));
    // The same condition names the cause from one host.
    let in_flight = flight_segments(tcp) * f64::from(tcp.snd_mss_bytes);
    if observed
        && tcp.snd_wnd_bytes.is_some_and(|window| in_flight > 0.0 && in_flight >= WINDOW_FULL * f64::from(window))
    {
        return EpochState::ReceiveWindowLimited;
    }
    // A watched program may spin while its queue is full.
    if busy && (!observed || fill < SEND_EMPTY) {
        return EpochState::CpuLimited;
    }
    let unsent = tcp.notsent_bytes.map_or(0.0, f64::from);
    let queued = next.wmem_queued_bytes.map_or(f64::INFINITY, f64::from);
    // An empty queue has no waiting data.
    let empty = unsent == 0.0;
    let waits = !empty && (unsent >= NOTSENT_LITTLE || unsent >= WAITING_SHARE * queued);
    let filled = if tcp.snd_cwnd > 0 { flight_segments(tcp) / f64::from(tcp.snd_cwnd) } else { 0.0 };
    if !waits && fill < SEND_EMPTY && filled < CWND_MOSTLY {
        // A program that waits for a core is not slow.
        let starved = waited >= elapsed_us * KEPT_WAITING;
        return if starved { EpochState::CpuLimited } else { EpochState::ApplicationLimited };
    }
    // The condition that names the send buffer: `sndbuf_limited` misses it with CUBIC.
    if observed && fill >= SEND_FULL && !waits && filled < CWND_FULL {
        return EpochState::SendBufferLimited;
    }
    let paced = tcp.max_pacing_rate_bytes_per_s.zip(tcp.delivery_rate_bytes_per_s);
    if paced.is_some_and(|(limit, rate)| rate as f64 >= limit as f64 * RATE_REACHED * 0.95) {
        return EpochState::PacingLimited;
    }
    let starts = match &next.congestion {
        Some(CongestionDetail::Bbr { pacing_gain, .. }) => *pacing_gain > STARTUP_GAIN,
        None => !model_based && tcp.snd_cwnd < tcp.snd_ssthresh,
    };
    if starts {
        return EpochState::SlowStart;
    }
    if waits || filled >= CWND_MOSTLY {
        return EpochState::CwndLimited;
    }
    if fill >= SEND_FULL {
        return EpochState::SendBufferLimited;
    }
    EpochState::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epoch_shares_add_up_to_1000() {
        for times in [vec![1, 1, 1], vec![7], vec![u64::MAX / 2, 3, u64::MAX / 3], vec![0, 5, 0, 1]] {
            assert_eq!(permille(&times).iter().sum::<u32>(), 1000, "{times:?}");
        }
        assert_eq!(permille(&[0, 0]), [0, 0]);
        assert_eq!(permille(&[]), Vec::<u32>::new());
    }
}
