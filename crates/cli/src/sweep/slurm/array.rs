//! Assigns runs to tasks of job arrays and tracks their state. Uses no processes, files or clocks.

use std::collections::BTreeMap;

use super::tools::QueuedTask;

/// Target duration of a task, seconds: starting one takes a second or two.
const TASK_S: f64 = 30.0;
/// Tasks per core if there are enough runs, so that all cores finish at about the same time.
const TASKS_PER_CORE: usize = 4;
/// Number of attempts before a run counts as failed.
pub const MAX_ATTEMPTS: u32 = 3;
/// Number of consecutive polls without a task before it counts as gone: its files may appear later than the end
/// in the queue.
const MAX_ABSENT_POLLS: u32 = 3;

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

/// A submitted job array.
#[derive(Debug, Clone)]
pub struct Array {
    /// Slurm's job id.
    pub job: String,
    tasks: Vec<Task>,
}

#[derive(Debug, Clone)]
struct Task {
    /// Runs whose documents are missing.
    missing: Vec<usize>,
    /// Consecutive polls in which the task was not in the queue.
    absent: u32,
    last: LastState,
    /// The task is abandoned; its runs were reassigned.
    over: bool,
}

/// State of a task in the last poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastState {
    Pending,
    Running,
    /// Completing, or being requeued (`CG`).
    Completing,
}

impl LastState {
    fn of(state: &str) -> Self {
        match state {
            "PD" => Self::Pending,
            "CG" => Self::Completing,
            _ => Self::Running,
        }
    }
}

/// Changes found in one poll of the queue.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct QueueChanges {
    /// Ended tasks and those of their runs that have no document.
    pub lost: Vec<(usize, Vec<usize>)>,
    /// Held tasks, which should be cancelled.
    pub held: Vec<usize>,
    /// Number of tasks that Slurm requeued.
    pub restarted: u32,
}

impl Array {
    /// Creates an array with one task per batch.
    pub fn new(job: String, batches: Vec<Vec<usize>>) -> Self {
        let task = |missing| Task { missing, absent: 0, last: LastState::Pending, over: false };
        Self { job, tasks: batches.into_iter().map(task).collect() }
    }

    /// Records that the document of a run exists.
    pub fn record_done(&mut self, index: usize) {
        self.tasks.iter_mut().for_each(|task| task.missing.retain(|&missing| missing != index));
    }

    /// Returns the runs whose documents are still expected.
    pub fn missing(&self) -> impl Iterator<Item = usize> {
        self.tasks.iter().filter(|task| !task.over).flat_map(|task| task.missing.iter().copied())
    }

    /// Whether no document is expected any more.
    pub fn is_over(&self) -> bool {
        self.missing().next().is_none()
    }

    /// Updates the tasks from the queue and returns the changes.
    pub fn refresh(&mut self, queue: &[QueuedTask]) -> QueueChanges {
        let queued: BTreeMap<usize, &QueuedTask> = queue.iter().map(|task| (task.index, task)).collect();
        let mut seen = QueueChanges::default();
        for (index, task) in self.tasks.iter_mut().enumerate() {
            if task.over || task.missing.is_empty() {
                continue;
            }
            match queued.get(&index) {
                Some(queued) if queued.is_held() => {
                    seen.held.push(index);
                    task.absent = MAX_ABSENT_POLLS;
                }
                Some(queued) => {
                    task.absent = 0;
                    let now = LastState::of(&queued.state);
                    // It may have been pending between two polls.
                    let restarted = match task.last {
                        LastState::Pending => false,
                        LastState::Running => now == LastState::Pending,
                        LastState::Completing => now != LastState::Completing,
                    };
                    seen.restarted += u32::from(restarted);
                    task.last = now;
                }
                None => task.absent += 1,
            }
            if task.absent >= MAX_ABSENT_POLLS {
                task.over = true;
                seen.lost.push((index, std::mem::take(&mut task.missing)));
            }
        }
        seen
    }
}

/// Number of attempts per run.
#[derive(Debug, Clone, Default)]
pub struct Attempts(BTreeMap<usize, u32>);

impl Attempts {
    /// Counts an attempt of each run.
    pub fn count(&mut self, runs: &[usize]) {
        runs.iter().for_each(|&run| *self.0.entry(run).or_default() += 1);
    }

    /// Whether a run may be started again.
    pub fn left(&self, run: usize) -> bool {
        self.0.get(&run).copied().unwrap_or(0) < MAX_ATTEMPTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(index: usize, state: &str) -> QueuedTask {
        QueuedTask { index, state: state.to_owned(), reason: "None".to_owned() }
    }

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

    #[test]
    fn tasks_gone_without_documents_are_lost() {
        let mut array = Array::new("7".to_owned(), vec![vec![0, 1], vec![2]]);
        array.record_done(0);
        for _ in 0..MAX_ABSENT_POLLS - 1 {
            assert_eq!(array.refresh(&[task(1, "R")]), QueueChanges::default());
        }
        let seen = array.refresh(&[task(1, "R")]);
        assert_eq!(seen.lost, [(0, vec![1])]);
        array.record_done(2);
        assert!(array.is_over());
        assert_eq!(array.refresh(&[]), QueueChanges::default());
    }

    #[test]
    fn late_documents_are_not_lost() {
        let mut array = Array::new("7".to_owned(), vec![vec![0]]);
        assert_eq!(array.refresh(&[]), QueueChanges::default());
        array.record_done(0);
        assert!(array.is_over());
        assert_eq!(array.refresh(&[]), QueueChanges::default());
    }

    #[test]
    fn requeued_tasks_are_counted() {
        let mut array = Array::new("7".to_owned(), vec![vec![0]]);
        assert_eq!(array.refresh(&[task(0, "R")]).restarted, 0);
        assert_eq!(array.refresh(&[task(0, "PD")]).restarted, 1);
        assert_eq!(array.refresh(&[task(0, "PD")]).restarted, 0);
        for (state, restarted) in [("R", 0), ("CG", 0), ("CG", 0), ("R", 1), ("R", 0)] {
            assert_eq!(array.refresh(&[task(0, state)]).restarted, restarted, "{state}");
        }
    }

    #[test]
    fn held_tasks_are_abandoned_immediately() {
        let mut array = Array::new("7".to_owned(), vec![vec![4]]);
        let held = QueuedTask { index: 0, state: "PD".to_owned(), reason: "launch_failed_requeued_held".to_owned() };
        let seen = array.refresh(&[held]);
        assert_eq!((seen.held, seen.lost), (vec![0], vec![(0, vec![4])]));
    }

    #[test]
    fn runs_are_attempted_at_most_three_times() {
        let mut attempts = Attempts::default();
        for _ in 0..MAX_ATTEMPTS {
            assert!(attempts.left(1));
            attempts.count(&[1]);
        }
        assert!(!attempts.left(1));
        assert!(attempts.left(2));
    }
}
