//! Detection of a framing below IP: ACKs bunched by a framing (SONET: 125 µs) come in clusters whose distances
//! are multiples of its period.
//!
//! Other causes make clusters too: a sender's bursts, interrupt moderation, one window per RTT. A framing differs
//! because it has a separate clock: its phase does not drift over any number of clusters, pauses do not reset it,
//! empty frames follow no rhythm, and a gap does not depend on the traffic before or after it. If any of this
//! does not hold, or cannot be observed (no frame is empty), no period is reported.

use std::f64::consts::TAU;

/// Maximum gap between ACKs of one cluster, nanoseconds.
const CLUSTER_NS: u64 = 2_000;
/// Number of consecutive clusters in a stretch, enough for several RTTs.
const STRETCH: usize = 1_024;
/// Number of stretches kept, spread over the capture.
const STRETCHES: usize = 4;
/// Range of periods tested, nanoseconds.
const MIN_NS: f64 = 10_000.0;
const MAX_NS: f64 = 1_000_000.0;
/// Distances of more periods than this are ignored while the period is only roughly known.
const MAX_PERIODS: f64 = 8.0;
/// Minimum number of clusters for a result.
const MIN_CLUSTERS: usize = 256;
/// Minimum agreement for a period: that of normally distributed errors of a seventh of it.
const MIN_AGREEMENT: f64 = 0.7;
/// Clusters that begin within this share of a period belong to one group.
const GROUP_WIDTH: f64 = 0.125;
/// Minimum share and number of distances of several periods: evenly spaced ACKs have one distance only.
const MIN_MULTIPLES: (f64, usize) = (0.05, 24);
/// Minimum share of distances of one period. With fewer, the period found is a fraction of the true one.
const MIN_SINGLES: f64 = 0.15;
/// Minimum share of clusters with more than one ACK, as evidence of bunching.
const MIN_BUNCHED: f64 = 0.1;
/// Number of clusters over which the phase must be stable.
const PHASE_SPAN: usize = 32;
/// Maximum growth of the phase variance over [`PHASE_SPAN`] clusters. Without a clock it grows in proportion to their
/// number.
const MAX_GROWTH: f64 = 4.0;
/// Phase variance that is always accepted, periods²: the error of the capture's clock.
const PHASE_FLOOR: f64 = 1e-4;
/// Correlation above which something other than a framing determines when clusters come. One window per RTT over
/// a framing stays below this; an RTT mistaken for a period exceeds it.
const MAX_RECURRENCE: f64 = 0.3;
/// Correlation of the timing errors above which they have another cause.
const MAX_ERROR_RECURRENCE: f64 = 0.2;
/// Share of rounds in which a position must be occupied to be the start of each round. A round has up to
/// `MAX_ROUND_PERIODS` periods.
const MIN_OCCUPANCY: f64 = 0.93;
const MAX_ROUND_PERIODS: usize = 128;
/// Correlation below which a packet train is over.
const TRAIN_END_CORRELATION: f64 = 0.05;
/// Timing errors below this are ignored, periods.
const MIN_ERROR: f64 = 0.01;
/// Correlation above which gaps depend on the amount of data sent.
const MAX_PROPORTION: f64 = 0.5;

/// ACK clusters kept for the search of a period.
#[derive(Debug, Clone, Default)]
pub struct Framing {
    first_ns: Option<u64>,
    latest_ns: u64,
    clusters: u64,
    /// Start of each cluster since the first, nanoseconds, shifted by 8 bits, and the number of its ACKs (at most
    /// 255).
    kept: Vec<u64>,
    /// One of `skipped + 1` stretches is kept.
    skipped: u64,
    /// Whether the current cluster is kept.
    keeping: bool,
}

/// A detected period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Period {
    /// In nanoseconds.
    pub period_ns: u64,
    /// Agreement of the clusters with the period, 0 to 1, also over many periods: the mean resultant length of their
    /// distances as angles on a circle of one period.
    pub agreement: f64,
}

impl Framing {
    /// Accounts for a pure ACK.
    #[inline]
    pub fn acknowledgement(&mut self, time_ns: u64) {
        let near = time_ns.saturating_sub(self.latest_ns) < CLUSTER_NS;
        self.latest_ns = self.latest_ns.max(time_ns);
        if near && self.first_ns.is_some() {
            if self.keeping
                && let Some(cluster) = self.kept.last_mut()
                && *cluster & 0xff < 0xff
            {
                *cluster += 1;
            }
            return;
        }
        self.cluster(time_ns);
    }

    fn cluster(&mut self, time_ns: u64) {
        let first_ns = *self.first_ns.get_or_insert(time_ns);
        let stretch = self.clusters / STRETCH as u64;
        self.clusters += 1;
        if self.kept.len() == STRETCH * STRETCHES {
            // Drop every other stretch, also of those to come.
            self.skipped = self.skipped * 2 + 1;
            for number in 1..STRETCHES / 2 {
                self.kept.copy_within(2 * number * STRETCH..(2 * number + 1) * STRETCH, number * STRETCH);
            }
            self.kept.truncate(STRETCHES / 2 * STRETCH);
        }
        self.keeping = stretch.is_multiple_of(self.skipped + 1);
        if self.keeping {
            self.kept.push(time_ns.saturating_sub(first_ns) << 8 | 1);
        }
    }

    /// Returns the longest period that the clusters follow, if there is one.
    pub fn period(&self) -> Option<Period> {
        if self.kept.len() < MIN_CLUSTERS {
            return None;
        }
        // With this step, the longest distance turns by a tenth of a circle at most.
        let steps = std::iter::successors(Some(MAX_NS), |period| Some(period / 1.012));
        let tried: Vec<(f64, f64)> = steps
            .take_while(|&period| period >= MIN_NS)
            .map(|period| (period, self.grouped(period).agreement(period)))
            .collect();
        let best = tried.iter().map(|(_, agreement)| *agreement).fold(0.0, f64::max);
        if best < MIN_AGREEMENT {
            return None;
        }
        // A half and a third of a period fit as well: use the longest.
        let (coarse, _) = tried.into_iter().find(|(_, agreement)| *agreement >= MIN_AGREEMENT.max(best - 0.15))?;
        let groups = self.grouped(coarse);
        let near = (-40..=40).map(|step| coarse * (1.0 + f64::from(step) * 0.001));
        let (period, agreement) =
            near.map(|period| (period, groups.agreement(period))).max_by(|one, other| one.1.total_cmp(&other.1))?;
        let (period, kept) = groups.keeps_phase(period)?;
        groups.is_framing(period).then(|| Period { period_ns: period.round() as u64, agreement: agreement.min(kept) })
    }

    /// Merges clusters that would belong to one frame of this period.
    fn grouped(&self, period: f64) -> Groups {
        let mut groups = Groups::default();
        for stretch in self.kept.chunks(STRETCH) {
            let mut begin: Option<f64> = None;
            for &cluster in stretch {
                let (at, acks) = ((cluster >> 8) as f64, (cluster & 0xff) as f64);
                match (begin, groups.acks.last_mut()) {
                    (Some(begin), Some(sum)) if at - begin < GROUP_WIDTH * period => *sum += acks,
                    _ => {
                        begin = Some(at);
                        groups.begins.push(at);
                        groups.acks.push(acks);
                    }
                }
            }
            groups.ends.push(groups.begins.len());
        }
        groups
    }
}

/// Clusters merged by the frames of a given period.
#[derive(Debug, Default)]
struct Groups {
    begins: Vec<f64>,
    acks: Vec<f64>,
    /// End index of each stretch.
    ends: Vec<usize>,
}

/// Sum of directions on a circle of one period.
#[derive(Debug, Default)]
struct CircularMean {
    cosine: f64,
    sine: f64,
    count: f64,
}

impl CircularMean {
    fn add(&mut self, turns: f64) {
        let (s, c) = (turns * TAU).sin_cos();
        self.cosine += c;
        self.sine += s;
        self.count += 1.0;
    }

    /// Returns the agreement with direction 0. Distances of half a period do not agree.
    fn agreement(&self) -> f64 {
        if self.count == 0.0 {
            return 0.0;
        }
        (self.cosine / self.count).max(0.0) - (self.sine / self.count).abs()
    }

    /// Returns the variance of the angle, periods², assuming a normal distribution.
    fn variance(&self) -> f64 {
        let length = self.cosine.hypot(self.sine) / self.count;
        -2.0 * length.clamp(1e-9, 1.0).ln() / (TAU * TAU)
    }
}

impl Groups {
    /// Returns the index ranges of the stretches.
    fn stretches(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| begin..end)
    }

    /// Returns the distances between groups `span` apart.
    fn distances(&self, span: usize) -> impl Iterator<Item = f64> + '_ {
        self.stretches().flat_map(move |stretch| {
            let begins = &self.begins[stretch];
            begins.iter().zip(begins.iter().skip(span)).map(|(one, other)| other - one)
        })
    }

    /// Returns the agreement of the distances with a period. Distances of less than half a period count against it.
    fn agreement(&self, period: f64) -> f64 {
        let (mut circle, mut total, mut short) = (CircularMean::default(), 0.0, 0.0);
        for distance in self.distances(1) {
            total += 1.0;
            if distance < period / 2.0 {
                short += 1.0;
            } else if distance < MAX_PERIODS * period {
                circle.add(distance / period);
            }
        }
        let used = circle.count + short;
        if used < total / 2.0 { 0.0 } else { circle.agreement() * circle.count / used }
    }

    /// Refines the period over more and more clusters. Returns it, and the agreement over many clusters; `None` if
    /// its phase drifts.
    fn keeps_phase(&self, period: f64) -> Option<(f64, f64)> {
        let over = |span: usize, period: f64| {
            let mut circle = CircularMean::default();
            for distance in self.distances(span).filter(|distance| *distance < MAX_PERIODS * period * span as f64) {
                circle.add(distance / period);
            }
            circle
        };
        let mut period = period;
        let mut span = 1;
        let near = over(1, period);
        while span < PHASE_SPAN {
            span *= 2;
            let distances = self.distances(span).filter(|distance| *distance < MAX_PERIODS * period * span as f64);
            let (sum, count) = distances.fold((0.0, 0.0), |(sum, count), distance| (sum + distance, count + 1.0));
            if count < 64.0 {
                return None;
            }
            // A third of a turn to either side of the estimate from fewer clusters, then finer.
            for step in [60.0, 1_200.0].map(|parts| period / (sum / count) / parts) {
                let tried = (-20..=20).map(|number| period * (1.0 + f64::from(number) * step));
                let tried = tried.map(|period| (period, over(span, period).agreement()));
                (period, _) = tried.max_by(|one, other| one.1.total_cmp(&other.1))?;
            }
        }
        let far = over(PHASE_SPAN, period);
        let wanders = far.variance() > MAX_GROWTH * near.variance() + PHASE_FLOOR;
        let agreement = far.agreement();
        (!wanders && agreement >= MIN_AGREEMENT - 0.15).then_some((period, agreement))
    }

    /// Returns whether the groups come from a framing rather than from another periodic cause.
    fn is_framing(&self, period: f64) -> bool {
        let distances: Vec<f64> = self.distances(1).collect();
        let total = distances.len() as f64;
        let multiples: Vec<f64> = distances.iter().map(|distance| distance / period).filter(|&n| n > 1.5).collect();
        let singles = distances.iter().filter(|distance| (0.5..1.5).contains(&(**distance / period))).count() as f64;
        let (share, number) = MIN_MULTIPLES;
        if (multiples.len() as f64) < (share * total).max(number as f64) || singles < MIN_SINGLES * total {
            return false;
        }
        // Pauses must fit the period by themselves, not only because even distances outnumber them.
        let mut paused = CircularMean::default();
        multiples.iter().filter(|multiple| **multiple < 4.0 * MAX_PERIODS).for_each(|&multiple| paused.add(multiple));
        let bunched = self.acks.iter().filter(|acks| **acks > 1.0).count() as f64;
        paused.agreement() >= MIN_AGREEMENT - 0.1
            && bunched >= MIN_BUNCHED * self.acks.len() as f64
            && self.proportion(period) < MAX_PROPORTION
            && self.has_no_recurrence(period)
    }

    /// Returns the correlation of the gap before or after a group with its size: a paced sender waits in proportion
    /// to the data it sent.
    fn proportion(&self, period: f64) -> f64 {
        let [before, after] = [1, 0].map(|shift| {
            let (mut x, mut y) = (Vec::new(), Vec::new());
            for stretch in self.stretches() {
                let (begins, acks) = (&self.begins[stretch.clone()], &self.acks[stretch]);
                for (number, pair) in begins.windows(2).enumerate() {
                    x.push(((pair[1] - pair[0]) / period).round().min(MAX_PERIODS));
                    y.push(acks[number + shift]);
                }
            }
            correlation(&x, &y)
        });
        before.max(after)
    }

    /// Returns whether the occupancy of frames does not recur. Over all lags, the excess probability that a frame is
    /// occupied that long after another one (1 for a strict pattern) must be small, and so must the correlation of
    /// the timing errors. A round trip that is split into periods shows in one of them.
    fn has_no_recurrence(&self, period: f64) -> bool {
        let lattices: Vec<PeriodGrid> =
            self.stretches().map(|stretch| PeriodGrid::new(&self.begins[stretch], period)).collect();
        let longest = lattices.iter().map(|lattice| lattice.full.len()).max().unwrap_or(0);
        let errors = || lattices.iter().flat_map(|lattice| &lattice.errors);
        let variance = errors().map(|error| error * error).sum::<f64>() / errors().count() as f64;
        // Occupancy and errors persist over short lags. A rhythm recurs after they have decayed.
        let (mut filling, mut erring) = (Recurrence::default(), Recurrence::default());
        for lag in 1..longest / 2 {
            let (mut recurred, mut tried, mut filled, mut alike) = (0.0, 0.0, 0.0, 0.0);
            for PeriodGrid { slots, full, errors } in &lattices {
                let reach = full.len().saturating_sub(lag) as u64;
                let within = slots.partition_point(|&slot| slot < reach);
                for (slot, error) in slots[..within].iter().zip(errors) {
                    if let Some(other) = (full[*slot as usize + lag] as usize).checked_sub(1) {
                        recurred += 1.0;
                        alike += error * errors[other];
                    }
                }
                tried += within as f64;
                filled += within as f64 * (slots.len() as f64 / full.len().max(1) as f64);
            }
            // Subtract what chance may add: four standard deviations.
            if tried >= 128.0 && filled < tried {
                let base = filled / tried;
                filling.update((recurred / tried - base - 4.0 * (base * (1.0 - base) / tried).sqrt()) / (1.0 - base));
            }
            if recurred >= 128.0 && variance > MIN_ERROR * MIN_ERROR {
                erring.update(alike / recurred / variance - 4.0 / recurred.sqrt());
            }
        }
        let calm = filling.decayed && filling.most < MAX_RECURRENCE && erring.most < MAX_ERROR_RECURRENCE;
        calm && !lattices.iter().any(PeriodGrid::has_periodic_rounds)
    }
}

/// Maximum of a correlation after it has decayed.
#[derive(Debug, Default)]
struct Recurrence {
    decayed: bool,
    most: f64,
}

impl Recurrence {
    fn update(&mut self, excess: f64) {
        self.decayed |= excess < TRAIN_END_CORRELATION;
        if self.decayed {
            self.most = self.most.max(excess);
        }
    }
}

/// The groups of a stretch on a grid of one period.
#[derive(Debug)]
struct PeriodGrid {
    /// Slot of each group: periods since the first group.
    slots: Vec<u64>,
    /// By slot: number of the group in it, from 1; 0 if empty.
    full: Vec<u32>,
    /// Offset of each group from the grid, minus the mean offset of its neighbours, periods.
    errors: Vec<f64>,
}

impl PeriodGrid {
    fn new(begins: &[f64], period: f64) -> Self {
        // Longer pauses are shortened: they add no recurrence.
        const MAX_SLOTS: u64 = 4 * STRETCH as u64;
        const NEIGHBOURS: usize = PHASE_SPAN;
        let (mut slot, mut error) = (0, 0.0);
        let (mut slots, mut raw) = (vec![0], vec![0.0]);
        for pair in begins.windows(2) {
            let periods = (pair[1] - pair[0]) / period;
            slot += (periods.round() as u64).clamp(1, MAX_SLOTS);
            error += periods - periods.round();
            slots.push(slot);
            raw.push(error);
        }
        let mut full = vec![0; slot as usize + 1];
        slots.iter().enumerate().for_each(|(number, &slot)| full[slot as usize] = number as u32 + 1);
        let errors = raw.iter().enumerate().map(|(number, error)| {
            let around = &raw[number.saturating_sub(NEIGHBOURS)..(number + NEIGHBOURS + 1).min(raw.len())];
            error - around.iter().sum::<f64>() / around.len() as f64
        });
        Self { slots, full, errors: errors.collect() }
    }

    /// Returns whether one position in rounds of equal length is always occupied and the others are not: the start of
    /// each RTT.
    fn has_periodic_rounds(&self) -> bool {
        let share = self.slots.len() as f64 / self.full.len() as f64;
        let mut of_place = vec![0_u32; MAX_ROUND_PERIODS];
        (2..MAX_ROUND_PERIODS.min(self.full.len() / 16)).any(|beat| {
            of_place[..beat].fill(0);
            self.slots.iter().for_each(|&slot| of_place[slot as usize % beat] += 1);
            let rounds = (self.full.len() / beat) as f64;
            let fullest = f64::from(of_place[..beat].iter().copied().max().unwrap_or(0)) / rounds;
            let chance = (share * (1.0 - share) / rounds).sqrt();
            fullest > MIN_OCCUPANCY && fullest - share > 5.0 * chance
        })
    }
}

/// Returns Pearson's correlation coefficient; 0 if a variable is constant.
fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let count = x.len() as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(x), mean(y));
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in x.iter().zip(y) {
        let (x, y) = (x - mean_x, y - mean_y);
        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    if xx * yy > 0.0 { xy / (xx * yy).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests;
