//! Patterns in the counters of all streams over the steady phase: the window at which losses occur, and how
//! evenly data is delivered.

use landspeed_model::TcpInfo;

use crate::flow::Flow;
use crate::host::mean;
use crate::stream::flight_segments;
use crate::thresholds::{FEW_CEILINGS, FEW_PEAKS, MIN_SAMPLES};

/// Losses and deliveries over time; each field as in [`crate::network::Symptoms`].
#[derive(Debug, Default)]
pub(crate) struct Pattern {
    pub ceiling: Option<f64>,
    pub peaks_spread: Option<f64>,
    pub flight_rank: Option<f64>,
    pub delivery_spread: Option<f64>,
    pub burstiness: Option<f64>,
    pub lossy_share: f64,
    pub late_losses: usize,
}

impl Pattern {
    /// Computes the patterns from the samples of the steady phase.
    pub(crate) fn new(flow: &Flow) -> Self {
        let count = flow.streams.iter().map(|stream| stream.tcp().count()).min().unwrap_or(0);
        let total = |of: &dyn Fn(&TcpInfo) -> f64| -> Vec<f64> {
            let mut sums = vec![0.0; count];
            for stream in &flow.streams {
                sums.iter_mut().zip(stream.tcp()).for_each(|(sum, tcp)| *sum += of(tcp));
            }
            sums
        };
        let retransmits = total(&|tcp| f64::from(tcp.total_retrans));
        let losses: Vec<usize> = (1..count).filter(|&at| retransmits[at] > retransmits[at - 1]).collect();
        let late_losses = losses.iter().filter(|&&at| at >= count / 4).count();
        if count < MIN_SAMPLES {
            return Self { late_losses, ..Self::default() };
        }
        let rates = total(&|tcp| tcp.delivery_rate_bytes_per_s.unwrap_or(0) as f64);
        let windows = total(&|tcp| f64::from(tcp.snd_cwnd));
        let peaks: Vec<f64> = losses
            .iter()
            .filter(|&&at| windows[at] < 0.95 * windows[at.saturating_sub(2)])
            .map(|&at| windows[at.saturating_sub(2)..=at].iter().copied().fold(0.0, f64::max))
            .collect();
        Self {
            ceiling: ceiling(&rates, &losses),
            peaks_spread: if peaks.len() >= FEW_PEAKS { spread(&peaks) } else { None },
            flight_rank: flight_rank(&total(&flight_segments), &losses),
            delivery_spread: delivery_spread(flow, count),
            burstiness: burstiness(retransmits[count - 1] - retransmits[0], losses.len(), count - 1),
            lossy_share: losses.len() as f64 / (count - 1) as f64,
            late_losses,
        }
    }
}

/// Ratio of the median delivery rate at losses to the highest (98th percentile).
fn ceiling(rates: &[f64], losses: &[usize]) -> Option<f64> {
    let mut at_losses: Vec<f64> = losses.iter().map(|&at| rates[at - 1].max(rates[at])).collect();
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    at_losses.sort_by(f64::total_cmp);
    let highest = sorted[rates.len() * 98 / 100];
    (at_losses.len() >= 5 && highest > 0.0).then(|| at_losses[at_losses.len() / 2] / highest)
}

fn flight_rank(flights: &[f64], losses: &[usize]) -> Option<f64> {
    let all: f64 = flights.iter().sum();
    // With losses in nearly every interval, none stands out.
    if losses.len() < FEW_CEILINGS || 2 * losses.len() > flights.len() || all <= 0.0 {
        return None;
    }
    let rank = |&at: &usize| {
        let before = flights[at - 1].max(flights[at.saturating_sub(2)]);
        flights.iter().filter(|&&flight| flight < before).sum::<f64>() / all
    };
    mean(losses.iter().map(rank))
}

/// Segments retransmitted per interval with losses, divided by the mean for independent (Poisson) losses
/// with the same number of such intervals.
fn burstiness(retransmits: f64, with_losses: usize, intervals: usize) -> Option<f64> {
    if with_losses == 0 || with_losses == intervals {
        return None;
    }
    let share = with_losses as f64 / intervals as f64;
    let expected = -(-share).ln_1p() / share;
    Some(retransmits / with_losses as f64 / expected)
}

/// Segments that left the sender's in-flight count (delivered). Kernels before 4.18 count only sent ones.
fn delivered_segments(tcp: &TcpInfo) -> Option<u32> {
    tcp.delivered.or(tcp.data_segs_out)
}

/// Coefficient of variation of the delivery rate between samples: segments delivered over time.
fn delivery_spread(flow: &Flow, count: usize) -> Option<f64> {
    let mut rates = vec![0.0; count - 1];
    for stream in &flow.streams {
        let mut sampled = stream.sent.iter().filter_map(|sample| Some((sample.t_ns, sample.tcp.as_deref()?)));
        let mut last = sampled.next()?;
        for (rate, now) in rates.iter_mut().zip(sampled) {
            let moved = delivered_segments(now.1)?.checked_sub(delivered_segments(last.1)?)?;
            *rate += f64::from(moved) / now.0.saturating_sub(last.0).max(1) as f64;
            last = now;
        }
    }
    spread(&rates)
}

/// Coefficient of variation: standard deviation over mean.
fn spread(values: &[f64]) -> Option<f64> {
    let mean_of = mean(values.iter().copied()).filter(|&mean| mean > 0.0)?;
    let square = mean(values.iter().map(|value| (value - mean_of).powi(2)))?;
    Some(square.sqrt() / mean_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_losses_are_not_bursts() {
        // Half of the intervals have losses: ln 2 losses per interval, 2 ln 2 per interval with losses.
        let independent = burstiness(100.0 * 2f64.ln(), 50, 100).unwrap();
        assert!((independent - 1.0).abs() < 1e-12, "{independent}");
        assert!(burstiness(500.0, 10, 100).unwrap() > 40.0);
        assert_eq!(burstiness(5.0, 0, 10), None);
        assert_eq!(burstiness(50.0, 10, 10), None);
    }

    #[test]
    fn flight_rank_separates_ceilings_from_random_loss() {
        let sawtooth: Vec<f64> = (0..60).map(|at| f64::from(50 + at % 20)).collect();
        let at_peaks: Vec<usize> = (1..60).filter(|at| at % 20 == 0).collect();
        assert_eq!(flight_rank(&sawtooth, &at_peaks), None);
        let longer: Vec<f64> = sawtooth.iter().chain(&sawtooth).copied().collect();
        let at_peaks: Vec<usize> = (1..120).filter(|at| at % 20 == 0).collect();
        assert!(flight_rank(&longer, &at_peaks).unwrap() > 0.9);
        let anywhere: Vec<usize> = (1..120).filter(|at| at % 7 == 0).collect();
        let rank = flight_rank(&longer, &anywhere).unwrap();
        assert!((0.4..0.65).contains(&rank), "{rank}");
    }
}
