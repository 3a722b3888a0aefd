//! Final tests: the first settings, the best settings, and settings that must be slower (a sanity check), in
//! random order.

use landspeed_model::{TuneupAgain, TuneupSanity};
use landspeed_stats::{Interval, SplitMix64, ratio};

use crate::ladder::{TAIL, middle_bps};
use crate::{Measurement, Settings};

/// Number of tests of each settings.
const ROUNDS: usize = 4;
/// Threshold for a moved baseline: relative change; in addition the interval must exclude 1.
const MOVED: f64 = 0.05;
/// Socket buffer that limits any path, bytes.
const SMALL_WINDOW: u64 = 8 << 10;
/// Write size used with the small buffer, bytes.
const SMALL_WRITE: u64 = 1 << 10;

/// Settings of a final test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Original,
    Best,
    Bad,
}

/// Settings that must be slower, with their tests.
#[derive(Debug, Clone)]
struct Bad {
    settings: Settings,
    words: String,
    tests: Vec<Measurement>,
    /// Tests of the best settings that alternated with them.
    beside: Vec<Measurement>,
}

impl Bad {
    fn new(settings: Settings, words: String) -> Self {
        Self { settings, words, tests: Vec::new(), beside: Vec::new() }
    }

    fn verdict(&self) -> Option<TuneupSanity> {
        let rates = |tests: &[Measurement]| tests.iter().map(|test| test.goodput_bps).collect::<Vec<_>>();
        let Interval { estimate, low, high } = ratio(&rates(&self.beside), &rates(&self.tests), TAIL).ok()?;
        Some(TuneupSanity { change: self.words.clone(), ratio: estimate, low, high, shows: high < 1.0 })
    }
}

/// State of the final tests.
#[derive(Debug, Clone)]
pub(crate) struct Finale {
    original: Settings,
    best: Settings,
    bad: Vec<Bad>,
    /// Whether the best settings differ from the first.
    changed: bool,
    originals: Vec<Measurement>,
    bests: Vec<Measurement>,
    /// Remaining tests of this round, the next one last.
    queue: Vec<Role>,
    rounds: usize,
}

impl Finale {
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
        let bad = bad.map_or_else(|| small_window(best), |(settings, words)| Bad::new(settings, words));
        let mut finale = Self {
            original: original.clone(),
            best: best.clone(),
            bad: vec![bad],
            changed: original != best,
            originals: Vec::new(),
            bests: Vec::new(),
            queue: Vec::new(),
            rounds: 0,
        };
        finale.begin_round(random);
        finale
    }

    fn begin_round(&mut self, random: &mut SplitMix64) {
        self.queue = match (self.bad.len(), self.changed) {
            (1, true) => vec![Role::Original, Role::Best, Role::Bad],
            // The first settings are the best ones, or were tested enough.
            _ => vec![Role::Best, Role::Bad],
        };
        for at in (1..self.queue.len()).rev() {
            self.queue.swap(at, random.below(at as u64 + 1) as usize);
        }
    }

    fn role(&self) -> Role {
        self.queue.last().copied().unwrap_or(Role::Best)
    }

    fn bad_now(&self) -> &Bad {
        self.bad.last().expect("there is always one")
    }

    pub fn settings(&self) -> &Settings {
        match self.role() {
            Role::Original => &self.original,
            Role::Best => &self.best,
            Role::Bad => &self.bad_now().settings,
        }
    }

    pub fn what(&self) -> String {
        let round = format!("round {} of {ROUNDS}", self.rounds % ROUNDS + 1);
        match self.role() {
            Role::Original => format!("first settings again, {round}"),
            Role::Best => format!("last settings again, {round}"),
            Role::Bad => format!("must be slower: {}, {round}", self.bad_now().words),
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
                bad.beside.push(measured);
                self.bests.push(measured);
            }
            (Role::Bad, Ok(measured)) => bad.tests.push(measured),
            // Settings that are impossible show nothing.
            (Role::Bad, Err(_)) => {}
            (Role::Original | Role::Best, Err(why)) => return Err(why),
        }
        if !self.queue.is_empty() {
            return Ok(true);
        }
        self.rounds += 1;
        if self.rounds.is_multiple_of(ROUNDS) {
            // If a bad placement makes no difference, as on a slow path, a small window must.
            let shows = self.bad_now().verdict().is_some_and(|sanity| sanity.shows);
            if shows || self.bad.len() > 1 || !time_left {
                return Ok(false);
            }
            let next = small_window(&self.best);
            if next.words == self.bad_now().words {
                return Ok(false);
            }
            self.bad.push(next);
        }
        self.begin_round(random);
        Ok(true)
    }

    /// Tests of the best settings.
    pub fn best(&self) -> &[Measurement] {
        &self.bests
    }

    /// Tests of the first settings, if they differ from the best.
    pub fn originals(&self) -> &[Measurement] {
        &self.originals
    }

    pub fn sanity(&self) -> Vec<TuneupSanity> {
        self.bad.iter().filter_map(Bad::verdict).collect()
    }

    /// Ratio of the first settings' goodput at the end to that at the beginning.
    pub fn again(&self, baseline: &[Measurement]) -> Option<TuneupAgain> {
        let now = if self.changed { &self.originals } else { &self.bests };
        let rates = |tests: &[Measurement]| tests.iter().map(|test| test.goodput_bps).collect::<Vec<_>>();
        let Interval { estimate, low, high } = ratio(&rates(baseline), &rates(now), TAIL).ok()?;
        let moved = (low > 1.0 || high < 1.0) && (estimate - 1.0).abs() >= MOVED;
        Some(TuneupAgain { goodput_bps: middle_bps(now), ratio: estimate, low, high, moved })
    }

    pub fn gain(&self) -> Option<Interval> {
        let rates = |tests: &[Measurement]| tests.iter().map(|test| test.goodput_bps).collect::<Vec<_>>();
        ratio(&rates(&self.originals), &rates(&self.bests), TAIL).ok()
    }
}

fn small_window(best: &Settings) -> Bad {
    let mut settings = best.clone();
    settings.parameters.window_bytes = Some(SMALL_WINDOW);
    settings.parameters.write_bytes = SMALL_WRITE;
    Bad::new(settings, "window 8 KiB, writes of 1 KiB".to_owned())
}
