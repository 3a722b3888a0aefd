//! flent data files (`.flent`, and decompressed `.flent.gz`), versions 1 to 4 of the format.
//!
//! Series whose name begins with `TCP upload` or `TCP download` are rates in Mbit/s, those that begin with
//! `Ping` are times in ms. Sums and averages added by flent are ignored if the individual series are present.

use landspeed_model::Metric;
use landspeed_stats::quantile;
use serde_json::{Map, Value};

use super::{ForeignDocument, ForeignError, mean, record, utc};
use crate::figures::balance;

/// Whether this is a flent data file.
pub fn is(value: &Value) -> bool {
    value.get("results").is_some_and(Value::is_object)
        && value.get("x_values").is_some_and(Value::is_array)
        && value.get("metadata").is_some_and(Value::is_object)
}

/// Parses a data file.
pub fn read(document: &Value) -> Result<ForeignDocument, ForeignError> {
    let missing = |what| ForeignError::Incomplete { program: "flent", what };
    let metadata = document.get("metadata").and_then(Value::as_object).ok_or(missing("metadata"))?;
    let results = document.get("results").and_then(Value::as_object).ok_or(missing("results"))?;
    let text =
        |key: &str| metadata.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let mut record =
        record(text("FLENT_VERSION").map_or_else(|| "flent".to_owned(), |version| format!("flent {version}")));
    record.started = text("TIME").and_then(|time| utc(&time)).unwrap_or_default();
    record.title = text("TITLE").or_else(|| text("NAME"));
    record.target = text("HOST").or_else(|| {
        let hosts = metadata.get("HOSTS")?.as_array()?;
        hosts.first()?.as_str().map(str::to_owned)
    });
    record.kernel = text("KERNEL_RELEASE");
    for (name, value) in [("hostname", text("LOCAL_HOST")), ("kernel_release", text("KERNEL_RELEASE"))] {
        if let Some(value) = value {
            record.hosts.insert(format!("client.{name}"), value);
        }
    }
    if let Some(name) = text("NAME") {
        record.settings.insert("test".to_owned(), name);
    }
    if let Some(length_s) = metadata.get("LENGTH").and_then(Value::as_u64) {
        record.settings.insert("time_ns".to_owned(), length_s.saturating_mul(1_000_000_000).to_string());
    }
    let upload = rates_bps(results, "TCP upload");
    let download = rates_bps(results, "TCP download");
    let sum = |rates: &[f64]| (!rates.is_empty()).then(|| rates.iter().sum::<f64>());
    let (primary, reverse, direction) = match (upload.is_empty(), download.is_empty()) {
        (false, false) => (upload, download, "both"),
        (true, false) => (download, Vec::new(), "download"),
        _ => (upload, Vec::new(), "upload"),
    };
    if !primary.is_empty() {
        record.settings.insert("protocol".to_owned(), "tcp".to_owned());
        record.settings.insert("direction".to_owned(), direction.to_owned());
        record.settings.insert("streams".to_owned(), primary.len().to_string());
    }
    let pings_ms: Vec<f64> = results
        .iter()
        .filter(|(name, _)| is_single_flow(name, "Ping"))
        .flat_map(|(_, series)| numbers(series))
        .collect();
    let figures = &mut record.figures;
    figures.set(Metric::Goodput, sum(&primary));
    figures.set(Metric::ReverseGoodput, sum(&reverse));
    figures.set(Metric::StreamBalance, balance(&primary));
    figures.set(Metric::LatencyP50, quantile(&pings_ms, 0.5).map(|ms| ms * 1e6));
    figures.set(Metric::LatencyP99, quantile(&pings_ms, 0.99).map(|ms| ms * 1e6));
    record.streams_bps = primary;
    if record.figures == crate::Figures::default() {
        return Err(missing("a rate (`TCP upload`, `TCP download`) or a latency (`Ping`)"));
    }
    Ok(ForeignDocument { kind: "flent", records: vec![record] })
}

/// Mean rate of each stream, bits/s.
fn rates_bps(results: &Map<String, Value>, prefix: &str) -> Vec<f64> {
    let of = |name: &String| -> Option<f64> { mean(&numbers(&results[name])).map(|mbps| mbps * 1e6) };
    let parts: Vec<f64> = results.keys().filter(|name| is_single_flow(name, prefix)).filter_map(of).collect();
    let only_sum = format!("{prefix} sum");
    if parts.is_empty() { results.keys().filter(|name| **name == only_sum).filter_map(of).collect() } else { parts }
}

/// Whether a series is a single flow, not a sum or an average of others.
fn is_single_flow(name: &str, prefix: &str) -> bool {
    let made = ["sum", "avg", "totals"];
    name.strip_prefix(prefix).is_some_and(|rest| !made.iter().any(|word| rest.trim().ends_with(word)))
}

fn numbers(series: &Value) -> Vec<f64> {
    series.as_array().into_iter().flatten().filter_map(Value::as_f64).filter(|number| number.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flent_rates_and_pings_are_parsed() {
        let path = format!("{}/../../fixtures/foreign/rrul.flent", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(path).expect("fixture");
        let read = super::super::read(&bytes).expect("a data file");
        let [record] = read.records.as_slice() else { panic!("{read:?}") };
        assert_eq!(read.kind, "flent");
        assert_eq!(record.tool, "flent 2.1.1");
        assert_eq!(record.started, "2026-11-20T10:15:30Z");
        assert_eq!(record.target.as_deref(), Some("dtn2.example"));
        assert_eq!(record.figures.get(Metric::Goodput), Some(180e6));
        assert_eq!(record.figures.get(Metric::ReverseGoodput), Some(400e6));
        assert_eq!(record.figures.get(Metric::LatencyP50), Some(24e6));
        assert_eq!(record.settings["streams"], "2");
    }
}
