//! A period underneath: acknowledgements that a framing (SONET: 125 µs) pushed together come in clusters whose distances are
//! multiples of the frame's.
//!
//! Much else makes clusters: a sender's bursts, an interrupt's moderation, a window that is sent once in a round trip. A
//! framing differs because it has a separate clock. Its phase does not drift over any number of clusters;
//! pauses do not reset it; empty frames follow no rhythm; and a gap does not depend on the traffic
//! before or after it. Where any of this is not so, or cannot be seen (no frame is empty), there is no period.

use std::f64::consts::TAU;

/// Acknowledgements this close are of one cluster, nanoseconds.
const CLUSTER_NS: u64 = 2_000;
/// Clusters of a stretch kept without a hole: several round trips are in it.
const STRETCH: usize = 1_024;
/// Stretches kept, spread over the capture.
const STRETCHES: usize = 4;
/// Periods looked for, nanoseconds.
const MIN_NS: f64 = 10_000.0;
const MAX_NS: f64 = 1_000_000.0;
/// A distance of more periods than this says nothing of a period that is not well known yet.
const MAX_PERIODS: f64 = 8.0;
/// Clusters before anything is said.
const ENOUGH: usize = 256;
/// The least agreement that is a period: that of an error of a seventh of it (a normal one).
const MIN_AGREEMENT: f64 = 0.7;
/// Clusters of one period: those that begin within this share of it.
const TOGETHER: f64 = 0.125;
/// Distances of several periods that it takes, as a share and as a number: what is merely even has one distance.
const MIN_MULTIPLES: (f64, usize) = (0.05, 24);
/// Share of the distances that must be of one period: it is not a part of what is held.
const MIN_SINGLES: f64 = 0.15;
/// Share of the clusters that must be more than one acknowledgement: something was pushed together.
const MIN_BUNCHED: f64 = 0.1;
/// Clusters over which the phase must hold.
const FAR: usize = 32;
/// How much the phase's variance may grow until then: without a clock it grows by as many times as there are clusters.
const MAX_GROWTH: f64 = 4.0;
/// What the phase may always vary by, as the variance in periods: what a capture's clock leaves of it.
const PHASE_FLOOR: f64 = 1e-4;
/// Above this correlation something else than a framing says when clusters come. One window per RTT over a framing
/// stays below this; an RTT mistaken for a period exceeds it.
const MAX_RHYTHM: f64 = 0.3;
/// Above this one their errors come from somewhere else.
const MAX_ERROR_RHYTHM: f64 = 0.2;
/// A period of so many, up to the longest number looked at, that is full in this share of the rounds begins each of them.
const ALWAYS: f64 = 0.93;
const MAX_BEAT: usize = 128;
/// Below this correlation, trains are over.
const TRAIN_OVER: f64 = 0.05;
/// Errors smaller than this, in periods, are not looked at.
const MIN_ERROR: f64 = 0.01;
/// Above this one the gaps follow from what was sent.
const MAX_PROPORTION: f64 = 0.5;

/// Clusters, as they are needed to find a period.
#[derive(Debug, Clone, Default)]
pub struct Framing {
    first_ns: Option<u64>,
    latest_ns: u64,
    clusters: u64,
    /// Begin of a cluster since the first one in nanoseconds, shifted by 8 bits, and how many acknowledgements it has (255
    /// and more are 255).
    kept: Vec<u64>,
    /// Of so many stretches one is kept, less one.
    skipped: u64,
    /// Whether the present cluster is kept.
    keeping: bool,
}

/// A period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Period {
    /// Nanoseconds.
    pub period_ns: u64,
    /// How well the clusters keep to it, from 0 to 1, also over many periods: the length of the mean direction of their
    /// distances on a circle of one period.
    pub agreement: f64,
}

impl Framing {
    /// An acknowledgement passes.
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
            // Every other stretch goes, and of those to come too.
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

    /// The longest period the clusters keep to, if there is one.
    pub fn period(&self) -> Option<Period> {
        if self.kept.len() < ENOUGH {
            return None;
        }
        // A step this fine turns the longest distance by a tenth of a circle at most.
        let steps = std::iter::successors(Some(MAX_NS), |period| Some(period / 1.012));
        let tried: Vec<(f64, f64)> = steps
            .take_while(|&period| period >= MIN_NS)
            .map(|period| (period, self.grouped(period).agreement(period)))
            .collect();
        let best = tried.iter().map(|(_, agreement)| *agreement).fold(0.0, f64::max);
        if best < MIN_AGREEMENT {
            return None;
        }
        // A half and a third of a period fit as well: the longest is it.
        let (coarse, _) = tried.into_iter().find(|(_, agreement)| *agreement >= MIN_AGREEMENT.max(best - 0.15))?;
        let groups = self.grouped(coarse);
        let near = (-40..=40).map(|step| coarse * (1.0 + f64::from(step) * 0.001));
        let (period, agreement) =
            near.map(|period| (period, groups.agreement(period))).max_by(|one, other| one.1.total_cmp(&other.1))?;
        let (period, kept) = groups.keeps_phase(period)?;
        groups
            .is_of_frames(period)
            .then(|| Period { period_ns: period.round() as u64, agreement: agreement.min(kept) })
    }

    /// What would be of one frame of this period is one group.
    fn grouped(&self, period: f64) -> Groups {
        let mut groups = Groups::default();
        for stretch in self.kept.chunks(STRETCH) {
            let mut begin: Option<f64> = None;
            for &cluster in stretch {
                let (at, acks) = ((cluster >> 8) as f64, (cluster & 0xff) as f64);
                match (begin, groups.acks.last_mut()) {
                    (Some(begin), Some(sum)) if at - begin < TOGETHER * period => *sum += acks,
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

/// Clusters put together that one frame of a certain period would have.
#[derive(Debug, Default)]
struct Groups {
    begins: Vec<f64>,
    acks: Vec<f64>,
    /// Where each stretch ends.
    ends: Vec<usize>,
}

/// Directions on a circle of one period, added up.
#[derive(Debug, Default)]
struct Circle {
    cosine: f64,
    sine: f64,
    count: f64,
}

impl Circle {
    fn add(&mut self, turns: f64) {
        let (s, c) = (turns * TAU).sin_cos();
        self.cosine += c;
        self.sine += s;
        self.count += 1.0;
    }

    /// Distances of a period point to 0, not anywhere: half a period off is not agreement.
    fn agreement(&self) -> f64 {
        if self.count == 0.0 {
            return 0.0;
        }
        (self.cosine / self.count).max(0.0) - (self.sine / self.count).abs()
    }

    /// The variance of the angle in periods², were it a normal one.
    fn variance(&self) -> f64 {
        let length = self.cosine.hypot(self.sine) / self.count;
        -2.0 * length.clamp(1e-9, 1.0).ln() / (TAU * TAU)
    }
}

impl Groups {
    /// The stretches, as ranges.
    fn stretches(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| begin..end)
    }

    /// Distances between groups so many apart.
    fn distances(&self, span: usize) -> impl Iterator<Item = f64> + '_ {
        self.stretches().flat_map(move |stretch| {
            let begins = &self.begins[stretch];
            begins.iter().zip(begins.iter().skip(span)).map(|(one, other)| other - one)
        })
    }

    /// How well distances keep to a period. Those of less than half of it count against it.
    fn agreement(&self, period: f64) -> f64 {
        let (mut circle, mut total, mut short) = (Circle::default(), 0.0, 0.0);
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

    /// The period made exact over more and more clusters, and how well they keep to it over many: `None` if its phase
    /// wanders.
    fn keeps_phase(&self, period: f64) -> Option<(f64, f64)> {
        let over = |span: usize, period: f64| {
            let mut circle = Circle::default();
            for distance in self.distances(span).filter(|distance| *distance < MAX_PERIODS * period * span as f64) {
                circle.add(distance / period);
            }
            circle
        };
        let mut period = period;
        let mut span = 1;
        let near = over(1, period);
        while span < FAR {
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
        let far = over(FAR, period);
        let wanders = far.variance() > MAX_GROWTH * near.variance() + PHASE_FLOOR;
        let agreement = far.agreement();
        (!wanders && agreement >= MIN_AGREEMENT - 0.15).then_some((period, agreement))
    }

    /// Whether the groups are those of a framing, and not of something else that has a period.
    fn is_of_frames(&self, period: f64) -> bool {
        let distances: Vec<f64> = self.distances(1).collect();
        let total = distances.len() as f64;
        let multiples: Vec<f64> = distances.iter().map(|distance| distance / period).filter(|&n| n > 1.5).collect();
        let singles = distances.iter().filter(|distance| (0.5..1.5).contains(&(**distance / period))).count() as f64;
        let (share, number) = MIN_MULTIPLES;
        if (multiples.len() as f64) < (share * total).max(number as f64) || singles < MIN_SINGLES * total {
            return false;
        }
        // Pauses keep to it by themselves, not only where even distances outnumber them.
        let mut paused = Circle::default();
        multiples.iter().filter(|multiple| **multiple < 4.0 * MAX_PERIODS).for_each(|&multiple| paused.add(multiple));
        let bunched = self.acks.iter().filter(|acks| **acks > 1.0).count() as f64;
        paused.agreement() >= MIN_AGREEMENT - 0.1
            && bunched >= MIN_BUNCHED * self.acks.len() as f64
            && self.proportion(period) < MAX_PROPORTION
            && self.has_no_rhythm(period)
    }

    /// How closely the gap before or after a group goes with its size: what is paced waits as long as what it sent takes.
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

    /// Whether what fills the frames does not recur: over all lags, the excess of the frames that have something so long
    /// after another that has over those that have something anyway is small (1 is a strict pattern), and so is how alike
    /// the errors are of what is so far apart. A round trip that is cut into periods shows in the one or the other.
    fn has_no_rhythm(&self, period: f64) -> bool {
        let lattices: Vec<Lattice> =
            self.stretches().map(|stretch| Lattice::new(&self.begins[stretch], period)).collect();
        let longest = lattices.iter().map(|lattice| lattice.full.len()).max().unwrap_or(0);
        let errors = || lattices.iter().flat_map(|lattice| &lattice.errors);
        let variance = errors().map(|error| error * error).sum::<f64>() / errors().count() as f64;
        // What is full for a while is full a little later too, and errors last. A rhythm has to recur.
        let (mut filling, mut erring) = (Recurrence::default(), Recurrence::default());
        for lag in 1..longest / 2 {
            let (mut recurred, mut tried, mut filled, mut alike) = (0.0, 0.0, 0.0, 0.0);
            for Lattice { slots, full, errors } in &lattices {
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
            // Less what chance may add, four deviations.
            if tried >= 128.0 && filled < tried {
                let base = filled / tried;
                filling.see((recurred / tried - base - 4.0 * (base * (1.0 - base) / tried).sqrt()) / (1.0 - base));
            }
            if recurred >= 128.0 && variance > MIN_ERROR * MIN_ERROR {
                erring.see(alike / recurred / variance - 4.0 / recurred.sqrt());
            }
        }
        let calm = filling.gone && filling.most < MAX_RHYTHM && erring.most < MAX_ERROR_RHYTHM;
        calm && !lattices.iter().any(Lattice::has_a_beat)
    }
}

/// What comes back after it has gone.
#[derive(Debug, Default)]
struct Recurrence {
    gone: bool,
    most: f64,
}

impl Recurrence {
    fn see(&mut self, excess: f64) {
        self.gone |= excess < TRAIN_OVER;
        if self.gone {
            self.most = self.most.max(excess);
        }
    }
}

/// The groups of a stretch on a lattice of one period.
#[derive(Debug)]
struct Lattice {
    /// Periods since the first, of each group.
    slots: Vec<u64>,
    /// Of each period, the number of the group in it; 0 for none.
    full: Vec<u32>,
    /// How far off each group is, in periods, less what those around it are.
    errors: Vec<f64>,
}

impl Lattice {
    fn new(begins: &[f64], period: f64) -> Self {
        // Pauses longer than this are cut short: nothing recurs after them that would not otherwise.
        const LONGEST: u64 = 4 * STRETCH as u64;
        const AROUND: usize = FAR;
        let (mut slot, mut error) = (0, 0.0);
        let (mut slots, mut raw) = (vec![0], vec![0.0]);
        for pair in begins.windows(2) {
            let periods = (pair[1] - pair[0]) / period;
            slot += (periods.round() as u64).clamp(1, LONGEST);
            error += periods - periods.round();
            slots.push(slot);
            raw.push(error);
        }
        let mut full = vec![0; slot as usize + 1];
        slots.iter().enumerate().for_each(|(number, &slot)| full[slot as usize] = number as u32 + 1);
        let errors = raw.iter().enumerate().map(|(number, error)| {
            let around = &raw[number.saturating_sub(AROUND)..(number + AROUND + 1).min(raw.len())];
            error - around.iter().sum::<f64>() / around.len() as f64
        });
        Self { slots, full, errors: errors.collect() }
    }

    /// Whether one period of so many is always full, and others are not: what begins anew in each round trip.
    fn has_a_beat(&self) -> bool {
        let share = self.slots.len() as f64 / self.full.len() as f64;
        let mut of_place = vec![0_u32; MAX_BEAT];
        (2..MAX_BEAT.min(self.full.len() / 16)).any(|beat| {
            of_place[..beat].fill(0);
            self.slots.iter().for_each(|&slot| of_place[slot as usize % beat] += 1);
            let rounds = (self.full.len() / beat) as f64;
            let fullest = f64::from(of_place[..beat].iter().copied().max().unwrap_or(0)) / rounds;
            let chance = (share * (1.0 - share) / rounds).sqrt();
            fullest > ALWAYS && fullest - share > 5.0 * chance
        })
    }
}

/// Pearson's.
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
