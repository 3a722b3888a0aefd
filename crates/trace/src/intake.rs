//! Intake: the half of an analysis that needs the frames' bytes. It dissects them and accounts for stations.

use landspeed_model::{TraceCapture, TraceNotAnalysed};
use landspeed_wire::capture::{Frame, InterfaceStatistics, MAX_TIMESTAMP_NS};
use landspeed_wire::{
    Contents, DissectError, Encapsulations, Flags, IcmpError, LinkType, Network, Packet, Reassembler, TcpHeader,
    Transport, dissect, plain,
};

use crate::copies::{Candidate, Copies, Verdict};
use crate::key::Key;
use crate::limits::Limits;
use crate::print::{self, fingerprint};
use crate::station::Station;

/// Maximum number of stations; frames of others share one.
const MAX_STATIONS: usize = 64;
/// Maximum length of a frame on a wire (jumbo frames with tags), bytes; longer ones are super-packets.
const MAX_FRAME: u32 = 9_300;
/// Maximum number of protocols that are counted by name.
const MAX_CONTENTS: usize = 64;
/// Bytes kept of a datagram's payload; they contain the sequence numbers of the known protocols.
const HEAD_BYTES: usize = 32;

/// A dissected frame, without its flow. Values are reused: only the fields implied by `body` are valid.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParsedFrame {
    pub(crate) time_ns: u64,
    /// Time since the capture's first frame, nanoseconds; 0 if earlier.
    pub(crate) since_ns: u64,
    /// Number of the frame in the capture, from 1.
    pub(crate) number: u64,
    pub(crate) key: Key,
    pub(crate) wire: u32,
    pub(crate) identification: u16,
    pub(crate) traffic_class: u8,
    /// Whether the packet goes from the flow's lower endpoint to its higher one.
    pub(crate) upward: bool,
    pub(crate) body: Body,
    pub(crate) tcp: TcpHeader,
    pub(crate) datagram: Datagram,
    pub(crate) icmp: IcmpNotice,
}

/// An ICMP error about a packet of the frame's flow, which went the frame's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IcmpNotice {
    /// IP version, type and code.
    pub name: (u8, u8, u8),
    /// MTU of the next hop, bytes; 0 for none.
    pub mtu: u32,
    /// Address of the host that sent it; IPv4 as an IPv4-mapped IPv6 address.
    pub from: u128,
}

/// Fields of a frame that only rows need.
#[derive(Debug, Clone, Copy)]
pub struct FrameMeta {
    /// Number of the frame in the capture, from 1.
    pub number: u64,
    /// Interface number in the capture.
    pub interface: u32,
    /// Gap to the previous frame of the station, nanoseconds.
    pub gap_ns: Option<u64>,
}

/// Transport protocol of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Body {
    /// Neither TCP nor UDP.
    #[default]
    None,
    /// A TCP segment.
    Tcp,
    /// A UDP datagram.
    Udp,
    /// An ICMP error about a packet of TCP or UDP.
    Icmp,
}

/// A UDP datagram, and the captured start of its payload.
#[derive(Debug, Clone, Copy, Default)]
pub struct Datagram {
    /// Payload on the wire, bytes.
    pub payload: u32,
    kept: u8,
    head: [u8; HEAD_BYTES],
}

impl Datagram {
    fn new(payload: u32, captured: &[u8]) -> Self {
        let kept = captured.len().min(HEAD_BYTES);
        let mut head = [0; HEAD_BYTES];
        head[..kept].copy_from_slice(&captured[..kept]);
        Self { payload, kept: kept as u8, head }
    }

    /// Returns the first captured bytes of the payload.
    pub fn head(&self) -> &[u8] {
        self.head.get(..usize::from(self.kept)).unwrap_or_default()
    }
}

impl ParsedFrame {
    /// Completes the fields of a TCP segment from its header. Returns whether it is a pure ACK.
    #[inline]
    fn segment(&mut self, network: &Network) -> bool {
        self.body = Body::Tcp;
        let tcp = &self.tcp;
        let bare = Flags(Flags::ACK.0 | Flags::SYN.0 | Flags::FIN.0);
        let pure_ack = tcp.payload == 0 && tcp.flags.0 & bare.0 == Flags::ACK.0;
        self.set_key(network, tcp.source, tcp.destination);
        pure_ack
    }

    #[inline]
    fn set_key(&mut self, network: &Network, source: u16, destination: u16) {
        (self.key, self.upward) = Key::of(network, source, destination);
        self.identification = network.identification;
        self.traffic_class = network.traffic_class;
    }

    /// Returns the share that the packet's flow belongs to, below `shares`; 0 for frames without a flow.
    #[inline]
    pub fn share(&self, shares: usize) -> usize {
        if self.body == Body::None { 0 } else { self.key.share(shares) }
    }

    /// Returns whether it is a TCP segment.
    pub(crate) fn is_segment(&self) -> bool {
        self.body == Body::Tcp
    }

    /// Returns the length of the payload on the wire, bytes.
    pub(crate) fn payload(&self) -> u32 {
        match self.body {
            Body::None | Body::Icmp => 0,
            Body::Tcp => self.tcp.payload,
            Body::Udp => self.datagram.payload,
        }
    }
}

/// The identity of a station: the interface and the source address, or [`StationId::NO_MAC`] where the link has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StationId {
    mac: u64,
    interface: u32,
}

impl StationId {
    const NO_MAC: u64 = u64::MAX;

    #[inline]
    fn of(frame: &Frame<'_>) -> Self {
        let mut mac = Self::NO_MAC;
        if let Some(source) = frame.data.get(6..12)
            && frame.link == LinkType::ETHERNET
        {
            let mut word = [0; 8];
            word[2..].copy_from_slice(source);
            mac = u64::from_be_bytes(word);
        }
        Self { mac, interface: frame.interface }
    }

    fn mac(self) -> Option<[u8; 6]> {
        let [_, _, mac @ ..] = self.mac.to_be_bytes();
        (self.mac != Self::NO_MAC).then_some(mac)
    }
}

/// Totals of the capture, its stations, and the search for copies.
#[derive(Debug)]
pub struct Intake {
    train_gap_ns: u64,
    burst_bps: Option<u64>,
    stations: Vec<Station>,
    station_ids: Vec<StationId>,
    latest_station: usize,
    capture: TraceCapture,
    /// Timestamp of the first frame, and (`first_ns`) the lowest one of frames that step back in time.
    begin_ns: Option<u64>,
    first_ns: u64,
    latest_ns: u64,
    previous_ns: u64,
    copies: Copies<(ParsedFrame, StationId)>,
    /// IP header of the latest frame.
    network: Network,
    fragments: Reassembler,
    /// Frames that are not analysed, by their contents.
    not_analysed: Vec<(Contents, u64)>,
}

impl Intake {
    /// Creates an empty intake.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            train_gap_ns: limits.train_gap_ns,
            burst_bps: limits.burst_bps,
            stations: Vec::new(),
            station_ids: Vec::new(),
            latest_station: 0,
            capture: TraceCapture::default(),
            begin_ns: None,
            first_ns: u64::MAX,
            latest_ns: 0,
            previous_ns: 0,
            copies: Copies::new(limits.look_for_copies),
            network: Network::default(),
            fragments: Reassembler::default(),
            not_analysed: Vec::new(),
        }
    }

    /// Returns the number of frames so far, without skipped ones.
    pub fn frames(&self) -> u64 {
        self.capture.frames
    }

    /// Returns the number of the latest frame in the capture, from 1.
    #[inline]
    pub(crate) fn numbered(&self) -> u64 {
        self.capture.frames + self.capture.filtered_out
    }

    /// Counts a frame that a filter excludes.
    pub fn skip(&mut self) {
        self.capture.filtered_out += 1;
    }

    /// Dissects the next frame of the capture into `seen`.
    #[inline]
    pub fn frame(&mut self, frame: &Frame<'_>, seen: &mut ParsedFrame) -> FrameMeta {
        [seen.time_ns, seen.since_ns] = self.times(frame);
        self.count(frame, seen.time_ns);
        let (time_ns, number) = (seen.time_ns, self.numbered());
        seen.number = number;
        seen.wire = frame.original;
        let pure_ack = if plain(frame.link, frame.data, &mut self.network, &mut seen.tcp) {
            seen.segment(&self.network)
        } else {
            self.dissect_layers(frame, seen)
        };
        let cut = seen.body == Body::Tcp && seen.tcp.options.incomplete && frame.data.len() < frame.original as usize;
        self.capture.options_cut += u64::from(cut);
        if self.copies.is_looking() {
            let verdict = self.judge(seen);
            if verdict == Verdict::Held {
                self.copies.hold(seen.key.mixed(), seen.upward, (*seen, StationId::of(frame)));
            }
            if verdict != Verdict::Original {
                seen.body = Body::None;
                return FrameMeta { number, interface: frame.interface, gap_ns: None };
            }
        }
        let gap_ns = self.station(frame).frame(time_ns, frame.original, pure_ack);
        FrameMeta { number, interface: frame.interface, gap_ns }
    }

    /// Returns whether copies are searched for.
    #[inline]
    pub(crate) fn looks_for_copies(&self) -> bool {
        self.copies.is_looking()
    }

    /// Returns whether a frame is a mirror port's copy of an earlier one.
    fn judge(&mut self, seen: &ParsedFrame) -> Verdict {
        let ParsedFrame { identification, time_ns, upward, .. } = *seen;
        let body = match seen.body {
            Body::Tcp => print::Body::Tcp(&seen.tcp),
            // Datagrams have no sequence number: a sender may repeat an identical one.
            Body::Udp | Body::Icmp | Body::None => return Verdict::Original,
        };
        let flow = seen.key.mixed();
        let Some(print) = fingerprint(identification, body, flow ^ u64::from(upward)) else {
            return Verdict::Original;
        };
        let has_ip_id = identification != 0;
        body.has_content(has_ip_id).map_or(Verdict::Original, |has_content| {
            self.copies.judge(Candidate { print, flow, time_ns, upward, has_ip_id, has_content })
        })
    }

    /// Returns the timestamp of a frame, and the time since the first frame, nanoseconds.
    #[inline]
    pub(crate) fn times(&mut self, frame: &Frame<'_>) -> [u64; 2] {
        let time_ns = frame.time_ns.min(MAX_TIMESTAMP_NS);
        [time_ns, time_ns.saturating_sub(*self.begin_ns.get_or_insert(time_ns))]
    }

    #[inline]
    fn count(&mut self, frame: &Frame<'_>, time_ns: u64) {
        let capture = &mut self.capture;
        capture.frames += 1;
        capture.wire_bytes += u64::from(frame.original);
        capture.captured_bytes += frame.data.len() as u64;
        if frame.original > MAX_FRAME {
            capture.super_packets += 1;
        }
        if time_ns < self.previous_ns {
            capture.backward_steps += 1;
            self.first_ns = self.first_ns.min(time_ns);
        } else {
            self.latest_ns = self.latest_ns.max(time_ns);
        }
        self.previous_ns = time_ns;
    }

    /// Fast path: accounts for a plain segment of a known station.
    #[inline(always)]
    pub(crate) fn expected(&mut self, frame: &Frame<'_>, time_ns: u64, station: usize, pure_ack: bool) {
        self.count(frame, time_ns);
        self.stations[station].frame(time_ns, frame.original, pure_ack);
    }

    /// Returns the station of the latest dissected frame.
    pub(crate) fn latest_station(&self) -> usize {
        self.latest_station
    }

    /// Dissects a frame that `plain` does not handle. Returns whether it is a pure ACK.
    #[inline(never)]
    fn dissect_layers(&mut self, frame: &Frame<'_>, seen: &mut ParsedFrame) -> bool {
        let capture = &mut self.capture;
        seen.body = Body::None;
        match dissect(frame.link, frame.data, frame.original) {
            Ok(packet) => {
                capture.wrapped += u64::from(packet.encapsulations != Encapsulations::default());
                let Some(Packet { network, transport, .. }) = self.fragments.add(packet, seen.time_ns) else {
                    return false;
                };
                match transport {
                    Transport::Tcp(tcp) => {
                        seen.tcp = tcp;
                        return seen.segment(&network);
                    }
                    Transport::Udp { source, destination, payload, at } => {
                        seen.set_key(&network, source, destination);
                        seen.datagram = Datagram::new(payload, frame.data.get(at..).unwrap_or_default());
                        seen.body = Body::Udp;
                    }
                    Transport::Icmp(error) => {
                        let IcmpError { kind, code, mtu, source, destination, protocol, ports } = error;
                        let name = (network.version, kind, code);
                        seen.icmp = IcmpNotice { name, mtu, from: network.source };
                        let quoted = Network { source, destination, protocol, ..network };
                        seen.set_key(&quoted, ports[0], ports[1]);
                        seen.body = Body::Icmp;
                    }
                    Transport::Fragment => {}
                    Transport::Other => {
                        capture.other_transport += 1;
                        self.count_not_analysed(Contents::Ip(network.protocol));
                    }
                }
            }
            Err(DissectError::NotIp(contents)) => {
                capture.not_ip += 1;
                self.count_not_analysed(contents);
            }
            Err(DissectError::Truncated) => capture.cut += 1,
            Err(DissectError::Malformed) => capture.malformed += 1,
        }
        false
    }

    fn count_not_analysed(&mut self, contents: Contents) {
        let known = self.not_analysed.iter_mut().find(|(known, _)| *known == contents);
        if let Some((_, frames)) = known {
            *frames += 1;
        } else if self.not_analysed.len() < MAX_CONTENTS {
            self.not_analysed.push((contents, 1));
        }
    }

    /// Adds an interface's statistics.
    pub fn statistics(&mut self, statistics: InterfaceStatistics) {
        if let Some(dropped) = statistics.dropped {
            self.capture.dropped = Some(self.capture.dropped.unwrap_or(0).saturating_add(dropped));
        }
    }

    #[inline]
    fn station(&mut self, frame: &Frame<'_>) -> &mut Station {
        let name = StationId::of(frame);
        if self.station_ids.get(self.latest_station) != Some(&name) {
            self.select_station(name);
        }
        &mut self.stations[self.latest_station]
    }

    /// Selects another station, adding it if it is new.
    fn select_station(&mut self, name: StationId) {
        self.latest_station = match self.station_ids.iter().position(|known| *known == name) {
            Some(at) => at,
            None if self.station_ids.len() < MAX_STATIONS => {
                self.station_ids.push(name);
                self.stations.push(Station::new(name.interface, name.mac(), self.train_gap_ns, self.burst_bps));
                self.station_ids.len() - 1
            }
            None => MAX_STATIONS - 1,
        };
    }

    /// Returns the totals of the capture, the stations, and packets duplicated by the network that no flow has yet.
    pub(crate) fn finish(mut self) -> (TraceCapture, Vec<Station>, Vec<ParsedFrame>) {
        let duplicates = self.copies.release();
        for (seen, station) in &duplicates {
            self.select_station(*station);
            self.stations[self.latest_station].add_duplicate(seen.time_ns, seen.wire);
        }
        let duplicates = duplicates.into_iter().map(|(seen, _)| seen).collect();
        self.capture.start_ns = self.begin_ns.map_or(0, |begin_ns| begin_ns.min(self.first_ns));
        self.capture.copies = self.copies.ignored();
        self.capture.fragments = self.fragments.not_analysed();
        self.capture.reassembled = self.fragments.reassembled();
        self.not_analysed.sort_by_key(|&(contents, frames)| (std::cmp::Reverse(frames), contents));
        let named = self.not_analysed.into_iter();
        self.capture.not_analysed =
            named.map(|(contents, frames)| TraceNotAnalysed { what: contents.to_string(), frames }).collect();
        self.capture.duration_ns = self.latest_ns.saturating_sub(self.capture.start_ns);
        (self.capture, self.stations, duplicates)
    }
}
