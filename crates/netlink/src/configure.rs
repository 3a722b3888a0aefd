//! Building a network by netlink: links, addresses, routes, neighbours, queueing disciplines and filters of the namespace
//! that [`Netlink::open`] was called in. Needs `CAP_NET_ADMIN` there.
//!
//! Calls keep no state: the state is in the kernel. An error names the operation and the object,
//! and quotes the kernel's own explanation where it gives one.

use std::fmt::Display;

use super::{Cause, Netlink, NetlinkError, Request};

mod address;
mod filter;
mod link;
mod qdisc;
mod route;

pub use link::{LinkSettings, NewLink};
pub(crate) use qdisc::traffic_control_header;
pub use qdisc::{
    Codel, Delivery, Discipline, DisciplineError, Fq, FqCodel, HtbClass, Loss, Netem, NetemRate, Pie, Probability,
    RawQdisc, Red, Tbf, handle,
};
pub use route::NewRoute;

/// Create; fail if it is there (`tc … add`, `ip … add`).
const CREATE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
/// Create or replace what is there.
const REPLACE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;

impl Request {
    /// A request whose answer is an acknowledgement.
    fn acknowledged(kind: u16, flags: u16) -> Self {
        Self::new(kind, (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16 | flags)
    }

    /// An attribute made of attributes (`NLA_F_NESTED`).
    fn nest(&mut self, kind: u16, inner: impl FnOnce(&mut Self)) {
        self.around(kind | libc::NLA_F_NESTED as u16, inner);
    }

    /// An attribute whose value `inner` writes: a structure, attributes, or one behind the other.
    ///
    /// # Panics
    /// If it is longer than an attribute can be (65,535 bytes); nothing here comes near.
    fn around(&mut self, kind: u16, inner: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.bytes(&[0; 2]);
        self.bytes(&kind.to_ne_bytes());
        inner(self);
        let length = u16::try_from(self.bytes.len() - start).expect("an attribute fits its length field");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn u8(&mut self, kind: u16, value: u8) {
        self.attribute(kind, &[value]);
    }

    fn u32(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_ne_bytes());
    }

    fn u64(&mut self, kind: u16, value: u64) {
        self.attribute(kind, &value.to_ne_bytes());
    }

    /// Only when there is a value; without one the kernel keeps its default.
    fn maybe_u32(&mut self, kind: u16, value: Option<u32>) {
        if let Some(value) = value {
            self.u32(kind, value);
        }
    }

    fn maybe_bool(&mut self, kind: u16, value: Option<bool>) {
        self.maybe_u32(kind, value.map(u32::from));
    }

    fn text(&mut self, kind: u16, text: &str) {
        self.around(kind, |r| {
            r.bytes(text.as_bytes());
            r.bytes(&[0]);
        });
    }

    fn words(&mut self, words: &[u32]) {
        for word in words {
            self.bytes(&word.to_ne_bytes());
        }
    }
}

impl Netlink {
    /// Sends a request and waits for the acknowledgement.
    fn carry_out(
        &mut self,
        operation: &'static str,
        object: impl Display,
        mut request: Request,
    ) -> Result<(), NetlinkError> {
        self.connection.exchange(&mut request, |_, _| Ok(())).map(drop).map_err(|cause| NetlinkError {
            operation,
            object: object.to_string(),
            cause,
        })
    }
}

/// An error found before the kernel was asked.
fn refuse(operation: &'static str, object: impl Display, why: impl Display) -> NetlinkError {
    let cause = std::io::Error::new(std::io::ErrorKind::InvalidInput, why.to_string());
    NetlinkError { operation, object: object.to_string(), cause: Cause::Io(cause) }
}

#[cfg(test)]
mod tests;
