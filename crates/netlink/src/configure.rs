//! Configuration over netlink: links, addresses, routes, neighbours, queueing disciplines and filters of the
//! network namespace in which [`Netlink::open`] was called. Needs `CAP_NET_ADMIN` there.
//!
//! Nothing is cached between calls. An error names the operation and the object, and includes the kernel's
//! extended acknowledgement message when there is one.

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

/// Creates; fails if the object exists (`tc … add`, `ip … add`).
const CREATE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
/// Creates, or replaces an existing object (`tc … replace`).
const REPLACE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;

impl Request {
    /// A request that is answered by an acknowledgement only (`NLM_F_ACK`).
    fn acknowledged(kind: u16, flags: u16) -> Self {
        Self::new(kind, (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16 | flags)
    }

    /// Appends an attribute that contains attributes (`NLA_F_NESTED`).
    fn nest(&mut self, kind: u16, inner: impl FnOnce(&mut Self)) {
        self.nest_without_flag(kind | libc::NLA_F_NESTED as u16, inner);
    }

    /// Appends an attribute whose value `inner` writes: a structure, attributes, or a structure followed by
    /// attributes.
    ///
    /// # Panics
    /// If the attribute exceeds 65,535 bytes, the range of its length field; no caller comes close.
    fn nest_without_flag(&mut self, kind: u16, inner: impl FnOnce(&mut Self)) {
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

    /// Appends the attribute if there is a value; otherwise the kernel's default applies.
    fn maybe_u32(&mut self, kind: u16, value: Option<u32>) {
        if let Some(value) = value {
            self.u32(kind, value);
        }
    }

    fn maybe_bool(&mut self, kind: u16, value: Option<bool>) {
        self.maybe_u32(kind, value.map(u32::from));
    }

    fn text(&mut self, kind: u16, text: &str) {
        self.nest_without_flag(kind, |r| {
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
    /// Sends a request and waits for its acknowledgement.
    fn execute(
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

/// An error that is detected before the request is sent.
fn invalid_input(operation: &'static str, object: impl Display, why: impl Display) -> NetlinkError {
    let cause = std::io::Error::new(std::io::ErrorKind::InvalidInput, why.to_string());
    NetlinkError { operation, object: object.to_string(), cause: Cause::Io(cause) }
}

#[cfg(test)]
mod tests;
