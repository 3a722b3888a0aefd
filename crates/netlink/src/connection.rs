//! Request and response exchange with one netlink family: requests, their responses, dumps of tables. All
//! families of this crate use it; a new one needs [`Connection::open`] with its number, a request, and a parser
//! for the response.

use std::fmt;
use std::io;
use std::time::Duration;

use landspeed_sys::clock::monotonic_ns;
use landspeed_sys::netlink::NetlinkSocket;
use netlink_packet_core::NetlinkBuffer;

use crate::parse::acknowledge;

/// Timeout for one message.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout for a dump: 100,000 sockets take the kernel 0.1 s, and the parser as long.
const DUMP_TIMEOUT: Duration = Duration::from_secs(5);
/// Dump messages are up to 32 KiB (`max_recvmsg_len`); single responses are smaller.
const RECEIVE_BUFFER_BYTES: usize = 64 * 1024;
/// Maximum size of a dump, about 500,000 sockets; longer ones fail.
const DUMP_LIMIT_BYTES: usize = 256 * 1024 * 1024;
/// Attempts at a dump that the kernel reports as inconsistent (`NLM_F_DUMP_INTR`).
const DUMP_ATTEMPTS: u32 = 3;

/// `struct nlmsghdr`.
pub(crate) const NETLINK_HEADER_BYTES: usize = 16;
const NLM_F_DUMP_INTR: u16 = 0x10;

/// Cause of a failed netlink request.
#[derive(Debug)]
pub enum Cause {
    /// The system call failed, or the kernel returned an error number.
    Io(io::Error),
    /// The kernel returned an error number and an explanation.
    Refused(io::Error, String),
    /// The response cannot be parsed.
    Malformed(&'static str),
    /// The response exceeds the buffer or the dump limit.
    TooLong,
    /// The table changed during every attempt at a dump.
    Interrupted,
}

/// A failed netlink request: operation, object, cause.
#[derive(Debug)]
pub struct NetlinkError {
    /// Operation, such as `qdisc dump`.
    pub operation: &'static str,
    /// Interface or address that the request is about.
    pub object: String,
    /// Cause of the failure.
    pub cause: Cause,
}

impl fmt::Display for NetlinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "netlink {} of {}: ", self.operation, self.object)?;
        match &self.cause {
            Cause::Io(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                f.write_str("no answer from the kernel in time")
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
    /// Returns whether the kernel or the driver lacks the feature, as opposed to a failure.
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
    /// Returns the errno of a system call or of the kernel's response, if that is the cause.
    pub fn os_error(&self) -> Option<i32> {
        match &self.cause {
            Cause::Io(e) | Cause::Refused(e, _) => e.raw_os_error(),
            Cause::Malformed(_) | Cause::TooLong | Cause::Interrupted => None,
        }
    }
}

/// A socket of one netlink family, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: NetlinkSocket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Connection {
    /// Opens a socket of a family (`NETLINK_ROUTE` …); errors call it `name`. Needs no privilege.
    pub(crate) fn open(family: libc::c_int, name: &str) -> Result<Self, NetlinkError> {
        let socket = NetlinkSocket::open(family, TIMEOUT).map_err(|e| NetlinkError {
            operation: "socket",
            object: name.into(),
            cause: Cause::Io(e),
        })?;
        Ok(Self { socket, buffer: vec![0; RECEIVE_BUFFER_BYTES], sequence: 0 })
    }

    /// Dumps a table: replaces the contents of `into` with the messages of type `answer`, parsed by `parse`. A dump
    /// during which the table changed is repeated.
    pub(crate) fn dump<T>(
        &mut self,
        mut request: Request,
        answer: u16,
        into: &mut Vec<T>,
        parse: impl Fn(&[u8]) -> Result<Option<T>, Cause>,
    ) -> Result<(), Cause> {
        for _ in 0..DUMP_ATTEMPTS {
            into.clear();
            let whole = self.exchange(&mut request, |kind, payload| {
                if kind == answer {
                    into.extend(parse(payload)?);
                }
                Ok(())
            })?;
            if whole {
                return Ok(());
            }
        }
        Err(Cause::Interrupted)
    }

    /// Sends a request that has one response.
    pub(crate) fn single<T>(
        &mut self,
        mut request: Request,
        answer: u16,
        parse: impl Fn(&[u8]) -> Result<T, Cause>,
    ) -> Result<T, Cause> {
        let mut found = None;
        self.exchange(&mut request, |kind, payload| {
            if kind == answer {
                found = Some(parse(payload)?);
            }
            Ok(())
        })?;
        found.ok_or(Cause::Malformed("another message type"))
    }

    /// Sends a request and calls `each` with every message of the response. Returns whether the response is
    /// consistent (false: the kernel's table changed during the dump).
    pub(crate) fn exchange(
        &mut self,
        request: &mut Request,
        mut each: impl FnMut(u16, &[u8]) -> Result<(), Cause>,
    ) -> Result<bool, Cause> {
        self.sequence = self.sequence.wrapping_add(1);
        let dump = request.is_dump();
        self.socket.send(request.finish(self.sequence)).map_err(Cause::Io)?;
        let patience = if dump { DUMP_TIMEOUT } else { TIMEOUT };
        let deadline_ns = monotonic_ns() + patience.as_nanos() as u64;
        let (mut whole, mut total) = (true, 0);
        loop {
            let n = match self.socket.receive(&mut self.buffer) {
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Cause::Io(e)),
            };
            total += n;
            // A full buffer means that the message was truncated.
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
                // Messages with another number belong to an earlier exchange that timed out.
                if message.sequence_number() == self.sequence {
                    whole &= message.flags() & NLM_F_DUMP_INTR == 0;
                    match i32::from(message.message_type()) {
                        libc::NLMSG_DONE => return Ok(whole),
                        libc::NLMSG_ERROR => acknowledge(message.flags(), message.payload())?,
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
pub(crate) struct Request {
    pub(crate) bytes: Vec<u8>,
    pub(crate) kind: u16,
    pub(crate) flags: u16,
}

impl Request {
    pub(crate) fn new(kind: u16, flags: u16) -> Self {
        Self { bytes: vec![0; NETLINK_HEADER_BYTES], kind, flags }
    }

    /// A request for a dump of a table.
    pub(crate) fn dump(kind: u16) -> Self {
        Self::new(kind, (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16)
    }

    fn is_dump(&self) -> bool {
        self.flags & libc::NLM_F_DUMP as u16 == libc::NLM_F_DUMP as u16
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) {
        // Attributes are short (names and addresses); longer ones are cut to the range of the length field.
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
