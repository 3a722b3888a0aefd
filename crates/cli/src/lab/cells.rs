//! Cells in parallel, each in its own guest, with a line of progress.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use landspeed_lab::boot::Core;
use landspeed_lab::cell::{self, Ready, Setting};
use landspeed_lab::guest::Progress;
use landspeed_model::LabDocument;
use landspeed_sys::clock;
use landspeed_units::{BitRate, Bytes, Nanos};

use super::run::duration;

/// How often the line is drawn on a terminal, nanoseconds.
const DRAW_NS: u64 = 200_000_000;
/// How often a line is printed elsewhere, nanoseconds.
const PRINT_NS: u64 = 15_000_000_000;
/// Minimum virtual time that a shown rate covers.
const RATE_SPAN_NS: i64 = 1_000_000_000;

/// Runs every cell, `jobs` at a time. Returns their documents in order, and the real time in seconds. An interrupt ends the
/// running cells and starts no more.
pub fn run(
    ready: Vec<Ready>,
    jobs: usize,
    setting: &Setting<'_>,
    interrupted: &AtomicBool,
    quiet: bool,
) -> (Vec<LabDocument>, f64) {
    let start_ns = clock::monotonic_ns();
    let spans: Vec<u64> = ready.iter().map(|cell| cell.plan.span_ns + cell.plan.lead_ns).collect();
    let board = Mutex::new(Board::new(&spans, jobs, start_ns, quiet));
    let waiting = Mutex::new(ready.into_iter().enumerate().collect::<std::collections::VecDeque<_>>());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..jobs {
            let (board, waiting, done) = (&board, &waiting, &done);
            scope.spawn(move || {
                // Held until the worker ends. Without a free core, the scheduler places the guest.
                let core = Core::claim();
                core.iter().for_each(Core::keep_to);
                while let Some((index, cell)) = lock(waiting).pop_front() {
                    lock(board).begin(worker, index);
                    let lead_ns = cell.plan.lead_ns;
                    let document = cell::run(cell, setting, interrupted, &mut |progress, _| {
                        lock(board).show(worker, progress, lead_ns);
                    });
                    lock(board).end(worker, index);
                    lock(done).push((index, document));
                }
            });
        }
    });
    lock(&board).clear();
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    let wall_s = (clock::monotonic_ns() - start_ns) as f64 / 1e9;
    (done.into_iter().map(|(_, document)| document).collect(), wall_s)
}

/// A poisoned lock only means that a worker panicked while it drew.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The line of progress.
struct Board {
    spans: Vec<u64>,
    total_ns: u64,
    done_ns: u64,
    finished: usize,
    /// State of each worker's cell.
    working: Vec<Option<Working>>,
    start_ns: u64,
    next_ns: u64,
    every_ns: Option<u64>,
    drawn: bool,
}

#[derive(Clone, Copy)]
struct Working {
    cell: usize,
    passed_ns: u64,
    seen_bytes: u64,
    last: Progress,
    rate: BitRate,
}

impl Board {
    fn new(spans: &[u64], jobs: usize, start_ns: u64, quiet: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        Self {
            spans: spans.to_vec(),
            total_ns: spans.iter().sum(),
            done_ns: 0,
            finished: 0,
            working: vec![None; jobs],
            start_ns,
            next_ns: start_ns + if terminal { 0 } else { PRINT_NS },
            every_ns: (!quiet).then_some(if terminal { DRAW_NS } else { PRINT_NS }),
            drawn: false,
        }
    }

    fn begin(&mut self, worker: usize, cell: usize) {
        self.working[worker] =
            Some(Working { cell, passed_ns: 0, seen_bytes: 0, last: Progress::default(), rate: BitRate::ZERO });
    }

    fn end(&mut self, worker: usize, cell: usize) {
        self.working[worker] = None;
        self.done_ns += self.spans[cell];
        self.finished += 1;
    }

    fn show(&mut self, worker: usize, progress: &Progress, lead_ns: u64) {
        if let Some(working) = &mut self.working[worker] {
            working.passed_ns = progress.t_ns.saturating_add_unsigned(lead_ns).max(0) as u64;
            let span_ns = progress.t_ns.saturating_sub(working.last.t_ns);
            // Byte counts arrive every 0.2 s of virtual time, so a rate needs a span much longer than that.
            let is_new = std::mem::replace(&mut working.seen_bytes, progress.arrived_bytes) != progress.arrived_bytes;
            if span_ns >= if is_new { RATE_SPAN_NS } else { 2 * RATE_SPAN_NS } {
                let bytes = progress.arrived_bytes.saturating_sub(working.last.arrived_bytes);
                working.rate = BitRate::mean(Bytes::new(bytes), Nanos::new(span_ns as u64)).unwrap_or_default();
                working.last = *progress;
            }
        }
        let now_ns = clock::monotonic_ns();
        let Some(every_ns) = self.every_ns else { return };
        if now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns + every_ns;
        let line = self.line(now_ns);
        let mut out = io::stderr().lock();
        if every_ns == DRAW_NS {
            // Carriage return, and erase to the end of the line (ECMA-48 EL).
            let _ = write!(out, "\r{line}\x1b[K");
            let _ = out.flush();
            self.drawn = true;
        } else {
            let _ = writeln!(out, "{line}");
        }
    }

    fn line(&self, now_ns: u64) -> String {
        let running: u64 = self.working.iter().flatten().map(|w| w.passed_ns.min(self.spans[w.cell])).sum();
        let (passed, wall_s) = (self.done_ns + running, (now_ns - self.start_ns) as f64 / 1e9);
        let left = (passed > self.total_ns / 50)
            .then(|| wall_s * (self.total_ns.saturating_sub(passed)) as f64 / passed.max(1) as f64);
        let left = left.map(|s| format!(", about {} left", duration(s))).unwrap_or_default();
        let cells = match self.spans.len() {
            1 => String::new(),
            n => format!("{} of {n} cells done, ", self.finished),
        };
        let rate = self.working.iter().flatten().next().map(|w| format!(", {}", w.rate)).unwrap_or_default();
        format!(
            "{cells}{:.2} of {:.2} s of virtual time{rate}, {} elapsed{left}",
            passed as f64 / 1e9,
            self.total_ns as f64 / 1e9,
            duration(wall_s)
        )
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            eprint!("\r\x1b[K");
        }
    }
}
