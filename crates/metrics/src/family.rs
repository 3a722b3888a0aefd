//! Declarations of metrics: name, type, unit, help and labels.

/// Type of a metric, as in OpenMetrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Never decreases while the process runs; its name ends with `_total`.
    Counter,
    /// A value that may rise and fall.
    Gauge,
    /// Always 1, with facts in its labels; its name ends with `_info`.
    Info,
}

impl Kind {
    /// Name as in `# TYPE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Info => "info",
        }
    }
}

/// A metric: name, unit, type, help and labels.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// Name without unit and without the suffix of the type.
    pub base: &'static str,
    /// Unit, which is part of the name: `bytes`, `seconds`, `ratio`.
    pub unit: Option<&'static str>,
    /// Type, as in `# TYPE`.
    pub kind: Kind,
    /// Description, as in `# HELP`, without a full stop.
    pub help: &'static str,
    /// Names of its labels, in the order of their values.
    pub labels: &'static [&'static str],
}

impl Family {
    /// Declares a counter without unit and labels.
    pub const fn counter(base: &'static str, help: &'static str) -> Self {
        Self { base, unit: None, kind: Kind::Counter, help, labels: &[] }
    }

    /// Declares a gauge without unit and labels.
    pub const fn gauge(base: &'static str, help: &'static str) -> Self {
        Self { base, unit: None, kind: Kind::Gauge, help, labels: &[] }
    }

    /// Sets the unit, which the name then has before the suffix of the type.
    #[must_use]
    pub const fn unit(self, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..self }
    }

    /// Sets the names of the labels.
    #[must_use]
    pub const fn labels(self, labels: &'static [&'static str]) -> Self {
        Self { labels, ..self }
    }

    /// Returns the name of its samples, as in queries: base, unit, suffix of the type.
    pub fn name(&self) -> String {
        let unit = self.unit.map(|unit| format!("_{unit}")).unwrap_or_default();
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Gauge => "",
            Kind::Info => "_info",
        };
        format!("{}{unit}{suffix}", self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_unit_and_type() {
        assert_eq!(Family::counter("a_received", "").unit("bytes").name(), "a_received_bytes_total");
        assert_eq!(Family::gauge("a_share", "").unit("ratio").name(), "a_share_ratio");
        assert_eq!(Family { kind: Kind::Info, ..Family::gauge("a_build", "") }.name(), "a_build_info");
    }
}
