//! Filters that the kernel applies during a dump of sockets (`INET_DIAG_REQ_BYTECODE`).

use std::net::IpAddr;

// linux/inet_diag.h, INET_DIAG_BC_*
const JMP: u8 = 1;
const S_GE: u8 = 2;
const S_LE: u8 = 3;
const D_GE: u8 = 4;
const D_LE: u8 = 5;
const D_COND: u8 = 8;
/// Size of `struct inet_diag_bc_op`, bytes; a jump this far beyond the end rejects the socket.
const OPERATION_BYTES: u16 = 4;

/// Filter of a socket dump; the default matches all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketFilter {
    /// Local or remote port.
    pub port: Option<u16>,
    /// Remote address and prefix length, bits.
    pub peer: Option<(IpAddr, u8)>,
}

impl SocketFilter {
    /// Whether sockets of an address family can match. IPv6 sockets carry IPv4 as well.
    pub(super) fn can_match(&self, family: i32) -> bool {
        family != libc::AF_INET || !self.peer.is_some_and(|(ip, _)| ip.to_canonical().is_ipv6())
    }

    /// The filter as bytecode; empty if every socket matches.
    pub(super) fn bytecode(&self) -> Vec<u8> {
        let mut program = Program::default();
        if let Some(port) = self.port {
            // (sport ≥ P and sport ≤ P) or (dport ≥ P and dport ≤ P). INET_DIAG_BC_S_EQ needs 5.12.
            program.port(S_GE, port, Some(20));
            program.port(S_LE, port, Some(12));
            program.jump(20);
            program.port(D_GE, port, None);
            program.port(D_LE, port, None);
        }
        if let Some((ip, bits)) = self.peer {
            program.peer(ip.to_canonical(), bits);
        }
        program.finish()
    }
}

/// Bytecode; `rejects` are the positions of jumps that reject a socket.
#[derive(Default)]
struct Program {
    bytes: Vec<u8>,
    rejects: Vec<usize>,
}

impl Program {
    /// `struct inet_diag_bc_op`: code, bytes to the next operation if the condition is true, bytes to jump
    /// otherwise (`None`: reject).
    fn operation(&mut self, code: u8, yes: u8, no: Option<u16>) {
        if no.is_none() {
            self.rejects.push(self.bytes.len());
        }
        self.bytes.extend([code, yes]);
        self.bytes.extend(no.unwrap_or(0).to_ne_bytes());
    }

    fn port(&mut self, code: u8, port: u16, no: Option<u16>) {
        self.operation(code, 8, no);
        self.operation(0, 0, Some(port));
    }

    fn jump(&mut self, bytes: u16) {
        self.operation(JMP, OPERATION_BYTES as u8, Some(bytes));
    }

    /// `struct inet_diag_hostcond`: family, prefix length, port (-1: any), address.
    fn peer(&mut self, ip: IpAddr, bits: u8) {
        let (family, octets) = match ip {
            IpAddr::V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
            IpAddr::V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
        };
        let bits = bits.min(octets.len() as u8 * 8);
        self.operation(D_COND, OPERATION_BYTES as u8 + 8 + octets.len() as u8, None);
        self.bytes.extend([family as u8, bits, 0, 0]);
        self.bytes.extend((-1_i32).to_ne_bytes());
        self.bytes.extend(octets);
    }

    fn finish(mut self) -> Vec<u8> {
        for at in self.rejects {
            let beyond = (self.bytes.len() - at) as u16 + OPERATION_BYTES;
            self.bytes[at + 2..at + 4].copy_from_slice(&beyond.to_ne_bytes());
        }
        self.bytes
    }
}
