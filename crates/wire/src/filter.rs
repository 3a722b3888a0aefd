//! Filter expressions in the language of `pcap-filter(7)`, compiled to classic BPF for a packet socket.
//!
//! The compiler knows a subset of the language: protocols, hosts, networks, ports, VLAN tags, direction, and `and`, `or`,
//! `not` and parentheses over them. It returns the program that decides as tcpdump's does, or it refuses: an expression
//! that it does not know ([`Refusal::Unknown`]) may still be one that tcpdump compiles.
//!
//! ```text
//! text ─► parse (expression) ─► lower (graph of tests) ─► graph (tests whose result is known are skipped) ─► emit (BPF)
//! ```

mod emit;
mod graph;
mod lower;
mod parse;
mod verify;

use crate::LinkType;
pub use verify::{MOST_INSTRUCTIONS, ProgramError, verify};

/// One instruction of classic BPF, with the fields of the kernel's `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions skipped if a comparison holds.
    pub jt: u8,
    /// Instructions skipped if it does not.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// Operations of classic BPF that the compiler emits (`linux/bpf_common.h`).
pub mod op {
    /// `A = 32 bits at k`.
    pub const LOAD_WORD: u16 = 0x20;
    /// `A = 16 bits at k`.
    pub const LOAD_HALF: u16 = 0x28;
    /// `A = 8 bits at k`.
    pub const LOAD_BYTE: u16 = 0x30;
    /// Added to a load: at `X + k` instead of at `k`.
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
    /// The packet is cut to `k` bytes; 0 rejects it.
    pub const RETURN: u16 = 0x06;
}

/// Loads from here on give what the kernel knows of a packet, not its bytes (`SKF_AD_OFF`).
pub const ANCILLARY: u32 = 0xffff_f000;
/// Offset from [`ANCILLARY`] of the packet type (`SKF_AD_PKTTYPE`).
pub const PACKET_TYPE: u32 = ANCILLARY + 4;
/// The packet type of what this host sends (`PACKET_OUTGOING`).
pub const OUTGOING: u32 = 4;
/// The VLAN tag that was taken out of the frame (`SKF_AD_VLAN_TAG`).
const VLAN_TAG: u32 = ANCILLARY + 44;
/// Whether a VLAN tag was taken out of the frame (`SKF_AD_VLAN_TAG_PRESENT`).
const VLAN_TAG_PRESENT: u32 = ANCILLARY + 48;

impl Instruction {
    /// Ends a program: the packet passes, cut to this length, or for 0 is rejected.
    pub const fn pass(bytes: u32) -> Self {
        Self { code: op::RETURN, jt: 0, jf: 0, k: bytes }
    }
}

/// Why there is no program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Outside the subset; tcpdump may know it.
    #[error("column {column}: `{found}` where {expected} is expected")]
    Unknown {
        /// From 1, in characters.
        column: usize,
        /// The text there.
        found: String,
        /// What the subset has in this place.
        expected: &'static str,
    },
    /// Wrong in any compiler.
    #[error("column {column}: {why}")]
    Invalid {
        /// From 1, in characters.
        column: usize,
        /// What is wrong.
        why: String,
    },
    /// No packet matches.
    #[error("expression rejects all packets")]
    RejectsAll,
    /// It does not fit.
    #[error("it needs {0} instructions; the kernel takes at most {MOST_INSTRUCTIONS}")]
    TooLong(usize),
}

/// Compiles an expression for Ethernet or raw IP frames; packets that pass are cut to `snap_bytes`. Nothing is looked up:
/// addresses and ports are numbers. The empty expression passes everything.
pub fn compile(text: &str, link: LinkType, snap_bytes: u32) -> Result<Vec<Instruction>, Refusal> {
    let Some(expression) = parse::parse(text, link)? else {
        return Ok(vec![Instruction::pass(snap_bytes)]);
    };
    let mut graph = graph::Graph::default();
    let root = lower::lower(&expression, link, &mut graph);
    let root = graph.simplify(root);
    if root == graph::REJECT {
        return Err(Refusal::RejectsAll);
    }
    let program = emit::emit(&graph, root, snap_bytes);
    if program.len() > MOST_INSTRUCTIONS {
        return Err(Refusal::TooLong(program.len()));
    }
    debug_assert_eq!(verify(&program), Ok(()));
    Ok(program)
}
