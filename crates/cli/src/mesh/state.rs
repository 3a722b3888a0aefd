//! State of a mesh: the latest result of each pair, versions of hosts, and the document.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, UNIX_EPOCH};

use landspeed_mesh::{
    Amount, Blocked, History, HostState, Inventory, Moment, Outcome, Pair, PastTest, Scheduler, TaskId, TaskState,
    Usage, WEEK_NS,
};
use landspeed_model::{
    BuildInfo, ErrorEntry, MESH_SCHEMA, MeshCell, MeshChange, MeshDocument, MeshHost, MeshHostState, MeshLink,
    MeshResult, MeshTest, MeshUsage, Parameters, Status, Warning,
};
use landspeed_sys::{clock, process};
use landspeed_units::Nanos;

use super::journal::{EndEntry, EndOutcome, Entry, Key, Stamp};
use crate::metrics::{self, Latest};

/// Nanoseconds of two weeks.
const TWO_WEEKS_NS: u64 = 2 * WEEK_NS as u64;

/// Latest results of all pairs, and facts of their hosts.
#[derive(Debug)]
pub struct MeshState {
    started: String,
    /// Number of each test of each pair.
    numbers: HashMap<(usize, Pair), usize>,
    cells: Vec<CellState>,
    hosts: Vec<HostFacts>,
    /// Tests of this process that ended, by test of the inventory and outcome.
    ended: Vec<[u64; EndOutcome::ALL.len()]>,
    /// Failures of the mesh itself.
    pub errors: Vec<ErrorEntry>,
}

#[derive(Debug, Default)]
struct CellState {
    latest: Option<MeshResult>,
    history: History,
    /// Starts of the tests that measured in the last two weeks, nanoseconds since the Unix epoch.
    measured: VecDeque<u64>,
    failures: u32,
}

impl CellState {
    fn measured_since(&self, unix_ns: u64) -> usize {
        self.measured.iter().filter(|at_ns| **at_ns > unix_ns).count()
    }
}

#[derive(Debug, Clone, Default)]
struct HostFacts {
    version: Option<String>,
    error: Option<String>,
}

/// Returns the time on both clocks.
pub fn moment() -> Moment {
    Moment { monotonic_ns: clock::monotonic_ns() as i64, wall_ns: clock::realtime_ns() as i64 }
}

/// Formats a time as RFC 3339 in UTC.
pub fn rfc3339(unix_ns: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(unix_ns)).to_string()
}

impl MeshState {
    /// Creates the state of a schedule, without results.
    pub fn new(scheduler: &Scheduler) -> Self {
        let states = scheduler.states().enumerate();
        let numbers: HashMap<_, _> = states.map(|(at, state)| ((state.test, state.pair), at)).collect();
        let mut cells = Vec::new();
        cells.resize_with(numbers.len(), CellState::default);
        Self {
            started: rfc3339(clock::realtime_ns()),
            numbers,
            cells,
            hosts: vec![HostFacts::default(); scheduler.inventory().hosts.len()],
            ended: vec![[0; EndOutcome::ALL.len()]; scheduler.inventory().tests.len()],
            errors: Vec::new(),
        }
    }

    /// Takes over the entries of a journal: results, budgets and due times. Tests that the inventory no longer has count in
    /// the budgets of their hosts.
    pub fn restore(&mut self, scheduler: &mut Scheduler, entries: &[Entry]) {
        let now = Stamp::now();
        let mut past: Vec<PastTest> = Vec::new();
        let mut open: HashMap<&Key, usize> = HashMap::new();
        for entry in entries {
            let key = match entry {
                Entry::Start(key) => key,
                Entry::End(end) => &end.key,
            };
            let inventory = scheduler.inventory();
            let host = |name: &str| inventory.hosts.iter().position(|host| host.name == name);
            let (Some(from), Some(to)) = (host(&key.from), host(&key.to)) else { continue };
            let pair = Pair { from, to };
            let test = inventory.tests.iter().position(|test| test.name == key.test);
            let number = test.and_then(|test| self.numbers.get(&(test, pair)).copied());
            let started = PastTest {
                task: number.map(TaskId),
                pair,
                reserved: Amount { bytes: key.reserved_bytes, time_ns: key.reserved_ns },
                age_ns: i64::try_from(now.since_ns(&key.start)).unwrap_or(i64::MAX),
                duration_ns: None,
                bytes: None,
                outcome: None,
            };
            match entry {
                Entry::Start(key) => {
                    open.insert(key, past.len());
                    past.push(started);
                }
                Entry::End(end) => {
                    let test = PastTest {
                        duration_ns: Some(end.duration_ns),
                        bytes: end.bytes,
                        outcome: Some(outcome_of(end.outcome, pair, inventory.hosts[from].local)),
                        ..started
                    };
                    match open.remove(&end.key) {
                        Some(at) => past[at] = test,
                        None => past.push(test),
                    }
                    if let Some(number) = number {
                        self.take(number, end);
                    }
                    self.take_versions(pair, end);
                }
            }
        }
        scheduler.restore(&past, moment());
    }

    /// Takes the end of a test.
    pub fn take(&mut self, number: usize, end: &EndEntry) {
        if end.outcome == EndOutcome::Interrupted {
            return;
        }
        let cell = &mut self.cells[number];
        if end.outcome == EndOutcome::Measured {
            cell.failures = 0;
            let start_ns = end.key.start.unix_ns;
            while cell.measured.front().is_some_and(|at_ns| *at_ns <= start_ns.saturating_sub(TWO_WEEKS_NS)) {
                cell.measured.pop_front();
            }
            cell.measured.push_back(start_ns);
            if let Some(goodput_bps) = end.result.goodput_bps {
                cell.history.add(end.key.start.unix_ns as i64, goodput_bps);
            }
        } else {
            cell.failures += 1;
        }
        cell.latest = Some(end.result.clone());
    }

    /// Counts the end of a test by its outcome.
    pub fn count(&mut self, test: usize, outcome: EndOutcome) {
        self.ended[test][outcome as usize] += 1;
    }

    /// Replaces the exported metrics.
    pub fn export(&self, latest: &Latest, document: &MeshDocument, scheduler: &Scheduler) {
        let measured_ns: Vec<Option<u64>> = self.cells.iter().map(|cell| cell.measured.back().copied()).collect();
        let counts = metrics::mesh::Counts { measured_ns: &measured_ns, ended: &self.ended };
        metrics::mesh::update(latest, document, scheduler, &counts);
    }

    /// Records what a test told about its hosts.
    pub fn take_hosts(&mut self, pair: Pair, end: &EndEntry) {
        self.take_versions(pair, end);
        let message = end.result.error.as_ref().map(|error| error.message.clone());
        match end.outcome {
            EndOutcome::ClientUnreachable => self.hosts[pair.from].error = message,
            EndOutcome::ServerUnreachable => self.hosts[pair.to].error = message,
            EndOutcome::Measured => {
                self.hosts[pair.from].error = None;
                self.hosts[pair.to].error = None;
            }
            EndOutcome::Failed | EndOutcome::Interrupted => {}
        }
    }

    fn take_versions(&mut self, pair: Pair, end: &EndEntry) {
        for (host, version) in [(pair.from, &end.versions.0), (pair.to, &end.versions.1)] {
            if version.is_some() {
                self.hosts[host].version.clone_from(version);
            }
        }
    }

    /// Returns the mesh document as of now.
    pub fn document(&self, scheduler: &mut Scheduler, parameters: &[Parameters]) -> MeshDocument {
        let now = moment();
        let inventory = scheduler.inventory().clone();
        let hosts: Vec<MeshHost> = (0..inventory.hosts.len())
            .map(|at| {
                let (host, facts, state) = (&inventory.hosts[at], &self.hosts[at], scheduler.host_state(at));
                let (state, retry_s) = match state {
                    HostState::Unknown => (MeshHostState::Unknown, None),
                    HostState::Reachable => (MeshHostState::Reachable, None),
                    HostState::Unreachable { retry_ns, .. } => {
                        let wait_ns = u64::try_from(retry_ns - now.monotonic_ns).unwrap_or(0);
                        (MeshHostState::Unreachable, Some(wait_ns.div_ceil(1_000_000_000)))
                    }
                };
                MeshHost {
                    name: host.name.clone(),
                    address: host.address.clone(),
                    local: host.local,
                    state,
                    version: facts.version.clone(),
                    error: facts.error.clone(),
                    retry_s,
                    usage: usage(scheduler.host_usage(at, now), host.budget),
                }
            })
            .collect();
        let links: Vec<MeshLink> = (0..inventory.links.len())
            .map(|at| {
                let link = &inventory.links[at];
                let behind = inventory.hosts.iter().filter(|host| host.links.contains(&at));
                MeshLink {
                    name: link.name.clone(),
                    hosts: behind.map(|host| host.name.clone()).collect(),
                    usage: usage(scheduler.link_usage(at, now), link.budget),
                }
            })
            .collect();
        let tests = inventory.tests.iter().zip(parameters).map(|(test, parameters)| MeshTest {
            name: test.name.clone(),
            protocol: parameters.protocol,
            interval_ns: test.interval_ns,
            jitter_ns: test.jitter_ns,
            pairs: test.pairs.len() as u64,
        });
        let is_round = scheduler.is_round();
        let states = scheduler.states().zip(&self.cells);
        let cells: Vec<MeshCell> =
            states.map(|(state, found)| cell(&inventory, &state, is_round, found, now)).collect();
        let status = match cells.iter().filter(|cell| cell.is_measured()).count() {
            count if count == cells.len() => Status::Complete,
            0 => Status::Failed,
            _ => Status::Partial,
        };
        MeshDocument {
            schema: MESH_SCHEMA.to_owned(),
            landspeed: BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None },
            name: inventory.name.clone(),
            started: self.started.clone(),
            written: rfc3339(clock::realtime_ns()),
            command: process::command_line(),
            status,
            errors: self.errors.clone(),
            warnings: warnings(&hosts),
            seed: inventory.seed,
            hosts,
            links,
            tests: tests.collect(),
            cells,
        }
    }
}

fn cell(inventory: &Inventory, state: &TaskState, is_round: bool, found: &CellState, now: Moment) -> MeshCell {
    let now_ns = u64::try_from(now.wall_ns).unwrap_or(0);
    let measured = found.measured_since(now_ns.saturating_sub(TWO_WEEKS_NS));
    let change = found.history.change(now.wall_ns).map(|change| MeshChange {
        ratio: change.ratio,
        tests: change.tests as u64,
        tests_before: change.tests_before as u64,
    });
    let change_unknown = change
        .is_none()
        .then(|| if measured == 0 { "no result yet" } else { "no result in one of the two weeks" }.to_owned());
    let blocked = state.blocked.filter(|_| state.is_overdue(now.monotonic_ns));
    let is_unreachable = matches!(blocked, Some(Blocked::Unreachable(_)));
    let waiting = blocked.map(|why| reason(inventory, why));
    MeshCell {
        test: inventory.tests[state.test].name.clone(),
        from: inventory.hosts[state.pair.from].name.clone(),
        to: inventory.hosts[state.pair.to].name.clone(),
        measured: measured as u64,
        failures: found.failures,
        skipped: state.skipped || is_unreachable || (is_round && state.done == 0),
        latest: found.latest.clone(),
        change,
        change_unknown,
        waiting,
    }
}

/// Converts the outcome in a journal. `from_here` says that the client is the local host, so that the mesh itself did not
/// reach the server.
pub fn outcome_of(outcome: EndOutcome, pair: Pair, from_here: bool) -> Outcome {
    match outcome {
        EndOutcome::Measured => Outcome::Measured,
        EndOutcome::Failed => Outcome::Failed,
        EndOutcome::ClientUnreachable => Outcome::HostUnreachable(pair.from),
        EndOutcome::ServerUnreachable if from_here => Outcome::HostUnreachable(pair.to),
        EndOutcome::ServerUnreachable => Outcome::ServerUnreachable,
        EndOutcome::Interrupted => Outcome::Interrupted,
    }
}

fn usage(usage: Usage, budget: landspeed_mesh::Budget) -> MeshUsage {
    MeshUsage {
        bytes_24h: usage.bytes,
        time_24h_ns: usage.time_ns,
        bytes_per_day: budget.bytes,
        time_per_day_ns: budget.time_ns,
    }
}

/// Describes why a test does not start.
fn reason(inventory: &Inventory, why: Blocked) -> String {
    match why {
        Blocked::Busy => "one of its hosts or links is in use".to_owned(),
        Blocked::Claimed => "a host or link is kept free for a test that is overdue for longer".to_owned(),
        Blocked::HostBudget { host, .. } => format!("the budget of {} is spent", inventory.hosts[host].name),
        Blocked::LinkBudget { link, .. } => format!("the budget of {} is spent", inventory.links[link].name),
        Blocked::Unreachable(host) => format!("{} does not answer", inventory.hosts[host].name),
        Blocked::Maintenance => "a maintenance window is open, or opens before the test would end".to_owned(),
    }
}

fn warnings(hosts: &[MeshHost]) -> Vec<Warning> {
    let own = env!("CARGO_PKG_VERSION");
    let warning = |code: &str, message| Warning { code: code.to_owned(), message };
    let mut warnings = Vec::new();
    for host in hosts {
        if let Some(version) = host.version.as_deref().filter(|version| *version != own) {
            let message = format!("{} runs landspeed {version}, this is {own}", host.name);
            warnings.push(warning("other-version", message));
        }
        if host.state == MeshHostState::Unreachable {
            let why = host.error.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            let retry =
                host.retry_s.map(|s| format!("; next attempt in {}", Nanos::from_secs(s))).unwrap_or_default();
            warnings.push(warning("unreachable", format!("{} does not answer{why}{retry}", host.name)));
        }
    }
    warnings
}
