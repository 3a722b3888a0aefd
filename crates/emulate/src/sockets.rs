//! Sockets of a network namespace, as listed in /proc/net.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_sys::clock::{monotonic_ns, sleep_until};
use landspeed_sys::netns;

use crate::program::Program;

/// TCP states (net/tcp_states.h).
pub(crate) const ESTABLISHED: u8 = 1;
const LISTEN: u8 = 10;
/// State of a UDP socket that is bound and not connected.
const UNCONNECTED: u8 = 7;
/// Poll interval while waiting for a listener, nanoseconds.
const POLL_NS: u64 = 5_000_000;

/// A TCP or UDP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Socket {
    pub local_port: u16,
    /// Remote address; unspecified if the socket is not connected.
    pub remote: IpAddr,
    /// State, numbered as TCP states for UDP too.
    pub state: u8,
}

/// Returns the `tcp` or `udp` sockets of both address families in the calling thread's network namespace.
pub(crate) fn sockets(protocol: &str) -> Vec<Socket> {
    let table = |name: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    [protocol.to_owned(), format!("{protocol}6")].iter().flat_map(|name| parse(&table(name))).collect()
}

/// Parses a table such as /proc/net/tcp6 (proc_pid_net(5)).
fn parse(table: &str) -> Vec<Socket> {
    let socket = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, remote, state) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Socket {
            local_port: local.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok())?,
            remote: remote.split(':').next().and_then(parse_address)?,
            state: u8::from_str_radix(state, 16).ok()?,
        })
    };
    table.lines().skip(1).filter_map(socket).collect()
}

/// Parses an address of /proc/net: 32-bit words in host byte order.
pub(crate) fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(text.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let address: [u8; 16] = words.as_flattened().try_into().ok()?;
            Some(IpAddr::from(Ipv6Addr::from(address)).to_canonical())
        }
        _ => None,
    }
}

/// Waits until `server` listens in `namespace`: for TCP on all of `ports`, or on any TCP or UDP port if `ports`
/// is empty. Returns early when the server has ended or `stop` is set, and after `timeout` in any case.
pub fn wait_for_listener(namespace: OwnedFd, ports: &[u16], server: &Program, timeout: Duration, stop: &AtomicBool) {
    let identity = server.identity();
    let until_ns = monotonic_ns() + timeout.as_nanos() as u64;
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            if netns::enter(namespace.as_fd()).is_err() {
                return;
            }
            while monotonic_ns() < until_ns
                && !stop.load(Ordering::Relaxed)
                && identity.is_alive()
                && !listens(&sockets("tcp"), &sockets("udp"), ports)
            {
                sleep_until(monotonic_ns() + POLL_NS);
            }
        });
        let _ = waiter.join();
    });
}

fn listens(tcp: &[Socket], udp: &[Socket], ports: &[u16]) -> bool {
    let mut listeners = tcp.iter().filter(|socket| socket.state == LISTEN);
    if ports.is_empty() {
        return listeners.next().is_some() || udp.iter().any(|socket| socket.state == UNCONNECTED);
    }
    let open: Vec<u16> = listeners.map(|socket| socket.local_port).collect();
    ports.iter().all(|port| open.contains(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_parsed_from_ipv4_and_ipv6_tables() {
        let tcp = "  sl  local_address rem_address   st tx_queue\n   0: 00000000:0016 00000000:0000 0A 0:0\n   \
                   1: 0200010A:0016 0500010A:C3E2 01 0:0\n";
        let expected = [
            Socket { local_port: 22, remote: Ipv4Addr::UNSPECIFIED.into(), state: LISTEN },
            Socket { local_port: 22, remote: IpAddr::from([10, 1, 0, 5]), state: ESTABLISHED },
        ];
        assert_eq!(parse(tcp), expected);
        let tcp6 = "  sl  local\n   0: B80D0120000000000000000001000000:0016 B80D0120000000000000000009000000:C3E2 01 0\n   1: \
                    0000000000000000FFFF00000200010A:0016 0000000000000000FFFF00000700010A:C3E2 01 0\n";
        let remotes: Vec<IpAddr> = parse(tcp6).iter().map(|socket| socket.remote).collect();
        let expected: Vec<IpAddr> =
            ["2001:db8::9", "10.1.0.7"].map(|text| text.parse().expect("an address")).to_vec();
        assert_eq!(remotes, expected);
    }

    #[test]
    fn wait_requires_a_listener_on_every_port() {
        let socket = |local_port, state| Socket { local_port, remote: Ipv4Addr::UNSPECIFIED.into(), state };
        let tcp = [socket(5210, LISTEN), socket(5201, ESTABLISHED)];
        assert!(listens(&tcp, &[], &[5210]) && !listens(&tcp, &[], &[5210, 5201]));
        assert!(listens(&tcp, &[], &[]) && !listens(&tcp[1..], &[], &[]));
        assert!(listens(&[], &[socket(9, UNCONNECTED)], &[]));
    }
}
