//! Decides which test starts when.
//!
//! Tests that are due start in the order of their due times, as far as hosts, links, budgets and maintenance windows allow.
//! A test that is overdue by more than the patience claims what it waits for: younger tests leave that alone, so every
//! test starts in the end.

mod health;
mod task;

use std::collections::BTreeSet;

use landspeed_stats::SplitMix64;

use self::health::Health;
use self::task::Task;
use crate::budget::{Amount, Budget, Ledger};
use crate::inventory::{Inventory, Pair};
use crate::load::TestCost;

pub use self::health::HostState;
pub use self::task::{Blocked, TaskId, TaskState};

/// Longest time between two looks at the wall clock for a test in a maintenance window, nanoseconds: the clock may be set.
const WINDOW_CHECK_NS: i64 = 60_000_000_000;
/// Time between two looks at a budget of which running tests have reserved a part, nanoseconds.
const RESERVATION_CHECK_NS: i64 = 10_000_000_000;
/// Time until a test that failed is repeated, nanoseconds; doubled for each failure in a row, at most the interval.
const RETRY_NS: i64 = 60_000_000_000;
/// Patience in limits of the longest test.
const PATIENCE_LIMITS: i64 = 2;

/// The current time on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Clock that never steps, nanoseconds; everything but maintenance windows depends on it.
    pub monotonic_ns: i64,
    /// Wall clock, nanoseconds since the Unix epoch.
    pub wall_ns: i64,
}

/// How the schedule runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Every test is due at once and runs once; what cannot run is skipped.
    pub once: bool,
}

/// A test that starts now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Its number, for [`Scheduler::finish`].
    pub task: TaskId,
    /// Index of the test in the inventory.
    pub test: usize,
    /// Client and server host of the test.
    pub pair: Pair,
    /// Worst case; the caller stops the test at its limit.
    pub cost: TestCost,
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The test delivered a result.
    Measured,
    /// It failed for a reason that does not make a host unreachable.
    Failed,
    /// This host did not answer the mesh.
    HostUnreachable(usize),
    /// The server did not answer the client.
    ServerUnreachable,
    /// The mesh was stopped; the test is due at once when it continues.
    Interrupted,
}

/// A test of the past, from the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastTest {
    /// Number of the test of the pair; `None` if the inventory no longer has it: only its bytes and time count.
    pub task: Option<TaskId>,
    /// Client and server host of the test.
    pub pair: Pair,
    /// What the test reserved when it started.
    pub reserved: Amount,
    /// Time since its start, nanoseconds.
    pub age_ns: i64,
    /// Duration, nanoseconds; `None` if its end is not known: it counts with what it reserved.
    pub duration_ns: Option<u64>,
    /// Payload bytes; `None` if unknown: it counts with what it reserved.
    pub bytes: Option<u64>,
    /// How it ended; `None` if its end is not known.
    pub outcome: Option<Outcome>,
}

/// Use of a host or a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Payload bytes of the last 24 h, with reservations of running tests.
    pub bytes: u64,
    /// Time in tests of the last 24 h, with reservations, nanoseconds.
    pub time_ns: u64,
    /// Whether a test runs now.
    pub busy: bool,
}

/// A host or a link: what at most one test uses at a time.
#[derive(Debug, Clone, Default)]
struct Resource {
    budget: Budget,
    ledger: Ledger,
    busy: bool,
    claim: Option<Claim>,
}

/// The overdue test for which a resource is kept free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claim {
    due_ns: i64,
    task: usize,
    /// Younger tests need not look at the resource again before this time.
    until_ns: i64,
}

/// Schedule of an inventory, driven by the caller.
#[derive(Debug)]
pub struct Scheduler {
    options: Options,
    inventory: Inventory,
    tasks: Vec<Task>,
    /// Use of each host and link: the hosts in the order of the inventory, then the links.
    resources: Vec<Resource>,
    health: Vec<Health>,
    random: SplitMix64,
    patience_ns: i64,
    running: usize,
    /// Due time and number of tests that are due or will be.
    waiting: BTreeSet<(i64, usize)>,
    /// Time to look again and number of tests that cannot start before it.
    parked: BTreeSet<(i64, usize)>,
}

impl Scheduler {
    /// Creates the schedule. `cost` returns the worst case of a pair of a test, by its index. The first tests are spread
    /// over one interval.
    pub fn new(inventory: &Inventory, cost: impl Fn(usize, Pair) -> TestCost, options: Options, now: Moment) -> Self {
        let mut random = SplitMix64::new(inventory.seed);
        let mut tasks = Vec::new();
        for (number, test) in inventory.tests.iter().enumerate() {
            for &pair in &test.pairs {
                let phase_ns = if options.once { 0 } else { random.below(test.interval_ns) as i64 };
                let (cost, resources) = (cost(number, pair), resources_of(inventory, pair));
                tasks.push(Task::new(number, pair, cost, resources, now.monotonic_ns + phase_ns));
            }
        }
        let budgets = inventory.hosts.iter().map(|host| host.budget);
        let budgets = budgets.chain(inventory.links.iter().map(|link| link.budget));
        let longest_ns = tasks.iter().map(|task| task.cost.reservation().time_ns).max().unwrap_or(0);
        Self {
            options,
            waiting: tasks.iter().enumerate().map(|(at, task)| (task.due_ns, at)).collect(),
            parked: BTreeSet::new(),
            resources: budgets.map(|budget| Resource { budget, ..Resource::default() }).collect(),
            health: vec![Health::default(); inventory.hosts.len()],
            inventory: inventory.clone(),
            tasks,
            random,
            patience_ns: PATIENCE_LIMITS * longest_ns as i64,
            running: 0,
        }
    }

    /// Takes over tests of an earlier process, oldest first: their bytes and times count, and pairs are due as if it had
    /// continued. With [`Options::once`] only bytes and times count.
    pub fn restore(&mut self, past: &[PastTest], now: Moment) {
        for test in past {
            let spent = Amount {
                bytes: test.bytes.unwrap_or(test.reserved.bytes),
                time_ns: test.duration_ns.unwrap_or(test.reserved.time_ns),
            };
            let start_ns = now.monotonic_ns.saturating_sub(test.age_ns.max(0));
            let end_ns = start_ns.saturating_add_unsigned(spent.time_ns);
            for resource in resources_of(&self.inventory, test.pair) {
                self.resources[resource].ledger.add(spent, end_ns);
            }
            let outcome = test.outcome.filter(|outcome| *outcome != Outcome::Interrupted);
            if let (Some(task), Some(outcome)) = (test.task.filter(|_| !self.options.once), outcome) {
                self.count_failures(task.0, outcome);
                let due_ns = self.due_after_ns(task.0, outcome, start_ns, end_ns);
                self.set_due(task.0, due_ns);
            }
        }
        for resource in &mut self.resources {
            resource.ledger.expire(now.monotonic_ns);
        }
    }

    /// Returns the tests that start now. Their hosts, links and worst cases are reserved until [`Scheduler::finish`].
    pub fn poll(&mut self, now: Moment) -> Vec<Start> {
        let now_ns = now.monotonic_ns;
        while let Some(&(until_ns, at)) = self.parked.first()
            && until_ns <= now_ns
        {
            self.parked.pop_first();
            self.waiting.insert((self.tasks[at].due_ns, at));
        }
        let due: Vec<(i64, usize)> = self.waiting.range(..=(now_ns, usize::MAX)).copied().collect();
        let mut starts = Vec::new();
        for (due_ns, at) in due {
            if self.running >= self.inventory.max_tests {
                break;
            }
            match self.judge(at, now) {
                Judgement::Start => {
                    self.waiting.remove(&(due_ns, at));
                    starts.push(self.start(at, now_ns));
                }
                Judgement::Wait(why) => self.tasks[at].blocked = Some(why),
                Judgement::Park(why, until_ns) => {
                    self.waiting.remove(&(due_ns, at));
                    self.tasks[at].blocked = Some(why);
                    if self.options.once && why.is_lasting() {
                        self.release_claims(at);
                        self.tasks[at].skipped = true;
                    } else {
                        self.parked.insert((until_ns.max(now_ns + 1), at));
                    }
                }
            }
        }
        starts
    }

    /// Takes the outcome of a test: payload bytes that were sent, if known, and the time of its end.
    pub fn finish(&mut self, task: TaskId, outcome: Outcome, bytes: Option<u64>, now: Moment) {
        let at = task.0;
        let now_ns = now.monotonic_ns;
        let Some(started_ns) = self.tasks.get_mut(at).and_then(|task| task.running_ns.take()) else { return };
        self.running -= 1;
        let reservation = self.tasks[at].cost.reservation();
        let spent = Amount {
            bytes: bytes.unwrap_or(reservation.bytes),
            time_ns: u64::try_from(now_ns - started_ns).unwrap_or(0),
        };
        for &resource in &self.tasks[at].resources.clone() {
            self.resources[resource].busy = false;
            self.resources[resource].ledger.settle(reservation, spent, now_ns);
        }
        self.take_health(at, outcome, now_ns);
        let task = &mut self.tasks[at];
        task.blocked = None;
        task.done += u64::from(outcome != Outcome::Interrupted);
        self.count_failures(at, outcome);
        if self.options.once {
            return;
        }
        let due_ns = self.due_after_ns(at, outcome, started_ns, now_ns);
        self.tasks[at].due_ns = due_ns;
        self.waiting.insert((due_ns, at));
    }

    /// Counts the failures of a pair in a row.
    fn count_failures(&mut self, at: usize, outcome: Outcome) {
        let failures = &mut self.tasks[at].failures;
        *failures = match outcome {
            Outcome::Measured => 0,
            Outcome::Interrupted => *failures,
            _ => failures.saturating_add(1),
        };
    }

    /// Returns when a pair is due after a test that started and ended at these times.
    fn due_after_ns(&mut self, at: usize, outcome: Outcome, started_ns: i64, ended_ns: i64) -> i64 {
        match outcome {
            Outcome::Interrupted => ended_ns,
            Outcome::Measured => started_ns + self.interval_ns(at),
            _ => {
                let failures = self.tasks[at].failures;
                let retry_ns = RETRY_NS.saturating_mul(1 << failures.saturating_sub(1).min(20));
                ended_ns + retry_ns.min(self.interval_ns(at))
            }
        }
    }

    /// Returns when [`Scheduler::poll`] may start a test although no test ends before; `None` if it never will.
    pub fn wakes_at_ns(&self, now: Moment) -> Option<i64> {
        let due = self.waiting.range((now.monotonic_ns, usize::MAX)..).next().map(|(due_ns, _)| *due_ns);
        let parked = self.parked.first().map(|(until_ns, _)| *until_ns);
        [due, parked].into_iter().flatten().min()
    }

    /// Whether no test runs and none will, which happens only with [`Options::once`].
    pub fn is_over(&self) -> bool {
        self.running == 0 && self.waiting.is_empty() && self.parked.is_empty()
    }

    /// Whether every test runs once.
    pub fn is_round(&self) -> bool {
        self.options.once
    }

    /// Returns the number of running tests.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Returns the inventory.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Returns the state of every test of every pair, by its number.
    pub fn states(&self) -> impl Iterator<Item = TaskState> {
        self.tasks.iter().map(Task::state)
    }

    /// Returns whether a host answers.
    pub fn host_state(&self, host: usize) -> HostState {
        self.health[host].state()
    }

    /// Returns the use of a host in the last 24 h.
    pub fn host_usage(&mut self, host: usize, now: Moment) -> Usage {
        self.usage(host, now)
    }

    /// Returns the use of a link in the last 24 h.
    pub fn link_usage(&mut self, link: usize, now: Moment) -> Usage {
        self.usage(self.inventory.hosts.len() + link, now)
    }

    /// Returns the longest time between the starts of two tests of a pair, nanoseconds, if all its hosts answer, no window
    /// is open and all its budgets cover what is asked: the interval, the patience, and one test of each pair that
    /// shares a host or a link with it.
    pub fn wait_bound_ns(&self, task: TaskId) -> i64 {
        let task = &self.tasks[task.0];
        let test = &self.inventory.tests[task.test];
        let shares = |other: &&Task| other.resources.iter().any(|resource| task.resources.contains(resource));
        let others = self.tasks.iter().filter(shares).map(|other| other.cost.reservation().time_ns as i64);
        (test.interval_ns + test.jitter_ns) as i64 + self.patience_ns + others.sum::<i64>()
    }

    fn usage(&mut self, resource: usize, now: Moment) -> Usage {
        let Resource { ledger, busy, .. } = &mut self.resources[resource];
        ledger.expire(now.monotonic_ns);
        let Amount { bytes, time_ns } = ledger.used();
        Usage { bytes, time_ns, busy: *busy }
    }

    fn set_due(&mut self, at: usize, due_ns: i64) {
        let task = &mut self.tasks[at];
        if self.waiting.remove(&(task.due_ns, at)) {
            task.due_ns = due_ns;
            self.waiting.insert((due_ns, at));
        }
    }

    /// Returns the time to the next test of a pair, with jitter, nanoseconds.
    fn interval_ns(&mut self, at: usize) -> i64 {
        let test = &self.inventory.tests[self.tasks[at].test];
        let earliest_ns = test.interval_ns - test.jitter_ns / 2;
        (earliest_ns + self.random.below(test.jitter_ns + 1)) as i64
    }

    fn start(&mut self, at: usize, now_ns: i64) -> Start {
        self.release_claims(at);
        let task = &mut self.tasks[at];
        let reservation = task.cost.reservation();
        task.running_ns = Some(now_ns);
        task.last_start_ns = Some(now_ns);
        task.blocked = None;
        for &resource in &task.resources {
            self.resources[resource].busy = true;
            self.resources[resource].ledger.reserve(reservation);
        }
        self.running += 1;
        Start { task: TaskId(at), test: task.test, pair: task.pair, cost: task.cost }
    }

    /// Decides whether a test that is due starts.
    fn judge(&mut self, at: usize, now: Moment) -> Judgement {
        let now_ns = now.monotonic_ns;
        let (pair, due_ns, resources) = {
            let task = &self.tasks[at];
            (task.pair, task.due_ns, task.resources.clone())
        };
        let reservation = self.tasks[at].cost.reservation();
        for host in [pair.from, pair.to] {
            if let Some(retry_ns) = self.health[host].retry_ns().filter(|retry_ns| *retry_ns > now_ns) {
                self.release_claims(at);
                return Judgement::Park(Blocked::Unreachable(host), retry_ns);
            }
        }
        if let Some(end_ns) = self.window_end_ns(pair, reservation.time_ns, now) {
            self.release_claims(at);
            let until_ns = now_ns + (end_ns - now.wall_ns).clamp(1, WINDOW_CHECK_NS);
            return Judgement::Park(Blocked::Maintenance, until_ns);
        }
        let overdue = now_ns - due_ns > self.patience_ns;
        let mut wake_ns = None;
        for &resource in &resources {
            let Resource { budget, ledger, .. } = &mut self.resources[resource];
            ledger.expire(now_ns);
            if ledger.fits(budget, reservation) {
                continue;
            }
            // A test that ends may have spent less than it reserved.
            let check_ns = if ledger.has_reservations() { now_ns + RESERVATION_CHECK_NS } else { i64::MAX };
            let fits_ns = ledger.fits_at_ns(budget, reservation).unwrap_or(i64::MAX).min(check_ns);
            wake_ns = wake_ns.max(Some((fits_ns, resource)));
            if overdue {
                self.claim(resource, Claim { due_ns, task: at, until_ns: fits_ns });
            }
        }
        if let Some((fits_ns, resource)) = wake_ns {
            let lasting = !self.resources[resource].ledger.has_reservations();
            return Judgement::Park(self.budget_of(resource, lasting), fits_ns);
        }
        let older = |claim: &Claim| (claim.due_ns, claim.task) < (due_ns, at);
        let claims = resources.iter().filter_map(|&resource| self.resources[resource].claim.filter(older));
        if let Some(claim) = claims.max_by_key(|claim| claim.until_ns) {
            if claim.until_ns > now_ns {
                return Judgement::Park(Blocked::Claimed, claim.until_ns);
            }
            return Judgement::Wait(Blocked::Claimed);
        }
        if resources.iter().any(|&resource| self.resources[resource].busy) {
            if overdue {
                for &resource in &resources {
                    self.claim(resource, Claim { due_ns, task: at, until_ns: now_ns });
                }
            }
            return Judgement::Wait(Blocked::Busy);
        }
        Judgement::Start
    }

    fn budget_of(&self, resource: usize, lasting: bool) -> Blocked {
        let hosts = self.inventory.hosts.len();
        if resource < hosts {
            Blocked::HostBudget { host: resource, lasting }
        } else {
            Blocked::LinkBudget { link: resource - hosts, lasting }
        }
    }

    /// Returns when the last maintenance window ends that a test would overlap, wall clock.
    fn window_end_ns(&self, pair: Pair, limit_ns: u64, now: Moment) -> Option<i64> {
        let span = now.wall_ns..now.wall_ns.saturating_add(limit_ns as i64);
        let windows = self.inventory.maintenance.iter();
        windows
            .filter_map(|window| {
                let end_ns = window.overlap_end_ns(&span)?;
                window.applies_to(&[pair.from, pair.to], &self.inventory.links_of(pair)).then_some(end_ns)
            })
            .max()
    }

    /// Keeps a resource free for a test, unless an older one has claimed it.
    fn claim(&mut self, resource: usize, claim: Claim) {
        let held = &mut self.resources[resource].claim;
        if held.is_none_or(|held| (claim.due_ns, claim.task) <= (held.due_ns, held.task)) {
            *held = Some(claim);
        }
    }

    fn release_claims(&mut self, at: usize) {
        for &resource in &self.tasks[at].resources {
            let claim = &mut self.resources[resource].claim;
            if claim.is_some_and(|claim| claim.task == at) {
                *claim = None;
            }
        }
    }

    fn take_health(&mut self, at: usize, outcome: Outcome, now_ns: i64) {
        let Pair { from, to } = self.tasks[at].pair;
        match outcome {
            Outcome::Measured => {
                self.health[from].reached();
                self.health[to].reached();
            }
            Outcome::HostUnreachable(host) => self.health[host].missed(None, now_ns),
            Outcome::ServerUnreachable => {
                // The client answered; whether its server is down or only this path is not known from one client.
                self.health[from].reached();
                self.health[to].missed(Some(from), now_ns);
            }
            Outcome::Failed | Outcome::Interrupted => {}
        }
    }
}

/// Returns the indices of the hosts and links that a test of a pair uses.
fn resources_of(inventory: &Inventory, pair: Pair) -> Box<[usize]> {
    let links = inventory.links_of(pair).into_iter().map(|link| inventory.hosts.len() + link);
    [pair.from, pair.to].into_iter().chain(links).collect()
}

/// Decision about a test that is due.
enum Judgement {
    Start,
    /// Look again when a test ends.
    Wait(Blocked),
    /// Look again at this time, monotonic nanoseconds.
    Park(Blocked, i64),
}

#[cfg(test)]
mod tests;
