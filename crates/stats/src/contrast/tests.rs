//! Contrasts of published data compared with SciPy 1.17.1, and their coverage in simulated experiments.

use proptest::prelude::*;

use super::*;
use crate::ratio;

/// Darwin's maize (The Effects of Cross and Self Fertilisation, 1876): crossed minus self-fertilised, eighths of an inch.
const DARWIN: [f64; 15] = [49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0];
/// Hours of sleep gained with two drugs (Student 1908).
const SLEEP: [[f64; 10]; 2] =
    [[0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]];
/// Dried weights of plants, control and second treatment (Dobson, An Introduction to Statistical Modelling, 1983; R's
/// `PlantGrowth`).
const CONTROL: [f64; 10] = [4.17, 5.58, 5.18, 6.11, 4.50, 4.61, 5.17, 4.53, 5.33, 5.14];
const TREATED: [f64; 10] = [6.31, 5.12, 5.54, 5.50, 5.37, 5.29, 4.92, 6.15, 5.80, 5.26];

fn near(a: (f64, f64), b: (f64, f64), by: f64) -> bool {
    (a.0 - b.0).abs() <= by && (a.1 - b.1).abs() <= by
}

#[test]
fn median_intervals_match_order_statistics() {
    let contrast = Contrast::of_pairs(&DARWIN).unwrap();
    // scipy.stats.quantile_test(DARWIN, p=0.5).confidence_interval(0.95) is (8, 49), with coverage 0.96484375.
    assert!(near(contrast.interval(0.964_843_75).unwrap(), (8.0, 49.0), 1e-9));
    assert!(near(contrast.interval(0.992_614_746_093_75).unwrap(), (6.0, 56.0), 1e-9));
    // Interpolated bounds, from Hettmansperger and Sheather's formula with scipy.stats.binom.
    assert!(near(contrast.interval(0.95).unwrap(), (10.241_036_524, 46.011_951_301), 1e-8));
    assert!(near(contrast.interval(0.9).unwrap(), (13.436_883_568, 41.750_821_909), 1e-8));
    let sleep: Vec<f64> = SLEEP[0].iter().zip(SLEEP[1]).map(|(a, b)| b - a).collect();
    let contrast = Contrast::of_pairs(&sleep).unwrap();
    assert!((contrast.estimate() - 1.3).abs() < 1e-12);
    assert!(near(contrast.interval(0.95).unwrap(), (0.931_531_532, 2.005_405_405), 1e-8));
}

#[test]
fn bootstrap_intervals_agree_with_scipy() {
    // scipy.stats.bootstrap of the ratio of medians, percentile, 200,000 resamples. With only 10,000 resamples the
    // 2.5 % quantile lies between SciPy's 2.2 % and 2.8 % quantiles, which are at most 0.012 apart here.
    let contrast = Contrast::of_groups(&CONTROL, &TREATED, 0.0, 1).unwrap();
    let as_ratio = |level| {
        let (low, high) = contrast.interval(level).unwrap();
        (low.exp(), high.exp())
    };
    assert!((contrast.estimate().exp() - 1.054_316_198).abs() < 1e-9);
    assert!(near(as_ratio(0.95), (0.994_267_68, 1.227_021_04), 0.012), "{:?}", as_ratio(0.95));
    assert!(near(as_ratio(0.99), (0.966_845_88, 1.280_353_2), 0.02), "{:?}", as_ratio(0.99));
}

#[test]
fn shares_agree_with_scipy() {
    // scipy.stats.mannwhitneyu: U = 74.5 of 100; scipy.stats.bootstrap, percentile, 200,000 resamples: 0.5 to 0.935.
    let contrast = Contrast::share_of_groups(&SLEEP[0], &SLEEP[1], 0.0, 1).unwrap();
    assert!((contrast.estimate() - 0.745).abs() < 1e-12);
    assert!(near(contrast.interval(0.95).unwrap(), (0.5, 0.935), 0.012), "{:?}", contrast.interval(0.95));
    // scipy.stats.binomtest(13, 15).proportion_ci(0.95, 'exact').
    let pairs = DARWIN.map(|difference| (0.0, difference));
    let contrast = Contrast::share_of_pairs(&pairs).unwrap();
    assert!(near(contrast.interval(0.95).unwrap(), (0.595_397_303, 0.983_424_087), 1e-7));
    // scipy.stats.quantile_test(DARWIN, q=0, p=0.5) is the sign test: p = 0.00738525390625.
    assert!((contrast.p_value() - 0.007_385_253_9).abs() < 1e-7, "{}", contrast.p_value());
}

#[test]
fn p_value_equals_the_sign_test_at_exact_levels() {
    // Twelve of twelve positive: 2 / 2^12.
    let positive: Vec<f64> = (1..=12).map(f64::from).collect();
    assert!((Contrast::of_pairs(&positive).unwrap().p_value() - 2.0 / 4096.0).abs() < 1e-9);
    assert!((Contrast::of_pairs(&[0.0; 8]).unwrap().p_value() - 1.0).abs() < 1e-12);
}

#[test]
fn equal_values_have_a_zero_width_interval() {
    for contrast in [Contrast::of_pairs(&[0.0; 8]), Contrast::of_groups(&[2.0; 8], &[2.0; 8], 0.3, 1)] {
        let contrast = contrast.unwrap();
        assert_eq!(contrast.interval(0.95), Ok((0.0, 0.0)));
        assert_eq!((contrast.side(0.95), contrast.p_value()), (None, 1.0));
    }
    let differ = Contrast::of_groups(&[2.0; 8], &[3.0; 8], 0.0, 1).unwrap();
    assert_eq!(differ.interval(0.95), Ok((1.5_f64.ln(), 1.5_f64.ln())));
    assert_eq!(Contrast::of_groups(&[1.0; 8], &[0.0; 8], 0.0, 1), None);
    assert_eq!(differ.side(0.95), Some(std::cmp::Ordering::Greater));
    let zeros = Contrast::share_of_pairs(&[(0.0, 0.0); 8]).unwrap();
    assert_eq!((zeros.estimate(), zeros.side(0.95)), (0.5, None));
}

#[test]
fn a_95_percent_interval_needs_six_values() {
    let error = Contrast::of_pairs(&DARWIN[..5]).unwrap().interval(0.95).unwrap_err();
    assert_eq!(error.to_string(), "5 runs are too few: an interval at the 95 % level needs at least 6");
    assert!(Contrast::of_pairs(&DARWIN[..6]).unwrap().interval(0.95).is_ok());
    assert_eq!([0.95, 0.975, 0.9875, 0.99].map(min_values), [6, 7, 8, 8]);
    assert_eq!(Contrast::of_pairs(&[]), None);
    assert_eq!(Contrast::of_groups(&[1.0], &[], 0.0, 1), None);
    assert_eq!(Contrast::of_pairs(&[1.0, f64::NAN]), None);
}

/// Returns values around `median` with occasional stalls, as measured rates have.
fn rates(random: &mut SplitMix64, n: usize, median: f64) -> Vec<f64> {
    let normal = |random: &mut SplitMix64| (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
    (0..n)
        .map(|_| {
            let stall = if random.random_bool(0.1) { random.unit() } else { 0.0 };
            median + 0.05 * normal(random) - 0.5 * stall
        })
        .collect()
}

#[test]
fn false_alarms_match_the_stated_level() {
    // 1,000 comparisons without a difference for each number of runs: 5 % ± 1.4 % (two standard errors) would be 36
    // to 64. The bootstrap of two medians is known to be conservative for few runs.
    let exp = |values: &[f64]| values.iter().map(|value| value.exp()).collect::<Vec<f64>>();
    let mut random = SplitMix64::new(18);
    for n in [6, 10, 30] {
        let (mut paired, mut unpaired) = (0, 0);
        for seed in 0..1000 {
            let (a, b) = (rates(&mut random, n, 0.0), rates(&mut random, n, 0.0));
            let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
            paired += usize::from(Contrast::of_pairs(&differences).unwrap().side(0.95).is_some());
            if n <= 10 {
                unpaired +=
                    usize::from(Contrast::of_groups(&exp(&a), &exp(&b), 0.0, seed).unwrap().side(0.95).is_some());
            }
        }
        assert!((30..=70).contains(&paired), "{n} pairs: {paired} of 1000");
        assert!(n > 10 || (20..=64).contains(&unpaired), "{n} of each: {unpaired} of 1000");
    }
}

#[test]
fn autocorrelation_widens_the_interval() {
    let mut random = SplitMix64::new(3);
    let mut value = 0.0;
    let logarithms: Vec<f64> = (0..200)
        .map(|_| {
            value = 0.6 * value + rates(&mut random, 1, 0.0)[0];
            value
        })
        .collect();
    let correlated: Vec<f64> = logarithms.iter().map(|value| value.exp()).collect();
    let (a, b) = correlated.split_at(100);
    let correlation = crate::autocorrelation([a, b]);
    assert!((0.4..=0.9).contains(&correlation), "{correlation}");
    let width = |correlation| {
        let (low, high) = Contrast::of_groups(a, b, correlation, 1).unwrap().interval(0.95).unwrap();
        high - low
    };
    assert!(width(correlation) > 1.3 * width(0.0));
    let independent = rates(&mut random, 200, 0.0);
    assert!(crate::autocorrelation([&independent[..100], &independent[100..]]) < 0.3);
    assert!(crate::autocorrelation([&[1.0; 9], &[1.0; 9]]) <= 0.0);
}

#[test]
fn estimate_is_close_to_hodges_lehmann() {
    let of_medians = Contrast::of_groups(&CONTROL, &TREATED, 0.0, 1).unwrap();
    let of_ranks = ratio(&CONTROL, &TREATED, 0.025).unwrap();
    let (low, high) = of_medians.interval(0.95).unwrap();
    assert!(low.exp() < of_ranks.estimate && of_ranks.estimate < high.exp());
}

proptest! {
    // Each case resamples two contrasts 10,000 times.
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn intervals_contain_the_estimate_and_grow_with_the_level(
        a in prop::collection::vec(0.1f64..10.0, 8..14), b in prop::collection::vec(0.1f64..10.0, 8..14),
        level in 0.5f64..0.97,
    ) {
        for contrast in [Contrast::of_pairs(&a), Contrast::of_groups(&a, &b, 0.2, 1), Contrast::share_of_groups(&a, &b, 0.2, 1)] {
            let contrast = contrast.unwrap();
            let (narrow, wide) = (contrast.interval(level).unwrap(), contrast.interval(level + 0.02).unwrap());
            let median_is_inside =
                narrow.0 <= contrast.estimate() + 1e-9 && contrast.estimate() <= narrow.1 + 1e-9;
            prop_assert!(wide.0 <= narrow.0 + 1e-9 && narrow.1 <= wide.1 + 1e-9 && median_is_inside);
            let p = contrast.p_value();
            prop_assert!((0.0..=1.0).contains(&p));
            let excludes = contrast.side(level).is_some();
            prop_assert!(excludes == (p <= 1.0 - level) || (p - (1.0 - level)).abs() < 1e-6);
        }
    }
}

#[test]
fn too_few_runs_have_no_small_p_value() {
    for (runs, least) in [(1, 1.0), (2, 0.5), (3, 0.25), (5, 0.0625)] {
        let (a, b) = (vec![1.0; runs], vec![2.0; runs]);
        for contrast in [Contrast::of_groups(&a, &b, 0.0, 1), Contrast::share_of_groups(&a, &b, 0.0, 1)] {
            let p = contrast.expect("a contrast").p_value();
            assert!((p - least).abs() < 1e-12, "{runs} runs: {p}");
        }
    }
}

#[test]
fn change_of_groups_with_zeros_has_an_interval() {
    let (a, b) = ([10.0, 11.0, 9.0, 0.0, 10.5, 9.5, 10.2, 9.9], [12.0, 13.0, 11.0, 12.5, 11.5, 12.2, 0.0, 11.9]);
    let contrast = Contrast::change_of_groups(&a, &b, 0.0, 1).expect("a contrast");
    let (low, high) = contrast.interval(0.95).expect("an interval");
    assert!(low <= contrast.estimate() && contrast.estimate() <= high && high < 0.5, "{low} {high}");
    assert_eq!(Contrast::change_of_groups(&a, &[], 0.0, 1), None);
    assert_eq!(Contrast::change_of_groups(&a, &[0.0; 8], 0.0, 1).map(|contrast| contrast.estimate()), Some(-1.0));
    assert_eq!((relative_change(0.0, 0.0), relative_change(0.0, 1.0)), (0.0, UNBOUNDED_CHANGE));
}
