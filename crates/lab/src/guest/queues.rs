//! Sampling of the queues: one thread reads all of them at fixed intervals of virtual time.

use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_emulation::DirectionPlan;
use landspeed_model::{QueueRole, QueueSeries};
use landspeed_netlink::QdiscReading;
use landspeed_sys::clock;

use super::carry::{CarriedReading, Carriers};
use super::network::{Network, sample};
use super::report::{Drain, QueueReport, SERIES_POINTS};
use crate::plan::{Plan, PlannedCarrier, Role};
use crate::scenario::ETHERNET_HEADER;

/// Wires only hold packets in flight; they are sampled this many times less often.
const WIRE_SAMPLE_DIVISOR: u64 = 10;

/// A queue while it is sampled.
struct SampledQueue {
    node: usize,
    port: usize,
    interface: u32,
    wire: bool,
    line: LinkRate,
    /// Backlog at each sample, bytes.
    backlog: Vec<u32>,
    /// Backlog at each sample, bytes on the link (with the framing of each frame).
    on_link: Vec<u64>,
    /// Total drops and total bytes sent, at each sample.
    totals: Vec<(u64, u64)>,
    /// Total bytes sent on the link, with framing, at each sample.
    drained: Vec<u64>,
    reading: QdiscReading,
    /// Plan of the link after the queue, if it changes: its model has the queue.
    carried: Option<DirectionPlan>,
    /// Bytes, packets and drops of such a queue.
    carried_totals: (u64, u64, u64),
}

/// The link that a queue feeds.
#[derive(Debug, Clone, Copy)]
struct LinkRate {
    rate_bps: u64,
    /// Framing per frame on the link, bytes.
    overhead: u64,
    /// Largest frame, bytes.
    frame: u64,
    /// Whether a packet in this queue may be a super-packet of many frames.
    super_packets: bool,
}

impl LinkRate {
    /// Returns the bytes that packets take on the link.
    fn bytes(&self, bytes: u64, packets: u64) -> u64 {
        let frames = if self.super_packets { packets.max(bytes.div_ceil(self.frame)) } else { packets };
        bytes + frames * self.overhead
    }

    /// Returns the bytes that the link carries in a time.
    fn carries(&self, ns: u64) -> u64 {
        (u128::from(self.rate_bps) * u128::from(ns) / 8_000_000_000) as u64
    }
}

/// Samples every queue until the run is over.
pub fn watch(
    plan: &Plan,
    network: &Network,
    carriers: &Carriers,
    zero_ns: u64,
    over: &AtomicBool,
) -> Result<Vec<QueueReport>, String> {
    let mut queues = Vec::new();
    for (node, it) in plan.nodes.iter().enumerate().filter(|(_, node)| node.role != Role::Cpu) {
        for (port, at) in it.ports.iter().enumerate() {
            queues.push(SampledQueue {
                node,
                port,
                interface: network.interface(node, port),
                wire: at.egress.role == QueueRole::Wire,
                line: LinkRate {
                    rate_bps: at.egress.rate_bps,
                    overhead: u64::try_from(at.egress.overhead).unwrap_or(0),
                    frame: u64::from(at.mtu + ETHERNET_HEADER),
                    super_packets: at.egress.role == QueueRole::Host && at.gso_max_segs != Some(1),
                },
                backlog: Vec::new(),
                on_link: Vec::new(),
                totals: Vec::new(),
                drained: Vec::new(),
                reading: QdiscReading::default(),
                carried: carried_plan(plan, (node, port)),
                carried_totals: (0, 0, 0),
            });
        }
    }
    let mut readings: Vec<QdiscReading> = Vec::new();
    let mut round = 0;
    super::set_observer_policy();
    clock::sleep_until(zero_ns);
    while !over.load(Ordering::Relaxed) {
        carriers.cpus.record(round * plan.sample_ns);
        let mut at = 0;
        while at < queues.len() {
            let node = queues[at].node;
            let end = at + queues[at..].iter().take_while(|q| q.node == node).count();
            if !queues[at].wire || round % WIRE_SAMPLE_DIVISOR == 0 {
                network.socket(node).read_all_qdiscs(&mut readings).map_err(|e| e.to_string())?;
                for queue in &mut queues[at..end] {
                    let now_ns = zero_ns + round * plan.sample_ns;
                    match carriers.reading((queue.node, queue.port), now_ns.max(clock::monotonic_ns())) {
                        Some(carried) => queue.take_carried(&carried, now_ns - zero_ns),
                        None => queue.take(&readings),
                    }
                }
            }
            at = end;
        }
        round += 1;
        clock::sleep_until(zero_ns + round * plan.sample_ns);
    }
    Ok(queues.into_iter().map(|queue| queue.report(plan.sample_ns)).collect())
}

impl SampledQueue {
    /// Adds a sample of the qdisc inside the shaper, or of the root if there is none.
    fn take(&mut self, readings: &[QdiscReading]) {
        let mine = || readings.iter().filter(|r| r.ifindex == self.interface);
        let Some(reading) = mine()
            .find(|r| !self.wire && !sample(r).root && r.handle >> 16 == 2)
            .or_else(|| mine().find(|r| sample(r).root))
        else {
            return;
        };
        self.backlog.push(reading.backlog_bytes);
        self.on_link.push(self.line.bytes(reading.backlog_bytes.into(), reading.queue_packets.into()));
        self.drained.push(self.line.bytes(reading.bytes, reading.packets));
        self.totals.push((reading.drops.into(), reading.bytes));
        self.reading = *reading;
    }

    /// Adds a sample of a link that changes, or of the queue before it, at `t_ns` after the scenario's zero.
    fn take_carried(&mut self, reading: &CarriedReading, t_ns: u64) {
        let counters = &reading.counters;
        let (bytes, packets, drops, backlog) = if self.wire {
            (reading.delivered.1, reading.delivered.0, counters.lost + counters.down, 0)
        } else {
            let framing = counters.sent * self.line.overhead;
            let drops = counters.policed + counters.queue_full + counters.aqm;
            (counters.sent_bytes.saturating_sub(framing), counters.sent, drops, reading.queue_bytes)
        };
        // Backlog at the link's highest rate that takes as long as this one does now.
        let now_bps = self.carried.as_ref().map_or(self.line.rate_bps, |plan| plan.at(0, t_ns).0);
        let on_link = u128::from(backlog + reading.queue_packets * self.line.overhead);
        let scaled = on_link * u128::from(self.line.rate_bps) / u128::from(now_bps.max(1));
        self.backlog.push(u32::try_from(backlog).unwrap_or(u32::MAX));
        self.on_link.push(if self.wire { 0 } else { u64::try_from(scaled).unwrap_or(u64::MAX) });
        self.drained.push(0);
        self.totals.push((drops, bytes));
        self.carried_totals = (bytes, packets, drops);
    }

    fn report(self, sample_ns: u64) -> QueueReport {
        let interval_ns = if self.wire { sample_ns * WIRE_SAMPLE_DIVISOR } else { sample_ns };
        let mut sorted = self.on_link.clone();
        sorted.sort_unstable();
        QueueReport {
            node: self.node,
            port: self.port,
            samples: self.backlog.len() as u64,
            peak_bytes: self.backlog.iter().copied().max().map_or(0, u64::from),
            backlog_sum: self.backlog.iter().map(|&bytes| u64::from(bytes)).sum(),
            busy: self.backlog.iter().filter(|&&bytes| bytes > 0).count() as u64,
            link_quantiles: (quantile(&sorted, 0.5), quantile(&sorted, 0.99)),
            drain: match self.carried {
                Some(_) => Drain::default(),
                None => drain(&self.on_link, &self.drained, &self.line, interval_ns),
            },
            carried: self.carried.as_ref().map(|_| self.carried_totals),
            series: downsample(&self.backlog, &self.totals, interval_ns),
            detail: self.reading.details().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }
}

/// Returns the plan of the direction of a link that changes into which a port sends, or by which frames leave its wire.
fn carried_plan(plan: &Plan, port: (usize, usize)) -> Option<DirectionPlan> {
    if let Some(path) = plan.carried(port.0) {
        return Some(PlannedCarrier::direction(&path, port.1).clone());
    }
    let (carrier, forward) = plan.carrier_after(port)?;
    let path = carrier.load().ok()?;
    Some(if forward { path.forward } else { path.reverse })
}

/// Returns a quantile of sorted values, interpolated linearly.
fn quantile(sorted: &[u64], share: f64) -> u64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0 };
    let at = last as f64 * share;
    let (low, part) = (at as usize, at.fract());
    let high = sorted[(low + 1).min(last)];
    sorted[low] + ((high - sorted[low]) as f64 * part) as u64
}

/// Returns the data sent while the queue certainly had a backlog: in sampling intervals that began with a backlog
/// larger than the link carries in one interval.
fn drain(on_link: &[u64], drained: &[u64], line: &LinkRate, interval_ns: u64) -> Drain {
    let carries = line.carries(interval_ns);
    let mut drain = Drain::default();
    let mut before = false;
    for (backlog, left) in on_link.windows(2).zip(drained.windows(2)) {
        let busy = backlog[0] > carries + line.frame + line.overhead;
        if busy {
            drain.spans += u64::from(!before);
            drain.busy_ns += interval_ns;
            drain.bytes += left[1] - left[0];
        }
        before = busy;
    }
    drain
}

/// Reduces a series to at most [`SERIES_POINTS`] points; no peak and no drop is lost.
fn downsample(backlog: &[u32], totals: &[(u64, u64)], sample_ns: u64) -> QueueSeries {
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

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: LinkRate = LinkRate { rate_bps: 8_000_000_000, overhead: 24, frame: 1514, super_packets: false };

    #[test]
    fn framing_counts_in_the_queueing_delay() {
        assert_eq!(LINE.bytes(10 * 106, 10), 1300);
        let host = LinkRate { super_packets: true, ..LINE };
        assert_eq!(host.bytes(10 * 1514, 1), 10 * 1538, "a super-packet is many frames");
    }

    #[test]
    fn quantiles_are_interpolated() {
        assert_eq!(quantile(&[], 0.5), 0);
        assert_eq!(quantile(&[7], 0.99), 7);
        assert_eq!(quantile(&[0, 100], 0.5), 50);
        assert_eq!(quantile(&[0, 10, 20, 30], 0.5), 15);
    }

    #[test]
    fn only_intervals_with_certain_backlog_are_counted() {
        // 8 Gb/s carry 1 MB per millisecond.
        let on_link = [0, 500_000, 3_000_000, 2_000_000, 900_000, 2_000_000, 0];
        let drained = [0, 0, 500_000, 1_500_000, 2_500_000, 3_000_000, 4_000_000];
        let drain = drain(&on_link, &drained, &LINE, 1_000_000);
        assert_eq!(drain, Drain { busy_ns: 3_000_000, bytes: 3_000_000, spans: 2 });
    }

    #[test]
    fn thinning_keeps_peaks_and_drops() {
        let backlog: Vec<u32> = (0..5000).map(|i| if i == 1234 { 900 } else { i % 7 }).collect();
        let totals: Vec<(u64, u64)> = (0..5000).map(|i| (i / 10, i * 100)).collect();
        let series = downsample(&backlog, &totals, 1_000_000);
        assert!(series.backlog_bytes_max.len() <= SERIES_POINTS);
        assert_eq!(series.interval_ns, 5_000_000);
        assert_eq!(series.backlog_bytes_max.iter().max(), Some(&900));
        assert_eq!(series.drops.iter().sum::<u64>(), 499);
        assert_eq!(series.bytes.iter().sum::<u64>(), 499_900);
    }
}
