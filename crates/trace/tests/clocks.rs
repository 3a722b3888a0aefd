//! Two clocks that drift and step: the reported values, and the delay corrected for them.

use crate::taps;
use etherparse::PacketBuilder;
use landspeed_model::{BuildInfo, TraceDocument, TracePath};
use landspeed_stats::SplitMix64;
use landspeed_trace::{Analysis, Limits, Pairing, Tap};
use landspeed_wire::LinkType;
use landspeed_wire::capture::Frame;
use proptest::prelude::*;

const MS: i64 = 1_000_000;
const BEGIN: i64 = 1_000_000 * MS;

/// Forward data and reverse ACKs, at regular intervals.
#[derive(Debug, Clone)]
struct TrafficPattern {
    packets: u32,
    interval_ns: i64,
    one_way_ns: i64,
    offset_ns: i64,
    drift_ppm: f64,
    /// Step of the second clock: time as a share of the run, and size in nanoseconds.
    step: Option<(f64, i64)>,
    /// Queueing delay of each packet by its number, nanoseconds: forward, reverse.
    queue: fn(u32, u32) -> [i64; 2],
}

const QUIET: TrafficPattern = TrafficPattern {
    packets: 1_000,
    interval_ns: 20 * MS,
    one_way_ns: 10 * MS,
    offset_ns: 0,
    drift_ppm: 0.0,
    step: None,
    queue: |_, _| [0, 0],
};

fn packet(forward: bool, number: u32) -> Vec<u8> {
    let (near, far) = (([10, 0, 0, 1], 40_000), ([10, 0, 0, 2], 5_001));
    let (from, to) = if forward { (near, far) } else { (far, near) };
    let mut frame = Vec::new();
    let (sequence, ack, length) = if forward { (number * 1000, 1, 1000) } else { (1, number * 1000, 0) };
    let built = PacketBuilder::ipv4(from.0, to.0, 64).tcp(from.1, to.1, sequence, 1000).ack(ack);
    built.write(&mut frame, &vec![0; length]).expect("memory");
    frame
}

impl TrafficPattern {
    fn second_clock(&self, time_ns: i64) -> i64 {
        let since_ns = time_ns - BEGIN;
        let span_ns = i64::from(self.packets) * self.interval_ns;
        let stepped = self.step.filter(|(share, _)| since_ns as f64 > share * span_ns as f64).map_or(0, |(_, by)| by);
        time_ns + self.offset_ns + (since_ns as f64 * self.drift_ppm / 1e6).round() as i64 + stepped
    }

    fn document(&self) -> TraceDocument {
        let mut taps = [Vec::new(), Vec::new()];
        for number in 0..self.packets {
            let sent_ns = BEGIN + i64::from(number) * self.interval_ns;
            let [there, back] = (self.queue)(number, self.packets);
            let arrived_ns = sent_ns + self.one_way_ns + there;
            taps[0].push((sent_ns, true, number));
            taps[1].push((self.second_clock(arrived_ns), true, number));
            taps[1].push((self.second_clock(arrived_ns), false, number));
            taps[0].push((arrived_ns + self.one_way_ns + back, false, number));
        }
        // Only the first tap needs sorting: at the second the order is that of the packets, although its clock may
        // step back.
        taps[0].sort_unstable();
        taps::document(&taps, false, |&(time_ns, forward, number)| {
            let bytes = packet(forward, number);
            let length = bytes.len() as u32;
            (time_ns as u64, bytes, length)
        })
    }

    fn path(&self) -> TracePath {
        self.document().path.remove(0)
    }
}

/// Delays like those of a queue that is mostly empty, and full for a while in the middle of the run.
fn busy(number: u32, of: u32) -> [i64; 2] {
    let noise = |salt: u32| SplitMix64::new((number ^ salt).into()).below(3 * MS as u64) as i64;
    let hump = if (of / 3..of / 2).contains(&number) { 40 * MS } else { 0 };
    [noise(7) + hump, noise(1_234_567) / 4]
}

proptest! {
    #![proptest_config(crate::cases(40))]

    #[test]
    fn a_drift_is_measured_and_removed(drift_ppm in -200.0_f64..200.0, offset_ns in -1_000_000_000_i64..1_000_000_000, full: bool) {
        let talk = TrafficPattern { drift_ppm, offset_ns, queue: if full { busy } else { QUIET.queue }, ..QUIET };
        let path = talk.path();
        let (told, unsure) = path.drift_ppm.zip(path.drift_uncertainty_ppm).expect("both ways passed");
        prop_assert!((told - drift_ppm).abs() <= 3.0 * unsure + 0.05, "{told} ± {unsure} for {drift_ppm}");
        prop_assert!(unsure < 20.0, "± {unsure} over 20 s");
        prop_assert_eq!(path.clock_steps.len(), 0);
        prop_assert_eq!((path.forward.lost_data, path.reverse.lost_other), (0, 0));
        // An RTT of 20 ms; a drift of 200 ppm would hide 4 ms of it over these 20 s.
        let round_trip = path.round_trip_ns.expect("one") as i64;
        prop_assert!((round_trip - 20 * MS).abs() < MS / 4, "{round_trip}");
        let most = path.forward.delay_variation_max_ns.expect("one") as i64;
        let waits = || (0..talk.packets).map(|number| (talk.queue)(number, talk.packets)[0]);
        let truth = waits().max().expect("packets") - waits().min().expect("packets");
        prop_assert!((most - truth).abs() < MS / 2, "{most}");
    }

    #[test]
    fn a_step_is_measured_and_removed(
        drift_ppm in -50.0_f64..50.0, share in 0.2_f64..0.8, step_ns in prop_oneof![-400 * MS..-2 * MS, 2 * MS..400 * MS],
    ) {
        let talk = TrafficPattern { drift_ppm, step: Some((share, step_ns)), ..QUIET };
        let path = talk.path();
        prop_assert_eq!(path.clock_steps.len(), 1, "{:?}", path.clock_steps);
        let told = path.clock_steps[0];
        prop_assert!((told.step_ns - step_ns).abs() < MS / 10, "{told:?} for {step_ns}");
        let when = (share * 20_000.0 * MS as f64) as i64;
        prop_assert!((told.time_ns - when).abs() < 300 * MS, "{told:?} for {when}");
        prop_assert!((path.drift_ppm.expect("both ways passed") - drift_ppm).abs() < 2.0);
        prop_assert!(path.forward.delay_variation_max_ns.expect("one") < MS as u64 / 2);
        prop_assert_eq!((path.forward.lost_data, path.reverse.lost_other), (0, 0));
    }
}

#[test]
fn a_filling_queue_is_not_a_drift() {
    let talk = TrafficPattern { queue: |number, of| [i64::from(number) * 60 * MS / i64::from(of), 0], ..QUIET };
    let path = talk.path();
    let drift = path.drift_ppm.expect("both ways passed");
    assert!(drift.abs() < 0.1, "{drift} ppm");
    assert_eq!(path.forward.delay_variation_max_ns, Some(59_940_000));
    let delay = &path.forward.delay;
    assert_eq!(delay.packets.iter().sum::<u64>(), 1_000);
    let quarter = delay.p50_ns.len() / 4;
    let at = |bin: usize| delay.p50_ns[bin].expect("packets") as f64 / MS as f64;
    assert!((at(quarter) - 15.0).abs() < 1.0 && (at(3 * quarter) - 45.0).abs() < 1.0, "{delay:?}");
    assert!(path.reverse.delay_variation_max_ns == Some(0));
}

#[test]
fn one_direction_has_no_drift() {
    let mut pairing = Pairing::new(false);
    for number in 0..100 {
        for tap in [Tap::First, Tap::Second] {
            let bytes = packet(true, number);
            let time_ns = (BEGIN + i64::from(number) * MS) as u64 + 500 * u64::from(tap == Tap::Second);
            let (original, data) = (bytes.len() as u32, &bytes[..]);
            pairing.frame(tap, &Frame { interface: 0, link: LinkType::RAW, time_ns, original, data });
        }
    }
    let mut document =
        Analysis::new(Limits::default()).finish(BuildInfo::default(), Vec::new(), String::new(), "", None, |_| None);
    let second = document.clone();
    pairing.finish("near".into(), "far".into()).add_to(&mut document, &second);
    let path = &document.path[0];
    assert_eq!((path.forward.matched, path.reverse.matched), (100, 0), "the sender's capture is named first");
    assert_eq!((path.drift_ppm, path.clock_offset_ns), (None, None));
    assert_eq!(path.forward.delay_variation_max_ns, Some(0));
}
