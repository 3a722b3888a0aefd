//! The kernel datapath: queueing disciplines forward the frames; landspeed reads their counters.

mod counters;
mod network;
mod taps;
mod tree;

use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_emulation::LoadedPath;
use landspeed_model::EmulateDatapath;
use landspeed_netlink::{LinkId, Netlink};
use landspeed_stats::LatencyHistogram;
use landspeed_sys::clock::{monotonic_ns, realtime_ns, sleep_until};

use crate::between::IFF_UP;
use crate::carry::{EarlyEnd, EmulationOutcome, Ends, STOP_CHECK_NS, TX_DROPPED, dropped};
use crate::error::EmulateError;
use crate::live::Live;
use crate::seconds::Seconds;
use counters::Counters;
use network::Network;
use taps::Taps;
use tree::{HopTree, may_reorder, trees};

/// Interval at which taps and disciplines are read, nanoseconds.
const READ_INTERVAL_NS: u64 = 5_000_000;
/// Maximum time for frames in transit between two veth links, nanoseconds.
const MAX_TRANSIT_NS: u64 = 100_000_000;

/// Refuses a path that the kernel's queueing disciplines cannot express.
pub fn check_kernel(path: &LoadedPath) -> Result<(), EmulateError> {
    trees(path).map(drop)
}

/// Builds the path between both interfaces, calls `ready`, and reads its counters until `stop` is set or an
/// interface disappears. `live` publishes each second.
pub fn carry_by_kernel(
    path: &LoadedPath,
    ends: Ends,
    stop: &AtomicBool,
    live: &Live,
    ready: impl FnOnce(),
) -> Result<EmulationOutcome, EmulateError> {
    let trees = trees(path)?;
    let Ends { names, mut watched, .. } = ends;
    let network = Network::build(&names, &trees)?;
    let taps = Taps::open(path, &names, network.ends)?;
    let resolution_ns = trees.iter().map(|hops| hops.iter().map(HopTree::resolution_ns).sum()).max().unwrap_or(0);
    let delay_ns = path.forward.delay_ns().max(path.reverse.delay_ns());
    let (start_ns, start_unix_ns) = (monotonic_ns(), realtime_ns());
    let mut watch = KernelEmulation {
        counters: [&trees[0], &trees[1]].map(|hops| Counters::new(hops)),
        errors: taps.predicts().then(LatencyHistogram::new),
        network,
        taps,
        seconds: Seconds::new(delay_ns, resolution_ns),
        drops_before: dropped(&mut watched),
        watched,
        dump: Vec::new(),
        start_ns,
        live,
    };
    live.begin(start_unix_ns);
    // Baseline of the link counters.
    watch.read_link_counters();
    ready();
    let early_end = watch.run(stop);
    watch.drain_path();
    let duration_ns = monotonic_ns() - start_ns;
    watch.conclude(duration_ns);
    let delays = watch.taps.finish();
    let plans = [&path.forward, &path.reverse];
    let outcomes = watch.counters.into_iter().zip(delays).zip(plans);
    let outcomes: Vec<_> =
        outcomes.map(|((counters, delays), plan)| counters.finish(delays, plan, !may_reorder(plan))).collect();
    Ok(EmulationOutcome {
        datapath: EmulateDatapath::Kernel,
        start_unix_ns,
        duration_ns,
        directions: outcomes.try_into().unwrap_or_else(|_| unreachable!("two directions")),
        errors: watch.errors,
        invalid: watch.seconds.invalid,
        seconds: live.take_seconds(),
        work_share: 0.0,
        work_share_max: 0.0,
        early_end,
    })
}

/// State of a running emulation.
struct KernelEmulation<'a> {
    network: Network,
    counters: [Counters; 2],
    taps: Taps,
    /// Departure errors of both directions, if the model predicts at least one of them.
    errors: Option<LatencyHistogram>,
    seconds: Seconds,
    watched: Vec<(Netlink, u32)>,
    drops_before: u64,
    dump: Vec<landspeed_netlink::QdiscReading>,
    start_ns: u64,
    live: &'a Live,
}

impl KernelEmulation<'_> {
    /// Reads until `stop` is set; returns the reason if it ends earlier.
    fn run(&mut self, stop: &AtomicBool) -> Option<EarlyEnd> {
        for look in 1_u64.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            self.read_taps_and_qdiscs();
            let elapsed_ns = monotonic_ns() - self.start_ns;
            if self.seconds.is_over(elapsed_ns) {
                self.conclude(elapsed_ns);
            }
            if let Some(pending_request) = self.live.pending_request() {
                self.live.answer(pending_request, self.seconds.current_invalid(), elapsed_ns);
            }
            if look.is_multiple_of(STOP_CHECK_NS / READ_INTERVAL_NS) && !self.is_up() {
                return Some(EarlyEnd::InterfaceLost);
            }
            sleep_until(monotonic_ns() + READ_INTERVAL_NS);
        }
        None
    }

    fn is_up(&mut self) -> bool {
        let Network { netlink, ends, .. } = &mut self.network;
        ends.iter().all(|end| netlink.link(LinkId::Index(*end)).is_ok_and(|link| link.flags & IFF_UP != 0))
    }
}

impl KernelEmulation<'_> {
    /// Reads taps and disciplines.
    fn read_taps_and_qdiscs(&mut self) {
        // A placeholder: nothing is recorded without a model.
        let mut unused = LatencyHistogram::new();
        self.taps.read(&mut self.seconds, self.errors.as_mut().unwrap_or(&mut unused));
        // A failed dump is retried at the next reading.
        if let Ok(readings) = self.network.read(&mut self.dump) {
            let now_ns = monotonic_ns();
            for (counters, readings) in self.counters.iter_mut().zip(&readings) {
                counters.take(readings, now_ns);
            }
        }
    }

    /// Reads the counters of the interfaces.
    fn read_link_counters(&mut self) {
        let drops = dropped(&mut self.watched).saturating_sub(self.drops_before);
        self.drops_before += drops;
        self.seconds.now().interface_drops += drops;
        let Network { netlink, directions, ends } = &mut self.network;
        let mut stats = |link: u32| netlink.link(LinkId::Index(link)).map(|link| link.stats).unwrap_or_default();
        for ((side, links), counters) in directions.iter().enumerate().zip(&mut self.counters) {
            let all = links.iter().flat_map(|hop| [Some(hop.shaper), hop.wire].into_iter().flatten());
            let lost = all.filter_map(|link| stats(link).get(TX_DROPPED).copied()).sum();
            self.seconds.now().interface_drops += counters.take_links(lost, &stats(ends[side]));
            self.seconds.now().unplanned_drops += counters.new_unplanned();
        }
    }

    /// Ends the current second.
    fn conclude(&mut self, elapsed_ns: u64) {
        self.read_link_counters();
        let length_ns = self.seconds.length_ns(elapsed_ns);
        let slowest = self.counters.iter_mut().filter_map(Counters::slowest);
        self.seconds.now().slowest = slowest.min_by(|a, b| share(*a).total_cmp(&share(*b)));
        let directions = self.counters.each_mut().map(|counters| counters.conclude_second(length_ns));
        self.seconds.publish(elapsed_ns, directions, self.live);
    }

    /// Stops admitting frames, and reads until every frame is accounted for.
    fn drain_path(&mut self) {
        self.network.close();
        let until_ns = monotonic_ns() + MAX_TRANSIT_NS;
        loop {
            self.read_taps_and_qdiscs();
            self.read_link_counters();
            if self.counters.iter().all(Counters::is_balanced) || monotonic_ns() >= until_ns {
                break;
            }
            sleep_until(monotonic_ns() + 1_000_000);
        }
    }
}

fn share((sent, could): (u64, u64)) -> f64 {
    sent as f64 / could.max(1) as f64
}
