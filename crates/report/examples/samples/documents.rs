//! Sample documents for every variant of the report: recorded ones (`fixtures/reports`, mostly of the lab, so
//! that anyone can reproduce them), and modified ones.

use std::collections::BTreeSet;

use landspeed_model::{
    AuditDocument, BuildInfo, ComparedFigure, Difference, ErrorEntry, FigureBasis, FlowSeries, LabChart,
    LabChartAxis, LabDocument, LabFigure, LabStatus, ReferenceUnit, RunDocument, Status, SweepDocument,
    TRACE_COMPARISON_SCHEMA, TRACE_SCHEMA, TraceComparison, TraceDifference, TraceDocument, TraceFigure,
    WatchDocument,
};
use landspeed_results::Document;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[path = "experiments.rs"]
mod experiments;

/// Name and constructor of a document.
pub type Entry<T> = (&'static str, fn() -> T);

pub const RUNS: &[Entry<RunDocument>] = &[
    ("bulk", || flow(0)),
    ("bidir", || flow(1)),
    ("udp", || flow(2)),
    ("rr", || flow(3)),
    ("real", || read(include_str!("../../../diagnose/fixtures/real/overflow-cubic.json"))),
    ("many", many),
    ("failed", failed),
    ("partial", || RunDocument { status: Status::Partial, ..flow(0) }),
    ("hostile", || hostile(&flow(1), &[])),
];

/// Lab run documents.
pub const LABS: &[Entry<LabDocument>] = &[
    ("lab", lab),
    ("lab-invalid", invalid),
    ("lab-failed", || LabDocument {
        status: LabStatus::Failed,
        errors: vec![error()],
        flows: Vec::new(),
        queues: Vec::new(),
        links: Vec::new(),
        digest: None,
        ..lab()
    }),
    // References to a node must name an existing one.
    ("lab-hostile", || {
        hostile(&lab(), &["/topology", "/queues/*/name", "/links/*/name", "/flows/*/from", "/flows/*/to"])
    }),
];

pub const AUDITS: &[Entry<AuditDocument>] =
    &[("audit", audit), ("audit-peer", both_ends), ("audit-hostile", || hostile(&both_ends(), &[]))];

pub const TRACES: &[Entry<TraceDocument>] = &[
    ("trace", whole),
    ("trace-thinned", thinned),
    ("trace-hostile", || hostile(&TraceDocument { graphs: None, ..thinned() }, &[])),
];

/// Comparisons of two traces.
pub const TRACE_COMPARISONS: &[Entry<TraceComparison>] = &[("trace-comparison", comparison)];

pub const WATCHES: &[Entry<WatchDocument>] = &[
    ("watch", watch),
    ("watch-empty", || WatchDocument { flows: Vec::new(), ..watch() }),
    ("watch-hostile", || hostile(&watch(), &[])),
];

/// Documents that are rendered as figures.
pub const FIGURES: &[Entry<Document>] = &[
    ("sweep", || Document::Sweep(Box::new(experiments::buffers()))),
    ("sweep-cores", || Document::Sweep(Box::new(experiments::cores()))),
    ("sweep-matrix", || Document::Sweep(Box::new(experiments::matrix()))),
    ("sweep-streams", || Document::Sweep(Box::new(experiments::streams()))),
    ("sweep-names", || Document::Sweep(Box::new(experiments::names()))),
    ("sweep-large", || Document::Sweep(Box::new(experiments::large()))),
    ("sweep-lab", || Document::Sweep(Box::new(cells()))),
    ("sweep-reported", || Document::Sweep(Box::new(with_figures()))),
    ("sweep-hostile", || {
        Document::Sweep(Box::new(hostile(&experiments::streams(), &["/factors/*/name", "/metrics"])))
    }),
    ("comparison", || Document::Comparison(Box::new(experiments::comparison()))),
    ("comparison-hostile", || Document::Comparison(Box::new(hostile(&experiments::comparison(), &[])))),
];

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).expect("a document of this version")
}

fn lab() -> LabDocument {
    read(include_str!("../../../../fixtures/reports/lab.json"))
}

fn flow(number: usize) -> RunDocument {
    lab().flows.swap_remove(number).run.expect("a run")
}

/// A run with 60 streams.
fn many() -> RunDocument {
    let mut run = flow(0);
    let streams = run.streams.clone();
    run.streams =
        (0..60).map(|id| landspeed_model::Stream { id, ..streams[id as usize % streams.len()].clone() }).collect();
    run
}

fn error() -> ErrorEntry {
    ErrorEntry {
        code: "connection-refused".to_owned(),
        message: "cannot connect to 192.0.2.1:5210: connection refused".to_owned(),
        advice: Some("Start `landspeed serve` on that host.".to_owned()),
    }
}

fn failed() -> RunDocument {
    RunDocument {
        status: Status::Failed,
        errors: vec![error()],
        streams: Vec::new(),
        phases: Vec::new(),
        latency: Vec::new(),
        ..flow(3)
    }
}

fn invalid() -> LabDocument {
    let mut lab = lab();
    lab.status = LabStatus::Invalid;
    let check = &mut lab.checks[0];
    (check.passed, check.detail) = (false, "3 packets vanished between `west` and `east`".to_owned());
    lab
}

/// Cells of a scenario as an earlier version wrote them; one run failed.
fn cells() -> SweepDocument {
    let old = Document::read(include_bytes!("../../../../fixtures/reports/labset.json"));
    let Ok(Document::Sweep(mut sweep)) = old else { panic!("a sweep") };
    let run = &mut sweep.cells[0].runs[1];
    (run.usable, run.problems) = (false, vec!["the guest ended before the traffic began".to_owned()]);
    *sweep
}

fn audit() -> AuditDocument {
    read(include_str!("../../../../fixtures/reports/audit.json"))
}

fn both_ends() -> AuditDocument {
    let peer = AuditDocument { findings: Vec::new(), hostname: "dtn2.example.net".into(), ..audit() };
    let mtu = Difference {
        what: "MTU".into(),
        here: "1500 bytes".into(),
        there: "9000 bytes".into(),
        why: "the smaller one bounds every segment".into(),
    };
    AuditDocument { peer: Some(Box::new(peer)), differences: vec![mtu], ..audit() }
}

/// Two taps of a lossy path, with every packet.
fn whole() -> TraceDocument {
    read(include_str!("../../../../fixtures/traces/whole.json"))
}

/// One of the taps, with a sample of its packets.
fn thinned() -> TraceDocument {
    let old: TraceDocument = read(include_str!("../../../../fixtures/traces/thinned.json"));
    TraceDocument { schema: TRACE_SCHEMA.to_owned(), ..old }
}

/// Both taps, compared as if they were two runs.
fn comparison() -> TraceComparison {
    let figure = |name: &str, unit: &str, a, b, difference: Option<(f64, f64)>| TraceFigure {
        name: name.to_owned(),
        unit: unit.to_owned(),
        a,
        b,
        difference: difference.map(|(low, high)| TraceDifference {
            low,
            high,
            level: 0.95,
            changed: low > 0.0 || high < 0.0,
            blocks: [24, 20],
            block_ns: [160_000_000; 2],
        }),
    };
    TraceComparison {
        schema: TRACE_COMPARISON_SCHEMA.to_owned(),
        landspeed: BuildInfo { version: "0.1.0".to_owned(), server_version: None },
        command: ["landspeed", "trace", "a.pcap", "--against", "b.pcap"].map(str::to_owned).to_vec(),
        a: whole(),
        b: thinned(),
        figures: vec![
            figure("goodput", "bps", Some(2.5e8), Some(2.4e8), Some((-3.1e6, 1.4e6))),
            figure("retransmits per packet", "ratio", Some(0.0), Some(3.5e-4), Some((2.2e-4, 4.9e-4))),
            figure("RTT, median", "ns", Some(2e7), None, None),
        ],
    }
}

/// Three transfers: a slow application, a slow reader, a lossy path.
fn watch() -> WatchDocument {
    read(include_str!("../../../../fixtures/documents/watch.json"))
}

/// Appends markup to every string of the document that may have any value, except in the paths `kept`
/// (`/flows/*/from`).
fn hostile<T: Serialize + DeserializeOwned>(document: &T, kept: &[&str]) -> T {
    const MARKUP: &str = "</script><script>document.title='owned'</script><!--<img src=x onerror=alert(1)>";
    let mut value = serde_json::to_value(document).expect("a document");
    let mut places = BTreeSet::new();
    visit(&mut value, "", &mut |place, _| {
        places.insert(place.to_owned());
    });
    places.retain(|place| !place.ends_with("/schema") && !kept.iter().any(|kept| place.starts_with(kept)));
    for place in places {
        visit(&mut value, "", &mut |here, text| {
            if here == place {
                text.push_str(MARKUP);
            }
        });
        if T::deserialize(&value).is_err() {
            visit(&mut value, "", &mut |here, text| {
                if here == place {
                    text.truncate(text.len() - MARKUP.len());
                }
            });
        }
    }
    serde_json::from_value(value).expect("every change was tried")
}

/// Calls `found` for every string with its path, in which `*` is any element of a list.
fn visit(value: &mut Value, place: &str, found: &mut impl FnMut(&str, &mut String)) {
    match value {
        Value::String(text) => found(place, text),
        Value::Array(all) => {
            let place = format!("{place}/*");
            all.iter_mut().for_each(|one| visit(one, &place, found));
        }
        Value::Object(object) => {
            for (name, one) in object.iter_mut().filter(|(_, one)| !(one.is_number() || one.is_null())) {
                visit(one, &format!("{place}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// Cells with reference figures, and a chart over time: one figure low, one high, one exact, one not measured.
fn with_figures() -> SweepDocument {
    let mut sweep = cells();
    let flow = "tcp".to_owned();
    let figure = |name: &str, unit, reported: f64, measured: Option<f64>, reason: Option<&str>| ComparedFigure {
        name: name.to_owned(),
        unit,
        basis: FigureBasis::Reported,
        figure: LabFigure::Goodput,
        flow: Some(flow.clone()),
        cell: sweep.cells[0].levels.clone(),
        relative: false,
        reported,
        measured,
        min: measured.map(|value| value * 0.9),
        max: measured.map(|value| value * 1.2),
        runs: 3,
        deviation: measured.and_then(|value| landspeed_model::deviation(reported, value)),
        source: "a deck: Test Results".to_owned(),
        reason: reason.map(str::to_owned),
    };
    sweep.reference_figures = vec![
        figure("sample result, both streams", ReferenceUnit::Gigabits, 2.83, Some(2.07), Some("another kernel")),
        figure("sample result, retransmits", ReferenceUnit::Segments, 79.0, Some(160.0), None),
        figure("balance", ReferenceUnit::Ratio, 1.0, Some(1.0), None),
        figure("no retransmits", ReferenceUnit::Segments, 0.0, Some(4.0), None),
        figure("largest buffer", ReferenceUnit::Gigabits, 7.9, None, None),
    ];
    sweep.charts.push(LabChart {
        figure: LabFigure::Goodput,
        flow: Some(flow.clone()),
        over: Some(LabChartAxis::Time),
    });
    for (i, cell) in (0_u64..).zip(&mut sweep.cells) {
        let goodput_bps = (0..2000).map(|t| (t % (100 + 50 * i)) * 20_000_000).collect();
        cell.runs[0].flows[0].series =
            Some(FlowSeries { interval_ns: 10_000_000, goodput_bps, ..FlowSeries::default() });
    }
    sweep
}
