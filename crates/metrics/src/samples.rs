//! Samples of metrics at one moment, and their exposition text.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::family::{Family, Kind};

/// Text format of an answer, negotiated with `Accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text, version 0.0.4.
    Prometheus,
    /// OpenMetrics text, version 1.0.0.
    OpenMetrics,
}

impl Format {
    /// Value of the header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Value of a sample, an integer or a float.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// Integer, exact up to 64 bits.
    Count(u64),
    /// Float in the unit of its family.
    Quantity(f64),
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Value {
    fn from(quantity: f64) -> Self {
        Self::Quantity(quantity)
    }
}

type Labels = Vec<(&'static str, String)>;

/// Samples of several families. An unknown value has no sample, and a family without samples is not written.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    families: Vec<(&'static Family, Vec<(Labels, Value)>)>,
}

impl Samples {
    /// Adds a sample without labels, if its value is known.
    pub fn add(&mut self, family: &'static Family, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.add_labelled(family, &[], value);
        }
    }

    /// Adds a sample with the values of the family's labels.
    ///
    /// # Panics
    /// If the number of values is not that of the family's labels.
    pub fn add_labelled(&mut self, family: &'static Family, labels: &[&str], value: impl Into<Value>) {
        assert_eq!(labels.len(), family.labels.len(), "labels of {}", family.base);
        let labels: Labels =
            family.labels.iter().copied().zip(labels.iter().map(|&value| value.to_owned())).collect();
        let sample = (labels, value.into());
        match self.families.iter_mut().find(|(known, _)| std::ptr::eq(*known, family)) {
            Some((_, samples)) => samples.push(sample),
            None => self.families.push((family, vec![sample])),
        }
    }

    /// Adds the samples of other families.
    pub fn extend(&mut self, others: &Self) {
        self.families.extend(others.families.iter().cloned());
    }

    /// Returns the samples of a family: values of its labels, and value.
    pub fn of(&self, family: &Family) -> Vec<(Vec<&str>, Value)> {
        let found = self.families.iter().filter(|(known, _)| *known == family).flat_map(|(_, samples)| samples);
        found.map(|(labels, value)| (labels.iter().map(|(_, value)| value.as_str()).collect(), *value)).collect()
    }

    /// Returns the number of samples, which is the number of time series in Prometheus.
    pub fn series(&self) -> usize {
        self.families.iter().map(|(_, samples)| samples.len()).sum()
    }

    /// Returns the exposition text.
    pub fn text(self, format: Format) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        let written = match format {
            Format::Prometheus => prometheus_text::encode(&mut text, &registry),
            Format::OpenMetrics => text::encode(&mut text, &registry),
        };
        written.expect("writing to a String does not fail");
        text
    }
}

impl Collector for Samples {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (family, samples) in &self.families {
            let unit = family.unit.map(|unit| Unit::Other(unit.to_owned()));
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Info => MetricType::Info,
            };
            let mut encoder = encoder.encode_descriptor(family.base, family.help, unit.as_ref(), kind)?;
            for (labels, value) in samples {
                if kind == MetricType::Info {
                    encoder.encode_info(labels)?;
                } else if labels.is_empty() {
                    encode_value(&mut encoder, kind, *value)?;
                } else {
                    encode_value(&mut encoder.encode_family(labels)?, kind, *value)?;
                }
            }
        }
        Ok(())
    }
}

fn encode_value(encoder: &mut MetricEncoder<'_>, kind: MetricType, value: Value) -> fmt::Result {
    fn encode<V: EncodeCounterValue + EncodeGaugeValue>(
        encoder: &mut MetricEncoder<'_>,
        kind: MetricType,
        value: &V,
    ) -> fmt::Result {
        match kind {
            MetricType::Counter => encoder.encode_counter::<NoLabelSet, V, u64>(value, None),
            _ => encoder.encode_gauge(value),
        }
    }
    match value {
        Value::Count(count) => encode(encoder, kind, &count),
        Value::Quantity(quantity) => encode(encoder, kind, &quantity),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static BYTES: Family = Family::counter("x_received", "Payload received").unit("bytes").labels(&["protocol"]);
    static SHARE: Family = Family::gauge("x_share", "A share").unit("ratio");
    static BUILD: Family =
        Family { kind: Kind::Info, ..Family::gauge("x_build", "The program").labels(&["version"]) };

    fn samples() -> Samples {
        let mut samples = Samples::default();
        samples.add_labelled(&BYTES, &["tcp"], 12);
        samples.add(&SHARE, Some(0.25));
        samples.add_labelled(&BYTES, &["a\"b\\c\nd"], 1 << 60);
        samples.add_labelled(&BUILD, &["0.2.0"], 1);
        samples
    }

    #[test]
    fn openmetrics_has_units_escapes_and_an_end() {
        let expected = "\
# HELP x_received_bytes Payload received
# TYPE x_received_bytes counter
# UNIT x_received_bytes bytes
x_received_bytes_total{protocol=\"tcp\"} 12
x_received_bytes_total{protocol=\"a\\\"b\\\\c\\nd\"} 1152921504606846976
# HELP x_share_ratio A share
# TYPE x_share_ratio gauge
# UNIT x_share_ratio ratio
x_share_ratio 0.25
# HELP x_build The program
# TYPE x_build info
x_build_info{version=\"0.2.0\"} 1
# EOF
";
        assert_eq!(samples().text(Format::OpenMetrics), expected);
    }

    #[test]
    fn prometheus_text_types_the_samples_by_their_full_name() {
        let text = samples().text(Format::Prometheus);
        assert!(
            text.contains("# TYPE x_received_bytes_total counter\nx_received_bytes_total{protocol=\"tcp\"} 12\n")
        );
        assert!(text.contains("# TYPE x_build_info gauge\nx_build_info{version=\"0.2.0\"} 1\n"), "{text}");
        assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{text}");
    }

    #[test]
    fn unknown_values_have_no_sample() {
        let mut samples = Samples::default();
        samples.add(&SHARE, None::<f64>);
        assert_eq!(samples.series(), 0);
        assert_eq!(samples.text(Format::OpenMetrics), "# EOF\n");
    }
}
