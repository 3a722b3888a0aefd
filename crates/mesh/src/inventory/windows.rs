//! Reading of maintenance windows.

use landspeed_problems::suggest_or_list;
use toml::Spanned;

use super::read::Reader;
use super::window::{MaintenanceWindow, WindowTable, WindowTime, rfc3339};
use super::{Host, Link};

/// Names of days; 1 January 1970 was a Thursday.
const DAYS: [&str; 7] = ["thu", "fri", "sat", "sun", "mon", "tue", "wed"];

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

/// Parses a time of day, `02:00`; returns seconds after midnight.
fn time_of_day(text: &str) -> Option<u32> {
    let (hour, minute) = text.split_once(':')?;
    let number = |text: &str, below: u32| {
        let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|number| is_plain && *number < below)
    };
    Some(number(hour, 24)? * 3600 + number(minute, 60)? * 60)
}
