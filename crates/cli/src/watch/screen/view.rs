//! State of the full-screen view: sorting, filter, selection, open page. Independent of keys and terminal.

use landspeed_model::WatchFlow;
use landspeed_watch::{FlowStatus, LiveStatus, Point};

use super::columns::{Column, process};

/// A user action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// End the watch.
    Quit,
    /// Stop the process, as Ctrl-Z does.
    Suspend,
    /// Move by lines.
    Move(isize),
    /// Move by pages.
    Turn(isize),
    /// Move to the first line.
    First,
    /// Move to the last line.
    Last,
    /// Open the page of the selected flow.
    Open,
    /// Leave the page, or clear the filter.
    Back,
    /// Sort by the column to the left or right.
    Sort(isize),
    /// Reverse the sort order.
    Reverse,
    /// Start typing a filter.
    Filter,
    /// Append a character to the filter.
    Letter(char),
    /// Delete the filter's last character.
    Erase,
    /// Finish typing the filter.
    Accept,
    /// Pause or resume the display.
    Pause,
    /// Show the list of keys.
    Help,
}

/// Consequence of an action for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Only redraw.
    None,
    /// End the watch.
    Quit,
    /// Stop the process until it is continued.
    Suspend,
}

/// The page of one flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// Socket cookie.
    pub cookie: u64,
    /// Index of the first visible line.
    pub scroll: usize,
    /// The flow with its verdict; `None` until the first verdict.
    pub flow: Option<WatchFlow>,
    /// Samples of the last minute.
    pub minute: Vec<Point>,
}

/// The state of the screen.
#[derive(Debug)]
pub struct View {
    /// The displayed figures.
    pub live_status: LiveStatus,
    /// The sort column.
    pub sort: Column,
    /// Whether the order is reversed.
    pub reversed: bool,
    /// Only flows that contain this text are listed; empty lists all.
    pub filter: String,
    /// Whether the filter is being typed.
    pub typing: bool,
    /// Whether updates are paused.
    pub paused: bool,
    /// Whether the list of keys is shown.
    pub help: bool,
    /// The open page; `None` shows the list.
    pub opened: Option<Opened>,
    /// Index of the selected flow, and its cookie if the user selected it: the selection then follows the flow.
    selected: (usize, Option<u64>),
    /// Number of flows, or lines of the page, that fit the screen.
    fits: usize,
    /// Number of lines of the page.
    lines: usize,
}

impl Default for View {
    fn default() -> Self {
        Self {
            live_status: LiveStatus::default(),
            sort: Column::Rate,
            reversed: false,
            filter: String::new(),
            typing: false,
            paused: false,
            help: false,
            opened: None,
            selected: (0, None),
            fits: 1,
            lines: 0,
        }
    }
}

impl View {
    /// Updates the figures, unless paused.
    pub fn update(&mut self, live_status: LiveStatus) {
        if !self.paused {
            self.live_status = live_status;
            self.follow();
        }
    }

    /// Sets how many flows or lines of the page fit the screen, and the page's number of lines.
    pub fn fit(&mut self, fits: usize, lines: usize) {
        (self.fits, self.lines) = (fits.max(1), lines);
        let last = self.last_scroll();
        if let Some(opened) = &mut self.opened {
            opened.scroll = opened.scroll.min(last);
        }
    }

    /// Returns the flows that match the filter, in sort order.
    pub fn rows(&self) -> Vec<&FlowStatus> {
        let mut rows: Vec<&FlowStatus> = self.live_status.flows.iter().filter(|flow| self.passes(flow)).collect();
        rows.sort_by(|a, b| {
            let order = self.sort.order(a, b);
            let order = if self.reversed { order.reverse() } else { order };
            order.then_with(|| a.cookie.cmp(&b.cookie))
        });
        rows
    }

    /// Returns the index of the selected flow in [`Self::rows`].
    pub fn selected(&self) -> usize {
        self.selected.0
    }

    /// Returns the cookies of the flows on the screen, which need verdicts.
    pub fn shown(&self) -> Vec<u64> {
        if let Some(opened) = &self.opened {
            return vec![opened.cookie];
        }
        let first = self.selected() / self.fits * self.fits;
        self.rows().into_iter().skip(first).take(self.fits).map(|flow| flow.cookie).collect()
    }

    fn passes(&self, flow: &FlowStatus) -> bool {
        if self.filter.is_empty() {
            return true;
        }
        let wanted = self.filter.to_lowercase();
        let cause = flow.verdict.map_or("", |verdict| verdict.cause.phrase());
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        has(&flow.local) || has(&flow.remote) || has(&process(flow)) || has(cause)
    }

    /// Performs a user action.
    pub fn apply(&mut self, action: Action) -> Effect {
        let helped = std::mem::take(&mut self.help);
        match action {
            Action::Quit => return Effect::Quit,
            Action::Suspend => return Effect::Suspend,
            // Any key leaves the list of keys.
            _ if helped => {}
            Action::Help => self.help = true,
            Action::Move(lines) => self.move_by(lines),
            Action::Turn(pages) => self.move_by(pages.saturating_mul(self.fits.cast_signed())),
            Action::First => self.move_by(isize::MIN),
            Action::Last => self.move_by(isize::MAX),
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
    fn move_by(&mut self, by: isize) {
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

    /// Updates the index of the selected flow. If the flow is gone or none was selected, the index stays.
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

    fn flow(cookie: u64, bps: f64, cause: Cause) -> FlowStatus {
        FlowStatus {
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
            cwnd: Some(10),
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
        view.update(live_status([10.0, 30.0, 20.0]));
        view
    }

    fn live_status(rates: [f64; 3]) -> LiveStatus {
        let causes = [Cause::Application, Cause::NetworkLoss, Cause::SlowReader];
        let flows = (1..).zip(rates).zip(causes).map(|((cookie, bps), cause)| flow(cookie, bps, cause)).collect();
        LiveStatus { flows, ..LiveStatus::default() }
    }

    fn cookies(view: &View) -> Vec<u64> {
        view.rows().iter().map(|flow| flow.cookie).collect()
    }

    #[test]
    fn flows_are_sorted_by_rate_until_changed() {
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
    fn filter_matches_addresses_processes_and_causes() {
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
        view.update(live_status([40.0, 30.0, 20.0]));
        assert_eq!(view.selected(), 0, "without a selection the first flow is selected");
        view.apply(Action::Move(1));
        assert_eq!(cookies(&view)[view.selected()], 2);
        view.update(live_status([40.0, 10.0, 20.0]));
        assert_eq!((view.selected(), cookies(&view)[view.selected()]), (2, 2));
        // The selected flow has ended: the index stays.
        let mut two = live_status([40.0, 10.0, 20.0]);
        two.flows.remove(1);
        view.update(two);
        assert_eq!(view.selected(), 1);
        view.update(LiveStatus::default());
        assert_eq!(view.selected(), 0);
        view.apply(Action::Open);
        assert_eq!(view.opened, None, "there is nothing to open");
    }

    #[test]
    fn enter_opens_the_selected_flow_and_esc_returns() {
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
    fn any_key_leaves_the_list_of_keys() {
        let mut view = three();
        for action in [Action::Back, Action::Help, Action::Open] {
            view.apply(Action::Help);
            assert!(view.help);
            assert_eq!(view.apply(action), Effect::None);
            assert!(!view.help && view.opened.is_none());
        }
        view.apply(Action::Help);
        assert_eq!(view.apply(Action::Quit), Effect::Quit);
    }

    #[test]
    fn only_visible_flows_need_verdicts() {
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
        view.update(LiveStatus::default());
        assert_eq!(cookies(&view), [2, 3, 1]);
        view.apply(Action::Sort(1));
        assert_eq!(cookies(&view), [3, 1, 2]);
        view.apply(Action::Pause);
        view.update(LiveStatus::default());
        assert!(cookies(&view).is_empty());
        assert_eq!(view.apply(Action::Quit), Effect::Quit);
        assert_eq!(view.apply(Action::Suspend), Effect::Suspend);
    }
}
