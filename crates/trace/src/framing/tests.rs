//! A framing is found under any load, and other patterns of ACKs are not taken for a framing.

use landspeed_stats::SplitMix64;
use proptest::prelude::*;

use super::*;

fn exponential(random: &mut SplitMix64, mean: f64) -> f64 {
    -(1.0 - random.unit()).ln() * mean
}

fn normal(random: &mut SplitMix64) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

fn found(times: impl IntoIterator<Item = f64>) -> Option<Period> {
    let mut framing = Framing::default();
    let mut times: Vec<u64> = times.into_iter().map(|time| time.max(0.0) as u64).collect();
    times.sort_unstable();
    for time in times {
        framing.acknowledgement(1_000_000_000 + time);
    }
    framing.period()
}

/// Adds a burst of ACKs from `time` on.
fn burst(times: &mut Vec<f64>, time: f64, acks: u64) {
    times.extend((0..acks).map(|number| time + number as f64 * 300.0));
}

/// Returns the times of random arrivals that wait for the end of their frame.
fn framed(random: &mut SplitMix64, period: f64, load: f64, jitter: f64, drift_ppm: f64) -> Vec<f64> {
    let (mut arrival, mut times, mut frame, mut late) = (0.0, Vec::new(), 0.0, 0.0);
    for _ in 0..6_000 {
        arrival += exponential(random, period / load);
        let end = (arrival / period).ceil();
        if end > frame {
            (frame, late) = (end, normal(random).abs() * jitter * period);
        } else {
            late += 400.0;
        }
        times.push(end * period * (1.0 + drift_ppm * 1e-6) + late);
    }
    times
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn a_framing_is_found_at_any_load(
        period in prop::sample::select(vec![125_000.0, 250_000.0, 62_500.0, 100_000.0]),
        load in 0.25_f64..2.0, jitter in 0.0_f64..0.05, drift_ppm in -50.0_f64..50.0, seed: u64,
    ) {
        // About one capture in a thousand shows no period by chance; none shows a wrong one.
        let mut showing = 0;
        for capture in 0..3 {
            let times = framed(&mut SplitMix64::new(seed.wrapping_add(capture)), period, load, jitter, drift_ppm);
            let Some(framing) = found(times) else { continue };
            showing += 1;
            let off = (framing.period_ns as f64 / period - 1.0).abs();
            prop_assert!(off < 0.001, "{framing:?} for {period}");
        }
        prop_assert!(showing >= 2, "{showing} of 3 show a period");
    }

    #[test]
    fn random_bursts_are_not_framing(mean in 20_000.0_f64..400_000.0, most in 1_u64..12, seed: u64) {
        let mut random = SplitMix64::new(seed);
        let (mut time, mut times) = (0.0, Vec::new());
        for _ in 0..3_000 {
            time += exponential(&mut random, mean);
            burst(&mut times, time, 1 + random.below(most));
        }
        prop_assert_eq!(found(times), None);
    }

    #[test]
    fn evenly_spaced_acks_are_not_framing(gap in 12_000.0_f64..900_000.0, jitter in 0.0_f64..0.1, acks in 1_u64..6, seed: u64) {
        let mut random = SplitMix64::new(seed);
        let mut times = Vec::new();
        for number in 0..3_000 {
            burst(&mut times, (f64::from(number) + normal(&mut random) * jitter) * gap, acks);
        }
        prop_assert_eq!(found(times), None);
    }

    #[test]
    fn paced_bursts_are_not_framing(
        gap in 20_000.0_f64..900_000.0, noise in 0.003_f64..0.2, skipped in 0.0_f64..0.6, most in 1_u64..6, seed: u64,
    ) {
        // Each burst waits for the previous one, sometimes two or three times as long.
        let mut random = SplitMix64::new(seed);
        let (mut time, mut times) = (0.0, Vec::new());
        for _ in 0..3_000 {
            let mut gaps = 1.0;
            while random.unit() < skipped {
                gaps += 1.0;
            }
            time += gap * gaps * (1.0 + normal(&mut random) * noise).max(0.1);
            burst(&mut times, time, 1 + random.below(most));
        }
        prop_assert_eq!(found(times), None);
    }

    #[test]
    fn bursts_spaced_by_their_size_are_not_framing(unit in 20_000.0_f64..400_000.0, most in 2_u64..5, seed: u64) {
        // Paced exactly: each gap is proportional to the burst before it.
        let mut random = SplitMix64::new(seed);
        let (mut time, mut times) = (0.0, Vec::new());
        for _ in 0..3_000 {
            let units = 1 + random.below(most);
            burst(&mut times, time, 2 * units);
            time += unit * units as f64;
        }
        prop_assert_eq!(found(times), None);
    }

    #[test]
    fn one_window_per_rtt_is_not_framing(
        round_trip in 300_000.0_f64..20_000_000.0, spacing in 20_000.0_f64..200_000.0, most in 1_u64..12,
        jitter in 0.0_f64..0.05, varied: bool, seed: u64,
    ) {
        let mut random = SplitMix64::new(seed);
        let mut times = Vec::new();
        for number in 0..1_000 {
            let clusters = if varied { 1 + random.below(most) } else { most };
            for cluster in 0..clusters {
                let at = f64::from(number) * round_trip + (cluster as f64 + normal(&mut random) * jitter) * spacing;
                if (cluster as f64 + 1.0) * spacing < round_trip {
                    burst(&mut times, at, 1 + random.below(3));
                }
            }
        }
        prop_assert_eq!(found(times), None);
    }

    #[test]
    fn an_rtt_near_a_multiple_of_spacing_is_not_framing(
        periods in 2_u32..40, off in 0.1_f64..0.9, spacing in 20_000.0_f64..200_000.0, share in 0.1_f64..0.6,
        jitter in 0.0_f64..0.02, seed: u64,
    ) {
        let mut random = SplitMix64::new(seed);
        let mut times = Vec::new();
        for number in 0..1_500 {
            let begin = f64::from(number) * spacing * (f64::from(periods) + off);
            for cluster in 0..periods {
                if cluster == 0 || random.unit() < share {
                    burst(&mut times, begin + (f64::from(cluster) + normal(&mut random) * jitter) * spacing, 1 + random.below(3));
                }
            }
        }
        prop_assert_eq!(found(times), None);
    }

    #[test]
    fn a_bottleneck_is_not_framing(serial in 12_000.0_f64..400_000.0, load in 0.3_f64..1.2, seed: u64) {
        // Segments leave a busy link at its rate; every second one is acknowledged, and sometimes every one.
        let mut random = SplitMix64::new(seed);
        let (mut arrival, mut free, mut owed, mut times) = (0.0, 0.0_f64, 0, Vec::new());
        for _ in 0..8_000 {
            arrival += exponential(&mut random, serial / load);
            free = free.max(arrival) + serial;
            owed += 1;
            if owed == 2 || random.below(5) == 0 {
                times.push(free);
                owed = 0;
            }
        }
        prop_assert_eq!(found(times), None);
    }

    #[test]
    fn interrupt_moderation_is_not_framing(
        hold in 20_000.0_f64..400_000.0, load in 0.2_f64..6.0, from_first: bool, seed: u64,
    ) {
        // Arrivals are handled at once, or `hold` after the first of them, but not sooner than that after the last
        // interrupt.
        let mut random = SplitMix64::new(seed);
        let (mut arrival, mut due, mut times) = (0.0, 0.0_f64, Vec::new());
        for _ in 0..12_000 {
            arrival += exponential(&mut random, hold / load);
            if arrival > due {
                due = if from_first || arrival < due + hold { arrival.max(due) + hold } else { arrival };
            }
            times.push(due);
        }
        prop_assert_eq!(found(times), None);
    }
}

/// Returns the number of cases; `PROPTEST_CASES` overrides it.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(12)
}

#[test]
fn a_framing_without_empty_frames_is_not_detected() {
    let mut times = Vec::new();
    for frame in 0..3_000 {
        burst(&mut times, f64::from(frame) * 125_000.0, 5);
    }
    assert_eq!(found(times), None);
}

#[test]
fn a_framing_is_found_in_a_thinned_capture() {
    let mut random = SplitMix64::new(1);
    let mut framing = Framing::default();
    for frame in (0..200_000_u64).filter(|_| random.below(3) > 0) {
        for ack in 0..=frame % 3 {
            framing.acknowledgement(frame * 125_000 + ack * 300);
        }
        assert!(framing.kept.len() <= STRETCH * STRETCHES);
    }
    assert!(framing.skipped > 0);
    let found = framing.period().expect("a period");
    assert!(found.period_ns.abs_diff(125_000) <= 5, "{found:?}");
}
