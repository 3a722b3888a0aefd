//! Sums over a span of a series. A sample that is only partly inside counts in proportion, as if its use were
//! constant: the error is at most one sample at each edge.

use landspeed_model::{CoreUse, HostSample, HostSeries};

/// CPU time of a host over a span.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HostUse {
    /// Core-seconds of work of all programs: user, system, interrupts. Idle, I/O wait and steal time do not
    /// count.
    pub cpu_s: f64,
    /// Core-seconds in softirqs, part of `cpu_s`.
    pub softirq_s: f64,
    /// Core-seconds in hard interrupts, part of `cpu_s`.
    pub irq_s: f64,
    /// Core-seconds of steal time.
    pub steal_s: f64,
    /// Steal time divided by total time, mean over cores, 0..=1.
    pub steal: f32,
    /// The core with the largest share of work, and the share, 0..=1.
    pub busiest_core: Option<(u32, f32)>,
    /// Part of the requested span that the samples cover, nanoseconds.
    pub covered_ns: u64,
}

/// Returns the mean use of each core between two times of the series' timeline, indexed by core number. `None`
/// for a core that was offline all the time, or has no tick in the span.
pub fn cores_between(series: &HostSeries, start_ns: i64, end_ns: i64) -> Vec<Option<CoreUse>> {
    let cores = series.samples.iter().map(|sample| sample.cores.len()).max().unwrap_or(0);
    let mut sums = vec![(CoreUse::default(), 0.0_f32); cores];
    for (sample, inside_ns) in overlapping(series, start_ns, end_ns) {
        let weight = inside_ns as f32 / 1e9;
        for ((sum, total), share) in sums.iter_mut().zip(&sample.cores) {
            let Some(share) = share.filter(|share| has_ticks(*share)) else { continue };
            add_scaled(sum, share, weight);
            *total += weight;
        }
    }
    let mean = |(sum, total): (CoreUse, f32)| {
        let mut mean = CoreUse::default();
        add_scaled(&mut mean, sum, 1.0 / total);
        (total > 0.0).then_some(mean)
    };
    sums.into_iter().map(mean).collect()
}

/// Returns the CPU time between two times of the series' timeline; `None` if no sample overlaps them.
pub fn cpu_use_between(series: &HostSeries, start_ns: i64, end_ns: i64) -> Option<HostUse> {
    let mut spent = HostUse::default();
    let mut core_s = 0.0;
    for (sample, inside_ns) in overlapping(series, start_ns, end_ns) {
        let inside_s = inside_ns as f64 / 1e9;
        spent.covered_ns += inside_ns;
        for share in sample.cores.iter().flatten().filter(|share| has_ticks(**share)) {
            let work = share.user + share.system + share.softirq + share.irq;
            spent.cpu_s += f64::from(work) * inside_s;
            spent.softirq_s += f64::from(share.softirq) * inside_s;
            spent.irq_s += f64::from(share.irq) * inside_s;
            spent.steal_s += f64::from(share.steal) * inside_s;
            core_s += inside_s;
        }
    }
    if core_s <= 0.0 {
        return None;
    }
    spent.steal = (spent.steal_s / core_s) as f32;
    let work = |(core, share): (usize, Option<CoreUse>)| {
        let share = share?;
        Some((core as u32, share.user + share.system + share.softirq + share.irq))
    };
    let cores = cores_between(series, start_ns, end_ns).into_iter().enumerate().filter_map(work);
    spent.busiest_core = cores.max_by(|a, b| a.1.total_cmp(&b.1));
    Some(spent)
}

/// Returns the samples that overlap the span, with the length of the overlap.
fn overlapping(series: &HostSeries, start_ns: i64, end_ns: i64) -> impl Iterator<Item = (&HostSample, u64)> {
    series.samples.iter().filter_map(move |sample| {
        let inside = sample.end_ns.min(end_ns).saturating_sub(sample.start_ns.max(start_ns));
        (inside > 0).then_some((sample, inside as u64))
    })
}

/// Returns whether any tick passed: otherwise the shares do not add up to 1, and the row is meaningless.
fn has_ticks(share: CoreUse) -> bool {
    share.busy() + share.iowait + share.idle > 0.5
}

fn add_scaled(sum: &mut CoreUse, share: CoreUse, scale: f32) {
    sum.user += share.user * scale;
    sum.system += share.system * scale;
    sum.softirq += share.softirq * scale;
    sum.irq += share.irq * scale;
    sum.steal += share.steal * scale;
    sum.iowait += share.iowait * scale;
    sum.idle += share.idle * scale;
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn core_use(user: f32, softirq: f32, steal: f32) -> CoreUse {
        let idle = 1.0 - user - softirq - steal;
        CoreUse { user, softirq, steal, idle, ..CoreUse::default() }
    }

    fn sample(start_ns: i64, end_ns: i64, cores: &[Option<CoreUse>]) -> HostSample {
        HostSample { start_ns, end_ns, cores: cores.to_vec(), ..HostSample::default() }
    }

    #[test]
    fn partial_samples_count_in_proportion_and_steal_is_not_work() {
        let series = HostSeries {
            samples: vec![
                sample(-S, S, &[Some(core_use(1.0, 0.0, 0.0)), None]),
                sample(S, 2 * S, &[Some(core_use(0.0, 0.5, 0.0)), Some(core_use(0.0, 0.0, 1.0))]),
            ],
            ..HostSeries::default()
        };
        let spent = cpu_use_between(&series, 0, 2 * S).expect("covered");
        assert!((spent.cpu_s - 1.5).abs() < 1e-6, "{spent:?}");
        assert!((spent.softirq_s - 0.5).abs() < 1e-6 && (spent.steal_s - 1.0).abs() < 1e-6);
        assert!((spent.steal - 1.0 / 3.0).abs() < 1e-6);
        assert_eq!(spent.covered_ns, 2 * S as u64);
        let (core, share) = spent.busiest_core.expect("two cores");
        assert!(core == 0 && (share - 0.75).abs() < 1e-6);
        let cores = cores_between(&series, 0, 2 * S);
        assert!((cores[1].expect("online for half").steal - 1.0).abs() < 1e-6);
    }

    #[test]
    fn spans_without_samples_or_ticks_have_no_result() {
        let series =
            HostSeries { samples: vec![sample(0, S, &[Some(CoreUse::default()), None])], ..HostSeries::default() };
        assert_eq!(cpu_use_between(&series, 0, S), None);
        assert_eq!(cpu_use_between(&series, 5 * S, 6 * S), None);
        assert_eq!(cpu_use_between(&series, S, 0), None);
        assert_eq!(cores_between(&series, 0, S), [None, None]);
    }
}
