//! Links that change: frames between the two ports of a wire, carried by the model of `landspeed-emulation` in virtual
//! time. Computing takes none, so that each frame leaves at the model's nanosecond.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

use landspeed_emulation::{DirectionModel, DirectionPlan, Event, Frame, HopCounters, frame};
use landspeed_stats::SplitMix64;
use landspeed_sys::frames::{FrameRing, ReceivedFrame};
use landspeed_sys::tun::wait_readable;
use landspeed_sys::{clock, netns};

use super::cpu::{Cpus, HostCpu, TO_HOST, TO_LINK};
use super::frames::{self, FrameStore, MAX_WAIT_NS};
use super::network::Network;
use super::report::{CarrierReport, Sample};
use crate::plan::{Plan, PlannedCarrier};

/// All links of a plan that change, and the receive paths of its hosts.
pub struct Carriers {
    links: Vec<Carrier>,
    /// Hosts whose CPU costs time.
    pub cpus: Cpus,
}

/// A link that changes.
struct Carrier {
    node: usize,
    senders: [(usize, usize); 2],
    /// Forward and reverse direction.
    directions: [Mutex<Direction>; 2],
}

/// Reading of the queue and the link of one direction.
#[derive(Debug, Clone, Copy)]
pub struct CarriedReading {
    /// Counters of queue and link.
    pub counters: HopCounters,
    /// Bytes that wait in the queue at the reading.
    pub queue_bytes: u64,
    /// Frames that wait in the queue at the reading.
    pub queue_packets: u64,
    /// Frames queued, being sent and in flight.
    pub held: u64,
    /// Frames delivered, and their bytes from the Ethernet header on.
    pub delivered: (u64, u64),
}

/// One direction of a link that changes.
struct Direction {
    model: DirectionModel<usize>,
    /// Monotonic time at which the model's time is 0, modulo 2^64.
    base_ns: u64,
    frames: FrameStore,
    events: Vec<Event<usize>>,
    /// Frames that are due, in order, with their departure times.
    due: Vec<(Frame<usize>, u64)>,
    report: CarrierReport,
}

impl Direction {
    /// Creates the direction at `now_ns`; the scenario begins at `zero_ns`.
    fn new(plan: &DirectionPlan, seed: u64, now_ns: u64, zero_ns: u64) -> Self {
        let (plan, shift_ns) = plan.clone().delayed(zero_ns.saturating_sub(now_ns));
        Self {
            model: DirectionModel::new(&plan, seed),
            base_ns: zero_ns.wrapping_sub(shift_ns),
            frames: FrameStore::default(),
            events: Vec::new(),
            due: Vec::new(),
            report: CarrierReport::default(),
        }
    }

    fn model_time(&self, at_ns: u64) -> u64 {
        at_ns.wrapping_sub(self.base_ns)
    }

    /// Takes a frame that arrived at `at_ns`.
    fn receive(&mut self, received: &ReceivedFrame<'_>, at_ns: u64) {
        let Some(slot) = self.frames.store(received) else {
            self.report.unhandled += 1;
            return;
        };
        let frame = Frame::inspected(slot, self.frames.bytes(slot));
        let at_ns = self.model_time(at_ns);
        self.model.offer(at_ns, frame, &mut self.events);
        self.collect();
    }

    /// Moves frames through the links up to `now_ns`.
    fn advance(&mut self, now_ns: u64) {
        let now_ns = self.model_time(now_ns);
        self.model.take(now_ns, &mut self.events);
        self.collect();
    }

    fn collect(&mut self) {
        for event in self.events.drain(..) {
            match event {
                Event::Deliver { frame, due_ns } => self.due.push((frame, due_ns)),
                Event::Copy { item } => self.frames.copy(item),
                Event::Drop { item, .. } => self.frames.release(item),
            }
        }
    }

    /// Sends the frames that are due.
    fn send(&mut self, ring: &FrameRing) {
        let now_ns = self.model_time(clock::monotonic_ns());
        for (frame, due_ns) in &self.due {
            self.report.late_ns_max = self.report.late_ns_max.max(now_ns.saturating_sub(*due_ns));
            if frame.marked {
                frame::mark_ce(self.frames.bytes_mut(frame.item));
            }
        }
        let items = self.due.drain(..).map(|(frame, _)| frame.item);
        self.report.unhandled += self.frames.send(ring, items);
    }

    fn reading(&self) -> CarriedReading {
        let (queue_bytes, queue_packets) = self.model.waiting(0);
        let counters = self.model.counters();
        CarriedReading {
            counters: self.model.hops().next().unwrap_or_default(),
            queue_bytes,
            queue_packets,
            held: self.model.held(0),
            delivered: (counters.delivered, counters.delivered_bytes),
        }
    }
}

impl Carriers {
    /// Prepares all links; the scenario begins at `zero_ns`.
    pub fn new(plan: &Plan, cpus: Cpus, zero_ns: u64) -> Result<Self, String> {
        let now_ns = clock::monotonic_ns();
        let carrier = |planned: &PlannedCarrier| -> Result<Carrier, String> {
            let path = planned.load().map_err(|error| error.to_string())?;
            let mut seeds = SplitMix64::new(path.path.seed);
            let mut direction =
                |plan: &DirectionPlan| Mutex::new(Direction::new(plan, seeds.bits(), now_ns, zero_ns));
            let directions = [direction(&path.forward), direction(&path.reverse)];
            Ok(Carrier { node: planned.node, senders: planned.senders, directions })
        };
        let links = plan.carriers.iter().map(carrier).collect::<Result<Vec<_>, String>>()?;
        Ok(Self { links, cpus })
    }

    /// Starts a thread for each link and each receive path, and waits until all receive.
    pub fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        plan: &'scope Plan,
        network: &'scope Network,
        over: &'scope AtomicBool,
    ) -> Result<Vec<ScopedJoinHandle<'scope, Result<(), String>>>, String> {
        type Ready = (Sender<Result<(), String>>, Receiver<Result<(), String>>);
        let (ready, is_ready): Ready = channel();
        let mut threads: Vec<_> = self
            .links
            .iter()
            .map(|carrier| {
                let ready = ready.clone();
                scope.spawn(move || carrier.run(plan, network, over, &ready))
            })
            .collect();
        threads.extend(self.cpus.receivers().map(|cpu| {
            let ready = ready.clone();
            scope.spawn(move || {
                let rings = open_receive_path(plan, network, cpu);
                let _ = ready.send(rings.as_ref().map(|_| ()).map_err(Clone::clone));
                let (from_link, to_host) = rings?;
                super::set_observer_policy();
                cpu.run(from_link, &to_host, over);
                Ok(())
            })
        }));
        for _ in &threads {
            is_ready.recv().map_err(|error| error.to_string())??;
        }
        Ok(threads)
    }

    /// Returns the reading of the direction that a port sends into: a port of the wire (by which frames leave), or of the
    /// host or switch before the link. `None` for all other ports.
    pub fn reading(&self, port: (usize, usize), now_ns: u64) -> Option<CarriedReading> {
        let direction = self.links.iter().find_map(|carrier| {
            let sender = carrier.senders.iter().position(|sender| *sender == port);
            // Frames in forward direction leave the wire by its second port.
            let index = sender.or_else(|| (carrier.node == port.0).then(|| 1 - port.1))?;
            Some(&carrier.directions[index])
        })?;
        let mut direction = lock(direction);
        direction.advance(now_ns);
        Some(direction.reading())
    }

    /// Returns the reading of a port of a link that changes, or of a receive path, as that of a qdisc; `None` for all other ports.
    pub fn sample(&self, node: usize, port: usize) -> Option<Sample> {
        if let Some(sample) = self.cpus.sample(node, port) {
            return Some(sample);
        }
        self.links.iter().find(|carrier| carrier.node == node)?;
        let reading = self.reading((node, port), clock::monotonic_ns())?;
        let HopCounters { policed, queue_full, aqm, lost, down, duplicated, .. } = reading.counters;
        Some(Sample {
            root: true,
            bytes: reading.delivered.1,
            packets: reading.delivered.0,
            drops: policed + queue_full + aqm + lost + down,
            backlog_bytes: reading.queue_bytes,
            backlog_packets: reading.held,
            copies: duplicated,
        })
    }

    /// Returns the reports of all links, forward and reverse.
    pub fn reports(&self) -> Vec<[CarrierReport; 2]> {
        let now_ns = clock::monotonic_ns();
        let of = |direction: &Mutex<Direction>| {
            let mut direction = lock(direction);
            direction.advance(now_ns);
            let counters = direction.reading().counters;
            CarrierReport {
                changes: direction.model.changes_made() as u64,
                queue_drops: counters.policed + counters.queue_full + counters.aqm,
                lost: counters.lost + counters.down,
                marked: counters.marked,
                ..direction.report
            }
        };
        self.links.iter().map(|carrier| carrier.directions.each_ref().map(of)).collect()
    }
}

/// Opens the ring of the frames that come from a host's link, and one that sends to the host.
fn open_receive_path(plan: &Plan, network: &Network, cpu: &HostCpu) -> Result<(FrameRing, FrameRing), String> {
    let index = cpu.receive_node().ok_or_else(|| "no receive path".to_owned())?;
    netns::enter(network.namespace(index)).map_err(|e| format!("cannot enter a namespace: {e}"))?;
    let node = &plan.nodes[index];
    // The kernel carries what the host sends.
    let rings = frames::open(network.interface(index, TO_LINK), node.ports[TO_LINK].mtu)
        .and_then(|from_link| Ok((from_link, frames::open_to_send(network.interface(index, TO_HOST))?)));
    rings.map_err(|e| format!("{}: {e}", node.name))
}

fn lock(direction: &Mutex<Direction>) -> MutexGuard<'_, Direction> {
    direction.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Carrier {
    fn run(
        &self,
        plan: &Plan,
        network: &Network,
        over: &AtomicBool,
        ready: &Sender<Result<(), String>>,
    ) -> Result<(), String> {
        let rings = self.open(plan, network);
        let mut rings = match rings {
            Ok(rings) => {
                let _ = ready.send(Ok(()));
                rings
            }
            Err(error) => {
                let _ = ready.send(Err(error.clone()));
                return Err(error);
            }
        };
        super::set_observer_policy();
        // Both clocks advance together in virtual time.
        let wall_ahead_ns = clock::realtime_ns().wrapping_sub(clock::monotonic_ns());
        while !over.load(Ordering::Relaxed) {
            for (side, ring) in rings.iter_mut().enumerate() {
                let mut direction = lock(&self.directions[side]);
                while let Some(frame) = ring.peek() {
                    direction.receive(&frame, frame.timestamp_ns.wrapping_sub(wall_ahead_ns));
                    ring.release();
                }
            }
            let now_ns = clock::monotonic_ns();
            let mut wait_ns = MAX_WAIT_NS;
            for (side, direction) in self.directions.iter().enumerate() {
                let mut direction = lock(direction);
                direction.advance(now_ns);
                direction.send(&rings[1 - side]);
                if let Some(next_ns) = direction.model.next_departure() {
                    wait_ns = wait_ns.min(next_ns.saturating_sub(direction.model_time(now_ns)));
                }
            }
            if wait_ns > 0 {
                wait_readable([rings[0].as_fd(), rings[1].as_fd()], wait_ns);
            }
        }
        for (side, ring) in rings.iter().enumerate() {
            lock(&self.directions[side]).report.unhandled += u64::from(ring.drops().unwrap_or(0));
        }
        Ok(())
    }

    /// Opens rings at both ports: frames in forward direction arrive at the first one.
    fn open(&self, plan: &Plan, network: &Network) -> Result<[FrameRing; 2], String> {
        netns::enter(network.namespace(self.node)).map_err(|e| format!("cannot enter a namespace: {e}"))?;
        let node = &plan.nodes[self.node];
        let open = |port: usize| {
            let ring = frames::open(network.interface(self.node, port), node.ports[port].mtu);
            ring.map_err(|e| format!("{}: {e}", node.name))
        };
        Ok([open(0)?, open(1)?])
    }
}
