//! Renders the page of one flow.

use landspeed_model::{Epoch, WatchFlow, WatchRole};
use landspeed_units::{BitRate, Nanos};
use landspeed_watch::Point;
use ratatui_core::style::Color;
use ratatui_core::text::{Line, Span};

use super::keys::PAGE_HELP;
use super::spark::{bars, largest, letter, levels, moved, rates, retransmits, states};
use super::table::{BOLD, DIM, Palette, status};
use super::view::{Opened, View};
use crate::text::{Page, state_name};
use crate::watch::text;

/// Time span of the bars, nanoseconds.
const MINUTE_NS: u64 = 60_000_000_000;
/// Maximum age of the last sample for bars that end with it, nanoseconds; otherwise they end now.
const MAX_AGE_NS: u64 = 2_000_000_000;
/// Width of the labels before the bars, columns.
const MARGIN: usize = 11;
/// Width of the figures after the bars, columns.
const FIGURES: usize = 26;
/// Maximum number of bars: one per second.
const MAX_BARS: usize = 60;
/// Fixed lines: status at the top, key help at the bottom.
pub const FIXED_LINES: usize = 2;

/// Returns the scrollable lines of the page.
pub fn body(opened: &Opened, now_ns: u64, width: usize, palette: Palette) -> Vec<Line<'static>> {
    let Some(flow) = &opened.flow else { return vec![Line::raw("The flow is being judged.")] };
    let mut lines = text_lines(width, |page| text::head(flow, page));
    if let Some(first) = lines.first_mut() {
        *first = std::mem::take(first).patch_style(BOLD);
    }
    let cells = MAX_BARS.min(width.saturating_sub(MARGIN + FIGURES));
    lines.extend(sparks(opened, flow, now_ns, cells, palette));
    lines.extend(strip(flow, cells, palette));
    lines.extend(text_lines(width, |page| {
        let time = legend(flow);
        if !time.is_empty() {
            page.line("time", &time);
        }
        text::limit(flow, page);
        text::timeline(flow, usize::MAX, page);
        text::evidence(flow, page);
        text::unseen(flow, usize::MAX, page);
        page.line("next", &flow.next_step);
    }));
    lines
}

/// Formats the share of time per state with its letter: `97.0 % receive-window-limited (w), 2.1 % recovery (r)`.
fn legend(flow: &WatchFlow) -> String {
    let named = |share: &Epoch| {
        format!(
            "{:.1} % {} ({})",
            f64::from(share.share_permille) / 10.0,
            state_name(share.state),
            letter(share.state)
        )
    };
    let shares = flow.shares.iter().filter(|_| flow.role == WatchRole::Sender);
    shares.map(named).collect::<Vec<_>>().join(", ")
}

/// Returns all lines of the screen.
pub fn lines(view: &View, body: &[Line<'static>], scroll: usize, height: usize) -> Vec<Line<'static>> {
    let shown = height.saturating_sub(FIXED_LINES);
    let mut lines = vec![status(view)];
    lines.extend(body.iter().skip(scroll).take(shown).cloned());
    lines.resize(height.saturating_sub(1), Line::default());
    let left = body.len().saturating_sub(scroll + shown);
    let more = if left > 0 { format!("  {left} more lines") } else { String::new() };
    lines.push(Line::styled(format!("{PAGE_HELP}{more}"), DIM));
    lines
}

fn text_lines(width: usize, write: impl FnOnce(&mut Page)) -> Vec<Line<'static>> {
    let mut page = Page::with_width(width);
    write(&mut page);
    page.text.lines().map(|line| Line::raw(line.to_owned())).collect()
}

/// Returns bars of rate, RTT, cwnd and retransmits over the last minute.
fn sparks(opened: &Opened, flow: &WatchFlow, now_ns: u64, cells: usize, palette: Palette) -> Vec<Line<'static>> {
    // The bars end at the last sample, unless that is old. If less than a minute was recorded, they start later.
    let last_ns = opened.minute.last().map_or(now_ns, |point| point.t_ns);
    let end_ns = if now_ns.saturating_sub(last_ns) < MAX_AGE_NS { last_ns } else { now_ns };
    let moved_ns = MINUTE_NS.saturating_sub(end_ns);
    let points: Vec<Point> =
        opened.minute.iter().map(|point| Point { t_ns: point.t_ns + moved_ns, ..*point }).collect();
    let span = (end_ns + moved_ns - MINUTE_NS, end_ns + moved_ns);
    let rate = |value: f64| BitRate::from_bps((value * 8.0) as u64).to_string();
    let time = |us: f64| Nanos::from_micros(us as u64).to_string();
    let mut lines = vec![line("rate", &rates(&points, span, cells, moved(flow.role)), rate, palette)];
    lines.push(line("RTT", &levels(&points, span, cells, |point| point.rtt_us), time, palette));
    if flow.role == WatchRole::Sender {
        lines.push(line(
            "cwnd",
            &levels(&points, span, cells, |point| Some(point.cwnd)),
            |value| format!("{value:.0}"),
            palette,
        ));
        let again = rates(&points, span, cells, retransmits(&points));
        lines.push(line("retr/s", &again, |value| format!("{value:.1}"), palette));
    }
    let begin = "60 s ago";
    let scale = format!("{:MARGIN$}{begin}{:>2$}", "", "now", cells.saturating_sub(begin.len()));
    lines.push(Line::styled(scale, DIM));
    lines
}

/// Formats a line: `  rate     ▁▂▃  19.9 Mb/s, max 20.1 Mb/s`.
fn line(label: &str, values: &[Option<f64>], unit: impl Fn(f64) -> String, palette: Palette) -> Line<'static> {
    let last = values.iter().rev().flatten().next();
    let figures = last.map(|last| format!("  {}, max {}", unit(*last), unit(largest(values)))).unwrap_or_default();
    let label = format!("  {label:<width$}", width = MARGIN - 2);
    Line::from_iter([
        Span::raw(label),
        Span::styled(bars(values), palette.foreground_style(Color::Cyan)),
        Span::raw(figures),
    ])
}

/// Returns a line of letters: the states that limited the sender during the verdict's span.
fn strip(flow: &WatchFlow, cells: usize, palette: Palette) -> Option<Line<'static>> {
    let span_ns = flow.span_ns.1.saturating_sub(flow.span_ns.0);
    if flow.role == WatchRole::Receiver || span_ns == 0 {
        return None;
    }
    let states: String =
        states(&flow.shares, flow.span_ns, cells).into_iter().map(|state| state.map_or(' ', letter)).collect();
    Some(Line::from_iter([
        Span::raw(format!("  {:<width$}", "states", width = MARGIN - 2)),
        Span::styled(states, palette.foreground_style(Color::Yellow)),
        Span::raw(format!("  last {}", Nanos::new(span_ns / 1_000_000_000 * 1_000_000_000))),
    ]))
}
