//! CPU costs of hosts: their section of the document, their check, and the counters that `diagnose` reads on real hosts.

use landspeed_model::{CoreUse, CounterDelta, HostSample, HostSeries, LabCheck, LabCpu, LabReceivePath, RunDocument};

use super::checks::check;
use super::counters::counter_increase;
use crate::guest::{CpuReport, CpuSample, GuestReport};
use crate::plan::{Plan, PlannedCpu, PlannedFlow};

/// Maximum time by which a frame may be passed on after the time of the model, nanoseconds: clock reads of other processes
/// take 256 ns each.
const MAX_LATE_NS: u64 = 20_000;
/// Counter of frames that found the receive ring full, in the kernel's standard statistics.
const RING_COUNTER: &str = "rx_missed_errors";

fn pairs<'a>(plan: &'a Plan, cpus: &'a [CpuReport]) -> impl Iterator<Item = (&'a PlannedCpu, &'a CpuReport)> {
    plan.cpus.iter().zip(cpus)
}

/// Returns the CPUs as the document shows them.
pub fn document(plan: &Plan, report: &GuestReport) -> Vec<LabCpu> {
    let of = |(planned, found): (&PlannedCpu, &CpuReport)| {
        let span = report.span_ns.max(1) as f64;
        let first = found.samples.first().copied().unwrap_or_default();
        let share = |after: u64, before: u64| (after.saturating_sub(before) as f64 / span).min(1.0);
        LabCpu {
            host: plan.nodes[planned.host].name.clone(),
            cores: if planned.shared { 1 } else { 2 },
            softirq_ratio: share(found.softirq_ns, first.softirq_ns),
            application_ratio: share(found.application_ns, first.application_ns),
            calls: found.calls,
            receive: planned.receive.as_ref().map(|receive| LabReceivePath {
                arrived: found.arrived,
                dropped: found.dropped,
                merged: found.merged,
                interrupts: found.interrupts,
                polls: found.polls,
                ring: receive.ring.into(),
                ring_max: found.ring_max,
            }),
        }
    };
    pairs(plan, &report.cpus).map(of).collect()
}

/// Returns the frames that a host's receive ring dropped during the run; `None` without a receive path.
pub fn ring_drops(plan: &Plan, report: &GuestReport, host: usize) -> Option<u64> {
    let receive = plan.cpu(host)?.receive.as_ref()?;
    Some(counter_increase(report, receive.node, 0).drops)
}

/// Returns the host's name and the drops of the receive path that a node is; `None` for all other nodes.
pub fn of_node<'a>(plan: &'a Plan, report: &GuestReport, node: usize) -> Option<(&'a str, u64)> {
    let of = |cpu: &&PlannedCpu| cpu.receive.as_ref().is_some_and(|receive| receive.node == node);
    let cpu = plan.cpus.iter().find(of)?;
    Some((&plan.nodes[cpu.host].name, ring_drops(plan, report, cpu.host)?))
}

/// Checks that the receive paths handled every frame in time; no check without them.
pub fn check_receive_paths(plan: &Plan, report: &GuestReport) -> Option<LabCheck> {
    let mut problems = Vec::new();
    let (mut frames, mut late_ns_max, mut paths) = (0, 0, 0);
    for (planned, found) in pairs(plan, &report.cpus).filter(|(planned, _)| planned.receive.is_some()) {
        let name = &plan.nodes[planned.host].name;
        if found.unhandled > 0 {
            problems.push(format!("{name}: {} frames not handled", found.unhandled));
        }
        if found.late_ns_max > MAX_LATE_NS {
            problems.push(format!("{name}: a frame was passed on {} ns late", found.late_ns_max));
        }
        paths += 1;
        frames += found.arrived;
        late_ns_max = late_ns_max.max(found.late_ns_max);
    }
    let fine = format!("{frames} frames, none passed on more than {late_ns_max} ns late");
    (paths > 0).then(|| check("receive-paths", &problems, fine))
}

/// Puts the load of the CPUs of a flow's hosts into its document, in place of the guest's own: use of each core, and the NIC
/// counter of a full ring.
pub fn show_load(plan: &Plan, cpus: &[CpuReport], flow: &PlannedFlow, run: &mut RunDocument) {
    let ends = [(flow.from, &mut run.host_series.client), (flow.to, &mut run.host_series.server)];
    for (host, series) in ends {
        let found = pairs(plan, cpus).find(|(planned, _)| planned.host == host);
        if let (Some((planned, found)), Some(series)) = (found, series.as_mut()) {
            show_load_of(planned, found, flow.start_ns, series);
        }
    }
}

fn show_load_of(planned: &PlannedCpu, found: &CpuReport, start_ns: u64, series: &mut HostSeries) {
    for sample in &mut series.samples {
        sample.cores = cores(planned, &found.samples, start_ns, sample);
    }
    if planned.receive.is_some() && found.dropped > 0 {
        series.nic.push(CounterDelta { name: RING_COUNTER.to_owned(), delta: found.dropped as i64 });
    }
}

/// Returns the use of a host's cores in the interval of a sample: softirqs on the first one, calls on the last one.
fn cores(planned: &PlannedCpu, samples: &[CpuSample], start_ns: u64, of: &HostSample) -> Vec<Option<CoreUse>> {
    let time = |t_ns: i64| (start_ns as i64).saturating_add(t_ns);
    let (from, to) = (at(samples, time(of.start_ns)), at(samples, time(of.end_ns)));
    let span = (to.0 - from.0).max(1.0);
    let share = |after: f64, before: f64| ((after - before) / span).clamp(0.0, 1.0) as f32;
    let (softirq, system) = (share(to.1, from.1), share(to.2, from.2));
    let core = |softirq: f32, system: f32| {
        Some(CoreUse { softirq, system, idle: (1.0 - softirq - system).max(0.0), ..CoreUse::default() })
    };
    if planned.shared { vec![core(softirq, system)] } else { vec![core(softirq, 0.0), core(0.0, system)] }
}

/// Returns time, softirq time and application time at a time, interpolated between samples.
fn at(samples: &[CpuSample], t_ns: i64) -> (f64, f64, f64) {
    let point = |sample: &CpuSample| (sample.t_ns as f64, sample.softirq_ns as f64, sample.application_ns as f64);
    let next = samples.partition_point(|sample| (sample.t_ns as i64) < t_ns);
    let before = next.checked_sub(1).and_then(|index| samples.get(index)).map(point);
    match (before, samples.get(next).map(point)) {
        (Some(a), Some(b)) => {
            let part = (t_ns as f64 - a.0) / (b.0 - a.0).max(1.0);
            (t_ns as f64, a.1 + (b.1 - a.1) * part, a.2 + (b.2 - a.2) * part)
        }
        (Some(one), None) | (None, Some(one)) => (t_ns as f64, one.1, one.2),
        (None, None) => (t_ns as f64, 0.0, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_use_is_interpolated_between_samples() {
        let sample = |t_ns: u64, softirq_ns: u64| CpuSample { t_ns, softirq_ns, application_ns: softirq_ns / 2 };
        let samples = [sample(0, 0), sample(1_000, 500), sample(2_000, 1_500)];
        assert_eq!(at(&samples, 500), (500.0, 250.0, 125.0));
        assert_eq!(at(&samples, 1_500), (1_500.0, 1_000.0, 500.0));
        assert_eq!(at(&samples, 9_000), (9_000.0, 1_500.0, 750.0), "after the last one");
        assert_eq!(at(&samples, -9_000), (-9_000.0, 0.0, 0.0), "before the first one");
        assert_eq!(at(&[], 9), (9.0, 0.0, 0.0));
    }
}
