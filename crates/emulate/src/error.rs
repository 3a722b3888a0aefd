//! Errors of emulations.

use std::io;

use landspeed_netlink::NetlinkError;
use landspeed_netlink::ethtool::EthtoolError;
use landspeed_sys::ring::RingError;

/// Reason why an emulation cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// A system call failed.
    #[error("cannot {what}: {cause}")]
    System {
        /// Operation that failed.
        what: String,
        /// Error of the system call.
        cause: io::Error,
    },
    /// A netlink request failed.
    #[error("cannot set up the network: {0}")]
    Network(NetlinkError),
    /// An offload setting failed.
    #[error("cannot set up the network: {0}")]
    Offload(EthtoolError),
    /// A packet ring could not be opened.
    #[error("cannot read frames of {interface}: {cause}")]
    Ring {
        /// Name of the interface.
        interface: String,
        /// Error of the packet socket.
        cause: RingError,
    },
    /// The interface cannot be used.
    #[error("cannot emulate on {interface}: {why}\n{advice}")]
    Interface {
        /// Name of the interface.
        interface: String,
        /// Reason why it cannot be used.
        why: String,
        /// Advice, beginning with a verb.
        advice: String,
    },
    /// The frames of the path do not fit into memory.
    #[error("not enough memory for the path: {arithmetic}\n{advice}")]
    Memory {
        /// Memory needed (rate × delay, plus queues) and memory available.
        arithmetic: String,
        /// Advice, beginning with a verb.
        advice: String,
    },
    /// The kernel datapath cannot express a key of the path file.
    #[error(
        "the kernel datapath cannot emulate {key} ({direction}): {why}\n{advice}, or use the userspace datapath: leave out --datapath kernel."
    )]
    NotExpressible {
        /// The key in the path file.
        key: String,
        /// `forward` or `reverse`.
        direction: &'static str,
        /// Reason why it cannot be expressed.
        why: String,
        /// Advice, beginning with a verb.
        advice: String,
    },
    /// The kernel lacks a part of its traffic control (`tc`).
    #[error(
        "this kernel has no {part}: {cause}\nLoad it ({module}), or use the userspace datapath: leave out --datapath kernel."
    )]
    MissingKernelFeature {
        /// Missing part, such as a queueing discipline.
        part: String,
        /// Command that loads it, and its kernel configuration option.
        module: String,
        /// Error of the netlink request.
        cause: NetlinkError,
    },
    /// A privilege is missing.
    #[error("cannot {what}: {cause}\n{advice}")]
    Privilege {
        /// Operation that needs the privilege.
        what: String,
        /// Error of the system call.
        cause: io::Error,
        /// Advice, beginning with a verb.
        advice: String,
    },
}

// The message includes the cause, so no source is set: it would be printed twice.
impl From<NetlinkError> for EmulateError {
    fn from(error: NetlinkError) -> Self {
        Self::Network(error)
    }
}

impl From<EthtoolError> for EmulateError {
    fn from(error: EthtoolError) -> Self {
        Self::Offload(error)
    }
}

impl EmulateError {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |cause| Self::System { what, cause }
    }

    pub(crate) fn interface(name: &str, why: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::Interface { interface: name.to_owned(), why: why.into(), advice: advice.into() }
    }
}
