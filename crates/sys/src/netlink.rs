//! Netlink: queueing disciplines, links and routes, read with three requests over one `AF_NETLINK` socket; and built, by
//! [`configure`].
//!
//! Which library, and why: `rtnetlink` brings tokio, too much for three questions. `netlink-packet-route` decodes
//! every attribute of a message and refuses the whole message when one of them has a shape it does not know, so a
//! newer kernel's `fq_codel` statistics or link attribute would cost us the counters beside it; it also has no name
//! for `TCA_STATS_PKT64`, the only packet counter that does not wrap. So: `netlink-packet-core` (no dependencies) does
//! the framing and the attribute bounds, and `parse.rs` picks the few attributes wanted, skipping what it does
//! not know. The socket is `socket2`'s: read timeout, fixed buffer, connected to the kernel so that nothing else can
//! answer.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use netlink_packet_core::NetlinkBuffer;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::clock::monotonic_ns;

pub mod configure;
mod generic;
mod parse;
mod reading;

pub use generic::{Coalescing, EthtoolFamily};
pub use parse::{Address, LINK_STATS_NAMES, Link, Qdisc, Route};
pub use reading::{
    CakeReading, CakeTin, CodelReading, Details, FqCodelReading, FqPieReading, FqReading, NetemReading, PieReading,
    QdiscKind, QdiscReading, RedReading,
};

/// Longest wait for one answer, and for a whole dump.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The kernel fills dump messages up to 32 KiB (`max_recvmsg_len`); single answers are smaller.
const RECEIVE_BUFFER_BYTES: usize = 64 * 1024;
/// A dump longer than this is given up: some 100,000 queueing disciplines.
const DUMP_LIMIT_BYTES: usize = 32 * 1024 * 1024;
/// A dump the kernel says was changed under our hands (`NLM_F_DUMP_INTR`) is asked for this many times.
const DUMP_ATTEMPTS: u32 = 3;

/// `struct nlmsghdr`.
const NETLINK_HEADER_BYTES: usize = 16;
const NLM_F_DUMP_INTR: u16 = 0x10;
// linux/netlink.h: ask for errors with the kernel's explanation and without our request behind them.
const NETLINK_CAP_ACK: libc::c_int = 10;
const NETLINK_EXT_ACK: libc::c_int = 11;
/// Show also the queueing disciplines classful ones create by default (linux/rtnetlink.h, since 4.12).
const TCA_DUMP_INVISIBLE: u16 = 10;

/// Why a question to the kernel was not answered.
#[derive(Debug)]
pub enum Cause {
    /// The system call or the kernel said no.
    Io(io::Error),
    /// The kernel said no, and why.
    Refused(io::Error, String),
    /// The answer does not parse.
    Malformed(&'static str),
    /// The answer is longer than we read.
    TooLong,
    /// The tables kept changing while they were read.
    Interrupted,
}

/// A netlink request that failed: operation, object, cause.
#[derive(Debug)]
pub struct NetlinkError {
    /// What was asked, such as `qdisc dump`.
    pub operation: &'static str,
    /// About what: interface or address.
    pub object: String,
    /// Why it failed.
    pub cause: Cause,
}

impl fmt::Display for NetlinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "netlink {} of {}: ", self.operation, self.object)?;
        match &self.cause {
            Cause::Io(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                f.write_str("no answer from the kernel within a second")
            }
            Cause::Io(e) => write!(f, "{e}"),
            Cause::Refused(e, why) => write!(f, "{e}: {why}"),
            Cause::Malformed(what) => write!(f, "unreadable answer ({what})"),
            Cause::TooLong => f.write_str("answer too long"),
            Cause::Interrupted => f.write_str("the table kept changing while it was read"),
        }
    }
}

impl NetlinkError {
    /// Whether the kernel or the driver has no such thing, as opposed to a failure.
    pub fn is_unsupported(&self) -> bool {
        let (Cause::Io(error) | Cause::Refused(error, _)) = &self.cause else { return false };
        error.raw_os_error() == Some(libc::EOPNOTSUPP)
    }
}

impl std::error::Error for NetlinkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Io(e) | Cause::Refused(e, _) => Some(e),
            _ => None,
        }
    }
}

impl NetlinkError {
    /// The system's error number, if it was the system that said no.
    pub fn os_error(&self) -> Option<i32> {
        match &self.cause {
            Cause::Io(e) | Cause::Refused(e, _) => e.raw_os_error(),
            Cause::Malformed(_) | Cause::TooLong | Cause::Interrupted => None,
        }
    }
}

/// Which link is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkId<'a> {
    /// By index.
    Index(u32),
    /// By name.
    Name(&'a str),
}

impl fmt::Display for LinkId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "interface {index}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A route-netlink socket of the network namespace its creator was in.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket in the calling thread's network namespace. Needs no privilege.
    pub fn open() -> Result<Self, NetlinkError> {
        Self::open_family(libc::NETLINK_ROUTE, "the route family")
    }

    fn open_family(family: libc::c_int, name: &str) -> Result<Self, NetlinkError> {
        let open = || -> io::Result<Socket> {
            let family = Protocol::from(family);
            let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW.cloexec(), Some(family))?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            socket.set_write_timeout(Some(TIMEOUT))?;
            socket.connect(&kernel_address()?)?;
            // Kernels before 4.12 explain nothing.
            for option in [NETLINK_CAP_ACK, NETLINK_EXT_ACK] {
                let _ = crate::socket::set_int(socket.as_fd(), libc::SOL_NETLINK, option, 1);
            }
            Ok(socket)
        };
        let socket =
            open().map_err(|e| NetlinkError { operation: "socket", object: name.into(), cause: Cause::Io(e) })?;
        Ok(Self { socket, buffer: vec![0; RECEIVE_BUFFER_BYTES], sequence: 0 })
    }

    /// One link with its counters.
    pub fn link(&mut self, which: LinkId<'_>) -> Result<Link, NetlinkError> {
        let mut request = Request::new(libc::RTM_GETLINK, libc::NLM_F_REQUEST as u16);
        // struct ifinfomsg: family, pad, type (u16), index (i32), flags (u32), change (u32).
        let index = if let LinkId::Index(index) = which { index } else { 0 };
        request.bytes(&[libc::AF_UNSPEC as u8, 0, 0, 0]);
        request.bytes(&index.to_ne_bytes());
        request.bytes(&[0; 8]);
        if let LinkId::Name(name) = which {
            let mut text = name.as_bytes().to_vec();
            text.push(0);
            request.attribute(libc::IFLA_IFNAME, &text);
        }
        self.single(request, libc::RTM_NEWLINK, Link::parse).map_err(|cause| NetlinkError {
            operation: "link",
            object: which.to_string(),
            cause,
        })
    }

    /// Every link of the namespace, in the kernel's order.
    pub fn links(&mut self) -> Result<Vec<Link>, NetlinkError> {
        // struct ifinfomsg, all zero.
        self.table(libc::RTM_GETLINK, libc::RTM_NEWLINK, "link dump", &[0; 16], |payload| {
            Link::parse(payload).map(Some)
        })
    }

    /// Every address of the namespace, in the kernel's order.
    pub fn addresses(&mut self) -> Result<Vec<Address>, NetlinkError> {
        // struct ifaddrmsg, all zero: of any family.
        self.table(libc::RTM_GETADDR, libc::RTM_NEWADDR, "address dump", &[0; 8], Address::parse)
    }

    /// Every queueing discipline of the namespace, as [`Netlink::qdiscs`] tells those of one interface.
    pub fn all_qdiscs(&mut self) -> Result<Vec<Qdisc>, NetlinkError> {
        // struct tcmsg, all zero.
        self.table(libc::RTM_GETQDISC, libc::RTM_NEWQDISC, "qdisc dump", &[0; 20], Qdisc::parse)
    }

    /// One of the kernel's tables, whole.
    fn table<T>(
        &mut self,
        ask: u16,
        answer: u16,
        operation: &'static str,
        header: &[u8],
        parse: impl Fn(&[u8]) -> Result<Option<T>, Cause>,
    ) -> Result<Vec<T>, NetlinkError> {
        let fail = |cause| NetlinkError { operation, object: "the whole namespace".into(), cause };
        for _ in 0..DUMP_ATTEMPTS {
            let mut request = Request::new(ask, (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16);
            request.bytes(header);
            if ask == libc::RTM_GETQDISC {
                request.attribute(TCA_DUMP_INVISIBLE, &[]);
            }
            let mut found = Vec::new();
            let whole = self
                .exchange(request, |kind, payload| {
                    if kind == answer {
                        found.extend(parse(payload)?);
                    }
                    Ok(())
                })
                .map_err(fail)?;
            if whole {
                return Ok(found);
            }
        }
        Err(fail(Cause::Interrupted))
    }

    /// Every queueing discipline of an interface, with its counters; those hidden from `tc qdisc show` too. A parent's
    /// counters include its children's: do not add them up.
    pub fn qdiscs(&mut self, ifindex: u32) -> Result<Vec<Qdisc>, NetlinkError> {
        self.traffic_control(libc::RTM_GETQDISC, libc::RTM_NEWQDISC, ifindex, "qdisc dump")
    }

    /// Every class of an interface, with its counters (`htb`, `hfsc`, `mq` …).
    pub fn classes(&mut self, ifindex: u32) -> Result<Vec<Qdisc>, NetlinkError> {
        self.traffic_control(libc::RTM_GETTCLASS, libc::RTM_NEWTCLASS, ifindex, "class dump")
    }

    fn traffic_control(
        &mut self,
        ask: u16,
        answer: u16,
        ifindex: u32,
        operation: &'static str,
    ) -> Result<Vec<Qdisc>, NetlinkError> {
        let fail = |cause| NetlinkError { operation, object: format!("interface {ifindex}"), cause };
        for _ in 0..DUMP_ATTEMPTS {
            let mut request = Request::new(ask, (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16);
            // struct tcmsg: family, pad[3], ifindex, handle, parent, info.
            request.bytes(&[libc::AF_UNSPEC as u8, 0, 0, 0]);
            request.bytes(&ifindex.to_ne_bytes());
            request.bytes(&[0; 12]);
            if ask == libc::RTM_GETQDISC {
                request.attribute(TCA_DUMP_INVISIBLE, &[]);
            }
            let mut found = Vec::new();
            let whole = self
                .exchange(request, |kind, payload| {
                    // The kernel dumps every interface; only this one is wanted.
                    if kind == answer
                        && let Some(qdisc) = Qdisc::parse(payload)?
                        && qdisc.ifindex == ifindex
                    {
                        found.push(qdisc);
                    }
                    Ok(())
                })
                .map_err(fail)?;
            if whole {
                return Ok(found);
            }
        }
        Err(fail(Cause::Interrupted))
    }

    /// How the kernel would send to `destination`. An IPv4-mapped IPv6 address is looked up as IPv4; a zone, if any, is
    /// honoured.
    pub fn route(&mut self, destination: SocketAddr) -> Result<Route, NetlinkError> {
        let address = destination.ip().to_canonical();
        let zone = match destination {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => Some(v6.scope_id()),
            _ => None,
        };
        let (family, bits) = if address.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
        let mut request = Request::new(libc::RTM_GETROUTE, libc::NLM_F_REQUEST as u16);
        // struct rtmsg: family, dst_len, src_len, tos, table, protocol, scope, type, flags (u32).
        request.bytes(&[family as u8, bits, 0, 0, 0, 0, 0, 0]);
        request.bytes(&[0; 4]);
        match address {
            IpAddr::V4(v4) => request.attribute(libc::RTA_DST, &v4.octets()),
            IpAddr::V6(v6) => request.attribute(libc::RTA_DST, &v6.octets()),
        }
        if let Some(zone) = zone {
            request.attribute(libc::RTA_OIF, &zone.to_ne_bytes());
        }
        self.single(request, libc::RTM_NEWROUTE, Route::parse).map_err(|cause| NetlinkError {
            operation: "route",
            object: address.to_string(),
            cause,
        })
    }

    /// Sends a request that has one answer.
    fn single<T>(
        &mut self,
        request: Request,
        answer: u16,
        parse: impl Fn(&[u8]) -> Result<T, Cause>,
    ) -> Result<T, Cause> {
        let mut found = None;
        self.exchange(request, |kind, payload| {
            if kind == answer {
                found = Some(parse(payload)?);
            }
            Ok(())
        })?;
        found.ok_or(Cause::Malformed("another message type"))
    }

    /// Sends a request and gives every message of its answer to `each`. Returns whether the answer is consistent
    /// (false: the kernel's table changed during the dump).
    fn exchange(
        &mut self,
        mut request: Request,
        mut each: impl FnMut(u16, &[u8]) -> Result<(), Cause>,
    ) -> Result<bool, Cause> {
        self.sequence = self.sequence.wrapping_add(1);
        let dump = request.is_dump();
        self.socket.write_all(request.finish(self.sequence)).map_err(Cause::Io)?;
        let deadline_ns = monotonic_ns() + TIMEOUT.as_nanos() as u64;
        let (mut whole, mut total) = (true, 0);
        loop {
            let n = match self.socket.read(&mut self.buffer) {
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Cause::Io(e)),
            };
            total += n;
            // A full buffer means that the rest was cut off.
            if n == self.buffer.len() || total > DUMP_LIMIT_BYTES {
                return Err(Cause::TooLong);
            }
            if n == 0 || monotonic_ns() > deadline_ns {
                return Err(Cause::Io(io::ErrorKind::TimedOut.into()));
            }
            let mut rest = &self.buffer[..n];
            let mut answered = false;
            while !rest.is_empty() {
                let message = NetlinkBuffer::new_checked(rest).map_err(|_| Cause::Malformed("message header"))?;
                let length = message.length() as usize;
                // Left over from an earlier exchange that was given up.
                if message.sequence_number() == self.sequence {
                    whole &= message.flags() & NLM_F_DUMP_INTR == 0;
                    match i32::from(message.message_type()) {
                        libc::NLMSG_DONE => return Ok(whole),
                        libc::NLMSG_ERROR => parse::acknowledge(message.flags(), message.payload())?,
                        libc::NLMSG_NOOP => {}
                        _ => each(message.message_type(), message.payload())?,
                    }
                    answered = true;
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
            if answered && !dump {
                return Ok(whole);
            }
        }
    }
}

/// A request under construction.
struct Request {
    bytes: Vec<u8>,
    kind: u16,
    flags: u16,
}

impl Request {
    fn new(kind: u16, flags: u16) -> Self {
        Self { bytes: vec![0; NETLINK_HEADER_BYTES], kind, flags }
    }

    fn is_dump(&self) -> bool {
        self.flags & libc::NLM_F_DUMP as u16 == libc::NLM_F_DUMP as u16
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        // Attributes are short: names and addresses, cut at what a length field can say.
        let value = &value[..value.len().min(usize::from(u16::MAX) - 4)];
        self.bytes(&(value.len() as u16 + 4).to_ne_bytes());
        self.bytes(&kind.to_ne_bytes());
        self.bytes(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(&mut self, sequence: u32) -> &[u8] {
        let length = self.bytes.len() as u32;
        let mut header = NetlinkBuffer::new(&mut self.bytes);
        header.set_length(length);
        header.set_message_type(self.kind);
        header.set_flags(self.flags);
        header.set_sequence_number(sequence);
        header.set_port_number(0);
        &self.bytes
    }
}

/// The kernel's netlink address: port 0, no groups.
fn kernel_address() -> io::Result<SockAddr> {
    // SAFETY: the storage is zeroed and at least as large and as aligned as sockaddr_nl, whose family is the one
    // field that is not zero; the length given is that of sockaddr_nl.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            let address = storage.cast::<libc::sockaddr_nl>();
            (*address).nl_family = libc::AF_NETLINK as libc::sa_family_t;
            *length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
            Ok(())
        })
    }?;
    Ok(address)
}

#[cfg(test)]
mod tests;
