//! Complete searches in virtual time, with simulated tests whose noise is autocorrelated.

use landspeed_model::{Cause, Confidence, Parameters, SendMode, TuneupEnd, TuneupPlan, Verdict};
use landspeed_stats::SplitMix64;
use landspeed_tuneup::{
    Diagnosis, EndFacts, Facts, Ladder, LadderOptions, Measurement, Settings, TestKind, TestOutcome, TooShort,
};

const SECOND: u64 = 1_000_000_000;
const BUDGET: u64 = 300 * SECOND;

/// A simulated pair of hosts: results of settings, and noise of tests.
struct SimulatedHosts<F> {
    /// Goodput (Gb/s) and RTT (µs) of settings at a time; `None` if they are not possible.
    simulate: F,
    /// Standard deviation of the noise, relative to the goodput.
    sigma: f64,
    /// Autocorrelation of the noise from one test to the next.
    memory: f64,
    /// On average, one of this many tests is stalled for a third of its time; 0 for none.
    stalls: u64,
    cause: Cause,
    facts: Facts,
    /// Time from which other programs delay each test, nanoseconds.
    busy_from_ns: u64,
}

/// Hosts with noise of 3 %, never busy.
fn hosts<F>(simulate: F, cause: Cause) -> SimulatedHosts<F> {
    SimulatedHosts { simulate, sigma: 0.03, memory: 0.3, stalls: 0, cause, facts: facts(), busy_from_ns: u64::MAX }
}

struct Search {
    ladder: Ladder,
    now_ns: u64,
}

impl<F: Fn(&Settings, u64) -> Option<(f64, f64)>> SimulatedHosts<F> {
    /// Time of a test besides that of its data, nanoseconds.
    fn overhead_ns(&self, now_ns: u64) -> u64 {
        if now_ns >= self.busy_from_ns { 4 * SECOND } else { 150_000_000 }
    }

    fn search(&self, original: &Settings, budget_ns: u64, seed: u64) -> Search {
        self.search_with(original, LadderOptions { budget_ns, seed, ..options() })
    }

    fn search_with(&self, original: &Settings, options: LadderOptions) -> Search {
        let seed = options.seed;
        let mut ladder = Ladder::new(original.clone(), options).expect("time enough");
        let mut random = SplitMix64::new(seed ^ 0x5eed);
        let (mut now_ns, mut noise) = (0, 0.0);
        while let Some(test) = ladder.next_test(now_ns) {
            let p = &test.settings.parameters;
            now_ns += p.time_ns.expect("a time") + p.omit_ns + self.overhead_ns(now_ns);
            // AR(1) noise with a standard deviation of sigma.
            let fresh = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
            noise = self.memory * noise + self.sigma * (1.0 - self.memory.powi(2)).sqrt() * fresh;
            let stalled = self.stalls > 0 && random.below(self.stalls) == 0;
            let outcome = match (self.simulate)(&test.settings, now_ns) {
                None => TestOutcome::Refused("not possible".to_owned()),
                Some((gbps, rtt_us)) => {
                    let factor = (1.0 + noise).max(0.1) * if stalled { 0.67 } else { 1.0 };
                    let measured = Measurement {
                        goodput_bps: gbps * 1e9 * factor,
                        rtt_p50_us: Some(rtt_us),
                        rtt_p99_us: Some(rtt_us * 1.5),
                        retransmits_per_gb: Some(0.0),
                        cpu_s_per_gb: Some(0.05),
                        receive_queue_cpu: None,
                    };
                    match test.kind {
                        TestKind::Compared => TestOutcome::Measured(measured),
                        TestKind::Diagnosis => {
                            let congestion = p.congestion.clone().or_else(|| self.facts.congestion.clone());
                            let facts =
                                Facts { goodput_bps: Some(measured.goodput_bps), congestion, ..self.facts.clone() };
                            let diagnosis = Diagnosis { verdict: verdict(self.cause), facts };
                            TestOutcome::Diagnosed(measured, Box::new(diagnosis))
                        }
                    }
                }
            };
            ladder.take(now_ns, outcome);
        }
        Search { ladder, now_ns }
    }
}

fn options() -> LadderOptions {
    LadderOptions {
        budget_ns: BUDGET,
        seed: 1,
        host_changes: false,
        test_ns: None,
        omit_ns: None,
        memory_bps: None,
        map: None,
    }
}

fn verdict(cause: Cause) -> Verdict {
    Verdict {
        cause,
        confidence: Confidence::High,
        summary: "a cause".to_owned(),
        place: None,
        evidence: Vec::new(),
        ruled_out: Vec::new(),
        missing: Vec::new(),
        next_step: String::new(),
        epochs: Vec::new(),
    }
}

fn facts() -> Facts {
    let end = EndFacts {
        cores: vec![0, 1, 2, 3],
        congestion_available: vec!["cubic".to_owned(), "bbr".to_owned()],
        ..EndFacts::default()
    };
    Facts {
        client_sends: true,
        same_host: true,
        client: end.clone(),
        server: end,
        min_rtt_us: Some(50),
        congestion: Some("cubic".to_owned()),
        ..Facts::default()
    }
}

fn plain(parameters: Parameters) -> Settings {
    Settings { parameters, plan: TuneupPlan::default() }
}

fn mistuned() -> Settings {
    plain(Parameters {
        window_bytes: Some(64 << 10),
        write_bytes: 4 << 10,
        client_cpus: vec![0],
        server_cpus: vec![0],
        ..Parameters::default()
    })
}

/// A fixed window, short writes and a shared core each reduce the goodput; a bad placement is always slower.
#[expect(clippy::unnecessary_wraps, reason = "a path says None where a setting is refused")]
fn simulate_mistuned(settings: &Settings, _: u64) -> Option<(f64, f64)> {
    let p = &settings.parameters;
    let window = match p.window_bytes {
        Some(bytes) if bytes < 16 << 10 => 0.05,
        Some(_) => 0.3,
        None => 1.0,
    };
    let writes = if p.write_bytes < 64 << 10 { 0.6 } else { 1.0 };
    let shared = if !p.client_cpus.is_empty() && p.client_cpus == p.server_cpus { 0.55 } else { 1.0 };
    Some((20.0 * window * writes * shared, 100.0))
}

#[test]
fn mistuned_hosts_reach_the_optimum_within_the_budget() {
    let world = SimulatedHosts { memory: 0.5, stalls: 20, ..hosts(simulate_mistuned, Cause::SenderCpu) };
    for seed in 0..20 {
        let Search { ladder, now_ns } = world.search(&mistuned(), BUDGET, seed);
        let best = simulate_mistuned(ladder.best(), 0).expect("possible").0;
        assert!((best - 20.0).abs() < 1e-9, "seed {seed}: {best}, {:?}", ladder.best());
        assert!(now_ns <= BUDGET, "seed {seed}: {now_ns}");
        let gain = ladder.total_gain().expect("measured at the end");
        assert!(gain.low > 5.0 && gain.high < 20.0, "seed {seed}: {gain:?}");
        assert!(ladder.sanity().iter().any(|sanity| sanity.shows), "seed {seed}");
    }
}

const SEARCHES: u64 = 400;

#[test]
fn tuned_hosts_are_unchanged_in_95_percent_of_searches() {
    // Nothing makes a difference except the placements and windows that must be slower.
    let tuned = |settings: &Settings, _: u64| {
        let p = &settings.parameters;
        let bad = !p.client_cpus.is_empty() && p.client_cpus == p.server_cpus;
        Some((if bad || p.window_bytes.is_some() { 5.0 } else { 10.0 }, 100.0))
    };
    for (sigma, memory, stalls) in [(0.05, 0.6, 12), (0.15, 0.9, 0)] {
        let world = SimulatedHosts { sigma, memory, stalls, ..hosts(tuned, Cause::ReceiverCpu) };
        let changed = (0..SEARCHES).filter(|seed| {
            let search = world.search(&plain(Parameters::default()), BUDGET, *seed);
            search.ladder.rungs().iter().any(|rung| rung.kept)
        });
        let changed = changed.count();
        assert!(changed <= 20, "noise {sigma}, memory {memory}: {changed} of {SEARCHES} searches changed something");
    }
}

#[test]
fn gains_of_five_percent_are_found() {
    let simulate = |settings: &Settings, _: u64| {
        let p = &settings.parameters;
        let bad = !p.client_cpus.is_empty() && p.client_cpus == p.server_cpus;
        let gbps = if p.write_bytes == 128 << 10 { 10.5 } else { 10.0 };
        Some((if bad { 5.0 } else { gbps }, 100.0))
    };
    let world = SimulatedHosts { sigma: 0.02, ..hosts(simulate, Cause::SenderCpu) };
    let found = (0..100).filter(|seed| {
        let search = world.search(&plain(Parameters::default()), BUDGET, *seed);
        search.ladder.best().parameters.write_bytes == 128 << 10
    });
    let found = found.count();
    assert!(found >= 80, "found in {found} of 100 searches");
}

#[test]
fn untried_changes_come_first_and_none_reverts() {
    // A second stream and a congestion control other than the default help; neither is tried first.
    let simulate = |settings: &Settings, _: u64| {
        let p = &settings.parameters;
        let bad = !p.client_cpus.is_empty() && p.client_cpus == p.server_cpus;
        let control = if p.congestion.as_deref() == Some("bbr") { 1.5 } else { 1.0 };
        Some((if bad { 5.0 } else { 10.0 * control * f64::from(p.streams.min(2)) }, 100.0))
    };
    let world = SimulatedHosts { sigma: 0.01, memory: 0.0, ..hosts(simulate, Cause::SenderCpu) };
    let Search { ladder, .. } = world.search(&plain(Parameters::default()), 10 * BUDGET, 4);
    let changes: Vec<&str> = ladder.rungs().iter().map(|rung| rung.change.as_str()).collect();
    assert!(changes.contains(&"streams 1 → 2"), "{changes:?}");
    assert!(!changes.contains(&"streams 2 → 1"), "{changes:?}");
    assert!(!changes.contains(&"congestion control bbr → cubic"), "the kernel's default: {changes:?}");
    let again = changes.iter().enumerate().position(|(at, change)| changes[..at].contains(change));
    let alone = |at: &usize| !changes[*at].starts_with("together");
    let last_new = (0..changes.len()).rev().filter(alone).find(|&at| !changes[..at].contains(&changes[at]));
    assert!(again.is_none() || again > last_new, "{changes:?}");
}

#[test]
fn near_gains_are_retried_without_restrictions() {
    // As measured between two namespaces on a machine with two cores, but with restricted windows and cores: a
    // second stream helps only without both restrictions.
    let simulate = |settings: &Settings, _: u64| {
        let p = &settings.parameters;
        let pinned = !p.client_cpus.is_empty() || !p.server_cpus.is_empty();
        let writes = if p.write_bytes == 1 << 20 { 1.0 } else { 0.6 };
        let sends = if p.send == SendMode::Copy { 1.0 } else { 0.7 };
        let gbps = match (p.window_bytes.is_some_and(|bytes| bytes < 16 << 10), p.window_bytes.is_some(), pinned) {
            (true, ..) => 2.0,
            (_, true, true) => 54.0 * if p.streams > 1 { 0.95 } else { 1.0 },
            (_, true, false) => 29.0,
            (_, false, true) => 25.0,
            (_, false, false) => 70.0 * f64::from(p.streams.min(2)),
        };
        Some((gbps * writes * sends, 100.0))
    };
    let end = EndFacts { cores: vec![0, 1], ..facts().client };
    let facts = Facts { client: end.clone(), server: end, ..facts() };
    let world = SimulatedHosts { sigma: 0.01, memory: 0.2, facts, ..hosts(simulate, Cause::SenderCpu) };
    for seed in 0..10 {
        let Search { ladder, .. } = world.search(&mistuned(), BUDGET, seed);
        let best = ladder.best();
        let changes: Vec<&str> = ladder.rungs().iter().map(|rung| rung.change.as_str()).collect();
        assert_eq!((best.parameters.streams, best.parameters.window_bytes), (2, None), "seed {seed}: {changes:#?}");
    }
}

#[test]
fn search_rejects_gains_with_excessive_rtt() {
    let simulate = |settings: &Settings, _: u64| {
        let open = settings.parameters.window_bytes.is_none();
        Some(if open { (10.0, 60_000.0) } else { (5.0, 20_000.0) })
    };
    let original = plain(Parameters { window_bytes: Some(1 << 20), ..Parameters::default() });
    let world = SimulatedHosts { sigma: 0.01, memory: 0.0, ..hosts(simulate, Cause::ReceiverWindow) };
    let Search { ladder, .. } = world.search(&original, BUDGET, 1);
    let rung = ladder.rungs().iter().find(|rung| rung.change.starts_with("window")).expect("tried");
    assert!(!rung.kept, "{rung:?}");
    assert_eq!(rung.rejected.as_deref(), Some("median RTT above the limit"));
    assert!(rung.low.is_some_and(|low| low > 1.0), "it was faster: {rung:?}");
    assert_eq!(ladder.best().parameters.window_bytes, Some(1 << 20));
}

#[test]
fn moved_baseline_is_reported() {
    for (drop, moved) in [(0.7, true), (1.0, false)] {
        let simulate =
            move |_: &Settings, now_ns: u64| Some((if now_ns > 40 * SECOND { 10.0 * drop } else { 10.0 }, 100.0));
        let world = SimulatedHosts { sigma: 0.01, ..hosts(simulate, Cause::ReceiverCpu) };
        let Search { ladder, .. } = world.search(&plain(Parameters::default()), BUDGET, 3);
        let again = ladder.baseline_again().expect("measured again");
        assert_eq!(again.moved, moved, "{again:?}");
        assert!(ladder.sanity().iter().all(|sanity| !sanity.shows), "nothing makes a difference here");
    }
}

#[test]
fn final_tests_fit_into_the_budget() {
    for budget in [60, 90, 120, 200] {
        let world = hosts(simulate_mistuned, Cause::ReceiverWindow);
        let Search { ladder, now_ns } = world.search(&mistuned(), budget * SECOND, 7);
        assert!(now_ns <= budget * SECOND, "{budget} s: took {now_ns} ns");
        assert!(ladder.baseline_again().is_some() && !ladder.sanity().is_empty(), "{budget} s");
        if budget == 60 {
            assert_eq!(ladder.ended().map(|(end, _)| end), Some(TuneupEnd::Budget));
        }
    }
    let options = LadderOptions { budget_ns: 10 * SECOND, ..options() };
    let TooShort { min_ns } = Ladder::new(mistuned(), options).expect_err("too short");
    assert!((30 * SECOND..60 * SECOND).contains(&min_ns), "{min_ns}");
}

#[test]
fn hosts_that_become_busy_end_the_search_within_the_budget() {
    for busy_from_s in [5, 15, 25, 40, 50, 55, 60, 65, 75, 85] {
        let busy_from_ns = busy_from_s * SECOND;
        let world = SimulatedHosts { busy_from_ns, ..hosts(simulate_mistuned, Cause::ReceiverWindow) };
        let Search { ladder, now_ns } = world.search(&mistuned(), 90 * SECOND, 7);
        // A test that runs when the hosts become busy ends later than planned.
        assert!(now_ns <= 94 * SECOND, "busy from {busy_from_s} s: took {now_ns} ns");
        assert!(ladder.ended().is_some_and(|(end, _)| matches!(end, TuneupEnd::Budget | TuneupEnd::Failed)));
        // Whatever was cut off, the rate is one that was measured.
        assert!(ladder.best_bps().is_none_or(|bps| bps > 0.0), "busy from {busy_from_s} s");
    }
}

#[test]
fn same_seed_gives_the_same_search() {
    let world = SimulatedHosts { stalls: 9, ..hosts(simulate_mistuned, Cause::SenderCpu) };
    let rungs = |seed| world.search(&mistuned(), BUDGET, seed).ladder.rungs().to_vec();
    assert_eq!(rungs(5), rungs(5));
    assert_ne!(rungs(5), rungs(6));
}

#[test]
fn changes_refused_by_a_host_are_skipped_with_reason() {
    let simulate = |settings: &Settings, _: u64| (settings.parameters.congestion.is_none()).then_some((10.0, 100.0));
    let world = SimulatedHosts { sigma: 0.01, memory: 0.0, ..hosts(simulate, Cause::NetworkLoss) };
    let Search { ladder, .. } = world.search(&plain(Parameters::default()), BUDGET, 2);
    let rung = ladder.rungs().iter().find(|rung| rung.change.starts_with("congestion")).expect("tried");
    assert_eq!((rung.kept, rung.ratio, rung.rejected.as_deref()), (false, None, Some("not possible")));
    assert_eq!(ladder.ended().map(|(end, _)| end), Some(TuneupEnd::NothingHelps));
}

#[test]
fn empty_tests_of_settings_that_worked_are_repeated() {
    // Nothing arrives in the test that ends within one second of eleven.
    let simulate = |settings: &Settings, now_ns: u64| {
        (now_ns < 5 * SECOND || !(now_ns / SECOND).is_multiple_of(11)).then(|| simulate_mistuned(settings, now_ns))?
    };
    let world = SimulatedHosts { sigma: 0.01, memory: 0.0, ..hosts(simulate, Cause::ReceiverWindow) };
    for seed in 0..10 {
        let Search { ladder, now_ns } = world.search(&mistuned(), BUDGET, seed);
        let (end, why) = ladder.ended().expect("an end");
        assert_ne!(end, TuneupEnd::Failed, "seed {seed}: {why}");
        assert!(now_ns <= BUDGET && ladder.total_gain().is_some(), "seed {seed}: {now_ns}");
    }
}

#[test]
fn an_empty_first_test_is_repeated() {
    let ended = |empty_until_s: u64| {
        let simulate = move |settings: &Settings, now_ns: u64| {
            (now_ns >= empty_until_s * SECOND).then(|| simulate_mistuned(settings, now_ns))?
        };
        let world = SimulatedHosts { sigma: 0.01, memory: 0.0, ..hosts(simulate, Cause::ReceiverWindow) };
        let Search { ladder, .. } = world.search(&mistuned(), BUDGET, 1);
        (ladder.ended().map(|(end, _)| end), ladder.tests())
    };
    let (end, tests) = ended(4);
    assert!(end != Some(TuneupEnd::Failed) && tests > 10, "{end:?} after {tests} tests");
    let (end, tests) = ended(10_000);
    assert_eq!((end, tests < 5), (Some(TuneupEnd::Failed), true), "{tests} tests");
}

#[test]
fn a_server_that_delivers_nothing_any_more_ends_the_search() {
    let simulate =
        |settings: &Settings, now_ns: u64| (now_ns < 40 * SECOND).then(|| simulate_mistuned(settings, now_ns))?;
    let world = SimulatedHosts { sigma: 0.01, memory: 0.0, ..hosts(simulate, Cause::ReceiverWindow) };
    let Search { ladder, now_ns } = world.search(&mistuned(), BUDGET, 1);
    assert_eq!(ladder.ended().map(|(end, _)| end), Some(TuneupEnd::Failed));
    assert!(now_ns < 60 * SECOND, "{now_ns}");
}

#[test]
fn a_budget_too_short_for_the_rtt_ends_before_the_baseline() {
    let world = SimulatedHosts {
        sigma: 0.01,
        memory: 0.0,
        facts: Facts { min_rtt_us: Some(400_000), ..facts() },
        ..hosts(simulate_mistuned, Cause::ReceiverWindow)
    };
    let Search { ladder, .. } = world.search(&mistuned(), 100 * SECOND, 1);
    let (end, why) = ladder.ended().expect("an end");
    assert_eq!((end, ladder.tests()), (TuneupEnd::Failed, 1));
    assert!(why.contains("--budget 4"), "{why}");
}

#[test]
fn stopped_searches_keep_their_rungs() {
    let world = SimulatedHosts { sigma: 0.01, memory: 0.0, ..hosts(simulate_mistuned, Cause::ReceiverWindow) };
    let mut ladder = world.search(&mistuned(), BUDGET, 1).ladder;
    assert!(ladder.next_test(0).is_none());
    let kept = ladder.rungs().to_vec();
    ladder.stop(TuneupEnd::Interrupted, "interrupted");
    assert_eq!(ladder.rungs(), kept);
    assert_eq!(ladder.ended(), Some((TuneupEnd::Interrupted, "interrupted")));
}

#[test]
fn reaching_the_link_rate_ends_the_search() {
    let world = SimulatedHosts {
        sigma: 0.001,
        memory: 0.0,
        ..hosts(|_: &Settings, _: u64| Some((9.4, 100.0)), Cause::LinkRate)
    };
    let Search { ladder, .. } = world.search(&plain(Parameters::default()), BUDGET, 1);
    assert_eq!(ladder.ended().map(|(end, _)| end), Some(TuneupEnd::Ceiling));
    assert!(ladder.rungs().is_empty());
}

/// Only the placement matters: threads on the same core take turns.
#[expect(clippy::unnecessary_wraps, reason = "a path says None where a setting is refused")]
fn simulate_placement(settings: &Settings, _: u64) -> Option<(f64, f64)> {
    let p = &settings.parameters;
    let small = if p.window_bytes.is_some() { 0.05 } else { 1.0 };
    let shared = !p.server_cpus.is_empty() && p.client_cpus == p.server_cpus;
    // Core 3 of the receiver is busy.
    let busy = if p.server_cpus == [3] { 0.8 } else { 1.0 };
    Some((20.0 * small * busy * if shared { 0.5 } else { 1.0 }, 100.0))
}

fn placement_world<F>(simulate: F) -> SimulatedHosts<F> {
    SimulatedHosts { stalls: 20, ..hosts(simulate, Cause::SenderCpu) }
}

#[test]
fn core_map_shows_the_goodput_of_each_placement() {
    let world = placement_world(simulate_placement);
    let shared = plain(Parameters { client_cpus: vec![1], server_cpus: vec![1], ..Parameters::default() });
    let Search { ladder, now_ns } = world.search_with(&shared, LadderOptions { map: Some(Vec::new()), ..options() });
    assert_eq!(ladder.ended().map(|(end, _)| end), Some(TuneupEnd::Mapped));
    assert!(now_ns <= BUDGET, "{now_ns}");
    let map = ladder.map().expect("a map");
    assert_eq!((map.cells.len(), map.rounds), (16, 5));
    for cell in &map.cells {
        let expected = match (cell.receiver_core == cell.column_core, cell.receiver_core) {
            (true, 3) => 8e9,
            (true, _) => 10e9,
            (false, 3) => 16e9,
            (false, _) => 20e9,
        };
        let median = cell.goodput_bps.expect("measured");
        assert!((median / expected - 1.0).abs() < 0.1, "{cell:?}");
    }
    let best = &ladder.best().parameters;
    assert!(best.client_cpus != best.server_cpus && best.server_cpus != [3], "{best:?}");
    assert!(ladder.total_gain().is_some_and(|gain| gain.low > 1.5 && gain.high < 2.5));
    let [sanity] = &ladder.sanity()[..] else { panic!("one check is enough") };
    assert!(sanity.shows && sanity.change.contains("receiver on core"), "{sanity:?}");
    assert!(ladder.rungs().is_empty());
}

#[test]
fn incomplete_core_maps_recommend_nothing() {
    let world = placement_world(|settings: &Settings, now_ns| {
        // From the final tests on, no settings are possible.
        simulate_placement(settings, now_ns).filter(|_| now_ns < 140 * SECOND)
    });
    let original = plain(Parameters { client_cpus: vec![1], server_cpus: vec![1], ..Parameters::default() });
    let ladder = world.search_with(&original, LadderOptions { map: Some(Vec::new()), ..options() }).ladder;
    assert_eq!(ladder.best(), &original);
    assert_eq!(ladder.ended().map(|(end, _)| end), Some(TuneupEnd::Failed));
}

#[test]
fn equal_placements_are_not_recommended() {
    let world = placement_world(|settings: &Settings, _| {
        Some((if settings.parameters.window_bytes.is_some() { 1.0 } else { 20.0 }, 100.0))
    });
    let changed = |seed| {
        let options = LadderOptions { seed, map: Some(vec![0, 1, 2]), ..options() };
        let Search { ladder, .. } = world.search_with(&plain(Parameters::default()), options);
        // The tests can detect differences: a small window is slower, although no placement is.
        assert!(ladder.sanity().iter().any(|sanity| sanity.shows), "seed {seed}");
        ladder.best().parameters != Parameters::default()
    };
    assert!((0..100).filter(|seed| changed(*seed)).count() <= 5);
}

#[test]
fn core_map_moves_interrupts_with_host_changes() {
    let mut world = placement_world(|settings: &Settings, _| {
        let on = settings.plan.server.first().map(|change| change.desired.as_str());
        Some((if on == Some("4") { 30.0 } else { 20.0 }, 100.0))
    });
    world.facts.server.interface = Some("eth0".to_owned());
    let options = LadderOptions { host_changes: true, map: Some(Vec::new()), ..options() };
    let Search { ladder, .. } = world.search_with(&plain(Parameters::default()), options);
    let changes: Vec<String> =
        ladder.plan().server.iter().map(|change| format!("{} {}", change.target, change.desired)).collect();
    assert_eq!(changes, ["eth0 rx-0 rps_cpus 4"]);
}

#[test]
fn failed_core_maps_state_the_reason() {
    let world = placement_world(simulate_placement);
    let why = |options: LadderOptions, facts: Facts| {
        let world = SimulatedHosts { facts, ..placement_world(simulate_placement) };
        let ladder = world.search_with(&plain(Parameters::default()), options).ladder;
        let (end, why) = ladder.ended().expect("an end");
        assert_eq!(end, TuneupEnd::Failed);
        why.to_owned()
    };
    let map = |cores: &[u32], budget_ns| LadderOptions { map: Some(cores.to_vec()), budget_ns, ..options() };
    assert!(why(map(&[], 55 * SECOND), facts()).contains("16 placements"));
    assert!(why(map(&[7], BUDGET), facts()).contains("core 7"));
    let one = EndFacts { cores: vec![0], ..EndFacts::default() };
    let facts = Facts { client: one.clone(), server: one, ..world.facts };
    assert!(why(map(&[], BUDGET), facts).contains("one core"));
}
