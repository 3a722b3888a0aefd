//! What one cause concluded, and the readings it weighed.

use landspeed_model::{Cause, Confidence, Evidence};

use crate::flow::{Figure, Flow};
use crate::host::End;
use crate::stream::StreamView;
use crate::text;

/// How much a cause's own readings support it, before anything else is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// A hint.
    Weak,
    /// The readings point there; one that would settle it is absent or contradicts.
    Moderate,
    /// The readings agree.
    Strong,
}

impl Strength {
    /// The confidence this strength allows when nothing else speaks against it.
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

/// What became of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It holds.
    Holds(Strength),
    /// A reading speaks against it.
    Refuted,
    /// Its readings are missing.
    Unseen,
    /// It makes no sense for this kind of test.
    NotApplicable,
}

/// A cause's conclusion.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The cause.
    pub cause: Cause,
    /// What became of it.
    pub standing: Standing,
    /// A known rate was reached (asked for, or the interface's), or a round trip waited out: no inference is involved.
    pub direct: bool,
    /// What was weighed.
    pub readings: Vec<Evidence>,
    /// Which end or component.
    pub place: Option<String>,
    /// Why, as the second half of a sentence that begins with the rate.
    pub why: String,
    /// What to try.
    pub next_step: String,
    /// What was not visible.
    pub missing: Vec<String>,
}

impl Finding {
    /// The strength, if the cause holds.
    pub(crate) fn strength(&self) -> Option<Strength> {
        match self.standing {
            Standing::Holds(strength) => Some(strength),
            _ => None,
        }
    }

    /// A cause that makes no sense for this kind of test.
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

/// What a value is compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    /// Met from here up.
    AtLeast(f64),
    /// Met below.
    Below(f64),
    /// Met above.
    Above(f64),
    /// Met between, both ends included.
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

    fn words(self, unit: &str) -> String {
        match self {
            Self::AtLeast(bound) => format!("≥ {}", text::in_unit(bound, unit)),
            Self::Below(bound) => format!("< {}", text::in_unit(bound, unit)),
            Self::Above(bound) => format!("> {}", text::in_unit(bound, unit)),
            Self::Within(low, high) => format!("{} … {}", text::in_unit(low, unit), text::in_unit(high, unit)),
        }
    }

    /// The stream whose value speaks most for the bound.
    fn worst(self, figure: &Figure) -> (usize, f64) {
        match self {
            Self::AtLeast(_) | Self::Above(_) | Self::Within(..) => figure.largest,
            Self::Below(_) => figure.smallest,
        }
    }
}

/// Collects the readings of one cause and turns them into a [`Finding`].
pub(crate) struct Scales<'f, 'a> {
    flow: &'f Flow<'a>,
    cause: Cause,
    readings: Vec<Evidence>,
    missing: Vec<String>,
}

impl<'f, 'a> Scales<'f, 'a> {
    /// Empty scales for `cause`.
    pub(crate) fn new(flow: &'f Flow<'a>, cause: Cause) -> Self {
        Self { flow, cause, readings: Vec::new(), missing: Vec::new() }
    }

    /// Compares a figure over streams with `bound`; `series` is the path below a stream (`sender.samples[].bytes`).
    /// `None`, and noted as missing, when it was not read.
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

    /// How full the send buffer is.
    pub(crate) fn send_fill(&mut self, bound: Bound) -> Option<bool> {
        let fill = self.flow.figure(StreamView::send_fill);
        self.figure("send queue memory over SO_SNDBUF", fill, "ratio", bound, "sender.samples[].wmem_queued_bytes")
    }

    /// How much waits in the send buffer.
    pub(crate) fn unsent(&mut self, bound: Bound) -> Option<bool> {
        let unsent = self.flow.figure(StreamView::notsent);
        self.figure("bytes written and not sent", unsent, "bytes", bound, "sender.samples[].tcp.notsent_bytes")
    }

    /// Which part of the send buffer waits.
    pub(crate) fn unsent_share(&mut self, bound: Bound) -> Option<bool> {
        let (metric, share) = ("bytes not sent over send queue memory", self.flow.figure(StreamView::waiting_share));
        self.figure(metric, share, "ratio", bound, "sender.samples[].tcp.notsent_bytes")
    }

    /// How full the congestion window is.
    pub(crate) fn flight_over_cwnd(&mut self, bound: Bound) -> Option<bool> {
        let flight = self.flow.figure(StreamView::flight_over_cwnd);
        let metric = "segments in flight over the congestion window";
        self.figure(metric, flight, "ratio", bound, "sender.samples[].tcp.snd_cwnd")
    }

    /// How full the peer's window is.
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

    /// Compares one value with `bound`; `source` is a document path.
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

    /// [`Self::value`], but silent when the value was not read.
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
            threshold: bound.words(unit),
            met: bound.met(value),
            host: end.map(|end| self.flow.host(end).name().to_owned()),
            stream,
            span_ns: (self.flow.span_ns.1 > self.flow.span_ns.0).then_some(self.flow.span_ns),
            source,
        });
    }

    /// Notes something that was not visible.
    pub(crate) fn lacks(&mut self, what: &str) {
        self.missing.push(what.to_owned());
    }

    /// The finding with nothing but its standing.
    pub(crate) fn close(self, standing: Standing) -> Finding {
        Finding { standing, readings: self.readings, missing: self.missing, ..Finding::not_applicable(self.cause) }
    }

    /// A reading speaks against the cause; or nothing could be read.
    pub(crate) fn refuted(self) -> Finding {
        let standing = if self.readings.is_empty() { Standing::Unseen } else { Standing::Refuted };
        self.close(standing)
    }

    /// The cause holds.
    pub(crate) fn holds(self, strength: Strength, why: String, next_step: String) -> Finding {
        Finding { why, next_step, ..self.close(Standing::Holds(strength)) }
    }
}
