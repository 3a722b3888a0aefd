//! TCP sockets by `NETLINK_SOCK_DIAG` (sock_diag(7)): every socket of a network namespace with its `tcp_info`,
//! or a single one.
//!
//! Needs no privilege. The kernel does not report the owning process; it can be found by [`TcpSocket::inode`].

mod filter;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub use filter::SocketFilter;

use crate::connection::{Cause, Connection, NetlinkError, Request};
use crate::parse::{each_attribute, u32_at};

/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h): message type of request and response.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
// linux/inet_diag.h
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_VEGASINFO: u16 = 3;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;
const INET_DIAG_BBRINFO: u16 = 16;
const INET_DIAG_REQ_BYTECODE: u16 = 1;
/// Size of `struct inet_diag_sockid`, bytes.
const ID_BYTES: usize = 48;
/// Size of `struct inet_diag_msg` without its attributes, bytes.
const MESSAGE_BYTES: usize = 72;
/// States in which a connection can transfer data: ESTABLISHED 1, FIN_WAIT1 4, FIN_WAIT2 5, CLOSE_WAIT 8,
/// LAST_ACK 9, CLOSING 11 (net/tcp_states.h).
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// States in which the remote host's FIN has arrived.
const FIN_RECEIVED: [u8; 3] = [8, 9, 11];
/// States in which the own FIN is not acknowledged yet.
const FIN_SENT: [u8; 3] = [4, 9, 11];

/// Attributes requested for each socket. Fewer are cheaper, for dumps of thousands of sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Only `tcp_info`.
    Counters,
    /// Also memory and congestion control.
    Full,
}

/// Identity of a socket: `struct inet_diag_sockid` with its family. It includes the cookie, so a new connection
/// with the same addresses and ports is a different socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SocketId {
    family: u8,
    raw: [u8; ID_BYTES],
}

impl SocketId {
    /// A socket by its addresses and cookie; both addresses have the family of `local`.
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
        // The kernel stores the lower half first on any byte order.
        raw[40..44].copy_from_slice(&(cookie as u32).to_ne_bytes());
        raw[44..48].copy_from_slice(&((cookie >> 32) as u32).to_ne_bytes());
        Self { family: family as u8, raw }
    }

    /// The kernel's unique number of this socket, not reused until the next boot.
    pub fn cookie(&self) -> u64 {
        let half = |at| u64::from(u32_at(&self.raw, at).unwrap_or(0));
        half(40) | half(44) << 32
    }

    /// Local address and port. IPv4-mapped addresses are shown as IPv4.
    pub fn local(&self) -> SocketAddr {
        self.address(0, 4)
    }

    /// Remote address and port, as [`SocketId::local`].
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

/// A TCP socket as reported by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSocket<'a> {
    /// Identity of the socket: addresses, ports and cookie.
    pub id: SocketId,
    /// TCP state number (1 = ESTABLISHED).
    pub state: u8,
    /// Bytes received but not read by the application (Recv-Q).
    pub receive_queue_bytes: u32,
    /// Bytes sent or queued but not acknowledged (Send-Q).
    pub send_queue_bytes: u32,
    /// User id of the socket's creator.
    pub uid: u32,
    /// Inode of the socket, as in `/proc/PID/fd` (`socket:[INODE]`); 0 when no process holds it.
    pub inode: u32,
    /// `struct tcp_info`, as long as this kernel's; empty if not reported.
    pub tcp_info: &'a [u8],
    /// Socket memory, if reported.
    pub memory: Option<SocketMemory>,
    /// Name of the congestion control algorithm; empty if not reported.
    pub congestion: &'a str,
    /// `struct tcp_bbr_info` of a BBR socket.
    pub bbr_info: Option<&'a [u8]>,
}

/// Memory of a socket, bytes (`SK_MEMINFO_*`, linux/sock_diag.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketMemory {
    /// Memory allocated for the receive queue.
    pub rmem_alloc: u32,
    /// Receive buffer size (`SO_RCVBUF`).
    pub rcvbuf: u32,
    /// Send buffer size (`SO_SNDBUF`).
    pub sndbuf: u32,
    /// Memory of the send queue.
    pub wmem_queued: u32,
    /// Packets dropped by the socket, a count; `None` on kernels before 4.7.
    pub drops: Option<u32>,
}

impl SocketMemory {
    fn parse(value: &[u8]) -> Option<Self> {
        let at = |index: usize| u32_at(value, index * 4);
        Some(Self { rmem_alloc: at(0)?, rcvbuf: at(1)?, sndbuf: at(3)?, wmem_queued: at(5)?, drops: at(8) })
    }
}

impl<'a> TcpSocket<'a> {
    /// Parses `struct inet_diag_msg` and its attributes; missing, short or unknown attributes only leave their
    /// field empty.
    fn parse(payload: &'a [u8]) -> Result<Self, Cause> {
        let (message, attributes) =
            payload.split_at_checked(MESSAGE_BYTES).ok_or(Cause::Malformed("socket header"))?;
        let mut raw = [0; ID_BYTES];
        raw.copy_from_slice(&message[4..4 + ID_BYTES]);
        let field = |at: usize| u32_at(message, at).unwrap_or(0);
        // A FIN takes a sequence number, and the kernel counts it as a queued byte until it is read or acknowledged.
        let fin = |states: &[u8]| u32::from(states.contains(&message[1]));
        let mut socket = Self {
            id: SocketId { family: message[0], raw },
            state: message[1],
            receive_queue_bytes: field(56).saturating_sub(fin(&FIN_RECEIVED)),
            send_queue_bytes: field(60).saturating_sub(fin(&FIN_SENT)),
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

/// A sock_diag socket of the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct SockDiag {
    connection: Connection,
}

impl SockDiag {
    /// Opens a socket in the calling thread's network namespace. Needs no privilege.
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self { connection: Connection::open(libc::NETLINK_SOCK_DIAG, "the sock_diag family")? })
    }

    /// Calls `each` with every connected TCP socket that matches `filter`, IPv4 first. Nothing is stored, so any
    /// number of sockets is fine.
    ///
    /// # Errors
    /// `ENOENT` on kernels without `CONFIG_INET_TCP_DIAG`; a dump that was abandoned, after which this connection
    /// is unusable.
    pub fn dump(
        &mut self,
        filter: &SocketFilter,
        detail: Detail,
        mut each: impl FnMut(&TcpSocket<'_>),
    ) -> Result<(), NetlinkError> {
        let bytecode = filter.bytecode();
        for family in [libc::AF_INET, libc::AF_INET6] {
            if !filter.can_match(family) {
                continue;
            }
            let mut request = Request::dump(SOCK_DIAG_BY_FAMILY);
            header(&mut request, family as u8, detail, &[0; ID_BYTES]);
            if !bytecode.is_empty() {
                request.attribute(INET_DIAG_REQ_BYTECODE, &bytecode);
            }
            let answer = self.connection.exchange(&mut request, |kind, payload| {
                if kind == SOCK_DIAG_BY_FAMILY {
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

    /// Calls `read` with one socket; `None` if it is gone, even if another socket has its ports.
    pub fn single<T>(
        &mut self,
        id: &SocketId,
        read: impl FnOnce(&TcpSocket<'_>) -> T,
    ) -> Result<Option<T>, NetlinkError> {
        let mut request = Request::new(SOCK_DIAG_BY_FAMILY, libc::NLM_F_REQUEST as u16);
        header(&mut request, id.family, Detail::Full, &id.raw);
        let (mut read, mut found) = (Some(read), None);
        let answer = self.connection.exchange(&mut request, |kind, payload| {
            if kind == SOCK_DIAG_BY_FAMILY
                && let Some(read) = read.take()
            {
                found = Some(read(&TcpSocket::parse(payload)?));
            }
            Ok(())
        });
        match answer {
            Ok(_) => Ok(found),
            // ESTALE: another socket has these ports.
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

/// Writes `struct inet_diag_req_v2`.
fn header(request: &mut Request, family: u8, detail: Detail, id: &[u8; ID_BYTES]) {
    let wanted: &[u16] = match detail {
        Detail::Counters => &[INET_DIAG_INFO],
        // BBR returns its own attribute when Vegas information is requested (net/ipv4/tcp_bbr.c, bbr_get_info).
        Detail::Full => &[INET_DIAG_INFO, INET_DIAG_VEGASINFO, INET_DIAG_CONG, INET_DIAG_SKMEMINFO],
    };
    let extensions = wanted.iter().fold(0, |bits, kind| bits | 1 << (kind - 1));
    request.bytes(&[family, libc::IPPROTO_TCP as u8, extensions, 0]);
    request.bytes(&STATES.to_ne_bytes());
    request.bytes(id);
}
