//! Selection of the core that a guest runs on, coordinated between all labs on this host.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use landspeed_sys::thread;

/// A core that no other lab of this network namespace uses, claimed until this value is dropped.
///
/// The claim is the name of an abstract socket (`unix(7)`): it needs no privilege, is visible to every user, and
/// disappears with the process, however that ends.
#[derive(Debug)]
pub struct Core {
    number: u32,
    _claim: UnixListener,
}

impl Core {
    /// Claims the last free core of those the calling thread may use; `None` if all are taken, or cannot be claimed.
    pub fn claim() -> Option<Self> {
        thread::allowed_cores().into_iter().rev().find_map(|number| {
            let name = SocketAddr::from_abstract_name(format!("landspeed-lab-core-{number}")).ok()?;
            Some(Self { number, _claim: UnixListener::bind_addr(&name).ok()? })
        })
    }

    /// Pins the calling thread, and the guests it starts, to this core. The two processes of a guest take turns: on
    /// two cores each waits for the other to wake up, which was measured to take half as long again.
    pub fn pin_thread(&self) {
        // If pinning is not permitted, the run only takes longer.
        let _ = thread::pin_to_core(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claimed_cores_are_distinct_and_free_after_drop() {
        let mut claims: Vec<_> = std::iter::from_fn(Core::claim).collect();
        let mut numbers: Vec<_> = claims.iter().map(|core| core.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), claims.len());
        assert!(claims.len() <= thread::allowed_cores().len());
        // All cores are taken only if other labs run at the same time.
        if let Some(core) = claims.pop() {
            let number = core.number;
            drop(core);
            let again: Vec<_> = std::iter::from_fn(Core::claim).collect();
            assert!(again.iter().any(|core| core.number == number));
        }
    }
}
