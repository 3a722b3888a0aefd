//! The queues, watched: one thread reads all of them on a fixed grid of virtual time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_model::{QueueRole, QueueSeries};
use landspeed_sys::clock;
use landspeed_sys::netlink::{Details, QdiscReading};

use super::network::{Network, sample};
use super::report::{QueueReport, SERIES_POINTS};
use crate::plan::Plan;

/// Wires hold what is under way; they are read this much more seldom.
const WIRE_EVERY: u64 = 10;

/// One queue while it is watched.
struct Watched {
    node: usize,
    port: usize,
    interface: u32,
    wire: bool,
    /// Bytes waiting, at each sample.
    backlog: Vec<u32>,
    /// Drops and bytes so far, at each sample.
    totals: Vec<(u64, u64)>,
    details: Details,
}

/// Reads every queue until the run is over.
pub fn watch(plan: &Plan, network: &Network, zero_ns: u64, over: &AtomicBool) -> Result<Vec<QueueReport>, String> {
    let mut queues = Vec::new();
    for (node, it) in plan.nodes.iter().enumerate() {
        for (port, at) in it.ports.iter().enumerate() {
            queues.push(Watched {
                node,
                port,
                interface: network.interface(node, port),
                wire: at.egress.role == QueueRole::Wire,
                backlog: Vec::new(),
                totals: Vec::new(),
                details: Details::None,
            });
        }
    }
    let mut readings: Vec<QdiscReading> = Vec::new();
    let mut round = 0;
    clock::sleep_until(zero_ns);
    while !over.load(Ordering::Relaxed) {
        let mut at = 0;
        while at < queues.len() {
            let node = queues[at].node;
            let end = at + queues[at..].iter().take_while(|q| q.node == node).count();
            if !queues[at].wire || round % WIRE_EVERY == 0 {
                network.socket(node).qdiscs_all(&mut readings).map_err(|e| e.to_string())?;
                queues[at..end].iter_mut().for_each(|queue| queue.take(&readings));
            }
            at = end;
        }
        round += 1;
        clock::sleep_until(zero_ns + round * plan.sample_ns);
    }
    Ok(queues.into_iter().map(|queue| queue.report(plan.sample_ns)).collect())
}

impl Watched {
    /// What is inside the shaper, or the whole where nothing is.
    fn take(&mut self, readings: &[QdiscReading]) {
        let mine = || readings.iter().filter(|r| r.ifindex == self.interface);
        let Some(reading) = mine()
            .find(|r| !self.wire && !sample(r).root && r.handle >> 16 == 2)
            .or_else(|| mine().find(|r| sample(r).root))
        else {
            return;
        };
        self.backlog.push(reading.backlog_bytes);
        self.totals.push((reading.drops.into(), reading.bytes));
        self.details = reading.details;
    }

    fn report(self, sample_ns: u64) -> QueueReport {
        let interval_ns = if self.wire { sample_ns * WIRE_EVERY } else { sample_ns };
        let mut sorted = self.backlog.clone();
        sorted.sort_unstable();
        let quantile = |share: f64| {
            let at = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
            sorted.get(at).copied().map_or(0, u64::from)
        };
        QueueReport {
            node: self.node,
            port: self.port,
            samples: self.backlog.len() as u64,
            peak_bytes: sorted.last().copied().map_or(0, u64::from),
            backlog_sum: self.backlog.iter().map(|&bytes| u64::from(bytes)).sum(),
            busy: self.backlog.iter().filter(|&&bytes| bytes > 0).count() as u64,
            backlog_quantiles: (quantile(0.5), quantile(0.99)),
            series: thin(&self.backlog, &self.totals, interval_ns),
            detail: detail(&self.details),
        }
    }
}

/// At most [`SERIES_POINTS`] points; nothing that was seen waiting or dropped falls between them.
fn thin(backlog: &[u32], totals: &[(u64, u64)], sample_ns: u64) -> QueueSeries {
    let width = backlog.len().div_ceil(SERIES_POINTS).max(1);
    let mut series = QueueSeries { interval_ns: sample_ns * width as u64, ..QueueSeries::default() };
    let mut before = totals.first().copied().unwrap_or_default();
    for (backlog, totals) in backlog.chunks(width).zip(totals.chunks(width)) {
        let last = totals.last().copied().unwrap_or(before);
        series.backlog_bytes_max.push(backlog.iter().copied().max().unwrap_or(0).into());
        series.drops.push(last.0.saturating_sub(before.0));
        series.bytes.push(last.1.saturating_sub(before.1));
        before = last;
    }
    series
}

fn detail(details: &Details) -> BTreeMap<String, u64> {
    let pairs: &[(&str, u64)] = match details {
        Details::Red(r) => &[
            ("early_drops", r.early_drops.into()),
            ("limit_drops", r.limit_drops.into()),
            ("marked", r.marked.into()),
        ],
        Details::Codel(r) => &[("limit_drops", r.limit_drops.into()), ("marked", r.marked.into())],
        Details::FqCodel(r) => &[
            ("limit_drops", r.limit_drops.into()),
            ("marked", r.marked.into()),
            ("memory_drops", r.memory_drops.into()),
        ],
        Details::Pie(r) => &[
            ("early_drops", r.early_drops.into()),
            ("limit_drops", r.limit_drops.into()),
            ("marked", r.marked.into()),
        ],
        Details::Fq(r) => {
            &[("throttled", r.throttled), ("flow_limit_drops", r.flow_limit_drops), ("marked", r.threshold_marked)]
        }
        _ => &[],
    };
    pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_loses_no_peak_and_no_drop() {
        let backlog: Vec<u32> = (0..5000).map(|i| if i == 1234 { 900 } else { i % 7 }).collect();
        let totals: Vec<(u64, u64)> = (0..5000).map(|i| (i / 10, i * 100)).collect();
        let series = thin(&backlog, &totals, 1_000_000);
        assert!(series.backlog_bytes_max.len() <= SERIES_POINTS);
        assert_eq!(series.interval_ns, 5_000_000);
        assert_eq!(series.backlog_bytes_max.iter().max(), Some(&900));
        assert_eq!(series.drops.iter().sum::<u64>(), 499);
        assert_eq!(series.bytes.iter().sum::<u64>(), 499_900);
    }
}
