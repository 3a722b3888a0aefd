//! What a person sees of a watch and has chosen: sorting, filter, selection, page. It knows neither keys nor the terminal.

use landspeed_model::WatchFlow;
use landspeed_watch::{FlowGlance, Glance, Point};

use super::columns::{Column, process};
use crate::text::cause_name;

/// What a person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// End the watch.
    Quit,
    /// Stop the program, as a shell's job control does.
    Suspend,
    /// Go up or down by lines.
    Move(isize),
    /// Go up or down by pages.
    Turn(isize),
    /// Go to the first or last line.
    First,
    /// The same.
    Last,
    /// Open the page of the selected flow.
    Open,
    /// Leave the page, or drop the filter.
    Back,
    /// Sort by the column to the left or right.
    Sort(isize),
    /// Sort the other way round.
    Reverse,
    /// Begin to type a filter.
    Filter,
    /// A letter of the filter.
    Letter(char),
    /// Take the filter's last letter back.
    Erase,
    /// The filter is complete.
    Accept,
    /// Pause or resume the display.
    Pause,
}

/// What the program has to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing but drawing.
    None,
    /// End the watch.
    Quit,
    /// Stop the program.
    Suspend,
}

/// The page of one flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// The kernel's number of the socket.
    pub cookie: u64,
    /// First line shown.
    pub scroll: usize,
    /// The flow with its verdict; `None` until it was judged.
    pub flow: Option<WatchFlow>,
    /// Its last minute.
    pub minute: Vec<Point>,
}

/// The state of the screen.
#[derive(Debug)]
pub struct View {
    /// The figures it shows.
    pub glance: Glance,
    /// The column it is sorted by.
    pub sort: Column,
    /// Whether the order is reversed.
    pub reversed: bool,
    /// Text that the flows shown have.
    pub filter: String,
    /// Whether the filter is being typed.
    pub typing: bool,
    /// Whether figures are left as they are.
    pub paused: bool,
    /// The page that is open.
    pub opened: Option<Opened>,
    /// Place of the selected flow in the list, and its cookie once a person has selected it: it is followed then.
    selected: (usize, Option<u64>),
    /// Flows, or lines of the page, that fit the screen.
    fits: usize,
    /// Lines of the page.
    lines: usize,
}

impl Default for View {
    fn default() -> Self {
        Self {
            glance: Glance::default(),
            sort: Column::Rate,
            reversed: false,
            filter: String::new(),
            typing: false,
            paused: false,
            opened: None,
            selected: (0, None),
            fits: 1,
            lines: 0,
        }
    }
}

impl View {
    /// Takes new figures, unless it is paused.
    pub fn update(&mut self, glance: Glance) {
        if !self.paused {
            self.glance = glance;
            self.follow();
        }
    }

    /// How much fits the screen: flows of the list, or lines of the page, which has `lines`.
    pub fn fit(&mut self, fits: usize, lines: usize) {
        (self.fits, self.lines) = (fits.max(1), lines);
        let last = self.last_scroll();
        if let Some(opened) = &mut self.opened {
            opened.scroll = opened.scroll.min(last);
        }
    }

    /// The flows that pass the filter, in order.
    pub fn rows(&self) -> Vec<&FlowGlance> {
        let mut rows: Vec<&FlowGlance> = self.glance.flows.iter().filter(|flow| self.passes(flow)).collect();
        rows.sort_by(|a, b| {
            let order = self.sort.order(a, b);
            let order = if self.reversed { order.reverse() } else { order };
            order.then_with(|| a.cookie.cmp(&b.cookie))
        });
        rows
    }

    /// Place of the selected flow in [`Self::rows`].
    pub fn selected(&self) -> usize {
        self.selected.0
    }

    /// The flows on the screen: those whose verdicts are wanted.
    pub fn shown(&self) -> Vec<u64> {
        if let Some(opened) = &self.opened {
            return vec![opened.cookie];
        }
        let first = self.selected() / self.fits * self.fits;
        self.rows().into_iter().skip(first).take(self.fits).map(|flow| flow.cookie).collect()
    }

    fn passes(&self, flow: &FlowGlance) -> bool {
        if self.filter.is_empty() {
            return true;
        }
        let wanted = self.filter.to_lowercase();
        let cause = flow.verdict.map_or("", |verdict| cause_name(verdict.cause));
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        has(&flow.local) || has(&flow.remote) || has(&process(flow)) || has(cause)
    }

    /// Does what a person wants.
    pub fn apply(&mut self, action: Action) -> Effect {
        match action {
            Action::Quit => return Effect::Quit,
            Action::Suspend => return Effect::Suspend,
            Action::Move(lines) => self.go(lines),
            Action::Turn(pages) => self.go(pages.saturating_mul(self.fits.cast_signed())),
            Action::First => self.go(isize::MIN),
            Action::Last => self.go(isize::MAX),
            Action::Open => self.open(),
            Action::Back if self.typing || self.opened.is_none() => {
                self.typing = false;
                self.filter.clear();
                self.follow();
            }
            Action::Back => self.opened = None,
            Action::Sort(columns) => {
                let here = Column::ALL.iter().position(|column| *column == self.sort).unwrap_or(0);
                let there = here.saturating_add_signed(columns).min(Column::ALL.len() - 1);
                self.sort = Column::ALL[there];
                self.reversed &= here == there;
                self.follow();
            }
            Action::Reverse => {
                self.reversed = !self.reversed;
                self.follow();
            }
            Action::Filter => self.typing = self.opened.is_none(),
            Action::Letter(letter) => {
                self.filter.push(letter);
                self.follow();
            }
            Action::Erase => {
                self.filter.pop();
                self.follow();
            }
            Action::Accept => self.typing = false,
            Action::Pause => self.paused = !self.paused,
        }
        Effect::None
    }

    fn open(&mut self) {
        let cookie = self.rows().get(self.selected()).map(|flow| flow.cookie);
        if let (Some(cookie), None) = (cookie, &self.opened) {
            self.selected.1 = Some(cookie);
            self.opened = Some(Opened { cookie, scroll: 0, flow: None, minute: Vec::new() });
        }
    }

    /// Scrolls the page, or selects another flow.
    fn go(&mut self, by: isize) {
        let last = self.last_scroll();
        if let Some(opened) = &mut self.opened {
            opened.scroll = opened.scroll.saturating_add_signed(by).min(last);
            return;
        }
        let rows = self.rows();
        let place = self.selected().saturating_add_signed(by).min(rows.len().saturating_sub(1));
        self.selected = (place, rows.get(place).map(|flow| flow.cookie));
    }

    fn last_scroll(&self) -> usize {
        self.lines.saturating_sub(self.fits)
    }

    /// Keeps the flow selected that a person selected; where it is gone, or none was, the place.
    fn follow(&mut self) {
        let rows = self.rows();
        let place = self.selected.1.and_then(|cookie| rows.iter().position(|flow| flow.cookie == cookie));
        self.selected.0 = place.unwrap_or(self.selected.0).min(rows.len().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use landspeed_model::{Cause, Confidence, WatchChange, WatchRecent, WatchRole};

    use super::*;

    fn flow(cookie: u64, bps: f64, cause: Cause) -> FlowGlance {
        FlowGlance {
            cookie,
            local: format!("192.0.2.1:{cookie}"),
            remote: format!("198.51.100.{cookie}:443"),
            role: WatchRole::Sender,
            pid: Some(100 + cookie as u32),
            command: Some(format!("nginx{cookie}")),
            uid: 0,
            since_ns: 0,
            rtt_us: (cookie != 2).then_some(1000 * cookie as u32),
            min_rtt_us: None,
            cwnd: 10,
            recent: Some(WatchRecent {
                goodput_bps: bps,
                retransmits_per_s: 0.0,
                window_use: None,
                queue_bytes: 0,
                process_cpu: None,
            }),
            verdict: Some(WatchChange { t_ns: 0, cause, confidence: Confidence::Low }),
        }
    }

    fn three() -> View {
        let mut view = View::default();
        view.fit(10, 0);
        view.update(glance([10.0, 30.0, 20.0]));
        view
    }

    fn glance(rates: [f64; 3]) -> Glance {
        let causes = [Cause::Application, Cause::NetworkLoss, Cause::SlowReader];
        let flows = (1..).zip(rates).zip(causes).map(|((cookie, bps), cause)| flow(cookie, bps, cause)).collect();
        Glance { flows, ..Glance::default() }
    }

    fn cookies(view: &View) -> Vec<u64> {
        view.rows().iter().map(|flow| flow.cookie).collect()
    }

    #[test]
    fn the_fastest_flow_stands_first_until_another_column_is_chosen() {
        let mut view = three();
        assert_eq!(cookies(&view), [2, 3, 1]);
        view.apply(Action::Sort(1));
        assert_eq!((view.sort, cookies(&view)), (Column::Rtt, vec![3, 1, 2]), "unknown figures stand last");
        view.apply(Action::Reverse);
        assert_eq!(cookies(&view), [2, 1, 3]);
        view.apply(Action::Sort(7));
        assert_eq!((view.sort, cookies(&view)), (Column::Cause, vec![1, 2, 3]));
        assert!(!view.reversed, "another column begins in its own order");
        view.apply(Action::Sort(-100));
        assert_eq!(view.sort, Column::Rate);
    }

    #[test]
    fn the_filter_looks_at_addresses_processes_and_causes() {
        let mut view = three();
        view.apply(Action::Filter);
        for (text, found) in
            [("LOSS", vec![2]), (".3:443", vec![3]), ("nginx1", vec![1]), ("[103]", vec![3]), ("no", vec![])]
        {
            text.chars().for_each(|letter| assert_eq!(view.apply(Action::Letter(letter)), Effect::None));
            assert_eq!(cookies(&view), found, "{text}");
            text.chars().for_each(|_| assert_eq!(view.apply(Action::Erase), Effect::None));
        }
        view.apply(Action::Letter('%'));
        view.apply(Action::Accept);
        assert!(!view.typing && view.rows().is_empty());
        view.apply(Action::Back);
        assert_eq!(cookies(&view).len(), 3, "Esc drops the filter");
    }

    #[test]
    fn a_selected_flow_stays_selected_when_the_order_changes() {
        let mut view = three();
        assert_eq!(view.selected(), 0);
        view.update(glance([40.0, 30.0, 20.0]));
        assert_eq!(view.selected(), 0, "without a selection the first flow is selected");
        view.apply(Action::Move(1));
        assert_eq!(cookies(&view)[view.selected()], 2);
        view.update(glance([40.0, 10.0, 20.0]));
        assert_eq!((view.selected(), cookies(&view)[view.selected()]), (2, 2));
        // It ends: the place stays.
        let mut two = glance([40.0, 10.0, 20.0]);
        two.flows.remove(1);
        view.update(two);
        assert_eq!(view.selected(), 1);
        view.update(Glance::default());
        assert_eq!(view.selected(), 0);
        view.apply(Action::Open);
        assert_eq!(view.opened, None, "there is nothing to open");
    }

    #[test]
    fn a_page_opens_for_the_selected_flow_and_esc_leads_back() {
        let mut view = three();
        view.apply(Action::Last);
        view.apply(Action::Open);
        assert_eq!(view.opened.as_ref().map(|opened| opened.cookie), Some(1));
        assert_eq!(view.shown(), [1]);
        view.fit(5, 12);
        view.apply(Action::Turn(1));
        view.apply(Action::Turn(1));
        assert_eq!(view.opened.as_ref().map(|opened| opened.scroll), Some(7), "not beyond the last line");
        view.fit(12, 12);
        assert_eq!(view.opened.as_ref().map(|opened| opened.scroll), Some(0), "a larger screen shows all");
        view.apply(Action::Filter);
        assert!(!view.typing, "a page has no filter");
        view.apply(Action::Back);
        assert_eq!((view.opened.as_ref(), view.selected()), (None, 2));
    }

    #[test]
    fn only_the_flows_on_the_screen_are_judged() {
        let mut view = three();
        view.fit(2, 0);
        assert_eq!(view.shown(), [2, 3]);
        view.apply(Action::Turn(1));
        assert_eq!(view.shown(), [1]);
    }

    #[test]
    fn a_paused_screen_keeps_its_figures_and_takes_keys() {
        let mut view = three();
        view.apply(Action::Pause);
        view.update(Glance::default());
        assert_eq!(cookies(&view), [2, 3, 1]);
        view.apply(Action::Sort(1));
        assert_eq!(cookies(&view), [3, 1, 2]);
        view.apply(Action::Pause);
        view.update(Glance::default());
        assert!(cookies(&view).is_empty());
        assert_eq!(view.apply(Action::Quit), Effect::Quit);
        assert_eq!(view.apply(Action::Suspend), Effect::Suspend);
    }
}
