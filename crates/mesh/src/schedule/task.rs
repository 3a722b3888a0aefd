//! A test of a pair.

use crate::inventory::Pair;
use crate::load::TestCost;

/// Number of a test of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub usize);

/// Reason why a test that is due does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// A test uses one of its hosts or links.
    Busy,
    /// A host or link is kept free for a test that is overdue for longer.
    Claimed,
    /// The budget of this host is spent.
    HostBudget {
        /// Index of the host.
        host: usize,
        /// Whether the end of running tests changes nothing.
        lasting: bool,
    },
    /// The budget of this link is spent.
    LinkBudget {
        /// Index of the link.
        link: usize,
        /// Whether the end of running tests changes nothing.
        lasting: bool,
    },
    /// This host did not answer.
    Unreachable(usize),
    /// A maintenance window is open, or opens before the test would end.
    Maintenance,
}

impl Blocked {
    /// Whether a single round does not wait for its end.
    pub(super) fn is_lasting(self) -> bool {
        match self {
            Self::Busy | Self::Claimed => false,
            Self::HostBudget { lasting, .. } | Self::LinkBudget { lasting, .. } => lasting,
            Self::Unreachable(_) | Self::Maintenance => true,
        }
    }
}

/// State of a test of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskState {
    /// Index of the test in the inventory.
    pub test: usize,
    /// Client and server host of the test.
    pub pair: Pair,
    /// Next due time, monotonic nanoseconds; in the past if it is overdue. `None` while it runs, and after its only run.
    pub due_ns: Option<i64>,
    /// Start of the running or last test, monotonic nanoseconds.
    pub last_start_ns: Option<i64>,
    /// Number of tests that ended in this process.
    pub done: u64,
    /// Failed tests since the last that measured.
    pub failures: u32,
    /// Whether it runs now.
    pub running: bool,
    /// Whether the only round passed without it.
    pub skipped: bool,
    /// Reason why it did not start when it was last due.
    pub blocked: Option<Blocked>,
}

impl TaskState {
    /// Whether it should have run, and does not.
    pub fn is_overdue(&self, now_ns: i64) -> bool {
        !self.running && (self.skipped || self.due_ns.is_some_and(|due_ns| due_ns <= now_ns))
    }
}

#[derive(Debug)]
pub(super) struct Task {
    pub test: usize,
    pub pair: Pair,
    pub cost: TestCost,
    /// Indices of its hosts and links.
    pub resources: Box<[usize]>,
    pub due_ns: i64,
    pub running_ns: Option<i64>,
    pub last_start_ns: Option<i64>,
    pub done: u64,
    pub failures: u32,
    pub skipped: bool,
    pub blocked: Option<Blocked>,
}

impl Task {
    pub fn new(test: usize, pair: Pair, cost: TestCost, resources: Box<[usize]>, due_ns: i64) -> Self {
        Self {
            test,
            pair,
            cost,
            resources,
            due_ns,
            running_ns: None,
            last_start_ns: None,
            done: 0,
            failures: 0,
            skipped: false,
            blocked: None,
        }
    }

    pub fn state(&self) -> TaskState {
        let running = self.running_ns.is_some();
        TaskState {
            test: self.test,
            pair: self.pair,
            due_ns: (!running && !self.skipped).then_some(self.due_ns),
            last_start_ns: self.last_start_ns,
            done: self.done,
            failures: self.failures,
            running,
            skipped: self.skipped,
            blocked: self.blocked,
        }
    }
}

impl TaskId {
    /// Returns the number as an index.
    pub fn index(self) -> usize {
        self.0
    }
}
