//! Programs of classic BPF, as a packet socket takes them.

/// One instruction: the kernel's `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
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

/// `BPF_RET | BPF_K`: the packet is cut to so many bytes; 0 rejects it.
const RETURN: u16 = 0x06;

impl Instruction {
    /// Ends a program: the packet passes, cut to this length, or for 0 is rejected.
    pub const fn pass(bytes: u32) -> Self {
        Self { code: RETURN, jt: 0, jf: 0, k: bytes }
    }
}
