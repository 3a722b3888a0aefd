//! The system call in which a thread is blocked, from `/proc/PID/task/TID/syscall` (proc_pid_syscall(5)). Reading the
//! file needs the right to trace the process, which root has.

/// What a thread does or waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blocked {
    /// Nothing: it runs, or is ready to run.
    Runs,
    /// Data from this descriptor.
    Receives(u32),
    /// Space to write to this descriptor.
    Sends(u32),
    /// Any of several descriptors (poll, select, epoll).
    Polls,
    /// A time that the program chose (nanosleep).
    Sleeps,
    /// Something else: a lock, another process.
    Other,
}

impl Blocked {
    /// Parses the file's text; `None` if it has another form.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let call = match words.next()? {
            "running" => return Some(Self::Runs),
            number => number.parse::<libc::c_long>().ok()?,
        };
        let argument = |word: Option<&str>| u64::from_str_radix(word?.strip_prefix("0x")?, 16).ok();
        let first = argument(words.next()).unwrap_or(0);
        let second = argument(words.next()).unwrap_or(0);
        let descriptor = first as u32;
        Some(match call {
            libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_recvmmsg => {
                Self::Receives(descriptor)
            }
            libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg
            | libc::SYS_sendfile => Self::Sends(descriptor),
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Self::Sleeps,
            // Without descriptors these are a sleep.
            libc::SYS_pselect6 if first == 0 => Self::Sleeps,
            libc::SYS_ppoll if second == 0 => Self::Sleeps,
            libc::SYS_pselect6 | libc::SYS_ppoll | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Self::Polls,
            call => older(call, first, second),
        })
    }
}

/// Calls that only older architectures have.
#[cfg(target_arch = "x86_64")]
fn older(call: libc::c_long, first: u64, second: u64) -> Blocked {
    match call {
        libc::SYS_select if first == 0 => Blocked::Sleeps,
        libc::SYS_poll if second == 0 => Blocked::Sleeps,
        libc::SYS_select | libc::SYS_poll | libc::SYS_epoll_wait => Blocked::Polls,
        _ => Blocked::Other,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn older(_: libc::c_long, _: u64, _: u64) -> Blocked {
    Blocked::Other
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn calls_are_told_by_their_numbers_and_descriptors() {
        let of = |call: libc::c_long, arguments: &str| Blocked::parse(&format!("{call} {arguments} 0x7f 0x7e\n"));
        assert_eq!(Blocked::parse("running\n"), Some(Blocked::Runs));
        assert_eq!(of(libc::SYS_recvfrom, "0x1f 0x7fff"), Some(Blocked::Receives(31)));
        assert_eq!(of(libc::SYS_sendto, "0x3 0x7fff"), Some(Blocked::Sends(3)));
        assert_eq!(of(libc::SYS_clock_nanosleep, "0x1 0x0"), Some(Blocked::Sleeps));
        assert_eq!(of(libc::SYS_ppoll, "0x7fff 0x2"), Some(Blocked::Polls));
        assert_eq!(of(libc::SYS_ppoll, "0x0 0x0"), Some(Blocked::Sleeps));
        assert_eq!(of(libc::SYS_futex, "0x7fff 0x80"), Some(Blocked::Other));
        assert_eq!(Blocked::parse("-1 0x7ffd 0x0"), Some(Blocked::Other), "blocked outside a system call");
        assert_eq!(
            (Blocked::parse(""), Blocked::parse("walking"), Blocked::parse("0")),
            (None, None, Some(Blocked::Receives(0)))
        );
    }

    #[test]
    fn a_thread_in_recv_is_seen_with_its_descriptor() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (mut far, _) = listener.accept().expect("connected");
        let descriptor = far.as_raw_fd() as u32;
        let (sender, receiver) = std::sync::mpsc::channel();
        let reads = std::thread::spawn(move || {
            sender.send(std::fs::read_link("/proc/thread-self").expect("a thread")).expect("sent");
            far.read(&mut [0]).expect("the end")
        });
        let path = std::path::Path::new("/proc").join(receiver.recv().expect("sent")).join("syscall");
        let Ok(_) = std::fs::read_to_string(&path) else { return };
        while Blocked::parse(&std::fs::read_to_string(&path).expect("readable"))
            != Some(Blocked::Receives(descriptor))
        {
            std::thread::yield_now();
        }
        drop(near);
        assert_eq!(reads.join().expect("ended"), 0);
    }
}
