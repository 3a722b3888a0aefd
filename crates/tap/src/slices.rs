//! Effect of the tap on traffic: the tap is attached and detached in short slices, in pairs of random order,
//! while the interfaces' counters count packets. Other changes affect both kinds of slices alike; the
//! confidence interval shows the remaining randomness.

use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_model::TapSlices;
use landspeed_netlink::Netlink;
use landspeed_stats::{Contrast, median};
use landspeed_sys::clock::{monotonic_ns, sleep_until};
use landspeed_sys::random;

use crate::cpu;
use crate::merge::{self, Source};
use crate::subject::{self, Subject};

const SLICE_NS: u64 = 200_000_000;
/// Settling time between switching and counting, nanoseconds.
const SETTLE_NS: u64 = 20_000_000;
const NAP_NS: u64 = 2_000_000;

/// Result of a slice: packets per second, and busy cores.
struct Turn {
    pps: f64,
    busy: f64,
}

/// Measures for `total_ns`; leaves the rings detached and empty. `each` is the work per packet.
pub fn measure(
    sources: &mut [Source],
    subjects: &[Subject],
    netlink: &mut Netlink,
    total_ns: u64,
    stop: &AtomicBool,
    mut each: impl FnMut(&landspeed_sys::ring::RingPacket<'_>),
) -> TapSlices {
    let pairs = (total_ns / (2 * (SLICE_NS + SETTLE_NS))).max(1);
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let first = random::bytes::<1>().map_or(0, |[byte]| byte & 1) == 1;
        let mut pair = [None, None];
        for hooked in [first, !first] {
            pair[usize::from(hooked)] = turn(sources, subjects, netlink, hooked, &mut each);
        }
        if let [Some(without), Some(with)] = pair {
            on.push(with);
            off.push(without);
        }
    }
    for source in sources.iter_mut() {
        let _ = source.ring.unhook();
    }
    let _ = merge::drain(sources, u64::MAX, |_, _, _| true);
    summary(&on, &off)
}

fn turn(
    sources: &mut [Source],
    subjects: &[Subject],
    netlink: &mut Netlink,
    hooked: bool,
    each: &mut impl FnMut(&landspeed_sys::ring::RingPacket<'_>),
) -> Option<Turn> {
    for source in sources.iter_mut() {
        if hooked { source.ring.start() } else { source.ring.unhook() }.ok()?;
    }
    let mut read_until = |deadline_ns: u64| {
        while monotonic_ns() < deadline_ns {
            merge::drain(sources, u64::MAX, |_, _, packet| {
                each(packet);
                true
            });
            sleep_until((monotonic_ns() + NAP_NS).min(deadline_ns));
        }
    };
    read_until(monotonic_ns() + SETTLE_NS);
    let (packets, begun_ns, before) = (passed(netlink, subjects)?, monotonic_ns(), cpu::look()?);
    read_until(begun_ns + SLICE_NS);
    let (after, ended_ns, packets) =
        (cpu::look()?, monotonic_ns(), passed(netlink, subjects)?.saturating_sub(packets));
    let pps = packets as f64 / ((ended_ns - begun_ns) as f64 / 1e9);
    Some(Turn { pps, busy: cpu::between(before, after)?.busy_cores })
}

fn passed(netlink: &mut Netlink, subjects: &[Subject]) -> Option<u64> {
    subjects.iter().map(|subject| subject::traffic(netlink, subject.index).map(|traffic| traffic.packets)).sum()
}

fn summary(on: &[Turn], off: &[Turn]) -> TapSlices {
    let figures = |turns: &[Turn]| turns.iter().map(|turn| turn.pps).collect::<Vec<_>>();
    let pairs = on.iter().zip(off);
    let ratios: Vec<f64> = pairs.clone().filter(|(_, off)| off.pps > 0.0).map(|(on, off)| on.pps / off.pps).collect();
    let more: Vec<f64> = pairs.map(|(on, off)| on.busy - off.busy).collect();
    let interval = |values: &[f64]| Contrast::of_pairs(values)?.interval(0.95).ok();
    TapSlices {
        pairs: on.len() as u32,
        slice_ns: SLICE_NS,
        on_pps: median(&figures(on)).unwrap_or(0.0),
        off_pps: median(&figures(off)).unwrap_or(0.0),
        rate_ratio: median(&ratios),
        rate_ratio_ci: interval(&ratios),
        busy_cores_more: median(&more),
        busy_cores_more_ci: interval(&more),
    }
}
