//! Verification of a program before it is attached: it terminates, does not leave its code or scratch memory,
//! and uses valid operations.

use super::{Instruction, op};

/// Maximum number of instructions in a program (`BPF_MAXINSNS`).
pub const MAX_INSTRUCTIONS: usize = 4096;
/// Size of scratch memory, 32-bit words (`BPF_MEMWORDS`).
const MEMORY_WORDS: u32 = 16;
/// Mask of the instruction class, and the class of jumps.
const CLASS: u16 = 0x07;
const CLASS_JUMP: u16 = 0x05;
/// Valid classic BPF operations (`linux/bpf_common.h`).
#[rustfmt::skip]
const OPERATIONS: &[u16] = &[
    // ld and ldx: immediate, packet length, packet bytes at k or X + k, IPv4 header length, scratch memory.
    0x00, 0x01, 0x80, 0x81, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0xb1, 0x60, 0x61,
    // st, stx.
    0x02, 0x03,
    // add, sub, mul, div, or, and, lsh, rsh, mod, xor by k and by X; neg.
    0x04, 0x14, 0x24, 0x34, 0x44, 0x54, 0x64, 0x74, 0x94, 0xa4,
    0x0c, 0x1c, 0x2c, 0x3c, 0x4c, 0x5c, 0x6c, 0x7c, 0x9c, 0xac, 0x84,
    // ja; jeq, jgt, jge, jset with k and with X.
    0x05, 0x15, 0x25, 0x35, 0x45, 0x1d, 0x2d, 0x3d, 0x4d,
    // ret k, ret A; tax, txa.
    0x06, 0x16, 0x07, 0x87,
];

/// Reason why a program is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// Empty, or longer than the kernel accepts.
    #[error("it has {0} instructions; 1 to {MAX_INSTRUCTIONS} are allowed")]
    Length(usize),
    /// An operation is not classic BPF; with the index of the instruction.
    #[error("instruction {0} has the unknown operation {1:#x}")]
    Operation(usize, u16),
    /// A jump beyond the end.
    #[error("instruction {0} jumps past the end")]
    Jump(usize),
    /// An access outside of the scratch memory.
    #[error("instruction {0} uses scratch memory word {1}; there are {MEMORY_WORDS}")]
    Memory(usize, u32),
    /// A division by zero, or a shift by 32 bits or more.
    #[error("instruction {0} has the invalid operand {1}")]
    Operand(usize, u32),
    /// The last instruction is not a return.
    #[error("its last instruction is not a return")]
    NoReturn,
}

/// Checks that a program is valid classic BPF: known operations, forward jumps within the program, existing
/// scratch memory, no division by a constant zero, a return at the end.
pub fn verify(program: &[Instruction]) -> Result<(), ProgramError> {
    if program.is_empty() || program.len() > MAX_INSTRUCTIONS {
        return Err(ProgramError::Length(program.len()));
    }
    for (at, &Instruction { code, jt, jf, k }) in program.iter().enumerate() {
        let after = program.len() - at - 1;
        let error = match code {
            _ if !OPERATIONS.contains(&code) => ProgramError::Operation(at, code),
            // ld, ldx, st and stx with scratch memory.
            0x60 | 0x61 | 0x02 | 0x03 if k >= MEMORY_WORDS => ProgramError::Memory(at, k),
            // div and mod by k; lsh and rsh by k.
            0x34 | 0x94 if k == 0 => ProgramError::Operand(at, k),
            0x64 | 0x74 if k >= u32::BITS => ProgramError::Operand(at, k),
            op::JUMP if k as usize >= after => ProgramError::Jump(at),
            _ if code & CLASS == CLASS_JUMP && code != op::JUMP && usize::from(jt.max(jf)) >= after => {
                ProgramError::Jump(at)
            }
            _ => continue,
        };
        return Err(error);
    }
    match program.last().map(|last| last.code) {
        Some(0x06 | 0x16) => Ok(()),
        _ => Err(ProgramError::NoReturn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASS: Instruction = Instruction::pass(96);

    fn with(code: u16, jt: u8, jf: u8, k: u32) -> Result<(), ProgramError> {
        verify(&[Instruction { code, jt, jf, k }, PASS, PASS])
    }

    #[test]
    fn a_valid_program_passes() {
        assert_eq!(verify(&[PASS]), Ok(()));
        for valid in [
            with(op::JUMP, 0, 0, 1),
            with(op::IF_EQUAL, 1, 0, 9),
            with(0x02, 0, 0, 15),
            with(0x34, 0, 0, 1),
            with(0x64, 0, 0, 31),
        ] {
            assert_eq!(valid, Ok(()));
        }
    }

    #[test]
    fn jumps_past_the_end_are_refused() {
        assert_eq!(with(op::JUMP, 0, 0, 2), Err(ProgramError::Jump(0)));
        assert_eq!(with(op::JUMP, 0, 0, u32::MAX), Err(ProgramError::Jump(0)), "backward jumps do not exist");
        assert_eq!(with(op::IF_EQUAL, 2, 0, 9), Err(ProgramError::Jump(0)));
        assert_eq!(with(op::IF_EQUAL, 0, 255, 9), Err(ProgramError::Jump(0)));
    }

    #[test]
    fn invalid_operations_and_operands_are_refused() {
        assert_eq!(with(0x02, 0, 0, 16), Err(ProgramError::Memory(0, 16)));
        assert_eq!(with(0x61, 0, 0, 16), Err(ProgramError::Memory(0, 16)));
        assert_eq!(with(0x34, 0, 0, 0), Err(ProgramError::Operand(0, 0)));
        assert_eq!(with(0x94, 0, 0, 0), Err(ProgramError::Operand(0, 0)));
        assert_eq!(with(0x74, 0, 0, 32), Err(ProgramError::Operand(0, 32)));
        assert_eq!(with(0xffff, 0, 0, 0), Err(ProgramError::Operation(0, 0xffff)));
    }

    #[test]
    fn a_program_must_return_and_fit() {
        let load = Instruction { code: op::LOAD_HALF, jt: 0, jf: 0, k: 12 };
        assert_eq!(verify(&[PASS, load]), Err(ProgramError::NoReturn));
        assert_eq!(verify(&[]), Err(ProgramError::Length(0)));
        assert_eq!(verify(&vec![PASS; 4096]), Ok(()));
        assert_eq!(verify(&vec![PASS; 4097]), Err(ProgramError::Length(4097)));
    }
}
