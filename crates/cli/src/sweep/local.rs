//! The engine `local`: makes runs on this host.

use std::sync::Mutex;

use landspeed_lab::cell::PreparedCell;
use landspeed_model::{LabDocument, LabStatus};
use landspeed_results::Document;
use landspeed_sweep::document::RunFacts;
use landspeed_sys::clock;

use super::directory::RunOrigin;
use super::lab::Lab;
use super::session::{Assigned, Session};
use crate::board::{Nouns, ProgressLine};
use crate::lab::cells::{self, Cells, lock};

/// Nouns in the progress line.
const NOUNS: Nouns = Nouns { runs: "runs", time: " of virtual time" };

/// Makes the missing runs of a lab's sweep.
pub fn lab(session: &Session, lab: &Lab, missing: (usize, u64), quiet: bool) {
    let mut board = ProgressLine::new(NOUNS, session.setup.jobs, quiet);
    board.expect(missing.0, missing.1);
    let runs = LabRuns { session, lab, worker: worker_name() };
    cells::run(&runs, session.setup.jobs, &lab.setting(), session.interrupted(), &Mutex::new(board));
}

/// Returns the host name, for documents.
pub fn worker_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

struct LabRuns<'a> {
    session: &'a Session,
    lab: &'a Lab,
    worker: String,
}

impl Cells for LabRuns<'_> {
    type Name = (Assigned, u64);

    fn next(&self, board: &Mutex<ProgressLine>) -> Option<(Self::Name, PreparedCell)> {
        loop {
            let assigned = self.session.next()?;
            let entry = &assigned.entry;
            let prepared =
                self.lab.prepare(&self.session.setup.plan, &entry.levels, entry.seed, entry.kernel.as_deref());
            match prepared {
                Ok(ready) => {
                    lock(board).add_run(assigned.index + 1, cells::span_ns(&ready));
                    return Some(((assigned, clock::monotonic_ns()), ready));
                }
                Err(error) => self.session.fail(&assigned, &self.worker, format!("{error:#}")),
            }
        }
    }

    fn done(&self, (assigned, began_ns): Self::Name, document: LabDocument) {
        if self.session.is_interrupted() && document.status != LabStatus::Complete {
            self.session.reschedule(&assigned);
            return;
        }
        let wall_s = (clock::monotonic_ns() - began_ns) as f64 / 1e9;
        let made_by = RunOrigin { worker: self.worker.clone(), wall_s };
        match serde_json::to_vec(&document) {
            Ok(bytes) => {
                let facts = RunFacts::of(&Document::Lab(Box::new(document)));
                self.session.keep(&assigned, &bytes, facts, made_by);
            }
            Err(error) => self.session.fail(&assigned, &self.worker, format!("cannot encode its document: {error}")),
        }
    }
}
