//! Losses and delays between two taps and in the receiver host, for the document.

use landspeed_model::{
    LossPlace, PathDirection, TraceDocument, TraceEndpoint, TraceFlow, TraceLoss, TracePath, TraceTransport, Warning,
};

use crate::arrivals::{Arrival, ArrivalTotals, Arrivals};
use crate::clocks::{Clocks, Delays};
use crate::key::{Key, document_endpoint};
use crate::waiting::TapPacket;

/// Maximum number of losses in the document, per place.
const MAX_LOSSES: usize = 1_000;

/// One direction of a flow, between the taps.
#[derive(Debug, Clone, Default)]
pub(crate) struct MatchedDirection {
    pub matched: u64,
    /// Packets seen at one tap only, by tap: without payload, with payload.
    pub only: [[u64; 2]; 2],
    /// The first of them with payload.
    pub listed: [Vec<TapPacket>; 2],
    /// Packets seen at one tap only while the other was not capturing, by tap.
    pub undetermined: [u64; 2],
    /// Packets by tap, and (`data_bytes`) their payload at both.
    pub passed: [u64; 2],
    pub data_bytes: u64,
    /// Second tap's clock minus the first's: range until a clock was set, range since then, and latest value.
    pub began: Option<(i64, i64)>,
    pub span: Option<(i64, i64)>,
    pub latest_ns: Option<i64>,
    pub reordered: u64,
    /// Ranks at both taps of the first match, and (`last_ranks`) of the match that passed the first tap last.
    pub first_ranks: Option<(u64, u64)>,
    pub last_ranks: (u64, u64),
    /// Data after each tap, if that tap is the last before the receiver.
    pub arrivals: [Option<Box<Arrivals>>; 2],
    pub lost_after: [Vec<Arrival>; 2],
}

/// A flow at the end of both captures.
#[derive(Debug)]
pub(crate) struct PairedFlow {
    pub key: Key,
    /// Initial sequence number of the client, if it is known.
    pub client: Option<u32>,
    /// Time of its first packet at the first tap, or at the second if the first has none, by that tap's clock.
    pub first_ns: i64,
    /// Upward (lower to higher endpoint), downward.
    pub directions: [MatchedDirection; 2],
    pub upward_is_forward: bool,
    /// Packets of each direction after its last tap.
    pub behind: [ReceiverLosses; 2],
}

/// Data packets after the last tap of a direction.
#[derive(Debug, Default)]
pub(crate) struct ReceiverLosses {
    /// Their numbers; `None` if no data passed.
    pub totals: Option<ArrivalTotals>,
    /// The dropped packets.
    pub listed: Vec<Arrival>,
}

/// The captures, and how they were compared.
#[derive(Debug)]
pub(crate) struct Taps {
    pub from: String,
    pub to: String,
    /// Whether addresses and ports may differ between them.
    pub translated: bool,
    /// Copies ignored at each tap.
    pub copies: [u64; 2],
}

/// Losses and delays between two taps.
#[derive(Debug)]
pub struct TapComparison {
    path: TracePath,
    flows: Vec<PairedFlow>,
    clocks: Clocks,
    translated: bool,
    copies: [u64; 2],
}

impl TapComparison {
    pub(crate) fn new(
        taps: Taps,
        (matched, given_up): (u64, u64),
        mut flows: Vec<PairedFlow>,
        clocks: Clocks,
    ) -> Self {
        let Taps { from, to, translated, copies } = taps;
        let mut path = TracePath { from, to, matched, given_up, ..TracePath::default() };
        for flow in &mut flows {
            if matched == 0 || flow.is_unknown() {
                flow.mark_undetermined();
            }
            for (direction, between) in flow.directions.iter().enumerate() {
                let is_forward = (direction == 0) == flow.upward_is_forward;
                let sum = if is_forward { &mut path.forward } else { &mut path.reverse };
                add(sum, between, is_forward);
            }
        }
        Self { path, flows, clocks, translated, copies }
    }

    /// Adds the path and its losses to the first tap's document.
    pub fn add_to(mut self, document: &mut TraceDocument, second: &TraceDocument) {
        // Only the last tap of a chain has the receiver after it.
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
                let is_forward = upward == between.upward_is_forward;
                let index = usize::from(!upward);
                if chain && direction.lost_network.is_none() {
                    // An earlier pair of taps did not see the flow.
                    continue;
                }
                // Losses of a chain add up.
                let lost = between.directions[index].only[usize::from(!is_forward)][1];
                direction.lost_network = Some(direction.lost_network.unwrap_or(0) + lost);
                // After the second tap of a pair (forward), or the first tap of the first pair (reverse).
                if is_tcp && (is_forward || !chain) {
                    let behind = &between.behind[index];
                    direction.lost_receiver = behind.totals.map(|totals| totals.lost);
                    direction.lost_paws = behind.totals.map(|totals| totals.paws);
                    direction.undetermined_receiver = behind.totals.map(|totals| totals.undetermined);
                }
            }
            flow.lost_network = flow.forward.lost_network;
            flow.lost_receiver = flow.forward.lost_receiver;
        }
        let mut losses = Vec::new();
        for flow in &self.flows {
            flow.list_losses(&self.path, [zero_ns, zero_ns.saturating_add(offset_ns)], &mut losses);
        }
        losses.sort_by_key(|loss| loss.time_ns);
        for place in [LossPlace::Network, LossPlace::Receiver, LossPlace::Paws] {
            let listed = document.losses.iter().filter(|loss| loss.place == place).count();
            let more = losses.iter().filter(|loss| loss.place == place).take(MAX_LOSSES.saturating_sub(listed));
            document.losses.extend(more.cloned());
        }
        document.losses.sort_by_key(|loss| loss.time_ns);
        self.path.clock_offset_ns = compared.offset_ns;
        self.path.round_trip_ns = compared.round_trip_ns;
        self.path.drift_ppm = compared.drift_ppm.map(|(drift, _)| drift);
        self.path.drift_uncertainty_ppm = compared.drift_ppm.map(|(_, unsure)| unsure);
        self.path.clock_steps = compared.steps;
        let [forward, reverse] = compared.delays;
        set_delay_variation(&mut self.path.forward, forward);
        set_delay_variation(&mut self.path.reverse, reverse);
        self.warn(document, second);
        document.path.push(self.path);
        if document.path.len() > 1 {
            share(&mut document.path, |path| &mut path.forward);
            share(&mut document.path, |path| &mut path.reverse);
        }
    }

    /// Returns the flow that corresponds to one of the document, and whether its source is the lower endpoint.
    /// Several connections may have the same four-tuple.
    fn find(&self, flow: &TraceFlow, start_ns: u64) -> Option<(&PairedFlow, bool)> {
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
        let try_nat = if self.translated { "" } else { "; try --nat if addresses or ports change between the taps" };
        let unknown: Vec<&PairedFlow> = self.flows.iter().filter(|flow| flow.is_unknown()).collect();
        if self.path.matched == 0 {
            warn(
                "nothing-in-common",
                format!("no packet of {from} matches one of {to}, so no loss can be located{try_nat}"),
            );
        } else if let Some(one) = unknown.first() {
            let end = document_endpoint(one.key.low());
            warn(
                "flows-not-matched",
                format!(
                    "{} flows are at one tap only, such as that of {} port {}: their losses are unknown{try_nat}",
                    unknown.len(),
                    end.address,
                    end.port
                ),
            );
        }
        let [forward, reverse] = [true, false].map(|forward| {
            let directions = self.flows.iter().filter(|flow| !flow.is_unknown()).flat_map(|flow| {
                flow.directions
                    .iter()
                    .enumerate()
                    .filter(move |(direction, _)| ((*direction == 0) == flow.upward_is_forward) == forward)
            });
            directions.map(|(_, between)| between.data_bytes).sum::<u64>()
        });
        if reverse > forward {
            warn(
                "taps-swapped",
                format!(
                    "most data flows from {to} to {from}: name the sender's capture first \
                     (landspeed trace {to} {from})"
                ),
            );
        }
        let behind = self.flows.iter().flat_map(|flow| &flow.behind);
        let open: u64 = behind.filter_map(|behind| behind.totals).map(|totals| totals.undetermined).sum();
        if open > 0 {
            warn(
                "receiver-undetermined",
                format!(
                    "{open} packets passed the last tap twice, and no ACK shows whether the receiver dropped the first copy: \
                     they are not counted as dropped"
                ),
            );
        }
        for (copies, tap) in self.copies.iter().zip([from, to]) {
            // The first tap's document has its own warning.
            if *copies > 0 && tap == to {
                warn("copies-between", format!("{tap} has {copies} packets twice; the copies are ignored"));
            }
        }
        if document.capture.super_packets + second.capture.super_packets > 0 {
            let message = "super-packets do not match the frames on the wire: to count losses between the taps, capture \
                           on the wire, or with TSO and GRO off";
            document.warnings.push(Warning { code: "super-packets-between".into(), message: message.into() });
        }
    }
}

impl PairedFlow {
    /// Returns whether one tap has both directions and the other has none: such a flow takes another path, and is not
    /// lost.
    pub fn is_unknown(&self) -> bool {
        let seen = |tap: usize| self.directions.iter().all(|between| between.passed[tap] > 0);
        let matched: u64 = self.directions.iter().map(|between| between.matched).sum();
        matched == 0 && (seen(0) || seen(1))
    }

    /// Moves its losses to undetermined.
    fn mark_undetermined(&mut self) {
        for between in &mut self.directions {
            for tap in 0..2 {
                between.undetermined[tap] += between.only[tap].iter().sum::<u64>();
                between.only[tap] = [0; 2];
                between.listed[tap] = Vec::new();
            }
        }
        self.behind = Default::default();
    }

    /// Returns the flow if it has these endpoints, and whether source to destination is upward.
    fn is(&self, [source, destination]: [&TraceEndpoint; 2]) -> Option<(&Self, bool)> {
        let (low, high) = (document_endpoint(self.key.low()), document_endpoint(self.key.high()));
        if low == *source && high == *destination {
            return Some((self, true));
        }
        (high == *source && low == *destination).then_some((self, false))
    }

    /// Appends its losses. `zero_ns` is the document's start by the clock of each tap.
    fn list_losses(&self, path: &TracePath, zero_ns: [i64; 2], losses: &mut Vec<TraceLoss>) {
        let (low, high) = (document_endpoint(self.key.low()), document_endpoint(self.key.high()));
        for (direction, between) in self.directions.iter().enumerate() {
            let (source, destination) = if direction == 0 { (&low, &high) } else { (&high, &low) };
            // Index of the direction's first tap.
            let met = usize::from((direction == 0) != self.upward_is_forward);
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
            for arrival in &self.behind[direction].listed {
                losses.push(TraceLoss {
                    sequence: Some(arrival.sequence()),
                    payload_bytes: arrival.payload(),
                    identification: arrival.identification,
                    frame: arrival.frame,
                    ..loss(arrival.place(), 1 - met, arrival.time_ns)
                });
            }
        }
    }
}

fn add(sum: &mut PathDirection, between: &MatchedDirection, is_forward: bool) {
    let met = usize::from(!is_forward);
    let (only, other) = (between.only[met], between.only[1 - met]);
    sum.matched += between.matched;
    sum.lost_other += only[0];
    sum.lost_data += only[1];
    sum.appeared += other[0] + other[1];
    sum.undetermined += between.undetermined.iter().sum::<u64>();
    sum.reordered += between.reordered;
}

fn set_delay_variation(direction: &mut PathDirection, delays: Delays) {
    direction.delay_variation_p50_ns = delays.p50_ns;
    direction.delay_variation_p99_ns = delays.p99_ns;
    direction.delay_variation_max_ns = delays.max_ns;
    direction.delay = delays.over_time;
}

/// Sets the share of each hop of a chain in the sum of the p99 delays.
fn share(path: &mut [TracePath], direction: impl Fn(&mut TracePath) -> &mut PathDirection) {
    let p99 = |path: &mut TracePath| direction(path).delay_variation_p99_ns.unwrap_or(0);
    let sum: u64 = path.iter_mut().map(p99).sum();
    for hop in path {
        let own = p99(hop);
        direction(hop).delay_share = (sum > 0).then(|| own as f64 / sum as f64);
    }
}
