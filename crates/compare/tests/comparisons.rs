//! Comparisons of records, from values to verdicts.

use landspeed_compare::{Condition, Group, Options, compare, document, noise, precision};
use landspeed_model::{BuildInfo, ComparisonDesign, ComparisonDocument, ComparisonVerdict, Metric};
use landspeed_results::{Record, RecordStatus};

/// A complete run that started in minute `minute` with this goodput.
fn run(minute: usize, goodput: f64) -> Record {
    let mut record = Record::without_figures("landspeed 0.1.0".to_owned());
    record.status = RecordStatus::Complete;
    record.started = format!("2026-11-24T{:02}:{:02}:00Z", minute / 60, minute % 60);
    record.figures.set(Metric::Goodput, Some(goodput));
    record
}

fn group(name: &str, first_minute: usize, goodputs: &[f64]) -> Group {
    let records = goodputs.iter().enumerate().map(|(i, goodput)| run(first_minute + i, *goodput)).collect();
    Group::new(name, name, records)
}

fn blocks(name: &str, goodputs: &[f64]) -> Group {
    let mut group = group(name, 0, goodputs);
    for (block, record) in group.records.iter_mut().enumerate() {
        record.experiment = Some("a sweep".to_owned());
        record.block = Some(block as u32);
        record.settings.insert("cc".to_owned(), name.to_owned());
    }
    group
}

fn compared(groups: Vec<Group>, conditions: &[&str]) -> ComparisonDocument {
    let conditions: Vec<Condition> = conditions.iter().map(|text| text.parse().expect("a condition")).collect();
    let build = BuildInfo { version: "0.1.0".to_owned(), server_version: None };
    document(groups, &Options::default(), &conditions, build)
}

const RATES: [f64; 8] = [9.1e9, 9.4e9, 9.2e9, 9.5e9, 9.3e9, 8.9e9, 9.6e9, 9.0e9];

#[test]
fn blocks_of_one_sweep_are_paired() {
    let slower = RATES.map(|rate| rate * 0.96);
    let metrics = compare(&blocks("cubic", &RATES), &[blocks("bbr", &slower)], &Options::default());
    let [goodput] = metrics.as_slice() else { panic!("{metrics:?}") };
    assert_eq!((goodput.design, goodput.verdict), (ComparisonDesign::Paired, ComparisonVerdict::Worse));
    assert!(goodput.ratio.is_some_and(|ratio| (ratio - 0.96).abs() < 1e-9), "{goodput:?}");
    let mut other = blocks("bbr", &slower);
    for record in &mut other.records {
        record.experiment = Some("another sweep".to_owned());
    }
    let metrics = compare(&blocks("cubic", &RATES), &[other], &Options::default());
    assert_eq!(metrics[0].design, ComparisonDesign::Unpaired);
}

#[test]
fn equal_results_have_ratio_one() {
    let metrics = compare(&group("a", 0, &[9.4e9; 8]), &[group("b", 0, &[9.4e9; 8])], &Options::default());
    let figures = (metrics[0].ratio, metrics[0].low, metrics[0].high, metrics[0].verdict);
    assert_eq!(figures, (Some(1.0), Some(1.0), Some(1.0), ComparisonVerdict::NoDetectableDifference));
}

#[test]
fn interval_containing_one_gives_no_detectable_difference() {
    for (a, b) in [(0, 0), (0, 100)] {
        let metrics =
            compare(&group("a", a, &RATES), &[group("b", b, &RATES.map(|rate| rate * 1.001))], &Options::default());
        let (low, high) = metrics[0].low.zip(metrics[0].high).expect("an interval");
        assert!(low < 1.0 && 1.0 < high);
        assert_eq!(metrics[0].verdict, ComparisonVerdict::NoDetectableDifference);
        assert!(metrics[0].minimum_detectable.is_some_and(|least| least > 0.005));
    }
}

#[test]
fn too_few_runs_report_the_number_needed() {
    let metrics = compare(&group("a", 0, &RATES[..5]), &[group("b", 9, &RATES[..5])], &Options::default());
    assert_eq!((metrics[0].verdict, metrics[0].runs_needed), (ComparisonVerdict::TooFewRuns, Some(6)));
    assert_eq!((metrics[0].low, metrics[0].high), (None, None));
}

#[test]
fn retransmits_increasing_from_zero_are_worse_without_a_ratio() {
    let with = |name: &str, retransmits: &[f64]| {
        let mut group = group(name, 0, &RATES);
        for (record, value) in group.records.iter_mut().zip(retransmits) {
            record.figures.set(Metric::Retransmits, Some(*value));
        }
        group
    };
    let metrics = compare(
        &with("a", &[0.0; 8]),
        &[with("b", &[3.0, 9.0, 4.0, 5.0, 7.0, 2.0, 8.0, 6.0])],
        &Options { metrics: vec![Metric::Goodput], ..Options::default() },
    );
    let retransmits = metrics.iter().find(|metric| metric.name == "retransmits").expect("goodput brings retransmits");
    assert_eq!((retransmits.ratio, retransmits.verdict), (None, ComparisonVerdict::Worse));
    assert!(retransmits.greater.is_some_and(|greater| greater.estimate >= 1.0 && greater.low == Some(1.0)));
    let none = compare(&with("a", &[0.0; 8]), &[with("b", &[0.0; 8])], &Options::default());
    assert!(none.iter().all(|metric| metric.verdict == ComparisonVerdict::NoDetectableDifference), "{none:?}");
}

#[test]
fn condition_is_true_if_the_whole_interval_exceeds_it() {
    let conditions =
        ["goodput worse 3%", "goodput worse 5%", "goodput worse", "goodput better", "any different 1%", "cpu worse"];
    let document = compared(vec![blocks("a", &RATES), blocks("b", &RATES.map(|rate| rate * 0.96))], &conditions);
    let holds: Vec<bool> = document.conditions.iter().map(|condition| condition.holds).collect();
    assert_eq!(holds, [true, false, true, false, true, false]);
    assert_eq!(document.conditions[5].detail, "no result has this metric");
    for wrong in [
        "goodput",
        "goodput worse 3",
        "bandwidth worse 3%",
        "goodput slower 3%",
        "goodput worse -3%",
        "goodput worse NaN%",
    ] {
        assert!(wrong.parse::<Condition>().is_err(), "{wrong}");
    }
}

#[test]
fn duplicate_results_count_once() {
    let mut twice = group("a", 0, &RATES);
    twice.records.push(run(0, RATES[0]));
    twice.records.push(Record { status: RecordStatus::Partial, ..run(60, 1e9) });
    let document = compared(vec![twice, group("b", 0, &RATES)], &[]);
    assert_eq!((document.groups[0].runs, document.groups[0].left_out.len()), (8, 2));
    assert!(document.warnings.iter().any(|warning| warning.code == "shared-results"));
}

#[test]
fn undeclared_differences_are_flagged() {
    let with = |name: &str, congestion: &str, kernel: &str| {
        let mut group = group(name, 0, &RATES);
        for record in &mut group.records {
            record.settings.insert("congestion".to_owned(), congestion.to_owned());
            record.hosts.insert("client.kernel_release".to_owned(), kernel.to_owned());
            record.hosts.insert("server.kernel_release".to_owned(), kernel.to_owned());
        }
        group
    };
    let declared = |document: &ComparisonDocument| -> Vec<String> {
        document.differences.iter().filter(|d| d.declared).map(|d| d.what.clone()).collect()
    };
    let both = compared(vec![with("a", "cubic", "6.1"), with("b", "bbr", "6.18")], &[]);
    assert_eq!(declared(&both), ["settings.congestion"]);
    assert!(both.warnings.iter().any(|warning| warning.code == "other-differences"), "{:?}", both.warnings);
    let kernel = compared(vec![with("a", "cubic", "6.1"), with("b", "cubic", "6.18")], &[]);
    assert_eq!(declared(&kernel), ["client.kernel_release", "server.kernel_release"]);
    assert!(!kernel.warnings.iter().any(|warning| warning.code == "other-differences"));
}

#[test]
fn groups_measured_sequentially_are_flagged() {
    let apart = compared(vec![group("a", 0, &RATES), group("b", 30, &RATES)], &[]);
    assert!(apart.warnings.iter().any(|warning| warning.code == "not-interleaved"));
    assert!(apart.metrics[0].autocorrelation.is_some());
}

#[test]
fn noise_compares_the_baseline_with_itself() {
    let mut twice: Vec<f64> = RATES.to_vec();
    twice.extend(RATES);
    let floor = noise(&group("a", 0, &twice).records, &Options::default());
    assert_eq!((floor[0].candidate_runs, floor[0].design), (8, ComparisonDesign::Paired));
    assert_eq!(floor[0].verdict, ComparisonVerdict::NoDetectableDifference);
    let mut controlled = blocks("a", &RATES);
    let seconds = blocks("a", &RATES.map(|rate| rate * 1.001)).records;
    controlled.records.extend(seconds.into_iter().map(|record| Record { control: true, ..record }));
    let floor = noise(&controlled.records, &Options::default());
    assert!(floor[0].ratio.is_some_and(|ratio| (ratio - 1.001).abs() < 1e-9), "{floor:?}");
}

#[test]
fn precision_needs_six_runs() {
    let records = group("a", 0, &RATES).records;
    assert!(precision(&records, Metric::Goodput, 0.95).is_some_and(|half| (0.01..0.05).contains(&half)));
    assert_eq!(precision(&records[..5], Metric::Goodput, 0.95), None);
    assert_eq!(precision(&records, Metric::Cpu, 0.95), None);
}

/// A sweep of `cc` with `others` levels of a second factor in each of `blocks` blocks. The effect of `cc` varies from
/// block to block: effects of two runs of one block have the correlation `rho`.
fn two_factors(seed: u64, blocks: u32, others: u32, rho: f64, effect: f64) -> (Group, Group) {
    let mut random = landspeed_stats::SplitMix64::new(seed);
    let mut normal = move || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
    let (mut a, mut b) = (Group::new("cubic", "a", Vec::new()), Group::new("bbr", "b", Vec::new()));
    for block in 0..blocks {
        let shared = normal() * rho.sqrt();
        for other in 0..others {
            let own = normal() * (1.0 - rho).sqrt();
            let add = |group: &mut Group, goodput: f64| {
                let mut record = run((block * others + other) as usize, goodput);
                record.experiment = Some("a sweep".to_owned());
                record.block = Some(block);
                record.settings.insert("cc".to_owned(), group.name.clone());
                record.settings.insert("buffer".to_owned(), other.to_string());
                group.records.push(record);
            };
            add(&mut a, 1e9 * f64::from(other + 1));
            add(&mut b, 1e9 * f64::from(other + 1) * (0.05 * (shared + own) + effect).exp());
        }
    }
    (a, b)
}

/// Share of comparisons without a true difference that claim one, and of intervals that cover a true effect.
fn false_alarms(blocks: u32, others: u32, rho: f64, experiments: u64) -> (f64, f64) {
    let options = Options { metrics: vec![Metric::StreamBalance], ..Options::default() };
    let verdict = |seed: u64, effect: f64| {
        let (mut a, mut b) = two_factors(seed, blocks, others, rho, effect);
        // One metric, so that Holm's correction does not change the level.
        for record in a.records.iter_mut().chain(&mut b.records) {
            record.figures.set(Metric::StreamBalance, record.figures.get(Metric::Goodput));
        }
        compare(&a, &[b], &options).remove(0)
    };
    let (mut alarms, mut covered) = (0, 0);
    for seed in 0..experiments {
        alarms += u64::from(verdict(seed, 0.0).verdict != ComparisonVerdict::NoDetectableDifference);
        let effect = verdict(seed, 0.03);
        let (low, high) = effect.low.zip(effect.high).expect("an interval");
        covered += u64::from(low <= 0.03_f64.exp() && 0.03_f64.exp() <= high);
    }
    (alarms as f64 / experiments as f64, covered as f64 / experiments as f64)
}

#[test]
fn runs_of_one_block_are_not_replicates() {
    // 400 comparisons: two standard errors of 5 % are 2.2 %.
    for (blocks, others, rho) in [(8, 2, 0.9), (8, 4, 0.9), (10, 4, 0.0), (15, 3, 0.9)] {
        let (alarms, coverage) = false_alarms(blocks, others, rho, 400);
        assert!(alarms <= 0.08 && coverage >= 0.92, "{blocks} blocks of {others}, rho {rho}: {alarms} {coverage}");
    }
    let (a, b) = two_factors(1, 8, 4, 0.9, 0.0);
    let goodput = compare(&a, &[b], &Options::default()).remove(0);
    assert_eq!((goodput.blocks, goodput.baseline_runs, goodput.candidate_runs), (Some(8), 32, 32));
    assert_eq!(goodput.baseline_values.len(), 32);
}

/// Prints the table of docs/comparing-accuracy.md: `cargo test -p landspeed-compare -- --ignored --nocapture false_alarms`.
#[test]
#[ignore = "takes a minute; prints the table of docs/comparing-accuracy.md"]
fn table_of_false_alarms_with_blocks() {
    for blocks in [6, 10, 30] {
        for (others, rho) in [(1, 0.0), (2, 0.0), (2, 0.9), (4, 0.0), (4, 0.9)] {
            let (alarms, coverage) = false_alarms(blocks, others, rho, 2000);
            println!("| {blocks} | {others} | {rho} | {:.1} % | {:.1} % |", alarms * 100.0, coverage * 100.0);
        }
    }
}

#[test]
fn groups_of_two_sweeps_count_blocks_too() {
    let (a, mut b) = two_factors(1, 8, 4, 0.9, 0.0);
    for record in &mut b.records {
        record.experiment = Some("another sweep".to_owned());
    }
    let metric = compare(&a, &[b], &Options::default()).remove(0);
    assert_eq!((metric.design, metric.blocks, metric.baseline_runs), (ComparisonDesign::Unpaired, Some(8), 32));
    // Cells of a lab set with the same seeds.
    let seeded = |name: &str| {
        let (mut group, _) = two_factors(1, 8, 4, 0.9, 0.0);
        for record in &mut group.records {
            (record.seed, record.digest) = (record.block.take().map(u64::from), Some(record.started.clone()));
            record.experiment = None;
        }
        Group { name: name.to_owned(), ..group }
    };
    assert_eq!(compare(&seeded("a"), &[seeded("b")], &Options::default()).remove(0).blocks, Some(8));
}

#[test]
fn a_factor_that_only_one_group_varies_does_not_drop_runs() {
    let (mut a, b) = two_factors(1, 8, 4, 0.0, 0.0);
    a.records.retain(|record| record.settings["buffer"] == "0");
    let metric = compare(&a, &[b], &Options::default()).remove(0);
    assert_eq!((metric.baseline_runs, metric.candidate_runs, metric.blocks), (8, 32, Some(8)));
}

#[test]
fn one_zero_does_not_make_a_change_of_50_percent() {
    let small = RATES.map(|rate| rate * 0.991);
    for (mut a, mut b) in [(blocks("a", &RATES), blocks("b", &small)), (group("a", 0, &RATES), group("b", 0, &small))]
    {
        b.records[3].figures.set(Metric::Goodput, Some(0.0));
        let document = compared(vec![a.clone(), b.clone()], &["goodput worse 50%", "any different 50%"]);
        assert!(document.conditions.iter().all(|condition| !condition.holds), "{:?}", document.conditions);
        let goodput = &document.metrics[0];
        assert!(goodput.low.is_some() && goodput.high.is_some_and(|high| high > 0.5), "{goodput:?}");
        // A change to 0 in every run is one of 100 %.
        for record in &mut b.records {
            record.figures.set(Metric::Goodput, Some(0.0));
        }
        let document = compared(vec![a.clone(), b.clone()], &["goodput worse 50%", "goodput worse 99%"]);
        assert!(document.conditions.iter().all(|condition| condition.holds), "{:?}", document.conditions);
        assert_eq!(document.metrics[0].ratio, Some(0.0));
        // A change from 0 exceeds any percentage.
        for record in &mut a.records {
            record.figures.set(Metric::Goodput, Some(0.0));
        }
        let document = compared(vec![a, group("b", 0, &RATES)], &["goodput better 99%"]);
        assert!(document.conditions[0].holds, "{:?}", document.conditions);
    }
}

#[test]
fn one_run_of_each_has_no_p_value() {
    let metrics = compare(&group("a", 0, &RATES[..1]), &[group("b", 9, &[1e9])], &Options::default());
    assert_eq!((metrics[0].verdict, metrics[0].p_value), (ComparisonVerdict::TooFewRuns, None));
}
