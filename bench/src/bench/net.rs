//! Port and drop counters of the kernel, read in the same way for every tool.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use anyhow::{Context, Result, bail};

/// Returns a port that is free for TCP and UDP on loopback, as is the next one (nuttcp needs two).
pub fn free_port() -> Result<u16> {
    for _ in 0..100 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot bind a port on loopback")?;
        let port = listener.local_addr()?.port();
        let next = port.saturating_add(1);
        let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
            && TcpListener::bind((Ipv4Addr::LOCALHOST, next)).is_ok()
            && UdpSocket::bind((Ipv4Addr::LOCALHOST, next)).is_ok();
        if free && next > port {
            return Ok(port);
        }
    }
    bail!("no two neighbouring free ports on loopback")
}

/// Whether a socket listens on TCP `port` in the network namespace of this thread. Read from /proc: a test connection
/// would use up a server that accepts only one client.
pub fn is_listening(port: u16) -> bool {
    has_port("tcp", port, Some("0A"))
}

/// Whether a UDP socket is bound to `port`.
pub fn is_bound(port: u16) -> bool {
    has_port("udp", port, None)
}

fn has_port(table: &str, port: u16, state: Option<&str>) -> bool {
    ["", "6"].iter().any(|family| {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{table}{family}")).unwrap_or_default();
        lists_port(&text, port, state)
    })
}

/// Whether `table` of `/proc/net/tcp` has a socket that listens on `port`.
pub fn lists_listener(table: &str, port: u16) -> bool {
    lists_port(table, port, Some("0A"))
}

/// Rows are `sl local_address rem_address st …` with addresses as `HEX:PORT`.
fn lists_port(table: &str, port: u16, state: Option<&str>) -> bool {
    let wanted = format!(":{port:04X}");
    table.lines().skip(1).any(|row| {
        let mut fields = row.split_whitespace().skip(1);
        let local = fields.next().is_some_and(|local| local.ends_with(&wanted));
        local && state.is_none_or(|state| fields.nth(1) == Some(state))
    })
}

/// Returns the datagrams that the kernel has dropped on this host: full send or receive buffers, and full
/// backlogs.
pub fn datagrams_dropped() -> Result<u64> {
    let read = |path: &str| std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"));
    Ok(udp_buffer_errors(&read("/proc/net/snmp")?) + softnet_drops(&read("/proc/net/softnet_stat")?))
}

/// Sum of `RcvbufErrors`, `SndbufErrors` and `MemErrors` in the `Udp:` lines.
fn udp_buffer_errors(snmp: &str) -> u64 {
    let mut rows = snmp.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (Some(names), Some(values)) = (rows.next(), rows.next()) else { return 0 };
    names
        .split_whitespace()
        .zip(values.split_whitespace())
        .filter(|(name, _)| matches!(*name, "RcvbufErrors" | "SndbufErrors" | "MemErrors"))
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum()
}

/// Sum of the second column (hexadecimal) of all cores: packets dropped because the backlog was full.
fn softnet_drops(table: &str) -> u64 {
    table
        .lines()
        .filter_map(|row| row.split_whitespace().nth(1))
        .filter_map(|field| u64::from_str_radix(field, 16).ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_detected_without_connecting() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(is_listening(port));
        drop(listener);
        assert!(!is_listening(port));
    }

    #[test]
    fn rows_are_matched_by_local_port_and_state() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:1451 00000000:0000 0A 0:0\n   \
                     1: 0100007F:9C40 0100007F:1452 01 0:0\n";
        assert!(lists_port(table, 0x1451, Some("0A")));
        assert!(!lists_port(table, 0x9C40, Some("0A")));
        assert!(lists_port(table, 0x9C40, None));
        assert!(!lists_port(table, 0x1452, None));
    }

    #[test]
    fn kernel_drops_are_summed_over_their_counters() {
        let snmp = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors \
                    InCsumErrors IgnoredMulti MemErrors\nUdp: 100 1 7 99 7 2 0 0 1\nUdpLite: RcvbufErrors\nUdpLite: 50\n";
        assert_eq!(udp_buffer_errors(snmp), 10);
        assert_eq!(softnet_drops("00000001 0000000a 0 0\n00000002 00000001 0 0\n"), 11);
    }
}
