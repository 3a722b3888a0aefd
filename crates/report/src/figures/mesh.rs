//! Figures of a mesh: a matrix of hosts for each figure of each test.

use std::collections::BTreeMap;

use landspeed_model::{
    Better, Drawing, Figure, FigureAxis, FigureGap, FigureGrid, FigureNote, FigureScale, FiguresDocument, MeshCell,
    MeshDocument, MeshResult, MeshTest, Protocol,
};

use super::slug::slug;

/// Maximum number of pairs that are listed with a verdict.
const MAX_LISTED: usize = 10;

/// A figure of a cell.
struct Measure {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    better: Better,
    of: fn(&MeshCell) -> Option<f64>,
}

/// Returns the page of a mesh.
pub(crate) fn figures(document: &MeshDocument) -> FiguresDocument {
    let measured = document.cells.iter().filter(|cell| cell.is_measured()).count();
    let mut notes: Vec<FigureNote> =
        document.errors.iter().map(|error| FigureNote { serious: true, text: error.message.clone() }).collect();
    notes.extend(document.warnings.iter().map(|warning| FigureNote { serious: true, text: warning.message.clone() }));
    FiguresDocument {
        about: "mesh".to_owned(),
        title: document.name.clone(),
        answer: format!("{measured} of {} pairs measured in their latest test.", document.cells.len()),
        started: document.written.clone(),
        facts: facts(document),
        notes,
        figures: document.tests.iter().flat_map(|test| of_test(document, test)).collect(),
        ..FiguresDocument::default()
    }
}

/// Hosts, and the pairs of each verdict.
fn facts(document: &MeshDocument) -> Vec<[String; 2]> {
    let mut facts = vec![["hosts".to_owned(), document.hosts.len().to_string()]];
    let mut verdicts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for cell in &document.cells {
        if let Some(cause) = latest(cell).and_then(|result| result.verdict) {
            verdicts.entry(cause.name()).or_default().push(format!("{} to {}", cell.from, cell.to));
        }
    }
    for (name, pairs) in verdicts {
        let more = pairs.len().saturating_sub(MAX_LISTED);
        let listed = pairs[..pairs.len() - more].join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        facts.push([format!("verdict {name}"), format!("{listed}{more}")]);
    }
    facts
}

fn of_test(document: &MeshDocument, test: &MeshTest) -> Vec<Figure> {
    let cells: Vec<&MeshCell> = document.cells.iter().filter(|cell| cell.test == test.name).collect();
    let measures = [
        Measure {
            id: "throughput",
            title: "Throughput",
            unit: "bit/s",
            better: Better::Higher,
            of: |cell| latest(cell)?.goodput_bps,
        },
        if test.protocol == Protocol::Udp {
            Measure {
                id: "loss",
                title: "Loss",
                unit: "ratio",
                better: Better::Lower,
                of: |cell| latest(cell)?.loss_ratio,
            }
        } else {
            Measure {
                id: "retransmits",
                title: "Retransmits",
                unit: "",
                better: Better::Lower,
                of: |cell| Some(latest(cell)?.retransmits? as f64),
            }
        },
        Measure {
            id: "rtt",
            title: "RTT",
            unit: "ns",
            better: Better::Lower,
            of: |cell| Some(latest(cell)?.rtt_ns? as f64),
        },
        Measure {
            id: "change",
            title: "Change since last week",
            unit: "ratio",
            better: Better::Higher,
            of: |cell| Some(cell.change?.ratio),
        },
    ];
    let known = measures.into_iter().filter(|measure| cells.iter().any(|cell| (measure.of)(cell).is_some()));
    known.map(|measure| matrix(document, test, &cells, &measure)).collect()
}

fn matrix(document: &MeshDocument, test: &MeshTest, cells: &[&MeshCell], measure: &Measure) -> Figure {
    let names = |of: fn(&MeshCell) -> &str| -> Vec<String> {
        let uses = |name: &str| cells.iter().any(|cell| of(cell) == name);
        document.hosts.iter().map(|host| host.name.clone()).filter(|name| uses(name)).collect()
    };
    let (rows, columns) = (names(|cell| cell.from.as_str()), names(|cell| cell.to.as_str()));
    let mut values = vec![None; rows.len() * columns.len()];
    let mut missing = Vec::new();
    for cell in cells {
        let position = |names: &[String], name: &str| names.iter().position(|other| other == name);
        let (Some(row), Some(column)) = (position(&rows, &cell.from), position(&columns, &cell.to)) else { continue };
        let at = row * columns.len() + column;
        values[at] = (measure.of)(cell);
        if values[at].is_none() {
            missing.push(FigureGap { cell: at, why: why_missing(cell) });
        }
    }
    let axis = |title: &str, labels| FigureAxis {
        title: title.to_owned(),
        scale: FigureScale::Category,
        labels,
        ..FigureAxis::default()
    };
    Figure {
        id: format!("{}-{}", slug(&test.name), measure.id),
        title: format!("{}: {}", test.name, measure.title),
        caption: "The latest test of each pair. –: unknown, with the reason. Empty: not tested with each other."
            .to_owned(),
        drawing: Drawing::Grid(FigureGrid {
            rows: axis("Client", rows),
            columns: axis("Server", columns),
            value: measure.title.to_owned(),
            unit: measure.unit.to_owned(),
            better: Some(measure.better),
            cells: values,
            missing,
            ..FigureGrid::default()
        }),
    }
}

/// Returns the latest test of a pair, unless it failed or was skipped.
fn latest(cell: &MeshCell) -> Option<&MeshResult> {
    cell.latest.as_ref().filter(|_| cell.is_measured())
}

/// Returns why a figure of a cell is unknown.
fn why_missing(cell: &MeshCell) -> String {
    let why = if cell.skipped {
        let why = cell.waiting.as_deref().unwrap_or("not tested in this round");
        let earlier = cell.latest.as_ref().map(|result| format!("; the latest test was at {}", result.started));
        Some(format!("{why}{}", earlier.unwrap_or_default()))
    } else {
        let error = cell.latest.as_ref().and_then(|result| result.error.as_ref());
        error.map(|error| error.message.clone()).or_else(|| cell.waiting.clone())
    };
    why.or_else(|| cell.change_unknown.clone()).unwrap_or_else(|| "not reported".to_owned())
}
