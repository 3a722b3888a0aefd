//! The link after the queue: loss, duplication, delay and reordering.

use std::collections::VecDeque;

use landspeed_stats::SplitMix64;

use crate::event::Frame;
use crate::path::{Distribution, HopChange, Loss, LossPattern, WirePlan};

/// Result of sending a frame onto the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransmitOutcome {
    /// The frame passes, this many times.
    Passes { copies: u32 },
    /// The loss process drops the frame.
    Lost,
    /// The link is down.
    Down,
}

/// A link and the frames in flight on it.
#[derive(Debug)]
pub(crate) struct Wire<T> {
    plan: WirePlan,
    loss: LossProcess,
    duplicates: SplitMix64,
    delays: SplitMix64,
    reorders: SplitMix64,
    /// Index of the next outage.
    next_down: usize,
    /// Whether an event took the link down.
    is_down: bool,
    /// Frames in flight with their arrival times, in order.
    flight: VecDeque<(u64, Frame<T>)>,
    /// The same for frames that skip the delay.
    undelayed: VecDeque<(u64, Frame<T>)>,
}

impl<T: Copy> Wire<T> {
    pub(crate) fn new(plan: WirePlan, mut seed: SplitMix64) -> Self {
        let mut random = || SplitMix64::new(seed.bits());
        let loss = LossProcess::new(plan.loss.as_ref(), random());
        let (duplicates, delays, reorders) = (random(), random(), random());
        Self {
            plan,
            loss,
            duplicates,
            delays,
            reorders,
            next_down: 0,
            is_down: false,
            flight: VecDeque::new(),
            undelayed: VecDeque::new(),
        }
    }

    /// Changes the link. Frames in flight keep their arrival times.
    pub(crate) fn change(&mut self, change: &HopChange) {
        let plan = &mut self.plan;
        plan.delay_ns = change.delay_ns.unwrap_or(plan.delay_ns);
        plan.reorder = change.reorder.unwrap_or(plan.reorder);
        plan.duplicate = change.duplicate.unwrap_or(plan.duplicate);
        if let Some(jitter) = change.jitter {
            plan.jitter = Some(jitter).filter(|(spread_ns, _)| *spread_ns > 0);
        }
        if let Some(loss) = &change.loss {
            plan.loss.clone_from(loss);
            self.loss = LossProcess::new(loss.as_ref(), SplitMix64::new(self.loss.random.bits()));
        }
        self.is_down = change.down.unwrap_or(self.is_down);
    }

    /// Determines the fate of a frame whose last bit is sent at `now_ns`.
    pub(crate) fn draw_outcome(&mut self, now_ns: u64, frame: &Frame<T>) -> TransmitOutcome {
        let counts = now_ns >= self.plan.patterns_from_ns || !self.loss.names_frames();
        let lost = counts && self.loss.drops_next(frame.ip_bytes);
        while self.plan.down.get(self.next_down).is_some_and(|(_, to_ns)| *to_ns <= now_ns) {
            self.next_down += 1;
        }
        let in_outage = self.plan.down.get(self.next_down).is_some_and(|(from_ns, _)| *from_ns <= now_ns);
        if in_outage || self.is_down {
            return TransmitOutcome::Down;
        }
        if lost {
            return TransmitOutcome::Lost;
        }
        let duplicated = self.plan.duplicate > 0.0 && self.duplicates.random_bool(self.plan.duplicate);
        TransmitOutcome::Passes { copies: 1 + u32::from(duplicated) }
    }

    /// Puts a frame in flight at `now_ns`.
    pub(crate) fn put_in_flight(&mut self, now_ns: u64, frame: Frame<T>) {
        if self.plan.reorder > 0.0 && self.reorders.random_bool(self.plan.reorder) {
            self.undelayed.push_back((now_ns, frame));
            return;
        }
        let mut arrival_ns = now_ns + self.plan.delay_ns;
        if let Some((spread_ns, distribution)) = self.plan.jitter {
            let unit = match distribution {
                Distribution::Uniform => 2.0 * self.delays.unit() - 1.0,
                Distribution::Normal => normal(&mut self.delays),
            };
            let shifted = arrival_ns as f64 + unit * spread_ns as f64;
            arrival_ns = (shifted as u64).max(now_ns);
        }
        // Neither jitter nor a delay that has become shorter reorders frames.
        arrival_ns = arrival_ns.max(self.flight.back().map_or(0, |(last_ns, _)| *last_ns));
        self.flight.push_back((arrival_ns, frame));
    }

    /// Arrival time of the next frame at the end of the link.
    pub(crate) fn next_arrival(&self) -> Option<u64> {
        let front = |queue: &VecDeque<(u64, Frame<T>)>| queue.front().map(|(at_ns, _)| *at_ns);
        match (front(&self.flight), front(&self.undelayed)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Removes the next frame that arrives by `now_ns`; returns it with its arrival time.
    pub(crate) fn arrive(&mut self, now_ns: u64) -> Option<(u64, Frame<T>)> {
        let at_ns = self.next_arrival().filter(|at_ns| *at_ns <= now_ns)?;
        let ahead_is_first = self.undelayed.front().is_some_and(|(first_ns, _)| *first_ns == at_ns);
        if ahead_is_first && self.flight.front().is_none_or(|(first_ns, _)| *first_ns > at_ns) {
            self.undelayed.pop_front()
        } else {
            self.flight.pop_front()
        }
    }

    /// Minimum time of a frame in flight, nanoseconds.
    pub(crate) fn min_delay_ns(&self) -> u64 {
        if self.plan.reorder > 0.0 {
            return 0;
        }
        match self.plan.jitter {
            None => self.plan.delay_ns,
            Some((spread_ns, Distribution::Uniform)) => self.plan.delay_ns.saturating_sub(spread_ns),
            Some((_, Distribution::Normal)) => 0,
        }
    }

    /// Number of frames in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.flight.len() + self.undelayed.len()
    }
}

/// A standard normal random number (Box and Muller, "A Note on the Generation of Random Normal Deviates",
/// 1958).
fn normal(random: &mut SplitMix64) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

/// The loss process of a link.
#[derive(Debug)]
struct LossProcess {
    kind: Kind,
    random: SplitMix64,
    /// Number of frames so far.
    frames: u64,
}

#[derive(Debug)]
enum Kind {
    Nothing,
    Random(f64),
    Every(u64),
    /// Frame numbers, ascending, and how many of them have passed.
    Packets(Vec<u64>, usize),
    LongerThan(u32),
    GilbertElliott {
        p: f64,
        r: f64,
        bad: f64,
        good: f64,
        is_bad: bool,
    },
}

impl LossProcess {
    fn new(loss: Option<&Loss>, random: SplitMix64) -> Self {
        let kind = match loss {
            None => Kind::Nothing,
            Some(Loss::Random(share) | Loss::Pattern(LossPattern::Random(share))) => Kind::Random(share.0.get()),
            Some(Loss::Pattern(LossPattern::Every(n))) => Kind::Every(*n),
            Some(Loss::Pattern(LossPattern::Packets(numbers))) => {
                let mut numbers = numbers.clone();
                numbers.sort_unstable();
                numbers.dedup();
                Kind::Packets(numbers, 0)
            }
            Some(Loss::Pattern(LossPattern::LongerThan(bytes))) => Kind::LongerThan(*bytes),
            Some(Loss::Pattern(LossPattern::GilbertElliott(model))) => {
                let [p, r, bad, good] = model.probabilities();
                Kind::GilbertElliott { p, r, bad, good, is_bad: false }
            }
        };
        Self { kind, random, frames: 0 }
    }

    /// Whether it loses frames by their number or length, not at random.
    fn names_frames(&self) -> bool {
        matches!(self.kind, Kind::Every(_) | Kind::Packets(..) | Kind::LongerThan(_))
    }

    fn drops_next(&mut self, ip_bytes: u32) -> bool {
        self.frames += 1;
        match &mut self.kind {
            Kind::Nothing => false,
            Kind::Random(share) => self.random.random_bool(*share),
            Kind::Every(n) => self.frames.is_multiple_of(*n),
            Kind::Packets(numbers, passed) => {
                let hit = numbers.get(*passed) == Some(&self.frames);
                *passed += usize::from(hit);
                hit
            }
            Kind::LongerThan(bytes) => ip_bytes > *bytes,
            Kind::GilbertElliott { p, r, bad, good, is_bad } => {
                let turns = self.random.random_bool(if *is_bad { *r } else { *p });
                *is_bad ^= turns;
                let share = if *is_bad { *bad } else { *good };
                self.random.random_bool(share)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use landspeed_problems::Share;
    use landspeed_units::Ratio;

    use super::*;
    use crate::path::GilbertElliott;

    fn share(value: f64) -> Share {
        landspeed_problems::Written(Ratio::new(value).expect("a share"))
    }

    fn dropped_frames(loss: &Loss, frames: usize) -> Vec<usize> {
        let mut process = LossProcess::new(Some(loss), SplitMix64::new(7));
        (1..=frames).filter(|_| process.drops_next(1500)).collect()
    }

    #[test]
    fn loss_patterns_drop_the_named_frames() {
        assert_eq!(dropped_frames(&Loss::Pattern(LossPattern::Every(7)), 30), [7, 14, 21, 28]);
        assert_eq!(dropped_frames(&Loss::Pattern(LossPattern::Packets(vec![9, 2, 2, 100])), 30), [2, 9]);
        assert_eq!(dropped_frames(&Loss::Pattern(LossPattern::LongerThan(1499)), 2), [1, 2]);
        assert_eq!(dropped_frames(&Loss::Pattern(LossPattern::LongerThan(1500)), 2), [0; 0]);
    }

    #[test]
    fn random_loss_has_the_configured_rate() {
        let lost = dropped_frames(&Loss::Random(share(0.01)), 1_000_000).len() as f64;
        // Four standard deviations of the binomial distribution: sqrt(1e6 * 0.01 * 0.99) = 99.5.
        assert!((lost - 10_000.0).abs() < 400.0, "{lost}");
    }

    #[test]
    fn gilbert_elliott_loss_is_bursty_with_the_stationary_rate() {
        let parameters =
            GilbertElliott { p: share(0.01), r: share(0.2), bad: Some(share(0.5)), good: Some(share(0.001)) };
        let frames = 2_000_000;
        let lost = dropped_frames(&Loss::Pattern(LossPattern::GilbertElliott(parameters)), frames);
        // Stationary share of the bad state: p / (p + r).
        let bad = 0.01 / 0.21;
        let expected = bad * 0.5 + (1.0 - bad) * 0.001;
        let found = lost.len() as f64 / frames as f64;
        assert!((found / expected - 1.0).abs() < 0.03, "{found} {expected}");
        // After a loss the next frame is lost much more often than on average.
        let follow = lost.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() as f64 / lost.len() as f64;
        assert!(follow > 0.3, "{follow}");
    }

    #[test]
    fn jitter_stays_within_its_spread_without_reordering() {
        let plan = WirePlan {
            delay_ns: 10_000_000,
            jitter: Some((1_000_000, Distribution::Uniform)),
            loss: None,
            reorder: 0.0,
            duplicate: 0.0,
            down: Vec::new(),
            patterns_from_ns: 0,
        };
        let mut wire: Wire<u64> = Wire::new(plan, SplitMix64::new(1));
        let mut last_ns = 0;
        let mut sum = 0;
        for number in 0..10_000_u64 {
            // Gaps are so large that keeping the order does not affect the delays.
            let now_ns = number * 3_000_000;
            wire.put_in_flight(now_ns, Frame { number, ..Frame::new(number, 100) });
            let (at_ns, frame) = wire.arrive(u64::MAX).expect("launched");
            assert!(frame.item == number && at_ns >= last_ns);
            let delay_ns = at_ns - now_ns;
            assert!((9_000_000..=11_000_000).contains(&delay_ns), "{delay_ns}");
            (last_ns, sum) = (at_ns, sum + delay_ns);
        }
        assert!((sum / 10_000).abs_diff(10_000_000) < 30_000, "{sum}");
    }

    #[test]
    fn link_is_down_during_planned_outages() {
        let plan = WirePlan {
            delay_ns: 0,
            jitter: None,
            loss: None,
            reorder: 0.0,
            duplicate: 0.0,
            down: vec![(10, 20), (30, 31)],
            patterns_from_ns: 0,
        };
        let mut wire: Wire<()> = Wire::new(plan, SplitMix64::new(1));
        let down: Vec<u64> = (0..40)
            .filter(|now_ns| wire.draw_outcome(*now_ns, &Frame::new((), 100)) == TransmitOutcome::Down)
            .collect();
        assert_eq!(down, (10..20).chain(30..31).collect::<Vec<_>>());
    }
}
