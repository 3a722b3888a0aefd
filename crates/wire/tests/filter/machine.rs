//! Interpreter for classic BPF with the kernel's semantics.

use landspeed_wire::filter::Instruction;

/// Input of a filter: a packet with its metadata.
#[derive(Debug, Clone, Default)]
pub struct FilterInput {
    /// The frame, without a removed VLAN tag.
    pub frame: Vec<u8>,
    /// VLAN tag that the kernel removed from the frame.
    pub tag: Option<u16>,
    /// Whether this host sends the packet.
    pub outgoing: bool,
    /// Whether the frame is as long as its headers claim.
    pub whole: bool,
}

impl FilterInput {
    /// Loads `bytes` at an offset; ancillary offsets as in the kernel.
    fn load(&self, offset: u32, bytes: usize) -> Option<u32> {
        match offset {
            0xffff_f004 => return Some(if self.outgoing { 4 } else { 0 }),
            0xffff_f02c => return Some(self.tag.unwrap_or(0).into()),
            0xffff_f030 => return Some(self.tag.is_some().into()),
            _ => {}
        }
        let at = offset as usize;
        let found = self.frame.get(at..at.checked_add(bytes)?)?;
        Some(found.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }
}

/// Runs a program; returns the number of accepted bytes, 0 for a rejected packet.
pub fn run(program: &[Instruction], seen: &FilterInput) -> u32 {
    let (mut a, mut x, mut memory) = (0_u32, 0_u32, [0_u32; 16]);
    let mut at = 0;
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        let operand = if code & 0x08 == 0 { k } else { x };
        let jump = |holds: bool| usize::from(if holds { jt } else { jf });
        match code {
            0x00 => a = k,
            0x01 => x = k,
            0x80 => a = seen.frame.len() as u32,
            0x60 => a = memory[k as usize],
            0x61 => x = memory[k as usize],
            0x02 => memory[k as usize] = a,
            0x03 => memory[k as usize] = x,
            0x07 => x = a,
            0x87 => a = x,
            0x20 | 0x28 | 0x30 | 0x40 | 0x48 | 0x50 => {
                let offset = if code & 0x40 == 0 { k } else { x.wrapping_add(k) };
                let bytes = match code & 0x18 {
                    0x00 => 4,
                    0x08 => 2,
                    _ => 1,
                };
                match seen.load(offset, bytes) {
                    Some(value) => a = value,
                    None => return 0,
                }
            }
            0xb1 => match seen.load(k, 1) {
                Some(value) => x = 4 * (value & 15),
                None => return 0,
            },
            0x04 | 0x0c => a = a.wrapping_add(operand),
            0x14 | 0x1c => a = a.wrapping_sub(operand),
            0x44 | 0x4c => a |= operand,
            0x54 | 0x5c => a &= operand,
            0x64 | 0x6c => a = a.wrapping_shl(operand),
            0x74 | 0x7c => a = a.wrapping_shr(operand),
            0x05 => at += k as usize,
            0x15 | 0x1d => at += jump(a == operand),
            0x25 | 0x2d => at += jump(a > operand),
            0x35 | 0x3d => at += jump(a >= operand),
            0x45 | 0x4d => at += jump(a & operand != 0),
            0x06 => return k,
            code => panic!("operation {code:#x} is not used by filters"),
        }
    }
}
