//! What lies between two taps and behind them, put into the document.

use landspeed_model::{
    LossPlace, PathDirection, TraceDocument, TraceEndpoint, TraceFlow, TraceLoss, TracePath, TraceTransport, Warning,
};

use crate::arrivals::Arrival;
use crate::clocks::{Clocks, Delays};
use crate::key::{Key, told};
use crate::pairing::Between;

/// Losses in the document of each place.
const MOST_LOSSES: usize = 1_000;

/// A flow when both captures are at their end.
#[derive(Debug)]
pub(crate) struct Ended {
    pub key: Key,
    /// Initial sequence number of the client, if it is known.
    pub client: Option<u32>,
    /// Its first packet at the first tap, or at the second if the first has none, by that tap's clock.
    pub first_ns: i64,
    /// Upward, downward.
    pub ways: [Between; 2],
    pub upward_is_there: bool,
    /// Of each way, behind the last tap.
    pub behind: [Behind; 2],
}

/// Data packets behind the last tap of a way.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// How many the receiver dropped, if data passed there.
    pub lost: Option<u64>,
    /// Of how many it is not known whether the receiver dropped them.
    pub undetermined: u64,
    /// Which were dropped.
    pub listed: Vec<Arrival>,
}

/// The captures, and how they were compared.
#[derive(Debug)]
pub(crate) struct Taps {
    pub from: String,
    pub to: String,
    /// Whether addresses and ports may differ between them.
    pub translated: bool,
    /// Copies that were ignored.
    pub copies: [u64; 2],
}

/// What lies between two taps.
#[derive(Debug)]
pub struct Placed {
    path: TracePath,
    flows: Vec<Ended>,
    clocks: Clocks,
    translated: bool,
    copies: [u64; 2],
}

impl Placed {
    pub(crate) fn new(taps: Taps, (matched, given_up): (u64, u64), mut flows: Vec<Ended>, clocks: Clocks) -> Self {
        let Taps { from, to, translated, copies } = taps;
        let mut path = TracePath { from, to, matched, given_up, ..TracePath::default() };
        for flow in &mut flows {
            if matched == 0 || flow.is_unknown() {
                flow.forget();
            }
            for (way, between) in flow.ways.iter().enumerate() {
                let is_there = (way == 0) == flow.upward_is_there;
                let sum = if is_there { &mut path.forward } else { &mut path.backward };
                add(sum, between, is_there);
            }
        }
        Self { path, flows, clocks, translated, copies }
    }

    /// Puts it into the first tap's document, with what the second tap's says of what came after it.
    pub fn tell(mut self, document: &mut TraceDocument, second: &TraceDocument) {
        // Behind the last tap is the receiver, behind an earlier one of a chain the next hop.
        document.losses.retain(|loss| loss.place == LossPlace::Network);
        let chained = document.path.iter().map(|path| path.clock_offset_ns.unwrap_or(0)).sum::<i64>();
        let zero_ns = (document.capture.start_ns as i64).saturating_add(chained);
        let compared = self.clocks.compare(zero_ns);
        let offset_ns = compared.offset_ns.unwrap_or(0);
        let (start_ns, chain) = (document.capture.start_ns, !document.path.is_empty());
        for flow in &mut document.flows {
            let Some((between, upward)) = self.find(flow, start_ns) else { continue };
            if between.is_unknown() || self.path.matched == 0 {
                (flow.lost_network, flow.lost_receiver) = (None, None);
                for direction in [&mut flow.forward, &mut flow.reverse] {
                    (direction.lost_network, direction.lost_receiver) = (None, None);
                }
                continue;
            }
            let is_tcp = flow.transport == TraceTransport::Tcp;
            for (direction, upward) in [(&mut flow.forward, upward), (&mut flow.reverse, !upward)] {
                let there = upward == between.upward_is_there;
                let way = usize::from(!upward);
                if chain && direction.lost_network.is_none() {
                    // An earlier pair did not have it.
                    continue;
                }
                // Taps of a chain add up.
                let lost = between.ways[way].only[usize::from(!there)][1];
                direction.lost_network = Some(direction.lost_network.unwrap_or(0) + lost);
                // Behind the second tap of a pair, and behind the first tap of the first pair.
                if is_tcp && (there || !chain) {
                    let behind = &between.behind[way];
                    direction.lost_receiver = behind.lost;
                    direction.undetermined_receiver = behind.lost.map(|_| behind.undetermined);
                }
            }
            flow.lost_network = flow.forward.lost_network;
            flow.lost_receiver = flow.forward.lost_receiver;
        }
        let mut losses = Vec::new();
        for flow in &self.flows {
            flow.list(&self.path, [zero_ns, zero_ns.saturating_add(offset_ns)], &mut losses);
        }
        losses.sort_by_key(|loss| loss.time_ns);
        for place in [LossPlace::Network, LossPlace::Receiver] {
            let listed = document.losses.iter().filter(|loss| loss.place == place).count();
            let more = losses.iter().filter(|loss| loss.place == place).take(MOST_LOSSES.saturating_sub(listed));
            document.losses.extend(more.cloned());
        }
        document.losses.sort_by_key(|loss| loss.time_ns);
        self.path.clock_offset_ns = compared.offset_ns;
        self.path.round_trip_ns = compared.round_trip_ns;
        self.path.drift_ppm = compared.drift_ppm.map(|(drift, _)| drift);
        self.path.drift_uncertainty_ppm = compared.drift_ppm.map(|(_, unsure)| unsure);
        self.path.clock_steps = compared.steps;
        let [there, back] = compared.delays;
        vary(&mut self.path.forward, there);
        vary(&mut self.path.backward, back);
        self.warn(document, second);
        document.path.push(self.path);
        if document.path.len() > 1 {
            share(&mut document.path, |path| &mut path.forward);
            share(&mut document.path, |path| &mut path.backward);
        }
    }

    /// The flow of the document, and whether its source is the lesser end. Several connections may have had its four-tuple.
    fn find(&self, flow: &TraceFlow, start_ns: u64) -> Option<(&Ended, bool)> {
        let ends = [&flow.source, &flow.destination];
        let client = flow.handshake.as_ref().and_then(|handshake| handshake.client_sequence);
        let first_ns = start_ns.saturating_add(flow.start_ns) as i64;
        let same = self.flows.iter().filter_map(|between| between.is(ends));
        same.min_by_key(|(between, _)| {
            let other = client.is_some() && between.client.is_some() && client != between.client;
            (other, first_ns.abs_diff(between.first_ns))
        })
    }

    fn warn(&self, document: &mut TraceDocument, second: &TraceDocument) {
        let (from, to) = (&self.path.from, &self.path.to);
        let mut warn = |code: &str, message: String| document.warnings.push(Warning { code: code.into(), message });
        let try_nat = if self.translated { "" } else { ". Try --nat if addresses or ports change between the taps" };
        let unknown: Vec<&Ended> = self.flows.iter().filter(|flow| flow.is_unknown()).collect();
        if self.path.matched == 0 {
            warn(
                "nothing-in-common",
                format!("{from} and {to} have no packet in common: no loss can be placed{try_nat}"),
            );
        } else if let Some(one) = unknown.first() {
            let end = told(one.key.low());
            warn(
                "flows-not-matched",
                format!(
                    "{} flows passed one tap in both directions and the other not at all, such as that of {} port {}: their \
                     losses are unknown{try_nat}",
                    unknown.len(),
                    end.address,
                    end.port
                ),
            );
        }
        let [forth, back] = [true, false].map(|forth| {
            let ways = self.flows.iter().filter(|flow| !flow.is_unknown()).flat_map(|flow| {
                flow.ways.iter().enumerate().filter(move |(way, _)| ((*way == 0) == flow.upward_is_there) == forth)
            });
            ways.map(|(_, between)| between.data_bytes).sum::<u64>()
        });
        if back > forth {
            warn(
                "taps-swapped",
                format!(
                    "most data goes from {to} to {from}: name the sender's capture first \
                     (landspeed trace {to} {from})"
                ),
            );
        }
        let open: u64 = self.flows.iter().flat_map(|flow| &flow.behind).map(|behind| behind.undetermined).sum();
        if open > 0 {
            warn(
                "receiver-undetermined",
                format!(
                    "{open} packets passed the last tap twice, and no ACK shows whether the receiver had dropped the first copy: \
                     they are not counted as dropped"
                ),
            );
        }
        for (copies, tap) in self.copies.iter().zip([from, to]) {
            // The first tap's own document says it too.
            if *copies > 0 && tap == to {
                warn("copies-between", format!("{tap} has {copies} packets twice: the copies are ignored"));
            }
        }
        if document.capture.super_packets + second.capture.super_packets > 0 {
            let message = "super-packets cannot be matched with the frames they become: capture both ends on the wire, \
                           or with TSO and GRO off, before counting losses between the taps";
            document.warnings.push(Warning { code: "super-packets-between".into(), message: message.into() });
        }
    }
}

impl Ended {
    /// Whether its packets passed both ways at one tap and never at the other: whatever they did, they were not lost.
    pub fn is_unknown(&self) -> bool {
        let seen = |tap: usize| self.ways.iter().all(|between| between.passed[tap] > 0);
        let matched: u64 = self.ways.iter().map(|between| between.matched).sum();
        matched == 0 && (seen(0) || seen(1))
    }

    /// Counts nothing of it as lost.
    fn forget(&mut self) {
        for between in &mut self.ways {
            for tap in 0..2 {
                between.undetermined[tap] += between.only[tap].iter().sum::<u64>();
                between.only[tap] = [0; 2];
                between.listed[tap] = Vec::new();
            }
        }
        self.behind = Default::default();
    }

    /// Whether it has these ends, and if it does, whether from the first to the second of them is upward.
    fn is(&self, [source, destination]: [&TraceEndpoint; 2]) -> Option<(&Self, bool)> {
        let (low, high) = (told(self.key.low()), told(self.key.high()));
        if low == *source && high == *destination {
            return Some((self, true));
        }
        (high == *source && low == *destination).then_some((self, false))
    }

    /// Lists what was lost. `zero_ns` is the document's beginning by the clock of each tap.
    fn list(&self, path: &TracePath, zero_ns: [i64; 2], losses: &mut Vec<TraceLoss>) {
        let (low, high) = (told(self.key.low()), told(self.key.high()));
        for (way, between) in self.ways.iter().enumerate() {
            let (source, destination) = if way == 0 { (&low, &high) } else { (&high, &low) };
            // The tap it meets first, and the one it meets last.
            let met = usize::from((way == 0) != self.upward_is_there);
            let names = [&path.from, &path.to];
            let loss = |place, tap: usize, time_ns: i64| TraceLoss {
                place,
                after: names[tap].clone(),
                time_ns: time_ns.saturating_sub(zero_ns[tap]),
                source: source.clone(),
                destination: destination.clone(),
                sequence: None,
                payload_bytes: 0,
                identification: 0,
                frame: 0,
            };
            for seen in &between.listed[met] {
                losses.push(TraceLoss {
                    sequence: self.key.is_tcp().then_some(seen.sequence),
                    payload_bytes: seen.payload,
                    identification: seen.identification,
                    frame: u64::from(seen.frame),
                    ..loss(LossPlace::Network, met, seen.time_ns)
                });
            }
            for arrival in &self.behind[way].listed {
                losses.push(TraceLoss {
                    sequence: Some(arrival.sequence()),
                    payload_bytes: arrival.payload(),
                    identification: arrival.identification,
                    frame: arrival.frame,
                    ..loss(LossPlace::Receiver, 1 - met, arrival.time_ns)
                });
            }
        }
    }
}

fn add(sum: &mut PathDirection, between: &Between, is_there: bool) {
    let met = usize::from(!is_there);
    let (only, other) = (between.only[met], between.only[1 - met]);
    sum.matched += between.matched;
    sum.lost_other += only[0];
    sum.lost_data += only[1];
    sum.appeared += other[0] + other[1];
    sum.undetermined += between.undetermined.iter().sum::<u64>();
    sum.reordered += between.reordered;
}

fn vary(way: &mut PathDirection, delays: Delays) {
    way.delay_variation_p50_ns = delays.p50_ns;
    way.delay_variation_p99_ns = delays.p99_ns;
    way.delay_variation_max_ns = delays.max_ns;
    way.delay = delays.over_time;
}

/// Which hop of a chain adds how much of the delay.
fn share(path: &mut [TracePath], way: impl Fn(&mut TracePath) -> &mut PathDirection) {
    let p99 = |path: &mut TracePath| way(path).delay_variation_p99_ns.unwrap_or(0);
    let sum: u64 = path.iter_mut().map(p99).sum();
    for hop in path {
        let own = p99(hop);
        way(hop).delay_share = (sum > 0).then(|| own as f64 / sum as f64);
    }
}
