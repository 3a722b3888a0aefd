//! Renders the list of flows.

use std::fmt::Write as _;

use landspeed_watch::FlowStatus;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::columns::{Column, addresses, since_start};
use super::keys::{FILTER_HELP, KEYS, KEYS_HELP, LIST_HELP};
use super::view::View;
use crate::text::percent;

/// Minimum screen size: columns, lines.
pub const MIN_SIZE: (usize, usize) = (60, 10);
/// Minimum width for one line per flow, columns.
const WIDE_COLUMNS: usize = 160;
/// Numeric columns omitted on narrow screens, in this order.
const OPTIONAL_COLUMNS: [Column; 3] = [Column::Queue, Column::WindowUse, Column::Cpu];
/// Lines above and below the flows.
const FIXED_LINES: (usize, usize) = (2, 1);

/// Columns of the table, and lines per flow.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    figures: Vec<Column>,
    lines: usize,
}

impl Layout {
    /// Returns the layout for a screen width.
    pub fn of(width: usize) -> Self {
        let all = Column::ALL.into_iter().filter(|column| column.is_figure());
        let taken = |figures: &[Column]| figures.iter().map(|column| column.width() + 1).sum::<usize>();
        let mut figures: Vec<Column> = all.collect();
        for column in OPTIONAL_COLUMNS {
            if taken(&figures) + Column::Process.width() + 1 > width {
                figures.retain(|figure| *figure != column);
            }
        }
        Self { figures, lines: if width >= WIDE_COLUMNS { 1 } else { 2 } }
    }

    /// Returns the number of flows that fit a screen height.
    pub fn flows(&self, height: usize) -> usize {
        (height.saturating_sub(FIXED_LINES.0 + FIXED_LINES.1) / self.lines).max(1)
    }
}

/// Colour support; NO_COLOR disables it.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    /// Whether colours are used.
    pub colors: bool,
}

impl Palette {
    /// Returns a style with this foreground colour, or without if colours are disabled.
    pub fn foreground_style(self, color: ratatui_core::style::Color) -> Style {
        if self.colors { Style::new().fg(color) } else { Style::new() }
    }
}

/// Style of headings.
pub const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
/// Style of secondary text.
pub const DIM: Style = Style::new().add_modifier(Modifier::DIM);
/// Style of the selected flow.
const SELECTED_STYLE: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Returns all lines of the screen.
pub fn lines(view: &View, width: usize, height: usize, palette: Palette) -> Vec<Line<'static>> {
    let layout = Layout::of(width);
    let rows = view.rows();
    let mut lines = vec![status(view), headings(view, &layout)];
    let fits = layout.flows(height);
    let first = view.selected() / fits * fits;
    for (place, flow) in rows.iter().enumerate().skip(first).take(fits) {
        let mut own = row(flow, &layout, width, palette);
        if place == view.selected() {
            for line in &mut own {
                let blank = width.saturating_sub(line.width());
                line.push_span(" ".repeat(blank));
                *line = std::mem::take(line).patch_style(SELECTED_STYLE);
            }
        }
        lines.append(&mut own);
    }
    if rows.is_empty() {
        let why = if view.live_status.flows.is_empty() {
            "No connection moves data."
        } else {
            "No flow matches the filter."
        };
        lines.push(Line::raw(why));
    }
    lines.resize(height.saturating_sub(FIXED_LINES.1), Line::default());
    lines.push(last_line(view, rows.len()));
    lines
}

/// Formats the status line: `5.00 s  2 of 3 connections busy; watch uses 0.59 % of a core`.
pub fn status(view: &View) -> Line<'static> {
    let live_status = &view.live_status;
    let text = format!(
        "{}  {} of {} connections busy; watch uses {} of a core",
        since_start(live_status.elapsed_ns),
        live_status.flows.len(),
        live_status.connections,
        percent(live_status.cpu_share)
    );
    let paused = if view.paused { vec![Span::styled("PAUSED", SELECTED_STYLE), Span::raw("  ")] } else { Vec::new() };
    paused.into_iter().chain([Span::raw(text)]).collect()
}

/// Returns the screen with the list of keys.
pub fn keys(height: usize) -> Vec<Line<'static>> {
    const KEY_COLUMNS: usize = 30;
    let rows = height.saturating_sub(FIXED_LINES.1);
    let line = |(key, what): &(&str, &str)| Line::raw(format!("{key:<KEY_COLUMNS$}{what}"));
    let mut lines: Vec<Line<'static>> = KEYS.iter().map(line).take(rows).collect();
    lines.resize(rows, Line::default());
    lines.push(Line::styled(KEYS_HELP, DIM));
    lines
}

fn headings(view: &View, layout: &Layout) -> Line<'static> {
    let mut line = Line::default();
    let mut add = |column: Column, width: Option<usize>| {
        let chosen = column == view.sort;
        let mark = match (chosen, view.reversed) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        let heading = column.heading();
        let text = if column.is_figure() { format!("{mark}{heading}") } else { format!("{heading}{mark}") };
        let text = match width {
            // The sort mark uses the space before a numeric column.
            Some(width) if column.is_figure() => format!("{text:>width$}", width = width + 1),
            Some(width) => format!("  {text:<width$}"),
            None => format!("  {text}"),
        };
        line.push_span(Span::styled(text, if chosen { BOLD.add_modifier(Modifier::UNDERLINED) } else { BOLD }));
    };
    for column in &layout.figures {
        add(*column, Some(column.width()));
    }
    if layout.lines == 1 {
        add(Column::Cause, Some(Column::Cause.width()));
        add(Column::Process, Some(Column::Process.width()));
        add(Column::Address, None);
    } else {
        add(Column::Process, None);
        // The sort column may have no heading in this layout.
        if matches!(view.sort, Column::Cause | Column::Address) {
            add(view.sort, None);
        }
    }
    line
}

/// Returns the lines of one flow.
fn row(flow: &FlowStatus, layout: &Layout, width: usize, palette: Palette) -> Vec<Line<'static>> {
    let mut figures = String::new();
    for column in &layout.figures {
        let _ = write!(figures, " {:>1$}", column.text(flow), column.width());
    }
    let cause = Span::styled(
        format!("  {}", fit_width(&Column::Cause.text(flow), Column::Cause.width())),
        palette.foreground_style(ratatui_core::style::Color::Cyan),
    );
    let process = Column::Process.text(flow);
    if layout.lines == 1 {
        let process = fit_width(&process, Column::Process.width());
        let begun = figures.chars().count() + cause.width() + process.chars().count() + 4;
        let address = addresses(flow, width.saturating_sub(begun));
        return vec![Line::from_iter([Span::raw(figures), cause, Span::raw(format!("  {process}  {address}"))])];
    }
    let address = addresses(flow, width.saturating_sub(cause.width() + 2));
    vec![
        Line::from(format!("{figures}  {process}")),
        Line::from_iter([cause, Span::styled(format!("  {address}"), DIM)]),
    ]
}

/// Cuts or pads a text to `width` columns.
fn fit_width(text: &str, width: usize) -> String {
    let cut: String = text.chars().take(width).collect();
    format!("{cut:<width$}")
}

fn last_line(view: &View, found: usize) -> Line<'static> {
    let all = view.live_status.flows.len();
    if view.typing {
        return Line::from_iter([
            Span::raw(format!("/{}", view.filter)),
            Span::styled("_", BOLD),
            Span::styled(format!("  {found} of {all} flows  {FILTER_HELP}"), DIM),
        ]);
    }
    if !view.filter.is_empty() {
        let filter = Span::styled(format!("/{}", view.filter), BOLD);
        return Line::from_iter([filter, Span::styled(format!("  {found} of {all} flows  Esc clear  q quit"), DIM)]);
    }
    Line::styled(LIST_HELP, DIM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_screens_omit_columns() {
        let figures = |width| Layout::of(width).figures;
        assert_eq!(figures(160).len(), 8);
        let narrow = figures(MIN_SIZE.0);
        assert!(narrow.starts_with(&[Column::Rate, Column::Rtt, Column::MinRtt, Column::Retransmits, Column::Cwnd]));
        for width in MIN_SIZE.0..200 {
            let taken: usize = figures(width).iter().map(|column| column.width() + 1).sum();
            assert!(taken < width, "{width}");
        }
    }

    #[test]
    fn a_flow_has_two_lines_unless_the_screen_is_wide() {
        assert_eq!((Layout::of(80).flows(24), Layout::of(160).flows(24)), (10, 21));
        assert_eq!(Layout::of(60).flows(10), 3);
    }
}
