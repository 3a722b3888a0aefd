//! Which core a guest runs on, agreed with every other lab on this host.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use landspeed_sys::thread;

/// A core that no other lab of this network namespace uses, for as long as this value lives.
///
/// The claim is the name of a socket that is in no file system (`unix(7)`, abstract): it needs no privilege, is seen by
/// every user, and goes with the process, however that ends.
#[derive(Debug)]
pub struct Core {
    number: u32,
    _claim: UnixListener,
}

impl Core {
    /// The last free core of those the calling thread may use; none when all are taken, or cannot be claimed.
    pub fn claim() -> Option<Self> {
        thread::allowed_cores().into_iter().rev().find_map(|number| {
            let name = SocketAddr::from_abstract_name(format!("landspeed-lab-core-{number}")).ok()?;
            Some(Self { number, _claim: UnixListener::bind_addr(&name).ok()? })
        })
    }

    /// Lets the calling thread, and the guests it starts, run on this core only. The two processes of a guest take turns:
    /// on two cores each waits for the other to wake up, which was measured to take half as long again.
    pub fn keep_to(&self) {
        // Where that is not allowed it only takes longer.
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
        // None are left only where other labs run at this moment.
        if let Some(core) = claims.pop() {
            let number = core.number;
            drop(core);
            let again: Vec<_> = std::iter::from_fn(Core::claim).collect();
            assert!(again.iter().any(|core| core.number == number));
        }
    }
}
