//! Runs tests between hosts, one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{anyhow, bail};
use landspeed_flow::client::{self, Request, RunEvent};
use landspeed_model::{ErrorEntry, RunDocument, Status, TuneupPlan};
use landspeed_results::Document;
use landspeed_sweep::document::RunFacts;
use landspeed_sys::clock;
use serde::{Deserialize, Serialize};

use super::{Cross, HostCell, Hosts};
use crate::board::{Nouns, ProgressLine};
use crate::host_changes::{ChangeError, ChangeErrorKind, HostChanges};
use crate::run::{RemoteEnd, live, measure, ready};
use crate::sweep::directory::{ExtraFile, RunOrigin};
use crate::sweep::local::worker_name;
use crate::sweep::session::{Assigned, Session};
use crate::tuneup::hosts::Hosts as HeldHosts;
use crate::tuneup::runner::{Unmeasured, try_run};

const NOUNS: Nouns = Nouns { runs: "runs", time: "" };
/// Duration of the test that collects facts of the hosts, nanoseconds.
const SURVEY_NS: u64 = 200_000_000;
/// Maximum time that host settings stay changed, even if landspeed hangs.
const LIMIT: Duration = Duration::from_mins(55);
/// Timeout for cross traffic to start, nanoseconds.
const CROSS_START_NS: u64 = 20_000_000_000;
/// Extra duration of cross traffic, nanoseconds; it is stopped when the run ends.
const CROSS_MARGIN_NS: u64 = 60_000_000_000;
/// Polling interval while waiting for cross traffic, nanoseconds.
const POLL_INTERVAL_NS: u64 = 20_000_000;

/// Client and server of a test.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// The client; `None` is this host.
    pub from: Option<String>,
    /// The server.
    pub to: String,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.from.as_deref().unwrap_or("this host"), self.to)
    }
}

/// Facts of the hosts of each pair, collected by a short test.
#[derive(Debug, Default)]
pub struct Survey(BTreeMap<Pair, BTreeMap<String, String>>);

impl Survey {
    /// Runs a short test between each pair.
    pub fn take(pairs: &BTreeMap<Pair, HostCell>, interrupted: &'static AtomicBool) -> anyhow::Result<Self> {
        let mut hosts = BTreeMap::new();
        for (pair, cell) in pairs {
            let mut request = request(cell).map_err(|entry| anyhow!("{}", crate::text::error(&entry)))?;
            request.parameters.time_ns = Some(SURVEY_NS);
            request.parameters.omit_ns = 0;
            request.parameters.bytes = None;
            let document = try_run(interrupted, &mut || test(cell, &request, interrupted, &mut |_| {}));
            let document = document.map_err(|why| match why {
                Unmeasured::Interrupted => anyhow!("interrupted"),
                Unmeasured::Refused(message) => anyhow!("cannot test {pair}: {message}"),
                Unmeasured::Failed(entry) => anyhow!("cannot test {pair}: {}", crate::text::error(&entry)),
            })?;
            hosts.insert(pair.clone(), Document::Run(Box::new(document)).records().remove(0).hosts);
        }
        Ok(Self(hosts))
    }

    /// Returns the facts of a pair's hosts.
    pub fn hosts(&self, pair: &Pair) -> Option<&BTreeMap<String, String>> {
        self.0.get(pair)
    }
}

/// Cross traffic of a run, stored in `runs/ID.cross`.
#[derive(Debug, Serialize, Deserialize)]
pub struct CrossRun {
    /// Name of the traffic in results.
    pub name: String,
    /// Its run document; the test was stopped when the main run ended.
    pub document: RunDocument,
}

/// Adds cross traffic to the facts of its run. If cross traffic failed, the run is not usable.
pub fn add_cross(facts: &mut RunFacts, cross: Vec<CrossRun>) {
    for CrossRun { name, document } in cross {
        if document.status == Status::Failed {
            let why = document.errors.first().map(|error| error.message.clone()).unwrap_or_default();
            facts.usable = false;
            facts.problems.push(format!("{name} did not flow: {why}"));
        }
        let mut own = RunFacts::of(&Document::Run(Box::new(document)));
        own.flows.iter_mut().for_each(|flow| flow.name = Some(name.clone()));
        facts.flows.append(&mut own.flows);
        facts.environments.append(&mut own.environments);
    }
}

/// Makes the missing runs of a sweep between hosts.
pub fn run(session: &Session, hosts: &Hosts, missing: (usize, u64), quiet: bool) {
    let mut board = ProgressLine::new(NOUNS, 1, quiet);
    board.expect(missing.0, missing.1);
    let mut engine = Engine { session, hosts, board, worker: worker_name(), held: None };
    while let Some(assigned) = session.next() {
        engine.make(&assigned);
    }
    engine.release();
    engine.board.clear();
}

struct Engine<'a> {
    session: &'a Session,
    hosts: &'a Hosts,
    board: ProgressLine,
    worker: String,
    held: Option<HeldSettings>,
}

/// Host settings held for the runs of one block.
struct HeldSettings {
    block: u32,
    group: usize,
    hosts: HeldHosts,
}

impl Engine<'_> {
    fn make(&mut self, assigned: &Assigned) {
        let entry = &assigned.entry;
        let plan = &self.session.setup.plan;
        let cell = match self.hosts.cell(plan, &entry.levels) {
            Ok(cell) => cell,
            Err(problem) => return self.session.fail(assigned, &self.worker, problem.message),
        };
        if let Err(error) = self.hold(assigned, &cell) {
            if self.session.is_interrupted() {
                return self.session.reschedule(assigned);
            }
            if error.kind == ChangeErrorKind::NotRestored {
                self.session.note(error.entry.clone());
            }
            return self.session.fail(assigned, &self.worker, error.to_string());
        }
        let request = match request(&cell) {
            Ok(request) => request,
            Err(entry) => return self.session.fail(assigned, &self.worker, crate::text::error(&entry)),
        };
        self.board.add_run(assigned.index + 1, self.session.setup.cells[entry.number].span_ns);
        self.board.begin(0, self.session.setup.cells[entry.number].span_ns);
        let began_ns = clock::monotonic_ns();
        let interrupted = self.session.interrupted();
        let (outcome, cross) = beside(&cell.cross, &request, interrupted, || {
            try_run(interrupted, &mut || {
                test(&cell, &request, interrupted, &mut |event| {
                    if let RunEvent::Progress(progress) = event {
                        let bytes = progress.upload.bytes.saturating_add(progress.download.bytes);
                        self.board.show(0, progress.t_ns, bytes);
                    }
                })
            })
        });
        let wall_s = (clock::monotonic_ns() - began_ns) as f64 / 1e9;
        self.board.end(0);
        match outcome {
            Ok(document) => self.keep(assigned, document, cross, wall_s),
            Err(Unmeasured::Interrupted) => self.session.reschedule(assigned),
            Err(Unmeasured::Refused(why)) => self.session.fail(assigned, &self.worker, why),
            Err(Unmeasured::Failed(entry)) => self.session.fail(assigned, &self.worker, crate::text::error(&entry)),
        }
    }

    fn keep(&self, assigned: &Assigned, document: RunDocument, cross: Vec<CrossRun>, wall_s: f64) {
        let made_by = RunOrigin { worker: self.worker.clone(), wall_s };
        let encoded = serde_json::to_vec(&document).and_then(|bytes| Ok((bytes, serde_json::to_vec(&cross)?)));
        match encoded {
            Ok((bytes, beside)) => {
                let mut facts = RunFacts::of(&Document::Run(Box::new(document)));
                let side = (!cross.is_empty()).then_some(ExtraFile { extension: "cross", content: &beside });
                add_cross(&mut facts, cross);
                self.session.keep_with(assigned, &bytes, side, facts, made_by);
            }
            Err(error) => self.session.fail(assigned, &self.worker, format!("cannot encode its document: {error}")),
        }
    }

    /// Applies the host settings of the cell, unless they are already held for this block and group.
    fn hold(&mut self, assigned: &Assigned, cell: &HostCell) -> Result<(), ChangeError> {
        let entry = &assigned.entry;
        let group = self.session.setup.cells[entry.number].group;
        if self.held.as_ref().is_some_and(|held| (held.block, held.group) == (entry.block, group)) {
            return Ok(());
        }
        if let Some(held) = self.held.take() {
            held.hosts.roll_back()?;
        }
        if !cell.changes_hosts() {
            return Ok(());
        }
        let mut hosts = begin(cell, self.session.interrupted())?;
        hosts.hold(&TuneupPlan { client: cell.client.clone(), server: cell.server.clone() })?;
        self.held = Some(HeldSettings { block: entry.block, group, hosts });
        Ok(())
    }

    fn release(&mut self) {
        if let Some(held) = self.held.take()
            && let Err(error) = held.hosts.roll_back()
        {
            self.session.note(error.entry);
        }
    }
}

/// Opens host changes on client and server.
fn begin(cell: &HostCell, interrupted: &'static AtomicBool) -> Result<HeldHosts, ChangeError> {
    let request = request(cell).map_err(|entry| ChangeError { kind: ChangeErrorKind::Unavailable, entry })?;
    let family = request.parameters.family;
    let remote = |target| HostChanges::remote(target, family, request.key.as_ref(), LIMIT, interrupted);
    let client = match &cell.from {
        Some(from) => remote(from)?,
        None => HostChanges::local(LIMIT, cell.args.trust)?,
    };
    Ok(HeldHosts::of(client, remote(&request.target)?))
}

/// Checks before the first run that the settings of the hosts can be changed.
pub fn check_changes(cells: &[HostCell], interrupted: &'static AtomicBool) -> anyhow::Result<()> {
    let mut asked = BTreeSet::new();
    for cell in cells.iter().filter(|cell| cell.changes_hosts()) {
        if !asked.insert(cell.pair()) {
            continue;
        }
        if let Err(error) = begin(cell, interrupted) {
            bail!(
                "cannot change settings of {}: {error}\nRun landspeed as root, and the servers with --allow-host-changes and a key.",
                cell.pair()
            );
        }
    }
    Ok(())
}

/// Runs one test. The document contains the verdict.
fn test(
    cell: &HostCell,
    request: &Request,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(&RunEvent<'_>),
) -> RunDocument {
    let remote = match &cell.from {
        Some(from) => Ok(RemoteEnd::ThirdParty(from.clone())),
        None => cell.args.with_iperf3.remote_end(cell.args.iperf3, cell.args.trust.policy()),
    };
    match remote {
        Ok(remote) => measure(request, &remote, interrupted, live::View::silent(), observe),
        Err(why) => client::not_started_document(request, why),
    }
}

/// Returns the test request of a cell.
fn request(cell: &HostCell) -> Result<Request, ErrorEntry> {
    of_args(&cell.args)
}

fn of_args(args: &crate::run::Args) -> Result<Request, ErrorEntry> {
    let (parameters, sound) = args.parameters();
    let mut request = Request {
        target: args.server(),
        parameters,
        key: None,
        command: std::env::args().collect(),
        data: None,
        start_ns: None,
    };
    ready(args, &mut request, sound)?;
    Ok(request)
}

/// Runs `main` while cross traffic flows. Returns its result and the cross traffic.
fn beside<T>(
    cross: &[Cross],
    request: &Request,
    interrupted: &AtomicBool,
    main: impl FnOnce() -> T,
) -> (T, Vec<CrossRun>) {
    let stop = AtomicBool::new(false);
    let begun: Vec<AtomicBool> = cross.iter().map(|_| AtomicBool::new(false)).collect();
    let done = Mutex::new(Vec::new());
    let lasts_ns =
        request.parameters.time_ns.unwrap_or(CROSS_MARGIN_NS) + request.parameters.omit_ns + CROSS_MARGIN_NS;
    let result = std::thread::scope(|scope| {
        for (cross, begun) in cross.iter().zip(&begun) {
            let (stop, done) = (&stop, &done);
            scope.spawn(move || {
                let document = flow(cross, lasts_ns, stop, begun);
                begun.store(true, Ordering::Relaxed);
                let run = CrossRun { name: cross.name.clone(), document };
                done.lock().unwrap_or_else(PoisonError::into_inner).push(run);
            });
        }
        let deadline_ns = clock::monotonic_ns() + CROSS_START_NS;
        while !begun.iter().all(|begun| begun.load(Ordering::Relaxed))
            && clock::monotonic_ns() < deadline_ns
            && !interrupted.load(Ordering::Relaxed)
        {
            clock::sleep_until(clock::monotonic_ns() + POLL_INTERVAL_NS);
        }
        let result = main();
        stop.store(true, Ordering::Relaxed);
        result
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by(|a, b| a.name.cmp(&b.name));
    (result, done)
}

fn flow(cross: &Cross, lasts_ns: u64, stop: &AtomicBool, begun: &AtomicBool) -> RunDocument {
    match of_args(&cross.args) {
        Ok(mut request) => {
            request.parameters.time_ns = Some(lasts_ns);
            request.parameters.bytes = None;
            client::third_party(&cross.from, &request, stop, &mut |event| {
                if matches!(event, RunEvent::Progress(_)) {
                    begun.store(true, Ordering::Relaxed);
                }
            })
        }
        Err(why) => {
            let request = Request {
                target: cross.args.server(),
                parameters: cross.args.parameters().0,
                key: None,
                command: Vec::new(),
                data: None,
                start_ns: None,
            };
            client::not_started_document(&request, why)
        }
    }
}
