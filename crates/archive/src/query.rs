//! Queries for records.

use std::fmt;
use std::str::FromStr;

use landspeed_model::{Cause, Metric};
use landspeed_problems::suggest;
use landspeed_units::{BitRate, Nanos, Ratio};
use thiserror::Error;

/// Conditions, all of which must be true. As text: `host=dtn1,tag=before,last=30d,goodput<5G`; a comma in a
/// value is written `\,`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    conditions: Vec<Condition>,
}

/// A condition of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// `id=`: prefix of the document's id.
    Id(String),
    /// `kind=`: run, lab, iperf3 …
    Kind(String),
    /// `host=`: name of the client or the server.
    Host(String),
    /// `target=` or `path=`: the server as given by the user; `WEST to EAST` in a lab.
    Target(String),
    /// `kernel=`: release of the sender's kernel, or a prefix of it up to a dot, dash or plus sign.
    Kernel(String),
    /// `setting=KEY=VALUE`: a parameter of the test, or a fact of a host.
    Setting(String, String),
    /// `verdict=`: cause that limited the test.
    Verdict(String),
    /// `status=`: complete, partial, invalid or failed.
    Status(String),
    /// `tag=`: tag of the document.
    Tag(String),
    /// `title=`: title, or name of a scenario or plan.
    Title(String),
    /// `flow=`: name of a flow in a lab.
    Flow(String),
    /// `tool=`: measuring program, such as `iperf3` or `iperf3 3.12`.
    Tool(String),
    /// `since=`: earliest start, nanoseconds since the Unix epoch.
    Since(i64),
    /// `until=`: the start is before this time, nanoseconds since the Unix epoch.
    Until(i64),
    /// `last=`: maximum time since the start.
    Last(Nanos),
    /// `goodput<5G`: comparison of a metric, in the unit of [`Metric::field`].
    Figure(Metric, Operator, f64),
}

/// Comparison operator of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

impl Operator {
    /// The operator in a query, and in SQL.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        }
    }
}

/// Reason why a text is not a valid query.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QueryError {
    /// Neither `KEY=VALUE` nor a comparison of a metric.
    #[error("`{0}` is not a condition: write KEY=VALUE, such as host=dtn1, or a figure, such as goodput<5G")]
    NoCondition(String),
    /// Not one of the keys that can be queried.
    #[error("unknown key `{key}`{}\nUse one of: {}.", suggestion.as_ref().map(|text| format!(": {text}")).unwrap_or_default(), KEYS.join(", "))]
    UnknownKey {
        /// Key as given.
        key: String,
        /// The most similar known key as a question, if any.
        suggestion: Option<String>,
    },
    /// Not one of the metrics that can be queried.
    #[error("unknown figure `{name}`{}\nUse one of: {}.", suggestion.as_ref().map(|text| format!(": {text}")).unwrap_or_default(), figures())]
    UnknownFigure {
        /// Name as given.
        name: String,
        /// The most similar known metric as a question, if any.
        suggestion: Option<String>,
    },
    /// Value that is invalid for the key.
    #[error("{key}={value}: {why}")]
    BadValue {
        /// Key or metric.
        key: String,
        /// Value as given.
        value: String,
        /// Reason why it is invalid.
        why: String,
    },
}

/// Keys of conditions, for messages.
const KEYS: [&str; 17] = [
    "id", "host", "target", "path", "kernel", "setting", "verdict", "cause", "tag", "kind", "title", "flow", "tool",
    "status", "since", "until", "last",
];

fn figures() -> String {
    Metric::ALL.map(Metric::name).join(", ")
}

impl Query {
    /// A query that matches every record.
    pub fn all() -> Self {
        Self::default()
    }

    /// The conditions of the query.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Whether there are no conditions.
    pub fn is_all(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Adds a condition.
    pub fn push(&mut self, condition: Condition) {
        self.conditions.push(condition);
    }

    /// Adds a condition from its key and value.
    ///
    /// # Errors
    /// If the key is unknown, or the value is invalid for it.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), QueryError> {
        let bad = |why: String| QueryError::BadValue { key: key.to_owned(), value: value.to_owned(), why };
        let text = || value.to_owned();
        if value.is_empty() {
            return Err(bad("the value is empty".to_owned()));
        }
        self.conditions.push(match key {
            "id" => {
                if !crate::id::is_prefix(value) {
                    return Err(bad("an id has hex digits, such as 4be1c0".to_owned()));
                }
                Condition::Id(text())
            }
            "kind" => Condition::Kind(text()),
            "host" => Condition::Host(text()),
            "target" | "path" => Condition::Target(text()),
            "kernel" => Condition::Kernel(text()),
            "setting" => {
                let (name, value) = value.split_once('=').ok_or_else(|| {
                    bad("a setting has a name and a value, such as setting=congestion=bbr".to_owned())
                })?;
                Condition::Setting(name.trim().to_owned(), value.trim().to_owned())
            }
            "verdict" | "cause" => {
                if Cause::from_name(value).is_none() {
                    return Err(bad("no verdict has this name; docs/verdicts.md lists them".to_owned()));
                }
                Condition::Verdict(text())
            }
            "status" => match landspeed_results::RecordStatus::find(value) {
                Some(_) => Condition::Status(text()),
                None => return Err(bad("it is complete, partial, invalid or failed".to_owned())),
            },
            "tag" => Condition::Tag(text()),
            "title" => Condition::Title(text()),
            "flow" => Condition::Flow(text()),
            "tool" => Condition::Tool(text()),
            "since" => Condition::Since(time(value).ok_or_else(|| bad(TIME.to_owned()))?),
            "until" => Condition::Until(time(value).ok_or_else(|| bad(TIME.to_owned()))?),
            "last" => Condition::Last(value.parse().map_err(|why| bad(format!("{why}")))?),
            _ => {
                let suggestion = suggest(key, KEYS);
                return Err(QueryError::UnknownKey { key: key.to_owned(), suggestion });
            }
        });
        Ok(())
    }

    /// Adds a comparison of a metric, such as `goodput<5G`.
    ///
    /// # Errors
    /// If the metric is unknown, or the value has the wrong unit.
    pub fn figure(&mut self, text: &str) -> Result<(), QueryError> {
        let no_condition = || QueryError::NoCondition(text.to_owned());
        let at = text.find(['<', '>']).ok_or_else(no_condition)?;
        let (name, rest) = text.split_at(at);
        let (operator, value) = match rest.as_bytes() {
            [b'<', b'=', ..] => (Operator::AtMost, &rest[2..]),
            [b'>', b'=', ..] => (Operator::AtLeast, &rest[2..]),
            [b'<', ..] => (Operator::Below, &rest[1..]),
            _ => (Operator::Above, &rest[1..]),
        };
        let name = name.trim();
        let metric = Metric::find(name).ok_or_else(|| QueryError::UnknownFigure {
            name: name.to_owned(),
            suggestion: suggest(name, Metric::ALL.map(Metric::name)),
        })?;
        let value = number(metric, value.trim()).map_err(|why| QueryError::BadValue {
            key: name.to_owned(),
            value: value.to_owned(),
            why,
        })?;
        self.conditions.push(Condition::Figure(metric, operator, value));
        Ok(())
    }

    /// Whether to include records that repeat others (of sweeps): if the query names their kind or an id.
    pub(crate) fn includes_summaries(&self) -> bool {
        self.conditions.iter().any(|condition| match condition {
            // Indexes of earlier versions have sweeps of `lab run` as `labset`.
            Condition::Kind(kind) => kind == "labset" || kind == "sweep",
            Condition::Id(_) => true,
            _ => false,
        })
    }
}

const TIME: &str = "a time is a date, 2026-11-24, or 2026-11-24T15:00, in UTC";

/// Parses a value in the unit of the metric's field.
fn number(metric: Metric, text: &str) -> Result<f64, String> {
    match metric.unit() {
        "bit/s" => text.parse::<BitRate>().map(|rate| rate.bps() as f64).map_err(|why| why.to_string()),
        "ns" => text.parse::<Nanos>().map(|time| time.get() as f64).map_err(|why| why.to_string()),
        "ratio" => text.parse::<Ratio>().map(Ratio::get).map_err(|why| why.to_string()),
        _ => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err("it is not a number".to_owned()),
        },
    }
}

/// Parses a date or time in UTC; returns nanoseconds since the Unix epoch.
fn time(text: &str) -> Option<i64> {
    let whole = match text.len() {
        10 => format!("{text}T00:00:00Z"),
        16 => format!("{text}:00Z"),
        _ => text.to_owned(),
    };
    crate::rows::nanoseconds(&whole)
}

impl FromStr for Query {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        let mut query = Self::default();
        for term in terms(text) {
            let is_figure = term.find(['<', '>']).is_some_and(|at| term.find('=').is_none_or(|equals| at < equals));
            if is_figure {
                query.figure(&term)?;
            } else {
                let (key, value) = term.split_once('=').ok_or_else(|| QueryError::NoCondition(term.clone()))?;
                query.set(key.trim(), value.trim())?;
            }
        }
        Ok(query)
    }
}

/// Splits at commas that are not escaped by a backslash; drops empty terms.
fn terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&',') => {
                letters.next();
                terms.last_mut().expect("there is one").push(',');
            }
            ',' => terms.push(String::new()),
            other => terms.last_mut().expect("there is one").push(other),
        }
    }
    terms.into_iter().map(|term| term.trim().to_owned()).filter(|term| !term.is_empty()).collect()
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, condition) in self.conditions.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            condition.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = |key: &str, value: &str| write!(f, "{key}={}", value.replace(',', "\\,"));
        let time = |ns: i64| humantime::format_rfc3339(crate::rows::system_time(ns)).to_string();
        match self {
            Self::Id(value) => key("id", value),
            Self::Kind(value) => key("kind", value),
            Self::Host(value) => key("host", value),
            Self::Target(value) => key("target", value),
            Self::Kernel(value) => key("kernel", value),
            Self::Setting(name, value) => key("setting", &format!("{name}={value}")),
            Self::Verdict(value) => key("verdict", value),
            Self::Status(value) => key("status", value),
            Self::Tag(value) => key("tag", value),
            Self::Title(value) => key("title", value),
            Self::Flow(value) => key("flow", value),
            Self::Tool(value) => key("tool", value),
            Self::Since(ns) => key("since", &time(*ns)),
            Self::Until(ns) => key("until", &time(*ns)),
            Self::Last(span) => key(
                "last",
                &humantime::format_duration(std::time::Duration::from_nanos(span.get())).to_string().replace(' ', ""),
            ),
            Self::Figure(metric, operator, value) => {
                let unit = if metric.unit() == "ns" { "ns" } else { "" };
                write!(f, "{}{}{value}{unit}", metric.name(), operator.symbol())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn queries_round_trip_as_text() {
        let text = "host=dtn1,tag=before,setting=congestion=bbr,goodput<5000000000,title=a\\,b";
        assert_eq!(query(text).to_string(), text);
        assert_eq!(query("last=30d").conditions(), [Condition::Last(Nanos::new(30 * 86_400_000_000_000))]);
        assert_eq!(query("goodput<=5G").conditions(), [Condition::Figure(Metric::Goodput, Operator::AtMost, 5e9)]);
        assert_eq!(query("rtt_p50>20ms").conditions(), [Condition::Figure(Metric::RttP50, Operator::Above, 20e6)]);
        assert_eq!(query("loss>=0.1%").conditions(), [Condition::Figure(Metric::Loss, Operator::AtLeast, 0.001)]);
        assert_eq!(query("since=1970-01-02").conditions(), [Condition::Since(86_400_000_000_000)]);
        assert_eq!(query("setting=name=a<b").conditions(), [Condition::Setting("name".into(), "a<b".into())]);
        for text in ["last=30d", "since=2026-11-24", "rtt_p50>20ms", "path=dtn1"] {
            assert_eq!(query(&query(text).to_string()), query(text));
        }
        assert!(query("").is_all());
    }

    #[test]
    fn invalid_queries_suggest_corrections() {
        let why = |text: &str| text.parse::<Query>().unwrap_err().to_string();
        assert!(why("hots=dtn1").starts_with("unknown key `hots`: did you mean `host`?"), "{}", why("hots=dtn1"));
        assert!(why("gooput<5G").contains("did you mean `goodput`?"));
        assert!(why("dtn1").contains("write KEY=VALUE"));
        assert!(why("goodput<5GB").contains("counts bytes"));
        assert!(why("since=yesterday").contains("2026-11-24"));
        assert!(why("verdict=gremlins").contains("docs/verdicts.md"));
        assert!(why("host=").contains("empty"));
        assert!(why("status=good").contains("complete"));
        assert!(why("setting=bbr").contains("congestion=bbr"));
    }
}
