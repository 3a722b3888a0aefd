//! Filters for an emulated link: packets that arrive at one interface are sent out of another unless a BPF
//! program drops them.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::super::{Netlink, NetlinkError, Request};
use super::CREATE;
use super::qdisc::traffic_control_header;

/// Filter priorities: lower values run first.
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
/// Parent of ingress filters, the same for `ingress` and `clsact` (`TC_H_CLSACT` with `TC_H_MIN_INGRESS`).
const INGRESS_BLOCK: u32 = 0xffff_fff2;
/// Parent of egress filters of `clsact` (`TC_H_CLSACT` with `TC_H_MIN_EGRESS`).
const EGRESS_BLOCK: u32 = 0xffff_fff3;

impl Netlink {
    /// Redirects every packet that arrives at `from_ifindex` to the egress of `to_ifindex`, through its queueing
    /// discipline and past the protocol stack (`matchall`, or `u32` if the kernel lacks it; `mirred egress
    /// redirect`). `from_ifindex` needs [`super::Discipline::Ingress`] or [`super::Discipline::Clsact`] first.
    /// Super-packets (GSO) are redirected whole.
    pub fn redirect_ingress(&mut self, from_ifindex: u32, to_ifindex: u32) -> Result<(), NetlinkError> {
        self.redirect_or_mirror(from_ifindex, to_ifindex, TCA_EGRESS_REDIR)
    }

    /// As [`Netlink::redirect_ingress`], but a packet from a local socket is no longer charged to that socket: a
    /// clone continues (`mirred egress mirror`) and the original is freed. Later queues then neither throttle TCP
    /// (TCP small queues) nor fill send buffers, as if they were on another host.
    pub fn redirect_ingress_uncharged(&mut self, from_ifindex: u32, to_ifindex: u32) -> Result<(), NetlinkError> {
        self.redirect_or_mirror(from_ifindex, to_ifindex, TCA_EGRESS_MIRROR)
    }

    fn redirect_or_mirror(&mut self, from_ifindex: u32, to_ifindex: u32, how: u32) -> Result<(), NetlinkError> {
        let mut add = |classifier: &str, options: &dyn Fn(&mut Request)| {
            let mut request = Request::acknowledged(libc::RTM_NEWTFILTER, CREATE);
            filter_header(&mut request, from_ifindex, INGRESS_BLOCK, REDIRECT_PRIORITY);
            request.text(TCA_KIND, classifier);
            request.nest(TCA_OPTIONS, |r| options(r));
            self.execute("filter add", format_args!("interface {from_ifindex} to interface {to_ifindex}"), request)
        };
        match add("matchall", &|r| r.nest(TCA_MATCHALL_ACT, |r| mirred(r, to_ifindex, how))) {
            Err(error) if error.os_error() == Some(libc::ENOENT) => add("u32", &|r| {
                // struct tc_u32_sel: flags, offshift, nkeys, pad, offmask, off, offoff, hoff (u16), hmask; then one struct
                // tc_u32_key (mask, val, off, offmask) that matches every packet.
                r.attribute(TCA_U32_SEL, &[&[TC_U32_TERMINAL, 0, 1][..], &[0; 13], &[0; 16]].concat());
                r.nest(TCA_U32_ACT, |r| mirred(r, to_ifindex, how));
            }),
            outcome => outcome,
        }
    }

    /// Runs `program` ([`landspeed_sys::bpf::FrameFilter::program`]) on every packet that arrives at `ifindex`,
    /// before the filter of [`Netlink::redirect_ingress`] (`bpf direct-action`). `ifindex` needs
    /// [`super::Discipline::Ingress`] or [`super::Discipline::Clsact`] first.
    pub fn filter_ingress(&mut self, ifindex: u32, program: BorrowedFd<'_>) -> Result<(), NetlinkError> {
        self.program(ifindex, INGRESS_BLOCK, program)
    }

    /// Runs `program` ([`landspeed_sys::bpf::frame_clock`]) on every packet that leaves by `ifindex`, before its
    /// queueing discipline. `ifindex` needs [`super::Discipline::Clsact`] first.
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
        self.execute("filter add", format_args!("bpf at interface {ifindex}"), request)
    }
}

/// Writes a `struct tcmsg` for a filter: the kernel chooses the handle; `tcm_info` contains priority and
/// protocol.
fn filter_header(request: &mut Request, ifindex: u32, block: u32, priority: u32) {
    traffic_control_header(request, ifindex, 0, block, priority << 16 | u32::from(ETH_P_ALL.to_be()));
}

/// A list of one action: `mirred` to the egress of `to_ifindex`; the packet is not processed further.
fn mirred(request: &mut Request, to_ifindex: u32, how: u32) {
    request.nest(1, |r| {
        r.text(TCA_ACT_KIND, "mirred");
        r.nest(TCA_ACT_OPTIONS, |r| {
            // struct tc_mirred: index, capab, action, refcnt, bindcnt, eaction, ifindex.
            r.nest_without_flag(TCA_MIRRED_PARMS, |r| r.words(&[0, 0, TC_ACT_STOLEN, 0, 0, how, to_ifindex]));
        });
    });
}
