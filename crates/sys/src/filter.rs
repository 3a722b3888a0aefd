//! Classic BPF programs for packet sockets.

/// A classic BPF instruction: the kernel's `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// Opcode: class, size and mode, or operation.
    pub code: u16,
    /// Instructions to skip if a comparison is true.
    pub jt: u8,
    /// Instructions to skip if a comparison is false.
    pub jf: u8,
    /// Constant operand, such as an offset or a value to compare.
    pub k: u32,
}

/// `BPF_RET | BPF_K`: accepts this many bytes of the packet; 0 rejects it.
const RETURN: u16 = 0x06;

impl Instruction {
    /// Returns the instruction that ends a program: accept this many bytes of the packet, or reject it with 0.
    pub const fn pass(bytes: u32) -> Self {
        Self { code: RETURN, jt: 0, jf: 0, k: bytes }
    }
}
