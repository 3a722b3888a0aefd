//! One-pass analysis of a capture.

use landspeed_model::{
    BuildInfo, PacketDirection, TRACE_SCHEMA, TraceDirection, TraceDocument, TraceEndpoint, TraceEvent,
    TraceEventKind, TraceFlow, TraceHandshake, TraceIcmp, TraceNotAnalysed, TraceReset, TraceTransport, Warning,
};
use landspeed_wire::capture::{Frame, InterfaceStatistics, Sink};

use crate::connection::{Connection, PacketTime};
use crate::direction::FlowDirection;
use crate::flows::{Flows, add, payload, seen_twice, unique};
use crate::intake::{Intake, ParsedFrame};
use crate::key::{Key, document_endpoint};
use crate::known::{Headers, KnownDirections};
use crate::limits::Limits;
use crate::row::Observer;
use crate::subflows;
use crate::table::{Flow, State};

/// Frames per batch handed to the flow table. A batch fits the L1 cache.
const BATCH: usize = 64;

/// A running analysis. The intake needs the frames' bytes, the flow table does not; each can run on its own core,
/// the flow table behind the intake.
#[derive(Debug)]
pub struct Analysis {
    limits: Limits,
    intake: Intake,
    flows: Flows,
    /// Frames not yet handed to the flow table; `waiting` is how many of them are in use.
    batch: Vec<ParsedFrame>,
    waiting: usize,
    /// Headers and station of the first frame of the batch.
    headers: Option<Headers>,
    station: usize,
    known: KnownDirections,
}

impl Analysis {
    /// Creates an empty analysis.
    pub fn new(limits: Limits) -> Self {
        Self::of(limits, Intake::new(limits), Flows::new(limits))
    }

    fn of(limits: Limits, intake: Intake, flows: Flows) -> Self {
        let (batch, known) = (vec![ParsedFrame::default(); BATCH], KnownDirections::new());
        Self { limits, intake, flows, batch, waiting: 0, headers: None, station: 0, known }
    }

    /// Returns the number of frames so far.
    pub fn frames(&self) -> u64 {
        self.intake.frames()
    }

    /// Analyses the next frame.
    #[inline(always)]
    pub fn frame(&mut self, frame: &Frame<'_>) {
        if self.intake.looks_for_copies() || !self.expected(frame) {
            self.any(frame);
        }
    }

    /// Fast path: analyses the next expected segment of a known flow. Returns `false` for any other frame, which is
    /// then not accounted for.
    #[inline(always)]
    fn expected(&mut self, frame: &Frame<'_>) -> bool {
        let Some((owner, fast_header)) = self.known.find(frame) else { return false };
        if self.waiting > 0 {
            self.flush();
        }
        let [time_ns, since_ns] = self.intake.times(frame);
        let at = PacketTime { time_ns, since_ns, frame: self.intake.numbered() + 1 };
        let taken = self.flows.expected(owner.flow, owner.upward, &fast_header, at, frame.original);
        if taken {
            self.intake.expected(frame, time_ns, usize::from(owner.station), fast_header.payload == 0);
        }
        taken
    }

    /// Slow path: dissects and analyses any frame.
    #[inline(never)]
    fn any(&mut self, frame: &Frame<'_>) {
        self.intake.frame(frame, &mut self.batch[self.waiting]);
        if self.waiting == 0 {
            self.headers = Headers::of(frame);
            self.station = self.intake.latest_station();
        }
        self.waiting += 1;
        if self.waiting == BATCH {
            self.flush();
        }
    }

    /// Hands the batch to the flow table, and remembers the headers of its first frame for the fast path. Only of the
    /// first: with many flows, few of them are seen again soon.
    #[inline(never)]
    fn flush(&mut self) {
        self.flows.batch(&self.batch[..self.waiting]);
        if let Some(seen) = self.batch[..self.waiting].first()
            && seen.is_segment()
            && let Some(headers) = self.headers.take()
            && let Some(flow) = self.flows.at(&seen.key)
        {
            self.known.keep(&headers, self.station, seen.upward, flow);
        }
        self.waiting = 0;
    }

    /// Analyses the next frame and passes its row to an observer.
    #[inline]
    pub fn frame_with_row<O: Observer>(&mut self, frame: &Frame<'_>, observer: &mut O) {
        self.flush();
        let seen = &mut self.batch[0];
        let place = self.intake.frame(frame, seen);
        self.flows.show(seen, place, observer);
    }

    /// Counts a frame that a filter excludes.
    pub fn skip(&mut self) {
        self.intake.skip();
    }

    /// Adds an interface's statistics.
    pub fn statistics(&mut self, statistics: InterfaceStatistics) {
        self.intake.statistics(statistics);
    }

    /// Returns the number of flows in memory.
    pub fn live_flows(&self) -> usize {
        self.flows.len()
    }

    /// Splits the analysis for several cores: one runs the intake, the others share the flows. Each frame from
    /// [`Intake::frame`] goes to [`Flows::batch`] of the share given by [`ParsedFrame::share`].
    pub fn parts(mut self, shares: usize) -> (Intake, Vec<Flows>) {
        self.flush();
        (self.intake, self.flows.split(self.limits, shares))
    }

    /// Joins the parts into one analysis.
    pub fn joined(limits: Limits, intake: Intake, shares: Vec<Flows>) -> Self {
        let mut flows = Flows::new(limits);
        for share in shares {
            flows.join(share);
        }
        Self::of(limits, intake, flows)
    }

    /// Finishes the analysis and returns the document. `interface` returns the name of an interface by its number.
    pub fn finish(
        mut self,
        landspeed: BuildInfo,
        command: Vec<String>,
        file: String,
        format: &str,
        ended_early: Option<String>,
        interface: impl Fn(u32) -> Option<String>,
    ) -> TraceDocument {
        self.flush();
        let Self { limits, intake, mut flows, .. } = self;
        let (mut capture, stations, duplicates) = intake.finish();
        duplicates.iter().for_each(|seen| flows.duplicate(seen));
        let start_ns = capture.start_ns;
        let (mut flows, mut unlisted, bins, other_notices) = flows.finish();
        if other_notices > 0 {
            let what = "ICMP errors about flows that are not in the capture".to_owned();
            capture.not_analysed.push(TraceNotAnalysed { what, frames: other_notices });
        }
        capture.evicted_flows = unlisted.flows;
        capture.file = file;
        format.clone_into(&mut capture.format);
        capture.ended_early = ended_early;
        let twice = seen_twice(&flows);
        let multipath = subflows::connections(&flows, start_ns);
        let once = flows.iter().filter(|flow| !twice.contains_key(&flow.number));
        capture.unique_bytes = unlisted.unique_bytes + once.map(unique).sum::<u64>();
        let span_ns = capture.duration_ns;
        capture.goodput_bps = (span_ns > 0).then(|| capture.unique_bytes as f64 * 8e9 / span_ns as f64);
        flows.sort_by_key(|flow| (std::cmp::Reverse(payload(flow)), flow.first_ns, flow.key));
        flows.iter().skip(limits.listed).for_each(|flow| add(&mut unlisted, flow));
        flows.truncate(limits.listed);
        let named = |number| interface(number).unwrap_or_else(|| format!("interface {number}"));
        let stations = stations.into_iter().map(|station| {
            let name = named(station.interface);
            station.document(name, start_ns)
        });
        let mut document = TraceDocument {
            schema: TRACE_SCHEMA.into(),
            landspeed,
            command,
            capture,
            flows: flows.iter().map(|flow| flow_document(flow, start_ns, twice.get(&flow.number))).collect(),
            multipath,
            unlisted,
            stations: stations.collect(),
            bins,
            path: Vec::new(),
            losses: Vec::new(),
            warnings: Vec::new(),
            graphs: None,
        };
        document.warnings = warnings(&document);
        document
    }
}

impl Sink for Analysis {
    #[inline(always)]
    fn frame(&mut self, frame: &Frame<'_>) {
        Self::frame(self, frame);
    }

    fn skipped(&mut self) {
        Self::skip(self);
    }

    fn statistics(&mut self, statistics: InterfaceStatistics) {
        Self::statistics(self, statistics);
    }
}

fn icmp(flow: &Flow, upward: bool) -> Vec<TraceIcmp> {
    flow.notices.as_ref().map(|notices| notices.document(upward)).unwrap_or_default()
}

fn flow_document(flow: &Flow, start_ns: u64, same_as: Option<&Key>) -> TraceFlow {
    let same_as = same_as.map(|key| [key.low(), key.high()].map(document_endpoint));
    let (low, high) = (document_endpoint(flow.key.low()), document_endpoint(flow.key.high()));
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
            let end_ns = flow.last_ns.saturating_sub(start_ns);
            let (events, unlisted_events) = events(connection, upward);
            let reset = events.iter().filter(|event| event.kind == TraceEventKind::Reset);
            let reset = reset.min_by_key(|event| event.frame).map(|event| TraceReset {
                by: if event.direction == PacketDirection::Forward { source.clone() } else { destination.clone() },
                time_ns: event.time_ns,
                frame: event.frame,
            });
            let mut forward = from.document(to, end_ns);
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
                same_as,
                icmp: icmp(flow, upward),
                reset,
                events,
                unlisted_events,
                handshake,
                forward,
                reverse: to.document(from, end_ns),
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
                same_as,
                icmp: icmp(flow, upward),
                reset: None,
                events: Vec::new(),
                unlisted_events: 0,
                handshake: None,
                forward: from.document(),
                reverse: to.document(),
            }
        }
    }
}

/// Returns the events of both directions in the order of the capture, and the number not listed.
fn events(connection: &Connection, upward: bool) -> (Vec<TraceEvent>, u64) {
    let [up, down] = connection.directions();
    let (from, to) = if upward { (up, down) } else { (down, up) };
    let mut listed = Vec::new();
    let mut unlisted = 0;
    for (end, direction) in [(from, PacketDirection::Forward), (to, PacketDirection::Reverse)] {
        let (events, more) = end.events();
        unlisted += more;
        listed.extend(events.iter().map(|event| TraceEvent {
            kind: event.kind,
            direction,
            frame: event.frame,
            time_ns: event.since_ns,
            sequence: event.sequence,
            rto_ns: (event.rto_ns > 0).then_some(event.rto_ns),
        }));
    }
    listed.sort_by_key(|event| event.frame);
    (listed, unlisted)
}

/// Returns whether the tap is nearer to the sender than to the receiver. Elsewhere, the data in flight at the tap
/// does not show the sender's data in flight. Assumed to be true without a handshake.
fn near_sender(sender: &FlowDirection, handshake: Option<&TraceHandshake>, source: &TraceEndpoint) -> bool {
    let Some(handshake) = handshake else { return true };
    let from_client = handshake.client.as_ref() == Some(source);
    let to_sender = if from_client { handshake.client_rtt_ns } else { handshake.server_rtt_ns };
    sender.typical_rtt_ns().zip(to_sender).is_none_or(|(to_receiver, to_sender)| to_sender <= to_receiver)
}

/// Returns the warnings for a document.
fn warnings(document: &TraceDocument) -> Vec<Warning> {
    let capture = &document.capture;
    let mut warnings = Vec::new();
    let mut warn = |code: &str, message: String| warnings.push(Warning { code: code.into(), message });
    if let Some(why) = &capture.ended_early {
        warn("ended-early", format!("the capture was not read to its end: {why}"));
    }
    if let Some(dropped) = capture.dropped.filter(|&dropped| dropped > 0) {
        warn(
            "capture-drops",
            format!("the capture dropped {dropped} frames: sequence holes in it may not be losses of the path"),
        );
    }
    if capture.frames + capture.filtered_out > 0 && document.flows.is_empty() && document.unlisted.flows == 0 {
        let why = match capture.frames {
            0 => "no frame matches the filter",
            _ => "no TCP or UDP was found",
        };
        warn("nothing-analysed", format!("{why}, so that nothing was analysed"));
    }
    let missing: u64 =
        document.flows.iter().map(|flow| flow.forward.missing_bytes + flow.reverse.missing_bytes).sum();
    if capture.fragments > 0 {
        warn(
            "fragments",
            format!(
                "{} IP fragments were not analysed: their packets are not complete in the capture",
                capture.fragments
            ),
        );
    }
    if missing > 0 && capture.fragments > 0 {
        warn(
            "missing-data",
            format!(
                "{missing} bytes were acknowledged but not analysed: they may be in fragments, or not in the capture"
            ),
        );
    } else if missing > 0 {
        warn(
            "missing-data",
            format!(
                "{missing} bytes were acknowledged but are not in the capture: the tap missed frames, or sees only one of \
                 several paths"
            ),
        );
    }
    if capture.super_packets > 0 {
        warn(
            "super-packets",
            format!(
                "{} frames are super-packets, captured above TSO or GRO: gaps, trains and packet counts are those of the \
                 host, not of the wire",
                capture.super_packets
            ),
        );
    }
    if capture.copies > 0 {
        warn(
            "copies",
            format!(
                "the capture has {} packets twice, as from a mirror (SPAN) port or two interfaces of a router; the copies \
                 are ignored",
                capture.copies
            ),
        );
    }
    let twice = document.flows.iter().filter(|flow| flow.same_as.is_some()).count();
    if twice > 0 {
        warn(
            "seen-twice",
            format!(
                "{twice} flows are connections that the capture has a second time, from the other side of a NAT or of a firewall \
                 that changes sequence numbers: their bytes count once in the goodput of the capture"
            ),
        );
    }
    if capture.options_cut > 0 {
        warn(
            "options-cut",
            format!(
                "the snap length truncates the TCP options of {} segments: their SACK blocks, DSACKs and timestamps are \
                 missing, and a truncated SYN leaves the window scale unknown; capture with -s 160 or more",
                capture.options_cut
            ),
        );
    }
    let unscaled = document.flows.iter().filter(|flow| {
        let unknown = |direction: &TraceDirection| {
            direction.window_scale_in_force.is_none() && direction.packets > direction.resets
        };
        flow.transport == TraceTransport::Tcp && (unknown(&flow.reverse) || unknown(&flow.forward))
    });
    let unscaled = unscaled.count();
    if unscaled > 0 {
        warn(
            "window-scale-unknown",
            format!(
                "the window scale of {unscaled} flows is unknown because the capture lacks their handshake, and so are their \
                 receive windows and the time limited by them; set --window-scale to wscale from ss -ti"
            ),
        );
    }
    if capture.backward_steps > 0 {
        warn(
            "time-backward",
            format!(
                "the timestamps of {} frames are earlier than those of the previous frame",
                capture.backward_steps
            ),
        );
    }
    if capture.evicted_flows > 0 {
        warn(
            "evicted-flows",
            format!(
                "{} flows were aggregated early because too many were live; raise the limit with --flows",
                capture.evicted_flows
            ),
        );
    }
    warnings
}

#[cfg(test)]
mod tests {
    use landspeed_wire::LinkType;

    use super::*;

    /// Returns a frame with a TCP segment of 100 bytes at sequence number 100 × `number`.
    fn segment(number: u32, flags: u8) -> [u8; 54] {
        let mut data = [0; 54];
        data[12..24].copy_from_slice(&[0x08, 0x00, 0x45, 0, 0, 140, 0, 1, 0x40, 0, 64, 6]);
        data[26..38].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40, 0x14, 0x51]);
        data[38..42].copy_from_slice(&(number * 100).to_be_bytes());
        data[46..50].copy_from_slice(&[0x50, flags, 1, 0]);
        data
    }

    #[test]
    fn only_expected_segments_take_the_fast_path() {
        let mut analysis = Analysis::new(Limits::default());
        let mut expected = |number: u32, flags: u8| {
            let data = segment(number, flags);
            let time_ns = 1_000_000_000 + u64::from(number);
            let frame = Frame { interface: 0, link: LinkType::ETHERNET, time_ns, original: 154, data: &data };
            let expected = analysis.expected(&frame);
            if !expected {
                analysis.any(&frame);
            }
            expected
        };
        let batch = BATCH as u32;
        assert!((0..batch).all(|number| !expected(number, 0x10)), "nothing is known yet");
        assert!((batch..2 * batch).all(|number| expected(number, 0x10)), "all of it was to come");
        assert!(!expected(2 * batch + 1, 0x10), "one is missing");
        assert!(!expected(2 * batch + 2, 0x11), "it ends");
        assert_eq!(analysis.frames(), 2 * u64::from(batch) + 2);
    }
}
