//! Counters of all queueing disciplines of a namespace, cheap enough to read every few milliseconds: one dump,
//! no text, and no allocation once the vector has grown.

use super::parse::{each_attribute, u32_at, u64_at};
use super::{Cause, Netlink, NetlinkError, Request, TCA_DUMP_INVISIBLE};

// linux/rtnetlink.h, linux/gen_stats.h
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_STATS_PKT64: u16 = 8;

/// Kinds with counters beyond the common ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Other,
    Red,
    Codel,
    FqCodel,
    Pie,
    Fq,
}

impl Kind {
    /// Parses the kernel's name, with or without its terminating zero.
    fn from_name(name: &[u8]) -> Self {
        match name.strip_suffix(b"\0").unwrap_or(name) {
            b"red" => Self::Red,
            b"codel" => Self::Codel,
            b"fq_codel" => Self::FqCodel,
            b"pie" => Self::Pie,
            b"fq" => Self::Fq,
            _ => Self::Other,
        }
    }

    /// Names and byte offsets of the additional counters in the kernel's structure (linux/pkt_sched.h). They are 32
    /// bits wide; those of `fq` 64 bits.
    fn counters(self) -> &'static [(&'static str, usize)] {
        match self {
            Self::Other => &[],
            // struct tc_red_xstats
            Self::Red => &[("early_drops", 0), ("limit_drops", 4), ("marked", 12)],
            // struct tc_codel_xstats
            Self::Codel => &[("limit_drops", 20), ("marked", 24)],
            // struct tc_fq_codel_xstats: type (0 for the discipline, 1 for a class), then the counters.
            Self::FqCodel => &[("limit_drops", 8), ("marked", 12), ("memory_drops", 36)],
            // struct tc_pie_xstats
            Self::Pie => &[("early_drops", 24), ("limit_drops", 28), ("marked", 36)],
            // struct tc_fq_qd_stats
            Self::Fq => &[("throttled", 24), ("flow_limit_drops", 32), ("marked", 80)],
        }
    }
}

/// Counters of one queueing discipline at one time. A parent's counters include its children's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QdiscReading {
    /// `ifindex` of its interface.
    pub ifindex: u32,
    kind: Kind,
    /// Handle, major number in the upper 16 bits.
    pub handle: u32,
    /// Handle of the parent; [`super::Qdisc::ROOT`] at the root.
    pub parent: u32,
    /// Bytes sent, including link-layer headers.
    pub bytes: u64,
    /// Packets sent; a super-packet counts as its segments.
    pub packets: u64,
    /// Packets dropped, 32 bits.
    pub drops: u32,
    /// Over-limit events, 32 bits.
    pub overlimits: u32,
    /// Requeues, 32 bits.
    pub requeues: u32,
    /// Queued packets; a super-packet counts as one.
    pub queue_packets: u32,
    /// Queued bytes.
    pub backlog_bytes: u32,
    details: [u64; 3],
}

impl QdiscReading {
    /// Returns name and value of this kind's additional counters since the discipline was created; 0 on kernels
    /// that lack a counter.
    pub fn details(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.kind.counters().iter().zip(self.details).map(|((name, _), value)| (*name, value))
    }

    /// Parses a qdisc message; `None` if it has no kind.
    pub(super) fn parse(payload: &[u8]) -> Result<Option<Self>, Cause> {
        let (header, attributes) = payload.split_at_checked(20).ok_or(Cause::Malformed("traffic control header"))?;
        let word = |at| u32_at(header, at).unwrap_or(0);
        let mut reading = Self { ifindex: word(4), handle: word(8), parent: word(12), ..Self::default() };
        let (mut named, mut stats) = (false, None);
        for (kind, value) in each_attribute(attributes) {
            match kind {
                TCA_KIND => {
                    named = true;
                    reading.kind = Kind::from_name(value);
                }
                TCA_STATS2 => stats = Some(value),
                _ => {}
            }
        }
        if let Some(stats) = stats {
            reading.parse_stats(stats);
        }
        Ok(named.then_some(reading))
    }

    /// Parses `struct gnet_stats_basic` { u64 bytes; u32 packets }, `struct gnet_stats_queue` { qlen, backlog,
    /// drops, requeues, overlimits: u32 }, the 64-bit packet count and the kind's additional counters. Returns
    /// whether there was a 64-bit packet count.
    pub(super) fn parse_stats(&mut self, stats: &[u8]) -> bool {
        let mut packets64 = None;
        for (kind, value) in each_attribute(stats) {
            match kind {
                TCA_STATS_BASIC => {
                    self.bytes = u64_at(value, 0).unwrap_or(0);
                    self.packets = u32_at(value, 8).unwrap_or(0).into();
                }
                TCA_STATS_PKT64 => packets64 = u64_at(value, 0),
                TCA_STATS_QUEUE => {
                    let field = |i: usize| u32_at(value, 4 * i).unwrap_or(0);
                    self.queue_packets = field(0);
                    self.backlog_bytes = field(1);
                    self.drops = field(2);
                    self.requeues = field(3);
                    self.overlimits = field(4);
                }
                TCA_STATS_APP => self.take_details(value),
                _ => {}
            }
        }
        self.packets = packets64.unwrap_or(self.packets);
        packets64.is_some()
    }

    fn take_details(&mut self, value: &[u8]) {
        if self.kind == Kind::FqCodel && u32_at(value, 0) != Some(0) {
            return;
        }
        for ((_, at), to) in self.kind.counters().iter().zip(&mut self.details) {
            let found = if self.kind == Kind::Fq { u64_at(value, *at) } else { u32_at(value, *at).map(u64::from) };
            *to = found.unwrap_or(0);
        }
    }
}

impl Netlink {
    /// Replaces the contents of `into` with the counters of every queueing discipline of the socket's namespace,
    /// hidden ones included, in the kernel's order: by interface, parents before children.
    pub fn read_all_qdiscs(&mut self, into: &mut Vec<QdiscReading>) -> Result<(), NetlinkError> {
        let mut request = Request::dump(libc::RTM_GETQDISC);
        // struct tcmsg, all zero.
        request.bytes(&[0; 20]);
        request.attribute(TCA_DUMP_INVISIBLE, &[]);
        self.connection.dump(request, libc::RTM_NEWQDISC, into, QdiscReading::parse).map_err(|cause| NetlinkError {
            operation: "qdisc dump",
            object: "the whole namespace".into(),
            cause,
        })
    }
}
