//! Comparison of two taps' clocks by the packets seen at both: offset, drift, steps, and the remaining delay.
//!
//! The second clock's timestamp minus the first's is the clock offset plus the one-way delay (forward), or minus
//! it (reverse). The minimum delays of both directions therefore bound the offset. The drift is the slope of a
//! line below the minima: the edge of their convex hull in the middle of the time span (Moon, Skelly, Towsley,
//! "Estimation and removal of clock skew from network delay measurements", INFOCOM 1999). A filling queue tilts
//! the line of one direction, drift tilts both.

use landspeed_model::{ClockStep, DelayOverTime};
use landspeed_stats::SplitMix64;

/// Maximum number of time bins.
pub const MAX_BINS: usize = 512;
/// Maximum number of matches sampled per direction, for quantiles.
const SAMPLE: usize = 16_384;
/// Minimum width of a bin, nanoseconds.
const MIN_WIDTH_NS: u64 = 1_000_000;
/// Maximum plausible drift: crystals are within 100 ppm, and NTP slews by at most 500.
const MAX_DRIFT: f64 = 1e-3;
/// Bins on each side of a step that must agree on it.
const STEP_BINS: usize = 3;
/// Maximum number of steps.
const MAX_STEPS: usize = 8;
/// Change of the offset between two packets that means a clock was set, nanoseconds.
const CLOCK_SET_NS: i64 = 250_000_000;
/// Minimum step, nanoseconds; smaller ones look like delay variation.
const MIN_STEP_NS: i64 = 50_000;

/// A packet seen at both taps: its time at the first, and the second timestamp minus the first. The difference is
/// negated for reverse packets, so that the minimum delay is the minimum in both directions.
#[derive(Debug, Clone, Copy, Default)]
struct Point {
    time_ns: i64,
    clock_diff_ns: i64,
}

/// One bin of one direction.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    packets: u64,
    least: Point,
    most: Point,
}

impl Bin {
    fn add(&mut self, point: Point) {
        if self.packets == 0 {
            (self.least, self.most) = (point, point);
        } else if point.clock_diff_ns < self.least.clock_diff_ns {
            self.least = point;
        } else if point.clock_diff_ns > self.most.clock_diff_ns {
            self.most = point;
        }
        self.packets += 1;
    }

    fn join(&mut self, other: &Self) {
        if other.packets == 0 {
            return;
        }
        let packets = self.packets + other.packets;
        if self.packets == 0 {
            *self = *other;
        }
        if other.least.clock_diff_ns < self.least.clock_diff_ns {
            self.least = other.least;
        }
        if other.most.clock_diff_ns > self.most.clock_diff_ns {
            self.most = other.most;
        }
        self.packets = packets;
    }
}

/// Matched packets of one direction.
#[derive(Debug, Clone, Default)]
struct DelaySamples {
    bins: Vec<Bin>,
    packets: u64,
    sample: Vec<Point>,
    random: SplitMix64,
}

impl DelaySamples {
    /// Adds a point to the sample (reservoir sampling, Vitter's algorithm R).
    fn keep(&mut self, point: Point) {
        self.packets += 1;
        if self.sample.len() < SAMPLE {
            self.sample.push(point);
            return;
        }
        let place = self.random.below(self.packets);
        if let Some(slot) = self.sample.get_mut(place as usize) {
            *slot = point;
        }
    }
}

/// Matched packets of both directions over time.
#[derive(Debug, Clone)]
pub struct Clocks {
    directions: [DelaySamples; 2],
    start_ns: Option<i64>,
    width_ns: u64,
    /// Number and start of the bin of the latest match.
    at: usize,
    from_ns: u64,
    /// The latest match of each direction: time and difference.
    latest: [Option<(i64, i64)>; 2],
    /// Correction of the first clock's times, by direction, so that time is continuous when that clock is set. The
    /// two directions see the step one after the other.
    shift_ns: [i64; 2],
}

/// The clock offset as a function of time: a line with steps.
#[derive(Debug, Clone, Default)]
struct OffsetModel {
    start_ns: i64,
    drift: f64,
    steps: Vec<Step>,
}

/// A clock step: the interval in which it happened, and its size.
#[derive(Debug, Clone, Copy)]
struct Step {
    from_ns: i64,
    to_ns: i64,
    size_ns: i64,
}

impl OffsetModel {
    fn at(&self, time_ns: i64) -> i64 {
        let stepped: i64 = self.steps.iter().filter(|step| step.to_ns <= time_ns).map(|step| step.size_ns).sum();
        (self.drift * (time_ns - self.start_ns) as f64).round() as i64 + stepped
    }

    /// Returns whether a step happened in a time span.
    fn overlaps(&self, from_ns: i64, to_ns: i64) -> bool {
        self.steps.iter().any(|step| step.from_ns < to_ns && from_ns < step.to_ns)
    }

    /// Returns whether a time is within the interval of a step, where the offset is uncertain.
    fn is_uncertain(&self, time_ns: i64) -> bool {
        self.steps.iter().any(|step| (step.from_ns..step.to_ns).contains(&time_ns))
    }
}

/// The result of comparing two clocks.
#[derive(Debug, Clone, Default)]
pub struct ClockComparison {
    /// Offset of the second clock at the first match, assuming equal one-way delays, nanoseconds.
    pub offset_ns: Option<i64>,
    /// Drift of the second clock and its uncertainty, parts per million.
    pub drift_ppm: Option<(f64, f64)>,
    /// Steps removed from the delays.
    pub steps: Vec<ClockStep>,
    /// Minimum RTT between the taps, nanoseconds.
    pub round_trip_ns: Option<u64>,
    /// One-way delays: forward, reverse.
    pub delays: [Delays; 2],
}

/// One-way delay above the minimum of one direction.
#[derive(Debug, Clone, Default)]
pub struct Delays {
    /// Median, nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99th percentile, nanoseconds.
    pub p99_ns: Option<u64>,
    /// Maximum, nanoseconds.
    pub max_ns: Option<u64>,
    /// Delays per time bin.
    pub over_time: DelayOverTime,
}

impl Clocks {
    /// Creates a comparison without matches.
    pub fn new() -> Self {
        Self {
            directions: Default::default(),
            start_ns: None,
            width_ns: MIN_WIDTH_NS,
            at: 0,
            from_ns: 0,
            latest: [None; 2],
            shift_ns: [0; 2],
        }
    }

    /// Adds a packet seen at both taps; `clock_diff_ns` is the second timestamp minus the first.
    pub fn matched(&mut self, time_ns: i64, clock_diff_ns: i64, reverse: bool) {
        let direction = usize::from(reverse);
        let mut time_ns = time_ns.saturating_add(self.shift_ns[direction]);
        if let Some((latest_ns, before_ns)) = self.latest[direction]
            && (clock_diff_ns - before_ns).abs() > CLOCK_SET_NS
        {
            time_ns += self.shift_time(direction, time_ns - latest_ns, clock_diff_ns - before_ns);
        }
        self.latest[direction] = Some((time_ns, clock_diff_ns));
        let point = Point { time_ns, clock_diff_ns: if reverse { -clock_diff_ns } else { clock_diff_ns } };
        let start_ns = *self.start_ns.get_or_insert(time_ns);
        // Points before the first match belong to the first bin.
        let since_ns = time_ns.saturating_sub(start_ns).max(0) as u64;
        // Divide only when the bin changes.
        if since_ns.wrapping_sub(self.from_ns) >= self.width_ns {
            self.open_bin(since_ns);
        }
        let at = self.at;
        let samples = &mut self.directions[direction];
        if at >= samples.bins.len() {
            samples.bins.resize(at + 1, Bin::default());
        }
        samples.bins[at].add(point);
        samples.keep(point);
    }

    /// Handles a jump of the difference. Returns the correction of the packet's time: the jump if the first clock was
    /// set, otherwise 0.
    #[cold]
    fn shift_time(&mut self, direction: usize, passed_ns: i64, jump_ns: i64) -> i64 {
        // If the first clock was set, it moved by the negated jump, and most of that shows in the time between the
        // two packets.
        let set = if jump_ns > 0 { passed_ns < -jump_ns / 2 } else { passed_ns > -jump_ns / 2 };
        let shift_ns = if set { jump_ns } else { 0 };
        self.shift_ns[direction] += shift_ns;
        shift_ns
    }

    /// Opens the bin that contains a time, doubling the bin width if there are too many bins.
    #[cold]
    fn open_bin(&mut self, since_ns: u64) {
        while since_ns / self.width_ns >= MAX_BINS as u64 {
            self.width_ns *= 2;
            for samples in &mut self.directions {
                samples.bins = samples.bins.chunks(2).map(joined).collect();
            }
        }
        self.at = (since_ns / self.width_ns) as usize;
        self.from_ns = self.at as u64 * self.width_ns;
    }

    /// Returns the floors of both directions so far: the minimum difference forward, the maximum reverse.
    pub fn floors(&self) -> [Option<i64>; 2] {
        let floor = |samples: &DelaySamples| {
            samples.bins.iter().filter(|bin| bin.packets > 0).map(|bin| bin.least.clock_diff_ns).min()
        };
        [floor(&self.directions[0]), floor(&self.directions[1]).map(|floor| -floor)]
    }

    /// Compares the clocks. Times in the result count from `zero_ns`.
    pub fn compare(&self, zero_ns: i64) -> ClockComparison {
        let Some(start_ns) = self.start_ns else { return ClockComparison::default() };
        let mut difference = OffsetModel { start_ns, drift: 0.0, steps: Vec::new() };
        self.find_steps(&mut difference);
        let mut drift = None;
        for _ in 0..if difference.steps.is_empty() { 1 } else { 3 } {
            // Estimate the whole drift, not the remainder after the previous iteration.
            difference.drift = 0.0;
            drift = self.drift(&difference);
            if let Some((drift, error)) = drift
                && drift.abs() > error
            {
                difference.drift = drift;
            }
            self.refine_steps(&mut difference);
        }
        let [forward, reverse] = [false, true].map(|reverse| self.floor(&difference, reverse));
        let delays = [false, true].map(|reverse| self.delays(&difference, reverse, zero_ns));
        let steps =
            difference.steps.iter().map(|step| ClockStep { time_ns: step.to_ns - zero_ns, step_ns: step.size_ns });
        ClockComparison {
            offset_ns: forward.zip(reverse).map(|(forward, reverse)| i64::midpoint(forward, -reverse)),
            drift_ppm: drift.map(|(drift, error)| (drift * 1e6, error * 1e6)),
            steps: steps.collect(),
            round_trip_ns: forward.zip(reverse).and_then(|(forward, reverse)| {
                // Reverse packets pass the first tap after the second, and the clocks drift meanwhile.
                let drifted = difference.drift * (forward + reverse) as f64;
                u64::try_from(forward + reverse - drifted.round() as i64).ok()
            }),
            delays,
        }
    }

    /// Returns the minimum of each bin of a direction, without the clock offset.
    fn least<'a>(&'a self, difference: &'a OffsetModel, reverse: bool) -> impl Iterator<Item = Point> + 'a {
        let bins = self.directions[usize::from(reverse)].bins.iter();
        bins.filter(|bin| bin.packets > 0).map(move |bin| corrected(bin.least, difference, reverse))
    }

    fn floor(&self, difference: &OffsetModel, reverse: bool) -> Option<i64> {
        let sure = self.least(difference, reverse).filter(|point| !difference.is_uncertain(point.time_ns));
        // With the drift removed, another point of a bin may be its minimum; the sample has some of those.
        let sample = self.directions[usize::from(reverse)].sample.iter();
        let sample = sample.filter(|point| !difference.is_uncertain(point.time_ns));
        sure.chain(sample.map(|point| corrected(*point, difference, reverse))).map(|point| point.clock_diff_ns).min()
    }

    /// Finds the steps, the largest first.
    fn find_steps(&self, difference: &mut OffsetModel) {
        for _ in 0..MAX_STEPS {
            let Some(step) = self.largest_step(difference) else { break };
            difference.steps.push(step);
        }
        difference.steps.sort_unstable_by_key(|step| step.to_ns);
    }

    /// Refines each step, now that the drift is known: by the minimum delays between it and its neighbours, if both
    /// directions agree.
    fn refine_steps(&self, difference: &mut OffsetModel) {
        for at in 0..difference.steps.len() {
            let step = difference.steps[at];
            let from_ns = at.checked_sub(1).map_or(i64::MIN, |before| difference.steps[before].to_ns);
            let to_ns = difference.steps.get(at + 1).map_or(i64::MAX, |after| after.from_ns);
            let change = |reverse: bool| {
                let floor = |from_ns: i64, to_ns: i64| {
                    let points = self.least(difference, reverse).chain(
                        self.directions[usize::from(reverse)]
                            .sample
                            .iter()
                            .map(|point| corrected(*point, difference, reverse)),
                    );
                    points
                        .filter(|point| (from_ns..to_ns).contains(&point.time_ns))
                        .map(|point| point.clock_diff_ns)
                        .min()
                };
                Some(floor(step.to_ns, to_ns)? - floor(from_ns, step.from_ns)?)
            };
            let Some((forward, reverse)) = change(false).zip(change(true)) else { continue };
            // The bins on both sides differ by the drift in between: crystals are within 100 ppm.
            let most_ns = (step.to_ns - step.from_ns + 2 * STEP_BINS as i64 * self.width_ns as i64) / 10_000;
            let agree = (forward + reverse).abs() <= MIN_STEP_NS / 10;
            if agree && i64::midpoint(forward, -reverse).abs() <= most_ns {
                difference.steps[at].size_ns += i64::midpoint(forward, -reverse);
            }
        }
    }

    fn largest_step(&self, difference: &OffsetModel) -> Option<Step> {
        // Bins with both directions, as bounds of the second clock's lead: upper by forward, lower by reverse packets.
        let bins = self.directions[0].bins.iter().zip(&self.directions[1].bins).enumerate();
        let bounds: Vec<(usize, i64, i64)> = bins
            .filter(|(_, (forward, reverse))| forward.packets > 0 && reverse.packets > 0)
            // Bins around a removed step mix packets from before and after it.
            .filter(|(at, _)| !difference.overlaps(self.bin_start_ns(*at), self.bin_start_ns(*at + 1)))
            .map(|(at, (forward, reverse))| {
                let upper = corrected(forward.least, difference, false).clock_diff_ns;
                (at, upper, -corrected(reverse.least, difference, true).clock_diff_ns)
            })
            .collect();
        // A packet may pass the first tap before the second clock's step, and its ACK after it.
        let mut round_trips: Vec<i64> = bounds.iter().map(|bound| bound.1 - bound.2).collect();
        round_trips.sort_unstable();
        let round_trip = round_trips.get(round_trips.len() / 2).copied().unwrap_or(0).max(0) as u64;
        let between = 1 + round_trip.div_ceil(self.width_ns) as usize;
        let last = bounds.len().saturating_sub(between + STEP_BINS - 1);
        let jumps = (STEP_BINS..last).map(|at| {
            let (left, right) = (&bounds[at - STEP_BINS..at], &bounds[at + between..at + between + STEP_BINS]);
            let upper = |side: &[(usize, i64, i64)]| side.iter().map(|bound| bound.1).min().unwrap_or(0);
            let lower = |side: &[(usize, i64, i64)]| side.iter().map(|bound| bound.2).max().unwrap_or(0);
            (at, upper(right) - upper(left), lower(right) - lower(left))
        });
        let jumps: Vec<(usize, i64, i64)> = jumps.collect();
        let mut usual: Vec<i64> = jumps.iter().map(|(_, upper, lower)| upper.abs().max(lower.abs())).collect();
        usual.sort_unstable();
        let noise = usual.get(usual.len() / 2).copied()?;
        let least = MIN_STEP_NS.max(noise.saturating_mul(8));
        // A clock step moves both directions equally. A queue that empties while the other direction's fills does not.
        let together = |(_, upper, lower): &&(usize, i64, i64)| {
            let smaller = upper.abs().min(lower.abs());
            let unlike = (smaller / 32).max(2 * noise).max(MIN_STEP_NS / 10).min(smaller / 4);
            upper.signum() == lower.signum() && smaller > least && (upper - lower).abs() <= unlike
        };
        let size = |jump: &(usize, i64, i64)| jump.1.abs().min(jump.2.abs());
        let best = jumps.iter().filter(together).max_by_key(|jump| size(jump))?;
        let (upper, lower) = (best.1, best.2);
        // Several positions may explain the step equally well; it is in their range.
        let as_well = |jump: &&(usize, i64, i64)| {
            together(jump)
                && jump.0.abs_diff(best.0) <= between
                && (jump.1 - upper).abs() + (jump.2 - lower).abs() <= size(best) / 8
        };
        let (first, last) = jumps
            .iter()
            .filter(as_well)
            .fold((best.0, best.0), |(first, last), jump| (first.min(jump.0), last.max(jump.0)));
        let (from_ns, to_ns) =
            (self.bin_start_ns(bounds[first].0), self.bin_start_ns(bounds[last + between - 1].0 + 1));
        Some(Step { from_ns, to_ns, size_ns: i64::midpoint(upper, lower) })
    }

    /// Returns the start of a bin.
    fn bin_start_ns(&self, bin: usize) -> i64 {
        self.start_ns.unwrap_or(0) + bin as i64 * self.width_ns as i64
    }

    /// Returns the drift of the second clock and its uncertainty, as ratios. Needs packets in both directions.
    fn drift(&self, difference: &OffsetModel) -> Option<(f64, f64)> {
        let fit = |reverse| {
            let points: Vec<Point> =
                self.least(difference, reverse).filter(|point| !difference.is_uncertain(point.time_ns)).collect();
            slope(&points)
        };
        let (forward, reverse) = (fit(false)?, fit(true)?);
        let reverse = (-reverse.0, reverse.1);
        let plausible = |slope: &(f64, f64)| slope.0.abs() < MAX_DRIFT;
        let gap = (forward.0 - reverse.0).abs();
        match (plausible(&forward), plausible(&reverse)) {
            (true, true) if gap <= 3.0 * (forward.1 + reverse.1) => {
                let [one, two] = [forward, reverse].map(|slope| 1.0 / slope.1.max(1e-12).powi(2));
                let drift = (forward.0 * one + reverse.0 * two) / (one + two);
                Some((drift, (gap / 2.0).max((one + two).sqrt().recip())))
            }
            // A queue tilts one of them: the slope with the smaller error is the drift.
            (true, true) => Some(if forward.1 < reverse.1 { forward } else { reverse }),
            (true, false) => Some(forward),
            (false, true) => Some(reverse),
            (false, false) => None,
        }
    }

    fn delays(&self, difference: &OffsetModel, reverse: bool, zero_ns: i64) -> Delays {
        let samples = &self.directions[usize::from(reverse)];
        let (Some(floor), Some(start_ns)) = (self.floor(difference, reverse), self.start_ns) else {
            return Delays::default();
        };
        let over = |point: Point| (corrected(point, difference, reverse).clock_diff_ns - floor).max(0) as u64;
        let sure = |point: &Point| !difference.is_uncertain(point.time_ns);
        let mut all: Vec<u64> = samples.sample.iter().copied().filter(sure).map(over).collect();
        all.sort_unstable();
        let greatest = samples.bins.iter().filter(|bin| bin.packets > 0 && sure(&bin.most)).map(|bin| over(bin.most));
        let mut per_bin: Vec<Vec<u64>> = vec![Vec::new(); samples.bins.len()];
        for point in &samples.sample {
            let at = (point.time_ns.saturating_sub(start_ns).max(0) as u64 / self.width_ns) as usize;
            if let Some(bin) = per_bin.get_mut(at).filter(|_| sure(point)) {
                bin.push(over(*point));
            }
        }
        let median = |mut values: Vec<u64>| {
            values.sort_unstable();
            quantile(&values, 0.5)
        };
        let over_time = DelayOverTime {
            start_ns: start_ns - zero_ns,
            width_ns: self.width_ns,
            packets: samples.bins.iter().map(|bin| bin.packets).collect(),
            p50_ns: per_bin.into_iter().map(median).collect(),
            max_ns: samples
                .bins
                .iter()
                .map(|bin| (bin.packets > 0 && sure(&bin.most)).then(|| over(bin.most)))
                .collect(),
        };
        Delays {
            p50_ns: quantile(&all, 0.5),
            p99_ns: quantile(&all, 0.99),
            max_ns: greatest.chain(all.last().copied()).max(),
            over_time,
        }
    }
}

fn joined(pair: &[Bin]) -> Bin {
    let mut bin = Bin::default();
    for other in pair {
        bin.join(other);
    }
    bin
}

/// Returns a point without the clock offset, whose sign depends on the direction.
fn corrected(point: Point, difference: &OffsetModel, reverse: bool) -> Point {
    let ahead = difference.at(point.time_ns);
    Point { clock_diff_ns: if reverse { point.clock_diff_ns + ahead } else { point.clock_diff_ns - ahead }, ..point }
}

/// Returns the quantile of sorted values.
fn quantile(sorted: &[u64], share: f64) -> Option<u64> {
    let rank = ((sorted.len() as f64 * share).ceil() as usize).max(1);
    sorted.get(rank - 1).copied()
}

/// Returns the slope of the closest line below the points, and its uncertainty: the first quartile of the distances from the
/// line, over the time span of the points. `None` for fewer than four points or no time span.
fn slope(points: &[Point]) -> Option<(f64, f64)> {
    let (first, last) = (points.first()?, points.last()?);
    let span = (last.time_ns - first.time_ns) as f64;
    if points.len() < 4 || span <= 0.0 {
        return None;
    }
    let mut hull: Vec<Point> = Vec::new();
    for &point in points {
        while let [.., before, top] = hull[..]
            && is_above_line(before, top, point)
        {
            hull.pop();
        }
        hull.push(point);
    }
    let middle = points.iter().map(|point| i128::from(point.time_ns)).sum::<i128>() / points.len() as i128;
    let edge = hull.windows(2).find(|edge| i128::from(edge[1].time_ns) >= middle)?;
    let run = (edge[1].time_ns - edge[0].time_ns) as f64;
    if run <= 0.0 {
        return None;
    }
    let slope = (edge[1].clock_diff_ns - edge[0].clock_diff_ns) as f64 / run;
    let line = |point: &Point| edge[0].clock_diff_ns as f64 + slope * (point.time_ns - edge[0].time_ns) as f64;
    let mut misses: Vec<f64> = points.iter().map(|point| point.clock_diff_ns as f64 - line(point)).collect();
    misses.sort_by(f64::total_cmp);
    let miss = misses[misses.len() / 4].max(0.0);
    Some((slope, miss / span))
}

/// Returns whether the middle one of three points, in order of time, lies above the line through the others.
fn is_above_line(a: Point, b: Point, c: Point) -> bool {
    let area = i128::from(b.time_ns - a.time_ns) * i128::from(c.clock_diff_ns - a.clock_diff_ns)
        - i128::from(b.clock_diff_ns - a.clock_diff_ns) * i128::from(c.time_ns - a.time_ns);
    area <= 0
}
