//! Latency histogram and exact quantiles.
#![forbid(unsafe_code)]

use divan::Bencher;
use divan::counter::ItemsCount;
use landspeed_stats::{Jitter, LatencyHistogram, SplitMix64, median_interval, quantile};

/// Recorded latencies.
const VALUES: usize = 10_000;

fn main() {
    divan::main();
}

/// Latencies between 10 µs and 1 ms, nanoseconds.
fn latencies() -> Vec<u64> {
    let mut random = SplitMix64::new(1);
    (0..VALUES).map(|_| 10_000 + random.below(990_000)).collect()
}

#[divan::bench]
fn histogram_record(bencher: Bencher<'_, '_>) {
    let (values, mut histogram) = (latencies(), LatencyHistogram::new());
    bencher.counter(ItemsCount::new(VALUES)).bench_local(|| values.iter().for_each(|&ns| histogram.record(ns)));
}

#[divan::bench(args = [0.5, 0.99, 0.999])]
fn histogram_quantile(bencher: Bencher<'_, '_>, p: f64) {
    let mut histogram = LatencyHistogram::new();
    latencies().iter().for_each(|&ns| histogram.record(ns));
    bencher.bench_local(|| histogram.quantile(divan::black_box(p)));
}

#[divan::bench]
fn histogram_merge(bencher: Bencher<'_, '_>) {
    let (mut sum, mut part) = (LatencyHistogram::new(), LatencyHistogram::new());
    latencies().iter().for_each(|&ns| part.record(ns));
    bencher.bench_local(|| sum.merge(divan::black_box(&part)));
}

#[divan::bench(args = [15, 1_000, VALUES])]
fn exact_quantile(bencher: Bencher<'_, '_>, values: usize) {
    let values: Vec<f64> = latencies()[..values].iter().map(|&ns| ns as f64).collect();
    bencher.counter(ItemsCount::new(values.len())).bench_local(|| quantile(divan::black_box(&values), 0.99));
}

/// Interval of the median of fifteen runs.
#[divan::bench]
fn interval_of_the_median(bencher: Bencher<'_, '_>) {
    let values: Vec<f64> = latencies()[..15].iter().map(|&ns| ns as f64).collect();
    bencher.bench_local(|| median_interval(divan::black_box(&values), 0.95));
}

#[divan::bench]
fn jitter_record(bencher: Bencher<'_, '_>) {
    let (values, mut jitter) = (latencies(), Jitter::default());
    bencher.counter(ItemsCount::new(VALUES)).bench_local(|| {
        for (number, &ns) in (0_u64..).zip(&values) {
            jitter.record(number * 10_000, number * 10_000 + ns);
        }
    });
}
