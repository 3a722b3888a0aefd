//! Warnings: whatever makes a run's figures less reliable, independent of the cause.

mod gaps;

use landspeed_model::{Direction, EndCost, NicSnapshot, Protocol, RunDocument, Status, StreamEnd, UdpEnd, Warning};

use crate::contradictions::contradicts_itself;
use crate::emulation;
use crate::flow::Flow;
use crate::host::{End, HostView};
use crate::text;
use crate::thresholds::{
    FAST_PATH_BPS, GOODPUT_CV, MIN_SAMPLES, OTHER_LOAD_CORES, STEAL_SHARE, TCP_MEMORY, TICKS_PER_READING,
};

/// Offloads that save CPU time per packet, by their names in `ethtool -k` and in the kernel.
const OFFLOADS: &[(&str, &[&str])] = &[
    ("tso", &["tso", "tcp-segmentation-offload", "tx-tcp-segmentation"]),
    ("gso", &["gso", "generic-segmentation-offload", "tx-generic-segmentation"]),
    ("gro", &["gro", "generic-receive-offload", "rx-gro"]),
];

/// Lists everything a reader should know before relying on figures of `document`. Codes are stable; each
/// appears once per host it concerns.
pub fn warnings(document: &RunDocument) -> Vec<Warning> {
    let mut found = Vec::new();
    if document.status == Status::Failed {
        return found;
    }
    let flows: Vec<Flow> =
        document.requested.direction.parts().iter().map(|&direction| Flow::new(document, direction)).collect();
    whole_run(document, &flows, &mut found);
    for flow in &flows {
        direction(flow, &mut found);
    }
    let Some(flow) = flows.first() else { return found };
    let (client, server) = match flow.sender.end {
        End::Client => (&flow.sender, &flow.receiver),
        End::Server => (&flow.receiver, &flow.sender),
    };
    gaps::sampler(document, client, &mut found);
    gaps::sampler(document, server, &mut found);
    other_load(flow, client, server, &mut found);
    let fastest = flows.iter().map(|flow| flow.goodput_bps).fold(0.0, f64::max);
    let coalesces = |end: End| {
        let receiving = flows.iter().filter(|flow| flow.receiver.end == end);
        receiving.flat_map(|flow| &flow.streams).any(|stream| coalesced(stream.receiver()))
    };
    host(client, fastest, coalesces(End::Client), &mut found);
    if !flow.loopback() {
        host(server, fastest, coalesces(End::Server), &mut found);
    }
    found
}

fn push(found: &mut Vec<Warning>, code: &str, message: String) {
    found.push(Warning { code: code.to_owned(), message });
}

/// Warnings about the test as a whole.
fn whole_run(document: &RunDocument, flows: &[Flow], found: &mut Vec<Warning>) {
    if document.status == Status::Partial && !contradicts_itself(document) {
        push(found, "partial", "The run was cut short; figures cover the part that was measured.".to_owned());
    }
    if flows.iter().any(Flow::loopback) {
        let message = "The path is the loopback interface; both ends share one host's cores. The figure is that of this host's \
                       memory and kernel, not of a network path.";
        push(found, "loopback", message.to_owned());
    }
    found.extend(emulation::warning(document));
    if !document.conservation.holds && document.status == Status::Complete {
        let message = if let Some(by) = document.conservation.unaccounted_bytes {
            format!("{by} bytes are unaccounted for.")
        } else {
            let why = document.why_unknown("conservation.unaccounted_bytes").unwrap_or("a term is unknown");
            format!("The accounting is incomplete: {why}.")
        };
        push(found, "accounting", message);
    }
    if let Some(path) = &document.path {
        let (uncertainty, interval) = (path.clock.uncertainty_ns, document.requested.interval_ns);
        if uncertainty > interval && interval > 0 {
            let message = format!(
                "The two clocks are aligned to ±{}, coarser than the {} interval: series of the two ends cannot be \
                 compared interval by interval.",
                text::nanos(uncertainty as f64),
                text::nanos(interval as f64)
            );
            push(found, "clock-uncertain", message);
        }
    }
    let summary = &document.summary;
    for (what, cv) in [("Goodput", summary.goodput_cv), ("Reverse goodput", summary.reverse_goodput_cv)] {
        if let Some(cv) = cv.filter(|&cv| cv.is_finite() && cv >= GOODPUT_CV) {
            let message =
                format!("{what} varied by {} between intervals (one standard deviation).", text::percent(cv));
            push(found, "unsteady", message);
        }
    }
}

/// Warnings about one direction.
fn direction(flow: &Flow, found: &mut Vec<Warning>) {
    let way = way(flow.direction);
    // Request/response latencies are all measured by the client.
    if !flow.is_rr() && (!flow.sender_seen() || !flow.receiver_seen()) {
        let lost = if flow.sender_seen() { &flow.receiver } else { &flow.sender };
        let message = if flow.document.iperf3.is_some() {
            format!("The {way} was sampled at the local end only; iperf3 reports totals.")
        } else {
            format!("The {}'s report of the {way} is missing; what only it counts is unknown.", lost.name())
        };
        push(found, "one-ended", message);
    }
    if !flow.is_rr() && (!flow.is_long_enough() || flow.samples() < MIN_SAMPLES) {
        let message = format!(
            "The {way} is too short for a confident verdict: {}. Use a longer --time or a shorter --interval.",
            flow.describe_shortfall()
        );
        push(found, "few-samples", message);
    }
    if flow.parameters.protocol == Protocol::Tcp
        && let Some(growth) = flow.still_ramping()
    {
        let message = format!(
            "The congestion window was still growing at the end of the {way} (last quarter {} of the first); the figure \
             is not the path's limit. Use a longer --time, and --omit for the start.",
            text::percent(growth)
        );
        push(found, "still-ramping", message);
    }
    gaps::stalls(flow, found);
    fragments(flow, found);
    zero_copy(flow, found);
    if flow.streams.iter().any(|stream| coalesced(stream.receiver())) {
        let message = "GRO delivered datagrams in batches with one timestamp: jitter within a batch is not visible. \
                       Measure jitter with --no-gro.";
        push(found, "jitter-coalesced", message.to_owned());
    }
    let beyond = udp_sum(flow, |udp| udp.beyond_window_packets);
    if beyond > 0 {
        let message = format!("{beyond} packets arrived too late to distinguish first copies from duplicates.");
        push(found, "beyond-window", message);
    }
    if flow.parameters.protocol == Protocol::Tcp && flow.notsent_lowat().is_some() {
        let set = if flow.parameters.notsent_lowat_bytes.is_some() {
            "--notsent-lowat"
        } else {
            "net.ipv4.tcp_notsent_lowat"
        };
        let message = format!(
            "{set} is set on the {}: the send queue stays short by design, so an idle application \
             and a full path look the same there.",
            flow.sender.name()
        );
        push(found, "notsent-lowat", message);
    }
}

fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Download => "download",
        _ => "upload",
    }
}

fn coalesced(end: Option<&StreamEnd>) -> bool {
    end.and_then(|end| end.udp.as_ref())
        .is_some_and(|udp| udp.timestamps.as_deref().is_some_and(|from| from.contains("coalesced")))
}

fn udp_sum(flow: &Flow, of: impl Fn(&UdpEnd) -> Option<u64>) -> u64 {
    let ends = flow.streams.iter().filter_map(|stream| stream.receiver()?.udp.as_ref());
    ends.filter_map(of).fold(0, u64::saturating_add)
}

fn zero_copy(flow: &Flow, found: &mut Vec<Warning>) {
    let uses = flow.streams.iter().filter_map(|stream| stream.sender()?.zerocopy);
    let (done, copied, refused) = uses.fold((0_u64, 0_u64, 0_u64), |(done, copied, refused), usage| {
        (
            done.saturating_add(usage.completions),
            copied.saturating_add(usage.copied),
            refused.saturating_add(usage.enobufs),
        )
    });
    if copied > 0 {
        let share = copied as f64 / done.max(copied) as f64;
        let message = format!(
            "Zero copy fell back to copying for {} of the sends ({copied}, SO_EE_CODE_ZEROCOPY_COPIED). The figure \
             includes the copy and the cost of zero copy{}.",
            text::percent(share),
            if flow.loopback() { "; loopback always copies" } else { "" }
        );
        push(found, "zerocopy-copied", message);
    }
    if refused > 0 {
        let message = format!(
            "{refused} zero-copy sends were refused (ENOBUFS) and copied: raise net.core.optmem_max on the {}.",
            flow.sender.name()
        );
        push(found, "zerocopy-refused", message);
    }
}

/// Warns of busy core time that is not the test's. Softirqs count as the test's: they cannot be separated.
fn other_load(flow: &Flow, client: &HostView, server: &HostView, found: &mut Vec<Warning>) {
    if flow.same_host() {
        // Both reports are of one machine: each covers the whole host, and the threads of both sides belong to the
        // test.
        let (Some(cost), Some(other)) = (client.cost, server.cost) else { return };
        let threads = cost.thread_cpu_s + other.thread_cpu_s;
        load_of("this host", cost, threads, &[client, server], flow.seconds(), found);
    } else {
        for host in [client, server] {
            let Some(cost) = host.cost else { continue };
            load_of(host.name(), cost, cost.thread_cpu_s, &[host], flow.seconds(), found);
        }
    }
}

fn load_of(who: &str, cost: &EndCost, threads_s: f64, hosts: &[&HostView], seconds: f64, found: &mut Vec<Warning>) {
    let samplers: f64 = hosts.iter().filter_map(|host| host.series).map(|s| s.sampler_cpu_ns as f64 / 1e9).sum();
    let (Some(host_s), Some(softirq_s)) = (cost.host_cpu_s, cost.softirq_cpu_s) else { return };
    let cores = (host_s - threads_s - softirq_s - samplers) / seconds;
    if cores.is_finite() && cores >= OTHER_LOAD_CORES {
        let message = format!(
            "Other programs kept {cores:.1} cores of {} busy; the figure is that of a shared host.",
            if who == "this host" { who.to_owned() } else { format!("the {who}") }
        );
        push(found, "other-load", message);
    }
}

/// Warns of datagrams that do not fit the MTU of the sender's interface, or the path's if that was probed.
fn fragments(flow: &Flow, found: &mut Vec<Warning>) {
    let Some(payload) = flow.parameters.udp.as_ref().filter(|_| flow.is_udp()).map(|udp| udp.payload_bytes) else {
        return;
    };
    let nic = flow.sender.snapshot.and_then(|snapshot| snapshot.nic.as_ref());
    let interface = nic.map(|nic| (nic.mtu_bytes, format!("the MTU of {} on the {}", nic.name, flow.sender.name())));
    let probed = flow.probed_mtu().map(|mtu| (mtu, "the path MTU".to_owned()));
    let Some((mtu, of)) = [interface, probed].into_iter().flatten().filter(|(mtu, _)| *mtu > 0).min() else { return };
    // IPv4 or IPv6, and UDP.
    let ip = if flow.document.path.as_ref().is_some_and(|path| path.server_addr.starts_with('[')) { 40 } else { 20 };
    let headers = ip + 8;
    if payload.saturating_add(headers) <= mtu || mtu <= headers {
        return;
    }
    // Fragments carry multiples of 8 bytes; those of IPv6 have a header of 8 bytes more.
    let per_fragment = (mtu - ip - if ip == 40 { 8 } else { 0 }) / 8 * 8;
    let count = payload.saturating_add(8).div_ceil(per_fragment.max(8));
    let message = format!(
        "Datagrams of {payload} bytes exceed {of} ({mtu} bytes) and are sent in {count} fragments: one lost fragment loses \
         the datagram, and some firewalls drop fragments. Use -l {} to send whole packets.",
        mtu - headers
    );
    push(found, "fragments", message);
}

/// Warnings about one host, which received datagrams coalesced by GRO or not.
fn host(host: &HostView, goodput_bps: f64, coalesces: bool, found: &mut Vec<Warning>) {
    let name = host.name();
    let steal = host
        .steal()
        .or_else(|| host.cost.and_then(|cost| cost.steal).map(f64::from))
        .filter(|share| share.is_finite());
    if let Some(steal) = steal.filter(|&share| share >= STEAL_SHARE) {
        let message = format!("Steal time was {} of the {name}'s core time.", text::percent(steal));
        push(found, "steal", message);
    }
    if let Some(nic) = host.snapshot.and_then(|snapshot| snapshot.nic.as_ref())
        && nic.name != "lo"
        && (goodput_bps >= FAST_PATH_BPS || nic.speed_bps.is_some_and(|speed| speed >= 10_000_000_000))
    {
        // Datagrams can arrive coalesced without the interface's GRO: a veth passes on the sender's super-packets.
        let is_used = |word: &str| word == "gro" && coalesces;
        let off: Vec<&str> = OFFLOADS
            .iter()
            .filter(|(word, names)| is_off(nic, names) && !is_used(word))
            .map(|&(word, _)| word)
            .collect();
        if !off.is_empty() {
            let message = format!(
                "{} {} off on {} of the {name}: the CPU handles each packet singly. Turn it on: `ethtool -K {} {} on`.",
                off.join(", "),
                if off.len() == 1 { "is" } else { "are" },
                nic.name,
                nic.name,
                off.join(" on "),
            );
            push(found, "offload-off", message);
        }
    }
    if let Some(series) = host.series {
        let pressed = host.snmp("TcpExt.TCPMemoryPressures").unwrap_or(0);
        let used = series.tcp_mem_used_ratio.filter(|&ratio| ratio.is_finite() && ratio >= TCP_MEMORY);
        if pressed > 0 || used.is_some() {
            let message = format!(
                "TCP ran {} memory on the {name} (net.ipv4.tcp_mem): the kernel then shrinks windows, and a sender can \
                 stall without loss.",
                if pressed > 0 { "out of" } else { "close to its limit of" }
            );
            push(found, "tcp-memory", message);
        }
        if series.softnet.dropped > 0 {
            let message = format!(
                "{} packets were dropped by the {name}'s softnet backlog (net.core.netdev_max_backlog) during the test.",
                series.softnet.dropped
            );
            push(found, "softnet-drops", message);
        }
        coarse_ticks(host, found);
    }
}

fn is_off(nic: &NicSnapshot, names: &[&str]) -> bool {
    names.iter().find_map(|name| nic.offloads.get(*name)) == Some(&false)
}

fn coarse_ticks(host: &HostView, found: &mut Vec<Warning>) {
    let Some((series, cost)) = host.series.zip(host.cost) else { return };
    let spans =
        series.samples.iter().map(|sample| sample.end_ns.saturating_sub(sample.start_ns)).filter(|&ns| ns > 0);
    let Some(shortest) = spans.min() else { return };
    if cost.tick_ns > 0 && (shortest as f64) < cost.tick_ns as f64 * TICKS_PER_READING {
        let message = format!(
            "The {}'s kernel counts CPU time in ticks of {}: a single CPU reading over {} is accurate to ±{}; means over \
             the phase are better.",
            host.name(),
            text::nanos(cost.tick_ns as f64),
            text::nanos(shortest as f64),
            text::percent((cost.tick_ns as f64 / shortest as f64).min(1.0))
        );
        push(found, "coarse-ticks", message);
    }
}
