//! Properties that hold for any filter text, and for any program of another compiler.
//!
//! A separate file, so that the tests of `landspeed-wire` can include it without the other properties.

use landspeed_wire::LinkType;
use landspeed_wire::filter::{Instruction, compile, verify};

/// A filter is compiled to a valid program or rejected.
///
/// # Panics
/// If the property is violated.
pub fn filter(text: &str) {
    for link in [LinkType::ETHERNET, LinkType::RAW] {
        if let Ok(program) = compile(text, link, 96) {
            assert_eq!(verify(&program), Ok(()), "{text}");
        }
    }
}

/// The verifier accepts or rejects any program; an accepted program ends with a return.
///
/// # Panics
/// If the property is violated.
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
