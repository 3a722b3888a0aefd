//! Generates sweeps and comparisons with plausible figures from a seed, for every variant of a figure.

use std::collections::BTreeMap;

use landspeed_model::{
    Better, BuildInfo, COMPARISON_SCHEMA, ComparedDifference, ComparedGroup, ComparedMetric, ComparisonDesign,
    ComparisonDocument, ComparisonVerdict, Metric, SWEEP_SCHEMA, SweepCell, SweepControl, SweepDesign, SweepDocument,
    SweepEngine, SweepFactor, SweepFlow, SweepMetric, SweepRun, SweepStatus,
};
use serde_json::{Value, json};

/// Reproducible pseudo-random numbers (SplitMix64).
struct Random(u64);

impl Random {
    /// Returns a number between -1 and 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// Returns a factor within `share` of 1.
    fn near_one(&mut self, share: f64) -> f64 {
        1.0 + share * (self.next() + self.next()) / 2.0
    }
}

fn metric(metric: Metric) -> SweepMetric {
    SweepMetric {
        name: metric.name().to_owned(),
        field: metric.field().to_owned(),
        unit: metric.unit().to_owned(),
        better: metric.better(),
    }
}

fn factor(name: &str, key: &str, levels: &[Value], unit: &str) -> SweepFactor {
    let numbers: Vec<f64> = levels.iter().filter_map(quantity).collect();
    SweepFactor {
        name: name.to_owned(),
        key: key.to_owned(),
        levels: levels.to_vec(),
        numbers: if numbers.len() == levels.len() { numbers } else { Vec::new() },
        unit: unit.to_owned(),
    }
}

/// Parses `16MiB` and `3` as numbers.
fn quantity(level: &Value) -> Option<f64> {
    if let Some(number) = level.as_f64() {
        return Some(number);
    }
    let text = level.as_str()?;
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let size = match unit {
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "ms" => 1e6,
        "G" => 1e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * size)
}

/// Generates a sweep over every combination, with `runs` runs each; `of` returns the flow of a run from the
/// indices of its levels.
fn sweep(
    name: &str,
    factors: Vec<SweepFactor>,
    metrics: &[Metric],
    runs: u32,
    of: &mut dyn FnMut(&[usize], &mut Random) -> SweepFlow,
) -> SweepDocument {
    let mut draws = Random(17);
    let mut combinations: Vec<Vec<usize>> = vec![Vec::new()];
    for factor in &factors {
        combinations = combinations
            .into_iter()
            .flat_map(|before| (0..factor.levels.len()).map(move |level| [before.as_slice(), &[level]].concat()))
            .collect();
    }
    let cells: Vec<SweepCell> = combinations
        .iter()
        .enumerate()
        .map(|(number, levels)| SweepCell {
            id: format!("{number:064x}"),
            levels: factors.iter().zip(levels).map(|(f, at)| (f.name.clone(), f.levels[*at].clone())).collect(),
            runs: (0..runs)
                .map(|block| SweepRun {
                    id: format!("{:064x}", number * 1000 + block as usize),
                    block,
                    place: number as u32,
                    control: false,
                    seed: u64::from(block) + 1,
                    usable: true,
                    problems: Vec::new(),
                    digest: None,
                    document: format!("{:064x}", number * 1000 + block as usize),
                    started: format!("2026-11-24T{:02}:{:02}:00Z", 8 + block % 12, number % 60),
                    wall_s: 11.0,
                    worker: "local".to_owned(),
                    flows: vec![of(levels, &mut draws)],
                })
                .collect(),
        })
        .collect();
    SweepDocument {
        schema: SWEEP_SCHEMA.to_owned(),
        landspeed: BuildInfo { version: "0.1.0".to_owned(), server_version: None },
        started: "2026-11-24T08:00:00Z".to_owned(),
        command: ["landspeed", "sweep", "plan.toml"].map(str::to_owned).to_vec(),
        name: name.to_owned(),
        description: None,
        reference: None,
        reference_figures: Vec::new(),
        criteria: Vec::new(),
        charts: Vec::new(),
        plan: String::new(),
        id: "5eed".repeat(16),
        design: SweepDesign {
            kind: "full".to_owned(),
            resolution: None,
            aliases: Vec::new(),
            blocks: runs,
            seed: 17,
            until: None,
        },
        engine: SweepEngine { name: "local".to_owned(), jobs: 2, workers: vec!["local".to_owned()], requeued: 0 },
        status: SweepStatus::Complete,
        ended_because: "the plan is done".to_owned(),
        errors: Vec::new(),
        warnings: Vec::new(),
        metrics: metrics.iter().copied().map(metric).collect(),
        control: None,
        flow: None,
        effects: Vec::new(),
        digests: None,
        wall_s: 11.0 * cells.len() as f64 * f64::from(runs),
        overhead_s: 3.0,
        factors,
        cells,
        environments: Vec::new(),
    }
}

fn flow(figures: &[(Metric, f64)]) -> SweepFlow {
    SweepFlow {
        figures: figures.iter().map(|(metric, value)| (metric.field().to_owned(), *value)).collect(),
        ..SweepFlow::default()
    }
}

const BUFFERS: [&str; 7] = ["64KiB", "256KiB", "1MiB", "4MiB", "16MiB", "64MiB", "256MiB"];

/// Buffer × congestion control × RTT, 15 seeds: curves with bands, three panels.
pub fn buffers() -> SweepDocument {
    let factors = vec![
        factor("buffer", "lab.switch.west.queue.limit", &BUFFERS.map(Value::from), "B"),
        factor("congestion", "run.congestion", &["cubic", "bbr", "htcp"].map(Value::from), ""),
        factor("rtt", "lab.link.delay", &["10ms", "44ms", "88ms"].map(Value::from), "ns"),
    ];
    let mut sweep = sweep(
        "Switch buffer, congestion control and RTT",
        factors,
        &[Metric::Goodput, Metric::Retransmits, Metric::RttP50],
        15,
        &mut |levels, draws| {
            let bytes = quantity(&BUFFERS[levels[0]].into()).unwrap_or(1.0);
            let rtt = [10.0, 44.0, 88.0][levels[2]];
            let bdp = 10e9 / 8.0 * rtt / 1e3;
            let keen = [1.0, 6.0, 1.6][levels[1]];
            let share = (bytes * keen / (bytes * keen + bdp * 0.3)).min(0.985);
            let retransmits = (4000.0 * (1.0 - share) * [1.0, 2.4, 1.5][levels[1]]).max(0.0);
            flow(&[
                (Metric::Goodput, 9.9e9 * share * draws.near_one(0.09)),
                (Metric::Retransmits, retransmits * draws.near_one(0.3)),
                (Metric::RttP50, (rtt * 1e6 + bytes.min(bdp) * 0.4) * draws.near_one(0.04)),
            ])
        },
    );
    // As in real sweeps, some runs are unusable, and one cell has no usable run.
    for run in &mut sweep.cells[4].runs {
        (run.usable, run.problems) = (false, vec!["the guest ended before the traffic began".to_owned()]);
    }
    sweep.cells[30].runs[3].usable = false;
    sweep.control = Some(SweepControl {
        cell: sweep.cells[0].id.clone(),
        metrics: vec![compared("A/A", Metric::Goodput, (1.9e8, 1.9e8), (0.996, 1.004), 15)],
    });
    sweep
}

/// Application core × interrupt core: a heat map.
pub fn cores() -> SweepDocument {
    let cores: Vec<Value> = (0..12).map(Value::from).collect();
    let factors = vec![
        factor("application core", "run.server_cpus", &cores, ""),
        factor("IRQ core", "host.server.irq.eth0", &cores, ""),
    ];
    let mut sweep = sweep(
        "Application core and IRQ core of the receiver",
        factors,
        &[Metric::Goodput, Metric::Cpu],
        6,
        &mut |levels, draws| {
            let (app, irq) = (levels[0], levels[1]);
            let node = |core: usize| core / 6;
            let rate = match () {
                () if app == irq => 14e9,
                () if node(app) == node(irq) && node(irq) == 0 => 38.6e9,
                () if node(irq) == 0 => 27e9,
                () if node(app) == node(irq) => 31e9,
                () => 19e9,
            };
            flow(&[(Metric::Goodput, rate * draws.near_one(0.05)), (Metric::Cpu, 6e9 / rate * draws.near_one(0.05))])
        },
    );
    sweep.cells[27].runs.clear();
    sweep
}

/// NIC × kernel × protocol, as in the Land Speed Record's table: a matrix with the share of the limit.
pub fn matrix() -> SweepDocument {
    // Junji Tamatsukuri and others, Linux TCP/IP Performance on Long Fat-pipe Network, 2006: BIC TCP. 0: not measured.
    const RATES: [[[f64; 2]; 3]; 4] = [
        [[7.2, 5.9], [0.0, 0.0], [0.0, 0.0]],
        [[0.0, 0.0], [7.0, 7.0], [0.0, 0.0]],
        [[0.0, 0.0], [5.75, 5.75], [5.43, 1.0]],
        [[9.0, 5.43], [0.0, 0.0], [0.0, 0.0]],
    ];
    let nics = ["T110 opteron", "N210 opteron", "N210 Xeon", "T310 Xeon"];
    let factors = vec![
        factor("NIC", "host.nic", &nics.map(Value::from), ""),
        factor("kernel", "kernel", &["2.6.12", "2.6.17", "2.6.18-rc5"].map(Value::from), ""),
        factor("protocol", "run.family", &["IPv4", "IPv6"].map(Value::from), ""),
    ];
    let mut sweep =
        sweep("TCP/IP performance matrix", factors, &[Metric::Goodput, Metric::Record], 1, &mut |levels, _| {
            let rate = RATES[levels[0]][levels[1]][levels[2]] * 1e9;
            flow(&[(Metric::Goodput, rate), (Metric::Record, rate * 30e6)])
        });
    sweep.cells.retain(|cell| cell.runs.iter().all(|run| run.flows[0].figures["goodput_bps"] > 0.0));
    sweep
}

/// Streams × pacing with the goodput of each stream, for the balance figure.
pub fn streams() -> SweepDocument {
    let counts = [1, 2, 4, 8, 16];
    let factors = vec![
        factor("streams", "run.streams", &counts.map(Value::from), ""),
        factor("pacing", "run.pace", &["off", "2.4G"].map(Value::from), ""),
    ];
    sweep(
        "Streams and pacing, 10 Gb/s at 88 ms",
        factors,
        &[Metric::Goodput, Metric::StreamBalance, Metric::Retransmits],
        8,
        &mut |levels, draws| {
            let count = counts[levels[0]];
            let paced = levels[1] == 1;
            let total = if paced { (2.4e9 * f64::from(count)).min(9.4e9) } else { 9.1e9 * draws.near_one(0.12) };
            let mut streams: Vec<f64> =
                (0..count).map(|_| draws.near_one(if paced { 0.04 } else { 0.8 }).max(0.05)).collect();
            let sum: f64 = streams.iter().sum();
            streams.iter_mut().for_each(|rate| *rate *= total / sum);
            let squares: f64 = streams.iter().map(|rate| rate * rate).sum();
            let mut figures = vec![
                (Metric::Goodput, total),
                (Metric::Retransmits, if paced { 0.0 } else { 900.0 * draws.near_one(0.6) }),
            ];
            if count > 1 {
                figures.push((Metric::StreamBalance, total * total / (f64::from(count) * squares)));
            }
            SweepFlow { streams_bps: streams, ..flow(&figures) }
        },
    )
}

/// A factor with named levels, few runs, two flows.
pub fn names() -> SweepDocument {
    let factors =
        vec![factor("qdisc", "host.client.eth0:qdisc", &["fq", "fq_codel", "pfifo_fast"].map(Value::from), "")];
    let mut sweep = sweep("Queueing discipline", factors, &[Metric::Goodput], 3, &mut |levels, draws| {
        flow(&[(Metric::Goodput, [9.4e9, 9.1e9, 7.0e9][levels[0]] * draws.near_one(0.02))])
    });
    sweep.status = SweepStatus::Partial;
    sweep.ended_because = "Ctrl-C".into();
    for run in sweep.cells.iter_mut().flat_map(|cell| &mut cell.runs) {
        let mut other = run.flows[0].clone();
        run.flows[0].name = Some("a to b".to_owned());
        other.name = Some("a to c".to_owned());
        other.figures.values_mut().for_each(|value| *value *= 0.4);
        run.flows.push(other);
    }
    sweep
}

/// 10,000 cells: 100 × 100.
pub fn large() -> SweepDocument {
    let steps: Vec<Value> = (1..=100).map(Value::from).collect();
    let factors = vec![factor("buffer", "run.buffer", &steps, ""), factor("pace", "run.pace_percent", &steps, "")];
    sweep(
        "10,000 cells",
        factors,
        &[Metric::Goodput, Metric::Retransmits, Metric::RttP50],
        3,
        &mut |levels, draws| {
            let (a, b) = (levels[0] as f64 / 100.0, levels[1] as f64 / 100.0);
            let rate = 1e10 * (a * 3.0).min(1.0) * (b * 1.4).min(1.0) * draws.near_one(0.05);
            flow(&[
                (Metric::Goodput, rate.max(1e6)),
                (Metric::Retransmits, 500.0 * (b - a).max(0.0) * draws.near_one(0.3)),
                (Metric::RttP50, (20e6 + 30e6 * a) * draws.near_one(0.05)),
            ])
        },
    )
}

fn compared(candidate: &str, of: Metric, medians: (f64, f64), (low, high): (f64, f64), runs: u32) -> ComparedMetric {
    let mut draws = Random(medians.0.to_bits() ^ medians.1.to_bits());
    let mut around = |median: f64| (0..runs).map(|_| median * draws.near_one(0.05)).collect::<Vec<f64>>();
    let better = of.better();
    let verdict = match () {
        () if runs < 6 => ComparisonVerdict::TooFewRuns,
        () if low <= 1.0 && high >= 1.0 => ComparisonVerdict::NoDetectableDifference,
        () if (low > 1.0) == (better == Better::Higher) => ComparisonVerdict::Better,
        () => ComparisonVerdict::Worse,
    };
    let known = runs >= 6;
    ComparedMetric {
        candidate: candidate.to_owned(),
        name: of.name().to_owned(),
        unit: of.unit().to_owned(),
        better,
        flow: None,
        baseline_runs: runs,
        candidate_runs: runs,
        blocks: None,
        baseline_median: Some(medians.0),
        candidate_median: Some(medians.1),
        ratio: (medians.0 > 0.0).then(|| medians.1 / medians.0),
        low: known.then_some(low),
        high: known.then_some(high),
        level: 0.9875,
        verdict,
        design: ComparisonDesign::Paired,
        p_value: None,
        adjusted_p_value: None,
        greater: None,
        runs_needed: None,
        autocorrelation: None,
        minimum_detectable: known.then_some(0.011),
        baseline_values: around(medians.0),
        candidate_values: around(medians.1),
    }
}

/// Comparison of two kernels: one metric better, one worse, one equal.
pub fn comparison() -> ComparisonDocument {
    let group = |name: &str| ComparedGroup {
        name: name.to_owned(),
        source: format!("{name}/"),
        runs: 15,
        left_out: Vec::new(),
        from: "2026-11-24T08:00:00Z".to_owned(),
        to: "2026-11-24T10:00:00Z".to_owned(),
    };
    let values = |a: &str, b: &str| {
        BTreeMap::from([("6.12".to_owned(), vec![a.to_owned()]), ("6.18".to_owned(), vec![b.to_owned()])])
    };
    let difference = |what: &str, declared: bool, a: &str, b: &str| ComparedDifference {
        what: what.to_owned(),
        declared,
        values: values(a, b),
    };
    let document = json!({
        "schema": COMPARISON_SCHEMA,
        "landspeed": BuildInfo { version: "0.1.0".to_owned(), server_version: None },
        "created": "2026-11-24T11:00:00Z",
        "command": ["landspeed", "compare", "6.12", "6.18"],
        "groups": [group("6.12"), group("6.18")],
        "design": ComparisonDesign::Paired,
        "level": 0.95,
        "seed": 1,
        "metrics": [
            compared("6.18", Metric::Goodput, (9.02e9, 9.31e9), (1.021, 1.043), 15),
            compared("6.18", Metric::Retransmits, (310.0, 402.0), (1.12, 1.47), 15),
            compared("6.18", Metric::RttP50, (88.2e6, 88.3e6), (0.997, 1.004), 15),
            compared("6.18", Metric::Cpu, (0.21, 0.19), (0.84, 0.97), 15),
            compared("6.18", Metric::LatencyP99, (1.2e6, 1.3e6), (0.9, 1.2), 3),
        ],
        "noise": [compared("6.12", Metric::Goodput, (9.02e9, 9.03e9), (0.994, 1.006), 15)],
        "differences": [
            difference("kernel", true, "6.12.9", "6.18.1"),
            difference("client.nic.driver_version", false, "5.8", "5.9"),
        ],
        "warnings": [],
    });
    serde_json::from_value(document).expect("a comparison of this version")
}
