//! Errors that prevent a capture.

use std::io;
use std::path::PathBuf;

use landspeed_sys::ring::RingError;

/// Reason why a capture cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// The interface does not exist.
    #[error("there is no interface {name}{}", near.as_ref().map_or_else(String::new, |near| format!("; {near}")))]
    NoInterface {
        /// Name as given by the user.
        name: String,
        /// A similar name, or the names of existing interfaces.
        near: Option<String>,
    },
    /// The interface was given twice.
    #[error("{0} is named twice: each interface is tapped once")]
    DuplicateInterface(String),
    /// The interface is down.
    #[error("{0} is down: nothing passes it; `ip link set {0} up` and try again")]
    InterfaceDown(String),
    /// The link type of the interface is not supported.
    #[error("{name}: frames of its kind (ARPHRD {kind}) are not known here; Ethernet, loopback and IP tunnels are")]
    Framing {
        /// Name of the interface.
        name: String,
        /// Hardware type (`ARPHRD_…`).
        kind: u16,
    },
    /// The filter cannot be compiled.
    #[error("cannot compile filter `{text}`: {why}\n{advice}")]
    Filter {
        /// Filter expression as given.
        text: String,
        /// Error of the compiler.
        why: String,
        /// Advice, beginning with a verb.
        advice: &'static str,
    },
    /// The kernel denies captures (`CAP_NET_RAW` is missing).
    #[error(
        "cannot capture: the kernel refuses (needs CAP_NET_RAW); run it as root, or once, as root: setcap cap_net_raw+ep \
         {program}"
    )]
    Privilege {
        /// Path of this program, for the advice.
        program: String,
    },
    /// The kernel cannot provide a ring.
    #[error("cannot capture on {name}: {source}{}", advice(source))]
    Ring {
        /// Name of the interface.
        name: String,
        /// Error of the packet socket.
        source: RingError,
    },
    /// The interfaces cannot be listed.
    #[error("cannot see the interfaces: {0}")]
    Links(String),
    /// An output file cannot be written.
    #[error("cannot write {path}: {cause}")]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// Kernel events are not available.
    #[error("cannot take the kernel's events: {0}")]
    Events(String),
}

fn advice(error: &RingError) -> &'static str {
    match error.cause.kind() {
        io::ErrorKind::OutOfMemory => "; a smaller ring may do: --ring 4M",
        _ => "",
    }
}

impl TapError {
    /// Converts a ring error; a missing capability has its own variant.
    pub(crate) fn ring(name: &str, source: RingError) -> Self {
        if source.cause.kind() == io::ErrorKind::PermissionDenied {
            let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("landspeed"));
            return Self::Privilege { program: program.display().to_string() };
        }
        Self::Ring { name: name.to_owned(), source }
    }
}
