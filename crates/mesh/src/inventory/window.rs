//! Maintenance windows: times at which hosts or links are not tested.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use crate::budget::DAY_NS;

const S_NS: i64 = 1_000_000_000;
const DAY_S: i64 = 86_400;

/// A maintenance window as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WindowTable {
    #[serde(default)]
    pub hosts: Vec<Spanned<String>>,
    #[serde(default)]
    pub links: Vec<Spanned<String>>,
    pub from: Spanned<String>,
    pub until: Spanned<String>,
    pub days: Option<Spanned<Vec<Spanned<String>>>>,
}

/// A time at which some hosts and links are not tested.
#[derive(Debug, Clone, PartialEq)]
pub struct MaintenanceWindow {
    /// Indices of the hosts; with `links` empty, too, the window applies to all.
    pub hosts: Vec<usize>,
    /// Indices of the links.
    pub links: Vec<usize>,
    /// When the window is open.
    pub time: WindowTime,
}

/// Time of a window, on the wall clock in UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowTime {
    /// Once, from and until these times, nanoseconds since the Unix epoch.
    Once(i64, i64),
    /// Every week, on the days that are true (from Thursday on), from and until these seconds after midnight; a window
    /// whose end is not after its begin ends on the next day.
    Weekly([bool; 7], u32, u32),
}

impl MaintenanceWindow {
    /// Returns when the last window ends that overlaps a span of the wall clock, nanoseconds since the Unix epoch; `None`
    /// if no window overlaps it.
    pub fn overlap_end_ns(&self, span: &Range<i64>) -> Option<i64> {
        let overlaps = |from: i64, until: i64| (from < span.end && until > span.start).then_some(until);
        match &self.time {
            WindowTime::Once(from, until) => overlaps(*from, *until),
            WindowTime::Weekly(days, from_s, until_s) => {
                let day_ns = DAY_NS as i64;
                let (first, last) = (span.start.div_euclid(day_ns) - 1, span.end.div_euclid(day_ns));
                // A span is a test, which takes at most hours.
                let begins = (first..=last.min(first + 40)).filter(|day| days[day.rem_euclid(7) as usize]);
                begins
                    .filter_map(|day| {
                        let begin = day * day_ns + i64::from(*from_s) * S_NS;
                        let length_s = i64::from(*until_s) - i64::from(*from_s);
                        let length_s = if length_s > 0 { length_s } else { length_s + DAY_S };
                        overlaps(begin, begin + length_s * S_NS)
                    })
                    .max()
            }
        }
    }

    /// Whether the window applies to a test that uses these hosts and links.
    pub fn applies_to(&self, hosts: &[usize], links: &[usize]) -> bool {
        (self.hosts.is_empty() && self.links.is_empty())
            || self.hosts.iter().any(|host| hosts.contains(host))
            || self.links.iter().any(|link| links.contains(link))
    }
}

/// Parses an RFC 3339 time in UTC; returns nanoseconds since the Unix epoch.
pub fn rfc3339(text: &str) -> Option<i64> {
    let time = humantime::parse_rfc3339(text).ok()?;
    i64::try_from(time.duration_since(std::time::UNIX_EPOCH).ok()?.as_nanos()).ok()
}
