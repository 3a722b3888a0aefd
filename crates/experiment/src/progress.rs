//! Progress of concurrent runs, as engines report it.

/// Shows the progress of concurrent runs. Workers are numbered from 0.
pub trait Progress: Send {
    /// Adds a run of `span_ns` to the totals if `runs` exceeds the expected number.
    fn add_run(&mut self, runs: usize, span_ns: u64);
    /// Records that a worker started a run of `span_ns`.
    fn begin(&mut self, worker: usize, span_ns: u64);
    /// Updates a worker's run: time elapsed and bytes received so far.
    fn show(&mut self, worker: usize, passed_ns: u64, arrived_bytes: u64);
    /// Records that a worker finished its run.
    fn end(&mut self, worker: usize);
}
