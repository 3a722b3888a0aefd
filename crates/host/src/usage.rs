//! Sums over a span of a series. A sample that is only partly inside counts for its part, as if its use were even: at
//! each edge the error is at most one sample.

use landspeed_model::{CoreUse, HostSample, HostSeries};

/// What a host spent between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HostUse {
    /// Core-seconds of work, all programs: user, system, interrupts. Idle, I/O wait and stolen time are none.
    pub cpu_s: f64,
    /// Of it, in softirqs.
    pub softirq_s: f64,
    /// Of it, in hard interrupts.
    pub irq_s: f64,
    /// Core-seconds the hypervisor gave to others.
    pub steal_s: f64,
    /// Stolen time over all time, mean over cores, 0..=1.
    pub steal: f32,
    /// The core with the largest share of work, and the share, 0..=1.
    pub busiest_core: Option<(u32, f32)>,
    /// How much of the asked-for time the samples cover, nanoseconds.
    pub covered_ns: u64,
}

/// Mean use of each core between two moments of the series' timeline; the index is the core's number. `None` for one
/// that was offline all the time, or that no tick covers.
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

/// What the host spent between two moments of the series' timeline; `None` if no sample has a part in it.
pub fn use_between(series: &HostSeries, start_ns: i64, end_ns: i64) -> Option<HostUse> {
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

/// Samples with a part in the span, and how long that is.
fn overlapping(series: &HostSeries, start_ns: i64, end_ns: i64) -> impl Iterator<Item = (&HostSample, u64)> {
    series.samples.iter().filter_map(move |sample| {
        let inside = sample.end_ns.min(end_ns).saturating_sub(sample.start_ns.max(start_ns));
        (inside > 0).then_some((sample, inside as u64))
    })
}

/// Shares add up to 1 except where no tick passed: such a row says nothing.
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

    fn use_of(user: f32, softirq: f32, steal: f32) -> CoreUse {
        let idle = 1.0 - user - softirq - steal;
        CoreUse { user, softirq, steal, idle, ..CoreUse::default() }
    }

    fn sample(start_ns: i64, end_ns: i64, cores: &[Option<CoreUse>]) -> HostSample {
        HostSample { start_ns, end_ns, cores: cores.to_vec(), ..HostSample::default() }
    }

    #[test]
    fn edges_count_partly_and_steal_time_is_not_work() {
        let series = HostSeries {
            samples: vec![
                sample(-S, S, &[Some(use_of(1.0, 0.0, 0.0)), None]),
                sample(S, 2 * S, &[Some(use_of(0.0, 0.5, 0.0)), Some(use_of(0.0, 0.0, 1.0))]),
            ],
            ..HostSeries::default()
        };
        let spent = use_between(&series, 0, 2 * S).expect("covered");
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
    fn a_span_without_samples_or_ticks_has_no_figure() {
        let series =
            HostSeries { samples: vec![sample(0, S, &[Some(CoreUse::default()), None])], ..HostSeries::default() };
        assert_eq!(use_between(&series, 0, S), None);
        assert_eq!(use_between(&series, 5 * S, 6 * S), None);
        assert_eq!(use_between(&series, S, 0), None);
        assert_eq!(cores_between(&series, 0, S), [None, None]);
    }
}
