//! Progress line of a sweep on a cluster.

use landspeed_experiment::slurm::ClusterProgress;
use landspeed_sys::clock;

use super::text;
use crate::terminal::Stream;

/// Interval between lines if standard error is not a terminal, nanoseconds.
const PRINT_INTERVAL_NS: u64 = 15_000_000_000;

/// The progress line.
pub struct ClusterLine {
    quiet: bool,
    terminal: bool,
    printed_ns: u64,
}

impl ClusterLine {
    pub fn new(quiet: bool) -> Self {
        Self { quiet, terminal: Stream::Err.is_terminal(), printed_ns: clock::monotonic_ns() }
    }

    /// Prints the line if an update is due.
    pub fn show(&mut self, progress: &ClusterProgress) {
        let now_ns = clock::monotonic_ns();
        if self.quiet || (!self.terminal && now_ns < self.printed_ns + PRINT_INTERVAL_NS) {
            return;
        }
        self.printed_ns = now_ns;
        let line = text::cluster(progress);
        if self.terminal {
            Stream::Err.redraw_line(&line);
        } else {
            errln!("{line}");
        }
    }

    /// Removes the line from the terminal.
    pub fn clear(&self) {
        if !self.quiet && self.terminal {
            Stream::Err.clear_line();
        }
    }
}
