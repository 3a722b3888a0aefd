//! CPU load of each side, and which side is slower.

use landspeed_model::StreamEnd;

use crate::finding::Strength;
use crate::flow::{Figure, Flow};
use crate::host::{CoreMean, End, HostView};
use crate::stream::{StreamView, ThreadShare};
use crate::thresholds::{
    CORE_BUSY, KEPT_WAITING, LACKS_CORE, READER_BEHIND, RWND_LIMITED, SHORT_PATH_US, SOFTIRQ_SHARE, THREAD_BUSY,
    THREAD_STARVED, WAITS, WINDOW_FULL,
};

/// The side of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The sending host.
    Sender,
    /// The receiving host.
    Receiver,
}

/// Kind of load that fills the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// System calls of the stream's thread: mostly the copy between user and kernel memory.
    Copy,
    /// User code of the stream's thread.
    User,
    /// Softirqs on a core: the packet path.
    Softirq,
    /// All cores of the host are busy: the thread waits for one.
    Crowded,
    /// Other work on the thread's core: the thread was runnable and had to wait.
    Starved,
    /// Both sides run on one machine: neither thread is always busy, but one of them is at any time.
    Turns,
}

/// The reading that decided, with its threshold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecidingReading {
    pub metric: &'static str,
    pub value: f64,
    pub threshold: f64,
}

/// CPU load of one side.
#[derive(Debug)]
pub(crate) struct Load {
    /// Strength of the evidence that a core limits, from this side's readings; `None` if it does not.
    pub strength: Option<Strength>,
    /// The deciding reading, if it is neither the mean over threads nor a core's load.
    pub decided: Option<DecidingReading>,
    /// Kind of load.
    pub kind: Kind,
    /// The loaded core, if known.
    pub core: Option<CoreMean>,
    /// Whether the core is known from pinning or from its softirqs; else it is the busiest one.
    pub core_is_known: bool,
    /// Share of the phase in which the stream threads ran on a core.
    pub threads: Option<Figure>,
    /// Share of the phase in which they were runnable without a core.
    pub waits: Option<Figure>,
    /// Sum of `threads` and `waits`.
    pub work: Option<Figure>,
    /// Share of system time in the CPU time of the threads.
    pub system_share: Option<f64>,
}

impl Load {
    /// Whether the threads waited for a core for a relevant time.
    pub(crate) fn waited_for_core(&self) -> bool {
        self.waits.is_some_and(|figure| figure.value >= KEPT_WAITING)
    }
}

/// Evaluates the CPU load of one side.
pub(crate) fn load<'a>(flow: &Flow<'a>, role: Role) -> Load {
    let host = host_of(flow, role);
    let end = |stream: &StreamView<'a>| end_of(stream, role);
    let shares = |of: &dyn Fn(ThreadShare) -> Option<f64>| flow.figure(|stream| of(thread_of(stream, role)?));
    let mut threads = shares(&|thread| Some(thread.cpu));
    let mut waits = shares(&|thread| thread.wait);
    let mut work = shares(&|thread| Some(thread.work()));
    // With several threads, the one that serves the socket is unknown: assume the busiest.
    let guessed = threads.is_none() && host.end == End::Client;
    if let Some(thread) =
        flow.host_readings.and_then(|host_readings| host_readings.busiest.as_ref()).filter(|_| guessed)
    {
        let figure = |value| Some(Figure { value, largest: (0, value), smallest: (0, value) });
        threads = figure(thread.cpu_share);
        waits = figure(thread.wait_share);
        work = figure(thread.cpu_share + thread.wait_share);
    }
    let (system, user) = flow.streams.iter().filter_map(end).fold((0.0, 0.0), |(system, user), end| {
        let [system_ns, user_ns] = [end.thread_system_ns, end.thread_user_ns].map(|ns| ns.unwrap_or(0) as f64);
        (system + system_ns, user + user_ns)
    });
    let system_share = (system + user > 0.0).then(|| system / (system + user));
    let pinned = flow.streams.iter().filter_map(end).find_map(|end| end.cpu).and_then(|cpu| host.core(cpu));
    let own_kind = if system_share.unwrap_or(1.0) >= 0.5 { Kind::Copy } else { Kind::User };
    let mut load = Load {
        strength: None,
        decided: None,
        kind: own_kind,
        core: pinned.or(host.busiest()).copied(),
        core_is_known: pinned.is_some(),
        threads,
        waits,
        work,
        system_share,
    };
    if load.waited_for_core() {
        load.kind = Kind::Starved;
    }
    // Softirqs first: they can fill a core without any test thread. If both sides share the host, they run on
    // whichever core the sender uses and do not point to a side.
    if let Some(core) = host
        .most_interrupted()
        .filter(|core| core.softirq >= SOFTIRQ_SHARE && core.kernel() >= CORE_BUSY && !flow.same_host())
    {
        return Load {
            strength: Some(Strength::Strong),
            kind: Kind::Softirq,
            core: Some(*core),
            core_is_known: true,
            ..load
        };
    }
    let Some((threads, work)) = threads.zip(work) else { return load };
    let all = threads.value * flow.streams.len() as f64;
    let cores = host.snapshot.map_or(0, |snapshot| snapshot.cores_online).max(host.cores.len() as u32);
    // Steal time is not available to the threads.
    let stolen = host.steal().unwrap_or(0.0).clamp(0.0, 0.5);
    let decisive = |metric, value, threshold| Some(DecidingReading { metric, value, threshold });
    // A watched program may sleep besides: what it lacks then is a core, in most of the time in which it does not run.
    let lacks = waits
        .filter(|_| flow.observed && load.waited_for_core())
        .map(|waits| waits.value / (1.0 - threads.value).max(0.01));
    if work.value >= THREAD_BUSY {
        load.strength = Some(if guessed { Strength::Moderate } else { Strength::Strong });
    } else if work.value >= THREAD_BUSY * (1.0 - stolen) {
        load.strength = Some(Strength::Moderate);
        load.decided = decisive(
            "share of the time the hypervisor leaves on a core or ready for one, stream thread",
            work.value / (1.0 - stolen),
            THREAD_BUSY,
        );
    } else if cores > 0 && all >= THREAD_BUSY * f64::from(cores) {
        load.strength = Some(Strength::Strong);
        load.kind = Kind::Crowded;
        load.decided = decisive("share of all cores used by the stream threads", all / f64::from(cores), THREAD_BUSY);
    } else if let Some(turns) = slower_of_alternating_ends(flow)
        && turns.slower == role
    {
        // With a small fixed buffer the threads wake each other every few segments: the buffer may be the actual
        // limit.
        load.strength = Some(if flow.parameters.window_bytes.is_some() { Strength::Weak } else { turns.strength });
        load.kind = Kind::Turns;
        load.decided = Some(turns.decided);
    } else if let Some(lacks) = lacks.filter(|&lacks| lacks >= LACKS_CORE) {
        load.strength = Some(if guessed && flow.host_readings.is_some_and(|host| host.threads > Some(1)) {
            Strength::Moderate
        } else {
            Strength::Strong
        });
        let metric = "share of its time off the core in which the thread was ready to run";
        load.decided = decisive(metric, lacks, LACKS_CORE);
    } else if work.largest.1 >= THREAD_BUSY {
        load.strength = Some(Strength::Weak);
        let metric = "share of time on a core or ready for one, busiest stream thread";
        load.decided = decisive(metric, work.largest.1, THREAD_BUSY);
    } else if waits.is_some() {
        // The kernel reported the wait time, and it was short.
    } else if pinned.is_some_and(|core| core.busy >= CORE_BUSY) && threads.largest.1 >= THREAD_STARVED {
        load.strength = Some(Strength::Moderate);
        load.kind = Kind::Starved;
    } else if let Some(busy) = host.busy().filter(|&busy| busy >= CORE_BUSY)
        && (threads.value >= THREAD_STARVED || all >= THREAD_STARVED * f64::from(cores))
    {
        load.strength = Some(Strength::Moderate);
        load.kind = Kind::Crowded;
        load.decided = decisive("all cores busy, mean", busy, CORE_BUSY);
    }
    load
}

/// The slower of two sides that take turns on shared cores.
struct Turns {
    slower: Role,
    strength: Strength,
    decided: DecidingReading,
}

/// Finds the slower side for TCP bulk transfers between two processes on one machine with a minimal RTT: if
/// the two threads together are busy or runnable all the time, each waits for the other. The slower one is
/// the receiver if data queues there, else the one with more work. On loopback softirqs wait for a core too
/// and are in no thread's account: there a thread that had to wait is a hint even if the sum is lower.
fn slower_of_alternating_ends(flow: &Flow) -> Option<Turns> {
    let short = flow.same_host() && flow.min_rtt_us().is_some_and(|us| us <= SHORT_PATH_US);
    if !short || flow.is_rr() || flow.udp.is_some() {
        return None;
    }
    let mean = |role, of: &dyn Fn(ThreadShare) -> Option<f64>| {
        flow.figure(|stream| of(thread_of(stream, role)?)).map(|figure| figure.value)
    };
    let work = |role| mean(role, &|thread| Some(thread.work()));
    let kept = || [Role::Sender, Role::Receiver].into_iter().filter_map(|role| mean(role, &|thread| thread.wait));
    let longest = kept().reduce(f64::max).filter(|&wait| wait >= KEPT_WAITING);
    let (sender, receiver) = (work(Role::Sender)?, work(Role::Receiver)?);
    let (strength, metric, value, threshold) = match longest {
        // One thread that is always busy is the slower one by itself; if both are, their queues decide.
        _ if (sender >= THREAD_BUSY) != (receiver >= THREAD_BUSY) => return None,
        _ if sender + receiver >= THREAD_BUSY => {
            let metric = "share of time on a core or ready for one, threads of both ends";
            (Strength::Moderate, metric, sender + receiver, THREAD_BUSY)
        }
        Some(wait) if !flow.has_network() => {
            let metric = "share of time runnable without a core, of the thread that waited longest";
            (Strength::Weak, metric, wait, KEPT_WAITING)
        }
        _ => return None,
    };
    let behind = receiver_behind(flow) == Some(true);
    Some(Turns {
        slower: if behind || receiver > sender { Role::Receiver } else { Role::Sender },
        strength,
        decided: DecidingReading { metric, value, threshold },
    })
}

/// Whether sender and receiver share the cores of one host and wait for each other: data then waits in buffers because a thread waits for
/// its core.
pub(crate) fn ends_alternate(flow: &Flow) -> bool {
    slower_of_alternating_ends(flow).is_some()
}

fn thread_of(stream: &StreamView, role: Role) -> Option<ThreadShare> {
    match role {
        Role::Sender => stream.sending_thread(),
        Role::Receiver => stream.receiving_thread(),
    }
}

/// Returns the host with that role.
pub(crate) fn host_of<'f, 'a>(flow: &'f Flow<'a>, role: Role) -> &'f HostView<'a> {
    match role {
        Role::Sender => &flow.sender,
        Role::Receiver => &flow.receiver,
    }
}

/// Returns the sending or receiving side of a stream.
pub(crate) fn end_of<'a>(stream: &StreamView<'a>, role: Role) -> Option<&'a StreamEnd> {
    match role {
        Role::Sender => stream.sender(),
        Role::Receiver => stream.receiver(),
    }
}

/// Whether queues show that the receiver delays the sender; `None` if no queue was read.
pub(crate) fn receiver_behind(flow: &Flow) -> Option<bool> {
    let signs = [
        flow.rwnd_limited().map(|figure| figure.value >= RWND_LIMITED),
        flow.figure(StreamView::flight_over_window).map(|figure| figure.value >= WINDOW_FULL),
        flow.figure(StreamView::receive_fill).map(|figure| figure.value >= READER_BEHIND),
    ];
    if signs.iter().all(Option::is_none) { None } else { Some(signs.contains(&Some(true))) }
}

/// Whether the sender had idle time, waiting for its own schedule.
pub(crate) fn sender_waits(flow: &Flow) -> bool {
    flow.figure(StreamView::wait_share).is_some_and(|figure| figure.value >= WAITS)
}
