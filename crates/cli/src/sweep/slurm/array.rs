//! Which runs share a task of a job array, and what became of them. No processes, files or clocks.

use std::collections::BTreeMap;

use super::tools::QueuedTask;

/// A task should take this long at least, seconds: starting one takes a second or two.
const TASK_S: f64 = 30.0;
/// Tasks for each core, where there are enough runs: the last ones end about together.
const TASKS_A_CORE: usize = 4;
/// A run is started this often before it counts as failed.
pub const MAX_ATTEMPTS: u32 = 3;
/// Looks at the queue in which a task has to be missing: its files may come later than the news of its end.
const LOOKS: u32 = 3;

/// Runs of one task each, by their positions in `runs.json`, from (position, estimated seconds).
pub fn batches(runs: &[(usize, f64)], cores: usize) -> Vec<Vec<usize>> {
    let total_s: f64 = runs.iter().map(|(_, seconds)| seconds.max(0.01)).sum();
    let fair_s = total_s / (cores * TASKS_A_CORE).max(1) as f64;
    let target_s = fair_s.min(TASK_S);
    let mut batches = Vec::new();
    let (mut batch, mut batch_s) = (Vec::new(), 0.0);
    for &(index, seconds) in runs {
        batch.push(index);
        batch_s += seconds.max(0.01);
        // Rounding must not make a task of every run.
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

/// A job array that was submitted.
#[derive(Debug, Clone)]
pub struct Array {
    /// Its number in Slurm.
    pub job: String,
    tasks: Vec<Task>,
}

#[derive(Debug, Clone)]
struct Task {
    /// Runs of it whose documents are not there.
    missing: Vec<usize>,
    /// Looks in a row in which Slurm did not have it.
    absent: u32,
    last: LastState,
    /// It is given up: its runs are elsewhere.
    over: bool,
}

/// State of a task when it was last seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastState {
    Pending,
    Running,
    /// On the way out of the queue, or back to its beginning (`CG`).
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

/// What a look at the queue shows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Tasks that ended without the documents of all their runs, and these runs.
    pub lost: Vec<(usize, Vec<usize>)>,
    /// Tasks that Slurm holds: they are to be cancelled.
    pub held: Vec<usize>,
    /// Tasks that Slurm started again by itself.
    pub restarted: u32,
}

impl Array {
    /// With these batches as its tasks.
    pub fn new(job: String, batches: Vec<Vec<usize>>) -> Self {
        let task = |missing| Task { missing, absent: 0, last: LastState::Pending, over: false };
        Self { job, tasks: batches.into_iter().map(task).collect() }
    }

    /// The document of a run is there.
    pub fn has_made(&mut self, index: usize) {
        self.tasks.iter_mut().for_each(|task| task.missing.retain(|&missing| missing != index));
    }

    /// Runs whose documents are awaited.
    pub fn missing(&self) -> impl Iterator<Item = usize> {
        self.tasks.iter().filter(|task| !task.over).flat_map(|task| task.missing.iter().copied())
    }

    /// Whether nothing of it is awaited.
    pub fn is_over(&self) -> bool {
        self.missing().next().is_none()
    }

    /// Takes in the queue as Slurm shows it.
    pub fn look(&mut self, queue: &[QueuedTask]) -> Seen {
        let queued: BTreeMap<usize, &QueuedTask> = queue.iter().map(|task| (task.index, task)).collect();
        let mut seen = Seen::default();
        for (index, task) in self.tasks.iter_mut().enumerate() {
            if task.over || task.missing.is_empty() {
                continue;
            }
            match queued.get(&index) {
                Some(queued) if queued.is_held() => {
                    seen.held.push(index);
                    task.absent = LOOKS;
                }
                Some(queued) => {
                    task.absent = 0;
                    let now = LastState::of(&queued.state);
                    // Between two looks it may have been pending.
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
            if task.absent >= LOOKS {
                task.over = true;
                seen.lost.push((index, std::mem::take(&mut task.missing)));
            }
        }
        seen
    }
}

/// How often runs were started.
#[derive(Debug, Clone, Default)]
pub struct Attempts(BTreeMap<usize, u32>);

impl Attempts {
    /// Runs are started once more.
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
        // Few runs: every core has several tasks.
        assert_eq!(batches(&of(16, 1.0), 2).len(), 8);
        assert_eq!(batches(&of(3, 1.0), 2).len(), 3);
        assert_eq!(batches(&[], 2).len(), 0);
        let all: Vec<usize> = batches(&of(1000, 0.3), 64).concat();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_task_that_is_gone_without_documents_is_lost() {
        let mut array = Array::new("7".to_owned(), vec![vec![0, 1], vec![2]]);
        array.has_made(0);
        for _ in 0..LOOKS - 1 {
            assert_eq!(array.look(&[task(1, "R")]), Seen::default());
        }
        let seen = array.look(&[task(1, "R")]);
        assert_eq!(seen.lost, [(0, vec![1])]);
        array.has_made(2);
        assert!(array.is_over());
        assert_eq!(array.look(&[]), Seen::default());
    }

    #[test]
    fn a_document_that_comes_late_is_not_lost() {
        let mut array = Array::new("7".to_owned(), vec![vec![0]]);
        assert_eq!(array.look(&[]), Seen::default());
        array.has_made(0);
        assert!(array.is_over());
        assert_eq!(array.look(&[]), Seen::default());
    }

    #[test]
    fn a_task_that_slurm_requeued_is_counted() {
        let mut array = Array::new("7".to_owned(), vec![vec![0]]);
        assert_eq!(array.look(&[task(0, "R")]).restarted, 0);
        assert_eq!(array.look(&[task(0, "PD")]).restarted, 1);
        assert_eq!(array.look(&[task(0, "PD")]).restarted, 0);
        for (state, restarted) in [("R", 0), ("CG", 0), ("CG", 0), ("R", 1), ("R", 0)] {
            assert_eq!(array.look(&[task(0, state)]).restarted, restarted, "{state}");
        }
    }

    #[test]
    fn a_held_task_is_given_up_at_once() {
        let mut array = Array::new("7".to_owned(), vec![vec![4]]);
        let held = QueuedTask { index: 0, state: "PD".to_owned(), reason: "launch_failed_requeued_held".to_owned() };
        let seen = array.look(&[held]);
        assert_eq!((seen.held, seen.lost), (vec![0], vec![(0, vec![4])]));
    }

    #[test]
    fn a_run_is_started_three_times_at_most() {
        let mut attempts = Attempts::default();
        for _ in 0..MAX_ATTEMPTS {
            assert!(attempts.left(1));
            attempts.count(&[1]);
        }
        assert!(!attempts.left(1));
        assert!(attempts.left(2));
    }
}
