//! The full-screen view of `watch`: [`View`] has the state, [`table`] and [`page`] render it, [`keys`] maps
//! keys to actions, [`terminal`] controls the terminal.

mod columns;
mod keys;
mod page;
mod spark;
mod table;
mod terminal;
mod view;

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use landspeed_diagnose::diagnose_watched;
use landspeed_sys::clock::monotonic_ns;
use landspeed_sys::job;
use landspeed_watch::{Scope, Watch};
use ratatui_core::text::Line;
use ratatui_crossterm::crossterm::event::{self, Event};

use self::table::{Layout, MIN_SIZE, Palette};
use self::view::{Effect, View};

/// Polling interval for keys, nanoseconds; same as for the busiest flows.
pub const TICK_NS: u64 = 100_000_000;
/// Minimum time between redraws, nanoseconds.
const DRAW_NS: u64 = 250_000_000;
/// Time between updates of the figures, nanoseconds.
const UPDATE_NS: u64 = 500_000_000;
/// Maximum number of flows diagnosed per tick.
const MAX_DIAGNOSED: usize = 2;
/// Minimum time between verdicts of a new flow, nanoseconds.
const NEW_FLOW_INTERVAL_NS: u64 = 1_000_000_000;

/// The screen of a running watch.
pub struct Live {
    screen: terminal::Screen,
    view: View,
    palette: Palette,
    /// Time between verdicts of a flow, nanoseconds.
    interval_ns: u64,
    /// Time of each flow's last verdict, by socket cookie, monotonic nanoseconds.
    judged_ns: HashMap<u64, u64>,
    updated_ns: u64,
    drawn_ns: u64,
    needs_redraw: bool,
}

impl Live {
    /// Opens the screen.
    pub fn open(interval_ns: u64) -> io::Result<Self> {
        let colors = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Ok(Self {
            screen: terminal::Screen::open()?,
            view: View::default(),
            palette: Palette { colors },
            interval_ns,
            judged_ns: HashMap::new(),
            updated_ns: 0,
            drawn_ns: 0,
            needs_redraw: true,
        })
    }

    /// Processes keys and updates, and draws if due. Returns false if the user quits.
    pub fn tick(&mut self, watch: &mut Watch) -> io::Result<bool> {
        if job::stop_requested() {
            self.screen.stop()?;
            self.needs_redraw = true;
        }
        if job::continued() {
            self.screen.resume()?;
            self.needs_redraw = true;
        }
        while event::poll(Duration::ZERO)? {
            self.needs_redraw = true;
            let Event::Key(key) = event::read()? else { continue };
            match keys::action(key, self.view.typing).map(|action| self.view.apply(action)) {
                Some(Effect::Quit) => return Ok(false),
                Some(Effect::Suspend) => self.screen.stop()?,
                Some(Effect::None) | None => {}
            }
        }
        let now_ns = monotonic_ns();
        let unread = self.view.opened.as_ref().is_some_and(|opened| opened.flow.is_none());
        if !self.view.paused || unread {
            self.judge(watch, now_ns);
        }
        if !self.view.paused && now_ns.saturating_sub(self.updated_ns) >= UPDATE_NS {
            self.updated_ns = now_ns;
            self.view.update(watch.live_status());
            self.judged_ns.retain(|_, at_ns| now_ns.saturating_sub(*at_ns) < 4 * self.interval_ns);
            self.needs_redraw = true;
        }
        if self.needs_redraw && now_ns.saturating_sub(self.drawn_ns) >= DRAW_NS {
            (self.drawn_ns, self.needs_redraw) = (now_ns, false);
            self.draw()?;
        }
        Ok(true)
    }

    /// Diagnoses flows on the screen whose verdict is old, and updates the samples of the open page.
    fn judge(&mut self, watch: &mut Watch, now_ns: u64) {
        let age = |cookie: u64| {
            let flow = self.view.live_status.flows.iter().find(|flow| flow.cookie == cookie);
            flow.map_or(u64::MAX, |flow| self.view.live_status.elapsed_ns.saturating_sub(flow.since_ns))
        };
        let due = |cookie: &u64| {
            let at_ns = self.judged_ns.get(cookie);
            let opened = self.view.opened.as_ref();
            let unread = opened.is_some_and(|opened| opened.cookie == *cookie && opened.flow.is_none());
            let period_ns = age(*cookie).max(NEW_FLOW_INTERVAL_NS).min(self.interval_ns);
            unread || at_ns.is_none_or(|at_ns| now_ns.saturating_sub(*at_ns) >= period_ns)
        };
        let flows: Vec<u64> = self.view.shown().into_iter().filter(due).take(MAX_DIAGNOSED).collect();
        for cookie in flows {
            let document = watch.document(&diagnose_watched, Scope::One(cookie));
            self.judged_ns.insert(cookie, now_ns);
            if let Some(opened) = self.view.opened.as_mut().filter(|opened| opened.cookie == cookie) {
                opened.flow = document.flows.into_iter().next().or(opened.flow.take());
            }
        }
        if let Some(opened) = &mut self.view.opened {
            opened.minute = watch.minute(opened.cookie);
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let (width, height) = self.screen.size()?;
        let lines = render_screen(&mut self.view, width, height, self.palette);
        self.screen.draw(&lines)
    }
}

/// Renders the screen as lines.
fn render_screen(view: &mut View, width: usize, height: usize, palette: Palette) -> Vec<Line<'static>> {
    if width < MIN_SIZE.0 || height < MIN_SIZE.1 {
        let text = format!("Terminal too small: {width}×{height}, needs {}×{}.", MIN_SIZE.0, MIN_SIZE.1);
        return vec![Line::raw(text), Line::raw("Enlarge it, or quit with q.")];
    }
    if view.help {
        return table::keys(height);
    }
    let Some(opened) = &view.opened else {
        view.fit(Layout::of(width).flows(height), 0);
        return table::lines(view, width, height, palette);
    };
    let body = page::body(opened, view.live_status.elapsed_ns, width, palette);
    view.fit(height - page::FIXED_LINES, body.len());
    let scroll = view.opened.as_ref().map_or(0, |opened| opened.scroll);
    page::lines(view, &body, scroll, height)
}

#[cfg(test)]
mod tests;
