//! Notes on cores and memory: packets concentrated on one core, deep idle states, remote NUMA memory.

use std::collections::BTreeMap;

use landspeed_model::{CoreTotals, Direction, HostSeries, RunDocument};

use super::{Page, percent};

/// Minimum number of packets for statements about their distribution.
const MIN_PACKETS: u64 = 10_000;
/// Minimum share of the packets on one core for a note.
const MIN_CORE_SHARE: f64 = 0.5;
/// Minimum share of page allocations on a remote node for a note.
const MIN_REMOTE_SHARE: f64 = 0.01;
/// Minimum exit latency of a deep idle state, microseconds; shallow states have at most 10 (CPU-006).
const DEEP_IDLE_US: u32 = 10;
/// Minimum share of time in a deep idle state for a note.
const MIN_IDLE_SHARE: f64 = 0.05;

/// Prints a line per host with findings, and a line per core that serves several streams.
pub fn details(d: &RunDocument, page: &mut Page) {
    let ends = [("client", &d.host_series.client), ("server", &d.host_series.server)];
    let hosts = if d.path.as_ref().is_some_and(|path| path.loopback) { 1 } else { 2 };
    let lines: Vec<String> = ends
        .into_iter()
        .take(hosts)
        .filter_map(|(name, series)| Some((name, findings(series.as_ref()?))))
        .filter(|(_, findings)| !findings.is_empty())
        .map(|(name, findings)| format!("{name}: {}", findings.join("; ")))
        .chain((hosts == 2).then(|| shared_queues(d)).into_iter().flatten())
        .collect();
    for (i, line) in lines.iter().enumerate() {
        page.line(if i == 0 { "cores" } else { "" }, line);
    }
}

/// Lists cores that serve several streams: `server: core 3 serves the receive queues of streams 0, 2`. The kernel
/// reports the core when a stream ends (`SO_INCOMING_CPU`).
fn shared_queues(d: &RunDocument) -> Vec<String> {
    let mut served: BTreeMap<(&str, u32), Vec<String>> = BTreeMap::new();
    for stream in &d.streams {
        let receiver = if stream.direction == Direction::Download { "client" } else { "server" };
        if let Some(cpu) = stream.receiver.as_ref().and_then(|end| end.incoming_cpu) {
            served.entry((receiver, cpu)).or_default().push(stream.id.to_string());
        }
    }
    let online = |receiver: &str| {
        let host = if receiver == "client" { &d.hosts.client } else { &d.hosts.server };
        host.as_ref().map_or(0, |host| host.cores_online)
    };
    served
        .into_iter()
        .filter(|((receiver, _), streams)| streams.len() > 1 && online(receiver) > 1)
        .map(|((receiver, cpu), streams)| {
            format!("{receiver}: core {cpu} serves the receive queues of streams {}", streams.join(", "))
        })
        .collect()
}

fn findings(series: &HostSeries) -> Vec<String> {
    let busiest = series.core_totals.iter().max_by_key(|totals| totals.softnet.processed);
    let packets = series.softnet.processed;
    let Some(busiest) = busiest.filter(|_| packets >= MIN_PACKETS) else {
        return remote(series).into_iter().collect();
    };
    [busiest_core_note(series, busiest, packets), deep_idle_note(busiest), remote(series)]
        .into_iter()
        .flatten()
        .collect()
}

/// Notes a core with most of the packets: `83 % of the packets processed on core 1 (softnet, 42310/s)`. Only
/// for hosts with several cores.
fn busiest_core_note(series: &HostSeries, core: &CoreTotals, packets: u64) -> Option<String> {
    let share = core.softnet.processed as f64 / packets as f64;
    let cores = series.samples.iter().map(|sample| sample.cores.iter().flatten().count()).max().unwrap_or(0);
    let span_ns = series.samples.last()?.end_ns.saturating_sub(series.samples.first()?.start_ns);
    (share > MIN_CORE_SHARE && cores > 1 && span_ns > 0).then(|| {
        let rate = core.softnet.processed as f64 * 1e9 / span_ns as f64;
        format!("{} of the packets processed on core {} (softnet, {rate:.0}/s)", percent(share), core.core)
    })
}

/// Notes a deep idle state: `core 1 in C6 (exit latency 133 µs) 12 % of the time`.
fn deep_idle_note(core: &CoreTotals) -> Option<String> {
    let deep = core.idle_states.iter().filter(|state| state.exit_latency_us.is_some_and(|us| us > DEEP_IDLE_US));
    let state = deep.max_by(|a, b| a.share.total_cmp(&b.share)).filter(|state| state.share >= MIN_IDLE_SHARE)?;
    let latency = state.exit_latency_us?;
    let share = percent(state.share.min(1.0));
    Some(format!("core {} in {} (exit latency {latency} µs) {share} of the time", core.core, state.name))
}

/// Notes remote memory: `1.2 % of page allocations on a remote NUMA node`.
fn remote(series: &HostSeries) -> Option<String> {
    let sum = |of: fn(&landspeed_model::NumaDelta) -> u64| series.numa.iter().map(of).fold(0, u64::saturating_add);
    let (local, other) = (sum(|node| node.local_node), sum(|node| node.other_node));
    let share = other as f64 / local.saturating_add(other).max(1) as f64;
    (share > MIN_REMOTE_SHARE).then(|| format!("{} of page allocations on a remote NUMA node", percent(share)))
}

#[cfg(test)]
mod tests {
    use landspeed_model::{CoreUse, HostSample, IdleStateDelta, NumaDelta, SoftnetDelta};

    use super::*;

    fn core(core: u32, processed: u64) -> CoreTotals {
        CoreTotals { core, softnet: SoftnetDelta { processed, ..SoftnetDelta::default() }, ..CoreTotals::default() }
    }

    fn series(packets: [u64; 2]) -> HostSeries {
        let cores = vec![Some(CoreUse::default()); 2];
        HostSeries {
            samples: vec![HostSample { start_ns: -1, end_ns: 1_999_999_999, cores, ..HostSample::default() }],
            softnet: SoftnetDelta { processed: packets.iter().sum(), ..SoftnetDelta::default() },
            core_totals: vec![core(0, packets[0]), core(1, packets[1])],
            ..HostSeries::default()
        }
    }

    #[test]
    fn a_core_with_most_packets_is_named() {
        assert_eq!(
            findings(&series([17_000, 83_000])),
            ["83 % of the packets processed on core 1 (softnet, 41500/s)"]
        );
        assert!(findings(&series([50_000, 50_000])).is_empty(), "evenly");
        assert!(findings(&series([10, 8_000])).is_empty(), "few packets");
        let mut alone = series([0, 83_000]);
        alone.samples[0].cores.pop();
        assert!(findings(&alone).is_empty(), "one core has them all");
    }

    #[test]
    fn deep_idle_states_and_remote_pages_are_named() {
        let mut series = series([50_000, 50_001]);
        let state = |name: &str, us: u32, share: f64| IdleStateDelta {
            name: name.to_owned(),
            exit_latency_us: Some(us),
            share,
            entries: 1,
        };
        series.core_totals[1].idle_states = vec![state("C1", 2, 0.5), state("C6", 133, 0.12)];
        series.numa = vec![
            NumaDelta { local_node: 900, other_node: 30, ..NumaDelta::default() },
            NumaDelta { node: 1, local_node: 70, ..NumaDelta::default() },
        ];
        assert_eq!(
            findings(&series)[1..],
            [
                "core 1 in C6 (exit latency 133 µs) 12 % of the time",
                "3.0 % of page allocations on a remote NUMA node"
            ]
        );
        series.numa[0].other_node = 1;
        series.core_totals[1].idle_states.pop();
        assert_eq!(findings(&series).len(), 1);
    }
}
