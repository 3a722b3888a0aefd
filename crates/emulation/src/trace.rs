//! Rate traces in the formats of other emulators.

use landspeed_problems::Written;
use landspeed_units::{BitRate, Nanos};
use serde::Deserialize;

use crate::path::{RateChange, RateSource, RateSteps};
use crate::serialiser::{RateStep, Schedule};

/// Maximum number of steps or lines in a trace.
const MAX_STEPS: usize = 5_000_000;
/// Maximum time in a mahimahi trace, milliseconds.
const MAX_MS: u64 = 1_000_000_000;
/// Maximum rate of a step, bits/s.
const MAX_BPS: u64 = 1_000_000_000_000;
/// Maximum nesting depth of patterns.
const MAX_DEPTH: u32 = 16;

/// Parses a mahimahi trace: an integer number of milliseconds per line, ascending.
pub(crate) fn mahimahi(text: &str) -> Result<Schedule, String> {
    let mut times = Vec::new();
    let mut last_ms = 0;
    let mut gap = None;
    for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line.trim())) {
        if line.is_empty() {
            gap = gap.or(Some(number));
            continue;
        }
        if let Some(empty) = gap {
            return Err(format!("line {empty}: empty, and times follow: the trace has a gap"));
        }
        let ms: u64 = line.parse().map_err(|_| {
            let shown: String = line.chars().take(40).collect();
            format!("line {number}: `{shown}` is not a time in milliseconds")
        })?;
        if ms < last_ms {
            return Err(format!("line {number}: {ms} is before {last_ms}; times must ascend"));
        }
        if ms > MAX_MS {
            return Err(format!("line {number}: {ms} ms is out of range"));
        }
        if times.len() >= MAX_STEPS {
            return Err(format!("more than {MAX_STEPS} lines"));
        }
        times.push(ms * 1_000_000);
        last_ms = ms;
    }
    match times.last() {
        None => Err("the trace is empty".to_owned()),
        Some(0) => Err("the trace ends at 0 ms: its last time is its period".to_owned()),
        Some(_) => Ok(Schedule::Opportunities(times)),
    }
}

/// Returns a schedule from the times of a mahimahi trace, milliseconds.
pub(crate) fn opportunities(times_ms: &[u64]) -> Result<Schedule, String> {
    for (number, pair) in times_ms.windows(2).enumerate() {
        if pair[1] < pair[0] {
            return Err(format!("time {}: {} is before {}; times must ascend", number + 2, pair[1], pair[0]));
        }
    }
    match times_ms.last() {
        None => Err("the list is empty".to_owned()),
        Some(0) => Err("the list ends at 0 ms: its last time is its period".to_owned()),
        Some(last) if *last > MAX_MS || times_ms.len() > MAX_STEPS => Err("the list is too long".to_owned()),
        Some(_) => Ok(Schedule::Opportunities(times_ms.iter().map(|ms| ms * 1_000_000).collect())),
    }
}

/// Returns the rate source that a trace file's text stands for: a list of opportunities or of steps, in a file's
/// notation.
///
/// # Errors
/// Returns what is wrong, with the line.
pub fn inline_trace(source: &RateSource, text: &str) -> Result<Option<RateSource>, String> {
    let schedule = match source {
        RateSource::Mahimahi(_) => mahimahi(text)?,
        RateSource::Rattan(_) => rattan(text)?,
        RateSource::Opportunities(_) | RateSource::Steps(_) | RateSource::Fixed(_) => return Ok(None),
    };
    let change = |step: RateStep| RateChange {
        duration: Written(Nanos::new(step.duration_ns)),
        rate: Written(BitRate::from_bps(step.bps)),
    };
    Ok(Some(match schedule {
        Schedule::Opportunities(times) => {
            RateSource::Opportunities(times.into_iter().map(|ns| ns / 1_000_000).collect())
        }
        Schedule::Steps { steps, repeat } => {
            RateSource::Steps(RateSteps { steps: steps.into_iter().map(change).collect(), repeat })
        }
        Schedule::Fixed(bps) => RateSource::Fixed(Written(BitRate::from_bps(bps))),
    }))
}

/// Parses a bandwidth trace of rattan: netem-trace's JSON, with both notations of rates and durations.
pub(crate) fn rattan(text: &str) -> Result<Schedule, String> {
    let config: BwConfig = serde_json::from_str(text).map_err(|error| format!("not a bandwidth trace: {error}"))?;
    let mut steps = Vec::new();
    let repeat = config.append(&mut steps, 0)?;
    let carries =
        if repeat { steps.iter().any(|step| step.bps > 0) } else { steps.last().is_some_and(|s| s.bps > 0) };
    if !carries {
        return Err("the trace ends with a rate of 0, or is empty".to_owned());
    }
    Ok(Schedule::Steps { steps, repeat })
}

/// netem-trace's bandwidth configuration, with its serde names.
#[derive(Deserialize)]
enum BwConfig {
    #[serde(rename = "StaticBwConfig")]
    Static { bw: Option<Bandwidth>, duration: Option<Duration> },
    #[serde(rename = "RepeatedBwPatternConfig")]
    Repeated {
        pattern: Vec<BwConfig>,
        #[serde(default)]
        count: usize,
    },
    #[serde(rename = "TraceBwConfig")]
    Trace { pattern: Vec<(Duration, Vec<Bandwidth>)> },
}

#[derive(Deserialize, Clone, Copy)]
#[serde(untagged)]
enum Bandwidth {
    Parts { gbps: u64, bps: u64 },
    Text(#[serde(deserialize_with = "rate_text")] u64),
}

#[derive(Deserialize, Clone, Copy)]
#[serde(untagged)]
enum Duration {
    Parts { secs: u64, nanos: u64 },
    Text(#[serde(deserialize_with = "time_text")] u64),
}

fn rate_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    // "12Mbps" and "1.5 Gbps" are parsed as 12M and 1.5G.
    let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let rate = bare.strip_suffix("bps").unwrap_or(&bare).parse::<BitRate>();
    rate.map(BitRate::bps).map_err(serde::de::Error::custom)
}

fn time_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    // "1s 500ms": the sum of its parts.
    text.split_whitespace().try_fold(0_u64, |sum, part| {
        let time = part.parse::<Nanos>().map_err(serde::de::Error::custom)?;
        Ok(sum.saturating_add(time.get()))
    })
}

impl Bandwidth {
    fn bps(self) -> u64 {
        match self {
            Self::Parts { gbps, bps } => gbps.saturating_mul(1_000_000_000).saturating_add(bps),
            Self::Text(bps) => bps,
        }
    }
}

impl Duration {
    fn ns(self) -> u64 {
        match self {
            Self::Parts { secs, nanos } => secs.saturating_mul(1_000_000_000).saturating_add(nanos),
            Self::Text(ns) => ns,
        }
    }
}

impl BwConfig {
    /// Appends the steps of this configuration; returns whether it repeats forever.
    fn append(&self, steps: &mut Vec<RateStep>, depth: u32) -> Result<bool, String> {
        if depth > MAX_DEPTH {
            return Err(format!("patterns are nested more than {MAX_DEPTH} deep"));
        }
        let push = |bw: Bandwidth, duration: Duration, steps: &mut Vec<RateStep>| {
            let step = RateStep { duration_ns: duration.ns(), bps: bw.bps() };
            if step.bps > MAX_BPS || step.duration_ns > 86_400 * 30 * 1_000_000_000 {
                return Err("a rate above 1 Tb/s, or a time above 30 days".to_owned());
            }
            if steps.len() >= MAX_STEPS {
                return Err(format!("more than {MAX_STEPS} steps"));
            }
            if step.duration_ns > 0 {
                steps.push(step);
            }
            Ok(())
        };
        match self {
            Self::Static { bw, duration } => {
                // Defaults of netem-trace.
                let bw = bw.unwrap_or(Bandwidth::Text(12_000_000));
                push(bw, duration.unwrap_or(Duration::Text(1_000_000_000)), steps)?;
                Ok(false)
            }
            Self::Trace { pattern } => {
                for (duration, rates) in pattern {
                    for bw in rates {
                        push(*bw, *duration, steps)?;
                    }
                }
                Ok(false)
            }
            Self::Repeated { pattern, count } => {
                for _ in 0..(*count).max(1) {
                    let before = steps.len();
                    for part in pattern {
                        if part.append(steps, depth + 1)? {
                            // Parts after an infinite pattern are never reached.
                            return Ok(true);
                        }
                    }
                    // A pattern without time would be repeated up to 2^64 times.
                    if steps.len() == before {
                        break;
                    }
                }
                Ok(*count == 0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mahimahi_traces_are_lists_of_milliseconds() {
        assert_eq!(
            mahimahi("0\n5\n5\n12\n\n"),
            Ok(Schedule::Opportunities(vec![0, 5_000_000, 5_000_000, 12_000_000]))
        );
        for (text, why) in [
            ("", "the trace is empty"),
            ("0\n", "the trace ends at 0 ms: its last time is its period"),
            ("5\n\n7\n", "line 2: empty, and times follow: the trace has a gap"),
            ("5\n4\n", "line 2: 4 is before 5; times must ascend"),
            ("1\nx\n", "line 2: `x` is not a time in milliseconds"),
        ] {
            assert_eq!(mahimahi(text), Err(why.to_owned()));
        }
    }

    #[test]
    fn rattan_traces_parse_in_both_notations() {
        let human = r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":"12Mbps","duration":"1s"}},
            {"StaticBwConfig":{"bw":"24Mbps","duration":"1s 500ms"}}],"count":2}}"#;
        let plain = r#"{"RepeatedBwPatternConfig":{"pattern":[
            {"StaticBwConfig":{"bw":{"gbps":0,"bps":12000000},"duration":{"secs":1,"nanos":0}}},
            {"StaticBwConfig":{"bw":{"gbps":0,"bps":24000000},"duration":{"secs":1,"nanos":500000000}}}],"count":2}}"#;
        let a = RateStep { duration_ns: 1_000_000_000, bps: 12_000_000 };
        let b = RateStep { duration_ns: 1_500_000_000, bps: 24_000_000 };
        let expected = Schedule::Steps { steps: vec![a, b, a, b], repeat: false };
        assert_eq!(rattan(human), Ok(expected.clone()));
        assert_eq!(rattan(plain), Ok(expected));
    }

    #[test]
    fn patterns_without_time_are_not_repeated() {
        let empty = r#"{"RepeatedBwPatternConfig":{"count":18446744073709551615,"pattern":[
            {"StaticBwConfig":{"bw":"1Mbps","duration":"0s"}}]}}"#;
        let text = format!(
            r#"{{"RepeatedBwPatternConfig":{{"count":1,"pattern":[
            {{"StaticBwConfig":{{"bw":"12Mbps","duration":"1s"}}}},{empty}]}}}}"#
        );
        let step = RateStep { duration_ns: 1_000_000_000, bps: 12_000_000 };
        assert_eq!(rattan(&text), Ok(Schedule::Steps { steps: vec![step], repeat: false }));
    }

    #[test]
    fn patterns_with_count_zero_repeat_forever() {
        let text = r#"{"RepeatedBwPatternConfig":{"count":0,"pattern":[
            {"TraceBwConfig":{"pattern":[["25ms",["769k","0"]],["5ms",["1M"]]]}}]}}"#;
        let step = |ms: u64, bps| RateStep { duration_ns: ms * 1_000_000, bps };
        let steps = vec![step(25, 769_000), step(25, 0), step(5, 1_000_000)];
        assert_eq!(rattan(text), Ok(Schedule::Steps { steps, repeat: true }));
    }

    #[test]
    fn invalid_rattan_traces_are_refused() {
        for text in [
            "",
            "{}",
            "[1]",
            r#"{"StaticBwConfig":{"bw":"fast"}}"#,
            r#"{"StaticBwConfig":{"bw":"0"}}"#,
            r#"{"RepeatedBwPatternConfig":{"pattern":[],"count":1000000000000}}"#,
        ] {
            assert!(rattan(text).is_err(), "{text}");
        }
    }
}
