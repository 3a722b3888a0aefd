//! The search: selects the next test and evaluates the results.

mod order;
mod placements;
mod state;

use std::collections::{BTreeMap, BTreeSet};

use landspeed_model::{Cause, Confidence, Parameters, TuneupEnd, TuneupRung, Verdict};
use landspeed_stats::{Interval, SplitMix64, median};
use landspeed_units::Nanos;

use crate::candidates::Candidate;
use crate::comparison::{Comparison, Decision, RULES, compare};
use crate::finale::FinalTests;
use crate::map::{Mapping, short_of_map};
use crate::outcome::{Diagnosis, TestOutcome};
use crate::placement::bad_placement;
use crate::{Measurement, Settings};

/// Duration of a test with a verdict, nanoseconds: 20 samples over at least 2 s (docs/verdicts.md).
const DIAGNOSIS_NS: u64 = 2_500_000_000;
/// Sampling interval of a test with a verdict, nanoseconds.
const DIAGNOSIS_INTERVAL_NS: u64 = 100_000_000;
/// Sampling interval of a comparison test, nanoseconds: 50 RTT samples per stream.
const INTERVAL_NS: u64 = 20_000_000;
/// Minimum duration of a comparison test, and of the omitted time before it, in RTTs.
const ROUND_TRIPS: u64 = 20;
/// Bounds of a comparison test's duration, nanoseconds.
const TEST_NS: (u64, u64) = (1_000_000_000, 10_000_000_000);
/// Bounds of the omitted time before it, nanoseconds.
const OMIT_NS: (u64, u64) = (250_000_000, 5_000_000_000);
/// Assumed overhead of a test until measured, nanoseconds.
const OVERHEAD_NS: u64 = 200_000_000;
/// Number of tests after which a hopeless change is rejected: three pairs.
const MIN_COMPARISON: u64 = 6;
/// Number of the last tests that show how long the next one takes.
const RECENT_TESTS: usize = 5;
/// Number of pairs in which the baseline is compared with itself.
const BASELINE_PAIRS: usize = 4;
/// Tail probability of descriptive intervals: the smallest possible for four tests against four.
pub(crate) const TAIL_PROBABILITY: f64 = 1.0 / 70.0;
/// Maximum number of times in a row that a test without a result is repeated, if its settings worked before.
const MAX_REPEATS: u32 = 2;
/// Share of the memory copy rate that counts as a ceiling: TCP processing needs the rest.
const MEMORY_SHARE: f64 = 0.8;

/// Options of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct LadderOptions {
    /// Time limit of the search, nanoseconds.
    pub budget_ns: u64,
    /// Seed of the random order of tests.
    pub seed: u64,
    /// Whether the search may change host settings.
    pub host_changes: bool,
    /// Duration of a comparison test, nanoseconds; `None` to derive it from the RTT.
    pub test_ns: Option<u64>,
    /// Omitted time before it, nanoseconds; `None` to derive it from the RTT.
    pub omit_ns: Option<u64>,
    /// Rate at which one core copies memory, bits/s.
    pub memory_bps: Option<f64>,
    /// Draws a map of these cores instead of trying changes: receiving thread against interrupts (with
    /// `host_changes`) or against sending thread; if empty, a selection of all cores.
    pub map: Option<Vec<u32>>,
}

/// The budget is too short for the baseline, one comparison and the final tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooShort {
    /// Minimum budget, nanoseconds.
    pub min_ns: u64,
}

/// A test to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// Purpose of the test.
    pub kind: TestKind,
    /// Settings, including duration and sampling.
    pub settings: Settings,
    /// Description for progress output, such as `baseline 3 of 8`.
    pub what: String,
}

/// Purpose of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestKind {
    /// Diagnosis: needs a verdict.
    Diagnosis,
    /// Comparison: needs the metrics.
    Compared,
}

/// Phase of the search.
#[derive(Debug, Clone)]
enum Phase {
    Diagnose,
    Baseline,
    Compare(Box<RunningComparison>),
    Map,
    FinalTests(Box<FinalTests>),
    Finished,
}

/// Comparison of a candidate with the best settings so far.
#[derive(Debug, Clone)]
struct RunningComparison {
    candidate: Candidate,
    best: Vec<Measurement>,
    new: Vec<Measurement>,
    /// Whether the candidate is tested first in this pair.
    candidate_first: bool,
    lifts_rate_limit: bool,
}

impl RunningComparison {
    fn compare(&self) -> Comparison {
        compare(&self.best, &self.new, self.lifts_rate_limit)
    }

    fn tests_candidate(&self) -> bool {
        match self.best.len().cmp(&self.new.len()) {
            std::cmp::Ordering::Equal => self.candidate_first,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Less => false,
        }
    }
}

/// A search without sockets and clocks: the caller runs the tests and passes the time.
#[derive(Debug, Clone)]
pub struct Ladder {
    options: LadderOptions,
    random: SplitMix64,
    phase: Phase,
    original: Settings,
    best: Settings,
    /// Previous best settings, oldest first.
    former: Vec<Settings>,
    diagnosis: Option<Box<Diagnosis>>,
    /// First verdict, for the baseline.
    first_verdict: Option<Verdict>,
    /// Tests of the first settings at the beginning.
    baseline: Vec<Measurement>,
    best_bps: f64,
    rungs: Vec<TuneupRung>,
    kept: usize,
    compared: u32,
    tried: BTreeMap<String, TriedChange>,
    /// Keys of changes that a host could not make.
    refused: BTreeSet<String>,
    tests: u32,
    /// Number of tests in a row without a result.
    failed: u32,
    test_ns: u64,
    omit_ns: u64,
    /// Times of the comparison tests so far, nanoseconds.
    test_times_ns: Vec<f64>,
    asked_ns: Option<u64>,
    ended: Option<(TuneupEnd, String)>,
    finale: Option<FinalTests>,
    /// Map of cores, if requested.
    mapping: Option<Mapping>,
}

/// Result of a change that was tried.
#[derive(Debug, Clone, Copy, Default)]
struct TriedChange {
    attempts: u32,
    /// Number of accepted changes when it was last tried.
    kept: usize,
    /// Goodput ratio to the best settings at that time; 0 if not measured.
    ratio: f64,
}

impl Ladder {
    /// Starts a search from `original`.
    ///
    /// # Errors
    /// If the budget is too short.
    pub fn new(original: Settings, options: LadderOptions) -> Result<Self, TooShort> {
        let ladder = Self {
            random: SplitMix64::new(options.seed),
            phase: Phase::Diagnose,
            best: original.clone(),
            former: Vec::new(),
            original,
            diagnosis: None,
            first_verdict: None,
            baseline: Vec::new(),
            best_bps: 0.0,
            rungs: Vec::new(),
            kept: 0,
            compared: 0,
            tried: BTreeMap::new(),
            refused: BTreeSet::new(),
            tests: 0,
            failed: 0,
            test_ns: options.test_ns.unwrap_or(TEST_NS.0),
            omit_ns: options.omit_ns.unwrap_or(OMIT_NS.0),
            test_times_ns: Vec::new(),
            asked_ns: None,
            ended: None,
            finale: None,
            mapping: None,
            options,
        };
        // Baseline, one comparison up to its first look, final tests.
        let tests = 2 * BASELINE_PAIRS as u64 + 12 + FinalTests::tests(true);
        let min_ns = 2 * (DIAGNOSIS_NS + ladder.omit_ns) + tests * ladder.test_cost_ns();
        if ladder.options.budget_ns < min_ns { Err(TooShort { min_ns }) } else { Ok(ladder) }
    }

    /// Returns the search with the rate at which one core copies memory, bits/s.
    #[must_use]
    pub fn with_memory_bps(mut self, bps: f64) -> Self {
        self.options.memory_bps = Some(bps);
        self
    }

    /// Returns the next test, or `None` when the search is over. Repeated calls return the same test until its
    /// outcome is passed.
    pub fn next_test(&mut self, now_ns: u64) -> Option<Test> {
        if matches!(self.phase, Phase::Baseline)
            && self.baseline.is_empty()
            && let Some(why) = self.too_short(now_ns)
        {
            self.stop(TuneupEnd::Failed, why);
        }
        if matches!(self.phase, Phase::Finished) {
            return None;
        }
        self.asked_ns = Some(now_ns);
        let test = |kind, settings: &Settings, what: String| Some(Test { kind, settings: settings.clone(), what });
        let found = match &self.phase {
            Phase::Diagnose => test(TestKind::Diagnosis, &self.best, "what limits it".to_owned()),
            Phase::Baseline => {
                let what = format!("baseline {} of {}", self.baseline.len() + 1, 2 * BASELINE_PAIRS);
                test(TestKind::Compared, &self.original, what)
            }
            Phase::Compare(comparing) => {
                let new = comparing.tests_candidate();
                let pair = comparing.best.len().min(comparing.new.len()) + 1;
                let what = format!("{}, pair {pair}", comparing.candidate.change);
                test(TestKind::Compared, if new { &comparing.candidate.settings } else { &self.best }, what)
            }
            Phase::Map => {
                self.mapping.as_ref().and_then(|mapping| test(TestKind::Compared, mapping.settings(), mapping.what()))
            }
            Phase::FinalTests(finale) => test(TestKind::Compared, finale.settings(), finale.what()),
            Phase::Finished => None,
        };
        found.map(|test| self.with_durations(test))
    }

    fn with_durations(&self, mut test: Test) -> Test {
        let p: &mut Parameters = &mut test.settings.parameters;
        p.bytes = None;
        p.omit_ns = self.omit_ns;
        (p.time_ns, p.interval_ns) = match test.kind {
            TestKind::Diagnosis => (Some(DIAGNOSIS_NS.max(self.test_ns)), DIAGNOSIS_INTERVAL_NS),
            TestKind::Compared => (Some(self.test_ns), INTERVAL_NS),
        };
        p.host_interval_ns = DIAGNOSIS_INTERVAL_NS;
        test
    }

    /// Handles the outcome of the test returned by [`Ladder::next_test`].
    pub fn take(&mut self, now_ns: u64, outcome: TestOutcome) {
        self.tests += 1;
        let asked_ns = self.asked_ns.take();
        match std::mem::replace(&mut self.phase, Phase::Finished) {
            Phase::Diagnose => self.take_diagnosis(now_ns, outcome),
            phase => {
                if let Some(asked_ns) = asked_ns {
                    self.test_times_ns.push(now_ns.saturating_sub(asked_ns) as f64);
                }
                let measured = match outcome {
                    TestOutcome::Measured(measured) | TestOutcome::Diagnosed(measured, _) => Ok(measured),
                    TestOutcome::Refused(why) => Err(why),
                };
                if measured.is_ok() {
                    self.failed = 0;
                } else if self.failed < MAX_REPEATS && worked_before(&phase) && self.has_time_for(now_ns, 1) {
                    self.failed += 1;
                    self.phase = phase;
                    return;
                }
                match phase {
                    Phase::Baseline => self.take_baseline(now_ns, measured),
                    Phase::Compare(comparing) => self.take_compared(now_ns, *comparing, measured),
                    Phase::Map => self.take_map(now_ns, measured),
                    Phase::FinalTests(finale) => self.take_finale(now_ns, *finale, measured),
                    Phase::Diagnose | Phase::Finished => {}
                }
            }
        }
    }

    /// Ends the search; results so far are kept.
    pub fn stop(&mut self, end: TuneupEnd, because: impl Into<String>) {
        if let Phase::Compare(comparing) = std::mem::replace(&mut self.phase, Phase::Finished) {
            let comparison = comparing.compare();
            self.push_rung(&comparing, &comparison, Some("the search ended".to_owned()));
        }
        self.keep_first_unless_proven();
        self.ended = Some((end, because.into()));
    }

    fn take_diagnosis(&mut self, now_ns: u64, outcome: TestOutcome) {
        match outcome {
            TestOutcome::Diagnosed(_, diagnosis) => {
                self.failed = 0;
                if self.first_verdict.is_none() {
                    self.first_verdict = Some(diagnosis.verdict.clone());
                    self.set_lengths(diagnosis.facts.min_rtt_us);
                }
                self.diagnosis = Some(diagnosis);
                self.exclude_previous();
            }
            TestOutcome::Refused(_)
                if self.diagnosis.is_none() && self.failed < MAX_REPEATS && self.has_time_for(now_ns, 1) =>
            {
                self.failed += 1;
                self.phase = Phase::Diagnose;
                return;
            }
            // If the first settings fail, there is nothing to improve on; later on, the previous verdict stays.
            TestOutcome::Refused(why) if self.diagnosis.is_none() => return self.stop(TuneupEnd::Failed, why),
            TestOutcome::Measured(_) | TestOutcome::Refused(_) => {}
        }
        if !self.baseline.is_empty() {
            return self.choose(now_ns);
        }
        if let Err(why) = self.prepare_map() {
            return self.stop(TuneupEnd::Failed, why);
        }
        self.phase = Phase::Baseline;
    }

    fn set_lengths(&mut self, min_rtt_us: Option<u32>) {
        let trips_ns = u64::from(min_rtt_us.unwrap_or(0)) * 1000 * ROUND_TRIPS;
        self.test_ns = self.options.test_ns.unwrap_or(trips_ns.clamp(TEST_NS.0, TEST_NS.1));
        self.omit_ns = self.options.omit_ns.unwrap_or(trips_ns.clamp(OMIT_NS.0, OMIT_NS.1));
    }

    fn take_baseline(&mut self, now_ns: u64, measured: Result<Measurement, String>) {
        match measured {
            Ok(measured) => self.baseline.push(measured),
            Err(why) => return self.stop(TuneupEnd::Failed, why),
        }
        self.best_bps = median_bps(&self.baseline);
        if self.baseline.len() < 2 * BASELINE_PAIRS {
            self.phase = Phase::Baseline;
        } else if let Some(mapping) = &self.mapping {
            self.begin_map(now_ns, mapping.round_tests());
        } else {
            self.choose(now_ns);
        }
    }

    /// Starts the next comparison, or the final tests.
    fn choose(&mut self, now_ns: u64) {
        let available = self.available();
        // A ceiling that is reached with restrictions is not that of the path or the hosts.
        let undone = !available.iter().any(|change| change.undoes && !self.tried.contains_key(&change.key));
        if let Some(why) = self.ceiling().filter(|_| undone) {
            return self.begin_finale(TuneupEnd::Ceiling, why);
        }
        let Some(candidate) = available.into_iter().next() else {
            return self.begin_finale(TuneupEnd::NothingHelps, "no other change helps".to_owned());
        };
        if self.compared >= RULES.most_candidates {
            let why = format!("{} changes were tried, which is all the error rate allows", self.compared);
            return self.begin_finale(TuneupEnd::MostCandidates, why);
        }
        if !self.has_time_for(now_ns, MIN_COMPARISON) {
            return self
                .begin_finale(TuneupEnd::Budget, "the time was over before every change was tried".to_owned());
        }
        self.compared += 1;
        let tried = self.tried.entry(candidate.key.clone()).or_default();
        (tried.attempts, tried.kept) = (tried.attempts + 1, self.kept);
        let candidate_first = self.random.below(2) == 1;
        let lifts_rate_limit = candidate.lifts_rate_limit(&self.best);
        let (best, new) = (Vec::new(), Vec::new());
        let comparing = RunningComparison { candidate, best, new, candidate_first, lifts_rate_limit };
        self.phase = Phase::Compare(Box::new(comparing));
    }

    /// Why no change can help, if a ceiling is reached.
    fn ceiling(&self) -> Option<String> {
        let verdict = &self.diagnosis.as_ref()?.verdict;
        if verdict.cause == Cause::LinkRate && verdict.confidence >= Confidence::Medium {
            return Some(format!("the link's rate is reached: {}", verdict.summary));
        }
        let threads = f64::from(self.best.parameters.streams.max(1));
        let reached = |memory_bps: f64| self.best_bps >= memory_bps * MEMORY_SHARE * threads;
        self.options
            .memory_bps
            .is_some_and(reached)
            .then(|| "the cores of this host copy memory hardly faster".to_owned())
    }

    fn take_compared(
        &mut self,
        now_ns: u64,
        mut comparing: RunningComparison,
        measured: Result<Measurement, String>,
    ) {
        let new = comparing.tests_candidate();
        match measured {
            Ok(measured) if new => comparing.new.push(measured),
            Ok(measured) => comparing.best.push(measured),
            Err(why) if new => {
                // A change that was never measured does not count for the error rate.
                if comparing.new.is_empty() {
                    self.compared -= 1;
                    self.refused.insert(comparing.candidate.key.clone());
                }
                let comparison = comparing.compare();
                self.push_rung(&comparing, &comparison, Some(why));
                return self.choose(now_ns);
            }
            Err(_) if self.failed < MAX_REPEATS => {
                let comparison = comparing.compare();
                self.push_rung(&comparing, &comparison, Some("the time was over".to_owned()));
                return self.choose(now_ns);
            }
            Err(why) => {
                self.phase = Phase::Compare(Box::new(comparing));
                return self.stop(TuneupEnd::Failed, why);
            }
        }
        if comparing.best.len() != comparing.new.len() {
            self.phase = Phase::Compare(Box::new(comparing));
            return;
        }
        let comparison = comparing.compare();
        let decision = match &comparison.decision {
            None if !self.has_time_for(now_ns, 2) => Some(Decision::Reject("the time was over".to_owned())),
            decision => decision.clone(),
        };
        match decision {
            None => {
                comparing.candidate_first = self.random.below(2) == 1;
                self.phase = Phase::Compare(Box::new(comparing));
            }
            Some(Decision::Reject(why)) => {
                self.push_rung(&comparing, &comparison, Some(why));
                self.choose(now_ns);
            }
            Some(Decision::Keep) => {
                self.push_rung(&comparing, &comparison, None);
                let former = std::mem::replace(&mut self.best, comparing.candidate.settings);
                self.former.push(self.explicit(&former));
                self.best_bps = median_bps(&comparing.new);
                self.kept += 1;
                self.phase = Phase::Diagnose;
            }
        }
    }

    fn push_rung(&mut self, comparing: &RunningComparison, comparison: &Comparison, rejected: Option<String>) {
        let RunningComparison { candidate, best, new, .. } = comparing;
        let Interval { estimate, low, high } =
            comparison.interval.unwrap_or(Interval { estimate: f64::NAN, low: f64::NAN, high: f64::NAN });
        let measured = |value: f64| comparison.interval.map(|_| value);
        if let Some(tried) = self.tried.get_mut(&candidate.key) {
            tried.ratio = measured(estimate).unwrap_or(0.0);
        }
        let plan = &candidate.settings.plan;
        let added = |now: &[landspeed_model::Change], before: &[landspeed_model::Change]| {
            now.iter().filter(|change| !before.contains(change)).cloned().collect()
        };
        let verdict = self.diagnosis.as_ref().map(|diagnosis| &diagnosis.verdict);
        let evidence = verdict.filter(|_| candidate.cause.is_some()).map(|verdict| verdict.evidence.clone());
        self.rungs.push(TuneupRung {
            change: candidate.change.clone(),
            reason: candidate.reason.clone(),
            cause: candidate.cause,
            evidence: evidence.unwrap_or_default(),
            ratio: measured(estimate),
            low: measured(low),
            high: measured(high),
            level: measured(comparison.level),
            pairs: best.len().min(new.len()) as u32,
            best_bps: measured(median_bps(best)),
            goodput_bps: measured(median_bps(new)),
            bounds: comparison.bounds.clone(),
            kept: rejected.is_none(),
            rejected,
            client_changes: added(&plan.client, &self.best.plan.client),
            server_changes: added(&plan.server, &self.best.plan.server),
        });
    }

    fn begin_finale(&mut self, end: TuneupEnd, because: String) {
        let Some(diagnosis) = &self.diagnosis else { return };
        let bad = bad_placement(&diagnosis.facts, &self.best.parameters)
            .map(|(parameters, description)| (Settings { parameters, plan: self.best.plan.clone() }, description));
        self.finish(end, because, bad);
    }

    /// Starts the final tests.
    fn finish(&mut self, end: TuneupEnd, because: String, bad: Option<(Settings, String)>) {
        self.ended = Some((end, because));
        let finale = FinalTests::new(&self.original, &self.best, bad, &mut self.random);
        self.phase = Phase::FinalTests(Box::new(finale));
    }

    fn take_finale(&mut self, now_ns: u64, mut finale: FinalTests, measured: Result<Measurement, String>) {
        let time_left = self.has_time_for(now_ns, FinalTests::tests(false));
        match finale.take(measured, time_left, &mut self.random) {
            Ok(true) if self.has_time_for(now_ns, 1) => self.phase = Phase::FinalTests(Box::new(finale)),
            Ok(incomplete) => {
                if incomplete {
                    let why = "the time was over before the final tests were complete";
                    self.ended = Some((TuneupEnd::Budget, why.to_owned()));
                }
                // The fastest of many placements is partly luck; only the final tests count.
                let is_better = finale.gain().is_some_and(|gain| gain.low > 1.0);
                let tests = if self.mapping.is_some() && !is_better {
                    self.best = self.original.clone();
                    self.best_bps = median_bps(&self.baseline);
                    finale.originals()
                } else {
                    finale.best()
                };
                if !tests.is_empty() {
                    self.best_bps = median_bps(tests);
                }
                self.finale = Some(finale);
            }
            Err(why) => {
                self.keep_first_unless_proven();
                self.ended = Some((TuneupEnd::Failed, why));
            }
        }
    }

    /// Expected time of a comparison test, nanoseconds. On a host that has become busy, the recent tests decide.
    fn test_cost_ns(&self) -> u64 {
        let times_ns = &self.test_times_ns;
        let recent = &times_ns[times_ns.len().saturating_sub(RECENT_TESTS)..];
        median(recent).map_or(self.test_ns + self.omit_ns + OVERHEAD_NS, |recent_ns| {
            recent_ns.max(times_ns.iter().sum::<f64>() / times_ns.len() as f64) as u64
        })
    }

    /// Why the budget is too short for the baseline and one comparison or map, now that the length of a test is known.
    fn too_short(&self, now_ns: u64) -> Option<String> {
        let baseline = 2 * BASELINE_PAIRS as u64;
        if let Some(mapping) = &self.mapping {
            let tests = mapping.round_tests();
            return (!self.has_time_for(now_ns, baseline + tests)).then(|| short_of_map(tests));
        }
        (!self.has_time_for(now_ns, baseline + MIN_COMPARISON)).then(|| {
            let tests = baseline + 2 * MIN_COMPARISON + FinalTests::tests(true);
            let needed_ns = 2 * now_ns + tests * self.test_cost_ns();
            format!(
                "the budget is too short for tests of {} after {}, as the RTT needs: use --budget {}s or more, or shorter tests \
                 (-t, -O)",
                Nanos::new(self.test_ns),
                Nanos::new(self.omit_ns),
                needed_ns.div_ceil(1_000_000_000)
            )
        })
    }

    /// Whether there is time for this many tests before the final tests, and the verdict that may follow.
    fn has_time_for(&self, now_ns: u64, tests: u64) -> bool {
        let end = match self.ended {
            Some(_) => 0,
            None => FinalTests::tests(true) * self.test_cost_ns() + DIAGNOSIS_NS + self.omit_ns + OVERHEAD_NS,
        };
        now_ns + tests * self.test_cost_ns() + end <= self.options.budget_ns
    }
}

/// Whether the next test's settings gave a result before in this phase.
fn worked_before(phase: &Phase) -> bool {
    match phase {
        Phase::Baseline => true,
        Phase::Compare(comparing) => !comparing.tests_candidate() || !comparing.new.is_empty(),
        Phase::FinalTests(finale) => finale.tests_working_settings(),
        Phase::Diagnose | Phase::Map | Phase::Finished => false,
    }
}

/// Median goodput, bits/s; 0 without tests.
pub(crate) fn median_bps(tests: &[Measurement]) -> f64 {
    median(&tests.iter().map(|test| test.goodput_bps).collect::<Vec<_>>()).unwrap_or(0.0)
}
