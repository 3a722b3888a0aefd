//! Processes of one network namespace find each other by abstract sockets (unix(7)).
//!
//! An abstract name has no owner: any local user can bind it first. So each listener adds random bits to its prefix, so
//! that its name cannot be guessed; other processes find it in /proc/net/unix. The kernel reports which user listens.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::process::effective_uid;

/// Flags of a listening socket in /proc/net/unix: `__SO_ACCEPTCON`.
const LISTENING: &str = "00010000";
/// Maximum size of /etc/passwd that is searched for a name, bytes.
const MAX_PASSWD: u64 = 1 << 20;

/// Process and user at the other end of a socket, as the kernel saw them when it listened or connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    /// Process id; 0 if it is in another PID namespace.
    pub pid: u32,
    /// Effective user id, in this process's user namespace.
    pub uid: u32,
}

impl Peer {
    /// Reads the peer of a connected Unix socket (`SO_PEERCRED`).
    pub fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let mut raw = [0; 12];
        crate::socket::get_bytes(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut raw)?;
        let word = |at: usize| u32::from_ne_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
        Ok(Self { pid: word(0), uid: word(4) })
    }

    /// Whether the peer is root or the effective user of this process. All others are not trusted.
    pub fn is_trusted(self) -> bool {
        self.uid == 0 || self.uid == effective_uid()
    }

    /// Returns the user's name and id: `alice (uid 1000)`.
    pub fn user(self) -> String {
        match user_name(self.uid) {
            Some(name) => format!("{name} (uid {})", self.uid),
            None => format!("uid {}", self.uid),
        }
    }
}

/// Returns the name of a user in /etc/passwd.
fn user_name(uid: u32) -> Option<String> {
    let file = BufReader::new(File::open("/etc/passwd").ok()?.take(MAX_PASSWD));
    file.lines().map_while(Result::ok).find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// Listens at a new name that begins with `prefix` in the calling thread's network namespace; accepting does not block.
pub fn listen(prefix: &str) -> io::Result<UnixListener> {
    let unique = u64::from_ne_bytes(crate::random::bytes()?);
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("{prefix}{unique:016x}"))?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Returns the names that begin with `prefix` at which a process of the calling thread's network namespace listens.
pub fn names(prefix: &str) -> io::Result<Vec<String>> {
    let table = BufReader::new(File::open("/proc/thread-self/net/unix")?);
    let mut found = BTreeSet::new();
    for line in table.split(b'\n') {
        // Names of other programs need not be text.
        if let Some(name) = std::str::from_utf8(&line?).ok().and_then(|line| name_in(line, prefix)) {
            found.insert(name.to_owned());
        }
    }
    Ok(found.into_iter().collect())
}

/// Returns the name in a line of /proc/net/unix (`Num RefCount Protocol Flags Type St Inode @NAME`), if the socket listens and
/// its name begins with `prefix`.
fn name_in<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    let mut fields = line.split_ascii_whitespace();
    let name = line.split_once(" @")?.1;
    (fields.nth(3)? == LISTENING && name.starts_with(prefix)).then_some(name)
}

/// Connects to a listener; neither this nor the stream blocks. `WouldBlock` if too many others wait for it.
pub fn connect(name: &str) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(format!("\0{name}"))?)?;
    Ok(UnixStream::from(std::os::fd::OwnedFd::from(socket)))
}

/// Returns the processes that listen at names with this prefix, except at `own`.
pub fn listeners(prefix: &str, own: &UnixListener) -> io::Result<Vec<Peer>> {
    let own = own.local_addr()?;
    let mut peers = Vec::new();
    for name in names(prefix)? {
        if own.as_abstract_name() == Some(name.as_bytes()) {
            continue;
        }
        // It may have ended since.
        if let Ok(peer) = connect(&name).and_then(|stream| Peer::of(stream.as_fd())) {
            peers.push(peer);
        }
    }
    peers.sort_unstable();
    peers.dedup();
    Ok(peers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_found_by_prefix_with_their_user() {
        let prefix = format!("landspeed-test-rendezvous-{}-", std::process::id());
        let first = listen(&prefix).expect("a name");
        assert_eq!(listeners(&prefix, &first).expect("a table"), []);
        let second = listen(&prefix).expect("another name");
        let own = Peer { pid: std::process::id(), uid: effective_uid() };
        assert_eq!(listeners(&prefix, &first).expect("a table"), [own]);
        assert!(own.is_trusted() && own.user().contains(&format!("uid {}", own.uid)));
        assert_eq!(names(&prefix).expect("a table").len(), 2);
        drop(second);
        assert_eq!(names(&prefix).expect("a table").len(), 1);
    }

    #[test]
    fn connecting_never_blocks() {
        let prefix = format!("landspeed-test-backlog-{}-", std::process::id());
        let listener = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
        listener.bind(&SockAddr::unix(format!("\0{prefix}")).expect("a name")).expect("bound");
        listener.listen(0).expect("listening");
        let mut waiting = Vec::new();
        let refused = loop {
            match connect(&prefix) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn only_listening_sockets_with_the_prefix_count() {
        let line = "ffff9c: 00000002 00000000 00010000 0001 01 21735 @landspeed-x-1f";
        assert_eq!(name_in(line, "landspeed-x-"), Some("landspeed-x-1f"));
        assert_eq!(name_in(line, "landspeed-y-"), None);
        assert_eq!(name_in(&line.replace("00010000", "00000000"), "landspeed-x-"), None);
        assert_eq!(
            name_in("ffff9c: 00000002 00000000 00010000 0001 01 21735 /run/landspeed-x-1f", "landspeed"),
            None
        );
        assert_eq!(name_in("ffff9c: 00000002 00000000 00010000 0001 01 21735", ""), None);
    }
}
