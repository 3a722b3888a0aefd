//! The engine `local`: makes runs on this host.

use std::sync::Mutex;

use landspeed_lab::cell::PreparedCell;
use landspeed_model::{LabDocument, LabStatus};
use landspeed_results::Document;
use landspeed_sweep::document::RunFacts;
use landspeed_sys::clock;

use crate::cells::{self, Cells, lock};
use crate::lab::Lab;
use crate::origin::{RunOrigin, worker_name};
use crate::progress::Progress;
use crate::session::{Assigned, Session};

/// Makes the missing runs of a lab's sweep.
pub fn run(session: &Session, lab: &Lab, board: &Mutex<dyn Progress>) {
    let runs = LabRuns { session, lab, worker: worker_name() };
    cells::run(&runs, session.setup.jobs, &lab.setting(), session.interrupted(), board);
}

struct LabRuns<'a> {
    session: &'a Session,
    lab: &'a Lab,
    worker: String,
}

impl Cells for LabRuns<'_> {
    type Name = (Assigned, u64);

    fn next(&self, board: &Mutex<dyn Progress>) -> Option<(Self::Name, PreparedCell)> {
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
                Err(error) => self.session.fail(&assigned, &self.worker, error.to_string()),
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
