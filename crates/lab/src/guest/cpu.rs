//! CPU time of hosts: received frames pass a model of the receive path between a host's link and its stack, and the system
//! calls of flows take time on the application core.
//!
//! Softirqs have priority over applications: on a shared core, the work of a call makes progress only while no frame is
//! processed. That time is *application time*: virtual time without the softirqs' share.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landspeed_emulation::{ReceivePath, ReceivedPacket, frame};
use landspeed_stats::SplitMix64;
use landspeed_sys::clock;
use landspeed_sys::frames::{FrameRing, ReceivedFrame};
use landspeed_sys::tun::wait_readable;

use super::frames::{FrameStore, MAX_WAIT_NS};
use super::report::{CpuReport, CpuSample, Sample};
use crate::plan::{HostCall, Plan, PlannedCpu, PlannedReceive};

/// Gap after a call up to which the next one follows without a pause, nanoseconds: the clock reads between them take virtual time,
/// and a call that ends this early does not sleep.
const GAP_NS: u64 = 2_000;
/// Minimum time between two samples, nanoseconds.
const SAMPLE_NS: u64 = 1_000_000;
/// Port of a receive path's node towards the host.
pub const TO_HOST: usize = 0;
/// Port of a receive path's node towards the link.
pub const TO_LINK: usize = 1;

/// CPU time of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallTime {
    /// Time on the core, nanoseconds.
    pub cpu_ns: u64,
    /// Time in which the core had other work, nanoseconds.
    pub wait_ns: u64,
}

/// Charges the calls of a host's applications; returns after the time that the call takes.
pub type ChargeCall = Arc<dyn Fn(&HostCall) -> CallTime + Send + Sync>;

/// Finds the function that charges the calls on sockets with a local address; `None` if they take no time.
pub type ChargeLookup = Box<dyn Fn(IpAddr) -> Option<ChargeCall> + Send + Sync>;

/// Hosts whose CPU costs time.
#[derive(Clone)]
pub struct Cpus(Vec<Arc<HostCpu>>);

/// A host whose CPU costs time.
pub struct HostCpu {
    plan: PlannedCpu,
    addresses: Vec<IpAddr>,
    receive: Option<(PlannedReceive, Mutex<Receive>)>,
    calls: Mutex<Calls>,
    samples: Mutex<Vec<CpuSample>>,
}

/// Receive path with its frames. Its times are those of the monotonic clock.
struct Receive {
    path: ReceivePath<usize>,
    frames: FrameStore,
    /// Frames that are due, in order, with their times.
    due: Vec<(usize, u64)>,
    unhandled: u64,
    late_ns_max: u64,
}

/// Work of the application core.
struct Calls {
    /// Application time at which the calls so far are finished, nanoseconds.
    free_ns: u64,
    /// Part of a nanosecond that they took beyond it, picoseconds.
    fraction_ps: u64,
    /// Total cost of all calls, nanoseconds.
    busy_ns: u64,
    count: u64,
    noise: SplitMix64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receive {
    fn receive(&mut self, received: &ReceivedFrame<'_>, at_ns: u64) {
        let Some(item) = self.frames.store(received) else {
            self.unhandled += 1;
            return;
        };
        let bytes = self.frames.bytes(item);
        let packet = ReceivedPacket {
            item,
            bytes: bytes.len() as u32,
            flow: frame::inspect(bytes).flow,
            payload: frame::mergeable_payload(bytes),
        };
        if !self.path.offer(at_ns, packet, &mut self.due) {
            self.frames.release(item);
        }
    }

    /// Returns the time that softirqs took until `now_ns`, nanoseconds.
    fn busy_ns(&mut self, now_ns: u64) -> u64 {
        self.path.take(now_ns, &mut self.due);
        self.path.busy_ns()
    }

    /// Sends the frames that are due.
    fn send(&mut self, ring: &FrameRing, now_ns: u64) {
        let late = self.due.iter().map(|(_, due_ns)| now_ns.saturating_sub(*due_ns)).max();
        self.late_ns_max = self.late_ns_max.max(late.unwrap_or(0));
        self.unhandled += self.frames.send(ring, self.due.drain(..).map(|(item, _)| item));
    }
}

impl Cpus {
    /// Prepares the CPUs of a plan's hosts.
    pub fn new(plan: &Plan) -> Self {
        let of = |cpu: &PlannedCpu| {
            let mut seeds = SplitMix64::new(cpu.seed);
            let receive = cpu.receive.clone().map(|receive| {
                let path = ReceivePath::new(receive.settings(cpu.noise_ns), seeds.bits());
                let state =
                    Receive { path, frames: FrameStore::default(), due: Vec::new(), unhandled: 0, late_ns_max: 0 };
                (receive, Mutex::new(state))
            });
            let noise = SplitMix64::new(seeds.bits());
            Arc::new(HostCpu {
                plan: cpu.clone(),
                addresses: plan.nodes[cpu.host]
                    .ports
                    .iter()
                    .flat_map(|port| &port.addresses)
                    .map(|(ip, _)| *ip)
                    .collect(),
                receive,
                calls: Mutex::new(Calls { free_ns: 0, fraction_ps: 0, busy_ns: 0, count: 0, noise }),
                samples: Mutex::default(),
            })
        };
        Self(plan.cpus.iter().map(of).collect())
    }

    /// Returns the function that finds what charges the calls on sockets with a local address.
    pub fn lookup(&self) -> ChargeLookup {
        let cpus = self.0.clone();
        Box::new(move |address| {
            let cpu = Arc::clone(cpus.iter().find(|cpu| cpu.addresses.contains(&address))?);
            Some(Arc::new(move |call: &HostCall| cpu.charge(call)))
        })
    }

    /// Returns the hosts with a receive path.
    pub fn receivers(&self) -> impl Iterator<Item = &Arc<HostCpu>> {
        self.0.iter().filter(|cpu| cpu.receive.is_some())
    }

    /// Returns the reading of a receive path's port towards the host, as that of a qdisc; `None` for all other ports.
    pub fn sample(&self, node: usize, port: usize) -> Option<Sample> {
        let found = self.0.iter().filter_map(|cpu| cpu.receive.as_ref()).find(|(plan, _)| plan.node == node);
        let (_, receive) = found.filter(|_| port == TO_HOST)?;
        let mut receive = lock(receive);
        receive.busy_ns(clock::monotonic_ns());
        let counters = receive.path.counters();
        Some(Sample {
            root: true,
            bytes: counters.delivered_bytes,
            packets: counters.delivered,
            drops: counters.dropped,
            backlog_packets: receive.path.held(),
            ..Sample::default()
        })
    }

    /// Records the busy times of all hosts at `t_ns` after the scenario's zero, which is now.
    pub fn record(&self, t_ns: u64) {
        for cpu in &self.0 {
            let mut samples = lock(&cpu.samples);
            if samples.last().is_some_and(|last| t_ns < last.t_ns + SAMPLE_NS) {
                continue;
            }
            let (softirq_ns, application_ns) = cpu.busy(clock::monotonic_ns());
            samples.push(CpuSample { t_ns, softirq_ns, application_ns });
        }
    }

    /// Returns the reports of all hosts, in the plan's order.
    pub fn reports(&self) -> Vec<CpuReport> {
        let now_ns = clock::monotonic_ns();
        let of = |cpu: &Arc<HostCpu>| {
            let (softirq_ns, application_ns) = cpu.busy(now_ns);
            let mut report =
                CpuReport { softirq_ns, application_ns, samples: lock(&cpu.samples).clone(), ..CpuReport::default() };
            report.calls = lock(&cpu.calls).count;
            if let Some((_, receive)) = &cpu.receive {
                let receive = lock(receive);
                let counters = receive.path.counters();
                report.arrived = counters.arrived;
                report.dropped = counters.dropped;
                report.merged = counters.merged;
                report.interrupts = counters.interrupts;
                report.polls = counters.polls;
                report.ring_max = counters.ring_max;
                report.unhandled = receive.unhandled;
                report.late_ns_max = receive.late_ns_max;
            }
            report
        };
        self.0.iter().map(of).collect()
    }
}

impl HostCpu {
    /// Returns the time that softirqs took until `now_ns`, nanoseconds.
    fn softirq_ns(&self, now_ns: u64) -> u64 {
        self.receive.as_ref().map_or(0, |(_, receive)| lock(receive).busy_ns(now_ns))
    }

    /// Returns the application time at `now_ns`.
    fn application_time(&self, now_ns: u64) -> u64 {
        if self.plan.shared { now_ns - self.softirq_ns(now_ns).min(now_ns) } else { now_ns }
    }

    /// Returns the times that softirqs and calls took until `now_ns`, nanoseconds.
    fn busy(&self, now_ns: u64) -> (u64, u64) {
        let application_ns = self.application_time(now_ns);
        let calls = lock(&self.calls);
        let pending_ns = calls.free_ns.saturating_sub(application_ns);
        let busy_ns = calls.busy_ns.saturating_sub(pending_ns);
        drop(calls);
        (self.softirq_ns(now_ns), busy_ns)
    }

    /// Waits for the time that a call takes.
    fn charge(&self, call: &HostCall) -> CallTime {
        let cost_ps = self.plan.cost_ps(call);
        let begun_ns = clock::monotonic_ns();
        let mut now_ns = begun_ns;
        let mut application_ns = self.application_time(now_ns);
        let (end_ns, cpu_ns) = {
            let mut calls = lock(&self.calls);
            if application_ns > calls.free_ns + GAP_NS {
                let noise_ns = self.plan.noise_ns;
                let late_ns = if noise_ns > 0 { calls.noise.below(noise_ns + 1) } else { 0 };
                calls.free_ns = application_ns + late_ns;
            }
            let total_ps = calls.fraction_ps + cost_ps;
            let cpu_ns = total_ps / 1_000;
            calls.fraction_ps = total_ps % 1_000;
            calls.free_ns += cpu_ns;
            calls.busy_ns += cpu_ns;
            calls.count += 1;
            (calls.free_ns, cpu_ns)
        };
        while end_ns > application_ns + GAP_NS {
            clock::sleep_until(now_ns + (end_ns - application_ns));
            now_ns = clock::monotonic_ns();
            application_ns = self.application_time(now_ns);
        }
        CallTime { cpu_ns, wait_ns: (now_ns - begun_ns).saturating_sub(cpu_ns) }
    }

    /// Index of the node of the receive path, if there is one.
    pub fn receive_node(&self) -> Option<usize> {
        self.receive.as_ref().map(|(plan, _)| plan.node)
    }

    /// Carries the frames of the receive path until the run is over.
    pub fn run(&self, mut from_link: FrameRing, to_host: &FrameRing, over: &AtomicBool) {
        let Some((_, receive)) = &self.receive else { return };
        // Both clocks advance together in virtual time.
        let wall_ahead_ns = clock::realtime_ns().wrapping_sub(clock::monotonic_ns());
        while !over.load(Ordering::Relaxed) {
            let mut wait_ns = MAX_WAIT_NS;
            {
                let mut receive = lock(receive);
                while let Some(frame) = from_link.peek() {
                    receive.receive(&frame, frame.timestamp_ns.wrapping_sub(wall_ahead_ns));
                    from_link.release();
                }
                let now_ns = clock::monotonic_ns();
                receive.busy_ns(now_ns);
                receive.send(to_host, now_ns);
                if let Some(next_ns) = receive.path.next_action() {
                    wait_ns = wait_ns.min(next_ns.saturating_sub(now_ns));
                }
            }
            if wait_ns > 0 {
                wait_readable([from_link.as_fd(), from_link.as_fd()], wait_ns);
            }
        }
        lock(receive).unhandled += u64::from(from_link.drops().unwrap_or(0));
    }
}
