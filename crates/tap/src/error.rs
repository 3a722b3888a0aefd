//! Why there is no tap.

use std::io;
use std::path::PathBuf;

use landspeed_sys::ring::RingError;

/// Why a tap cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// No such interface.
    #[error("there is no interface {name}{}", near.as_ref().map_or_else(String::new, |near| format!("; {near}")))]
    NoInterface {
        /// As asked for.
        name: String,
        /// What may have been meant, or what there is.
        near: Option<String>,
    },
    /// Asked for twice.
    #[error("{0} is named twice: each interface is tapped once")]
    Twice(String),
    /// It carries nothing.
    #[error("{0} is down: nothing passes it; `ip link set {0} up` and try again")]
    Down(String),
    /// Its frames are of a kind that is not known here.
    #[error("{name}: frames of its kind (ARPHRD {kind}) are not known here; Ethernet, loopback and IP tunnels are")]
    Framing {
        /// The interface.
        name: String,
        /// `ARPHRD_…`.
        kind: u16,
    },
    /// The filter cannot be compiled.
    #[error("cannot compile filter `{text}`: {why}\n{advice}")]
    Filter {
        /// As given.
        text: String,
        /// What the compiler says.
        why: String,
        /// What to do, beginning with a verb.
        advice: &'static str,
    },
    /// Not allowed.
    #[error(
        "cannot capture: the kernel refuses (needs CAP_NET_RAW); run it as root, or once, as root: setcap cap_net_raw+ep \
         {program}"
    )]
    Privilege {
        /// Path of this program.
        program: String,
    },
    /// The kernel does not give a ring.
    #[error("cannot capture on {name}: {source}{}", advice(source))]
    Ring {
        /// The interface.
        name: String,
        /// What and why.
        source: RingError,
    },
    /// The interfaces cannot be asked for.
    #[error("cannot see the interfaces: {0}")]
    Links(String),
    /// A file that cannot be made.
    #[error("cannot write {path}: {cause}")]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// No kernel events.
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
    /// A ring's error on an interface; the missing capability has its own words.
    pub(crate) fn ring(name: &str, source: RingError) -> Self {
        if source.cause.kind() == io::ErrorKind::PermissionDenied {
            let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("landspeed"));
            return Self::Privilege { program: program.display().to_string() };
        }
        Self::Ring { name: name.to_owned(), source }
    }
}
