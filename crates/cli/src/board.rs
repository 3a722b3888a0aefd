//! Progress line for several concurrent runs.

use landspeed_experiment::progress::Progress;
use landspeed_sys::clock;
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::terminal::Stream;

/// Interval between updates on a terminal, nanoseconds.
const DRAW_INTERVAL_NS: u64 = 200_000_000;
/// Interval between lines where standard error is not a terminal, nanoseconds.
const PRINT_INTERVAL_NS: u64 = 15_000_000_000;
/// Minimum span over which a displayed rate is measured, nanoseconds.
const RATE_SPAN_NS: u64 = 1_000_000_000;

/// Runs with a longer estimate need `--yes`, seconds of real time.
pub const CONFIRM_S: f64 = 600.0;

/// Nouns in the progress line.
#[derive(Debug, Clone, Copy)]
pub struct Nouns {
    /// Noun for the runs: `cells`, `runs`.
    pub runs: &'static str,
    /// Kind of the time that is counted: ` of virtual time`.
    pub time: &'static str,
}

/// The progress line.
pub struct ProgressLine {
    nouns: Nouns,
    runs: usize,
    total_ns: u64,
    done_ns: u64,
    finished: usize,
    /// State of each worker's current run.
    working: Vec<Option<RunProgress>>,
    start_ns: u64,
    next_ns: u64,
    every_ns: Option<u64>,
    drawn: bool,
}

#[derive(Clone, Copy)]
struct RunProgress {
    span_ns: u64,
    passed_ns: u64,
    seen_bytes: u64,
    last_ns: u64,
    last_bytes: u64,
    rate: BitRate,
}

impl ProgressLine {
    /// Creates the progress line for `jobs` workers; [`ProgressLine::expect`] sets the totals.
    pub fn new(nouns: Nouns, jobs: usize, quiet: bool) -> Self {
        let terminal = Stream::Err.is_terminal();
        let start_ns = clock::monotonic_ns();
        Self {
            nouns,
            runs: 0,
            total_ns: 0,
            done_ns: 0,
            finished: 0,
            working: vec![None; jobs],
            start_ns,
            next_ns: start_ns + if terminal { 0 } else { PRINT_INTERVAL_NS },
            every_ns: (!quiet).then_some(if terminal { DRAW_INTERVAL_NS } else { PRINT_INTERVAL_NS }),
            drawn: false,
        }
    }

    /// Sets the number of expected runs and their total duration.
    pub fn expect(&mut self, runs: usize, total_ns: u64) {
        self.runs = runs;
        self.total_ns = total_ns;
    }

    /// Duration of all runs: of those that began as it is, of the others as it was estimated.
    fn total_ns(&self) -> u64 {
        let working = || self.working.iter().flatten();
        let begun_ns = self.done_ns + working().map(|run| run.span_ns).sum::<u64>();
        let left = self.runs.saturating_sub(self.finished + working().count()) as u64;
        begun_ns + left * (self.total_ns / self.runs.max(1) as u64)
    }

    fn line(&self, now_ns: u64) -> String {
        let total_ns = self.total_ns();
        let running: u64 = self.working.iter().flatten().map(|w| w.passed_ns.min(w.span_ns)).sum();
        let (passed, wall_s) = (self.done_ns + running, (now_ns - self.start_ns) as f64 / 1e9);
        let left = (passed > total_ns / 50)
            .then(|| wall_s * (total_ns.saturating_sub(passed)) as f64 / passed.max(1) as f64);
        let left = left.map(|s| format!(", about {} left", duration(s))).unwrap_or_default();
        let runs = match self.runs {
            1 => String::new(),
            n => format!("{} of {n} {} done, ", self.finished, self.nouns.runs),
        };
        let rate = self.working.iter().flatten().next().filter(|working| working.rate > BitRate::ZERO);
        let rate = rate.map(|working| format!(", {}", working.rate)).unwrap_or_default();
        format!(
            "{runs}{:.2} of {:.2} s{}{rate}, {} elapsed{left}",
            passed as f64 / 1e9,
            total_ns as f64 / 1e9,
            self.nouns.time,
            duration(wall_s)
        )
    }

    /// Removes the line from the terminal.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            Stream::Err.clear_line();
        }
    }
}

impl Progress for ProgressLine {
    fn add_run(&mut self, runs: usize, span_ns: u64) {
        if runs > self.runs {
            self.runs = runs;
            self.total_ns += span_ns;
        }
    }

    fn begin(&mut self, worker: usize, span_ns: u64) {
        self.working[worker] = Some(RunProgress {
            span_ns,
            passed_ns: 0,
            seen_bytes: 0,
            last_ns: 0,
            last_bytes: 0,
            rate: BitRate::ZERO,
        });
    }

    fn end(&mut self, worker: usize) {
        if let Some(working) = self.working[worker].take() {
            self.done_ns += working.span_ns;
            self.finished += 1;
        }
    }

    fn show(&mut self, worker: usize, passed_ns: u64, arrived_bytes: u64) {
        if let Some(working) = &mut self.working[worker] {
            working.passed_ns = passed_ns;
            let span_ns = passed_ns.saturating_sub(working.last_ns);
            // Byte counts arrive every 0.2 s; a rate needs a much longer span.
            let is_new = std::mem::replace(&mut working.seen_bytes, arrived_bytes) != arrived_bytes;
            if span_ns >= if is_new { RATE_SPAN_NS } else { 2 * RATE_SPAN_NS } {
                let bytes = arrived_bytes.saturating_sub(working.last_bytes);
                working.rate = BitRate::mean(Bytes::new(bytes), Nanos::new(span_ns)).unwrap_or_default();
                (working.last_ns, working.last_bytes) = (passed_ns, arrived_bytes);
            }
        }
        let now_ns = clock::monotonic_ns();
        let Some(every_ns) = self.every_ns else { return };
        if now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns + every_ns;
        let line = self.line(now_ns);
        if every_ns == DRAW_INTERVAL_NS {
            Stream::Err.redraw_line(&line);
            self.drawn = true;
        } else {
            errln!("{line}");
        }
    }
}

/// Formats a duration in seconds, minutes or hours.
pub fn duration(seconds: f64) -> String {
    match seconds.round() as u64 {
        s if s < 60 => format!("{s} s"),
        s if s < 5400 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_does_not_exceed_its_total() {
        let mut board = ProgressLine::new(Nouns { runs: "runs", time: "" }, 2, true);
        // The runs take longer than estimated.
        board.expect(3, 3_000_000_000);
        let line = |board: &ProgressLine| board.line(board.start_ns);
        for (worker, ends) in [(0, false), (1, true), (0, true), (1, true)] {
            if board.working[worker].is_none() {
                board.begin(worker, 2_000_000_000);
            }
            board.show(worker, 9_000_000_000, 0);
            if ends {
                board.end(worker);
            }
            let passed =
                board.done_ns + board.working.iter().flatten().map(|w| w.passed_ns.min(w.span_ns)).sum::<u64>();
            assert!(passed <= board.total_ns(), "{}", line(&board));
        }
        assert!(line(&board).starts_with("3 of 3 runs done, 6.00 of 6.00 s"), "{}", line(&board));
    }
}
