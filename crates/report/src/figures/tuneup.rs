//! Figures of a search for better settings: the waterfall of kept changes, and the map of cores.

use landspeed_model::{
    Better, Direction, Drawing, Figure, FigureAxis, FigureGap, FigureGrid, FigureRow, FigureRows, FigureScale,
    FiguresDocument, Status, TuneupDocument, TuneupEnd, TuneupMap, TuneupMapCell, TuneupMapColumns, TuneupRung,
};
use landspeed_units::BitRate;

use super::quantity;

/// Returns the page of a search.
pub(crate) fn figures(document: &TuneupDocument) -> FiguresDocument {
    FiguresDocument {
        about: "tuneup".to_owned(),
        title: document.target.clone(),
        answer: format!("{}.", headline(document)),
        started: document.started.clone(),
        facts: vec![
            ["tests".to_owned(), document.tests.to_string()],
            ["ended because".to_owned(), document.ended_because.clone()],
        ],
        figures: drawn(document),
        ..FiguresDocument::default()
    }
}

/// Returns the result in one sentence.
pub(crate) fn headline(document: &TuneupDocument) -> String {
    let kept = document.rungs.iter().filter(|rung| rung.kept).count();
    match (&document.baseline, &document.result) {
        _ if document.ended == TuneupEnd::DryRun => format!("{} changes would be tried", document.rungs.len()),
        (Some(baseline), Some(result)) if document.map.is_some() && result.low.is_some() => {
            if result.low.is_some_and(|low| low > 1.0) {
                let gain = result.ratio.unwrap_or(1.0);
                let (first, now) = (whole_rate(baseline.goodput_bps), whole_rate(result.goodput_bps));
                format!("{first} → {now} with the fastest placement, {gain:.2} times as much")
            } else {
                format!("{}: no placement is better than the first settings", whole_rate(baseline.goodput_bps))
            }
        }
        (Some(baseline), Some(result)) if kept > 0 => {
            let gain = result.ratio.map(|ratio| format!(", {ratio:.2} times as much")).unwrap_or_default();
            format!("{} → {}{gain}", whole_rate(baseline.goodput_bps), whole_rate(result.goodput_bps))
        }
        (Some(baseline), _) if document.status != Status::Complete => {
            format!("{} with the first settings; cut short", whole_rate(baseline.goodput_bps))
        }
        (Some(baseline), _) => format!("Unchanged at {}", whole_rate(baseline.goodput_bps)),
        _ => "Nothing was measured".to_owned(),
    }
}

/// Formats a rate without fractions of a bit.
pub(crate) fn whole_rate(bps: f64) -> String {
    BitRate::from_bps(bps.max(0.0).round() as u64).to_string()
}

/// Returns the map if there is one, else the waterfall.
pub(crate) fn drawn(document: &TuneupDocument) -> Vec<Figure> {
    match &document.map {
        Some(found) => map(document, found).into_iter().collect(),
        None => waterfall(document).into_iter().collect(),
    }
}

fn rate(bps: f64) -> String {
    quantity::text(bps, "bit/s")
}

/// Returns a bar from the rate before a change to the rate with it, for each kept change.
fn waterfall(document: &TuneupDocument) -> Option<Figure> {
    let baseline = document.baseline.as_ref()?;
    let mut rows = vec![FigureRow {
        label: "First settings".to_owned(),
        text: format!(
            "{}, A/A ×{:.3} ({:.3} to {:.3})",
            rate(baseline.goodput_bps),
            baseline.ratio,
            baseline.low,
            baseline.high
        ),
        detail: baseline.summary.clone(),
        from: Some(0.0),
        to: Some(baseline.goodput_bps),
        ..FigureRow::default()
    }];
    for rung in document.rungs.iter().filter(|rung| rung.kept) {
        let (Some(before), Some(after)) = (rung.best_bps, rung.goodput_bps) else { continue };
        rows.push(FigureRow {
            label: rung.change.clone(),
            text: format!("{} → {}, {}", rate(before), rate(after), ratio(rung)),
            detail: evidence(rung),
            from: Some(before.min(after)),
            to: Some(after),
            better: Some(true),
            ..FigureRow::default()
        });
    }
    Some(Figure {
        id: "waterfall".to_owned(),
        title: "Goodput, each change on top of those before".to_owned(),
        caption: format!(
            "Ratios: candidate / best so far, with their intervals. n = {} tests of the first settings.",
            baseline.goodputs_bps.len()
        ),
        drawing: Drawing::Rows(FigureRows {
            axis: FigureAxis { title: "Goodput".to_owned(), unit: "bit/s".to_owned(), ..FigureAxis::default() },
            neutral: None,
            rows,
        }),
    })
}

pub(crate) fn ratio(rung: &TuneupRung) -> String {
    match (rung.ratio, rung.low, rung.high) {
        (Some(ratio), Some(low), Some(high)) => format!("×{ratio:.3} ({low:.3} to {high:.3})"),
        _ => "not measured".to_owned(),
    }
}

/// Returns the readings that suggested a change, or the reason why it was tried.
fn evidence(rung: &TuneupRung) -> String {
    let readings: Vec<String> = rung
        .evidence
        .iter()
        .filter(|reading| reading.met)
        .take(3)
        .map(|reading| {
            format!("{} {:.3} {} (threshold {})", reading.metric, reading.value, reading.unit, reading.threshold)
        })
        .collect();
    if readings.is_empty() { rung.reason.clone() } else { readings.join("; ") }
}

/// Returns the axis titles of a map: the threads or interrupts that its rows and columns place on cores.
pub fn map_axes(direction: Direction, columns: TuneupMapColumns) -> (String, String) {
    let (receiver, sender) = if direction == Direction::Upload { ("server", "client") } else { ("client", "server") };
    let across = match columns {
        TuneupMapColumns::Interrupts => format!("core of the interrupts at the {receiver}"),
        TuneupMapColumns::Sender => format!("core of the sending thread at the {sender}"),
    };
    (format!("core of the receiving thread at the {receiver}"), across)
}

/// Returns a map of goodput by cores.
fn map(document: &TuneupDocument, map: &TuneupMap) -> Option<Figure> {
    let first = map.cells.first()?;
    let columns = map.cells.iter().take_while(|cell| cell.receiver_core == first.receiver_core).count();
    let (down, across) = map_axes(document.direction, map.columns);
    let places = |title: String, labels: Vec<String>| FigureAxis {
        title,
        scale: FigureScale::Category,
        labels,
        ..FigureAxis::default()
    };
    let gap = |(at, cell): (usize, &TuneupMapCell)| {
        let why = cell.refused.clone().unwrap_or_else(|| "not measured".to_owned());
        cell.goodput_bps.is_none().then_some(FigureGap { cell: at, why })
    };
    let rows = map.cells.chunks(columns).map(|row| row[0].receiver_core.to_string()).collect();
    let heads = map.cells[..columns].iter().map(|cell| cell.column_core.to_string()).collect();
    let size = map.cells.len().div_ceil(columns) * columns;
    let padded = |of: fn(&TuneupMapCell) -> Option<f64>| {
        let mut values: Vec<Option<f64>> = map.cells.iter().map(of).collect();
        values.resize(size, None);
        values
    };
    Some(Figure {
        id: "map".to_owned(),
        title: "Goodput by cores".to_owned(),
        caption: format!("Median of n = {} tests each; in brackets lowest and highest. –: not measured.", map.rounds),
        drawing: Drawing::Grid(FigureGrid {
            rows: places(down, rows),
            columns: places(across, heads),
            value: "Goodput".to_owned(),
            unit: "bit/s".to_owned(),
            better: Some(Better::Higher),
            cells: padded(|cell| cell.goodput_bps),
            runs: Vec::new(),
            low: padded(|cell| cell.lowest_bps),
            high: padded(|cell| cell.highest_bps),
            shares: Vec::new(),
            missing: map.cells.iter().enumerate().filter_map(gap).collect(),
        }),
    })
}
