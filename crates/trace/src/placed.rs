//! What lies between two taps and behind them, put into the document.

use landspeed_model::{
    LossPlace, PathDirection, TraceDocument, TraceEndpoint, TraceLoss, TracePath, TraceTransport, Warning,
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
    /// Upward, downward.
    pub ways: [Between; 2],
    pub upward_is_there: bool,
    /// Data packets lost behind the last tap of each way: how many, if data passed there, and which.
    pub behind: [(Option<u64>, Vec<Arrival>); 2],
}

/// What lies between two taps.
#[derive(Debug)]
pub struct Placed {
    path: TracePath,
    flows: Vec<Ended>,
    clocks: Clocks,
}

impl Placed {
    pub(crate) fn new(
        from: String,
        to: String,
        (matched, given_up): (u64, u64),
        flows: Vec<Ended>,
        clocks: Clocks,
    ) -> Self {
        let mut path = TracePath { from, to, matched, given_up, ..TracePath::default() };
        for flow in &flows {
            for (way, between) in flow.ways.iter().enumerate() {
                let is_there = (way == 0) == flow.upward_is_there;
                let sum = if is_there { &mut path.forward } else { &mut path.backward };
                add(sum, between, is_there);
            }
        }
        Self { path, flows, clocks }
    }

    /// Puts it into the first tap's document, with what the second tap's says of what came after it.
    pub fn tell(mut self, document: &mut TraceDocument, second: &TraceDocument) {
        // Behind the last tap is the receiver, behind an earlier one of a chain the next hop.
        document.losses.retain(|loss| loss.place == LossPlace::Network);
        let chained = document.path.iter().map(|path| path.clock_offset_ns.unwrap_or(0)).sum::<i64>();
        let zero_ns = (document.capture.start_ns as i64).saturating_add(chained);
        let compared = self.clocks.compare(zero_ns);
        let offset_ns = compared.offset_ns.unwrap_or(0);
        for flow in &mut document.flows {
            let ends = [&flow.source, &flow.destination];
            let Some((between, upward)) = self.flows.iter().find_map(|between| between.is(ends)) else { continue };
            let there = upward == between.upward_is_there;
            let way = usize::from(!upward);
            // Taps of a chain add up.
            let lost = between.ways[way].only[usize::from(!there)][1];
            flow.lost_network = Some(flow.lost_network.unwrap_or(0) + lost);
            if there && flow.transport == TraceTransport::Tcp {
                flow.lost_receiver = between.behind[way].0;
            }
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

    fn warn(&self, document: &mut TraceDocument, second: &TraceDocument) {
        if self.path.matched == 0 {
            let message = format!("{} and {} have no packet in common", self.path.from, self.path.to);
            document.warnings.push(Warning { code: "nothing-in-common".into(), message });
        }
        if document.capture.super_packets + second.capture.super_packets > 0 {
            let message = "super-packets cannot be matched with the frames they become: capture both ends on the wire, \
                           or with TSO and GRO off, before counting losses between the taps";
            document.warnings.push(Warning { code: "super-packets-between".into(), message: message.into() });
        }
    }
}

impl Ended {
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
            };
            for seen in &between.listed[met] {
                losses.push(TraceLoss {
                    sequence: self.key.is_tcp().then_some(seen.sequence),
                    payload_bytes: seen.payload,
                    identification: seen.identification,
                    ..loss(LossPlace::Network, met, seen.time_ns)
                });
            }
            for arrival in &self.behind[way].1 {
                losses.push(TraceLoss {
                    sequence: Some(arrival.sequence()),
                    payload_bytes: arrival.payload(),
                    identification: arrival.identification,
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
