//! eBPF programs at TCX hooks that divert the packets of given peers from an interface and reinject packets. Each
//! is attached by a link that is bound to a descriptor: the kernel removes it when the process ends, even by
//! SIGKILL. Needs Linux 6.6, `CAP_BPF` and `CAP_NET_ADMIN`; no queueing discipline.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::egress::CALL;
use super::{
    EXIT, FILTER, Instruction, LOAD_32, MOVE, MOVE_CONSTANT, TC_ACT_SHOT, TC_ACT_UNSPEC, call, instruction, load,
};

// linux/bpf.h
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;
const BPF_FUNC_REDIRECT: i32 = 23;
const BPF_F_INGRESS: i32 = 1;

// Offsets in `struct __sk_buff`.
const SKB_MARK: i16 = 8;
const SKB_PROTOCOL: i16 = 16;
const SKB_VLAN_PRESENT: i16 = 20;

// Opcodes not used by the frame filter. The jumps and the AND are of the 32-bit classes.
const LOAD_PACKET_32: u8 = 0x20;
const LOAD_PACKET_8: u8 = 0x30;
const STORE_32: u8 = 0x63;
const AND_CONSTANT: u8 = 0x54;
const JUMP: u8 = 0x05;
const IF_EQUAL: u8 = 0x16;
const IF_NOT_EQUAL: u8 = 0x56;
const IF_BELOW: u8 = 0xa6;
const IF_ABOVE: u8 = 0x26;

// Offsets in a frame, Ethernet header included.
const IPV4_SOURCE: i32 = 14 + 12;
const IPV4_DESTINATION: i32 = 14 + 16;
const IPV6_NEXT_HEADER: i32 = 14 + 6;
const IPV6_SOURCE: i32 = 14 + 8;
const IPV6_DESTINATION: i32 = 14 + 24;
const ICMPV6_TYPE: i32 = 14 + 40;
const ETH_P_IP: u16 = 0x0800;
const ETH_P_IPV6: u16 = 0x86dd;
const IPPROTO_ICMPV6: i32 = 58;
/// First and last ICMPv6 type of neighbour discovery (RFC 4861), the counterpart of ARP in IPv6.
const NEIGHBOUR_DISCOVERY: [i32; 2] = [133, 137];

/// Maximum number of peers per program.
pub const MAX_PEERS: usize = 256;

/// A peer prefix: address and prefix length.
pub type Peer = (IpAddr, u8);

/// TCX hook at an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Arriving packets.
    Ingress,
    /// Departing packets.
    Egress,
}

/// Packet mark (`skb->mark`) of reinjected packets, which must not be diverted again. It is only set between two
/// programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(i32);

impl Mark {
    /// Derives a nonzero mark from any number. The highest bit stays clear, as constants of instructions are signed.
    pub fn new(number: u64) -> Self {
        Self((number as i32 & i32::MAX).max(1))
    }
}

/// An attached program. It is detached when this is dropped or the process ends.
#[derive(Debug)]
pub struct Attachment {
    _link: OwnedFd,
}

/// Diverts packets to the peers (at [`Hook::Egress`]) or from them (at [`Hook::Ingress`]) from interface `from`
/// to the egress of interface `to`, marked. Packets with the mark pass, and the mark is cleared. All others pass,
/// as do frames with a VLAN tag, ARP, and neighbour discovery even of peers.
pub fn divert(from: u32, hook: Hook, peers: &[Peer], to: u32, mark: Mark) -> io::Result<Attachment> {
    if peers.len() > MAX_PEERS {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("more than {MAX_PEERS} peers")));
    }
    attach(from, hook, &diversion(hook, peers, to, mark))
}

/// Sends all packets that arrive at interface `from` out of interface `to` ([`Hook::Egress`]) or injects them
/// there as received ([`Hook::Ingress`]), marked.
pub fn forward(from: u32, to: u32, hook: Hook, mark: Mark) -> io::Result<Attachment> {
    attach(from, Hook::Ingress, &redirection(to, hook, mark))
}

/// Drops all packets that leave by `interface` without the mark.
pub fn drop_unmarked(interface: u32, mark: Mark) -> io::Result<Attachment> {
    attach(
        interface,
        Hook::Egress,
        &[
            instruction(LOAD_32, 0, 1, SKB_MARK, 0),
            instruction(IF_EQUAL, 0, 0, 2, mark.0),
            instruction(MOVE_CONSTANT, 0, 0, 0, TC_ACT_SHOT),
            instruction(EXIT, 0, 0, 0, 0),
            instruction(MOVE_CONSTANT, 0, 0, 0, TC_ACT_UNSPEC),
            instruction(EXIT, 0, 0, 0, 0),
        ],
    )
}

/// Target of a jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    /// Pass the packet.
    Pass,
    /// Divert the packet.
    Divert,
    /// The instruction after the current test.
    Next,
}

/// Instructions with jumps whose offsets are filled in when their label is placed.
#[derive(Debug, Default)]
struct Assembler {
    code: Vec<Instruction>,
    open: Vec<(usize, Label)>,
}

impl Assembler {
    fn add(&mut self, opcode: u8, to: u8, from: u8, offset: i16, constant: i32) {
        self.code.push(instruction(opcode, to, from, offset, constant));
    }

    fn jump(&mut self, opcode: u8, register: u8, constant: i32, label: Label) {
        self.open.push((self.code.len(), label));
        self.add(opcode, register, 0, 0, constant);
    }

    fn place(&mut self, label: Label) {
        let here = self.code.len();
        self.open.retain(|&(at, wanted)| {
            if wanted == label {
                self.code[at].offset = (here - at - 1) as i16;
            }
            wanted != label
        });
    }

    /// Marks and redirects the packet, whose context is in register `context`, and returns.
    fn redirect(&mut self, context: u8, to: u32, flags: i32, mark: Mark) {
        self.add(MOVE_CONSTANT, 2, 0, 0, mark.0);
        self.add(STORE_32, context, 2, SKB_MARK, 0);
        self.add(MOVE_CONSTANT, 1, 0, 0, to as i32);
        self.add(MOVE_CONSTANT, 2, 0, 0, flags);
        self.add(CALL, 0, 0, 0, BPF_FUNC_REDIRECT);
        self.add(EXIT, 0, 0, 0, 0);
    }

    fn pass(&mut self) {
        self.add(MOVE_CONSTANT, 0, 0, 0, TC_ACT_UNSPEC);
        self.add(EXIT, 0, 0, 0, 0);
    }
}

fn redirection(to: u32, hook: Hook, mark: Mark) -> Vec<Instruction> {
    let mut program = Assembler::default();
    program.redirect(1, to, if hook == Hook::Ingress { BPF_F_INGRESS } else { 0 }, mark);
    program.code
}

/// r6: the context, as required by packet loads, which return words in host byte order in r0 and clobber r1 to
/// r5.
fn diversion(hook: Hook, peers: &[Peer], to: u32, mark: Mark) -> Vec<Instruction> {
    let mut program = Assembler::default();
    program.add(MOVE, 6, 1, 0, 0);
    program.add(LOAD_32, 0, 6, SKB_MARK, 0);
    program.jump(IF_NOT_EQUAL, 0, mark.0, Label::Next);
    program.add(MOVE_CONSTANT, 0, 0, 0, 0);
    program.add(STORE_32, 6, 0, SKB_MARK, 0);
    program.jump(JUMP, 0, 0, Label::Pass);
    program.place(Label::Next);
    program.add(LOAD_32, 0, 6, SKB_VLAN_PRESENT, 0);
    program.jump(IF_NOT_EQUAL, 0, 0, Label::Pass);
    program.add(LOAD_32, 7, 6, SKB_PROTOCOL, 0);

    program.jump(IF_NOT_EQUAL, 7, i32::from(ETH_P_IP.to_be()), Label::Next);
    let (v4_at, v6_at) = match hook {
        Hook::Ingress => (IPV4_SOURCE, IPV6_SOURCE),
        Hook::Egress => (IPV4_DESTINATION, IPV6_DESTINATION),
    };
    program.add(LOAD_PACKET_32, 0, 0, 0, v4_at);
    for (address, bits) in peers {
        if let IpAddr::V4(address) = address {
            let mask = u32::MAX.checked_shl(32 - u32::from(*bits)).unwrap_or(0);
            program.add(MOVE, 1, 0, 0, 0);
            program.add(AND_CONSTANT, 1, 0, 0, mask as i32);
            program.jump(IF_EQUAL, 1, (address.to_bits() & mask) as i32, Label::Divert);
        }
    }
    program.jump(JUMP, 0, 0, Label::Pass);
    program.place(Label::Next);

    program.jump(IF_NOT_EQUAL, 7, i32::from(ETH_P_IPV6.to_be()), Label::Pass);
    program.add(LOAD_PACKET_8, 0, 0, 0, IPV6_NEXT_HEADER);
    program.jump(IF_NOT_EQUAL, 0, IPPROTO_ICMPV6, Label::Next);
    program.add(LOAD_PACKET_8, 0, 0, 0, ICMPV6_TYPE);
    program.jump(IF_BELOW, 0, NEIGHBOUR_DISCOVERY[0], Label::Next);
    program.jump(IF_ABOVE, 0, NEIGHBOUR_DISCOVERY[1], Label::Next);
    program.jump(JUMP, 0, 0, Label::Pass);
    program.place(Label::Next);
    // Load the four words of the address into r7, r8, r9 and r0.
    for (word, register) in [7, 8, 9, 0].into_iter().enumerate() {
        program.add(LOAD_PACKET_32, 0, 0, 0, v6_at + 4 * word as i32);
        if register != 0 {
            program.add(MOVE, register, 0, 0, 0);
        }
    }
    for (address, bits) in peers {
        if let IpAddr::V6(address) = address {
            let mask = u128::MAX.checked_shl(128 - u32::from(*bits)).unwrap_or(0);
            let wanted = address.to_bits() & mask;
            for (word, register) in [7, 8, 9, 0].into_iter().enumerate() {
                let part = |whole: u128| (whole >> (96 - 32 * word)) as u32 as i32;
                if part(mask) != 0 {
                    program.add(MOVE, 1, register, 0, 0);
                    program.add(AND_CONSTANT, 1, 0, 0, part(mask));
                    program.jump(IF_NOT_EQUAL, 1, part(wanted), Label::Next);
                }
            }
            program.jump(JUMP, 0, 0, Label::Divert);
            program.place(Label::Next);
        }
    }

    program.place(Label::Pass);
    program.pass();
    // Without peers nothing jumps there, and the verifier rejects unreachable code.
    if program.open.iter().any(|(_, label)| *label == Label::Divert) {
        program.place(Label::Divert);
        program.redirect(6, to, 0, mark);
    }
    program.code
}

/// The first members of `union bpf_attr` for a link at a TCX hook.
#[repr(C)]
struct LinkCreate {
    program: u32,
    ifindex: u32,
    attach_type: u32,
    flags: u32,
    relative_fd: u32,
    padding: u32,
    revision: u64,
}

fn attach(ifindex: u32, hook: Hook, program: &[Instruction]) -> io::Result<Attachment> {
    let program = load(FILTER, program)?;
    let attach_type = if hook == Hook::Ingress { BPF_TCX_INGRESS } else { BPF_TCX_EGRESS };
    let attributes = LinkCreate {
        program: program.as_raw_fd() as u32,
        ifindex,
        attach_type,
        flags: 0,
        relative_fd: 0,
        padding: 0,
        revision: 0,
    };
    // SAFETY: the attributes hold no pointers.
    let link = unsafe { call(BPF_LINK_CREATE, &attributes) }?;
    // SAFETY: the call succeeded and `link` is a new descriptor, owned here only.
    Ok(Attachment { _link: unsafe { OwnedFd::from_raw_fd(link) } })
}

#[cfg(test)]
mod tests {
    use landspeed_netlink::{LinkId, Netlink, configure::LinkSettings, configure::NewLink};

    use super::*;
    use crate::frames::FrameRing;
    use crate::netns;

    /// Sends frames to `b` and returns the last byte of those that come out of `d`.
    fn diverted_frames(peers: &[Peer], frames: &[Vec<u8>]) -> Result<Vec<u8>, String> {
        let outcome = netns::run_in_new_namespace(|| -> Result<Vec<u8>, String> {
            for scope in ["all", "default"] {
                let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
            }
            let mut netlink = Netlink::open().map_err(|error| error.to_string())?;
            let mut indices = Vec::new();
            for [first, second] in [["a", "b"], ["c", "d"]] {
                let ends = [first, second].map(|name| NewLink { name, ..NewLink::default() });
                netlink.add_veth(&ends[0], &ends[1]).map_err(|error| error.to_string())?;
                for name in [first, second] {
                    let up = LinkSettings { up: Some(true), ..LinkSettings::default() };
                    netlink.set_link(LinkId::Name(name), &up).map_err(|error| error.to_string())?;
                    indices.push(netlink.link(LinkId::Name(name)).map_err(|error| error.to_string())?.index);
                }
            }
            let mark = Mark::new(0x1234_5678_9abc);
            let drop_unmarked = drop_unmarked(indices[2], mark).map_err(|error| error.to_string())?;
            let diverted =
                divert(indices[1], Hook::Ingress, peers, indices[2], mark).map_err(|error| error.to_string())?;
            let ring = |index| FrameRing::open(index, 1518, 1 << 20).map_err(|error| error.to_string());
            let (a, mut d) = (ring(indices[0])?, ring(indices[3])?);
            a.start().and_then(|()| d.start()).map_err(|error| error.to_string())?;
            let slices: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
            assert_eq!(a.send(&slices).map_err(|error| error.to_string())?, frames.len());
            let until_ns = crate::clock::monotonic_ns() + 200_000_000;
            let mut found = Vec::new();
            while crate::clock::monotonic_ns() < until_ns {
                while let Some(frame) = d.peek() {
                    found.extend(frame.data.last());
                    d.release();
                }
                crate::clock::sleep_until(crate::clock::monotonic_ns() + 1_000_000);
            }
            drop((drop_unmarked, diverted));
            Ok(found)
        });
        outcome.map_err(|error| error.to_string())?
    }

    fn frame(kind: u16, head: &[u8], number: u8) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        frame.extend(kind.to_be_bytes());
        frame.extend(head);
        frame.resize(100, 0);
        frame.push(number);
        frame
    }

    fn v4(source: [u8; 4], number: u8) -> Vec<u8> {
        let mut head = [0; 20];
        head[0] = 0x45;
        head[12..16].copy_from_slice(&source);
        frame(ETH_P_IP, &head, number)
    }

    fn v6(source: &str, next: u8, kind: u8, number: u8) -> Vec<u8> {
        let mut head = [0; 41];
        head[0] = 0x60;
        head[6] = next;
        head[8..24].copy_from_slice(&source.parse::<std::net::Ipv6Addr>().expect("an address").octets());
        head[40] = kind;
        frame(ETH_P_IPV6, &head, number)
    }

    #[test]
    fn only_packets_of_peers_are_diverted() {
        let peer = |text: &str, bits| (text.parse().expect("an address"), bits);
        let peers = [peer("192.0.2.1", 32), peer("10.1.0.0", 16), peer("2001:db8::1", 128), peer("2001:db8:7::", 48)];
        let frames = [
            v4([192, 0, 2, 1], 1),
            v4([192, 0, 2, 2], 2),
            v4([10, 1, 255, 9], 3),
            v4([10, 2, 0, 1], 4),
            v6("2001:db8::1", 6, 0, 5),
            v6("2001:db8::2", 6, 0, 6),
            v6("2001:db8:7:ffff::1", 17, 135, 7),
            v6("2001:db8:8::1", 17, 0, 8),
            // An echo request, and a neighbour solicitation.
            v6("2001:db8::1", 58, 128, 9),
            v6("2001:db8::1", 58, 135, 10),
            frame(0x0806, &[0; 28], 11),
        ];
        match diverted_frames(&peers, &frames) {
            Ok(found) => assert_eq!(found, [1, 3, 5, 7, 9]),
            Err(why) => landspeed_testkit::skip!("no TCX programs here: {why}"),
        }
    }

    #[test]
    fn maximum_number_of_peers_passes_the_verifier() {
        let peers: Vec<Peer> = (0..MAX_PEERS as u32)
            .map(|number| match number % 2 {
                0 => (IpAddr::from((0x0a00_0000 + number).to_be_bytes()), 32),
                _ => (IpAddr::from((0x2001_0db8_u128 << 96 | u128::from(number)).to_be_bytes()), 128),
            })
            .collect();
        match diverted_frames(&peers, &[v4([10, 0, 0, 254], 1), v6("2001:db8::ff", 6, 0, 2), v4([10, 0, 0, 1], 3)]) {
            Ok(found) => assert_eq!(found, [1, 2]),
            Err(why) => landspeed_testkit::skip!("no TCX programs here: {why}"),
        }
        let more = vec![peers[0]; MAX_PEERS + 1];
        let refused = divert(1, Hook::Ingress, &more, 1, Mark::new(7)).expect_err("too many");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}
