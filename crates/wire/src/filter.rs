//! Compiler for filter expressions in the language of `pcap-filter(7)`, to classic BPF for a packet socket.
//!
//! It supports a subset of the language: protocols, hosts, networks, ports, VLAN tags, direction, and `and`,
//! `or`, `not` and parentheses. A compiled program gives the same verdicts as tcpdump's; anything else is
//! refused: an unknown expression ([`FilterError::Unknown`]) may be one that tcpdump compiles.
//!
//! ```text
//! text ─► parse (expression) ─► lower (graph of tests) ─► graph (skip tests with known results) ─► emit (BPF)
//! ```

mod emit;
mod graph;
mod lower;
mod packet;
mod parse;
mod verify;

use crate::LinkType;
pub use packet::PacketFilter;
pub use verify::{MAX_INSTRUCTIONS, ProgramError, verify};

/// A classic BPF instruction, with the fields of the kernel's `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Operation code.
    pub code: u16,
    /// Number of instructions to skip if a comparison is true.
    pub jt: u8,
    /// Number of instructions to skip if a comparison is false.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// Classic BPF operations that the compiler emits (`linux/bpf_common.h`).
pub mod op {
    /// `A = 32 bits at k`.
    pub const LOAD_WORD: u16 = 0x20;
    /// `A = 16 bits at k`.
    pub const LOAD_HALF: u16 = 0x28;
    /// `A = 8 bits at k`.
    pub const LOAD_BYTE: u16 = 0x30;
    /// Modifier of a load: reads at `X + k` instead of `k`.
    pub const INDIRECT: u16 = 0x20;
    /// `X = 4 * (byte at k & 0xf)`: the length of an IPv4 header.
    pub const LOAD_HEADER_LENGTH: u16 = 0xb1;
    /// `A &= k`.
    pub const AND: u16 = 0x54;
    /// Skips `k` instructions.
    pub const JUMP: u16 = 0x05;
    /// Compares `A == k`.
    pub const IF_EQUAL: u16 = 0x15;
    /// Compares `A > k`.
    pub const IF_ABOVE: u16 = 0x25;
    /// Compares `A >= k`.
    pub const IF_AT_LEAST: u16 = 0x35;
    /// Compares `A & k != 0`.
    pub const IF_ANY_BIT: u16 = 0x45;
    /// Accepts `k` bytes of the packet; 0 rejects it.
    pub const RETURN: u16 = 0x06;
}

/// Offsets from here on load packet metadata of the kernel instead of packet bytes (`SKF_AD_OFF`).
pub const ANCILLARY: u32 = 0xffff_f000;
/// Ancillary offset of the packet type (`SKF_AD_PKTTYPE`).
pub const PACKET_TYPE: u32 = ANCILLARY + 4;
/// Packet type of packets sent by this host (`PACKET_OUTGOING`).
pub const OUTGOING: u32 = 4;
/// Ancillary offset of the VLAN tag that the kernel removed from the frame (`SKF_AD_VLAN_TAG`).
const VLAN_TAG: u32 = ANCILLARY + 44;
/// Ancillary offset of the flag that a VLAN tag was removed (`SKF_AD_VLAN_TAG_PRESENT`).
const VLAN_TAG_PRESENT: u32 = ANCILLARY + 48;

impl Instruction {
    /// A return instruction that accepts `bytes` bytes of the packet; 0 rejects it.
    pub const fn pass(bytes: u32) -> Self {
        Self { code: op::RETURN, jt: 0, jf: 0, k: bytes }
    }
}

/// Reason why an expression was not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Not in the subset; tcpdump may support it.
    #[error("column {column}: `{found}` where {expected} is expected")]
    Unknown {
        /// Column, from 1, in characters.
        column: usize,
        /// Text found there.
        found: String,
        /// Description of what the subset allows there.
        expected: &'static str,
    },
    /// Invalid in any compiler.
    #[error("column {column}: {why}")]
    Invalid {
        /// Column, from 1, in characters.
        column: usize,
        /// Description of the error.
        why: String,
    },
    /// The expression matches no packet.
    #[error("expression rejects all packets")]
    RejectsAll,
    /// The program would have this many instructions, too many for the kernel.
    #[error("it needs {0} instructions; the kernel takes at most {MAX_INSTRUCTIONS}")]
    TooLong(usize),
}

/// Compiles an expression for Ethernet or raw IP frames; accepted packets are truncated to `snap_bytes`. Names
/// are not resolved: addresses and ports must be numeric. The empty expression accepts everything.
pub fn compile(text: &str, link: LinkType, snap_bytes: u32) -> Result<Vec<Instruction>, FilterError> {
    let Some(expression) = parse::parse(text, link)? else {
        return Ok(vec![Instruction::pass(snap_bytes)]);
    };
    let mut graph = graph::Graph::default();
    let root = lower::lower(&expression, link, &mut graph);
    let root = graph.simplify(root);
    if root == graph::REJECT {
        return Err(FilterError::RejectsAll);
    }
    let program = emit::emit(&graph, root, snap_bytes);
    if program.len() > MAX_INSTRUCTIONS {
        return Err(FilterError::TooLong(program.len()));
    }
    debug_assert_eq!(verify(&program), Ok(()));
    Ok(program)
}
