//! Filter expressions in libpcap's language (`pcap-filter(7)`), compiled to classic BPF by libpcap itself.

use std::ffi::{CString, c_char, c_int, c_uint};

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
/// `PCAP_ERRBUF_SIZE`.
const ERROR_BYTES: usize = 256;

impl Instruction {
    /// Ends a filter: the packet passes, cut to this length, or for 0 does not.
    pub const fn pass(bytes: u32) -> Self {
        Self { code: RETURN, jt: 0, jf: 0, k: bytes }
    }
}

/// What frames begin with, as libpcap's compiler numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `DLT_EN10MB`.
    Ethernet,
    /// `DLT_RAW`: an IP header.
    Raw,
}

unsafe extern "C" {
    fn landspeed_filter_compile(
        link_type: c_int,
        snap: c_int,
        text: *const c_char,
        instructions: *mut *mut Instruction,
        count: *mut c_uint,
        why: *mut c_char,
    ) -> c_int;
    fn landspeed_filter_free(instructions: *mut Instruction);
}

/// Compiles an expression; what passes is cut to `snap_bytes`. Names in it are looked up (`/etc/hosts`, DNS, `/etc/services`).
/// The error is what libpcap says about it.
pub fn compile(text: &str, framing: Framing, snap_bytes: u32) -> Result<Vec<Instruction>, String> {
    let text = CString::new(text).map_err(|_| "a zero byte has no place in a filter".to_owned())?;
    let link_type = match framing {
        Framing::Ethernet => 1,
        Framing::Raw => 12,
    };
    let snap = c_int::try_from(snap_bytes).unwrap_or(c_int::MAX);
    let (mut instructions, mut count) = (std::ptr::null_mut(), 0);
    let mut why = [0 as c_char; ERROR_BYTES];
    // SAFETY: `text` ends with a zero and outlives the call; the three places are valid for writing, `why` as long as the
    // function's contract asks. On success it hands over `count` instructions, which are copied and freed once.
    unsafe {
        let rc = landspeed_filter_compile(
            link_type,
            snap,
            text.as_ptr(),
            &raw mut instructions,
            &raw mut count,
            why.as_mut_ptr(),
        );
        if rc == 0 && !instructions.is_null() {
            let program = std::slice::from_raw_parts(instructions, count as usize).to_vec();
            landspeed_filter_free(instructions);
            return Ok(program);
        }
    }
    let bytes: Vec<u8> = why.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8).collect();
    Err(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_becomes_instructions_that_end_with_the_snap_length() {
        let program = compile("tcp port 5201 and host 192.0.2.1", Framing::Ethernet, 96).expect("it is valid");
        assert!(program.len() > 10, "{}", program.len());
        assert!(program.contains(&Instruction::pass(96)) && program.contains(&Instruction::pass(0)), "{program:?}");
        // tcpdump -d: the first thing looked at is the Ethernet type.
        assert_eq!(program[0], Instruction { code: 0x28, jt: 0, jf: 0, k: 12 });
        let raw = compile("tcp", Framing::Raw, 96).expect("it is valid");
        assert!(raw[0].code == 0x30 && raw[0].k == 0, "the version of IP: {:?}", raw[0]);
    }

    #[test]
    fn what_is_no_expression_is_told_in_words() {
        for (text, word) in
            [("tcp port", "syntax error"), ("port 99999", "99999"), ("tcp\0", "zero"), ("ip and arp", "rejects")]
        {
            let why = compile(text, Framing::Ethernet, 96).expect_err(text);
            assert!(why.contains(word), "{text}: {why}");
        }
        assert_eq!(compile("", Framing::Ethernet, 96), Ok(vec![Instruction::pass(96)]), "everything passes");
    }

    #[test]
    fn expressions_are_compiled_by_several_threads_at_once() {
        let one = || compile("udp portrange 1000-2000 or vlan 5", Framing::Ethernet, 96);
        let alone = one();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
            for thread in threads {
                assert_eq!(thread.join().expect("it does not panic"), alone);
            }
        });
        assert!(alone.is_ok());
    }
}
