//! Two clocks compared by the packets that passed both: offset, drift, steps, and what remains as delay.
//!
//! What the second clock says minus the first is the clocks' difference plus the delay on the way there, and the clocks'
//! difference minus the delay on the way back. The least delays of both ways therefore enclose the clocks' difference. A line
//! below the least ones (through the edge of their convex hull at the middle of the time: Moon, Skelly, Towsley, "Estimation
//! and removal of clock skew from network delay measurements", INFOCOM 1999) has the drift as its slope. A queue that fills
//! tilts one of the two lines, a clock both.

use landspeed_model::{ClockStep, DelayOverTime};

/// Bins of time.
pub const MOST_BINS: usize = 512;
/// Matches of a way kept for its quantiles.
const SAMPLE: usize = 16_384;
/// Least width of a bin, nanoseconds.
const LEAST_WIDTH_NS: u64 = 1_000_000;
/// No clock drifts faster: crystals are right to 100 ppm, and NTP slews by 500 at most.
const FASTEST: f64 = 1e-3;
/// Bins before and after a step that must agree on it.
const BESIDE: usize = 3;
/// Steps looked for.
const MOST_STEPS: usize = 8;
/// A difference that changes by more than this between two packets is a clock that was set, nanoseconds.
const SET_NS: i64 = 250_000_000;
/// Steps smaller than this are left to the delay's variation, nanoseconds.
const LEAST_STEP_NS: i64 = 50_000;

/// A packet at both taps: when it passed the first, and how far the second's clock was ahead when it passed that. On the way
/// back the difference is negated, so that both ways have their least delay at the bottom.
#[derive(Debug, Clone, Copy, Default)]
struct Point {
    time_ns: i64,
    ahead_ns: i64,
}

/// One bin of one way.
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
        } else if point.ahead_ns < self.least.ahead_ns {
            self.least = point;
        } else if point.ahead_ns > self.most.ahead_ns {
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
        if other.least.ahead_ns < self.least.ahead_ns {
            self.least = other.least;
        }
        if other.most.ahead_ns > self.most.ahead_ns {
            self.most = other.most;
        }
        self.packets = packets;
    }
}

/// What passed one way.
#[derive(Debug, Clone, Default)]
struct Way {
    bins: Vec<Bin>,
    packets: u64,
    sample: Vec<Point>,
    state: u64,
}

impl Way {
    /// Keeps a point with the same chance as every other (reservoir sampling, Vitter's algorithm R).
    fn keep(&mut self, point: Point) {
        self.packets += 1;
        if self.sample.len() < SAMPLE {
            self.sample.push(point);
            return;
        }
        // A multiplicative generator is random enough, and always the same.
        self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let place = ((u128::from(self.state) * u128::from(self.packets)) >> 64) as usize;
        if let Some(slot) = self.sample.get_mut(place) {
            *slot = point;
        }
    }
}

/// The matches of both ways over time.
#[derive(Debug, Clone)]
pub struct Clocks {
    ways: [Way; 2],
    start_ns: Option<i64>,
    width_ns: u64,
    /// The bin of the latest match, and where it begins.
    at: usize,
    from_ns: u64,
    /// The latest match of each way: its time, and the difference.
    latest: [Option<(i64, i64)>; 2],
    /// Added to the first clock's times of each way, so that time goes on where that clock was set. The ways meet that moment one
    /// after the other.
    shift_ns: [i64; 2],
}

/// The difference of the clocks as a function of time: a line with steps.
#[derive(Debug, Clone, Default)]
struct Difference {
    start_ns: i64,
    drift: f64,
    steps: Vec<Step>,
}

/// A step: not begun before the one time and over at the other, and by how much.
#[derive(Debug, Clone, Copy)]
struct Step {
    from_ns: i64,
    to_ns: i64,
    by_ns: i64,
}

impl Difference {
    fn at(&self, time_ns: i64) -> i64 {
        let stepped: i64 = self.steps.iter().filter(|step| step.to_ns <= time_ns).map(|step| step.by_ns).sum();
        (self.drift * (time_ns - self.start_ns) as f64).round() as i64 + stepped
    }

    /// Whether a step happened in a span of time.
    fn meets(&self, from_ns: i64, to_ns: i64) -> bool {
        self.steps.iter().any(|step| step.from_ns < to_ns && from_ns < step.to_ns)
    }

    /// Whether this is about when a step happened.
    fn unsure(&self, time_ns: i64) -> bool {
        self.steps.iter().any(|step| (step.from_ns..step.to_ns).contains(&time_ns))
    }
}

/// What is known of two clocks and of the delay between them.
#[derive(Debug, Clone, Default)]
pub struct Compared {
    /// The second minus the first at the first match, if both ways take as long, nanoseconds.
    pub offset_ns: Option<i64>,
    /// How much faster the second runs, parts per million, and how far that may be wrong.
    pub drift_ppm: Option<(f64, f64)>,
    /// Steps that were taken out.
    pub steps: Vec<ClockStep>,
    /// There and back at the least, nanoseconds.
    pub round_trip_ns: Option<u64>,
    /// Of each way.
    pub delays: [Delays; 2],
}

/// Delay over the least of one way.
#[derive(Debug, Clone, Default)]
pub struct Delays {
    /// Median, nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99th percentile, nanoseconds.
    pub p99_ns: Option<u64>,
    /// Greatest, nanoseconds.
    pub max_ns: Option<u64>,
    /// Over time.
    pub over_time: DelayOverTime,
}

impl Clocks {
    /// Nothing matched yet.
    pub fn new() -> Self {
        Self {
            ways: Default::default(),
            start_ns: None,
            width_ns: LEAST_WIDTH_NS,
            at: 0,
            from_ns: 0,
            latest: [None; 2],
            shift_ns: [0; 2],
        }
    }

    /// A packet that passed both taps; `back` tells the way.
    pub fn matched(&mut self, time_ns: i64, ahead_ns: i64, back: bool) {
        let way = usize::from(back);
        let mut time_ns = time_ns.saturating_add(self.shift_ns[way]);
        if let Some((latest_ns, before_ns)) = self.latest[way]
            && (ahead_ns - before_ns).abs() > SET_NS
        {
            time_ns += self.go_on(way, time_ns - latest_ns, ahead_ns - before_ns);
        }
        self.latest[way] = Some((time_ns, ahead_ns));
        let point = Point { time_ns, ahead_ns: if back { -ahead_ns } else { ahead_ns } };
        let start_ns = *self.start_ns.get_or_insert(time_ns);
        // What is earlier than the first match belongs to the first bin.
        let since_ns = time_ns.saturating_sub(start_ns).max(0) as u64;
        // A division only where another bin is met.
        if since_ns.wrapping_sub(self.from_ns) >= self.width_ns {
            self.turn(since_ns);
        }
        let at = self.at;
        let way = &mut self.ways[usize::from(back)];
        if at >= way.bins.len() {
            way.bins.resize(at + 1, Bin::default());
        }
        way.bins[at].add(point);
        way.keep(point);
    }

    /// The difference jumps: if it was the first clock that was set, the time goes on as if it had not been. Returns what has
    /// to be added for that.
    #[cold]
    fn go_on(&mut self, way: usize, passed_ns: i64, jump_ns: i64) -> i64 {
        // The first clock was set by the opposite, and most of that shows in the time between the two packets.
        let set = if jump_ns > 0 { passed_ns < -jump_ns / 2 } else { passed_ns > -jump_ns / 2 };
        let shift_ns = if set { jump_ns } else { 0 };
        self.shift_ns[way] += shift_ns;
        shift_ns
    }

    /// Finds the bin of a time.
    #[cold]
    fn turn(&mut self, since_ns: u64) {
        while since_ns / self.width_ns >= MOST_BINS as u64 {
            self.width_ns *= 2;
            for way in &mut self.ways {
                way.bins = way.bins.chunks(2).map(joined).collect();
            }
        }
        self.at = (since_ns / self.width_ns) as usize;
        self.from_ns = self.at as u64 * self.width_ns;
    }

    /// The floors of both ways so far: least difference there, greatest back.
    pub fn floors(&self) -> [Option<i64>; 2] {
        let floor = |way: &Way| way.bins.iter().filter(|bin| bin.packets > 0).map(|bin| bin.least.ahead_ns).min();
        [floor(&self.ways[0]), floor(&self.ways[1]).map(|floor| -floor)]
    }

    /// What all of it says. Times of the document count from `zero_ns`.
    pub fn compare(&self, zero_ns: i64) -> Compared {
        let Some(start_ns) = self.start_ns else { return Compared::default() };
        let mut difference = Difference { start_ns, drift: 0.0, steps: Vec::new() };
        self.find_steps(&mut difference);
        let mut drift = None;
        for _ in 0..if difference.steps.is_empty() { 1 } else { 3 } {
            // All of it, not what the drift taken out before has left.
            difference.drift = 0.0;
            drift = self.drift(&difference);
            if let Some((drift, unsure)) = drift
                && drift.abs() > unsure
            {
                difference.drift = drift;
            }
            self.refine_steps(&mut difference);
        }
        let [there, back] = [false, true].map(|back| self.floor(&difference, back));
        let delays = [false, true].map(|back| self.delays(&difference, back, zero_ns));
        let steps =
            difference.steps.iter().map(|step| ClockStep { time_ns: step.to_ns - zero_ns, step_ns: step.by_ns });
        Compared {
            offset_ns: there.zip(back).map(|(there, back)| i64::midpoint(there, -back)),
            drift_ppm: drift.map(|(drift, unsure)| (drift * 1e6, unsure * 1e6)),
            steps: steps.collect(),
            round_trip_ns: there.zip(back).and_then(|(there, back)| {
                // What comes back passes the first tap later than the second, by which the clocks drift on.
                let drifted = difference.drift * (there + back) as f64;
                u64::try_from(there + back - drifted.round() as i64).ok()
            }),
            delays,
        }
    }

    /// The points at the bottom of the bins of a way, the clocks' difference taken out.
    fn least<'a>(&'a self, difference: &'a Difference, back: bool) -> impl Iterator<Item = Point> + 'a {
        let bins = self.ways[usize::from(back)].bins.iter();
        bins.filter(|bin| bin.packets > 0).map(move |bin| corrected(bin.least, difference, back))
    }

    fn floor(&self, difference: &Difference, back: bool) -> Option<i64> {
        let sure = self.least(difference, back).filter(|point| !difference.unsure(point.time_ns));
        // With a line taken out, the least of a bin is not exactly its floor; the sample has the rest.
        let sample = self.ways[usize::from(back)].sample.iter();
        let sample = sample.filter(|point| !difference.unsure(point.time_ns));
        sure.chain(sample.map(|point| corrected(*point, difference, back))).map(|point| point.ahead_ns).min()
    }

    /// Finds where both ways jump together, the greatest first.
    fn find_steps(&self, difference: &mut Difference) {
        for _ in 0..MOST_STEPS {
            let Some(step) = self.greatest_step(difference) else { break };
            difference.steps.push(step);
        }
        difference.steps.sort_unstable_by_key(|step| step.to_ns);
    }

    /// Sets each step by the floors of all that lies between it and its neighbours, where both ways agree on it: by then the
    /// drift is known.
    fn refine_steps(&self, difference: &mut Difference) {
        for at in 0..difference.steps.len() {
            let step = difference.steps[at];
            let from_ns = at.checked_sub(1).map_or(i64::MIN, |before| difference.steps[before].to_ns);
            let to_ns = difference.steps.get(at + 1).map_or(i64::MAX, |after| after.from_ns);
            let change = |back: bool| {
                let floor = |from_ns: i64, to_ns: i64| {
                    let points = self.least(difference, back).chain(
                        self.ways[usize::from(back)].sample.iter().map(|point| corrected(*point, difference, back)),
                    );
                    points.filter(|point| (from_ns..to_ns).contains(&point.time_ns)).map(|point| point.ahead_ns).min()
                };
                Some(floor(step.to_ns, to_ns)? - floor(from_ns, step.from_ns)?)
            };
            let Some((there, back)) = change(false).zip(change(true)) else { continue };
            // The bins on both sides of it told it but for what the clocks drifted meanwhile: crystals are right to 100 ppm.
            let most_ns = (step.to_ns - step.from_ns + 2 * BESIDE as i64 * self.width_ns as i64) / 10_000;
            let agree = (there + back).abs() <= LEAST_STEP_NS / 10;
            if agree && i64::midpoint(there, -back).abs() <= most_ns {
                difference.steps[at].by_ns += i64::midpoint(there, -back);
            }
        }
    }

    fn greatest_step(&self, difference: &Difference) -> Option<Step> {
        // Bins both ways have, as the second clock's lead: an upper bound there, a lower one back.
        let bins = self.ways[0].bins.iter().zip(&self.ways[1].bins).enumerate();
        let bounds: Vec<(usize, i64, i64)> = bins
            .filter(|(_, (there, back))| there.packets > 0 && back.packets > 0)
            // Where a step is taken out, some bins have packets from before and from after it.
            .filter(|(at, _)| !difference.meets(self.begin_of(*at), self.begin_of(*at + 1)))
            .map(|(at, (there, back))| {
                let upper = corrected(there.least, difference, false).ahead_ns;
                (at, upper, -corrected(back.least, difference, true).ahead_ns)
            })
            .collect();
        // A packet that is answered passes the first tap before the second clock's step, its answer after it.
        let mut round_trips: Vec<i64> = bounds.iter().map(|bound| bound.1 - bound.2).collect();
        round_trips.sort_unstable();
        let round_trip = round_trips.get(round_trips.len() / 2).copied().unwrap_or(0).max(0) as u64;
        let between = 1 + round_trip.div_ceil(self.width_ns) as usize;
        let last = bounds.len().saturating_sub(between + BESIDE - 1);
        let jumps = (BESIDE..last).map(|at| {
            let (left, right) = (&bounds[at - BESIDE..at], &bounds[at + between..at + between + BESIDE]);
            let upper = |side: &[(usize, i64, i64)]| side.iter().map(|bound| bound.1).min().unwrap_or(0);
            let lower = |side: &[(usize, i64, i64)]| side.iter().map(|bound| bound.2).max().unwrap_or(0);
            (at, upper(right) - upper(left), lower(right) - lower(left))
        });
        let jumps: Vec<(usize, i64, i64)> = jumps.collect();
        let mut usual: Vec<i64> = jumps.iter().map(|(_, upper, lower)| upper.abs().max(lower.abs())).collect();
        usual.sort_unstable();
        let noise = usual.get(usual.len() / 2).copied()?;
        let least = LEAST_STEP_NS.max(noise.saturating_mul(8));
        // A clock moves both ways by the same. A queue that empties while one of the other way fills does not.
        let together = |(_, upper, lower): &&(usize, i64, i64)| {
            let smaller = upper.abs().min(lower.abs());
            let unlike = (smaller / 32).max(2 * noise).max(LEAST_STEP_NS / 10).min(smaller / 4);
            upper.signum() == lower.signum() && smaller > least && (upper - lower).abs() <= unlike
        };
        let size = |jump: &(usize, i64, i64)| jump.1.abs().min(jump.2.abs());
        let best = jumps.iter().filter(together).max_by_key(|jump| size(jump))?;
        let (upper, lower) = (best.1, best.2);
        // Several places may explain it as well; it is somewhere in them.
        let as_well = |jump: &&(usize, i64, i64)| {
            together(jump)
                && jump.0.abs_diff(best.0) <= between
                && (jump.1 - upper).abs() + (jump.2 - lower).abs() <= size(best) / 8
        };
        let (first, last) = jumps
            .iter()
            .filter(as_well)
            .fold((best.0, best.0), |(first, last), jump| (first.min(jump.0), last.max(jump.0)));
        let (from_ns, to_ns) = (self.begin_of(bounds[first].0), self.begin_of(bounds[last + between - 1].0 + 1));
        Some(Step { from_ns, to_ns, by_ns: i64::midpoint(upper, lower) })
    }

    /// When a bin begins.
    fn begin_of(&self, bin: usize) -> i64 {
        self.start_ns.unwrap_or(0) + bin as i64 * self.width_ns as i64
    }

    /// The drift of the second clock against the first, and its uncertainty, as ratios. Both ways must tell of it.
    fn drift(&self, difference: &Difference) -> Option<(f64, f64)> {
        let fit = |back| {
            let points: Vec<Point> =
                self.least(difference, back).filter(|point| !difference.unsure(point.time_ns)).collect();
            slope(&points)
        };
        let (there, back) = (fit(false)?, fit(true)?);
        let back = (-back.0, back.1);
        let plausible = |way: &(f64, f64)| way.0.abs() < FASTEST;
        let apart = (there.0 - back.0).abs();
        match (plausible(&there), plausible(&back)) {
            (true, true) if apart <= 3.0 * (there.1 + back.1) => {
                let [one, two] = [there, back].map(|way| 1.0 / way.1.max(1e-12).powi(2));
                let drift = (there.0 * one + back.0 * two) / (one + two);
                Some((drift, (apart / 2.0).max((one + two).sqrt().recip())))
            }
            // A queue tilts one of them: the one that keeps to its line is the clock.
            (true, true) => Some(if there.1 < back.1 { there } else { back }),
            (true, false) => Some(there),
            (false, true) => Some(back),
            (false, false) => None,
        }
    }

    fn delays(&self, difference: &Difference, back: bool, zero_ns: i64) -> Delays {
        let way = &self.ways[usize::from(back)];
        let (Some(floor), Some(start_ns)) = (self.floor(difference, back), self.start_ns) else {
            return Delays::default();
        };
        let over = |point: Point| (corrected(point, difference, back).ahead_ns - floor).max(0) as u64;
        let sure = |point: &Point| !difference.unsure(point.time_ns);
        let mut all: Vec<u64> = way.sample.iter().copied().filter(sure).map(over).collect();
        all.sort_unstable();
        let greatest = way.bins.iter().filter(|bin| bin.packets > 0 && sure(&bin.most)).map(|bin| over(bin.most));
        let mut per_bin: Vec<Vec<u64>> = vec![Vec::new(); way.bins.len()];
        for point in &way.sample {
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
            packets: way.bins.iter().map(|bin| bin.packets).collect(),
            p50_ns: per_bin.into_iter().map(median).collect(),
            max_ns: way.bins.iter().map(|bin| (bin.packets > 0 && sure(&bin.most)).then(|| over(bin.most))).collect(),
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

/// A point with the clocks' difference taken out, whose sign is the way's.
fn corrected(point: Point, difference: &Difference, back: bool) -> Point {
    let ahead = difference.at(point.time_ns);
    Point { ahead_ns: if back { point.ahead_ns + ahead } else { point.ahead_ns - ahead }, ..point }
}

/// The value that a share of them does not exceed.
fn quantile(sorted: &[u64], share: f64) -> Option<u64> {
    let rank = ((sorted.len() as f64 * share).ceil() as usize).max(1);
    sorted.get(rank - 1).copied()
}

/// The slope of the line below the points that is closest to them, and how uncertain it is: by how much a quarter of the
/// points miss the line, over the time they span. `None` for points that span no time to speak of.
fn slope(points: &[Point]) -> Option<(f64, f64)> {
    let (first, last) = (points.first()?, points.last()?);
    let span = (last.time_ns - first.time_ns) as f64;
    if points.len() < 4 || span <= 0.0 {
        return None;
    }
    let mut hull: Vec<Point> = Vec::new();
    for &point in points {
        while let [.., before, top] = hull[..]
            && turns_down(before, top, point)
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
    let slope = (edge[1].ahead_ns - edge[0].ahead_ns) as f64 / run;
    let line = |point: &Point| edge[0].ahead_ns as f64 + slope * (point.time_ns - edge[0].time_ns) as f64;
    let mut misses: Vec<f64> = points.iter().map(|point| point.ahead_ns as f64 - line(point)).collect();
    misses.sort_by(f64::total_cmp);
    let miss = misses[misses.len() / 4].max(0.0);
    Some((slope, miss / span))
}

/// Whether the middle one of three points in the order of time lies above the line between the others.
fn turns_down(a: Point, b: Point, c: Point) -> bool {
    let area = i128::from(b.time_ns - a.time_ns) * i128::from(c.ahead_ns - a.ahead_ns)
        - i128::from(b.ahead_ns - a.ahead_ns) * i128::from(c.time_ns - a.time_ns);
    area <= 0
}
