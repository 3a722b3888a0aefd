//! Maintenance windows: times at which hosts or links are not tested.

use std::ops::Range;

use landspeed_problems::suggest_or_list;
use serde::Deserialize;
use toml::Spanned;

use super::read::Reader;
use super::{Host, Link};
use crate::budget::DAY_NS;

const S_NS: i64 = 1_000_000_000;
const DAY_S: i64 = 86_400;
/// Names of days; 1 January 1970 was a Thursday.
const DAYS: [&str; 7] = ["thu", "fri", "sat", "sun", "mon", "tue", "wed"];

/// A maintenance window as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WindowTable {
    #[serde(default)]
    hosts: Vec<Spanned<String>>,
    #[serde(default)]
    links: Vec<Spanned<String>>,
    from: Spanned<String>,
    until: Spanned<String>,
    days: Option<Spanned<Vec<Spanned<String>>>>,
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

/// Parses a time of day, `02:00`; returns seconds after midnight.
fn time_of_day(text: &str) -> Option<u32> {
    let (hour, minute) = text.split_once(':')?;
    let number = |text: &str, below: u32| {
        let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|number| is_plain && *number < below)
    };
    Some(number(hour, 24)? * 3600 + number(minute, 60)? * 60)
}

impl Reader<'_> {
    /// Converts a window; refuses bad times and unknown names.
    pub(super) fn window(
        &mut self,
        number: usize,
        table: Spanned<WindowTable>,
        hosts: &[Host],
        links: &[Link],
    ) -> Option<MaintenanceWindow> {
        let key = format!("maintenance.{number}");
        let WindowTable { hosts: of_hosts, links: of_links, from, until, days } = table.into_inner();
        let of_hosts =
            self.find_all(&format!("{key}.hosts"), &of_hosts, "host", &hosts.iter().map(|host| host.name.as_str()));
        let of_links =
            self.find_all(&format!("{key}.links"), &of_links, "link", &links.iter().map(|link| link.name.as_str()));
        let time = match (time_of_day(from.get_ref()), time_of_day(until.get_ref())) {
            (Some(from), Some(until)) => WindowTime::Weekly(self.days(&key, days), from, until),
            (None, None) => {
                if let Some(days) = days {
                    let message = "`days` has no meaning with dates";
                    self.refuse(days.span(), &format!("{key}.days"), message, "remove it".to_owned());
                }
                let [from_ns, until_ns] = [("from", &from), ("until", &until)].map(|(name, text)| {
                    let ns = rfc3339(text.get_ref());
                    if ns.is_none() {
                        let message = format!("`{}` is not a time", text.get_ref());
                        let hint = "write \"02:00\" (UTC, every day) or \"2026-12-24T22:00:00Z\"".to_owned();
                        self.refuse(text.span(), &format!("{key}.{name}"), message, hint);
                    }
                    ns
                });
                let (from_ns, until_ns) = (from_ns?, until_ns?);
                if until_ns <= from_ns {
                    let message = "the window ends before it begins";
                    self.refuse(until.span(), &format!("{key}.until"), message, "exchange the times".to_owned());
                }
                WindowTime::Once(from_ns, until_ns)
            }
            _ => {
                let message = "one of the times has a date and the other has none";
                let hint = "give both as \"02:00\" or both as \"2026-12-24T22:00:00Z\"".to_owned();
                self.refuse(until.span(), &format!("{key}.until"), message, hint);
                return None;
            }
        };
        Some(MaintenanceWindow { hosts: of_hosts, links: of_links, time })
    }

    fn days(&mut self, key: &str, days: Option<Spanned<Vec<Spanned<String>>>>) -> [bool; 7] {
        let Some(days) = days else { return [true; 7] };
        let mut open = [false; 7];
        for day in days.get_ref() {
            if let Some(at) = DAYS.iter().position(|name| name == day.get_ref()) {
                open[at] = true;
            } else {
                let hint = suggest_or_list(day.get_ref(), DAYS);
                let message = format!("unknown day `{}`", day.get_ref());
                self.refuse(day.span(), &format!("{key}.days"), message, hint);
            }
        }
        if days.get_ref().is_empty() {
            let hint = "name days, or remove `days`".to_owned();
            self.refuse(days.span(), &format!("{key}.days"), "the list is empty", hint);
        }
        open
    }
}
