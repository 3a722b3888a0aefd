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
const POLL_INTERVAL_NS: u64 = 2_000_000;

/// Result of a slice: packets per second, and busy cores.
struct Slice {
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
            pair[usize::from(hooked)] = slice(sources, subjects, netlink, hooked, &mut each);
        }
        if let [Some(without), Some(with)] = pair {
            on.push(with);
            off.push(without);
        }
    }
    for source in sources.iter_mut() {
        let _ = source.ring.detach();
    }
    let _ = merge::drain(sources, u64::MAX, |_, _, _| true);
    summary(&on, &off)
}

fn slice(
    sources: &mut [Source],
    subjects: &[Subject],
    netlink: &mut Netlink,
    hooked: bool,
    each: &mut impl FnMut(&landspeed_sys::ring::RingPacket<'_>),
) -> Option<Slice> {
    for source in sources.iter_mut() {
        if hooked { source.ring.start() } else { source.ring.detach() }.ok()?;
    }
    let mut read_until = |deadline_ns: u64| {
        while monotonic_ns() < deadline_ns {
            merge::drain(sources, u64::MAX, |_, _, packet| {
                each(packet);
                true
            });
            sleep_until((monotonic_ns() + POLL_INTERVAL_NS).min(deadline_ns));
        }
    };
    read_until(monotonic_ns() + SETTLE_NS);
    let (packets, begun_ns, before) = (total_packets(netlink, subjects)?, monotonic_ns(), cpu::poll()?);
    read_until(begun_ns + SLICE_NS);
    let (after, ended_ns, packets) =
        (cpu::poll()?, monotonic_ns(), total_packets(netlink, subjects)?.saturating_sub(packets));
    let pps = packets as f64 / ((ended_ns - begun_ns) as f64 / 1e9);
    Some(Slice { pps, busy: cpu::between(before, after)?.busy_cores })
}

fn total_packets(netlink: &mut Netlink, subjects: &[Subject]) -> Option<u64> {
    subjects.iter().map(|subject| subject::traffic(netlink, subject.index).map(|traffic| traffic.packets)).sum()
}

fn summary(on: &[Slice], off: &[Slice]) -> TapSlices {
    let figures = |turns: &[Slice]| turns.iter().map(|slice| slice.pps).collect::<Vec<_>>();
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
