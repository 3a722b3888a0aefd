//! Small eBPF programs, assembled here and loaded with `bpf(2)`: a filter that drops given frames, and (in
//! [`egress`]) a rate limiter for control groups.
//!
//! The filter counts frames in a map and drops those that match a pattern. Needs `CAP_BPF` and `CAP_NET_ADMIN`,
//! and a kernel with `CONFIG_BPF_SYSCALL` and `CONFIG_NET_CLS_BPF`.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub mod egress;
mod frame_clock;
pub mod steer;

pub use frame_clock::frame_clock;

// linux/bpf.h: commands, types, and the source register that makes a 64-bit constant the address of a map's
// value.
const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_PSEUDO_MAP_VALUE: u8 = 2;

// linux/pkt_cls.h
const TC_ACT_UNSPEC: i32 = -1;
const TC_ACT_SHOT: i32 = 2;

// Words of the map's only value.
const SEEN_OFFSET: i16 = 0;
const DROPPED_OFFSET: i16 = 1;
const NEXT_OFFSET: i16 = 2;
const LIST_OFFSET: i16 = 3;
/// Offset of the frame length (Ethernet header included) in `struct __sk_buff`.
const FRAME_LENGTH: i16 = 0;
/// Length of the Ethernet header, bytes.
const ETHERNET_HEADER: u64 = 14;
/// Frame number that is never reached.
const NEVER: u64 = u64::MAX;
/// Maximum number of frames in a list: keeps its map below half a megabyte.
const MAX_LIST_LENGTH: usize = 65_536;
/// Size of the verifier's log for rejected programs, bytes.
const LOG_BYTES: usize = 64 << 10;
/// `BPF_OBJ_NAME_LEN`, including the terminating zero.
const NAME_BYTES: usize = 16;

/// Type, attach type and name of a program. Before Linux 4.15 only an empty name is accepted.
#[derive(Clone, Copy)]
struct ProgramType {
    kind: u32,
    attach_type: u32,
    name: [u8; NAME_BYTES],
}

const FILTER: ProgramType = ProgramType { kind: BPF_PROG_TYPE_SCHED_CLS, attach_type: 0, name: [0; NAME_BYTES] };

/// Frames to drop; the first frame is number 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// The frame with this number and every multiple of it.
    Every(u64),
    /// Frames with these numbers; at most 65,536.
    Numbers(Vec<u64>),
    /// Frames with more than this many bytes after the Ethernet header.
    Longer(u32),
}

/// A frame filter. It exists in the kernel as long as this value or an attachment (`Netlink::filter_ingress` of
/// `landspeed-netlink`).
#[derive(Debug)]
pub struct FrameFilter {
    map: OwnedFd,
    program: OwnedFd,
    /// Initial value of the map, with zero counts.
    initial_value: Vec<u64>,
}

/// Counts of a filter since [`FrameFilter::start`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Frames seen, including dropped ones.
    pub seen: u64,
    /// Frames dropped.
    pub dropped: u64,
}

impl FrameFilter {
    /// Loads a filter. It passes all frames until [`FrameFilter::start`].
    ///
    /// # Errors
    /// `EPERM`; `ENOSYS` without BPF; `InvalidInput` for more than 65,536 numbers; the verifier's log if it rejects
    /// the program.
    pub fn load(pattern: &Pattern) -> io::Result<Self> {
        let mut list = match pattern {
            // Distance to the next dropped frame.
            Pattern::Every(distance) => vec![(*distance).max(1)],
            Pattern::Numbers(numbers) => numbers.iter().copied().filter(|&number| number > 0).collect(),
            // Length of the longest frame that passes; no frame is longer than `NEVER`.
            Pattern::Longer(bytes) => vec![u64::from(*bytes) + ETHERNET_HEADER],
        };
        list.sort_unstable();
        list.dedup();
        if list.len() > MAX_LIST_LENGTH {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "more than 65536 frames to drop"));
        }
        if matches!(pattern, Pattern::Numbers(_)) {
            list.push(NEVER);
        }
        let mut initial_value = vec![0, 0, list[0]];
        initial_value.extend(&list);
        let map = create_array_map(initial_value.len() * 8)?;
        let program = load(FILTER, &instructions(pattern, map.as_raw_fd(), list.len()))?;
        let filter = Self { map, program, initial_value };
        let mut idle = filter.initial_value.clone();
        idle[NEXT_OFFSET as usize] = NEVER;
        filter.write(&idle)?;
        Ok(filter)
    }

    /// Returns the program, for attaching.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Resets the counts: the next frame is number 1.
    pub fn start(&self) -> io::Result<()> {
        self.write(&self.initial_value)
    }

    /// Reads the counts.
    pub fn counted(&self) -> io::Result<FrameCounts> {
        let mut value = vec![0_u64; self.initial_value.len()];
        let key = 0_u32;
        let attributes = Element {
            map: self.map.as_raw_fd() as u32,
            padding: 0,
            key: (&raw const key) as u64,
            value: value.as_mut_ptr() as u64,
            flags: 0,
        };
        // SAFETY: the map's key is four bytes and its value as long as `initial_value`, to which `value` was sized; both outlive
        // the call, which reads the one and writes the other.
        unsafe { call(BPF_MAP_LOOKUP_ELEM, &attributes) }?;
        Ok(FrameCounts { seen: value[SEEN_OFFSET as usize], dropped: value[DROPPED_OFFSET as usize] })
    }

    fn write(&self, value: &[u64]) -> io::Result<()> {
        assert_eq!(value.len(), self.initial_value.len(), "the whole value is written");
        let key = 0_u32;
        let attributes = Element {
            map: self.map.as_raw_fd() as u32,
            padding: 0,
            key: (&raw const key) as u64,
            value: value.as_ptr() as u64,
            flags: 0,
        };
        // SAFETY: the map's key is four bytes and its value as long as `initial_value`, which `value` is; both outlive the call,
        // which only reads them.
        unsafe { call(BPF_MAP_UPDATE_ELEM, &attributes) }.map(drop)
    }
}

/// An eBPF instruction (Documentation/bpf/standardization/instruction-set.rst): opcode, destination and source
/// register, offset, constant.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    opcode: u8,
    /// Destination in the low four bits, source in the high four.
    registers: u8,
    offset: i16,
    constant: i32,
}

const fn instruction(opcode: u8, destination: u8, source: u8, offset: i16, constant: i32) -> Instruction {
    Instruction { opcode, registers: destination | source << 4, offset, constant }
}

// Opcodes: class, operation and operand combined as in the standard.
const LOAD_CONSTANT_64: u8 = 0x18;
const LOAD_64: u8 = 0x79;
const LOAD_32: u8 = 0x61;
const STORE_64: u8 = 0x7b;
const ADD_CONSTANT: u8 = 0x07;
const ADD: u8 = 0x0f;
const SHIFT_LEFT: u8 = 0x67;
const MOVE: u8 = 0xbf;
const MOVE_CONSTANT: u8 = 0xb7;
const JUMP_IF_NOT_EQUAL: u8 = 0x5d;
const JUMP_IF_ABOVE: u8 = 0x25;
const JUMP_IF_NOT_ABOVE: u8 = 0xbd;
const EXIT: u8 = 0x95;

/// Builds the program for the map `map`, whose list has `entries`.
fn instructions(pattern: &Pattern, map: libc::c_int, entries: usize) -> Vec<Instruction> {
    let load = |to, from, word| instruction(LOAD_64, to, from, word * 8, 0);
    let store = |at, word, value| instruction(STORE_64, at, value, word * 8, 0);
    let shot = [instruction(MOVE_CONSTANT, 0, 0, 0, TC_ACT_SHOT), instruction(EXIT, 0, 0, 0, 0)];
    // r1: the map's value. r2: number of this frame. r3: number of the next frame to drop, or the longest length
    // that passes. r4: dropped frames.
    let mut dropping =
        vec![load(4, 1, DROPPED_OFFSET), instruction(ADD_CONSTANT, 4, 0, 0, 1), store(1, DROPPED_OFFSET, 4)];
    match pattern {
        Pattern::Every(_) => {
            dropping.extend([load(5, 1, LIST_OFFSET), instruction(ADD, 3, 5, 0, 0), store(1, NEXT_OFFSET, 3)]);
        }
        Pattern::Numbers(_) => dropping.extend([
            // Always in bounds, but the verifier requires the check.
            instruction(JUMP_IF_ABOVE, 4, 0, 5, entries as i32 - 1),
            instruction(SHIFT_LEFT, 4, 0, 0, 3),
            instruction(MOVE, 5, 1, 0, 0),
            instruction(ADD, 5, 4, 0, 0),
            load(3, 5, LIST_OFFSET),
            store(1, NEXT_OFFSET, 3),
        ]),
        Pattern::Longer(_) => {}
    }
    dropping.extend(shot);
    // Compared with r3: the frame's number, or its length in r6.
    let (unless, against) = match pattern {
        Pattern::Every(_) | Pattern::Numbers(_) => (JUMP_IF_NOT_EQUAL, 2),
        Pattern::Longer(_) => (JUMP_IF_NOT_ABOVE, 6),
    };
    let mut program = vec![
        instruction(LOAD_32, 6, 1, FRAME_LENGTH, 0),
        instruction(LOAD_CONSTANT_64, 1, BPF_PSEUDO_MAP_VALUE, 0, map),
        // Second half of the 64-bit load: the offset into the value.
        instruction(0, 0, 0, 0, 0),
        load(2, 1, SEEN_OFFSET),
        instruction(ADD_CONSTANT, 2, 0, 0, 1),
        store(1, SEEN_OFFSET, 2),
        load(3, 1, NEXT_OFFSET),
        instruction(unless, against, 3, dropping.len() as i16, 0),
    ];
    program.extend(dropping);
    program.extend([instruction(MOVE_CONSTANT, 0, 0, 0, TC_ACT_UNSPEC), instruction(EXIT, 0, 0, 0, 0)]);
    program
}

// The first members of `union bpf_attr`; the kernel treats missing ones as zero.

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
}

#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; NAME_BYTES],
    ifindex: u32,
    attach_type: u32,
}

/// Creates an array map with one value.
fn create_array_map(value_bytes: usize) -> io::Result<OwnedFd> {
    let attributes =
        MapCreate { kind: BPF_MAP_TYPE_ARRAY, key_bytes: 4, value_bytes: value_bytes as u32, entries: 1 };
    // SAFETY: the attributes hold no pointers.
    let fd = unsafe { call(BPF_MAP_CREATE, &attributes) }?;
    // SAFETY: the call succeeded and `fd` is a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn load(program_type: ProgramType, program: &[Instruction]) -> io::Result<OwnedFd> {
    let attempt = |log: &mut [u8]| {
        let license = c"Apache-2.0 OR MIT";
        let attributes = ProgramLoad {
            kind: program_type.kind,
            instruction_count: program.len() as u32,
            instructions: program.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: u32::from(!log.is_empty()),
            log_bytes: log.len() as u32,
            log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
            kernel_version: 0,
            flags: 0,
            name: program_type.name,
            ifindex: 0,
            attach_type: program_type.attach_type,
        };
        // SAFETY: the program, the terminated licence and the log are there for the length of the call with the sizes
        // given; the call reads the first two and writes the third.
        unsafe { call(BPF_PROG_LOAD, &attributes) }
    };
    let fd = attempt(&mut []).or_else(|error| {
        if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EACCES)) {
            return Err(error);
        }
        // Rejected: try again with a log, to get the reason.
        let mut log = vec![0; LOG_BYTES];
        attempt(&mut log).map_err(|error| {
            let said = CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy).unwrap_or_default();
            if said.is_empty() { error } else { io::Error::new(error.kind(), format!("{error}: {}", said.trim())) }
        })
    })?;
    // SAFETY: the call succeeded and `fd` is a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Calls `bpf(2)`.
///
/// # Safety
/// The pointers in `attributes` must be valid for the use that `command` makes of them, for the duration of the
/// call.
unsafe fn call<T>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_int> {
    let bytes = size_of::<T>() as libc::c_uint;
    // SAFETY: `attributes` is a whole structure of `bytes` bytes; what it points at is the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, UdpSocket};

    use landspeed_testkit::{in_lab_kernel, skip};

    use super::*;
    use crate::ring::{PacketKind, Ring, RingOptions, RingPacket};
    use crate::{clock, filter, netns};
    use landspeed_netlink::configure::{Discipline, LinkSettings, NewLink};
    use landspeed_netlink::{LinkId, Netlink, Qdisc};

    /// Sends `count` numbered datagrams through a filter; returns the numbers that passed, and the filter's counts.
    fn passed(pattern: &Pattern, idle: u8, count: u8) -> io::Result<(Vec<u8>, FrameCounts)> {
        netns::run_in_new_namespace(|| {
            let other = |e: landspeed_netlink::NetlinkError| io::Error::other(e.to_string());
            let mut netlink = Netlink::open().map_err(other)?;
            // Disable IPv6, which would send neighbour discovery frames.
            for scope in ["all", "default"] {
                let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
            }
            let up = LinkSettings { up: Some(true), ..LinkSettings::default() };
            let mut index = |near: &str, far: &str| -> Result<(u32, u32), landspeed_netlink::NetlinkError> {
                let ends = [near, far].map(|name| NewLink { name, ..NewLink::default() });
                netlink.add_veth(&ends[0], &ends[1])?;
                for name in [near, far] {
                    netlink.set_link(LinkId::Name(name), &up)?;
                }
                Ok((netlink.link(LinkId::Name(near))?.index, netlink.link(LinkId::Name(far))?.index))
            };
            let (a0, b0) = index("a0", "b0").map_err(other)?;
            let (c0, d0) = index("c0", "d0").map_err(other)?;
            let filter = FrameFilter::load(pattern)?;
            netlink.add_qdisc(b0, Qdisc::INGRESS, 0, &Discipline::Ingress).map_err(other)?;
            netlink.filter_ingress(b0, filter.program()).map_err(other)?;
            netlink.redirect_ingress(b0, c0).map_err(other)?;
            let there: IpAddr = "10.1.0.2".parse().expect("an address");
            netlink.add_address(a0, "10.1.0.1".parse().expect("an address"), 24).map_err(other)?;
            netlink.set_neighbour(a0, there, [2, 0, 0, 0, 0, 2]).map_err(other)?;
            let whole = &[filter::Instruction::pass(256)];
            let options = RingOptions {
                ifindex: d0,
                block_bytes: 1 << 16,
                blocks: 4,
                retire_ms: 1,
                filter: whole,
                ..Default::default()
            };
            let mut far = Ring::open(&options).map_err(|e| e.cause)?;
            far.start().map_err(|e| e.cause)?;
            let socket = UdpSocket::bind("10.1.0.1:0")?;
            for number in 0..idle + count {
                if number == idle {
                    filter.start()?;
                }
                socket.send_to(&[number; 1000], (there, 9))?;
            }
            let mut numbers = Vec::new();
            let each = |p: &RingPacket<'_>, numbers: &mut Vec<u8>| {
                if p.original_bytes == 1042 && p.kind != PacketKind::Out {
                    numbers.push(p.data[60].wrapping_sub(idle));
                }
            };
            // On a busy host the frames arrive later, from a kernel thread.
            let end_ns = clock::monotonic_ns() + 5_000_000_000;
            let arrived = |numbers: &Vec<u8>| -> io::Result<bool> {
                let FrameCounts { seen, dropped } = filter.counted()?;
                Ok(seen >= u64::from(count) && numbers.len() as u64 >= u64::from(idle) + seen - dropped)
            };
            while !arrived(&numbers)? && clock::monotonic_ns() < end_ns {
                far.drain(|p| each(p, &mut numbers));
                clock::sleep_until(clock::monotonic_ns() + 1_000_000);
            }
            far.finish(|p| each(p, &mut numbers)).map_err(|e| e.cause)?;
            Ok((numbers, filter.counted()?))
        })?
    }

    fn hold(pattern: &Pattern, dropped: &[u8]) {
        match passed(pattern, 0, 20) {
            Ok((passed, counted)) => {
                let expected: Vec<u8> = (0..20).filter(|number| !dropped.contains(&(number + 1))).collect();
                assert_eq!(passed, expected);
                assert_eq!(counted, FrameCounts { seen: 20, dropped: dropped.len() as u64 });
            }
            Err(why) => in_lab_kernel!("no eBPF filters here: {why}"),
        }
    }

    #[test]
    fn every_nth_frame_is_dropped_and_counted() {
        hold(&Pattern::Every(7), &[7, 14]);
        hold(&Pattern::Every(1), &(1..=20).collect::<Vec<_>>());
        hold(&Pattern::Every(21), &[]);
    }

    #[test]
    fn numbered_frames_are_dropped_in_any_list_order() {
        hold(&Pattern::Numbers(vec![20, 3, 4, 3, 0, 21]), &[3, 4, 20]);
        hold(&Pattern::Numbers(vec![1]), &[1]);
        hold(&Pattern::Numbers(vec![]), &[]);
    }

    #[test]
    fn frames_longer_than_the_limit_are_dropped() {
        // Datagrams with 1000 bytes of payload are IP packets of 1028 bytes.
        hold(&Pattern::Longer(1027), &(1..=20).collect::<Vec<_>>());
        hold(&Pattern::Longer(1028), &[]);
    }

    #[test]
    fn filter_is_inactive_before_start() {
        match passed(&Pattern::Numbers(vec![2]), 10, 3) {
            Ok((passed, counted)) => {
                assert_eq!(passed[10..], [0, 2]);
                assert_eq!(counted, FrameCounts { seen: 3, dropped: 1 });
            }
            Err(why) => in_lab_kernel!("no eBPF filters here: {why}"),
        }
    }

    #[test]
    fn too_many_frame_numbers_are_rejected() {
        let numbers = Pattern::Numbers((1..=MAX_LIST_LENGTH as u64 + 1).collect());
        assert_eq!(FrameFilter::load(&numbers).expect_err("too many").kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn rejected_programs_return_the_verifier_log() {
        match load(FILTER, &[instruction(MOVE, 0, 7, 0, 0), instruction(EXIT, 0, 0, 0, 0)]) {
            Err(error) if error.raw_os_error().is_some() => skip!("no eBPF here: {error}"),
            refused => assert!(refused.expect_err("r7 was never set").to_string().contains("R7")),
        }
    }
}
