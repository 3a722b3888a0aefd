//! One pass over a capture.

use landspeed_model::{
    BuildInfo, TRACE_SCHEMA, TraceBins, TraceCapture, TraceDocument, TraceEndpoint, TraceFlow, TraceHandshake,
    TraceTransport, UnlistedFlows, Warning,
};
use landspeed_wire::capture::{Frame, InterfaceStatistics, LATEST_NS};
use landspeed_wire::{Flags, LinkType, Packet, Transport, Undissected, Wrapping, dissect};

use crate::direction::Direction;
use crate::key::{Key, told};
use crate::station::Station;
use crate::table::{Flow, State, Table};

/// Stations told apart; frames of more are counted together.
const MOST_STATIONS: usize = 64;
/// Directions that get a distribution of their round trips: 2.4 KB each.
const HISTOGRAMS: u32 = 4_096;
/// Bins kept; when there are more, neighbours are joined.
const MOST_BINS: usize = 8_192;
/// Larger than any frame on a wire (jumbo frames and tags).
const LONGEST_FRAME: u32 = 9_300;

/// How much is kept and told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Flows in memory at once.
    pub flows: usize,
    /// Flows in the document.
    pub listed: usize,
    /// Least width of a bin, nanoseconds.
    pub bin_ns: u64,
    /// The gap that ends a train, nanoseconds.
    pub train_gap_ns: u64,
    /// Bins above this rate are counted, bits/s.
    pub burst_bps: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { flows: 1_000_000, listed: 100, bin_ns: 1_000_000, train_gap_ns: 20_000, burst_bps: None }
    }
}

/// An analysis under way.
#[derive(Debug)]
pub struct Analysis {
    limits: Limits,
    table: Table,
    stations: Vec<Station>,
    latest_station: usize,
    capture: TraceCapture,
    first_ns: Option<u64>,
    latest_ns: u64,
    previous_ns: u64,
    bins: TraceBins,
    bins_start_ns: u64,
    room: u32,
    evicted: UnlistedFlows,
}

impl Analysis {
    /// An analysis of nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            table: Table::new(limits.flows),
            stations: Vec::new(),
            latest_station: 0,
            capture: TraceCapture::default(),
            first_ns: None,
            latest_ns: 0,
            previous_ns: 0,
            bins: TraceBins { width_ns: limits.bin_ns.max(1), ..TraceBins::default() },
            bins_start_ns: 0,
            room: HISTOGRAMS,
            evicted: UnlistedFlows::default(),
        }
    }

    /// What has been read so far.
    pub fn frames(&self) -> u64 {
        self.capture.frames
    }

    /// Takes a frame, in the order of the capture.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        let frame = &Frame { time_ns: frame.time_ns.min(LATEST_NS), ..*frame };
        let time_ns = frame.time_ns;
        let capture = &mut self.capture;
        capture.frames += 1;
        capture.wire_bytes += u64::from(frame.original);
        capture.captured_bytes += frame.data.len() as u64;
        capture.super_packets += u64::from(frame.original > LONGEST_FRAME);
        capture.backward_steps += u64::from(time_ns < self.previous_ns);
        self.previous_ns = time_ns;
        if self.first_ns.is_none() {
            self.bins_start_ns = time_ns;
        }
        self.first_ns = Some(self.first_ns.map_or(time_ns, |first_ns| first_ns.min(time_ns)));
        self.latest_ns = self.latest_ns.max(time_ns);
        let (mut again, mut pure_ack) = (false, false);
        match dissect(frame.link, frame.data, frame.original) {
            Ok(packet) => {
                capture.wrapped += u64::from(packet.wrapping != Wrapping::default());
                pure_ack = matches!(packet.transport, Transport::Tcp(tcp) if tcp.payload == 0
                    && tcp.flags.has(Flags::ACK) && !tcp.flags.has(Flags::SYN) && !tcp.flags.has(Flags::FIN));
                again = self.packet(&packet, frame);
            }
            Err(Undissected::NotIp) => capture.not_ip += 1,
            Err(Undissected::Cut) => capture.cut += 1,
            Err(Undissected::Malformed) => capture.malformed += 1,
        }
        self.station(frame).frame(time_ns, frame.original, pure_ack);
        self.bin(time_ns, frame.original, again);
    }

    /// Takes an interface's own statistics.
    pub fn statistics(&mut self, statistics: InterfaceStatistics) {
        if let Some(dropped) = statistics.dropped {
            self.capture.dropped = Some(self.capture.dropped.unwrap_or(0).saturating_add(dropped));
        }
    }

    fn packet(&mut self, packet: &Packet, frame: &Frame<'_>) -> bool {
        let Some((key, upward)) = Key::of(packet) else {
            match packet.transport {
                Transport::Fragment => self.capture.fragments += 1,
                _ => self.capture.other_transport += 1,
            }
            return false;
        };
        let (flow, gone) = self.table.flow(key, frame.time_ns);
        flow.last_ns = flow.last_ns.max(frame.time_ns);
        let again = match (&mut flow.state, &packet.transport) {
            (State::Tcp(connection), Transport::Tcp(tcp)) => {
                connection.pass(packet, tcp, upward, frame.time_ns, frame.original, &mut self.room)
            }
            (State::Udp(datagrams), &Transport::Udp { payload, at, .. }) => {
                let captured = frame.data.get(at..).unwrap_or_default();
                datagrams[usize::from(!upward)].pass(frame.original, payload, captured);
                false
            }
            _ => false,
        };
        if let Some(gone) = gone {
            self.capture.evicted_flows += 1;
            add(&mut self.evicted, &gone);
        }
        again
    }

    fn station(&mut self, frame: &Frame<'_>) -> &mut Station {
        let mac = match frame.link {
            LinkType::ETHERNET => frame.data.get(6..).and_then(<[u8]>::first_chunk).copied(),
            _ => None,
        };
        let is = |station: &Station| station.interface == frame.interface && station.mac == mac;
        if !self.stations.get(self.latest_station).is_some_and(is) {
            self.latest_station = match self.stations.iter().position(is) {
                Some(at) => at,
                None if self.stations.len() < MOST_STATIONS => {
                    let Limits { train_gap_ns, burst_bps, .. } = self.limits;
                    self.stations.push(Station::new(frame.interface, mac, train_gap_ns, burst_bps));
                    self.stations.len() - 1
                }
                None => MOST_STATIONS - 1,
            };
        }
        &mut self.stations[self.latest_station]
    }

    fn bin(&mut self, time_ns: u64, wire: u32, again: bool) {
        let since_ns = time_ns.saturating_sub(self.bins_start_ns);
        let bins = &mut self.bins;
        while since_ns / bins.width_ns >= MOST_BINS as u64 {
            bins.width_ns *= 2;
            bins.bytes = bins.bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
            bins.retransmits = bins.retransmits.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        let at = (since_ns / bins.width_ns) as usize;
        if at >= bins.bytes.len() {
            bins.bytes.resize(at + 1, 0);
            bins.retransmits.resize(at + 1, 0);
        }
        bins.bytes[at] += u64::from(wire);
        bins.retransmits[at] += u32::from(again);
    }

    /// Ends the analysis. `interface` names an interface of the capture by its number.
    pub fn finish(
        mut self,
        landspeed: BuildInfo,
        command: Vec<String>,
        file: String,
        format: &str,
        ended_early: Option<String>,
        interface: impl Fn(u32) -> Option<String>,
    ) -> TraceDocument {
        let start_ns = self.first_ns.unwrap_or(0);
        self.capture.file = file;
        format.clone_into(&mut self.capture.format);
        self.capture.start_ns = start_ns;
        self.capture.duration_ns = self.latest_ns.saturating_sub(start_ns);
        self.capture.ended_early = ended_early;
        let mut flows = self.table.into_flows();
        flows.sort_by_key(|flow| std::cmp::Reverse(payload(flow)));
        let mut unlisted = self.evicted;
        flows.iter().skip(self.limits.listed).for_each(|flow| add(&mut unlisted, flow));
        flows.truncate(self.limits.listed);
        let named = |number| interface(number).unwrap_or_else(|| format!("interface {number}"));
        let stations: Vec<_> = self.stations.into_iter().map(|s| (named(s.interface), s)).collect();
        let mut document = TraceDocument {
            schema: TRACE_SCHEMA.into(),
            landspeed,
            command,
            capture: self.capture,
            flows: flows.iter().map(|flow| tell(flow, start_ns)).collect(),
            unlisted,
            stations: stations.into_iter().map(|(name, station)| station.document(name)).collect(),
            bins: self.bins,
            path: Vec::new(),
            warnings: Vec::new(),
        };
        document.warnings = warnings(&document);
        document
    }
}

fn payload(flow: &Flow) -> u64 {
    match &flow.state {
        State::Tcp(connection) => connection.directions().iter().map(Direction::payload_bytes).sum(),
        State::Udp(datagrams) => datagrams.iter().map(|datagrams| datagrams.payload_bytes).sum(),
    }
}

fn add(sums: &mut UnlistedFlows, flow: &Flow) {
    sums.flows += 1;
    sums.payload_bytes += payload(flow);
    match &flow.state {
        State::Tcp(connection) => {
            for direction in connection.directions() {
                sums.packets += direction.packets();
                sums.retransmits += direction.retransmits();
            }
        }
        State::Udp(datagrams) => sums.packets += datagrams.iter().map(|datagrams| datagrams.packets).sum::<u64>(),
    }
}

fn tell(flow: &Flow, start_ns: u64) -> TraceFlow {
    let (low, high) = (told(flow.key.low), told(flow.key.high));
    let duration_ns = flow.last_ns.saturating_sub(flow.first_ns);
    let rate = |bytes: u64| (duration_ns > 0).then(|| bytes as f64 * 8e9 / duration_ns as f64);
    let begin = flow.first_ns.saturating_sub(start_ns);
    match &flow.state {
        State::Tcp(connection) => {
            let [up, down] = connection.directions();
            let upward = up.payload_bytes() >= down.payload_bytes();
            let (from, to) = if upward { (up, down) } else { (down, up) };
            let handshake = connection.handshake().map(|(client_is_low, mut handshake)| {
                handshake.client = Some(if client_is_low { low.clone() } else { high.clone() });
                handshake
            });
            let (source, destination) = if upward { (low, high) } else { (high, low) };
            let mut forward = from.document();
            if !near_sender(from, handshake.as_ref(), &source) {
                forward.limits = None;
            }
            TraceFlow {
                transport: TraceTransport::Tcp,
                source,
                destination,
                start_ns: begin,
                duration_ns,
                goodput_bps: from.goodput_bps(),
                retransmits: from.retransmits(),
                lost_network: None,
                lost_receiver: None,
                rtt_ns: from.typical_rtt_ns(),
                handshake,
                forward,
                reverse: to.document(),
            }
        }
        State::Udp(datagrams) => {
            let [up, down] = &**datagrams;
            let upward = up.payload_bytes >= down.payload_bytes;
            let (from, to) = if upward { (up, down) } else { (down, up) };
            let (source, destination) = if upward { (low, high) } else { (high, low) };
            TraceFlow {
                transport: TraceTransport::Udp,
                source,
                destination,
                start_ns: begin,
                duration_ns,
                goodput_bps: rate(from.payload_bytes),
                retransmits: 0,
                lost_network: None,
                lost_receiver: None,
                rtt_ns: None,
                handshake: None,
                forward: from.document(),
                reverse: to.document(),
            }
        }
    }
}

/// Whether the tap is nearer to the sender than to the receiver. Far from it, what is in flight there says nothing of
/// what is in flight for the sender. Without a handshake the tap has the benefit of the doubt.
fn near_sender(sender: &Direction, handshake: Option<&TraceHandshake>, source: &TraceEndpoint) -> bool {
    let Some(handshake) = handshake else { return true };
    let from_client = handshake.client.as_ref() == Some(source);
    let to_sender = if from_client { handshake.client_rtt_ns } else { handshake.server_rtt_ns };
    sender.typical_rtt_ns().zip(to_sender).is_none_or(|(to_receiver, to_sender)| to_sender <= to_receiver)
}

/// What a reader of the figures has to know.
fn warnings(document: &TraceDocument) -> Vec<Warning> {
    let capture = &document.capture;
    let mut warnings = Vec::new();
    let mut warn = |code: &str, message: String| warnings.push(Warning { code: code.into(), message });
    if let Some(why) = &capture.ended_early {
        warn("ended-early", format!("the capture could not be read to its end: {why}"));
    }
    if let Some(dropped) = capture.dropped.filter(|&dropped| dropped > 0) {
        warn(
            "capture-drops",
            format!("the capture itself dropped {dropped} frames: holes in it are no losses of the path"),
        );
    }
    let missing: u64 =
        document.flows.iter().map(|flow| flow.forward.missing_bytes + flow.reverse.missing_bytes).sum();
    if missing > 0 {
        warn(
            "missing-data",
            format!(
                "{missing} bytes were acknowledged that the capture does not have: the tap missed frames, or sees only \
                 one of several ways"
            ),
        );
    }
    if capture.super_packets > 0 {
        warn(
            "super-packets",
            format!(
                "{} frames are larger than any wire carries: they were captured above TSO or GRO, so gaps, trains and \
                 packet counts are the host's, not the wire's",
                capture.super_packets
            ),
        );
    }
    if capture.backward_steps > 0 {
        warn("time-backward", format!("{} frames are earlier than the one before them", capture.backward_steps));
    }
    if capture.evicted_flows > 0 {
        warn(
            "evicted-flows",
            format!(
                "{} flows were summed up early because more than the limit were live; --flows raises it",
                capture.evicted_flows
            ),
        );
    }
    warnings
}
