//! Locks of interfaces against other emulations.

use std::os::unix::net::UnixListener;

use landspeed_netlink::Link;
use landspeed_sys::rendezvous::{self, Peer};

use crate::error::EmulateError;

/// An interface of this network namespace on which no other emulation of root or of the own user begins until this is
/// dropped or the process ends.
#[derive(Debug)]
pub struct InterfaceLock {
    interface: String,
    /// Other users that hold a name of such a lock.
    others: Vec<Peer>,
    _listener: UnixListener,
}

impl InterfaceLock {
    /// Locks an interface. Names that other users hold do not count: everybody could take one, and only a privileged
    /// process can emulate.
    pub(crate) fn take(link: &Link) -> Result<Self, EmulateError> {
        let prefix = format!("landspeed-emulate-{}-", link.index);
        // Of two that begin at the same time at least one sees the other.
        let lock = || {
            let listener = rendezvous::listen(&prefix)?;
            let holders = rendezvous::listeners(&prefix, &listener)?;
            Ok((listener, holders))
        };
        let (listener, holders) = lock().map_err(EmulateError::system(format!("lock {}", link.name)))?;
        let (trusted, others): (Vec<Peer>, Vec<Peer>) = holders.into_iter().partition(|peer| peer.is_trusted());
        match trusted.first() {
            None => Ok(Self { interface: link.name.clone(), others, _listener: listener }),
            Some(holder) => Err(EmulateError::interface(
                &link.name,
                format!("process {} of {} emulates on it", holder.pid, holder.user()),
                "End that one, or use other interfaces.",
            )),
        }
    }

    /// Returns a line for each other user that claims to emulate on the interface, to no effect.
    pub fn ignored_claims(&self) -> impl Iterator<Item = String> {
        self.others.iter().map(|holder| {
            format!(
                "process {} of {} claims to emulate on {}, which is ignored",
                holder.pid,
                holder.user(),
                self.interface
            )
        })
    }
}
