use super::*;
use crate::plan;

const PLAN: &str = "name = \"n\"\n[lab]\nscenario = \"s\"\n[[factor]]\nname = \"a\"\nkey = \"x\"\nlevels = [1, 2]\n\
                    [[factor]]\nname = \"b\"\nkey = \"y\"\nlevels = [1, 2]\n";

fn made(cell: usize, block: u32, kind: RunKind, goodput: f64, digest: &str) -> FinishedRun {
    let flow = SweepFlow { figures: BTreeMap::from([("goodput_bps".to_owned(), goodput)]), ..SweepFlow::default() };
    let planned = PlannedRun { block, place: 0, cell, kind, seed: u64::from(block) };
    FinishedRun {
        id: format!("{cell}-{block}-{kind:?}"),
        planned,
        worker: "w".to_owned(),
        wall_s: 1.0,
        document: String::new(),
        facts: RunFacts { usable: true, digest: Some(digest.to_owned()), flows: vec![flow], ..RunFacts::default() },
    }
}

fn of(runs: &[FinishedRun]) -> SweepDocument {
    let plan = plan::read(PLAN, "plan").expect("a plan");
    let frame = SweepMetadata {
        landspeed: BuildInfo::default(),
        started: String::new(),
        command: Vec::new(),
        flow: None,
        cells: (0..4).map(|cell| cell.to_string()).collect(),
        rules: plan.rules,
        blocks: 10,
        engine: SweepEngine { name: "local".to_owned(), jobs: 1, workers: Vec::new(), requeued: 0 },
        ended: Some(Ended::Blocks),
        errors: Vec::new(),
        warnings: Vec::new(),
        wall_s: 1.0,
        overhead_s: 0.0,
    };
    document(&plan, &Design::of(&plan), frame, runs)
}

/// Ten blocks: level 2 of `a` doubles the goodput, level 2 of `b` has no effect.
fn ten_blocks() -> Vec<FinishedRun> {
    let runs = (0..10).flat_map(|block| {
        let noise = 1.0 + 0.01 * f64::from(block % 5);
        (0..4).map(move |cell| made(cell, block, RunKind::Cell, noise * if cell < 2 { 1e9 } else { 2e9 }, "d"))
    });
    runs.chain((0..10).map(|block| {
        let mut run = made(0, block, RunKind::Control, 1.02e9, "e");
        run.planned.seed += 1_000_000;
        run
    }))
    .collect()
}

#[test]
fn main_effects_are_separated() {
    let document = of(&ten_blocks());
    let ratios: Vec<(String, f64)> =
        document.effects.iter().map(|effect| (effect.factor.clone(), effect.ratio)).collect();
    assert_eq!(ratios.len(), 2);
    assert!(ratios[0].0 == "a" && (ratios[0].1 - 2.0).abs() < 1e-9);
    assert!(ratios[1].0 == "b" && (ratios[1].1 - 1.0).abs() < 1e-9);
    assert_eq!(document.status, SweepStatus::Complete);
    assert_eq!(document.metrics[0].name, "goodput");
}

#[test]
fn runs_that_delivered_nothing_stay_in_the_effects() {
    let mut runs = ten_blocks();
    for run in runs.iter_mut().filter(|run| run.planned.cell == 2 && run.planned.block < 3) {
        run.facts.flows[0].figures.insert("goodput_bps".to_owned(), 0.0);
    }
    let effect = of(&runs).effects.remove(0);
    let low = effect.low.expect("an interval");
    // Half of the cells of these three blocks delivered nothing: there the ratio is 1, not 2.
    assert_eq!((effect.factor.as_str(), effect.blocks), ("a", 10));
    assert!((effect.ratio - 2.0).abs() < 1e-9 && low < 1.1, "{effect:?}");
}

#[test]
fn control_compares_the_first_cell_with_itself() {
    let document = of(&ten_blocks());
    let control = document.control.expect("a control");
    assert_eq!((control.cell.as_str(), control.metrics.len()), ("0", 1));
    assert_eq!((control.metrics[0].candidate_runs, control.metrics[0].name.as_str()), (10, "goodput"));
    assert_eq!(control.metrics[0].verdict, landspeed_model::ComparisonVerdict::NoDetectableDifference);
}

#[test]
fn equal_runs_with_different_digests_are_an_error() {
    let mut runs = ten_blocks();
    runs.push(made(0, 0, RunKind::Repeat, 1e9, "d"));
    let document = of(&runs);
    assert_eq!(document.digests, Some(SweepDigests { compared: 1, different: Vec::new() }));
    assert_eq!(document.cells[0].runs.len(), 20, "a repeat is no further run");
    runs.last_mut().expect("a run").facts.digest = Some("other".to_owned());
    let document = of(&runs);
    assert_eq!((document.errors[0].code.as_str(), document.status), ("digest", SweepStatus::Partial));
}

#[test]
fn sweep_is_partial_if_a_cell_has_no_usable_run() {
    let mut runs = ten_blocks();
    runs.iter_mut().filter(|run| run.planned.cell == 3).for_each(|run| run.facts.usable = false);
    assert_eq!(of(&runs).status, SweepStatus::Partial);
    assert_eq!(of(&[]).status, SweepStatus::Failed);
}

/// Runs whose host has these facts, given by cell and block.
fn with_hosts(facts: impl Fn(usize, u32) -> Vec<(&'static str, String)>) -> Vec<FinishedRun> {
    let mut runs = ten_blocks();
    for run in &mut runs {
        let facts = facts(run.planned.cell, run.planned.block);
        let hosts = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        run.facts.environments = vec![SweepEnvironment { hosts, ..SweepEnvironment::default() }];
    }
    runs
}

#[test]
fn environments_are_deduplicated_and_omit_facts_set_by_factors() {
    let document = of(&with_hosts(|cell, _| {
        vec![
            ("client.kernel_release", "6.18".to_owned()),
            ("client.sysctl.net.ipv4.tcp_rmem", format!("level {}", cell / 2)),
        ]
    }));
    let hosts = BTreeMap::from([("client.kernel_release".to_owned(), "6.18".to_owned())]);
    assert_eq!(document.environments, [SweepEnvironment { hosts: hosts.clone(), ..SweepEnvironment::default() }]);
    assert_eq!(document.warnings, []);
    let records = Document::Sweep(Box::new(document)).records();
    assert!(records.len() == 50 && records.iter().all(|record| record.hosts == hosts));
}

#[test]
fn host_changes_between_blocks_give_a_warning() {
    let document =
        of(&with_hosts(|_, block| vec![("server.kernel_release", format!("6.{}", if block < 5 { 17 } else { 18 }))]));
    assert_eq!(document.environments.len(), 2);
    let warning = document.warnings.first().expect("a warning");
    assert_eq!(warning.code, "host-changed");
    assert_eq!(
        warning.message,
        "server.kernel_release changed during the experiment, and no factor sets it: 6.17; 6.18"
    );
}

#[test]
fn scenario_hash_distinguishes_scenarios_varied_by_factors() {
    let scenario = |name: &'static str| {
        let document = of(&with_hosts(|cell, _| vec![("lab.scenario", format!("{name} {cell}"))]));
        assert_eq!(document.environments.len(), 1);
        document.environments[0].hosts["lab.scenario"].clone()
    };
    assert_eq!(scenario("one"), scenario("one"));
    assert_ne!(scenario("one"), scenario("two"));
}

#[test]
fn runs_without_the_metric_are_named() {
    let mut runs = ten_blocks();
    assert!(of(&runs).warnings.is_empty());
    for run in runs.iter_mut().filter(|run| run.planned.cell == 1 && run.planned.block < 3) {
        run.facts.flows[0].figures.clear();
    }
    let warnings = of(&runs).warnings;
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert_eq!(warning.code, "missing-values");
    assert!(warning.message.starts_with("no goodput, so not in its median: 3 of 10 runs of a=1 b=2"), "{warning:?}");
}
