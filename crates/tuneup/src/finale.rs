//! Final tests: the first settings, the best settings, and settings that must be slower (a sanity check), in
//! random order.

use landspeed_model::{TuneupAgain, TuneupSanity};
use landspeed_stats::{Interval, SplitMix64, ratio};

use crate::ladder::{TAIL_PROBABILITY, median_bps};
use crate::{Measurement, Settings};

/// Number of tests of each settings.
const ROUNDS: usize = 4;
/// Threshold for a moved baseline: relative change; in addition the interval must exclude 1.
const MIN_DRIFT: f64 = 0.05;
/// Socket buffer that limits any path, bytes.
const SMALL_WINDOW: u64 = 8 << 10;
/// Write size used with the small buffer, bytes.
const SMALL_WRITE: u64 = 1 << 10;

/// Settings of a final test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Original,
    Best,
    SanityCheck,
}

/// Settings that must be slower, with their tests.
#[derive(Debug, Clone)]
struct SanityCheck {
    settings: Settings,
    description: String,
    tests: Vec<Measurement>,
    /// Tests of the best settings that alternated with them.
    interleaved: Vec<Measurement>,
}

impl SanityCheck {
    fn new(settings: Settings, description: String) -> Self {
        Self { settings, description, tests: Vec::new(), interleaved: Vec::new() }
    }

    fn verdict(&self) -> Option<TuneupSanity> {
        let rates = |tests: &[Measurement]| tests.iter().map(|test| test.goodput_bps).collect::<Vec<_>>();
        let Interval { estimate, low, high } =
            ratio(&rates(&self.interleaved), &rates(&self.tests), TAIL_PROBABILITY).ok()?;
        Some(TuneupSanity { change: self.description.clone(), ratio: estimate, low, high, shows: high < 1.0 })
    }
}

/// State of the final tests.
#[derive(Debug, Clone)]
pub(crate) struct FinalTests {
    original: Settings,
    best: Settings,
    bad: Vec<SanityCheck>,
    /// Whether the best settings differ from the first.
    changed: bool,
    originals: Vec<Measurement>,
    best_tests: Vec<Measurement>,
    /// Remaining tests of this round, the next one last.
    queue: Vec<Role>,
    rounds: usize,
}

impl FinalTests {
    /// Number of final tests.
    pub fn tests(changed: bool) -> u64 {
        (if changed { 3 } else { 2 }) * ROUNDS as u64
    }

    /// `bad` are settings that must be slower than `best`, with a description; by default a small window.
    pub fn new(
        original: &Settings,
        best: &Settings,
        bad: Option<(Settings, String)>,
        random: &mut SplitMix64,
    ) -> Self {
        let bad =
            bad.map_or_else(|| small_window(best), |(settings, description)| SanityCheck::new(settings, description));
        let mut finale = Self {
            original: original.clone(),
            best: best.clone(),
            bad: vec![bad],
            changed: original != best,
            originals: Vec::new(),
            best_tests: Vec::new(),
            queue: Vec::new(),
            rounds: 0,
        };
        finale.begin_round(random);
        finale
    }

    fn begin_round(&mut self, random: &mut SplitMix64) {
        self.queue = match (self.bad.len(), self.changed) {
            (1, true) => vec![Role::Original, Role::Best, Role::SanityCheck],
            // The first settings are the best ones, or were tested enough.
            _ => vec![Role::Best, Role::SanityCheck],
        };
        for at in (1..self.queue.len()).rev() {
            self.queue.swap(at, random.below(at as u64 + 1) as usize);
        }
    }

    fn role(&self) -> Role {
        self.queue.last().copied().unwrap_or(Role::Best)
    }

    fn current_sanity_check(&self) -> &SanityCheck {
        self.bad.last().expect("there is always one")
    }

    /// Whether the next test's settings were measured before.
    pub fn tests_working_settings(&self) -> bool {
        self.role() != Role::SanityCheck
    }

    pub fn settings(&self) -> &Settings {
        match self.role() {
            Role::Original => &self.original,
            Role::Best => &self.best,
            Role::SanityCheck => &self.current_sanity_check().settings,
        }
    }

    pub fn what(&self) -> String {
        let round = format!("round {} of {ROUNDS}", self.rounds % ROUNDS + 1);
        match self.role() {
            Role::Original => format!("first settings again, {round}"),
            Role::Best => format!("last settings again, {round}"),
            Role::SanityCheck => format!("must be slower: {}, {round}", self.current_sanity_check().description),
        }
    }

    /// Handles a test's result. Returns whether there are more tests; an error is the reason why the search has no
    /// result.
    pub fn take(
        &mut self,
        measured: Result<Measurement, String>,
        time_left: bool,
        random: &mut SplitMix64,
    ) -> Result<bool, String> {
        let role = self.queue.pop().unwrap_or(Role::Best);
        let bad = self.bad.last_mut().expect("there is always one");
        match (role, measured) {
            (Role::Original, Ok(measured)) => self.originals.push(measured),
            (Role::Best, Ok(measured)) => {
                bad.interleaved.push(measured);
                self.best_tests.push(measured);
            }
            (Role::SanityCheck, Ok(measured)) => bad.tests.push(measured),
            // Settings that are impossible show nothing.
            (Role::SanityCheck, Err(_)) => {}
            (Role::Original | Role::Best, Err(why)) => return Err(why),
        }
        if !self.queue.is_empty() {
            return Ok(true);
        }
        self.rounds += 1;
        if self.rounds.is_multiple_of(ROUNDS) {
            // If a bad placement makes no difference, as on a slow path, a small window must.
            let shows = self.current_sanity_check().verdict().is_some_and(|sanity| sanity.shows);
            if shows || self.bad.len() > 1 || !time_left {
                return Ok(false);
            }
            let next = small_window(&self.best);
            if next.description == self.current_sanity_check().description {
                return Ok(false);
            }
            self.bad.push(next);
        }
        self.begin_round(random);
        Ok(true)
    }

    /// Tests of the best settings.
    pub fn best(&self) -> &[Measurement] {
        &self.best_tests
    }

    /// Tests of the first settings, if they differ from the best.
    pub fn originals(&self) -> &[Measurement] {
        &self.originals
    }

    pub fn sanity(&self) -> Vec<TuneupSanity> {
        self.bad.iter().filter_map(SanityCheck::verdict).collect()
    }

    /// Ratio of the first settings' goodput at the end to that at the beginning.
    pub fn again(&self, baseline: &[Measurement]) -> Option<TuneupAgain> {
        let now = if self.changed { &self.originals } else { &self.best_tests };
        let rates = |tests: &[Measurement]| tests.iter().map(|test| test.goodput_bps).collect::<Vec<_>>();
        let Interval { estimate, low, high } = ratio(&rates(baseline), &rates(now), TAIL_PROBABILITY).ok()?;
        let moved = (low > 1.0 || high < 1.0) && (estimate - 1.0).abs() >= MIN_DRIFT;
        Some(TuneupAgain { goodput_bps: median_bps(now), ratio: estimate, low, high, moved })
    }

    pub fn gain(&self) -> Option<Interval> {
        let rates = |tests: &[Measurement]| tests.iter().map(|test| test.goodput_bps).collect::<Vec<_>>();
        ratio(&rates(&self.originals), &rates(&self.best_tests), TAIL_PROBABILITY).ok()
    }
}

fn small_window(best: &Settings) -> SanityCheck {
    let mut settings = best.clone();
    settings.parameters.window_bytes = Some(SMALL_WINDOW);
    settings.parameters.write_bytes = SMALL_WRITE;
    SanityCheck::new(settings, "window 8 KiB, writes of 1 KiB".to_owned())
}
