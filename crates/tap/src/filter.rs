//! Compilation of filter expressions: by landspeed's compiler, or by tcpdump for expressions that it does not
//! support.

use landspeed_sys::filter::Instruction;
use landspeed_wire::LinkType;
use landspeed_wire::filter::{self, FilterError, OUTGOING, PACKET_TYPE, op};

use crate::TapError;
use crate::tcpdump::{self, TcpdumpError};

/// Advice for an invalid expression.
const EXAMPLE: &str = "See pcap-filter(7); for example: tcp port 5201 and host 192.0.2.1";
/// Advice for an expression that tcpdump would compile incorrectly.
const REWRITE: &str = "Write it with protocols, hosts, nets, ports and vlan only; see pcap-filter(7)";
/// Advice for an expression that needs tcpdump.
const INSTALL: &str = "Install the package tcpdump to use all of pcap-filter(7). Without it: tcp udp sctp icmp icmp6 ip ip6 arp \
                       rarp; [src|dst] host, net, port, portrange with numbers; vlan; inbound, outbound; and or not ( )";

/// Compiles an expression for an interface's link type; accepted packets are truncated to `snap_bytes`.
pub fn compile(text: &str, link: LinkType, snap_bytes: u32) -> Result<Vec<Instruction>, TapError> {
    compile_with(text, link, snap_bytes, tcpdump::compile)
}

/// Restricts a program to packets that this host sends.
pub fn outbound(program: &[Instruction]) -> Vec<Instruction> {
    let sent = [
        Instruction { code: op::LOAD_WORD, jt: 0, jf: 0, k: PACKET_TYPE },
        Instruction { code: op::IF_EQUAL, jt: 1, jf: 0, k: OUTGOING },
        Instruction::pass(0),
    ];
    [&sent, program].concat()
}

fn compile_with(
    text: &str,
    link: LinkType,
    snap_bytes: u32,
    tcpdump: impl Fn(&str, LinkType, u32) -> Result<Vec<filter::Instruction>, TcpdumpError>,
) -> Result<Vec<Instruction>, TapError> {
    let refused = |why: String, advice| TapError::Filter { text: text.to_owned(), why, advice };
    let refusal = match filter::compile(text, link, snap_bytes) {
        Ok(program) => return Ok(attachable(&program)),
        Err(refusal) => refusal,
    };
    if !matches!(refusal, FilterError::Unknown { .. }) {
        return Err(refused(refusal.to_string(), EXAMPLE));
    }
    if let Some(why) = needs_interface(text) {
        return Err(refused(format!("{refusal}; {why}"), REWRITE));
    }
    match tcpdump(text, link, snap_bytes) {
        Ok(program) => Ok(attachable(&program)),
        Err(TcpdumpError::Missing) => Err(refused(refusal.to_string(), INSTALL)),
        Err(error) => Err(refused(format!("{error} ({refusal})"), EXAMPLE)),
    }
}

fn attachable(program: &[filter::Instruction]) -> Vec<Instruction> {
    program.iter().map(|&filter::Instruction { code, jt, jf, k }| Instruction { code, jt, jf, k }).collect()
}

/// Reason why tcpdump's program would be wrong: it is not compiled for an interface.
fn needs_interface(text: &str) -> Option<&'static str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let words = text.split(|c| !is_name(c)).map(|word| word.trim_end_matches(['-', '_']));
    let mut before = "";
    for word in words.filter(|word| !word.is_empty()) {
        match (before, word) {
            (_, "vlan") => {
                return Some("tcpdump's program for `vlan` would miss tags that the kernel takes out of frames");
            }
            ("ip", "broadcast") => return Some("`ip broadcast` needs the interface's netmask"),
            _ => before = word,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error message for an expression, if tcpdump fails with `answer`.
    fn error(text: &str, answer: impl Fn() -> TcpdumpError) -> String {
        let compiled = compile_with(text, LinkType::ETHERNET, 96, |_, _, _| Err(answer()));
        compiled.expect_err(text).to_string()
    }

    #[test]
    fn subset_filters_compile_without_tcpdump() {
        let text = "host 10.0.0.1 and port 5201 and not tcp port 5202 and (tcp port 4000 or udp port 4001)";
        let absent = |_: &str, _, _| Err(TcpdumpError::Missing);
        let program = compile_with(text, LinkType::ETHERNET, 96, absent).expect("it is in the subset");
        assert!(program.contains(&Instruction::pass(96)), "{program:?}");
    }

    #[test]
    fn unknown_filters_use_tcpdumps_program() {
        let theirs = vec![filter::Instruction::pass(7)];
        let program =
            compile_with("len > 5", LinkType::ETHERNET, 96, |_, _, _| Ok(theirs.clone())).expect("a program");
        assert_eq!(program, [Instruction::pass(7)]);
    }

    #[test]
    fn without_tcpdump_the_error_names_the_package_and_the_subset() {
        let said = error("tcp and len > 5", || TcpdumpError::Missing);
        let [first, second] = said.lines().collect::<Vec<_>>()[..] else { panic!("two lines: {said}") };
        assert!(first.starts_with("cannot compile filter `tcp and len > 5`: column 9: `len`"), "{first}");
        assert!(second.starts_with("Install the package tcpdump") && second.contains("portrange"), "{second}");
    }

    #[test]
    fn invalid_filters_are_not_passed_to_tcpdump() {
        for (text, words) in [
            ("tcp port", "syntax error"),
            ("port 99999", "99999"),
            ("ip and arp", "rejects all packets"),
            ("tcp[13] = 2 and vlan 5", "tags that the kernel takes out"),
            ("len>5||vlan", "tags that the kernel takes out"),
            ("ip broadcast", "netmask"),
        ] {
            let said = error(text, || unreachable!("{text}"));
            assert!(said.contains(words), "{said}");
        }
        let said = error("host vlan-gw.example", || TcpdumpError::Missing);
        assert!(said.contains("Install"), "a name may begin like it: {said}");
    }

    #[test]
    fn tcpdump_error_messages_are_included() {
        let said = error("tcp prt 80", || TcpdumpError::Refused("syntax error".to_owned()));
        assert!(
            said.starts_with("cannot compile filter `tcp prt 80`: tcpdump: syntax error (column 5: `prt`"),
            "{said}"
        );
    }

    #[test]
    fn outbound_programs_check_the_packet_type_first() {
        let program = outbound(&[Instruction::pass(9)]);
        assert_eq!((program[0].k, program[1].jt, program.len()), (PACKET_TYPE, 1, 4));
    }
}
