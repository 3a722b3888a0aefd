//! Figures of results of other programs: one row for each record and metric.

use landspeed_model::{
    Better, BuildInfo, Drawing, FIGURES_SCHEMA, Figure, FigureAxis, FigureNote, FigureRow, FigureRows,
    FiguresDocument, Metric,
};
use landspeed_results::{Record, RecordStatus};

use super::{plural, quantity};

/// Maximum number of rows of a figure.
const MAX_ROWS: usize = 60;

/// Returns the page of results that have records and no document of landspeed; each with its name.
pub fn of_records(results: &[(String, Vec<Record>)]) -> FiguresDocument {
    let records = || results.iter().flat_map(|(name, records)| records.iter().map(move |record| (name, record)));
    let figure = |metric: Metric| {
        let with = records().filter_map(|(name, record)| Some((name, record, record.figures.get(metric)?)));
        let rows: Vec<FigureRow> = with
            .map(|(name, record, value)| FigureRow {
                label: name.clone(),
                text: quantity::text(value, metric.unit()),
                detail: detail(record),
                from: Some(0.0),
                to: Some(value),
                ..FigureRow::default()
            })
            .collect();
        let left_out = rows.len().saturating_sub(MAX_ROWS);
        let better = if metric.better() == Better::Lower { " Lower is better." } else { "" };
        let more = if left_out > 0 { format!(" {left_out} more are not drawn.") } else { String::new() };
        (!rows.is_empty()).then(|| Figure {
            id: metric.name().replace('_', "-"),
            title: metric.title().to_owned(),
            caption: format!(
                "One bar for each result, without an interval: `landspeed compare` has it.{better}{more}"
            ),
            drawing: Drawing::Rows(FigureRows {
                axis: FigureAxis {
                    title: metric.title().to_owned(),
                    unit: metric.unit().to_owned(),
                    ..FigureAxis::default()
                },
                neutral: None,
                rows: rows.into_iter().take(MAX_ROWS).collect(),
            }),
        })
    };
    let count = records().count();
    let rates: Vec<String> = records()
        .filter_map(|(_, record)| Some(quantity::text(record.figures.get(Metric::Goodput)?, Metric::Goodput.unit())))
        .take(2)
        .collect();
    let answer = match rates.as_slice() {
        [] => "No result has a goodput.".to_owned(),
        [one] if count == 1 => format!("Goodput {one}."),
        [first, ..] => format!("{}, the first with a goodput of {first}.", plural(count, "result")),
    };
    let incomplete = records().filter(|(_, record)| record.status != RecordStatus::Complete);
    let notes = incomplete.map(|(name, record)| (name, record.status.word().to_owned()));
    let unknown = records().flat_map(|(name, record)| record.notes.iter().map(move |note| (name, note.clone())));
    FiguresDocument {
        schema: FIGURES_SCHEMA.to_owned(),
        landspeed: BuildInfo::default(),
        about: plural(count, "result"),
        title: results.iter().map(|(name, _)| name.as_str()).take(4).collect::<Vec<_>>().join(" · "),
        answer,
        started: records()
            .map(|(_, record)| record.started.clone())
            .filter(|time| !time.is_empty())
            .min()
            .unwrap_or_default(),
        facts: records().take(MAX_ROWS).map(|(name, record)| [name.clone(), detail(record)]).collect(),
        notes: notes
            .chain(unknown)
            .map(|(name, text)| FigureNote { serious: true, text: format!("{name}: {text}.") })
            .collect(),
        figures: Metric::ALL.into_iter().filter_map(figure).collect(),
        ..FiguresDocument::default()
    }
}

/// Program, server and settings of a record.
fn detail(record: &Record) -> String {
    let setting = |name: &str| record.settings.get(name).cloned();
    let streams =
        setting("streams").and_then(|streams| streams.parse().ok()).map(|streams| plural(streams, "stream"));
    let target = record.target.as_ref().map(|target| format!("to {target}"));
    let parts = [Some(record.tool.clone()), target, setting("protocol"), setting("direction"), streams];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_other_programs_are_drawn_and_unknown_figures_named() {
        let mut record = Record::without_figures("iperf3 3.12".to_owned());
        record.status = RecordStatus::Complete;
        record.figures.set(Metric::Goodput, Some(9.4e9));
        record.settings.insert("streams".to_owned(), "4".to_owned());
        let mut server = Record { status: RecordStatus::Partial, ..record.clone() };
        server.figures.remove(Metric::Goodput);
        server.notes.push("goodput unknown: this is the document of the server".to_owned());
        let page = of_records(&[("client".to_owned(), vec![record]), ("server".to_owned(), vec![server])]);
        let Drawing::Rows(rows) = &page.figures[0].drawing else { panic!("{page:?}") };
        assert_eq!((page.figures.len(), rows.rows.len()), (1, 1));
        assert_eq!(rows.rows[0].detail, "iperf3 3.12, 4 streams");
        let notes: Vec<&str> = page.notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(notes, ["server: partial.", "server: goodput unknown: this is the document of the server."]);
        assert!(page.answer.starts_with("2 results, the first with a goodput of 9.4"), "{}", page.answer);
    }
}
