//! Queueing disciplines: add, replace, change and delete, with the options of each kind.
//!
//! Rates are 64-bit bytes per second, probabilities are 32-bit fractions as in the kernel, times of netem are
//! nanoseconds; times of the AQMs are microseconds, as in the kernel's attributes.

use std::fmt;

use super::super::{Netlink, NetlinkError, Qdisc, Request};
use super::{CREATE, REPLACE, invalid_input};

mod aqm;
mod fq;
mod netem;
mod raw;
mod red;
mod shape;

pub use aqm::{Codel, FqCodel, Pie};
pub use fq::{Delivery, Fq};
pub use netem::{Loss, Netem, NetemRate};
pub use raw::RawQdisc;
pub use red::Red;
pub use shape::{HtbClass, Tbf};

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
// linux/pkt_sched.h
const TCA_CAKE_RTT: u16 = 7;
const TCA_HTB_INIT: u16 = 2;
/// The only version that the kernel accepts (`HTB_VER >> 16`).
const HTB_VERSION: u32 = 3;
/// Default `r2q` of `htb`: quantum = rate / r2q.
const RATE_TO_QUANTUM: u32 = 10;
/// Duration of a packet scheduler tick, nanoseconds (`PSCHED_SHIFT`, include/net/pkt_sched.h).
const TICK_NS: u64 = 64;

/// A probability in units of 2⁻³², as in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u32);

impl Probability {
    /// Probability 0.
    pub const ZERO: Self = Self(0);

    /// The nearest representable probability to `fraction`, clamped to 0–1; NaN becomes 0. A fraction above zero
    /// never rounds to zero.
    pub fn new(fraction: f64) -> Self {
        let nearest = (fraction * 4_294_967_296.0).round() as u32;
        Self(nearest.max(u32::from(fraction > 0.0)))
    }

    /// The kernel's representation: fraction × 2³².
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The probability as a fraction of 1.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 4_294_967_296.0
    }

    const fn complement(self) -> Self {
        Self(u32::MAX - self.0)
    }
}

/// A queueing discipline with its options. `None` always selects the kernel's default.
#[derive(Debug, Clone, PartialEq)]
pub enum Discipline {
    /// First in, first out, with a limit in packets.
    Pfifo {
        /// Queue limit, packets.
        limit_packets: u32,
    },
    /// First in, first out, with a limit in bytes.
    Bfifo {
        /// Queue limit, bytes including link-layer headers.
        limit_bytes: u32,
    },
    /// Token bucket.
    Tbf(Tbf),
    /// Hierarchical token bucket; see [`Netlink::add_htb_class`].
    Htb {
        /// Minor number of the class for packets that no filter classifies; with 0 they pass unshaped.
        default_class: u16,
    },
    /// Delay, loss and other impairments.
    Netem(Netem),
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    Codel(Codel),
    /// Fair queueing with one CoDel queue per flow.
    FqCodel(FqCodel),
    /// Proportional integral controller enhanced (RFC 8033).
    Pie(Pie),
    /// Shaper, fair queueing and AQM combined; used here without a rate.
    Cake {
        /// RTT that the AQM is tuned for, µs; default 100,000.
        rtt_us: Option<u32>,
    },
    /// Stochastic fairness queueing.
    Sfq {
        /// Queue limit, packets; at least 2.
        limit_packets: u32,
    },
    /// Fair queueing with pacing, for end hosts.
    Fq(Fq),
    /// Attachment point for ingress filters, without a queue. Its parent is [`Qdisc::INGRESS`].
    Ingress,
    /// Attachment point for ingress and egress filters, without a queue. Its parent is [`Qdisc::INGRESS`].
    Clsact,
}

/// Options that no kernel accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisciplineError(pub(super) &'static str);

impl fmt::Display for DisciplineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for DisciplineError {}

impl Discipline {
    /// The kernel's name of this kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Pfifo { .. } => "pfifo",
            Self::Bfifo { .. } => "bfifo",
            Self::Tbf(_) => "tbf",
            Self::Htb { .. } => "htb",
            Self::Netem(_) => "netem",
            Self::Red(_) => "red",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Pie(_) => "pie",
            Self::Cake { .. } => "cake",
            Self::Sfq { .. } => "sfq",
            Self::Fq(_) => "fq",
            Self::Ingress => "ingress",
            Self::Clsact => "clsact",
        }
    }

    /// Appends the attribute `TCA_OPTIONS`.
    pub(super) fn encode(&self, request: &mut Request) -> Result<(), DisciplineError> {
        match self {
            Self::Pfifo { limit_packets: limit } | Self::Bfifo { limit_bytes: limit } => {
                request.u32(TCA_OPTIONS, *limit);
            }
            Self::Tbf(tbf) => tbf.encode(request)?,
            // struct tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts.
            Self::Htb { default_class } => request.nest(TCA_OPTIONS, |r| {
                r.nest_without_flag(TCA_HTB_INIT, |r| {
                    r.words(&[HTB_VERSION, RATE_TO_QUANTUM, (*default_class).into(), 0, 0]);
                });
            }),
            Self::Netem(netem) => netem.encode(request)?,
            Self::Red(red) => red.encode(request)?,
            Self::Codel(codel) => request.nest(TCA_OPTIONS, |r| codel.encode(r)),
            Self::FqCodel(fq_codel) => request.nest(TCA_OPTIONS, |r| fq_codel.encode(r)),
            Self::Pie(pie) => request.nest(TCA_OPTIONS, |r| pie.encode(r)),
            Self::Cake { rtt_us } => request.nest(TCA_OPTIONS, |r| r.maybe_u32(TCA_CAKE_RTT, *rtt_us)),
            // struct tc_sfq_qopt_v1, 18 words: quantum, perturb_period, limit; 0 is the kernel's default.
            Self::Sfq { limit_packets } => request.nest_without_flag(TCA_OPTIONS, |r| {
                r.words(&[0, 0, *limit_packets]);
                r.words(&[0; 15]);
            }),
            Self::Fq(fq) => fq.encode(request)?,
            Self::Ingress | Self::Clsact => {}
        }
        Ok(())
    }
}

/// `struct tcmsg`: family, pad[3], ifindex, handle, parent, info.
pub(crate) fn traffic_control_header(request: &mut Request, ifindex: u32, handle: u32, parent: u32, info: u32) {
    request.words(&[libc::AF_UNSPEC as u32, ifindex, handle, parent, info]);
}

/// Position of a discipline (kind, interface, parent), for errors.
struct QdiscLocation<'a>(&'a str, u32, u32);

impl fmt::Display for QdiscLocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = Qdisc { parent: self.2, ..Qdisc::default() };
        write!(f, "{} at {} of interface {}", self.0, at.parent_text(), self.1)
    }
}

/// Operation for errors, and its netlink flags.
struct QdiscOperation(&'static str, u16);

const ADD: QdiscOperation = QdiscOperation("qdisc add", CREATE);
const REPLACE_QDISC: QdiscOperation = QdiscOperation("qdisc replace", REPLACE);

impl Netlink {
    /// Adds a queueing discipline. `parent` is [`Qdisc::ROOT`], [`Qdisc::INGRESS`] or a class (see [`handle`]);
    /// `handle` is the discipline's own handle with a minor of 0, or 0 to let the kernel choose. Fails if `parent`
    /// already has a discipline.
    pub fn add_qdisc(
        &mut self,
        ifindex: u32,
        parent: u32,
        handle: u32,
        discipline: &Discipline,
    ) -> Result<(), NetlinkError> {
        self.add_or_replace_qdisc(&ADD, ifindex, parent, handle, discipline)
    }

    /// Adds a queueing discipline, or replaces the present one; a discipline of the same kind and handle is changed
    /// in place.
    pub fn replace_qdisc(
        &mut self,
        ifindex: u32,
        parent: u32,
        handle: u32,
        discipline: &Discipline,
    ) -> Result<(), NetlinkError> {
        self.add_or_replace_qdisc(&REPLACE_QDISC, ifindex, parent, handle, discipline)
    }

    fn add_or_replace_qdisc(
        &mut self,
        step: &QdiscOperation,
        ifindex: u32,
        parent: u32,
        handle: u32,
        discipline: &Discipline,
    ) -> Result<(), NetlinkError> {
        let place = QdiscLocation(discipline.kind(), ifindex, parent);
        let handle = if parent == Qdisc::INGRESS { Qdisc::INGRESS & 0xffff_0000 } else { handle };
        let mut request = Request::acknowledged(libc::RTM_NEWQDISC, step.1);
        traffic_control_header(&mut request, ifindex, handle, parent, 0);
        request.text(TCA_KIND, discipline.kind());
        discipline.encode(&mut request).map_err(|why| invalid_input(step.0, &place, why))?;
        self.execute(step.0, place, request)
    }

    /// Deletes the queueing discipline at `parent`; at the root, the device's default discipline returns.
    pub fn delete_qdisc(&mut self, ifindex: u32, parent: u32) -> Result<(), NetlinkError> {
        let mut request = Request::acknowledged(libc::RTM_DELQDISC, 0);
        traffic_control_header(&mut request, ifindex, 0, parent, 0);
        self.execute("qdisc delete", QdiscLocation("what", ifindex, parent), request)
    }

    /// Adds a class to an `htb`. `parent` is the handle of the discipline or of a class; `class` is the new class,
    /// with the same major number.
    pub fn add_htb_class(
        &mut self,
        ifindex: u32,
        parent: u32,
        class: u32,
        options: &HtbClass,
    ) -> Result<(), NetlinkError> {
        let place = QdiscLocation("htb class", ifindex, class);
        let mut request = Request::acknowledged(libc::RTM_NEWTCLASS, CREATE);
        traffic_control_header(&mut request, ifindex, class, parent, 0);
        request.text(TCA_KIND, "htb");
        options.encode(&mut request).map_err(|why| invalid_input("class add", &place, why))?;
        self.execute("class add", place, request)
    }

    /// Deletes a class and drops the packets queued in it.
    pub fn delete_class(&mut self, ifindex: u32, class: u32) -> Result<(), NetlinkError> {
        let mut request = Request::acknowledged(libc::RTM_DELTCLASS, 0);
        traffic_control_header(&mut request, ifindex, class, 0, 0);
        self.execute("class delete", QdiscLocation("class", ifindex, class), request)
    }
}

/// The handle `major:minor`; disciplines have a minor of 0.
pub const fn handle(major: u16, minor: u16) -> u32 {
    (major as u32) << 16 | minor as u32
}
