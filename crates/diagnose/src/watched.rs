//! Advice for flows of other programs: they cannot be run again with other options.

use landspeed_model::{Cause, Confidence, EpochState, Evidence, Verdict};

use crate::advice::{RECEIVE, SEND, enlarge};
use crate::arrivals::Arrivals;
use crate::flow::{Figure, Flow};
use crate::host::End;
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{READER_KEEPS_UP, WINDOW_USED};
use crate::waits;

/// Advice to measure from both hosts.
const BOTH_ENDS: &str =
    "`landspeed serve` on the remote host and `landspeed run HOST` here measure the same path from both ends.";

/// Returns the verdict with advice for a running program, and with kernel names as sources, because there
/// is no run document.
pub(crate) fn adapt_to_watched(mut verdict: Verdict, flow: &Flow) -> Verdict {
    verdict.next_step = next_step(&verdict, flow);
    if shares_contradict(&verdict) {
        verdict.confidence = Confidence::Low;
    }
    if matches!(verdict.cause, Cause::SenderCpu | Cause::ReceiverCpu) {
        verdict.evidence.extend(remote_numa_cores(flow).map(|far| far.evidence(verdict.cause, flow)));
    }
    for reading in verdict.evidence.iter_mut().chain(&mut verdict.ruled_out) {
        reading.source = source(reading);
        reading.stream = None;
    }
    verdict
}

/// Whether the sender was mostly in another state than the one that the cause produces.
fn shares_contradict(verdict: &Verdict) -> bool {
    let state = match verdict.cause {
        Cause::ReceiverWindow | Cause::SlowReader => EpochState::ReceiveWindowLimited,
        Cause::SendBuffer => EpochState::SendBufferLimited,
        Cause::Application | Cause::RequestGaps | Cause::Storage => EpochState::ApplicationLimited,
        Cause::SenderCpu => EpochState::CpuLimited,
        Cause::Pacing => EpochState::PacingLimited,
        _ => return false,
    };
    let share = |is: &dyn Fn(EpochState) -> bool| -> u32 {
        verdict.epochs.iter().filter(|epoch| is(epoch.state)).map(|epoch| epoch.share_permille).sum()
    };
    // A thread that lacks a core, or an application that waits for a file, leaves the same empty queue.
    let empty = [EpochState::ApplicationLimited, EpochState::CpuLimited];
    let own = share(&|seen| seen == state || empty.contains(&state) && empty.contains(&seen));
    own < 200 && share(&|seen| seen != EpochState::Unknown) - own >= 500
}

/// Says how much of the offered window the sender used, if it left room.
fn window_text(flow: &Flow) -> String {
    let used = Arrivals::of(flow).and_then(|arrivals| arrivals.window_used).filter(|&used| used < WINDOW_USED);
    used.map_or(String::new(), |used| format!(", and the sender uses {} of the receive window", text::percent(used)))
}

fn next_step(verdict: &Verdict, flow: &Flow) -> String {
    let sends = flow.sender.end == End::Client;
    let mean = |figure: Option<Figure>| figure.map(|figure| figure.value);
    let unread = mean(flow.figure(StreamView::receive_fill));
    let elsewhere = || format!("Run `landspeed watch` on the remote host as well. {BOTH_ENDS}");
    match verdict.cause {
        Cause::ReceiverWindow if flow.receiver_seen() => {
            enlarge(flow, &flow.receiver, RECEIVE, mean(flow.figure(StreamView::rcvbuf)))
        }
        Cause::ReceiverWindow => format!(
            "Run `landspeed watch` on the remote host: unread data there means a slow reader, none means that its receive buffer \
             is too small. {}",
            enlarge(flow, &flow.receiver, RECEIVE, None)
        ),
        Cause::SlowReader if sends => {
            "Run `landspeed watch` on the remote host to see its receive queue, and find what the \
                                       receiving application waits for (disk, its own processing)."
                .to_owned()
        }
        Cause::SlowReader => {
            "Find what the receiving application waits for (disk, its own processing, a slower connection \
                              behind it); neither buffers nor the network are the limit."
                .to_owned()
        }
        Cause::SendBuffer => enlarge(flow, &flow.sender, SEND, mean(flow.figure(StreamView::sndbuf))),
        Cause::Application if sends => format!(
            "{}Find what the sending application waits for (disk, requests from the other end, its own processing); neither \
             buffers nor the network are the limit.",
            waits::describe(flow).map_or(String::new(), |waits| waits + " ")
        ),
        Cause::Pacing => {
            "The application, or a BPF program, set SO_MAX_PACING_RATE: raise it there if more is wanted.".to_owned()
        }
        Cause::BbrPacing => {
            "Use cubic for this program (`net.ipv4.tcp_congestion_control`, or TCP_CONGESTION in its settings): on paths as short as \
             this one it keeps more in flight. Keep BBR for long paths."
                .to_owned()
        }
        Cause::SenderCpu | Cause::ReceiverCpu if lacks_core(flow) => starved_thread(flow),
        Cause::SenderCpu | Cause::ReceiverCpu => busy_thread(flow),
        Cause::LinkRate => "This is the interface's rate: use a faster one.".to_owned(),
        Cause::LocalQdisc => format!("Look at the qdiscs here: `tc -s qdisc`. {BOTH_ENDS}"),
        Cause::NetworkPath => format!("The rate is the path's as congestion control finds it. {BOTH_ENDS}"),
        Cause::WindowGrowth => {
            "The rate was still growing: watch longer. A transfer that ends before its window has grown gains from more \
             connections at once."
                .to_owned()
        }
        Cause::NetworkCongestion | Cause::ShallowBuffer | Cause::Policer => format!(
            "Find what shares the path; a sender paced below the rate reached (`tc qdisc`, fq maxrate) avoids the drops. {BOTH_ENDS}"
        ),
        Cause::NetworkLoss => format!(
            "Look for interfaces with errors along the path. {BOTH_ENDS} With `--tap` at both ends they show where packets are lost."
        ),
        Cause::PathMtu => format!(
            "Find the largest packet that passes with `landspeed run HOST --probe-mtu`, or let TCP find it: `sysctl -w \
             net.ipv4.tcp_mtu_probing=1` on {}.",
            flow.label(&flow.sender)
        ),
        Cause::Undetermined if !sends && unread.is_some_and(|fill| fill < READER_KEEPS_UP) => format!(
            "The application here reads as fast as data arrives{}: the limit is {}. Run `landspeed watch` on the sending host, \
             which sees the congestion window, losses and its own queue.",
            window_text(flow),
            if window_text(flow).is_empty() {
                "the sender, the path or the receive window"
            } else {
                "the sender or the path"
            }
        ),
        Cause::Undetermined if !flow.has_enough_samples() => "Watch for at least 10 s.".to_owned(),
        Cause::Undetermined if flow.loopback() => {
            "Both ends are on this host: compare with the other end of the connection in the same list.".to_owned()
        }
        Cause::ReceiverHostDrops if sends => elsewhere(),
        Cause::Application
        | Cause::Storage
        | Cause::RequestGaps
        | Cause::RoundTrip
        | Cause::CpuQuota
        | Cause::Firewall
        | Cause::ReceiverHostDrops => verdict.next_step.clone(),
        _ => elsewhere(),
    }
}

/// Whether the busiest thread waited for a core for longer than it had one.
fn lacks_core(flow: &Flow) -> bool {
    let thread = flow.host_readings.and_then(|host_readings| host_readings.busiest.as_ref());
    thread.is_some_and(|thread| thread.wait_share > thread.cpu_share)
}

/// Advice for a thread that waits for a core.
fn starved_thread(flow: &Flow) -> String {
    let thread = flow.host_readings.and_then(|host_readings| host_readings.busiest.as_ref());
    let tid = thread.map_or_else(|| "TID".to_owned(), |thread| thread.tid.to_string());
    let step = format!(
        "Other work has its core: see which with `top -H`, and where thread {tid} may run with `taskset -cp {tid}`; then move one \
         of them, or give the thread a higher priority (`renice -n -5 -p {tid}`)."
    );
    receive_core(flow).into_iter().fold(step, |step, where_it_runs| format!("{step} {where_it_runs}"))
}

/// Advice for a thread that fills its core.
fn busy_thread(flow: &Flow) -> String {
    let thread = flow.host_readings.and_then(|host_readings| host_readings.busiest.as_ref());
    let tid = thread.map_or_else(|| "TID".to_owned(), |thread| thread.tid.to_string());
    let profile = format!(
        "Profile the application's thread (`perf top -t {tid}`); spread its work over more threads or connections, or give it a \
         faster core."
    );
    receive_core(flow).into_iter().fold(profile, |profile, where_it_runs| format!("{profile} {where_it_runs}"))
}

/// Advice on the core that receives the flow's segments, relative to the thread's core.
fn receive_core(flow: &Flow) -> Option<String> {
    let (thread, receive) = cores(flow)?;
    if thread == receive {
        return Some(format!(
            "Its core {thread} also takes in the flow's segments: move the thread (`taskset`) or the receive queue \
             (`/proc/irq/N/smp_affinity_list`, RPS) to another core of the node."
        ));
    }
    let far = remote_numa_cores(flow)?;
    let other = far.receive.1;
    Some(format!(
        "It runs on node {}, and core {receive} of node {other} takes in its segments: run it on node {other} \
         (`numactl -N {other}`).",
        far.thread.1
    ))
}

/// Core of the process's busiest thread, and core that receives the flow's segments.
fn cores(flow: &Flow) -> Option<(u32, u32)> {
    Some((flow.host_readings?.busiest.as_ref()?.cpu?, flow.host_readings?.receive_cpu?))
}

/// Cores on different NUMA nodes, each as (core, node).
struct RemoteNumaCores {
    thread: (u32, u32),
    receive: (u32, u32),
}

/// Core of the thread and core of its receive queue, if they are on different NUMA nodes.
fn remote_numa_cores(flow: &Flow) -> Option<RemoteNumaCores> {
    let (thread, receive) = cores(flow)?;
    let numa = &flow.local().snapshot?.numa;
    let on_node = |core: u32| {
        let node = numa.iter().find(|node| text::list_contains(&node.cpus, core))?;
        Some((core, node.id))
    };
    let (thread, receive) = (on_node(thread)?, on_node(receive)?);
    (thread.1 != receive.1).then_some(RemoteNumaCores { thread, receive })
}

impl RemoteNumaCores {
    fn evidence(&self, about: Cause, flow: &Flow) -> Evidence {
        let ((thread, own), (receive, other)) = (self.thread, self.receive);
        Evidence {
            about,
            metric: format!(
                "NUMA nodes of the thread's core ({thread}, node {own}) and its receive queue's ({receive}, node {other})"
            ),
            value: 2.0,
            unit: "nodes".to_owned(),
            threshold: "≥ 2 nodes".to_owned(),
            met: true,
            host: Some(flow.local().name().to_owned()),
            stream: None,
            span_ns: Some(flow.span_ns),
            source: "SO_INCOMING_CPU".to_owned(),
        }
    }
}

/// Replaces the document path of a reading with the kernel's name, such as `tcp_info.rwnd_limited_us`.
/// Other text is kept.
fn source(reading: &Evidence) -> String {
    let path = reading.source.as_str();
    if path.contains("].thread_") {
        return "/proc/PID/task/TID/schedstat".to_owned();
    }
    let name = ["sender.", "receiver."].iter().find_map(|end| path.split_once(end)).map_or(path, |(_, name)| name);
    match name.strip_prefix("samples[].") {
        Some(field) => {
            field.strip_prefix("tcp.").map_or_else(|| format!("socket.{field}"), |field| format!("tcp_info.{field}"))
        }
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_name_the_kernels_fields() {
        let reading = |source: &str| Evidence {
            about: Cause::Application,
            metric: String::new(),
            value: 0.0,
            unit: String::new(),
            threshold: String::new(),
            met: true,
            host: None,
            stream: None,
            span_ns: None,
            source: source.to_owned(),
        };
        for (path, name) in [
            ("streams[0].sender.samples[].tcp.rwnd_limited_us", "tcp_info.rwnd_limited_us"),
            ("streams[0].receiver.samples[].receive_queue_bytes", "socket.receive_queue_bytes"),
            ("hosts.client.nic.speed_bps", "hosts.client.nic.speed_bps"),
        ] {
            assert_eq!(source(&reading(path)), name);
        }
    }
}
