//! Frames come in: the half of an analysis that needs their bytes. It dissects, and keeps what a station put on the wire.

use landspeed_model::TraceCapture;
use landspeed_wire::capture::{Frame, InterfaceStatistics, LATEST_NS};
use landspeed_wire::{Flags, LinkType, Packet, Transport, Undissected, Wrapping, dissect};

use crate::analysis::Limits;
use crate::station::Station;

/// Stations told apart; frames of more are counted together.
const MOST_STATIONS: usize = 64;
/// Larger than any frame on a wire (jumbo frames and tags).
const LONGEST_FRAME: u32 = 9_300;
/// Bytes of a datagram's payload that are kept: the numbers of the protocols known are in there.
const HEAD: usize = 32;

/// What is known of one frame without its flow.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub(crate) number: u64,
    pub(crate) time_ns: u64,
    pub(crate) interface: u32,
    pub(crate) wire: u32,
    pub(crate) gap_ns: Option<u64>,
    pub(crate) packet: Option<Packet>,
    head: [u8; HEAD],
    headed: u8,
}

impl Seen {
    /// The first captured bytes of a datagram's payload.
    pub(crate) fn head(&self) -> &[u8] {
        self.head.get(..usize::from(self.headed)).unwrap_or_default()
    }

    fn keep_head(&mut self, payload: &[u8]) {
        let kept = payload.len().min(HEAD);
        self.head[..kept].copy_from_slice(&payload[..kept]);
        self.headed = kept as u8;
    }
}

/// The frames so far.
#[derive(Debug)]
pub struct Intake {
    train_gap_ns: u64,
    burst_bps: Option<u64>,
    stations: Vec<Station>,
    latest_station: usize,
    capture: TraceCapture,
    first_ns: Option<u64>,
    latest_ns: u64,
    previous_ns: u64,
}

impl Intake {
    /// None yet.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            train_gap_ns: limits.train_gap_ns,
            burst_bps: limits.burst_bps,
            stations: Vec::new(),
            latest_station: 0,
            capture: TraceCapture::default(),
            first_ns: None,
            latest_ns: 0,
            previous_ns: 0,
        }
    }

    /// How many so far.
    pub fn frames(&self) -> u64 {
        self.capture.frames
    }

    /// Takes a frame, in the order of the capture.
    #[inline]
    pub fn frame(&mut self, frame: &Frame<'_>) -> Seen {
        let time_ns = frame.time_ns.min(LATEST_NS);
        let capture = &mut self.capture;
        capture.frames += 1;
        capture.wire_bytes += u64::from(frame.original);
        capture.captured_bytes += frame.data.len() as u64;
        capture.super_packets += u64::from(frame.original > LONGEST_FRAME);
        capture.backward_steps += u64::from(time_ns < self.previous_ns);
        self.previous_ns = time_ns;
        self.first_ns = Some(self.first_ns.map_or(time_ns, |first_ns| first_ns.min(time_ns)));
        self.latest_ns = self.latest_ns.max(time_ns);
        let mut seen = Seen {
            number: capture.frames,
            time_ns,
            interface: frame.interface,
            wire: frame.original,
            gap_ns: None,
            packet: None,
            head: [0; HEAD],
            headed: 0,
        };
        let mut pure_ack = false;
        match dissect(frame.link, frame.data, frame.original) {
            Ok(packet) => {
                capture.wrapped += u64::from(packet.wrapping != Wrapping::default());
                match &packet.transport {
                    Transport::Tcp(tcp) => {
                        pure_ack = tcp.payload == 0
                            && tcp.flags.has(Flags::ACK)
                            && !tcp.flags.has(Flags::SYN)
                            && !tcp.flags.has(Flags::FIN);
                    }
                    &Transport::Udp { at, .. } => seen.keep_head(frame.data.get(at..).unwrap_or_default()),
                    Transport::Fragment => capture.fragments += 1,
                    Transport::Other => capture.other_transport += 1,
                }
                seen.packet = Some(packet);
            }
            Err(Undissected::NotIp) => capture.not_ip += 1,
            Err(Undissected::Cut) => capture.cut += 1,
            Err(Undissected::Malformed) => capture.malformed += 1,
        }
        seen.gap_ns = self.station(frame).frame(time_ns, frame.original, pure_ack);
        seen
    }

    /// Takes an interface's own statistics.
    pub fn statistics(&mut self, statistics: InterfaceStatistics) {
        if let Some(dropped) = statistics.dropped {
            self.capture.dropped = Some(self.capture.dropped.unwrap_or(0).saturating_add(dropped));
        }
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
                    self.stations.push(Station::new(frame.interface, mac, self.train_gap_ns, self.burst_bps));
                    self.stations.len() - 1
                }
                None => MOST_STATIONS - 1,
            };
        }
        &mut self.stations[self.latest_station]
    }

    /// The capture's own figures, and the stations.
    pub(crate) fn finish(mut self) -> (TraceCapture, Vec<Station>) {
        self.capture.start_ns = self.first_ns.unwrap_or(0);
        self.capture.duration_ns = self.latest_ns.saturating_sub(self.capture.start_ns);
        (self.capture, self.stations)
    }
}
