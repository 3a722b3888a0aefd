//! CPU cost of the test on each host.

use landspeed_host::{TICK_NS, cpu_use_between};
use landspeed_model::{Cost, EndCost};

use super::sums::steady_span;
use crate::end::EndReport;

/// CPU cost on the client and on the server, each from its own report over its own steady phase.
pub fn end_costs(client: Option<&EndReport>, server: Option<&EndReport>) -> Cost {
    let cost = |report: Option<&EndReport>| end(report.filter(|report| report.has_timeline())?);
    Cost { client: cost(client), server: cost(server) }
}

/// `None` if a stream's thread is not accounted for.
fn end(report: &EndReport) -> Option<EndCost> {
    let (from_ns, to_ns) = steady_span(&report.cuts);
    let host = cpu_use_between(&report.host, from_ns as i64, to_ns as i64);
    let thread_ns: u64 = report
        .streams
        .iter()
        .map(|s| s.end.thread_cpu_ns)
        .chain(report.rr_streams.iter().map(|s| s.thread_cpu_ns))
        .sum::<Option<u64>>()?;
    let bytes: u64 = report.streams.iter().map(|s| s.end.bytes).sum();
    // Host CPU readings cover the steady phase, so they are divided by the bytes of that phase.
    let steady_bytes: Option<u64> = report
        .streams
        .iter()
        .map(|s| {
            let at = |t: u64| s.end.samples.iter().take_while(|x| x.t_ns <= t).last().map_or(0, |x| x.bytes);
            (!s.end.samples.is_empty()).then(|| at(to_ns).saturating_sub(at(from_ns)))
        })
        .sum();
    let ratio = |ns: f64, bytes: u64| Some(ns / bytes as f64).filter(|per_byte| per_byte.is_finite());
    Some(EndCost {
        host_cpu_s: host.map(|host| host.cpu_s),
        thread_cpu_s: thread_ns as f64 / 1e9,
        softirq_cpu_s: host.map(|host| host.softirq_s),
        thread_ns_per_byte: ratio(thread_ns as f64, bytes),
        host_ns_per_byte: host.zip(steady_bytes).and_then(|(host, bytes)| ratio(host.cpu_s * 1e9, bytes)),
        busiest_core: host.and_then(|host| host.busiest_core),
        steal: host.map(|host| host.steal),
        tick_ns: TICK_NS,
    })
}
