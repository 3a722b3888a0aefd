//! Counters of all queueing disciplines of a namespace at once, cheap enough to be read every few milliseconds: one dump,
//! no text, and no memory once the vector has its size.

use super::parse::{each_attribute, u32_at, u64_at};
use super::{Cause, Netlink, NetlinkError, Request, TCA_DUMP_INVISIBLE};

mod details;

pub use details::{
    CakeReading, CakeTin, CodelReading, FqCodelReading, FqPieReading, FqReading, NetemReading, PieReading, RedReading,
};

// linux/rtnetlink.h, linux/gen_stats.h
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_STATS_PKT64: u16 = 8;
// linux/pkt_sched.h
const TCA_HTB_INIT: u16 = 2;

/// Kinds of queueing disciplines this crate knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum QdiscKind {
    /// One not in this list.
    #[default]
    Other,
    /// `pfifo`
    Pfifo,
    /// `bfifo`
    Bfifo,
    /// `pfifo_fast`
    PfifoFast,
    /// `noqueue`
    Noqueue,
    /// `mq`
    Mq,
    /// `tbf`
    Tbf,
    /// `htb`
    Htb,
    /// `netem`
    Netem,
    /// `red`
    Red,
    /// `codel`
    Codel,
    /// `fq_codel`
    FqCodel,
    /// `pie`
    Pie,
    /// `fq_pie`
    FqPie,
    /// `cake`
    Cake,
    /// `sfq`
    Sfq,
    /// `fq`
    Fq,
    /// `prio`
    Prio,
    /// `ingress`
    Ingress,
    /// `clsact`
    Clsact,
}

impl QdiscKind {
    /// By the kernel's name, with or without its final zero.
    pub fn from_name(name: &[u8]) -> Self {
        match name.strip_suffix(b"\0").unwrap_or(name) {
            b"pfifo" => Self::Pfifo,
            b"bfifo" => Self::Bfifo,
            b"pfifo_fast" => Self::PfifoFast,
            b"noqueue" => Self::Noqueue,
            b"mq" => Self::Mq,
            b"tbf" => Self::Tbf,
            b"htb" => Self::Htb,
            b"netem" => Self::Netem,
            b"red" => Self::Red,
            b"codel" => Self::Codel,
            b"fq_codel" => Self::FqCodel,
            b"pie" => Self::Pie,
            b"fq_pie" => Self::FqPie,
            b"cake" => Self::Cake,
            b"sfq" => Self::Sfq,
            b"fq" => Self::Fq,
            b"prio" => Self::Prio,
            b"ingress" => Self::Ingress,
            b"clsact" => Self::Clsact,
            _ => Self::Other,
        }
    }
}

/// One queueing discipline's counters at one moment. A parent's include its children's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QdiscReading {
    /// Interface.
    pub ifindex: u32,
    /// Kind.
    pub kind: QdiscKind,
    /// Handle, major in the upper half.
    pub handle: u32,
    /// Parent's handle; [`super::Qdisc::ROOT`] at the root.
    pub parent: u32,
    /// Bytes sent, link-layer headers included.
    pub bytes: u64,
    /// Packets sent; a super-packet counts as what it would be on the wire.
    pub packets: u64,
    /// Packets dropped, 32 bits.
    pub drops: u32,
    /// Over-limit events, 32 bits.
    pub overlimits: u32,
    /// Requeues, 32 bits.
    pub requeues: u32,
    /// Packets waiting; a super-packet counts once.
    pub queue_packets: u32,
    /// Bytes waiting.
    pub backlog_bytes: u32,
    /// What this kind counts besides.
    pub details: Details,
}

/// What a kind counts besides. All counters are since the discipline was made, and 32 bits wide where they are `u32`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Details {
    /// Nothing.
    #[default]
    None,
    /// `red`
    Red(RedReading),
    /// `codel`
    Codel(CodelReading),
    /// `fq_codel`
    FqCodel(FqCodelReading),
    /// `pie`
    Pie(PieReading),
    /// `fq_pie`
    FqPie(FqPieReading),
    /// `fq`
    Fq(FqReading),
    /// `cake`
    Cake(CakeReading),
    /// `netem`, from Linux 7.1 or so on.
    Netem(NetemReading),
    /// `htb`
    Htb {
        /// Packets that passed unshaped, because no class claimed them.
        direct_packets: u32,
    },
}

impl QdiscReading {
    /// `None` for a message without a kind.
    pub(super) fn parse(payload: &[u8]) -> Result<Option<Self>, Cause> {
        let (header, attributes) = payload.split_at_checked(20).ok_or(Cause::Malformed("traffic control header"))?;
        let word = |at| u32_at(header, at).unwrap_or(0);
        let mut reading = Self { ifindex: word(4), handle: word(8), parent: word(12), ..Self::default() };
        let (mut named, mut stats) = (false, None);
        for (kind, value) in each_attribute(attributes) {
            match kind {
                TCA_KIND => {
                    named = true;
                    reading.kind = QdiscKind::from_name(value);
                }
                TCA_OPTIONS if reading.kind == QdiscKind::Htb => {
                    // struct tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts.
                    let glob = each_attribute(value).find(|&(kind, _)| kind == TCA_HTB_INIT);
                    let direct_packets = glob.and_then(|(_, glob)| u32_at(glob, 16)).unwrap_or(0);
                    reading.details = Details::Htb { direct_packets };
                }
                TCA_STATS2 => stats = Some(value),
                _ => {}
            }
        }
        if let Some(stats) = stats {
            reading.take(stats);
        }
        Ok(named.then_some(reading))
    }

    fn take(&mut self, stats: &[u8]) {
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
    }

    fn take_details(&mut self, value: &[u8]) {
        self.details = match self.kind {
            QdiscKind::Red => Details::Red(RedReading::parse(value)),
            QdiscKind::Codel => Details::Codel(CodelReading::parse(value)),
            // struct tc_fq_codel_xstats: type (0 for the discipline, 1 for a class), then the structure.
            QdiscKind::FqCodel if u32_at(value, 0) == Some(0) => {
                Details::FqCodel(FqCodelReading::parse(value.get(4..).unwrap_or_default()))
            }
            QdiscKind::Pie => Details::Pie(PieReading::parse(value)),
            QdiscKind::FqPie => Details::FqPie(FqPieReading::parse(value)),
            QdiscKind::Fq => Details::Fq(FqReading::parse(value)),
            QdiscKind::Cake => Details::Cake(CakeReading::parse(value)),
            QdiscKind::Netem => Details::Netem(NetemReading::parse(value)),
            _ => return,
        };
    }
}

impl Netlink {
    /// Reads every queueing discipline of the socket's namespace, hidden ones too, into `into`, which is emptied first.
    /// The order is the kernel's: by interface, then parents before children.
    pub fn qdiscs_all(&mut self, into: &mut Vec<QdiscReading>) -> Result<(), NetlinkError> {
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
