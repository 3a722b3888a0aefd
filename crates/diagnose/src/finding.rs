//! Conclusion of one cause, with the readings it evaluated.

use landspeed_model::{Cause, Confidence, Evidence};

use crate::flow::{Figure, Flow};
use crate::host::End;
use crate::stream::StreamView;
use crate::text;

/// Strength of a cause by its own readings alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// A hint.
    Weak,
    /// The readings support it, but a decisive one is missing or contradicts.
    Moderate,
    /// All readings agree.
    Strong,
}

impl Strength {
    /// The highest confidence this strength allows.
    pub(crate) fn confidence(self) -> Confidence {
        match self {
            Self::Weak => Confidence::Low,
            Self::Moderate => Confidence::Medium,
            Self::Strong => Confidence::High,
        }
    }

    /// One step weaker.
    pub(crate) fn lowered(self) -> Self {
        match self {
            Self::Strong => Self::Moderate,
            Self::Moderate | Self::Weak => Self::Weak,
        }
    }
}

/// State of a cause after evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The cause is supported with this strength.
    Supported(Strength),
    /// A reading contradicts the cause.
    Refuted,
    /// The readings it needs are missing.
    NotVisible,
    /// The cause does not apply to this kind of test.
    NotApplicable,
}

/// Conclusion of one cause.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The evaluated cause.
    pub cause: Cause,
    /// State after evaluation.
    pub standing: Standing,
    /// Whether the cause follows without inference: a known rate (requested, or the interface's) was reached,
    /// or round trips account for all the time.
    pub direct: bool,
    /// The readings it evaluated, met or not.
    pub readings: Vec<Evidence>,
    /// The host or component it points to.
    pub place: Option<String>,
    /// Explanation: the second half of a sentence that begins with the rate.
    pub why: String,
    /// Advice to the user.
    pub next_step: String,
    /// Readings that were not visible.
    pub missing: Vec<String>,
}

impl Finding {
    /// The strength if the cause is supported, else `None`.
    pub(crate) fn strength(&self) -> Option<Strength> {
        match self.standing {
            Standing::Supported(strength) => Some(strength),
            _ => None,
        }
    }

    /// A finding for a cause that does not apply to this kind of test.
    pub(crate) fn not_applicable(cause: Cause) -> Self {
        Self {
            cause,
            standing: Standing::NotApplicable,
            direct: false,
            readings: Vec::new(),
            place: None,
            why: String::new(),
            next_step: String::new(),
            missing: Vec::new(),
        }
    }
}

/// The named network cause.
pub(crate) struct NamedCause {
    pub cause: Cause,
    pub strength: Strength,
    pub why: String,
    pub next: String,
    pub place: Option<String>,
}

impl NamedCause {
    pub(crate) fn new(cause: Cause, strength: Strength, why: String, next: String) -> Self {
        Self { cause, strength, why, next, place: None }
    }

    pub(crate) fn at(self, place: String) -> Self {
        Self { place: Some(place), ..self }
    }
}

/// Condition a reading is compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    /// Met if the value is at least this.
    AtLeast(f64),
    /// Met if the value is below this.
    Below(f64),
    /// Met if the value is above this.
    Above(f64),
    /// Met if the value is in this range, limits included.
    Within(f64, f64),
}

impl Bound {
    fn met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::Below(bound) => value < bound,
            Self::Above(bound) => value > bound,
            Self::Within(low, high) => (low..=high).contains(&value),
        }
    }

    fn condition_text(self, unit: &str) -> String {
        match self {
            Self::AtLeast(bound) => format!("≥ {}", text::in_unit(bound, unit)),
            Self::Below(bound) => format!("< {}", text::in_unit(bound, unit)),
            Self::Above(bound) => format!("> {}", text::in_unit(bound, unit)),
            Self::Within(low, high) => format!("{} … {}", text::in_unit(low, unit), text::in_unit(high, unit)),
        }
    }

    /// Index and value of the stream that is closest to meeting the bound.
    fn worst(self, figure: &Figure) -> (usize, f64) {
        match self {
            Self::AtLeast(_) | Self::Above(_) | Self::Within(..) => figure.largest,
            Self::Below(_) => figure.smallest,
        }
    }
}

/// Collects the readings of one cause and turns them into a [`Finding`].
pub(crate) struct FindingBuilder<'f, 'a> {
    flow: &'f Flow<'a>,
    cause: Cause,
    readings: Vec<Evidence>,
    missing: Vec<String>,
}

impl<'f, 'a> FindingBuilder<'f, 'a> {
    /// Creates an empty collection for `cause`.
    pub(crate) fn new(flow: &'f Flow<'a>, cause: Cause) -> Self {
        Self { flow, cause, readings: Vec::new(), missing: Vec::new() }
    }

    /// Compares a per-stream figure with `bound` and records it; `series` is the path below a stream
    /// (`sender.samples[].bytes`). Returns `None` and records it as missing if it was not read.
    pub(crate) fn figure(
        &mut self,
        metric: &str,
        figure: Option<Figure>,
        unit: &str,
        bound: Bound,
        series: &str,
    ) -> Option<bool> {
        let end = if series.starts_with("receiver") { self.flow.receiver.end } else { self.flow.sender.end };
        let Some(figure) = figure else {
            self.missing.push(format!("{metric} ({})", self.flow.host(end).name()));
            return None;
        };
        let single = self.flow.streams.len() == 1;
        let met = bound.met(figure.value);
        let (index, worst) = bound.worst(&figure);
        let source = if single { format!("streams[{index}].{series}") } else { format!("streams[].{series}") };
        let stream = self.flow.document.streams.get(index).map(|stream| stream.id);
        self.push(metric, figure.value, unit, bound, Some(end), stream.filter(|_| single), source);
        if !single && bound.met(worst) != met {
            let source = format!("streams[{index}].{series}");
            self.push(&format!("{metric}, worst stream"), worst, unit, bound, Some(end), stream, source);
        }
        Some(met)
    }

    /// Records the fill of the send buffer: send queue memory over `SO_SNDBUF`.
    pub(crate) fn send_fill(&mut self, bound: Bound) -> Option<bool> {
        let fill = self.flow.figure(StreamView::send_fill);
        self.figure("send queue memory over SO_SNDBUF", fill, "ratio", bound, "sender.samples[].wmem_queued_bytes")
    }

    /// Records the unsent bytes in the send queue.
    pub(crate) fn unsent(&mut self, bound: Bound) -> Option<bool> {
        let unsent = self.flow.figure(StreamView::notsent);
        self.figure("bytes written and not sent", unsent, "bytes", bound, "sender.samples[].tcp.notsent_bytes")
    }

    /// Records the unsent share of the send queue.
    pub(crate) fn unsent_share(&mut self, bound: Bound) -> Option<bool> {
        let (metric, share) = ("bytes not sent over send queue memory", self.flow.figure(StreamView::waiting_share));
        self.figure(metric, share, "ratio", bound, "sender.samples[].tcp.notsent_bytes")
    }

    /// Records the fill of the congestion window.
    pub(crate) fn flight_over_cwnd(&mut self, bound: Bound) -> Option<bool> {
        let flight = self.flow.figure(StreamView::flight_over_cwnd);
        let metric = "segments in flight over the congestion window";
        self.figure(metric, flight, "ratio", bound, "sender.samples[].tcp.snd_cwnd")
    }

    /// Records the fill of the receive window.
    pub(crate) fn flight_over_window(&mut self, bound: Bound) -> Option<bool> {
        let flight = self.flow.figure(StreamView::flight_over_window);
        self.figure(
            "bytes in flight over the peer's window",
            flight,
            "ratio",
            bound,
            "sender.samples[].tcp.snd_wnd_bytes",
        )
    }

    /// Compares one value with `bound` and records it; `source` is a document path.
    pub(crate) fn value(
        &mut self,
        metric: &str,
        value: Option<f64>,
        unit: &str,
        bound: Bound,
        end: Option<End>,
        source: &str,
    ) -> Option<bool> {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            let whose = end.map(|end| format!(" ({})", self.flow.host(end).name())).unwrap_or_default();
            self.missing.push(format!("{metric}{whose}"));
            return None;
        };
        self.push(metric, value, unit, bound, end, None, source.to_owned());
        Some(bound.met(value))
    }

    /// As [`Self::value`], but a missing value is not recorded as missing.
    pub(crate) fn optional(
        &mut self,
        metric: &str,
        value: Option<f64>,
        unit: &str,
        bound: Bound,
        end: Option<End>,
        source: &str,
    ) -> Option<bool> {
        value?;
        self.value(metric, value, unit, bound, end, source)
    }

    #[expect(clippy::too_many_arguments, reason = "one argument for each column of an evidence line")]
    fn push(
        &mut self,
        metric: &str,
        value: f64,
        unit: &str,
        bound: Bound,
        end: Option<End>,
        stream: Option<u32>,
        source: String,
    ) {
        if !value.is_finite() {
            return;
        }
        self.readings.push(Evidence {
            about: self.cause,
            metric: metric.to_owned(),
            value,
            unit: unit.to_owned(),
            threshold: bound.condition_text(unit),
            met: bound.met(value),
            host: end.map(|end| self.flow.host(end).name().to_owned()),
            stream,
            span_ns: (self.flow.span_ns.1 > self.flow.span_ns.0).then_some(self.flow.span_ns),
            source,
        });
    }

    /// Records a reading that was not visible.
    pub(crate) fn record_missing(&mut self, what: &str) {
        self.missing.push(what.to_owned());
    }

    /// Returns a finding with this standing and no texts.
    pub(crate) fn finish(self, standing: Standing) -> Finding {
        Finding { standing, readings: self.readings, missing: self.missing, ..Finding::not_applicable(self.cause) }
    }

    /// Returns a finding for a contradicted cause, or for one without any reading.
    pub(crate) fn refuted(self) -> Finding {
        let standing = if self.readings.is_empty() { Standing::NotVisible } else { Standing::Refuted };
        self.finish(standing)
    }

    /// As [`Self::refuted`], but a cause without any reading, met or missing, does not apply.
    pub(crate) fn refuted_or_not_applicable(self) -> Finding {
        if self.readings.is_empty() && self.missing.is_empty() {
            Finding::not_applicable(self.cause)
        } else {
            self.refuted()
        }
    }

    /// Returns a finding for a supported cause.
    pub(crate) fn holds(self, strength: Strength, why: String, next_step: String) -> Finding {
        Finding { why, next_step, ..self.finish(Standing::Supported(strength)) }
    }
}
