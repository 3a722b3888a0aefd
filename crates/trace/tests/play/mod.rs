//! A conversation as seen by a tap, played segment by segment.

use etherparse::{PacketBuilder, TcpOptionElement};
use landspeed_model::{BuildInfo, TraceDocument, TraceFlow};
use landspeed_trace::{Analysis, Limits};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;

pub const SENDER: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
pub const RECEIVER: ([u8; 4], u16) = ([10, 0, 0, 2], 5_001);
pub const MSS: u32 = 1000;
pub const MS: u64 = 1_000_000;

/// A conversation as seen by a tap. Times are milliseconds, numbers count segments of [`MSS`] bytes.
pub struct Conversation {
    pub analysis: Analysis,
    pub first: u32,
    pub identification: u16,
    pub sack: bool,
}

#[derive(Clone, Copy, Default)]
pub struct Extra<'a> {
    pub syn: bool,
    pub sack: &'a [(u32, u32)],
    pub window: Option<u16>,
    pub identification: Option<u16>,
    pub push: bool,
    pub fin: bool,
    pub reset: bool,
    pub ece: bool,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    pub traffic_class: u8,
}

impl Conversation {
    /// Begins with a handshake of 10 ms; `first` is the sequence number of the first byte.
    pub fn with_first(first: u32) -> Self {
        let mut play = Self { analysis: Analysis::new(Limits::default()), first, identification: 1, sack: true };
        let before = first.wrapping_sub(1);
        play.segment(0, true, before, 0, 0, Extra { syn: true, ..Extra::default() });
        play.segment(10 * MS, false, 0, before.wrapping_add(1), 0, Extra { syn: true, ..Extra::default() });
        play.ack(10, 0);
        play
    }

    pub fn new() -> Self {
        Self::with_first(1000)
    }

    pub fn segment(&mut self, time_ns: u64, forward: bool, sequence: u32, ack: u32, length: u32, extra: Extra<'_>) {
        let (from, to) = if forward { (SENDER, RECEIVER) } else { (RECEIVER, SENDER) };
        let mut options = Vec::new();
        if extra.syn {
            options.push(TcpOptionElement::MaximumSegmentSize(MSS as u16));
            options.push(TcpOptionElement::WindowScale(7));
            options.push(TcpOptionElement::SelectiveAcknowledgementPermitted);
        }
        if let Some((&first, rest)) = extra.sack.split_first() {
            let mut more = [None; 3];
            rest.iter().zip(&mut more).for_each(|(block, slot)| *slot = Some(*block));
            options.push(TcpOptionElement::SelectiveAcknowledgement(first, more));
        }
        if let Some((value, echo)) = extra.timestamps {
            options.push(TcpOptionElement::Timestamp(value, echo));
        }
        let mut built = PacketBuilder::ip(etherparse::IpHeaders::Ipv4(
            etherparse::Ipv4Header {
                identification: extra.identification.unwrap_or(self.identification),
                source: from.0,
                destination: to.0,
                time_to_live: 64,
                protocol: 6.into(),
                ..Default::default()
            },
            etherparse::Ipv4Extensions::default(),
        ))
        .tcp(from.1, to.1, sequence, extra.window.unwrap_or(1000));
        if extra.syn {
            built = built.syn();
        }
        if !(extra.syn && forward) {
            built = built.ack(ack);
        }
        if extra.push {
            built = built.psh();
        }
        if extra.fin {
            built = built.fin();
        }
        if extra.reset {
            built = built.rst();
        }
        if extra.ece {
            built = built.ece();
        }
        let mut frame = Vec::new();
        built.options(&options).expect("they fit").write(&mut frame, &vec![0; length as usize]).expect("memory");
        frame[1] = extra.traffic_class;
        self.identification = self.identification.wrapping_add(1).max(1);
        let original = frame.len() as u32;
        frame.truncate(80);
        let interface = 0;
        self.analysis.frame(&Frame { interface, link: LinkType::RAW, time_ns: time_ns + 1, original, data: &frame });
    }

    pub fn number(&self, segment: u32) -> u32 {
        self.first.wrapping_add(segment * MSS)
    }

    /// Plays a full segment.
    pub fn data(&mut self, ms: u64, segment: u32) {
        self.segment(ms * MS, true, self.number(segment), 1, MSS, Extra::default());
    }

    /// Plays an ACK of everything before a segment; the very first one is the last ACK of the handshake.
    pub fn ack(&mut self, ms: u64, segment: u32) {
        if ms == 10 && segment == 0 {
            self.segment(ms * MS, true, self.first, 1, 0, Extra::default());
        } else {
            self.segment(ms * MS, false, 1, self.number(segment), 0, Extra::default());
        }
    }

    /// Plays an ACK with SACK blocks, in segments.
    pub fn sack(&mut self, ms: u64, segment: u32, blocks: &[(u32, u32)]) {
        let blocks: Vec<_> = blocks.iter().map(|&(from, to)| (self.number(from), self.number(to))).collect();
        let sack = if self.sack { &blocks[..] } else { &[] };
        self.segment(ms * MS, false, 1, self.number(segment), 0, Extra { sack, ..Extra::default() });
    }

    pub fn document(self) -> TraceDocument {
        self.analysis.finish(BuildInfo::default(), Vec::new(), "play".into(), "play", None, |_| None)
    }

    pub fn flow(self) -> TraceFlow {
        let mut flows = self.document().flows;
        assert_eq!(flows.len(), 1);
        let flow = flows.remove(0);
        assert_eq!(flow.source.port, SENDER.1, "the sender of the payload is the source");
        flow
    }
}
