//! CPU cost of the test on each host.

use landspeed_host::{TICK_NS, cpu_use_between};
use landspeed_model::{Cost, EndCost, Phase, PhaseName};

use super::sums::ratio;
use crate::end::EndReport;

/// CPU cost on the client and on the server.
pub fn end_costs(client: Option<&EndReport>, server: Option<&EndReport>, phases: &[Phase]) -> Cost {
    Cost { client: client.map(|r| end(r, phases)), server: server.map(|r| end(r, phases)) }
}

fn end(report: &EndReport, phases: &[Phase]) -> EndCost {
    let steady = phases.iter().find(|p| p.name == PhaseName::Steady);
    let (from_ns, to_ns) = steady.map_or((0, 0), |p| (p.start_ns, p.end_ns));
    let host = cpu_use_between(&report.host, from_ns as i64, to_ns as i64).unwrap_or_default();
    let thread_ns: u64 = report
        .streams
        .iter()
        .map(|s| s.end.thread_cpu_ns)
        .chain(report.rr_streams.iter().map(|s| s.thread_cpu_ns))
        .sum();
    let bytes: u64 = report.streams.iter().map(|s| s.end.bytes).sum();
    // Host CPU readings cover the steady phase, so they are divided by the bytes of that phase.
    let steady_bytes: u64 = report
        .streams
        .iter()
        .map(|s| {
            let at = |t: u64| s.end.samples.iter().take_while(|x| x.t_ns <= t).last().map_or(0, |x| x.bytes);
            at(to_ns).saturating_sub(at(from_ns))
        })
        .sum();
    EndCost {
        host_cpu_s: host.cpu_s,
        thread_cpu_s: thread_ns as f64 / 1e9,
        softirq_cpu_s: host.softirq_s,
        thread_ns_per_byte: ratio(thread_ns as f64, bytes as f64),
        host_ns_per_byte: ratio(host.cpu_s * 1e9, steady_bytes as f64),
        busiest_core: host.busiest_core,
        steal: host.steal,
        tick_ns: TICK_NS,
    }
}
