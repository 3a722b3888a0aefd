//! Rate limit for a control group (v2) on an interface: an eBPF program at the cgroup's egress hook selects the
//! group's packets, and a queueing discipline delays them.
//!
//! Two methods, because kernels differ. With [`LimitMethod::Departure`] the program sets each packet's departure time
//! (EDT), and `fq` on every queue of the interface holds the packet until then; no queue is shared, and `mq`
//! stays. With [`LimitMethod::Class`] it sets the packet's class in an `htb` at the interface's root. No landspeed process
//! needs to run: the program exists until the group is removed or it is detached with [`remove_limit`], and [`limits`]
//! reads the settings back.
//!
//! Needs Linux 5.8 (`bpf_ktime_get_ns` for programs of any licence), `CONFIG_CGROUP_BPF`, `CAP_BPF` and
//! `CAP_NET_ADMIN`.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use super::{
    ADD, ADD_CONSTANT, BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_PSEUDO_MAP_VALUE, EXIT, Element, Instruction,
    LOAD_64, LOAD_CONSTANT_64, MOVE, MOVE_CONSTANT, NAME_BYTES, ProgramType, STORE_64, call, create_array_map,
    instruction, load,
};

// linux/bpf.h
const BPF_PROG_ATTACH: libc::c_int = 8;
const BPF_PROG_DETACH: libc::c_int = 9;
const BPF_PROG_GET_FD_BY_ID: libc::c_int = 13;
const BPF_MAP_GET_FD_BY_ID: libc::c_int = 14;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const BPF_PROG_QUERY: libc::c_int = 16;
const BPF_PROG_TYPE_CGROUP_SKB: u32 = 8;
const BPF_CGROUP_INET_EGRESS: u32 = 1;
const BPF_F_ALLOW_MULTI: u32 = 2;
pub(super) const BPF_FUNC_KTIME_GET_NS: i32 = 5;
/// Maximum number of a group's programs to read; the kernel allows 64.
const MAX_PROGRAMS: usize = 64;

// Offsets in `struct __sk_buff`.
const SKB_LENGTH: i16 = 0;
const SKB_PRIORITY: i16 = 32;
const SKB_IFINDEX: i16 = 40;
pub(super) const SKB_TIME: i16 = 152;
const SKB_SEGMENTS: i16 = 164;

// Opcodes not used by the frame filter.
const LOAD_32: u8 = 0x61;
const STORE_32: u8 = 0x63;
const ATOMIC_ADD: u8 = 0xdb;
const MULTIPLY_CONSTANT: u8 = 0x27;
const DIVIDE: u8 = 0x3f;
pub(super) const CALL: u8 = 0x85;
const JUMP_IF_NOT_CONSTANT: u8 = 0x55;
const JUMP_IF_AT_LEAST: u8 = 0x3d;
const JUMP_IF_MORE: u8 = 0x2d;

const EGRESS_PROGRAM: ProgramType =
    ProgramType { kind: BPF_PROG_TYPE_CGROUP_SKB, attach_type: BPF_CGROUP_INET_EGRESS, name: *b"landspeed_rate\0\0" };

// Return values of a cgroup egress program (include/linux/bpf-cgroup.h): pass; drop and notify TCP of
// congestion.
const PASS: i32 = 1;
const DROP_AND_SLOW_DOWN: i32 = 2;

/// Number of words in the map's only value.
const WORDS: usize = 8;
/// Identifies landspeed's maps and the version of their layout.
const MAGIC_VALUE: u64 = 0x6c61_6e64_7261_7431;
const MAGIC: usize = 0;
const NAMESPACE: usize = 1;
const IFINDEX: usize = 2;
const RATE: usize = 3;
const CLASS: usize = 4;
const NEXT: usize = 5;
const DROPPED: usize = 6;

/// Header bytes on the wire per frame of a GSO packet: Ethernet, IPv4, TCP with timestamps. The kernel's own
/// accounting (`qdisc_pkt_len_init`) adds the same. IPv6 has 20 bytes more: 1.3 % of a frame of 1514 bytes.
const HEADERS_BYTES: i32 = 14 + 20 + 32;
const ETHERNET_BYTES: i32 = 14;
/// Maximum delay: packets that would wait longer are dropped, which makes TCP slow down. Well below the 10 s
/// after which `fq` itself drops.
const MAX_DELAY_NS: i32 = 500_000_000;

/// Method of limiting a group's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitMethod {
    /// Departure times at this rate, bytes/s, enforced by `fq`.
    Departure(u64),
    /// An `htb` class, which has the rate.
    Class(u32),
}

/// An active limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Kernel id of the program.
    pub program: u32,
    /// Index of the limited interface.
    pub ifindex: u32,
    /// Network namespace of that interface (the inode of `/proc/self/ns/net`).
    pub namespace: u64,
    /// Method of the limit.
    pub by: LimitMethod,
    /// Packets dropped because they would have exceeded the maximum delay.
    pub dropped: u64,
}

/// Returns the limits of a group, given by its cgroup directory; programs of others are skipped.
pub fn limits(group: &Path) -> io::Result<Vec<Limit>> {
    let directory = File::open(group)?;
    let mut found = Vec::new();
    for program in attached(&directory)? {
        // The program was removed in the meantime.
        let Ok((_, maps, name)) = open_program(program) else { continue };
        if name != EGRESS_PROGRAM.name {
            continue;
        }
        let Some(map) = maps.first() else { continue };
        let Some(words) = value(*map)? else { continue };
        let by = match words[CLASS] {
            0 => LimitMethod::Departure(words[RATE]),
            class => LimitMethod::Class(class as u32),
        };
        let (ifindex, namespace) = (words[IFINDEX] as u32, words[NAMESPACE]);
        found.push(Limit { program, ifindex, namespace, by, dropped: words[DROPPED] });
    }
    Ok(found)
}

/// Limits the rate of a group on an interface, in addition to other attached programs. An existing limit stays;
/// remove it with `remove_limit` afterwards, so that the group is never unlimited.
pub fn limit(group: &Path, namespace: u64, ifindex: u32, by: LimitMethod) -> io::Result<()> {
    let directory = File::open(group)?;
    let (map, program) = make(namespace, ifindex, by)?;
    drop(map);
    let attributes = Attach::new(&directory, program.as_raw_fd(), BPF_F_ALLOW_MULTI);
    // SAFETY: the attributes hold no pointers.
    unsafe { call(BPF_PROG_ATTACH, &attributes) }.map(drop)
}

/// Removes a limit from a group.
pub fn remove_limit(group: &Path, limit: &Limit) -> io::Result<()> {
    let directory = File::open(group)?;
    let (program, _, name) = open_program(limit.program)?;
    if name != EGRESS_PROGRAM.name {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the program is another one now"));
    }
    let attributes = Attach::new(&directory, program.as_raw_fd(), 0);
    // SAFETY: the attributes hold no pointers.
    unsafe { call(BPF_PROG_DETACH, &attributes) }.map(drop)
}

/// Creates the program and its map.
fn make(namespace: u64, ifindex: u32, by: LimitMethod) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut words = [0_u64; WORDS];
    words[MAGIC] = MAGIC_VALUE;
    words[NAMESPACE] = namespace;
    words[IFINDEX] = ifindex.into();
    let (rate, class) = match by {
        LimitMethod::Departure(rate) => (rate, 0),
        LimitMethod::Class(class) => (0, class.into()),
    };
    if rate == 0 && class == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a limit needs a rate or a class"));
    }
    (words[RATE], words[CLASS]) = (rate, class);
    let map = create_array_map(WORDS * 8)?;
    let key = 0_u32;
    let attributes = Element {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: (&raw const key) as u64,
        value: words.as_ptr() as u64,
        flags: 0,
    };
    // SAFETY: the map's key is four bytes and its value as long as `words`; both outlive the call, which only reads them.
    unsafe { call(BPF_MAP_UPDATE_ELEM, &attributes) }?;
    let program = load(EGRESS_PROGRAM, &instructions(ifindex, by, map.as_raw_fd()))?;
    Ok((map, program))
}

/// Registers: r6: the packet; r7: its transmission time at the rate; r8: the map's value; r9: now; r3: departure
/// time.
fn instructions(ifindex: u32, by: LimitMethod, map: libc::c_int) -> Vec<Instruction> {
    let constant = |code, register, value| instruction(code, register, 0, 0, value);
    let between = |code, to, from| instruction(code, to, from, 0, 0);
    let pass = [constant(MOVE_CONSTANT, 0, PASS), constant(EXIT, 0, 0)];
    let word = |word: usize| word as i16 * 8;
    let mine = match by {
        LimitMethod::Class(class) => {
            vec![constant(MOVE_CONSTANT, 2, class as i32), instruction(STORE_32, 6, 2, SKB_PRIORITY, 0)]
        }
        LimitMethod::Departure(_) => vec![
            instruction(LOAD_32, 7, 6, SKB_LENGTH, 0),
            // 0 segments: not a GSO packet, so one frame.
            instruction(LOAD_32, 3, 6, SKB_SEGMENTS, 0),
            instruction(JUMP_IF_NOT_CONSTANT, 3, 0, 1, 0),
            constant(MOVE_CONSTANT, 3, 1),
            // The length already includes the IP and TCP headers of one frame.
            constant(MULTIPLY_CONSTANT, 3, HEADERS_BYTES),
            between(ADD, 7, 3),
            constant(ADD_CONSTANT, 7, ETHERNET_BYTES - HEADERS_BYTES),
            constant(MULTIPLY_CONSTANT, 7, 1_000_000_000),
            instruction(LOAD_64, 3, 8, word(RATE), 0),
            between(DIVIDE, 7, 3),
            constant(CALL, 0, BPF_FUNC_KTIME_GET_NS),
            between(MOVE, 9, 0),
            instruction(LOAD_64, 3, 8, word(NEXT), 0),
            // Queue empty: departs now. If two CPUs find this at the same time, the transmission time of one packet
            // is not counted.
            instruction(JUMP_IF_AT_LEAST, 3, 9, 2, 0),
            between(MOVE, 3, 9),
            instruction(STORE_64, 8, 9, word(NEXT), 0),
            between(MOVE, 4, 9),
            constant(ADD_CONSTANT, 4, MAX_DELAY_NS),
            instruction(JUMP_IF_MORE, 3, 4, 6, 0),
            instruction(ATOMIC_ADD, 8, 7, word(NEXT), 0),
            // Keep a later departure time set by TCP pacing.
            instruction(LOAD_64, 5, 6, SKB_TIME, 0),
            instruction(JUMP_IF_AT_LEAST, 5, 3, 1, 0),
            instruction(STORE_64, 6, 3, SKB_TIME, 0),
            pass[0],
            pass[1],
            constant(MOVE_CONSTANT, 5, 1),
            instruction(ATOMIC_ADD, 8, 5, word(DROPPED), 0),
            constant(MOVE_CONSTANT, 0, DROP_AND_SLOW_DOWN),
            constant(EXIT, 0, 0),
        ],
    };
    let mut program = vec![
        between(MOVE, 6, 1),
        // Programs that do not use the map also reference it, because limits are identified by their map. The
        // second instruction is the offset into the value.
        instruction(LOAD_CONSTANT_64, 8, BPF_PSEUDO_MAP_VALUE, 0, map),
        instruction(0, 0, 0, 0, 0),
        instruction(LOAD_32, 2, 6, SKB_IFINDEX, 0),
        instruction(JUMP_IF_NOT_CONSTANT, 2, 0, mine.len() as i16, ifindex as i32),
    ];
    program.extend(mine);
    program.extend(pass);
    program
}

#[repr(C)]
struct Attach {
    group: u32,
    program: u32,
    attach_type: u32,
    flags: u32,
}

impl Attach {
    fn new(group: &File, program: libc::c_int, flags: u32) -> Self {
        Self { group: group.as_raw_fd() as u32, program: program as u32, attach_type: BPF_CGROUP_INET_EGRESS, flags }
    }
}

#[repr(C)]
struct Query {
    group: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    programs: u64,
    count: u32,
    padding: u32,
}

#[repr(C)]
struct ById {
    number: u32,
    next: u32,
    flags: u32,
}

#[repr(C)]
struct InfoByFd {
    fd: u32,
    bytes: u32,
    info: u64,
}

/// The first members of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Default)]
struct ProgramInfo {
    kind: u32,
    number: u32,
    tag: [u8; 8],
    jited_bytes: u32,
    translated_bytes: u32,
    jited: u64,
    translated: u64,
    loaded_ns: u64,
    user: u32,
    map_count: u32,
    maps: u64,
    name: [u8; NAME_BYTES],
}

/// The first members of `struct bpf_map_info`.
#[repr(C)]
#[derive(Default)]
struct MapInfo {
    kind: u32,
    number: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

/// Returns the ids of the programs at a group's egress hook.
fn attached(group: &File) -> io::Result<Vec<u32>> {
    let mut numbers = [0_u32; MAX_PROGRAMS];
    let mut query = Query {
        group: group.as_raw_fd() as u32,
        attach_type: BPF_CGROUP_INET_EGRESS,
        query_flags: 0,
        attach_flags: 0,
        programs: numbers.as_mut_ptr() as u64,
        count: MAX_PROGRAMS as u32,
        padding: 0,
    };
    // SAFETY: the list has room for `count` numbers and outlives the call, which writes into it and into the attributes.
    unsafe { call_mut(BPF_PROG_QUERY, &mut query) }?;
    Ok(numbers[..(query.count as usize).min(MAX_PROGRAMS)].to_vec())
}

/// Opens a program by id; returns it with the ids of its maps (at most four) and its name.
fn open_program(number: u32) -> io::Result<(OwnedFd, Vec<u32>, [u8; NAME_BYTES])> {
    let program = open(BPF_PROG_GET_FD_BY_ID, number)?;
    let mut maps = [0_u32; 4];
    let mut info =
        ProgramInfo { map_count: maps.len() as u32, maps: maps.as_mut_ptr() as u64, ..ProgramInfo::default() };
    info_of(&program, &mut info)?;
    let count = (info.map_count as usize).min(maps.len());
    Ok((program, maps[..count].to_vec(), info.name))
}

/// Reads the value of one of landspeed's maps; `None` for other maps.
fn value(number: u32) -> io::Result<Option<[u64; WORDS]>> {
    let map = open(BPF_MAP_GET_FD_BY_ID, number)?;
    let mut info = MapInfo::default();
    info_of(&map, &mut info)?;
    let mut words = [0_u64; WORDS];
    if (info.key_bytes, info.value_bytes) != (4, size_of_val(&words) as u32) {
        return Ok(None);
    }
    let key = 0_u32;
    let attributes = Element {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: (&raw const key) as u64,
        value: words.as_mut_ptr() as u64,
        flags: 0,
    };
    // SAFETY: the map's key is four bytes and its value as long as `words`, which was just asked; both outlive the call,
    // which reads the one and writes the other. The descriptor is open, so the number cannot mean another map meanwhile.
    unsafe { call(BPF_MAP_LOOKUP_ELEM, &attributes) }?;
    Ok((words[MAGIC] == MAGIC_VALUE).then_some(words))
}

fn open(command: libc::c_int, number: u32) -> io::Result<OwnedFd> {
    // SAFETY: the attributes hold no pointers.
    let fd = unsafe { call(command, &ById { number, next: 0, flags: 0 }) }?;
    // SAFETY: the call succeeded and `fd` is a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reads the kernel's information on a program or a map; `T` is the beginning of the structure for that type of
/// object.
fn info_of<T>(object: &OwnedFd, info: &mut T) -> io::Result<()> {
    let bytes = size_of::<T>() as u32;
    let attributes = InfoByFd { fd: object.as_raw_fd() as u32, bytes, info: std::ptr::from_mut(info) as u64 };
    // SAFETY: the kernel writes at most `bytes` bytes to `info`, a structure of integers of that size; a list it names has
    // room for as many entries as it says.
    unsafe { call(BPF_OBJ_GET_INFO_BY_FD, &attributes) }.map(drop)
}

/// Like [`call`], for commands that also write to the attributes.
///
/// # Safety
/// As for [`call`]; the attributes may be overwritten.
unsafe fn call_mut<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_int> {
    let bytes = size_of::<T>() as libc::c_uint;
    // SAFETY: `attributes` is a whole structure of `bytes` bytes that the kernel may write; the rest is the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

#[cfg(test)]
mod tests;
