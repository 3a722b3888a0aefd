use std::collections::BTreeMap;

use landspeed_model::{
    Better, ComparedFigure, Drawing, FigureBasis, FigureChart, FigureGrid, FlowSeries, LabChart, LabChartAxis,
    LabDocument, LabFigure, ReferenceUnit, SweepCell, SweepDesign, SweepDocument, SweepEngine, SweepFactor,
    SweepFlow, SweepMetric, SweepRun, SweepStatus,
};
use serde_json::{Value, json};

use super::*;

fn factor(name: &str, levels: &[Value], numbers: &[f64]) -> SweepFactor {
    SweepFactor {
        name: name.to_owned(),
        key: format!("run.{name}"),
        levels: levels.to_vec(),
        numbers: numbers.to_vec(),
        unit: String::new(),
    }
}

fn run(block: u32, bps: f64) -> SweepRun {
    SweepRun {
        id: String::new(),
        block,
        place: 0,
        control: false,
        seed: 1,
        usable: true,
        problems: Vec::new(),
        digest: None,
        document: String::new(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        wall_s: 1.0,
        worker: String::new(),
        flows: vec![SweepFlow { figures: BTreeMap::from([("goodput_bps".to_owned(), bps)]), ..SweepFlow::default() }],
    }
}

fn cell(levels: &[(&str, Value)], rates: &[f64]) -> SweepCell {
    SweepCell {
        id: String::new(),
        levels: levels.iter().map(|(name, level)| ((*name).to_owned(), level.clone())).collect(),
        runs: rates.iter().enumerate().map(|(block, bps)| run(block as u32, *bps)).collect(),
    }
}

fn sweep(factors: Vec<SweepFactor>, cells: Vec<SweepCell>) -> SweepDocument {
    SweepDocument {
        schema: landspeed_model::SWEEP_SCHEMA.to_owned(),
        landspeed: BuildInfo::default(),
        started: String::new(),
        command: Vec::new(),
        name: "a sweep".to_owned(),
        description: None,
        reference: None,
        reference_figures: Vec::new(),
        criteria: Vec::new(),
        charts: Vec::new(),
        plan: String::new(),
        id: String::new(),
        factors,
        design: SweepDesign {
            kind: "full".to_owned(),
            resolution: None,
            aliases: Vec::new(),
            blocks: 1,
            seed: 1,
            until: None,
        },
        engine: SweepEngine { name: "local".to_owned(), jobs: 1, workers: Vec::new(), requeued: 0 },
        status: SweepStatus::Complete,
        ended_because: "the plan is done".to_owned(),
        errors: Vec::new(),
        environments: Vec::new(),
        warnings: Vec::new(),
        metrics: vec![SweepMetric {
            name: "goodput".to_owned(),
            field: "goodput_bps".to_owned(),
            unit: "bit/s".to_owned(),
            better: Better::Higher,
        }],
        cells,
        control: None,
        flow: None,
        effects: Vec::new(),
        digests: None,
        wall_s: 1.0,
        overhead_s: 0.0,
    }
}

fn page(sweep: SweepDocument, limits: &[Limit]) -> FiguresDocument {
    figures(&[Source { name: "s".to_owned(), document: Document::Sweep(Box::new(sweep)) }], limits)
}

fn chart(page: &FiguresDocument) -> &FigureChart {
    match &page.figures[0].drawing {
        Drawing::Chart(chart) => chart,
        other => panic!("not a chart: {other:?}"),
    }
}

fn grid(page: &FiguresDocument) -> &FigureGrid {
    match &page.figures[0].drawing {
        Drawing::Grid(grid) => grid,
        other => panic!("not a grid: {other:?}"),
    }
}

/// Cells of a lab scenario as an earlier version wrote them.
fn lab() -> SweepDocument {
    match Document::read(include_bytes!("../../../../fixtures/reports/labset.json")) {
        Ok(Document::Sweep(sweep)) => *sweep,
        other => panic!("not a sweep: {other:?}"),
    }
}

const SIX: [f64; 6] = [1e9, 2e9, 3e9, 4e9, 5e9, 6e9];

#[test]
fn a_curve_is_the_median_with_its_interval_and_every_run() {
    let buffers = [json!(1), json!(2)];
    let cells = vec![cell(&[("buffer", json!(2))], &SIX.map(|v| v + 4e9)), cell(&[("buffer", json!(1))], &SIX)];
    let page = page(sweep(vec![factor("buffer", &buffers, &[1.0, 2.0])], cells), &[]);
    let line = &chart(&page).panels[0].lines[0];
    assert_eq!(line.x, [1.0, 2.0]);
    assert_eq!(line.y, [Some(3.5e9), Some(7.5e9)]);
    let interval = landspeed_stats::median_interval(&SIX, 0.95).expect("six values");
    assert_eq!((line.low[0], line.high[0]), (Some(interval.low), Some(interval.high)));
    assert_eq!((line.runs.as_slice(), line.dots.len(), line.joined), (&[6, 6][..], 12, true));
    assert!(page.figures[0].caption.contains("n = 6"), "{}", page.figures[0].caption);
    let answer = "Goodput: best median 7.50 Gb/s (buffer 2), worst 3.50 Gb/s (buffer 1). Their 95 % intervals \
                  overlap: no difference is shown.";
    assert_eq!(page.answer, answer);
}

#[test]
fn a_cell_without_usable_runs_is_a_gap_not_zero() {
    let mut broken = cell(&[("buffer", json!(2))], &[5e9]);
    broken.runs[0].usable = false;
    broken.runs[0].problems = vec!["the server vanished".to_owned()];
    let cells = vec![cell(&[("buffer", json!(1))], &[1e9]), broken];
    let page = page(sweep(vec![factor("buffer", &[json!(1), json!(2)], &[1.0, 2.0])], cells), &[]);
    let line = &chart(&page).panels[0].lines[0];
    assert_eq!((line.y.as_slice(), line.runs.as_slice()), (&[Some(1e9), None][..], &[1, 0][..]));
    assert!(page.figures[0].caption.contains("1 cell without a value"), "{}", page.figures[0].caption);
    assert!(page.notes[0].serious && page.notes[0].text.contains("the server vanished (1)"), "{:?}", page.notes);
}

#[test]
fn second_runs_of_the_control_are_not_counted() {
    let mut again = cell(&[("buffer", json!(1))], &[1e9, 9e9]);
    again.runs[1].control = true;
    let cells = vec![again, cell(&[("buffer", json!(2))], &[2e9])];
    let page = page(sweep(vec![factor("buffer", &[json!(1), json!(2)], &[1.0, 2.0])], cells), &[]);
    assert_eq!(chart(&page).panels[0].lines[0].y, [Some(1e9), Some(2e9)]);
}

#[test]
fn two_factors_of_cores_are_a_heat_map() {
    let cores = [json!(0), json!(1)];
    let mut cells = Vec::new();
    for app in 0..2 {
        for irq in 0..2 {
            cells.push(cell(&[("app core", json!(app)), ("irq", json!(irq))], &[1e9 * f64::from(1 + app * 2 + irq)]));
        }
    }
    cells[2].runs.clear();
    let factors = vec![factor("app core", &cores, &[0.0, 1.0]), factor("irq", &cores, &[0.0, 1.0])];
    let page = page(sweep(factors, cells), &[]);
    let grid = grid(&page);
    assert_eq!((grid.rows.title.as_str(), grid.columns.title.as_str()), ("app core", "irq"));
    assert_eq!(grid.cells, [Some(1e9), Some(2e9), None, Some(4e9)]);
    assert_eq!(grid.missing, [landspeed_model::FigureGap { cell: 2, why: "no usable run".to_owned() }]);
}

#[test]
fn named_factors_are_a_matrix_with_limit_shares() {
    let kernels = [json!("6.12"), json!("6.18")];
    let nics = [json!("T110"), json!("T310")];
    let rates = [("6.12", "T110", 4e9), ("6.12", "T310", 9e9), ("6.18", "T310", 5e9)];
    let cells = rates
        .iter()
        .map(|(kernel, nic, bps)| cell(&[("kernel", json!(kernel)), ("nic", json!(nic))], &[*bps]))
        .collect();
    let limits = [
        Limit { level: None, rate: "10G".parse().unwrap() },
        Limit { level: Some(("nic".to_owned(), "T110".to_owned())), rate: "8G".parse().unwrap() },
    ];
    let page = page(sweep(vec![factor("kernel", &kernels, &[]), factor("nic", &nics, &[])], cells), &limits);
    let grid = grid(&page);
    assert_eq!(grid.cells, [Some(4e9), Some(9e9), None, Some(5e9)]);
    assert_eq!(grid.shares, [Some(0.5), Some(0.9), None, Some(0.5)]);
    assert!(grid.missing.is_empty(), "what is not planned is not missing");
    assert!(page.figures[0].caption.contains("1 cell not part of the design"), "{}", page.figures[0].caption);
}

#[test]
fn a_second_factor_is_a_line_and_a_third_a_panel() {
    let mut cells = Vec::new();
    for (buffer, cc, rtt) in [(1, "bbr", "a"), (1, "cubic", "a"), (2, "bbr", "b"), (2, "cubic", "b")] {
        cells.push(cell(&[("buffer", json!(buffer)), ("cc", json!(cc)), ("rtt", json!(rtt))], &[1e9]));
    }
    let factors = vec![
        factor("buffer", &[json!(1), json!(2)], &[1.0, 2.0]),
        factor("cc", &[json!("bbr"), json!("cubic")], &[]),
        factor("rtt", &[json!("a"), json!("b")], &[]),
    ];
    let page = page(sweep(factors, cells), &[]);
    let chart = chart(&page);
    assert_eq!(chart.series, ["cc bbr", "cc cubic"]);
    let titles: Vec<&str> = chart.panels.iter().map(|panel| panel.title.as_str()).collect();
    assert_eq!(titles, ["rtt a", "rtt b"]);
}

#[test]
fn streams_of_each_run_and_jains_index_are_shown() {
    let mut even = cell(&[("pace", json!("on"))], &[4e9]);
    even.runs[0].flows[0].streams_bps = vec![2e9, 2e9];
    let mut uneven = cell(&[("pace", json!("off"))], &[4e9]);
    uneven.runs[0].flows[0].streams_bps = vec![4e9, 0.0];
    let page = page(sweep(vec![factor("pace", &[json!("on"), json!("off")], &[])], vec![even, uneven]), &[]);
    let streams = page.figures.iter().find(|figure| figure.id.contains("streams")).expect("a figure of streams");
    assert!(streams.caption.contains("Jain's index of a run: 0.500 to 1 "), "{}", streams.caption);
    let Drawing::Chart(chart) = &streams.drawing else { panic!("not a chart") };
    assert_eq!(chart.x.labels, ["pace on", "pace off"]);
    assert_eq!(chart.panels[0].lines[0].dots.len(), 4);
}

#[test]
fn an_experiment_without_runs_has_no_figures() {
    let page = page(sweep(vec![factor("buffer", &[json!(1)], &[1.0])], Vec::new()), &[]);
    assert_eq!(page.answer, "No run can be used.");
    assert!(page.figures.is_empty());
}

#[test]
fn names_of_figures_are_safe_file_names_and_unique() {
    assert_eq!(slug("../../Etc <b>x"), "etc-b-x");
    assert_eq!(slug("…"), "figure");
    let figure = |id: &str| Figure {
        id: id.to_owned(),
        title: String::new(),
        caption: String::new(),
        drawing: Drawing::Grid(FigureGrid::default()),
    };
    let mut all = [figure("a/b"), figure("a b"), figure("a-b")];
    make_ids_unique(&mut all);
    let ids: Vec<&str> = all.iter().map(|figure| figure.id.as_str()).collect();
    assert_eq!(ids, ["a-b", "a-b-2", "a-b-3"]);
}

#[test]
fn figures_that_a_scenario_asks_for_come_first() {
    let ids = |sweep| page(sweep, &[]).figures.into_iter().map(|figure| figure.id).collect::<Vec<_>>();
    assert_eq!(ids(lab())[..2], ["goodput-tcp-curves", "rtt-p50-tcp-curves"]);
    let mut drops = lab();
    drops.charts = vec![LabChart { figure: LabFigure::Loss, flow: None, over: None }];
    let ids = ids(drops);
    assert_eq!(ids[0], "drops-tcp-curves");
    assert_eq!(ids.iter().filter(|id| id.starts_with("drops")).count(), 1, "drops are of all flows");
}

#[test]
fn repeats_of_one_cell_have_a_figure() {
    let page = page(sweep(Vec::new(), vec![cell(&[], &SIX)]), &[]);
    assert_eq!((chart(&page).panels[0].lines[0].dots.len(), page.figures[0].title.as_str()), (6, "Goodput"));
}

#[test]
fn reported_values_are_marked_at_their_level() {
    let mut sweep = lab();
    sweep.reference_figures = vec![ComparedFigure {
        name: "one stream".to_owned(),
        unit: ReferenceUnit::Gigabits,
        basis: FigureBasis::Reported,
        figure: LabFigure::Goodput,
        flow: Some("tcp".to_owned()),
        cell: BTreeMap::from([("buffer".to_owned(), json!("100KB"))]),
        relative: false,
        reported: 0.08,
        measured: Some(0.1),
        min: Some(0.09),
        max: Some(0.1),
        runs: 2,
        deviation: Some(0.25),
        source: "a deck".to_owned(),
        reason: None,
    }];
    let page = page(sweep, &[]);
    let mark = &chart(&page).marks[0];
    assert_eq!((mark.label.as_str(), mark.x, mark.y), ("one stream: 0.08 Gb/s", Some(100e3), 80e6));
    let reported = page.figures.iter().find(|figure| figure.id == "reported").expect("a figure");
    let Drawing::Rows(rows) = &reported.drawing else { panic!("not rows") };
    assert_eq!(rows.rows[0].text, "reported 0.08 Gb/s, measured 0.1 Gb/s (0.09..0.1) (+25 %)");
    assert_eq!((rows.rows[0].detail.as_str(), rows.rows[0].to), ("no known reason; a deck", Some(1.25)));
}

#[test]
fn a_chart_over_time_has_a_panel_for_each_cell() {
    let mut sweep = lab();
    let over = Some(LabChartAxis::Time);
    sweep.charts = vec![LabChart { figure: LabFigure::Goodput, flow: Some("tcp".to_owned()), over }];
    for cell in &mut sweep.cells {
        let series = FlowSeries { interval_ns: 1_000_000, goodput_bps: vec![0, 5, 7], ..FlowSeries::default() };
        cell.runs[0].flows[0].series = Some(series);
    }
    let page = page(sweep, &[]);
    let panels = &chart(&page).panels;
    assert_eq!((panels.len(), panels[1].title.as_str()), (6, "buffer 20KB, congestion bbr"));
    assert_eq!((panels[1].lines[0].x[2], panels[1].lines[0].y[2]), (2_500_000.0, Some(7.0)));
    assert_eq!(page.figures[0].id, "goodput-tcp-time");
}

#[test]
fn more_than_eight_runs_are_small_multiples() {
    let run: LabDocument =
        serde_json::from_str(include_str!("../../../../fixtures/reports/lab.json")).expect("a recorded document");
    let run = run.flows[0].run.clone().expect("a run");
    let source = |at: usize| Source { name: format!("r{at}"), document: Document::Run(Box::new(run.clone())) };
    let drawn = |count: usize| figures(&(0..count).map(source).collect::<Vec<_>>(), &[]);
    let (overlaid, apart) = (drawn(8), drawn(9));
    let (overlaid, apart) = (chart(&overlaid), chart(&apart));
    assert_eq!((overlaid.panels.len(), overlaid.panels[0].lines.len(), overlaid.series.len()), (1, 8, 8));
    assert_eq!((apart.panels.len(), apart.panels[8].lines.len(), apart.panels[8].title.as_str()), (9, 1, "r8"));
    assert!(apart.panels.iter().all(|panel| panel.lines[0].series < apart.series.len()));
}
