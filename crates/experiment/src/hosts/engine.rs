//! Runs tests between hosts, one at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use landspeed_flow::client::{self, Request, RunEvent};
use landspeed_model::{RunDocument, TuneupPlan};
use landspeed_results::Document;
use landspeed_sweep::document::RunFacts;
use landspeed_sys::clock;
use landspeed_tune::{ChangeError, ChangeErrorKind};

use super::attempt::{Unmeasured, try_run};
use super::cell::{Cross, HostCell};
use super::command::HeldSettings;
use super::plan::Hosts;
use crate::cross::{CrossRun, add_cross};
use crate::directory::ExtraFile;
use crate::origin::{RunOrigin, worker_name};
use crate::progress::Progress;
use crate::session::{Assigned, Session};

/// Timeout for cross traffic to start, nanoseconds.
const CROSS_START_NS: u64 = 20_000_000_000;
/// Extra duration of cross traffic, nanoseconds; it is stopped when the run ends.
const CROSS_MARGIN_NS: u64 = 60_000_000_000;
/// Polling interval while waiting for cross traffic, nanoseconds.
const POLL_INTERVAL_NS: u64 = 20_000_000;

/// Makes the missing runs of a sweep between hosts.
pub fn run(session: &Session, hosts: &Hosts, board: &mut dyn Progress) {
    let mut engine = Engine { session, hosts, board, worker: worker_name(), held: None };
    while let Some(assigned) = session.next() {
        engine.make(&assigned);
    }
    engine.release();
}

struct Engine<'a> {
    session: &'a Session,
    hosts: &'a Hosts,
    board: &'a mut dyn Progress,
    worker: String,
    held: Option<HeldBlock>,
}

/// Host settings held for the runs of one block.
struct HeldBlock {
    block: u32,
    group: usize,
    settings: Box<dyn HeldSettings>,
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
        let request = match cell.test.request() {
            Ok(request) => request,
            Err(entry) => return self.session.fail(assigned, &self.worker, self.hosts.command().describe(&entry)),
        };
        self.board.add_run(assigned.index + 1, self.session.setup.cells[entry.number].span_ns);
        self.board.begin(0, self.session.setup.cells[entry.number].span_ns);
        let began_ns = clock::monotonic_ns();
        let interrupted = self.session.interrupted();
        let (outcome, cross) = beside(&cell.cross, &request, interrupted, || {
            try_run(interrupted, &mut || {
                cell.test.measure(&request, cell.from.as_ref(), interrupted, &mut |event| {
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
            Err(Unmeasured::Failed(entry)) => {
                self.session.fail(assigned, &self.worker, self.hosts.command().describe(&entry));
            }
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
            held.settings.roll_back()?;
        }
        if !cell.changes_hosts() {
            return Ok(());
        }
        let request = cell.test.request().map_err(ChangeError::unavailable)?;
        let mut settings = cell.open_changes(&request, self.session.interrupted())?;
        settings.hold(&TuneupPlan { client: cell.client.clone(), server: cell.server.clone() })?;
        self.held = Some(HeldBlock { block: entry.block, group, settings });
        Ok(())
    }

    fn release(&mut self) {
        if let Some(held) = self.held.take()
            && let Err(error) = held.settings.roll_back()
        {
            self.session.note(error.entry);
        }
    }
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
    match cross.test.request() {
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
                target: cross.test.server(),
                parameters: cross.test.parameters().0,
                key: None,
                command: Vec::new(),
                data: None,
                local_port: None,
                start_ns: None,
            };
            client::not_started_document(&request, why)
        }
    }
}
