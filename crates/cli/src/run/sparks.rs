//! One line on a terminal, while a test runs: recent rates, RTTs and retransmits as sparklines, and the time left.

use std::collections::VecDeque;

use landspeed_flow::client::{Progress, RunEvent};
use landspeed_model::{Direction, Parameters, Protocol};
use landspeed_units::{BitRate, Bytes, Nanos};

use super::readings::{Grid, direction_progress, reading_ns};
use crate::terminal::{self, Stream};

/// Time between points, nanoseconds: the server reports five times a second.
const POINT_NS: u64 = 500_000_000;
/// Points kept, and the longest sparkline, columns.
const MAX_POINTS: usize = 24;
/// Shortest sparkline, columns: below it, figures are dropped from the end of the line.
const MIN_POINTS: usize = 4;
/// Bars from zero to the highest of the points.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Figures of a running test, in one line of a terminal.
pub struct Sparks {
    parameters: Parameters,
    grid: Grid,
    last: Progress,
    figures: Vec<Figure>,
    left: String,
    changed: bool,
    drawn: bool,
}

/// One figure over time. A point that is unknown is a gap.
struct Figure {
    label: &'static str,
    points: VecDeque<Option<f64>>,
    text: String,
}

impl Sparks {
    /// Creates the line, if standard output is a terminal that can redraw one.
    pub fn on_terminal(parameters: &Parameters) -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb");
        (Stream::Out.is_terminal() && !dumb).then(|| Self::new(parameters.clone()))
    }

    fn new(parameters: Parameters) -> Self {
        let labels: &[&str] = match (parameters.protocol, parameters.direction) {
            (Protocol::TcpRr | Protocol::UdpRr, _) => &["rate", "latency"],
            (Protocol::Tcp, Direction::Both) => &["up", "down", "RTT", "retrans"],
            (Protocol::Tcp, _) => &["goodput", "RTT", "retrans"],
            (Protocol::Udp, Direction::Both) => &["up", "down", "lost"],
            (Protocol::Udp, _) => &["goodput", "lost"],
        };
        let figure = |label: &&'static str| Figure { label, points: VecDeque::new(), text: String::new() };
        let figures = labels.iter().map(figure).collect();
        let (grid, last) = (Grid::new(POINT_NS), Progress::default());
        Self { parameters, grid, last, figures, left: String::new(), changed: false, drawn: false }
    }

    /// Adds a point when the time for one has come.
    pub fn update(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Accepted { parameters, .. } => self.parameters = (*parameters).clone(),
            RunEvent::Progress(progress) if self.grid.passes(progress.t_ns) => self.add(*progress),
            RunEvent::Progress(_)
            | RunEvent::Queued(_)
            | RunEvent::Mtu(_)
            | RunEvent::Opened(_)
            | RunEvent::Readings { .. } => {}
        }
    }

    fn add(&mut self, now: Progress) {
        self.changed = true;
        self.left = time_left(&self.parameters, &now);
        let values = values(&self.parameters, &self.last, &now);
        for (figure, value) in self.figures.iter_mut().zip(values) {
            if figure.points.len() == MAX_POINTS {
                figure.points.pop_front();
            }
            figure.text = value.as_ref().map_or_else(|| "-".to_owned(), |(_, text)| text.clone());
            figure.points.push_back(value.map(|(value, _)| value));
        }
        if reading_ns(&self.parameters, &now) > reading_ns(&self.parameters, &self.last) {
            self.last = now;
        }
    }

    /// Returns the line for a terminal of this width.
    fn line(&self, columns: usize) -> String {
        for shown in (1..=self.figures.len()).rev() {
            let figures = &self.figures[..shown];
            let fixed = |figure: &Figure| figure.label.chars().count() + figure.text.chars().count() + 4;
            let fixed = 2 + self.left.chars().count() + figures.iter().map(fixed).sum::<usize>();
            // The last column stays free: some terminals wrap there.
            let points = columns.saturating_sub(fixed + 1) / shown;
            if points < MIN_POINTS {
                continue;
            }
            let points = points.min(MAX_POINTS);
            let mut line = format!("  {}", self.left);
            for figure in figures {
                line += &format!("  {} {} {}", figure.label, sparkline(&figure.points, points), figure.text);
            }
            return line;
        }
        self.left.chars().take(columns.saturating_sub(1)).collect()
    }

    /// Draws the line, if it has changed.
    pub fn draw(&mut self) {
        if std::mem::take(&mut self.changed) {
            Stream::Out.redraw_line(&self.line(terminal::columns().unwrap_or(80)));
            self.drawn = true;
        }
    }

    /// Removes the line from the terminal.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            Stream::Out.clear_line();
            self.changed = true;
        }
    }
}

/// Returns the newest points as bars from zero to the highest of them; a gap is blank.
fn sparkline(points: &VecDeque<Option<f64>>, width: usize) -> String {
    let shown = points.iter().skip(points.len().saturating_sub(width));
    let highest = shown.clone().flatten().copied().fold(0.0, f64::max);
    let bar = |value: f64| if highest > 0.0 { ((value / highest * 8.0) as usize).min(7) } else { 0 };
    let mut text: String = shown.map(|point| point.map_or(' ', |value| BARS[bar(value)])).collect();
    text.extend(std::iter::repeat_n(' ', width.saturating_sub(points.len())));
    text
}

/// Formats the time or the share of bytes that is left.
fn time_left(parameters: &Parameters, now: &Progress) -> String {
    if let Some(bytes) = parameters.bytes {
        let parts = parameters.direction.parts();
        let moved: u64 = parts.iter().map(|direction| direction_progress(now, *direction).bytes).sum();
        let all = bytes.saturating_mul(parts.len() as u64).max(1);
        return format!("{:.0} % done", moved.min(all) as f64 * 100.0 / all as f64);
    }
    let Some(time_ns) = parameters.time_ns else { return String::new() };
    match time_ns.saturating_add(parameters.omit_ns).saturating_sub(now.t_ns) {
        0 => "draining".to_owned(),
        left_ns => format!("{} s left", left_ns.div_ceil(1_000_000_000)),
    }
}

/// Returns value and text of each figure since `last`; `None` where no new reading has arrived.
fn values(parameters: &Parameters, last: &Progress, now: &Progress) -> Vec<Option<(f64, String)>> {
    if parameters.rr.is_some() {
        let span_ns = now.transactions_t_ns.saturating_sub(last.transactions_t_ns);
        let count = now.transactions.saturating_sub(last.transactions);
        let per_s = count as f64 * 1e9 / span_ns.max(1) as f64;
        let mean_ns = now.latency_sum_ns.saturating_sub(last.latency_sum_ns).checked_div(count);
        return vec![
            (span_ns > 0).then(|| (per_s, format!("{per_s:.0}/s"))),
            mean_ns.map(|ns| (ns as f64, Nanos::new(ns).to_string())),
        ];
    }
    let parts = parameters.direction.parts();
    let of = |progress| parts.iter().map(move |direction| direction_progress(progress, *direction));
    let mut found: Vec<_> = of(last)
        .zip(of(now))
        .map(|(last, now)| {
            let span_ns = now.t_ns.saturating_sub(last.t_ns);
            let rate = BitRate::mean(Bytes::new(now.bytes.saturating_sub(last.bytes)), Nanos::new(span_ns))?;
            Some((rate.bps() as f64, rate.to_string()))
        })
        .collect();
    if parameters.protocol == Protocol::Udp {
        let lost = |progress| of(progress).map(|direction| Some(direction.udp?.lost)).sum::<Option<u64>>();
        found.push(lost(now).map(|now| {
            let lost = now.saturating_sub(lost(last).unwrap_or(0));
            (lost as f64, lost.to_string())
        }));
        return found;
    }
    // The longest RTT of both directions, and the retransmits of both.
    let rtt_us = of(now).filter_map(|direction| Some(direction.tcp?.rtt_us)).max();
    found.push(rtt_us.map(|us| (us as f64, Nanos::from_micros(us).to_string())));
    let retransmits = |progress| of(progress).map(|direction| Some(direction.tcp?.retransmits)).sum::<Option<u64>>();
    found.push(retransmits(now).map(|now| {
        let new = now.saturating_sub(retransmits(last).unwrap_or(0));
        (new as f64, new.to_string())
    }));
    found
}

#[cfg(test)]
mod tests {
    use landspeed_flow::client::{DirectionProgress, TcpState};

    use super::*;

    fn progress(t_ms: u64, bytes: u64, retransmits: u64) -> Progress {
        let tcp = Some(TcpState { retransmits, rtt_us: 20_000, cwnd_bytes: 1 << 20, silent_ms: 0 });
        let upload = DirectionProgress { t_ns: t_ms * 1_000_000, bytes, tcp, udp: None };
        Progress { t_ns: t_ms * 1_000_000, upload, ..Progress::default() }
    }

    fn running() -> Sparks {
        let mut sparks = Sparks::new(Parameters::default());
        for half in 1..=8 {
            sparks.update(&RunEvent::Progress(progress(half * 500 + 10, half * half * 1_000_000, half / 4)));
        }
        sparks
    }

    #[test]
    fn the_line_has_rate_rtt_retransmits_and_time_left() {
        let line = running().line(100);
        assert!(line.starts_with("  6 s left  goodput ▁"), "{line}");
        for part in ["240 Mb/s", "RTT ████████", "20.0 ms", "retrans ▁▁▁█▁▁▁█"] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    #[test]
    fn the_line_fits_every_terminal() {
        let sparks = running();
        for columns in [1, 10, 20, 40, 60, 80, 200] {
            let line = sparks.line(columns);
            assert!(line.chars().count() < columns.max(2), "{columns}: {line}");
        }
        assert!(!sparks.line(40).contains("retrans"), "{}", sparks.line(40));
    }

    #[test]
    fn a_missing_reading_is_a_gap_and_not_zero() {
        let mut sparks = running();
        // The server's reading stays where it was.
        let stalled = Progress { t_ns: 4_600_000_000, ..progress(4010, 64_000_000, 2) };
        sparks.update(&RunEvent::Progress(stalled));
        assert_eq!(sparks.figures[0].points.back(), Some(&None));
        assert_eq!(sparks.figures[0].text, "-");
        assert!(sparkline(&[Some(0.0), None, Some(8.0)].into(), 4).starts_with("▁ █"));
    }

    #[test]
    fn a_test_of_bytes_shows_their_share() {
        let parameters = Parameters { bytes: Some(4_000_000), time_ns: None, ..Parameters::default() };
        assert_eq!(time_left(&parameters, &progress(100, 1_000_000, 0)), "25 % done");
        assert_eq!(time_left(&Parameters::default(), &progress(10_000, 0, 0)), "draining");
    }
}
