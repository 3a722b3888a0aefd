//! What a person sees while a test runs: a small live view in a terminal, plain lines elsewhere.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Stdout};

use landspeed_flow::client::{Progress, Request, RunEvent};
use landspeed_model::{Parameters, Protocol};
use landspeed_units::{BitRate, Bytes, Nanos};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Gauge, Sparkline};
use ratatui::{Terminal, TerminalOptions, Viewport};

/// Lines of the live view.
const HEIGHT: u16 = 5;
/// How often it is drawn, nanoseconds.
const FRAME_NS: u64 = 100_000_000;
/// How often a plain line is printed, nanoseconds.
const LINE_NS: u64 = 1_000_000_000;

/// The view of one run.
pub struct View {
    mode: Mode,
    target: String,
    parameters: Parameters,
    last: Progress,
    next_ns: u64,
    up: BitRate,
    /// One entry a frame: bits/s of both directions, or transactions/s.
    rates: Vec<u64>,
}

enum Mode {
    Silent,
    Lines,
    Screen(Box<Terminal<CrosstermBackend<Stdout>>>),
}

impl View {
    /// Shows nothing.
    pub fn silent() -> Self {
        Self::with(Mode::Silent, String::new(), Parameters::default())
    }

    /// A live view if standard output is a terminal, plain lines if not.
    pub fn new(request: &Request) -> Self {
        let options = TerminalOptions { viewport: Viewport::Inline(HEIGHT) };
        let mode = if io::stdout().is_terminal() {
            Terminal::with_options(CrosstermBackend::new(io::stdout()), options)
                .map_or(Mode::Lines, |terminal| Mode::Screen(Box::new(terminal)))
        } else {
            Mode::Lines
        };
        Self::with(mode, request.target.to_string(), request.parameters.clone())
    }

    fn with(mode: Mode, target: String, parameters: Parameters) -> Self {
        Self { mode, target, parameters, last: Progress::default(), next_ns: 0, up: BitRate::ZERO, rates: Vec::new() }
    }

    /// Takes in an event.
    pub fn show(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Accepted { parameters, .. } => self.parameters = (*parameters).clone(),
            RunEvent::Mtu(_) | RunEvent::Opened(_) | RunEvent::Readings { .. } => {}
            RunEvent::Progress(progress) => self.progress(progress),
        }
    }

    fn progress(&mut self, now: &Progress) {
        let every = if matches!(self.mode, Mode::Screen(_)) { FRAME_NS } else { LINE_NS };
        if now.t_ns < self.next_ns.max(every) {
            return;
        }
        self.next_ns = (now.t_ns / every + 1) * every;
        let rate = |now: u64, before: u64, span_ns: u64| {
            BitRate::mean(Bytes::new(now.saturating_sub(before)), Nanos::new(span_ns))
        };
        // The server's count comes with its own time; between two of them the last rate stands.
        let up_span = now.uploaded_t_ns.saturating_sub(self.last.uploaded_t_ns);
        let up = rate(now.uploaded, self.last.uploaded, up_span).unwrap_or(self.up);
        let span = now.t_ns - self.last.t_ns;
        let down = rate(now.downloaded, self.last.downloaded, span).unwrap_or(BitRate::ZERO);
        let asked = now.transactions.saturating_sub(self.last.transactions);
        let transactions = (asked as f64 * 1e9 / span.max(1) as f64) as u64;
        self.up = up;
        self.last = *now;
        self.rates.push(if self.transactions() { transactions } else { up.bps() + down.bps() });
        let (uploads, downloads) = self.directions();
        match &mut self.mode {
            Mode::Silent => {}
            Mode::Lines => {
                let mut line = format!("  {:>7.1} s", now.t_ns as f64 / 1e9);
                if self.parameters.rr.is_some() {
                    println!("{line}   {transactions} transactions/s");
                    return;
                }
                if uploads {
                    let _ = write!(line, "   up {up:>12}");
                }
                if downloads {
                    let _ = write!(line, "   down {down:>12}");
                }
                println!("{line}");
            }
            Mode::Screen(_) => self.draw(up, down, transactions),
        }
    }

    fn directions(&self) -> (bool, bool) {
        let parts = self.parameters.direction.parts();
        let has = |d| parts.contains(&d);
        (has(landspeed_model::Direction::Upload), has(landspeed_model::Direction::Download))
    }

    fn transactions(&self) -> bool {
        self.parameters.rr.is_some()
    }

    fn draw(&mut self, up: BitRate, down: BitRate, transactions: u64) {
        let (uploads, downloads) = self.directions();
        let Mode::Screen(terminal) = &mut self.mode else { return };
        let p = &self.parameters;
        let kind = match p.protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::TcpRr => "TCP request/response",
            Protocol::UdpRr => "UDP request/response",
        };
        let total = p.time_ns.map(|t| t + p.omit_ns);
        let (done, label) = match (total, p.bytes) {
            (Some(total), _) => {
                let done = (self.last.t_ns as f64 / total as f64).min(1.0);
                (done, format!("{:.1} of {:.1} s", (self.last.t_ns.min(total)) as f64 / 1e9, total as f64 / 1e9))
            }
            (None, Some(bytes)) => {
                let moved = self.last.uploaded.max(self.last.downloaded);
                ((moved as f64 / bytes as f64).min(1.0), format!("{} of {}", Bytes::new(moved), Bytes::new(bytes)))
            }
            (None, None) => (0.0, String::new()),
        };
        let mut figures = Vec::new();
        if p.rr.is_some() {
            figures.push(format!("{transactions} transactions/s  ({} in all)", self.last.transactions));
        } else if uploads {
            figures.push(format!("up {up}  ({})", Bytes::new(self.last.uploaded)));
        }
        if downloads {
            figures.push(format!("down {down}  ({})", Bytes::new(self.last.downloaded)));
        }
        let title = format!(
            "landspeed  {}  {kind}  {} stream{}",
            self.target,
            p.streams,
            if p.streams == 1 { "" } else { "s" }
        );
        let rates = &self.rates;
        let _ = terminal.draw(|frame| {
            let [head, bar, figure, chart] = Layout::vertical([
                Constraint::Length(1),
                Constraint::Length(1),
                Constraint::Length(1),
                Constraint::Length(2),
            ])
            .areas(frame.area());
            frame.render_widget(Line::from(title).bold(), head);
            let gauge = Gauge::default().ratio(done).label(label).gauge_style(Style::new().fg(Color::Cyan));
            frame.render_widget(gauge, bar);
            frame.render_widget(Line::from(figures.join("    ")), figure);
            let width = chart.width as usize;
            let shown: Vec<u64> = rates.iter().rev().take(width).rev().copied().collect();
            frame.render_widget(Sparkline::default().data(&shown).style(Style::new().fg(Color::Cyan)), chart);
        });
    }

    /// Leaves the screen as it was.
    pub fn finish(mut self) {
        if let Mode::Screen(terminal) = &mut self.mode {
            let top = terminal.get_frame().area().y;
            let _ = terminal.clear();
            let _ = terminal.set_cursor_position((0, top));
            let _ = terminal.show_cursor();
        }
    }
}
