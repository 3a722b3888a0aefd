//! Cross traffic of a run between hosts, stored beside its document.

use landspeed_model::{RunDocument, Status};
use landspeed_results::Document;
use landspeed_sweep::document::RunFacts;
use serde::{Deserialize, Serialize};

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
