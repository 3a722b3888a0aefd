//! Export of records as text: CSV (RFC 4180) and OpenMetrics 1.0; of runs as data files of flent.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use landspeed_model::{Metric, RunDocument};
use landspeed_quote::{csv_line, printable};

use crate::Row;

/// Returns a run as a compressed data file of flent (`.flent.gz`).
///
/// # Errors
/// Why flent has no test like this run, or what the run lacks.
pub fn flent(run: &RunDocument) -> Result<Vec<u8>, String> {
    let file = landspeed_results::flent_data_file(run)?.to_string();
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    let written = compressed.write_all(file.as_bytes()).and_then(|()| compressed.finish());
    written.map_err(|error| format!("cannot compress it: {error}"))
}

/// Formats records as CSV with a header line. Each setting has a column `setting.NAME`.
pub fn csv(rows: &[Row]) -> String {
    let settings: BTreeSet<&String> = rows.iter().flat_map(|row| row.record.settings.keys()).collect();
    let fixed = [
        "id", "kind", "started", "title", "flow", "target", "client", "server", "kernel", "cause", "status", "tool",
        "seed", "digest", "tags",
    ];
    let mut names: Vec<String> = fixed.iter().map(|name| (*name).to_owned()).collect();
    names.extend(Metric::ALL.map(|metric| metric.field().to_owned()));
    names.extend(settings.iter().map(|name| format!("setting.{name}")));
    let mut text = csv_line(&names);
    for row in rows {
        let record = &row.record;
        let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
        let mut fields = vec![
            row.id.to_string(),
            row.kind.clone(),
            record.started.clone(),
            or_empty(&record.title),
            or_empty(&record.flow),
            or_empty(&record.target),
            or_empty(&row.client),
            or_empty(&row.server),
            or_empty(&record.kernel),
            or_empty(&record.cause),
            record.status.word().to_owned(),
            record.tool.clone(),
            record.seed.map(|seed| seed.to_string()).unwrap_or_default(),
            or_empty(&record.digest),
            row.tags.join(" "),
        ];
        fields.extend(
            Metric::ALL.map(|metric| record.figures.get(metric).map(|value| value.to_string()).unwrap_or_default()),
        );
        fields.extend(settings.iter().map(|name| record.settings.get(*name).cloned().unwrap_or_default()));
        text += &csv_line(&fields);
    }
    text
}

/// Formats records as OpenMetrics: one gauge per metric, in base units, with the record's time.
pub fn openmetrics(rows: &[Row]) -> String {
    let mut text = String::new();
    for metric in Metric::ALL {
        let (name, unit, factor) = gauge(metric);
        // The samples of a family must be contiguous, and those of a series ordered by time.
        let mut samples: Vec<(String, i64, f64)> = rows
            .iter()
            .filter_map(|row| Some((labels(row), row.started_ns?, row.record.figures.get(metric)? * factor)))
            .collect();
        if samples.is_empty() {
            continue;
        }
        samples.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        let _ = writeln!(text, "# TYPE {name} gauge");
        if !unit.is_empty() {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(text, "# HELP {name} {}.", metric.title());
        for (labels, ns, value) in samples {
            let _ = writeln!(
                text,
                "{name}{{{labels}}} {value} {}.{:03}",
                ns / 1_000_000_000,
                ns % 1_000_000_000 / 1_000_000
            );
        }
    }
    text + "# EOF\n"
}

/// Name, unit and conversion factor of a gauge: OpenMetrics requires base units, and the unit as suffix of the
/// name.
fn gauge(metric: Metric) -> (String, &'static str, f64) {
    let name = format!("landspeed_{}", metric.name());
    match metric.unit() {
        "ns" => (format!("{name}_seconds"), "seconds", 1e-9),
        "ratio" => (format!("{name}_ratio"), "ratio", 1.0),
        "bit/s" => (format!("{name}_bits_per_second"), "bits_per_second", 1.0),
        _ => (format!("landspeed_{}", metric.field()), "", 1.0),
    }
}

fn labels(row: &Row) -> String {
    let record = &row.record;
    let labels = [
        ("id", Some(row.id.short())),
        ("kind", Some(row.kind.as_str())),
        ("title", record.title.as_deref()),
        ("flow", record.flow.as_deref()),
        ("target", record.target.as_deref()),
        ("client", row.client.as_deref()),
        ("server", row.server.as_deref()),
        ("kernel", record.kernel.as_deref()),
        ("cause", record.cause.as_deref()),
        ("status", Some(record.status.word())),
        ("tool", Some(record.tool.as_str())),
    ];
    let written = labels.into_iter().filter_map(|(name, value)| {
        let value = printable(value?).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        Some(format!("{name}=\"{value}\""))
    });
    written.collect::<Vec<_>>().join(",")
}
