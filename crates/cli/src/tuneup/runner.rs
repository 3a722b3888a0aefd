//! Runs the tests of a search with the same code as `run`.

use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_experiment::hosts::{Unmeasured, try_run};
use landspeed_flow::client::{self, Request, Target};
use landspeed_flow::control::channel::Key;
use landspeed_model::{ErrorEntry, RunDocument};
use landspeed_tuneup::{Diagnosis, Facts, Measurement, Test, TestKind, TestOutcome};

use super::hosts::Hosts;
use crate::host_changes::{ChangeError, ChangeErrorKind};

/// Reason for a test without an outcome.
pub enum NoOutcome {
    /// The user interrupted it.
    Interrupted,
    /// The server is not reachable any more.
    Failed(ErrorEntry),
}

/// Runs tests against one server.
pub struct Runner {
    target: Target,
    key: Option<Key>,
    interrupted: &'static AtomicBool,
    /// Changes of both hosts, if permitted.
    hosts: Option<Hosts>,
    /// Start time of the first test, RFC 3339.
    pub started: Option<String>,
    /// Versions of client and server.
    pub build: landspeed_model::BuildInfo,
    /// Notes of the first test on settings that were not applied. A later test with a new note counts as refused.
    known_notes: Option<Vec<String>>,
}

impl Runner {
    /// Creates a runner for `target`. With `hosts`, host settings are changed for the tests that need it.
    pub fn new(target: Target, key: Option<Key>, hosts: Option<Hosts>, interrupted: &'static AtomicBool) -> Self {
        Self {
            target,
            key,
            interrupted,
            hosts,
            started: None,
            build: landspeed_model::BuildInfo::default(),
            known_notes: None,
        }
    }

    /// Applies the host settings and runs a test.
    pub fn run(&mut self, test: &Test) -> Result<TestOutcome, NoOutcome> {
        if let Some(hosts) = &mut self.hosts {
            match hosts.hold(&test.settings.plan) {
                Ok(()) => {}
                Err(error) if error.kind == ChangeErrorKind::Refused => {
                    return Ok(TestOutcome::Refused(error.entry.message));
                }
                Err(_) if self.interrupted.load(Ordering::Relaxed) => return Err(NoOutcome::Interrupted),
                Err(error) => return Err(NoOutcome::Failed(error.entry)),
            }
        }
        let request = Request {
            target: self.target.clone(),
            parameters: test.settings.parameters.clone(),
            key: self.key.clone(),
            command: Vec::new(),
            data: None,
            local_port: None,
            start_ns: None,
        };
        let tried = try_run(self.interrupted, &mut || client::run(&request, self.interrupted, &mut |_| {}));
        match tried {
            Ok(mut document) => Ok(self.outcome(test.kind, &mut document)),
            Err(Unmeasured::Refused(why)) => Ok(TestOutcome::Refused(why)),
            Err(Unmeasured::Interrupted) => Err(NoOutcome::Interrupted),
            Err(Unmeasured::Failed(error)) => Err(NoOutcome::Failed(error)),
        }
    }

    /// Restores the settings of both hosts.
    pub fn restore(&mut self) -> Result<(), ChangeError> {
        self.hosts.take().map_or(Ok(()), Hosts::roll_back)
    }

    fn outcome(&mut self, kind: TestKind, document: &mut RunDocument) -> TestOutcome {
        self.started.get_or_insert_with(|| document.started.clone());
        self.build = document.landspeed.clone();
        let notes = document.warnings.iter().filter(|warning| warning.code == "not-as-asked");
        let notes: Vec<String> = notes.map(|warning| warning.message.clone()).collect();
        match &self.known_notes {
            None => self.known_notes = Some(notes),
            Some(known) => {
                if let Some(new) = notes.into_iter().find(|note| !known.contains(note)) {
                    return TestOutcome::Refused(new);
                }
            }
        }
        let facts = (kind == TestKind::Diagnosis).then(|| Facts::of(document));
        let Some(measured) = Measurement::of(document) else {
            return TestOutcome::Refused("nothing arrived".to_owned());
        };
        let Some(mut facts) = facts else { return TestOutcome::Measured(measured) };
        let allowed = landspeed_sys::thread::allowed_cores();
        facts.client.cores.retain(|core| allowed.contains(core));
        facts.client.numa_local_cores.retain(|core| allowed.contains(core));
        crate::run::judge(document);
        TestOutcome::Diagnosed(measured, Box::new(Diagnosis { verdict: document.verdict.clone(), facts }))
    }
}
