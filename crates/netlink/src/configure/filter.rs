//! The filters a wire needs: everything that comes in by one interface goes out by another, but what a program drops.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::super::{Netlink, NetlinkError, Request};
use super::CREATE;
use super::qdisc::traffic_control_header;

/// Filters are asked in this order.
const PROGRAM_PRIORITY: u32 = 1;
const REDIRECT_PRIORITY: u32 = 2;

// linux/rtnetlink.h, linux/pkt_cls.h, linux/tc_act/tc_mirred.h
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_MATCHALL_ACT: u16 = 2;
const TCA_U32_SEL: u16 = 5;
const TCA_U32_ACT: u16 = 7;
const TC_U32_TERMINAL: u8 = 1;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_MIRRED_PARMS: u16 = 2;
const TCA_EGRESS_REDIR: u32 = 1;
const TCA_EGRESS_MIRROR: u32 = 2;
const TC_ACT_STOLEN: u32 = 4;
const ETH_P_ALL: u16 = 3;
/// What comes in, of `ingress` and `clsact` alike (`TC_H_CLSACT` with `TC_H_MIN_INGRESS`).
const INGRESS_BLOCK: u32 = 0xffff_fff2;
/// What goes out, of `clsact`.
const EGRESS_BLOCK: u32 = 0xffff_fff3;

impl Netlink {
    /// Sends every packet that arrives at `from_ifindex` out by `to_ifindex`, through its queueing discipline, unseen by
    /// the protocols above (`matchall`, or `u32` where the kernel lacks that; `mirred egress redirect`). `from_ifindex` needs
    /// [`super::Discipline::Ingress`] or [`super::Discipline::Clsact`] first. What is redirected keeps its size: super-packets stay super-packets.
    pub fn redirect_ingress(&mut self, from_ifindex: u32, to_ifindex: u32) -> Result<(), NetlinkError> {
        self.send_on(from_ifindex, to_ifindex, TCA_EGRESS_REDIR)
    }

    /// As [`Netlink::redirect_ingress`], but a packet that a socket of this host sent is no longer charged to the socket: a clone
    /// continues (`mirred egress mirror`), the original is freed. Later queues then neither throttle TCP (TCP small queues) nor
    /// fill send buffers: they act like queues of another host.
    pub fn redirect_ingress_uncharged(&mut self, from_ifindex: u32, to_ifindex: u32) -> Result<(), NetlinkError> {
        self.send_on(from_ifindex, to_ifindex, TCA_EGRESS_MIRROR)
    }

    fn send_on(&mut self, from_ifindex: u32, to_ifindex: u32, how: u32) -> Result<(), NetlinkError> {
        let mut add = |classifier: &str, options: &dyn Fn(&mut Request)| {
            let mut request = Request::acknowledged(libc::RTM_NEWTFILTER, CREATE);
            filter_header(&mut request, from_ifindex, INGRESS_BLOCK, REDIRECT_PRIORITY);
            request.text(TCA_KIND, classifier);
            request.nest(TCA_OPTIONS, |r| options(r));
            self.carry_out("filter add", format_args!("interface {from_ifindex} to interface {to_ifindex}"), request)
        };
        match add("matchall", &|r| r.nest(TCA_MATCHALL_ACT, |r| mirred(r, to_ifindex, how))) {
            Err(error) if error.os_error() == Some(libc::ENOENT) => add("u32", &|r| {
                // struct tc_u32_sel: flags, offshift, nkeys, pad, offmask, off, offoff, hoff (u16), hmask; then a struct
                // tc_u32_key (mask, val, off, offmask) that every packet matches.
                r.attribute(TCA_U32_SEL, &[&[TC_U32_TERMINAL, 0, 1][..], &[0; 13], &[0; 16]].concat());
                r.nest(TCA_U32_ACT, |r| mirred(r, to_ifindex, how));
            }),
            outcome => outcome,
        }
    }

    /// Asks `program` ([`landspeed_sys::bpf::FrameFilter::program`]) about every packet that arrives at `ifindex`, before
    /// [`Netlink::redirect_ingress`] gets it (`bpf direct-action`). `ifindex` needs [`super::Discipline::Ingress`] or
    /// [`super::Discipline::Clsact`] first.
    pub fn filter_ingress(&mut self, ifindex: u32, program: BorrowedFd<'_>) -> Result<(), NetlinkError> {
        self.program(ifindex, INGRESS_BLOCK, program)
    }

    /// Asks `program` ([`landspeed_sys::bpf::frame_clock`]) about every packet that leaves by `ifindex`, before its queueing
    /// discipline gets it. `ifindex` needs [`super::Discipline::Clsact`] first.
    pub fn filter_egress(&mut self, ifindex: u32, program: BorrowedFd<'_>) -> Result<(), NetlinkError> {
        self.program(ifindex, EGRESS_BLOCK, program)
    }

    fn program(&mut self, ifindex: u32, block: u32, program: BorrowedFd<'_>) -> Result<(), NetlinkError> {
        let mut request = Request::acknowledged(libc::RTM_NEWTFILTER, CREATE);
        filter_header(&mut request, ifindex, block, PROGRAM_PRIORITY);
        request.text(TCA_KIND, "bpf");
        request.nest(TCA_OPTIONS, |r| {
            r.u32(TCA_BPF_FD, program.as_raw_fd() as u32);
            r.text(TCA_BPF_NAME, "landspeed");
            r.u32(TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
        });
        self.carry_out("filter add", format_args!("bpf at interface {ifindex}"), request)
    }
}

/// The filter's handle is the kernel's choice; info is the priority and the protocol it looks at.
fn filter_header(request: &mut Request, ifindex: u32, block: u32, priority: u32) {
    traffic_control_header(request, ifindex, 0, block, priority << 16 | u32::from(ETH_P_ALL.to_be()));
}

/// A list of one action: `mirred` to the way out of `to_ifindex`; the packet goes nowhere else.
fn mirred(request: &mut Request, to_ifindex: u32, how: u32) {
    request.nest(1, |r| {
        r.text(TCA_ACT_KIND, "mirred");
        r.nest(TCA_ACT_OPTIONS, |r| {
            // struct tc_mirred: index, capab, action, refcnt, bindcnt, eaction, ifindex.
            r.around(TCA_MIRRED_PARMS, |r| r.words(&[0, 0, TC_ACT_STOLEN, 0, 0, how, to_ifindex]));
        });
    });
}
