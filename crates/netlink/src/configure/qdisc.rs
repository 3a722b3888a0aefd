//! Queueing disciplines: adding, replacing, changing, deleting, and the options of each kind.
//!
//! Rates are 64-bit bytes per second, probabilities have the kernel's 32 bits, netem's times are nanoseconds; those of the
//! AQMs are microseconds because the kernel's attributes are.

use std::fmt;

use super::super::{Netlink, NetlinkError, Qdisc, Request};
use super::{CREATE, REPLACE, refuse};

mod aqm;
mod cake;
mod fair;
mod netem;
mod raw;
mod red;
mod shape;

pub use aqm::{Codel, FqCodel, FqPie, Pie};
pub use cake::{Cake, CakeDiffserv, CakeFlows};
pub use fair::{Delivery, Fq, Prio, Sfq};
pub use netem::{Distribution, Loss, Netem, NetemRate, Reorder};
pub use raw::RawQdisc;
pub use red::Red;
pub use shape::{Htb, HtbClass, Tbf, TbfPeak};

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
/// What the kernel calls a tick of its packet scheduler, nanoseconds (`PSCHED_SHIFT`, include/net/pkt_sched.h).
const TICK_NS: u64 = 64;

/// A probability with the kernel's resolution of 2⁻³².
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u32);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0);
    /// Always, or as near to it as the kernel can say.
    pub const ONE: Self = Self(u32::MAX);

    /// The nearest to `fraction` there is; what is outside 0 to 1 is cut, and a NaN is zero. Anything above zero stays
    /// above zero.
    pub fn new(fraction: f64) -> Self {
        let nearest = (fraction * 4_294_967_296.0).round() as u32;
        Self(nearest.max(u32::from(fraction > 0.0)))
    }

    /// The kernel's number.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The kernel's number: fraction × 2³².
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// As a fraction.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 4_294_967_296.0
    }

    const fn complement(self) -> Self {
        Self(u32::MAX - self.0)
    }
}

/// A queueing discipline with its options. In all of them `None` is the kernel's default.
#[derive(Debug, Clone, PartialEq)]
pub enum Discipline {
    /// First in, first out; limited in packets.
    Pfifo {
        /// Most packets held.
        limit_packets: u32,
    },
    /// First in, first out; limited in bytes.
    Bfifo {
        /// Most bytes held, link-layer headers included.
        limit_bytes: u32,
    },
    /// Token bucket.
    Tbf(Tbf),
    /// Hierarchical token bucket; see [`Netlink::add_htb_class`].
    Htb(Htb),
    /// Delay, loss and other impairments.
    Netem(Netem),
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    Codel(Codel),
    /// Fair queueing of flows, each with `codel`.
    FqCodel(FqCodel),
    /// Proportional integral controller enhanced.
    Pie(Pie),
    /// Fair queueing of flows, each with `pie`.
    FqPie(FqPie),
    /// Shaping, fairness and AQM in one.
    Cake(Cake),
    /// Stochastic fairness.
    Sfq(Sfq),
    /// Fair queueing with pacing: the end host's.
    Fq(Fq),
    /// Strict priorities.
    Prio(Prio),
    /// Nothing but a place for filters on what comes in. Its parent is [`Qdisc::INGRESS`].
    Ingress,
    /// As [`Discipline::Ingress`], and for what goes out. Its parent is [`Qdisc::INGRESS`].
    Clsact,
}

/// Options no kernel could take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisciplineError(pub(super) &'static str);

impl fmt::Display for DisciplineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for DisciplineError {}

impl Discipline {
    /// The kernel's name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Pfifo { .. } => "pfifo",
            Self::Bfifo { .. } => "bfifo",
            Self::Tbf(_) => "tbf",
            Self::Htb(_) => "htb",
            Self::Netem(_) => "netem",
            Self::Red(_) => "red",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Pie(_) => "pie",
            Self::FqPie(_) => "fq_pie",
            Self::Cake(_) => "cake",
            Self::Sfq(_) => "sfq",
            Self::Fq(_) => "fq",
            Self::Prio(_) => "prio",
            Self::Ingress => "ingress",
            Self::Clsact => "clsact",
        }
    }

    /// Writes `TCA_OPTIONS`.
    pub(super) fn encode(&self, request: &mut Request) -> Result<(), DisciplineError> {
        match self {
            Self::Pfifo { limit_packets: limit } | Self::Bfifo { limit_bytes: limit } => {
                request.u32(TCA_OPTIONS, *limit);
            }
            Self::Tbf(tbf) => tbf.encode(request)?,
            Self::Htb(htb) => request.nest(TCA_OPTIONS, |r| htb.encode(r)),
            Self::Netem(netem) => netem.encode(request)?,
            Self::Red(red) => red.encode(request)?,
            Self::Codel(codel) => request.nest(TCA_OPTIONS, |r| codel.encode(r)),
            Self::FqCodel(fq_codel) => request.nest(TCA_OPTIONS, |r| fq_codel.encode(r)),
            Self::Pie(pie) => request.nest(TCA_OPTIONS, |r| pie.encode(r)),
            Self::FqPie(fq_pie) => request.nest(TCA_OPTIONS, |r| fq_pie.encode(r)),
            Self::Cake(cake) => request.nest(TCA_OPTIONS, |r| cake.encode(r)),
            Self::Sfq(sfq) => request.around(TCA_OPTIONS, |r| sfq.encode(r)),
            Self::Fq(fq) => fq.encode(request)?,
            Self::Prio(prio) => request.around(TCA_OPTIONS, |r| prio.encode(r)),
            Self::Ingress | Self::Clsact => {}
        }
        Ok(())
    }
}

/// `struct tcmsg`: family, pad[3], ifindex, handle, parent, info.
pub(crate) fn traffic_control_header(request: &mut Request, ifindex: u32, handle: u32, parent: u32, info: u32) {
    request.words(&[libc::AF_UNSPEC as u32, ifindex, handle, parent, info]);
}

/// Where a discipline hangs, for errors.
struct Place<'a>(&'a str, u32, u32);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = Qdisc { parent: self.2, ..Qdisc::default() };
        write!(f, "{} at {} of interface {}", self.0, at.parent_text(), self.1)
    }
}

/// What is to happen.
struct Step(&'static str, u16);

const ADD: Step = Step("qdisc add", CREATE);
const PUT: Step = Step("qdisc replace", REPLACE);

impl Netlink {
    /// Adds a queueing discipline. `parent` is [`Qdisc::ROOT`], [`Qdisc::INGRESS`] or a class (see [`handle`]); `handle`
    /// is the discipline's own with a minor of 0, or 0 for the kernel's choice. Fails if the place is taken.
    pub fn add_qdisc(
        &mut self,
        ifindex: u32,
        parent: u32,
        handle: u32,
        discipline: &Discipline,
    ) -> Result<(), NetlinkError> {
        self.put_qdisc(&ADD, ifindex, parent, handle, discipline)
    }

    /// Adds a queueing discipline, or takes the place of what is there; one of the same kind and handle is changed.
    pub fn replace_qdisc(
        &mut self,
        ifindex: u32,
        parent: u32,
        handle: u32,
        discipline: &Discipline,
    ) -> Result<(), NetlinkError> {
        self.put_qdisc(&PUT, ifindex, parent, handle, discipline)
    }

    fn put_qdisc(
        &mut self,
        step: &Step,
        ifindex: u32,
        parent: u32,
        handle: u32,
        discipline: &Discipline,
    ) -> Result<(), NetlinkError> {
        let place = Place(discipline.kind(), ifindex, parent);
        let handle = if parent == Qdisc::INGRESS { Qdisc::INGRESS & 0xffff_0000 } else { handle };
        let mut request = Request::acknowledged(libc::RTM_NEWQDISC, step.1);
        traffic_control_header(&mut request, ifindex, handle, parent, 0);
        request.text(TCA_KIND, discipline.kind());
        discipline.encode(&mut request).map_err(|why| refuse(step.0, &place, why))?;
        self.carry_out(step.0, place, request)
    }

    /// Deletes the queueing discipline at `parent`; at the root, the device's default takes its place.
    pub fn delete_qdisc(&mut self, ifindex: u32, parent: u32) -> Result<(), NetlinkError> {
        let mut request = Request::acknowledged(libc::RTM_DELQDISC, 0);
        traffic_control_header(&mut request, ifindex, 0, parent, 0);
        self.carry_out("qdisc delete", Place("what", ifindex, parent), request)
    }

    /// Adds a class to an `htb`. `parent` is the discipline's handle or a class; `class` is the new class, with the same
    /// major.
    pub fn add_htb_class(
        &mut self,
        ifindex: u32,
        parent: u32,
        class: u32,
        options: &HtbClass,
    ) -> Result<(), NetlinkError> {
        self.put_class("class add", CREATE, ifindex, parent, class, options)
    }

    /// Deletes a class; packets that wait in it are dropped.
    pub fn delete_class(&mut self, ifindex: u32, class: u32) -> Result<(), NetlinkError> {
        let mut request = Request::acknowledged(libc::RTM_DELTCLASS, 0);
        traffic_control_header(&mut request, ifindex, class, 0, 0);
        self.carry_out("class delete", Place("class", ifindex, class), request)
    }

    fn put_class(
        &mut self,
        operation: &'static str,
        flags: u16,
        ifindex: u32,
        parent: u32,
        class: u32,
        options: &HtbClass,
    ) -> Result<(), NetlinkError> {
        let place = Place("htb class", ifindex, class);
        let mut request = Request::acknowledged(libc::RTM_NEWTCLASS, flags);
        traffic_control_header(&mut request, ifindex, class, parent, 0);
        request.text(TCA_KIND, "htb");
        options.encode(&mut request).map_err(|why| refuse(operation, &place, why))?;
        self.carry_out(operation, place, request)
    }
}

/// The handle `major:minor`; disciplines have minor 0.
pub const fn handle(major: u16, minor: u16) -> u32 {
    (major as u32) << 16 | minor as u32
}
