use std::path::PathBuf;

use landspeed_testkit::{in_lab_kernel, skip};

use super::*;

const BPF_PROG_TEST_RUN: libc::c_int = 10;
/// Index of the loopback interface, which the kernel uses for test runs of a program.
const LOOPBACK: u32 = 1;
/// Size of the test packet as counted by the program, bytes.
const FRAME_BYTES: usize = 1514;

#[repr(C)]
struct TestRunAttributes {
    program: u32,
    answer: u32,
    in_bytes: u32,
    out_bytes: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration_ns: u32,
    context_in_bytes: u32,
    context_out_bytes: u32,
    context_in: u64,
    context_out: u64,
}

/// Runs a program once on a frame with the given departure time and GSO segments. Returns its return value and
/// the packet's departure time and priority.
fn run(program: &OwnedFd, time: u64, segments: u32) -> io::Result<(u32, u64, u32)> {
    let mut frame = [0_u8; FRAME_BYTES];
    // IPv4 without options, TCP: required for a GSO packet.
    frame[12] = 8;
    frame[14] = 0x45;
    frame[23] = 6;
    let mut context = [0_u8; 192];
    context[SKB_TIME as usize..][..8].copy_from_slice(&time.to_ne_bytes());
    context[SKB_SEGMENTS as usize..][..4].copy_from_slice(&segments.to_ne_bytes());
    let mut out = [0_u8; 192];
    let mut trial = TestRunAttributes {
        program: program.as_raw_fd() as u32,
        answer: 0,
        in_bytes: FRAME_BYTES as u32,
        out_bytes: 0,
        data_in: frame.as_ptr() as u64,
        data_out: 0,
        repeat: 1,
        duration_ns: 0,
        context_in_bytes: context.len() as u32,
        context_out_bytes: out.len() as u32,
        context_in: context.as_ptr() as u64,
        context_out: out.as_mut_ptr() as u64,
    };
    // SAFETY: the frame and both contexts are as long as the attributes say and outlive the call.
    unsafe { call_mut(BPF_PROG_TEST_RUN, &mut trial) }?;
    let time = u64::from_ne_bytes(out[SKB_TIME as usize..][..8].try_into().expect("eight bytes"));
    let priority = u32::from_ne_bytes(out[SKB_PRIORITY as usize..][..4].try_into().expect("four bytes"));
    Ok((trial.answer, time, priority))
}

fn make_program(ifindex: u32, by: LimitMethod) -> Option<(OwnedFd, OwnedFd)> {
    make(7, ifindex, by)
        .inspect_err(|why| skip::record(&format!("no eBPF programs at control groups here: {why}")))
        .ok()
}

#[test]
fn packets_depart_at_the_rate_or_are_dropped() {
    // A tenth of a second per packet.
    let Some((_map, program)) = make_program(LOOPBACK, LimitMethod::Departure(FRAME_BYTES as u64 * 10)) else {
        return;
    };
    let mut times = Vec::new();
    let mut dropped = 0;
    for _ in 0..20 {
        match run(&program, 0, 0).expect("the program runs") {
            (1, time, _) => times.push(time),
            (2, _, _) => dropped += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 100_000_000), "{times:?}");
    assert!(times.len() >= 5 && dropped > 0, "{} passed, {dropped} dropped", times.len());
}

#[test]
fn later_departure_times_are_kept() {
    let Some((_map, program)) = make_program(LOOPBACK, LimitMethod::Departure(FRAME_BYTES as u64)) else { return };
    let late = crate::clock::monotonic_ns() + 3_600_000_000_000;
    assert_eq!(run(&program, late, 0).expect("it runs").1, late);
}

#[test]
fn packets_on_other_interfaces_are_unchanged() {
    for by in [LimitMethod::Departure(1), LimitMethod::Class(0x1_0002)] {
        let Some((_map, program)) = make_program(LOOPBACK + 1, by) else { return };
        assert_eq!(run(&program, 0, 0).expect("it runs"), (1, 0, 0));
    }
}

#[test]
fn class_is_set_as_packet_priority() {
    let Some((_map, program)) = make_program(LOOPBACK, LimitMethod::Class(0x8001_0002)) else { return };
    assert_eq!(run(&program, 0, 0).expect("it runs"), (1, 0, 0x8001_0002));
}

/// A cgroup that is removed after the test.
struct Group(PathBuf);

impl Group {
    fn new() -> io::Result<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mounts")?;
        let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mount = lines.find(|words| words.get(2) == Some(&"cgroup2")).ok_or(io::ErrorKind::NotFound)?;
        let path = Path::new(mount[1]).join(format!("lstest-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn limits_of_a_group_are_listed_and_removed() {
    let group = match Group::new() {
        Ok(group) => group,
        Err(why) => in_lab_kernel!("no control groups of version 2 here: {why}"),
    };
    let (first, second) = (LimitMethod::Departure(1_125_000_000), LimitMethod::Class(0x1_0002));
    for (ifindex, by) in [(2, first), (3, second)] {
        if let Err(why) = limit(&group.0, 7, ifindex, by) {
            in_lab_kernel!("no eBPF programs at control groups here: {why}");
        }
    }
    let found = limits(&group.0).expect("they are there");
    let reported: Vec<_> =
        found.iter().map(|limit| (limit.namespace, limit.ifindex, limit.by, limit.dropped)).collect();
    assert_eq!(reported, [(7, 2, first, 0), (7, 3, second, 0)]);
    remove_limit(&group.0, &found[0]).expect("it is lifted");
    assert_eq!(limits(&group.0).expect("one is left"), found[1..]);
    remove_limit(&group.0, &found[1]).expect("it is lifted");
    assert_eq!(limits(&group.0).expect("none is left"), []);
    assert!(remove_limit(&group.0, &found[1]).is_err(), "it is gone");
}
