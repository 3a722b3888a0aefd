//! Queueing disciplines as dumped by the kernel, to restore them unchanged: options are opaque bytes.

use std::fmt;

use super::super::super::parse::{each_attribute, u32_at};
use super::super::super::{Cause, Netlink, NetlinkError, Qdisc, Request};
use super::super::{CREATE, REPLACE};
use super::{TCA_KIND, TCA_OPTIONS, traffic_control_header};

// linux/rtnetlink.h, linux/gen_stats.h
const TCA_STATS2: u16 = 7;
const TCA_STAB: u16 = 8;
const TCA_INGRESS_BLOCK: u16 = 13;
const TCA_EGRESS_BLOCK: u16 = 14;
const TCA_STATS_RATE_EST: u16 = 2;
// linux/pkt_sched.h
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;

/// A queueing discipline as dumped by the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawQdisc {
    /// Kind (`fq`, `mq` …), from `TCA_KIND`.
    pub kind: String,
    /// Handle, major number in the upper 16 bits; 0 if the kernel attached the discipline by default.
    pub handle: u32,
    /// Handle of the parent; [`Qdisc::ROOT`] at the root, [`Qdisc::INGRESS`] for `ingress` and `clsact`.
    pub parent: u32,
    /// Value of `TCA_OPTIONS` as dumped; `None` for kinds without options.
    pub options: Option<Vec<u8>>,
    /// Parts that a dump does not contain in full, so they cannot be restored: a size table, a shared filter block,
    /// a rate estimator.
    pub extras: Vec<&'static str>,
}

impl RawQdisc {
    fn parse(payload: &[u8]) -> Result<(u32, Self), Cause> {
        let (header, attributes) = payload.split_at_checked(20).ok_or(Cause::Malformed("traffic control header"))?;
        let word = |at| u32_at(header, at).unwrap_or(0);
        let mut qdisc = Self { handle: word(8), parent: word(12), ..Self::default() };
        for (kind, value) in each_attribute(attributes) {
            match kind {
                TCA_KIND => {
                    qdisc.kind = String::from_utf8_lossy(value.strip_suffix(b"\0").unwrap_or(value)).into_owned();
                }
                TCA_OPTIONS => qdisc.options = Some(without_counters(&qdisc.kind, value)),
                TCA_STAB => qdisc.extras.push("a size table"),
                TCA_INGRESS_BLOCK | TCA_EGRESS_BLOCK => qdisc.extras.push("a shared filter block"),
                TCA_STATS2 if each_attribute(value).any(|(kind, _)| kind == TCA_STATS_RATE_EST) => {
                    qdisc.extras.push("a rate estimator");
                }
                _ => {}
            }
        }
        Ok((word(4), qdisc))
    }
}

/// The options without counters: those of `htb` also contain a packet counter (`struct tc_htb_glob`).
fn without_counters(kind: &str, options: &[u8]) -> Vec<u8> {
    const DIRECT_PACKETS: std::ops::Range<usize> = 16..20;
    let mut bytes = options.to_vec();
    if kind == "htb" {
        for (name, value) in each_attribute(options) {
            let start = value.as_ptr() as usize - options.as_ptr() as usize;
            if name == TCA_HTB_INIT
                && let Some(value) = bytes.get_mut(start..start + value.len())
                && let Some(counter) = value.get_mut(DIRECT_PACKETS)
            {
                counter.fill(0);
            }
        }
    }
    bytes
}

impl fmt::Display for RawQdisc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = Qdisc { handle: self.handle, parent: self.parent, ..Qdisc::default() };
        write!(f, "{} {} at {}", self.kind, place.handle_text(), place.parent_text())
    }
}

impl Netlink {
    /// Returns the queueing disciplines of an interface that `tc qdisc show` lists, in the kernel's order.
    pub fn raw_qdiscs(&mut self, ifindex: u32) -> Result<Vec<RawQdisc>, NetlinkError> {
        self.dump_traffic_control((libc::RTM_GETQDISC, libc::RTM_NEWQDISC), ifindex, 0, "qdisc dump")
    }

    /// Returns whether a queueing discipline has filters; `parent` is its handle, or [`Qdisc::INGRESS`].
    pub fn has_filters(&mut self, ifindex: u32, parent: u32) -> Result<bool, NetlinkError> {
        let kinds = (libc::RTM_GETTFILTER, libc::RTM_NEWTFILTER);
        self.dump_traffic_control(kinds, ifindex, parent, "filter dump").map(|found| !found.is_empty())
    }

    /// Returns handle and rate (bytes/s) of each `htb` class of an interface.
    pub fn htb_rates(&mut self, ifindex: u32) -> Result<Vec<(u32, u64)>, NetlinkError> {
        let kinds = (libc::RTM_GETTCLASS, libc::RTM_NEWTCLASS);
        let classes = self.dump_traffic_control(kinds, ifindex, 0, "class dump")?;
        let rate = |options: &[u8]| {
            // struct tc_htb_opt begins with struct tc_ratespec, whose last 32-bit field is the rate.
            let find = |wanted| each_attribute(options).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
            let long = find(TCA_HTB_RATE64).and_then(|value| value.try_into().ok().map(u64::from_ne_bytes));
            long.or_else(|| find(TCA_HTB_PARMS).and_then(|value| u32_at(value, 8)).map(u64::from))
        };
        let found = classes.iter().filter(|class| class.kind == "htb");
        Ok(found.filter_map(|class| Some((class.handle, rate(class.options.as_deref()?)?))).collect())
    }

    /// Adds a queueing discipline at its parent, with the dumped handle and options. With a handle of 0 the kernel
    /// chooses one. Replaces a default discipline; fails if there is a configured one.
    pub fn add_raw_qdisc(&mut self, ifindex: u32, qdisc: &RawQdisc) -> Result<(), NetlinkError> {
        self.add_or_replace_raw_qdisc(ifindex, qdisc, "qdisc add", CREATE)
    }

    /// As [`Netlink::add_raw_qdisc`], but replaces a configured discipline.
    pub fn replace_raw_qdisc(&mut self, ifindex: u32, qdisc: &RawQdisc) -> Result<(), NetlinkError> {
        self.add_or_replace_raw_qdisc(ifindex, qdisc, "qdisc replace", REPLACE)
    }

    fn add_or_replace_raw_qdisc(
        &mut self,
        ifindex: u32,
        qdisc: &RawQdisc,
        operation: &'static str,
        flags: u16,
    ) -> Result<(), NetlinkError> {
        let mut request = Request::acknowledged(libc::RTM_NEWQDISC, flags);
        traffic_control_header(&mut request, ifindex, qdisc.handle, qdisc.parent, 0);
        request.text(TCA_KIND, &qdisc.kind);
        if let Some(options) = &qdisc.options {
            // The kernel validates fq_pie's options strictly: they need the nested flag.
            const NLA_F_NESTED: u16 = 0x8000;
            let nested = if qdisc.kind == "fq_pie" { NLA_F_NESTED } else { 0 };
            request.attribute(TCA_OPTIONS | nested, options);
        }
        self.execute(operation, format_args!("{qdisc} of interface {ifindex}"), request)
    }

    fn dump_traffic_control(
        &mut self,
        (ask, answer): (u16, u16),
        ifindex: u32,
        parent: u32,
        operation: &'static str,
    ) -> Result<Vec<RawQdisc>, NetlinkError> {
        let mut request = Request::dump(ask);
        traffic_control_header(&mut request, ifindex, 0, parent, 0);
        let parse = |payload: &[u8]| {
            let (index, qdisc) = RawQdisc::parse(payload)?;
            Ok((index == ifindex && !qdisc.kind.is_empty()).then_some(qdisc))
        };
        let mut found = Vec::new();
        self.connection.dump(request, answer, &mut found, parse).map_err(|cause| NetlinkError {
            operation,
            object: format!("interface {ifindex}"),
            cause,
        })?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkId;
    use landspeed_sys::netns;

    #[test]
    fn qdisc_tree_is_restored_exactly_from_its_dump() {
        let outcome = netns::run_in_new_namespace(|| {
            let run = |line: &str| {
                let output = std::process::Command::new(line.split(' ').next().expect("a program"))
                    .args(line.split(' ').skip(1))
                    .output();
                output.map_err(|why| why.to_string()).and_then(|out| {
                    if out.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&out.stderr).into_owned()) }
                })
            };
            run("ip link add a0 numtxqueues 3 type ifb")?;
            run("ip link set a0 up")?;
            run("tc qdisc add dev a0 root handle 7: mq")?;
            run("tc qdisc add dev a0 parent 7:1 handle 11: pfifo limit 17")?;
            run("tc qdisc add dev a0 parent 7:2 handle 12: tbf rate 1gbit burst 64kb latency 20ms")?;
            let mut netlink = Netlink::open().map_err(|why| why.to_string())?;
            let index = netlink.link(LinkId::Name("a0")).map_err(|why| why.to_string())?.index;
            let before = netlink.raw_qdiscs(index).map_err(|why| why.to_string())?;
            let root = before.iter().find(|q| q.parent == Qdisc::ROOT).expect("a root").clone();
            assert_eq!((root.kind.as_str(), root.handle), ("mq", 7 << 16));
            netlink.delete_qdisc(index, Qdisc::ROOT).map_err(|why| why.to_string())?;
            let default = netlink.raw_qdiscs(index).map_err(|why| why.to_string())?;
            assert!(default.iter().all(|q| q.handle == 0), "{default:?}");
            netlink.add_raw_qdisc(index, &root).map_err(|why| why.to_string())?;
            for leaf in before.iter().filter(|q| q.parent != Qdisc::ROOT && q.handle != 0) {
                netlink.add_raw_qdisc(index, leaf).map_err(|why| why.to_string())?;
            }
            assert_eq!(netlink.raw_qdiscs(index).map_err(|why| why.to_string())?, before);
            assert!(!netlink.has_filters(index, root.handle).map_err(|why| why.to_string())?);
            Ok::<(), String>(())
        });
        landspeed_testkit::or_lab_kernel!(outcome);
    }
}
