//! TCP sockets by `NETLINK_SOCK_DIAG` (sock_diag(7)): every socket of a network namespace with its `tcp_info`, or one of them.
//!
//! The kernel answers without privilege. It does not say which process holds a socket: [`TcpSocket::inode`] leads there.

mod filter;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub use filter::SocketFilter;

use crate::connection::{Cause, Connection, NetlinkError, Request};
use crate::parse::{each_attribute, u32_at};

/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h): type of request and answer.
const BY_FAMILY: u16 = 20;
// linux/inet_diag.h
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_VEGASINFO: u16 = 3;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;
const INET_DIAG_BBRINFO: u16 = 16;
const INET_DIAG_REQ_BYTECODE: u16 = 1;
/// Bytes of `struct inet_diag_sockid`.
const ID_BYTES: usize = 48;
/// Bytes of `struct inet_diag_msg` without its attributes.
const MESSAGE_BYTES: usize = 72;
/// States in which a connection can move data: ESTABLISHED 1, FIN_WAIT1 4, FIN_WAIT2 5, CLOSE_WAIT 8, LAST_ACK 9, CLOSING 11
/// (net/tcp_states.h).
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// What the kernel adds to each socket. Less is cheaper: of 10,000 idle sockets only the counters matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// `tcp_info` alone.
    Counters,
    /// Memory and congestion control too.
    Full,
}

/// What identifies a socket: `struct inet_diag_sockid` with its family. The cookie is in it, so that a new connection between
/// the same ports is another socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SocketId {
    family: u8,
    raw: [u8; ID_BYTES],
}

impl SocketId {
    /// A socket by its addresses and its cookie; both addresses are of the family of `local`.
    pub fn new(local: SocketAddr, remote: SocketAddr, cookie: u64) -> Self {
        let mut raw = [0; ID_BYTES];
        for (address, port_at, at) in [(local, 0, 4), (remote, 2, 20)] {
            raw[port_at..port_at + 2].copy_from_slice(&address.port().to_be_bytes());
            match address.ip() {
                IpAddr::V4(v4) => raw[at..at + 4].copy_from_slice(&v4.octets()),
                IpAddr::V6(v6) => raw[at..at + 16].copy_from_slice(&v6.octets()),
            }
        }
        let family = if local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        // The kernel has the lower half first, whatever the byte order.
        raw[40..44].copy_from_slice(&(cookie as u32).to_ne_bytes());
        raw[44..48].copy_from_slice(&((cookie >> 32) as u32).to_ne_bytes());
        Self { family: family as u8, raw }
    }

    /// The kernel's number of this socket, never used again until the next boot.
    pub fn cookie(&self) -> u64 {
        let half = |at| u64::from(u32_at(&self.raw, at).unwrap_or(0));
        half(40) | half(44) << 32
    }

    /// Address and port of this end. IPv4-mapped addresses are shown as IPv4.
    pub fn local(&self) -> SocketAddr {
        self.address(0, 4)
    }

    /// Address and port of the other end.
    pub fn remote(&self) -> SocketAddr {
        self.address(2, 20)
    }

    fn address(&self, port_at: usize, at: usize) -> SocketAddr {
        let port = u16::from_be_bytes([self.raw[port_at], self.raw[port_at + 1]]);
        let bytes = &self.raw[at..at + 16];
        let ip: IpAddr = if i32::from(self.family) == libc::AF_INET {
            Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into()
        } else {
            let mut wide = [0; 16];
            wide.copy_from_slice(bytes);
            Ipv6Addr::from(wide).to_canonical()
        };
        SocketAddr::new(ip, port)
    }
}

/// One TCP socket as the kernel describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSocket<'a> {
    /// What identifies it.
    pub id: SocketId,
    /// TCP state number (1 = ESTABLISHED).
    pub state: u8,
    /// Bytes received and not read by the application.
    pub receive_queue_bytes: u32,
    /// Bytes written and not acknowledged.
    pub send_queue_bytes: u32,
    /// User that made the socket.
    pub uid: u32,
    /// Inode of the socket, as in `/proc/PID/fd` (`socket:[INODE]`); 0 once no process holds it.
    pub inode: u32,
    /// `struct tcp_info`, as long as the kernel made it; empty if it sent none.
    pub tcp_info: &'a [u8],
    /// Its memory, if the kernel sent it.
    pub memory: Option<SocketMemory>,
    /// Congestion control, empty if the kernel sent none.
    pub congestion: &'a str,
    /// `struct tcp_bbr_info` of a BBR socket.
    pub bbr_info: Option<&'a [u8]>,
}

/// Memory of a socket, bytes (`SK_MEMINFO_*`, linux/sock_diag.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketMemory {
    /// Charged to the receive queue.
    pub rmem_alloc: u32,
    /// `SO_RCVBUF`.
    pub rcvbuf: u32,
    /// `SO_SNDBUF`.
    pub sndbuf: u32,
    /// Charged to the send queue.
    pub wmem_queued: u32,
    /// Segments dropped by the socket; `None` on kernels before 4.7.
    pub drops: Option<u32>,
}

impl SocketMemory {
    fn parse(value: &[u8]) -> Option<Self> {
        let at = |index: usize| u32_at(value, index * 4);
        Some(Self { rmem_alloc: at(0)?, rcvbuf: at(1)?, sndbuf: at(3)?, wmem_queued: at(5)?, drops: at(8) })
    }
}

impl<'a> TcpSocket<'a> {
    /// Reads `struct inet_diag_msg` and its attributes; attributes that are missing, short or unknown cost their field only.
    fn parse(payload: &'a [u8]) -> Result<Self, Cause> {
        let (message, attributes) =
            payload.split_at_checked(MESSAGE_BYTES).ok_or(Cause::Malformed("socket header"))?;
        let mut raw = [0; ID_BYTES];
        raw.copy_from_slice(&message[4..4 + ID_BYTES]);
        let field = |at: usize| u32_at(message, at).unwrap_or(0);
        let mut socket = Self {
            id: SocketId { family: message[0], raw },
            state: message[1],
            receive_queue_bytes: field(56),
            send_queue_bytes: field(60),
            uid: field(64),
            inode: field(68),
            tcp_info: &[],
            memory: None,
            congestion: "",
            bbr_info: None,
        };
        for (kind, value) in each_attribute(attributes) {
            match kind {
                INET_DIAG_INFO => socket.tcp_info = value,
                INET_DIAG_SKMEMINFO => socket.memory = SocketMemory::parse(value),
                INET_DIAG_CONG => {
                    let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
                    socket.congestion = std::str::from_utf8(&value[..end]).unwrap_or_default();
                }
                INET_DIAG_BBRINFO => socket.bbr_info = Some(value),
                _ => {}
            }
        }
        Ok(socket)
    }
}

/// A sock_diag socket of the network namespace its creator was in.
#[derive(Debug)]
pub struct SockDiag {
    connection: Connection,
}

impl SockDiag {
    /// Opens a socket in the calling thread's network namespace. Needs no privilege.
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self { connection: Connection::open(libc::NETLINK_SOCK_DIAG, "the sock_diag family")? })
    }

    /// Gives each connected TCP socket that passes `filter` to `each`, IPv4 first. Nothing is kept, however many there are.
    ///
    /// # Errors
    /// `ENOENT` where the kernel was built without `CONFIG_INET_TCP_DIAG`; a dump that was given up, after which this
    /// connection is of no use.
    pub fn dump(
        &mut self,
        filter: &SocketFilter,
        detail: Detail,
        mut each: impl FnMut(&TcpSocket<'_>),
    ) -> Result<(), NetlinkError> {
        let bytecode = filter.bytecode();
        for family in [libc::AF_INET, libc::AF_INET6] {
            if !filter.admits(family) {
                continue;
            }
            let mut request = Request::dump(BY_FAMILY);
            header(&mut request, family as u8, detail, &[0; ID_BYTES]);
            if !bytecode.is_empty() {
                request.attribute(INET_DIAG_REQ_BYTECODE, &bytecode);
            }
            let answer = self.connection.exchange(&mut request, |kind, payload| {
                if kind == BY_FAMILY {
                    each(&TcpSocket::parse(payload)?);
                }
                Ok(())
            });
            answer.map_err(|cause| NetlinkError {
                operation: "TCP socket dump",
                object: "the network namespace".into(),
                cause,
            })?;
        }
        Ok(())
    }

    /// Gives one socket to `read`; `None` if it is gone, also when its ports are in use by another one.
    pub fn single<T>(
        &mut self,
        id: &SocketId,
        read: impl FnOnce(&TcpSocket<'_>) -> T,
    ) -> Result<Option<T>, NetlinkError> {
        let mut request = Request::new(BY_FAMILY, libc::NLM_F_REQUEST as u16);
        header(&mut request, id.family, Detail::Full, &id.raw);
        let (mut read, mut found) = (Some(read), None);
        let answer = self.connection.exchange(&mut request, |kind, payload| {
            if kind == BY_FAMILY
                && let Some(read) = read.take()
            {
                found = Some(read(&TcpSocket::parse(payload)?));
            }
            Ok(())
        });
        match answer {
            Ok(_) => Ok(found),
            // ESTALE: the cookie is another's.
            Err(Cause::Io(why) | Cause::Refused(why, _))
                if matches!(why.raw_os_error(), Some(libc::ENOENT | libc::ESTALE)) =>
            {
                Ok(None)
            }
            Err(cause) => Err(NetlinkError {
                operation: "TCP socket lookup",
                object: format!("{} and {}", id.local(), id.remote()),
                cause,
            }),
        }
    }
}

/// `struct inet_diag_req_v2`.
fn header(request: &mut Request, family: u8, detail: Detail, id: &[u8; ID_BYTES]) {
    let wanted: &[u16] = match detail {
        Detail::Counters => &[INET_DIAG_INFO],
        // BBR answers the request for Vegas' details with its own (net/ipv4/tcp_bbr.c, bbr_get_info).
        Detail::Full => &[INET_DIAG_INFO, INET_DIAG_VEGASINFO, INET_DIAG_CONG, INET_DIAG_SKMEMINFO],
    };
    let extensions = wanted.iter().fold(0, |bits, kind| bits | 1 << (kind - 1));
    request.bytes(&[family, libc::IPPROTO_TCP as u8, extensions, 0]);
    request.bytes(&STATES.to_ne_bytes());
    request.bytes(id);
}
