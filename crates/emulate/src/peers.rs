//! Checks of which peers' traffic may take a path on an interface of this host: never that of management hosts.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::sockets::{ESTABLISHED, Socket, parse_address, sockets};

/// Maximum number of parent processes searched for an SSH session.
const MAX_PARENTS: usize = 64;
/// TCP port of sshd.
const SSH_PORT: u16 = 22;
/// Hosts that must stay directly reachable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Management {
    /// Remote hosts with an SSH session on this host.
    pub sessions: Vec<IpAddr>,
    /// Next hops of default routes.
    pub gateways: Vec<IpAddr>,
}

impl Management {
    /// Reads both from /proc. `ssh_connection` is the value of `SSH_CONNECTION`; sudo removes that variable, so the
    /// parents' environments are searched too.
    pub(crate) fn read(ssh_connection: Option<&str>) -> Self {
        let mut sessions: Vec<IpAddr> = ssh_connection.and_then(client_of).into_iter().collect();
        sessions.extend(sessions_of_parents());
        let of_sshd = |socket: &Socket| socket.state == ESTABLISHED && socket.local_port == SSH_PORT;
        sessions.extend(sockets("tcp").into_iter().filter(of_sshd).map(|socket| socket.remote));
        let mut gateways = ipv4_gateways(&read("/proc/thread-self/net/route"));
        gateways.extend(ipv6_gateways(&read("/proc/thread-self/net/ipv6_route")));
        for list in [&mut sessions, &mut gateways] {
            list.sort_unstable();
            list.dedup();
        }
        Self { sessions, gateways }
    }

    /// The reason why packets of `peer` must not take the path, and advice; `None` if they may.
    pub(crate) fn refusal_reason(&self, peer: &IpNet) -> Option<(String, String)> {
        let covered = |list: &[IpAddr]| list.iter().find(|address| peer.contains(*address)).copied();
        let narrower = || "Name the hosts to emulate a path to: --peer ADDRESS,ADDRESS.".to_owned();
        if peer.prefix_len() == 0 {
            return Some((format!("the peer {peer} is everybody"), narrower()));
        }
        let address = peer.network();
        if address.is_multicast() || address.is_loopback() || address.is_unspecified() {
            return Some((format!("the peer {peer} is not another host"), narrower()));
        }
        if let Some(client) = covered(&self.sessions) {
            return Some((format!("the peer {peer} covers {client}, which has an SSH session here"), narrower()));
        }
        covered(&self.gateways)
            .map(|gateway| (format!("the peer {peer} covers {gateway}, the default gateway"), narrower()))
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The client address in `SSH_CONNECTION`, without its zone.
fn client_of(text: &str) -> Option<IpAddr> {
    let word = text.split_whitespace().next()?;
    word.split('%').next()?.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

fn sessions_of_parents() -> Vec<IpAddr> {
    let mut found = Vec::new();
    let mut process = "self".to_owned();
    for _ in 0..MAX_PARENTS {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        let variable = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"SSH_CONNECTION="));
        found.extend(variable.and_then(|value| client_of(&String::from_utf8_lossy(value))));
        let status = read(&format!("/proc/{process}/status"));
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).map(str::trim);
        match parent {
            Some(parent) if parent != "0" => parent.clone_into(&mut process),
            _ => break,
        }
    }
    found
}

/// Parses /proc/net/route: destination, gateway and mask as in [`parse_address`] (proc_pid_net(5)).
fn ipv4_gateways(table: &str) -> Vec<IpAddr> {
    let gateway = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "00000000", gateway, _, _, _, _, "00000000", ..] => parse_address(gateway),
            _ => None,
        }
    };
    table.lines().skip(1).filter_map(gateway).filter(|address| !address.is_unspecified()).collect()
}

/// Parses /proc/net/ipv6_route: destination, its prefix length, source, its prefix length, next hop
/// (Documentation/networking/ipv6.rst).
fn ipv6_gateways(table: &str) -> Vec<IpAddr> {
    let gateway = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [destination, "00", _, _, gateway, ..] if destination.bytes().all(|digit| digit == b'0') => {
                u128::from_str_radix(gateway, 16).ok().map(|bits| IpAddr::from(bits.to_be_bytes()))
            }
            _ => None,
        }
    };
    table.lines().filter_map(gateway).filter(|address| !address.is_unspecified()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_and_ssh_connections_are_parsed() {
        let route = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t00000000\t0100010A\t0003\t0\t0\t0\t\
                     00000000\t0\neth0\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\n";
        assert_eq!(ipv4_gateways(route), [IpAddr::from([10, 1, 0, 1])]);
        let route = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 \
                     00000400 1 0 3 eth0\n20010db8000000000000000000000000 40 0 00 00000000000000000000000000000000 0 1 0 1 eth0\n";
        assert_eq!(ipv6_gateways(route), ["fe80::1".parse::<IpAddr>().expect("an address")]);
        assert_eq!(client_of("fe80::9%eth0 50000 fe80::1%eth0 22"), "fe80::9".parse().ok());
    }

    #[test]
    fn peers_that_cover_management_hosts_are_refused() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let management = Management {
            sessions: vec![address("10.0.0.9")],
            gateways: vec![address("10.0.0.1"), address("fe80::1")],
        };
        let why = |peer: &str| management.refusal_reason(&peer.parse().expect("a network")).map(|(why, _)| why);
        assert_eq!(why("10.0.0.2/32"), None);
        assert_eq!(why("2001:db8::/32"), None);
        let session = why("10.0.0.8/29");
        assert_eq!(session.as_deref(), Some("the peer 10.0.0.8/29 covers 10.0.0.9, which has an SSH session here"));
        let gateway = why("10.0.0.0/30");
        assert_eq!(gateway.as_deref(), Some("the peer 10.0.0.0/30 covers 10.0.0.1, the default gateway"));
        assert_eq!(why("fe80::/10").as_deref(), Some("the peer fe80::/10 covers fe80::1, the default gateway"));
        assert_eq!(why("0.0.0.0/0").as_deref(), Some("the peer 0.0.0.0/0 is everybody"));
        assert_eq!(why("224.0.0.0/4").as_deref(), Some("the peer 224.0.0.0/4 is not another host"));
    }
}
