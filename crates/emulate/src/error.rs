//! What can go wrong.

use std::io;

use landspeed_netlink::NetlinkError;
use landspeed_netlink::ethtool::EthtoolError;
use landspeed_sys::ring::RingError;

/// Why an emulation cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The system does not let it.
    #[error("cannot {what}: {cause}")]
    System {
        /// What was being done.
        what: String,
        /// The system's answer.
        cause: io::Error,
    },
    /// The kernel refused a change of the network.
    #[error("cannot set up the network: {0}")]
    Network(NetlinkError),
    /// An interface refused a setting.
    #[error("cannot set up the network: {0}")]
    Offload(EthtoolError),
    /// No packet ring.
    #[error("cannot read frames of {interface}: {cause}")]
    Ring {
        /// The interface.
        interface: String,
        /// The kernel's answer.
        cause: RingError,
    },
    /// The interface cannot be used.
    #[error("cannot emulate on {interface}: {why}\n{advice}")]
    Interface {
        /// The interface.
        interface: String,
        /// Why.
        why: String,
        /// What to do, beginning with a verb.
        advice: String,
    },
    /// There is not enough memory for the frames of the path.
    #[error("not enough memory for the path: {arithmetic}\n{advice}")]
    Memory {
        /// Rate times delay, and what there is.
        arithmetic: String,
        /// What to do, beginning with a verb.
        advice: String,
    },
    /// The datapath cannot do what the path file asks for.
    #[error(
        "the kernel datapath cannot emulate {key} ({direction}): {why}\n{advice}, or use the userspace datapath: leave out --datapath kernel."
    )]
    Inexpressible {
        /// The key in the path file.
        key: String,
        /// `forward` or `reverse`.
        direction: &'static str,
        /// Why.
        why: String,
        /// What to do, beginning with a verb.
        advice: String,
    },
    /// The kernel lacks a part of its traffic control.
    #[error(
        "this kernel has no {part}: {cause}\nLoad it ({module}), or use the userspace datapath: leave out --datapath kernel."
    )]
    KernelLacks {
        /// What it lacks.
        part: String,
        /// The command that loads it, and the option of the kernel's configuration.
        module: String,
        /// The kernel's answer.
        cause: NetlinkError,
    },
    /// A privilege is missing.
    #[error("cannot {what}: {cause}\n{advice}")]
    Privilege {
        /// What was being done.
        what: String,
        /// The system's answer.
        cause: io::Error,
        /// What to do, beginning with a verb.
        advice: String,
    },
}

// The message has the cause in it: no source, which would be printed once more.
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
