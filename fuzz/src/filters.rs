//! Properties that hold for any filter text, and for any program of another compiler.
//!
//! Beside the other claims and not among them, so that the tests of `landspeed-wire` include this file alone.

use landspeed_wire::LinkType;
use landspeed_wire::filter::{Instruction, compile, verify};

/// A filter is compiled to a valid program or refused.
///
/// # Panics
/// When that is not so.
pub fn filter(text: &str) {
    for link in [LinkType::ETHERNET, LinkType::RAW] {
        if let Ok(program) = compile(text, link, 96) {
            assert_eq!(verify(&program), Ok(()), "{text}");
        }
    }
}

/// A program is judged, whatever it is; a valid one ends with a return.
///
/// # Panics
/// When that is not so.
pub fn program(bytes: &[u8]) {
    let (instructions, _) = bytes.as_chunks::<8>();
    let program: Vec<Instruction> = instructions
        .iter()
        .map(|&[c0, c1, jt, jf, k0, k1, k2, k3]| Instruction {
            code: u16::from_le_bytes([c0, c1]),
            jt,
            jf,
            k: u32::from_le_bytes([k0, k1, k2, k3]),
        })
        .collect();
    if verify(&program).is_ok() {
        assert!(program.last().is_some_and(|last| last.code & 7 == 6), "it must end with a return");
    }
}
