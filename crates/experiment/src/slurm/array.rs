//! Tracks the state of tasks of job arrays. Uses no processes, files or clocks.

use std::collections::BTreeMap;

use super::tools::QueuedTask;

/// Number of attempts before a run counts as failed.
pub const MAX_ATTEMPTS: u32 = 3;
/// Number of consecutive polls without a task before it counts as gone: its files may appear later than the end
/// in the queue.
const MAX_ABSENT_POLLS: u32 = 3;

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
