//! Tasks of a cluster: which runs each one makes, what it needs, and the file that lists them.

use std::fmt::Write as _;
use std::path::Path;

use landspeed_lab::kernel::{Cache, Error, Kernel};

use crate::setup::Setup;

/// Target duration of a task, seconds: starting one takes a second or two.
const TASK_S: f64 = 30.0;
/// Tasks per core if there are enough runs, so that all cores finish at about the same time.
const TASKS_PER_CORE: usize = 4;
/// Memory of a worker in addition to its guest's, bytes.
pub const WORKER_MEMORY_BYTES: u64 = 256 << 20;

/// Groups runs into tasks. `runs` contains (index in `runs.json`, estimated seconds); each result lists the
/// indices of one task.
pub fn batches(runs: &[(usize, f64)], cores: usize) -> Vec<Vec<usize>> {
    let total_s: f64 = runs.iter().map(|(_, seconds)| seconds.max(0.01)).sum();
    let fair_s = total_s / (cores * TASKS_PER_CORE).max(1) as f64;
    let target_s = fair_s.min(TASK_S);
    let mut batches = Vec::new();
    let (mut batch, mut batch_s) = (Vec::new(), 0.0);
    for &(index, seconds) in runs {
        batch.push(index);
        batch_s += seconds.max(0.01);
        // Tolerance, so that rounding does not create one task per run.
        if batch_s >= target_s * 0.999 {
            batches.push(std::mem::take(&mut batch));
            batch_s = 0.0;
        }
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

/// Formats the task file: one line of runs per task.
pub fn lines(tasks: &[Vec<usize>]) -> String {
    tasks.iter().fold(String::new(), |mut text, runs| {
        let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "{}", runs.join(" "));
        text
    })
}

/// Returns the kernels of all cells.
pub fn kernels(setup: &Setup, cache: Option<&Path>) -> Result<Vec<Kernel>, Error> {
    let cache = Cache::open(cache)?;
    let mut ids: Vec<&str> = setup.cells.iter().filter_map(|cell| cell.kernel.as_deref()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().map(|id| cache.find_trusted(Some(id))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: usize, seconds: f64) -> Vec<(usize, f64)> {
        (0..count).map(|index| (index, seconds)).collect()
    }

    #[test]
    fn short_runs_share_a_task_and_long_ones_do_not() {
        assert_eq!(batches(&of(1000, 1.0), 2).iter().map(Vec::len).max(), Some(30));
        assert_eq!(batches(&of(16, 60.0), 2).len(), 16);
        // Few runs: several tasks per core.
        assert_eq!(batches(&of(16, 1.0), 2).len(), 8);
        assert_eq!(batches(&of(3, 1.0), 2).len(), 3);
        assert_eq!(batches(&[], 2).len(), 0);
        let all: Vec<usize> = batches(&of(1000, 0.3), 64).concat();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
    }
}
