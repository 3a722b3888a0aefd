//! Readings, texts and advice shared by the sender-cpu and receiver-cpu causes.

use landspeed_model::{Protocol, SendMode, ThreadUse};

use crate::finding::{Bound, FindingBuilder};
use crate::flow::Flow;
use crate::host::End;
use crate::load::{DecidingReading, Kind, Load, Role, host_of};
use crate::placement;
use crate::stream::StreamView;
use crate::text;
use crate::thresholds::{CORE_BUSY, FAST_PATH_BPS, KEPT_WAITING, SHORT_PATH_US, THREAD_BUSY};

/// Records the CPU readings of one side.
pub(crate) fn record_readings(builder: &mut FindingBuilder, flow: &Flow, role: Role, load: &Load) {
    let host = host_of(flow, role);
    let end = match role {
        Role::Sender => "sender",
        Role::Receiver => "receiver",
    };
    let busy = Bound::AtLeast(THREAD_BUSY);
    if load.waits.is_some() {
        let metric = "share of time on a core or ready for one, stream thread";
        builder.figure(metric, load.work, "ratio", busy, &format!("{end}.samples[].thread_cpu_ns"));
        let metric = "share of time runnable without a core, stream thread";
        let waited = Bound::AtLeast(KEPT_WAITING);
        builder.figure(metric, load.waits, "ratio", waited, &format!("{end}.samples[].thread_wait_ns"));
    } else {
        let metric = "share of time on a core, stream thread";
        builder.figure(metric, load.threads, "ratio", busy, &format!("{end}.thread_cpu_ns"));
    }
    if let Some(DecidingReading { metric, value, threshold }) = load.decided {
        let source = format!("{end}.samples[].thread_cpu_ns");
        builder.value(metric, Some(value), "ratio", Bound::AtLeast(threshold), Some(host.end), &source);
    }
    let source = format!("host_series.{}.samples[].cores", host.name());
    let full = Bound::AtLeast(CORE_BUSY);
    if let Some(core) = load.core {
        let metric = format!("core {} busy", core.core);
        builder.value(&metric, Some(core.busy), "ratio", full, Some(host.end), &source);
        let metric = format!("core {} in system and interrupts", core.core);
        builder.value(&metric, Some(core.kernel()), "ratio", full, Some(host.end), &source);
    } else {
        builder.record_missing(&format!("use of each core ({})", host.name()));
    }
}

/// Returns host, core and kind of load, such as `client core 3, softirq`.
pub(crate) fn load_location(flow: &Flow, role: Role, load: &Load) -> String {
    let host = host_of(flow, role).name();
    let kind = match load.kind {
        Kind::Copy => "system calls of the stream's thread",
        Kind::User => "the stream's thread itself",
        Kind::Softirq => "softirq",
        Kind::Crowded => return format!("{host}, all cores"),
        Kind::Starved => "the stream's thread waits for a core",
        Kind::Turns => "the stream's thread, on cores shared with the other end",
    };
    match load.core.filter(|_| load.core_is_known) {
        Some(core) => format!("{host} core {}, {kind}", core.core),
        None => format!("{host}, {kind}"),
    }
}

/// Returns the busiest thread of the watched process, if `role` is on this host.
fn own_thread<'a>(flow: &Flow<'a>, role: Role) -> Option<&'a ThreadUse> {
    flow.host_readings?.busiest.as_ref().filter(|_| host_of(flow, role).end == End::Client)
}

/// Explains the cause in the second half of a sentence that begins with the rate.
pub(crate) fn why(flow: &Flow, role: Role, load: &Load) -> String {
    let host = host_of(flow, role);
    let name = host.name();
    let (thread, does) = match role {
        Role::Sender => ("sending thread", "sender"),
        Role::Receiver => ("receiving thread", "receiver"),
    };
    let thread = match own_thread(flow, role) {
        Some(own) if flow.host_readings.is_some_and(|host_readings| host_readings.threads > Some(1)) => {
            format!("busiest thread {} (TID {})", own.name, own.tid)
        }
        Some(own) => format!("{thread} {} (TID {})", own.name, own.tid),
        None => thread.to_owned(),
    };
    let share = load.threads.map_or(0.0, |figure| figure.value);
    match (load.kind, load.core) {
        (Kind::Softirq, Some(core)) => format!(
            "core {} of the {name} spends {} of its time in softirqs and is full",
            core.core,
            text::percent(core.softirq)
        ),
        (Kind::Crowded, _) => format!("the {does}'s threads wait for a core: all cores of the {name} are busy"),
        (Kind::Starved, core) => {
            let core =
                core.filter(|_| load.core_is_known).map_or("a core".to_owned(), |core| format!("core {}", core.core));
            match load.waits {
                Some(waits) => format!(
                    "the {thread} on the {name} ran on {core} {} of the time and waited for it {}",
                    text::percent(share),
                    text::percent(waits.value)
                ),
                None => format!("{core} of the {name} is full, and the {thread} gets {} of it", text::percent(share)),
            }
        }
        (Kind::Turns, _) => format!(
            "both ends share this host and take turns on its cores: the {thread} is runnable {} of the time{}",
            text::percent(load.work.map_or(share, |figure| figure.value)),
            match load.waits.filter(|_| load.waited_for_core()) {
                Some(waits) => format!(" and waits for a core {} of the time", text::percent(waits.value)),
                None => String::new(),
            }
        ),
        _ => format!(
            "the {thread} on the {name} uses its core {} of the time{}",
            text::percent(share.min(1.0)),
            match load.system_share {
                Some(system) if load.kind == Kind::Copy =>
                    format!(", {} of that in the kernel", text::percent(system)),
                _ => String::new(),
            }
        ),
    }
}

/// Cores of the flow's stream threads on a host; `None` if one of them is not pinned.
fn pinned_cores(flow: &Flow, role: Role) -> Option<Vec<u32>> {
    let end = |stream: &StreamView| match role {
        Role::Sender => stream.sender().map(|end| end.cpu),
        Role::Receiver => stream.receiver().map(|end| end.cpu),
    };
    let cores: Option<Vec<u32>> = flow.streams.iter().map(|stream| end(stream).flatten()).collect();
    cores.filter(|cores| !cores.is_empty())
}

/// Whether a list of CPUs as the kernel prints it (`0-7,16-23`) has this core.
fn contains(cpus: &str, core: u32) -> bool {
    cpus.split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.trim().parse().is_ok_and(|first: u32| first <= core)
            && last.trim().parse().is_ok_and(|last: u32| core <= last)
    })
}

/// Returns advice for a CPU-limited sender or receiver.
pub(crate) fn next_step(flow: &Flow, role: Role, load: &Load) -> String {
    let host = host_of(flow, role);
    let cores = host.snapshot.map_or(0, |snapshot| snapshot.cores_online);
    let streams = flow.parameters.streams;
    let more = if cores > 1 && streams < cores && !matches!(load.kind, Kind::Crowded | Kind::Starved | Kind::Turns) {
        format!("use more streams (-P {})", (streams.max(1) * 2).min(cores))
    } else {
        "spread the work over more or faster cores".to_owned()
    };
    let pinned = pinned_cores(flow, role);
    let pin = host.snapshot.filter(|snapshot| snapshot.numa.len() > 1).and_then(|snapshot| {
        let node = snapshot.nic.as_ref()?.numa_node.filter(|&node| node >= 0)?;
        let cpus = &snapshot.numa.iter().find(|numa| i64::from(numa.id) == i64::from(node))?.cpus;
        match &pinned {
            None => Some(format!("pin the streams to the NIC's node (cores {cpus})")),
            Some(cores) if cores.iter().all(|&core| contains(cpus, core)) => None,
            Some(_) => Some(format!("move the streams to the NIC's node (cores {cpus})")),
        }
    });
    let advice = (role == Role::Receiver).then(|| placement::queue_core_advice(flow)).flatten();
    let first = match (load.kind, role) {
        (Kind::Softirq, Role::Receiver) => format!(
            "{}Spread the {}'s receive interrupts over more cores (RSS or RPS), keep the application off core {}, and \
             try a larger MTU",
            placement::shared_queue(flow).map_or(String::new(), |shared| placement::spread(flow, &shared) + " "),
            host.name(),
            load.core.map_or(0, |core| core.core)
        ),
        (Kind::Softirq, Role::Sender) => {
            format!("Spread the {}'s transmit queues over more cores (XPS) and try a larger MTU", host.name())
        }
        (Kind::Crowded, _) => format!("Free the {}'s cores of other work", host.name()),
        (Kind::Starved | Kind::Turns, _) if load.kind == Kind::Starved || load.waited_for_core() => format!(
            "Free the {}'s cores of other work, or {} the streams to idle ones ({})",
            host.name(),
            if pinned.is_some() { "move" } else { "pin" },
            match host.end {
                End::Client => "--cpus",
                End::Server if flow.document.iperf3.is_some() => "start iperf3 there with -A",
                End::Server => "--peer-cpus",
            }
        ),
        (_, Role::Sender) if flow.parameters.protocol == Protocol::Tcp => match flow.parameters.send {
            SendMode::Copy if flow.loopback() => {
                "Try --send sendfile (loopback copies MSG_ZEROCOPY sends)".to_owned()
            }
            SendMode::Copy => "Try --send zerocopy or --send sendfile, which save the sender's copy".to_owned(),
            _ => "Zero copy is in use already: try a larger MTU or write size".to_owned(),
        },
        (_, Role::Sender) => "Send larger datagrams, or keep GSO on".to_owned(),
        (_, Role::Receiver) if flow.parameters.protocol == Protocol::Tcp => {
            "Run once with --receive discard: the gain is the cost of the receiver's copy".to_owned()
        }
        (_, Role::Receiver) => "Keep GRO on and receive larger datagrams".to_owned(),
    };
    // BBR takes delays of the hosts for delays of the path: under the same load, Reno was ten times as fast.
    let short = flow.min_rtt_us().is_some_and(|us| us < SHORT_PATH_US) && flow.goodput_bps >= FAST_PATH_BPS;
    let short = short && !flow.loopback() && !flow.observed;
    let compare = if flow.is_model_based() && short && load.waited_for_core() {
        " Compare with `-C cubic`: on a path as short as this one, BBR is slower where threads wait for a core."
    } else {
        ""
    };
    let usual = match pin {
        Some(pin) => format!("{first}; {pin}; or {more}.{compare}"),
        None => format!("{first}; or {more}.{compare}"),
    };
    advice.map_or(usual.clone(), |advice| format!("{advice} {usual}"))
}
