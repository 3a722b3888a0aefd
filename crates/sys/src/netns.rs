//! Network namespaces. A namespace belongs to a thread: code that enters one should do so in a separate thread
//! and let the thread end there. Creating and entering namespaces needs `CAP_SYS_ADMIN` (or a user namespace that
//! has it).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Returns the calling thread's network namespace, for entering it again or from another thread.
pub fn current() -> io::Result<OwnedFd> {
    File::open("/proc/thread-self/ns/net").map(OwnedFd::from)
}

/// Moves the calling thread into a namespace, given by a descriptor.
pub fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the borrow; setns touches no memory of ours.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Moves the calling thread into a new, empty network namespace. Its loopback is down: see [`bring_up`].
pub fn unshare() -> io::Result<()> {
    // SAFETY: CLONE_NEWNET changes the calling thread's namespace only, no memory and no descriptors.
    match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs `work` in a thread with a new network namespace, loopback up. The namespace is removed when the thread
/// has ended and every socket created in it is closed.
pub fn run_in_new_namespace<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            unshare()?;
            bring_up("lo")?;
            Ok(work())
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Brings up an interface of the calling thread's namespace.
pub fn bring_up(interface: &str) -> io::Result<()> {
    let socket = crate::interface::control_socket()?;
    let mut request = crate::interface::interface_request(interface)?;
    // SAFETY: `request` is a whole ifreq with a terminated name; SIOCGIFFLAGS writes its flags member only.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as libc::Ioctl, &raw mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just filled the flags member.
    unsafe { request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short };
    // SAFETY: `request` is a whole ifreq with a terminated name; SIOCSIFFLAGS only reads it.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &raw mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use landspeed_netlink::{LinkId, Netlink};

    #[test]
    fn a_new_namespace_has_its_own_loopback() {
        let here = current().expect("the namespace we are in");
        let outcome = run_in_new_namespace(|| {
            let link = Netlink::open().and_then(|mut n| n.link(LinkId::Name("lo"))).expect("lo");
            enter(here.as_fd()).expect("back home");
            (link.flags, link.stats)
        });
        match outcome {
            Ok((flags, stats)) => {
                assert_ne!(flags & libc::IFF_UP as u32, 0, "lo is up");
                assert!(stats.iter().all(|&n| n == 0), "nothing has used it yet: {stats:?}");
            }
            Err(why) => landspeed_testkit::skip!("no privilege for a network namespace: {why}"),
        }
    }

    #[test]
    fn entering_a_regular_file_is_an_error() {
        assert!(enter(File::open("/proc/self/status").expect("a file").as_fd()).is_err());
    }
}
