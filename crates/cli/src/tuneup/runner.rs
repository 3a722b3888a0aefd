//! Runs the tests of a search by the same code as `run`.

use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_flow::client::{self, Request, Target};
use landspeed_flow::control::channel::Key;
use landspeed_model::{ErrorEntry, RunDocument, Status};
use landspeed_sys::clock;
use landspeed_tuneup::{Diagnosis, Facts, Measurement, Test, TestKind, TestOutcome};

use super::hosts::Hosts;
use crate::host_changes::{ChangeError, ChangeErrorKind};

/// Tries of a test that failed for no reason of its settings.
const TRIES: u32 = 3;
/// Between them, nanoseconds: a server that was busy may be free by then.
const PAUSE_NS: u64 = 1_000_000_000;

/// Why a test has no outcome.
pub enum NoOutcome {
    /// The user interrupted it.
    Interrupted,
    /// The server, or the way to it, is gone.
    Failed(ErrorEntry),
}

/// Why a test measured nothing.
pub enum Unmeasured {
    /// The user interrupted it.
    Interrupted,
    /// An end could not, or would not, set up a test like this.
    Refused(String),
    /// The server, or the way to it, is gone.
    Failed(ErrorEntry),
}

/// Runs a test; tries again where that may help.
pub fn try_run(interrupted: &AtomicBool, run: &mut dyn FnMut() -> RunDocument) -> Result<RunDocument, Unmeasured> {
    let mut tries = 0;
    loop {
        tries += 1;
        let document = run();
        if interrupted.load(Ordering::Relaxed) {
            return Err(Unmeasured::Interrupted);
        }
        let Some(error) = document.errors.first().filter(|_| document.status != Status::Complete) else {
            return Ok(document);
        };
        if is_about_settings(error) {
            return Err(Unmeasured::Refused(error.message.clone()));
        }
        if tries == TRIES || is_final(error) {
            return Err(Unmeasured::Failed(error.clone()));
        }
        clock::sleep_until(clock::monotonic_ns() + PAUSE_NS);
    }
}

/// Runs tests against one server.
pub struct Runner {
    target: Target,
    key: Option<Key>,
    interrupted: &'static AtomicBool,
    /// Both hosts, where their settings may be changed.
    hosts: Option<Hosts>,
    /// When the first test began, RFC 3339.
    pub started: Option<String>,
    /// Versions of both ends.
    pub build: landspeed_model::BuildInfo,
    /// What the first test did not get as asked: the same holds for all.
    known_notes: Option<Vec<String>>,
}

impl Runner {
    /// Tests against `target`; with `hosts`, their settings are changed as a test needs them.
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

    /// Runs a test to its end.
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

    /// Puts the settings of both hosts back.
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
        facts.client.near_cores.retain(|core| allowed.contains(core));
        crate::run::judge(document);
        TestOutcome::Diagnosed(measured, Box::new(Diagnosis { verdict: document.verdict.clone(), facts }))
    }
}

/// An end could not, or would not, set up a test like this.
fn is_about_settings(error: &ErrorEntry) -> bool {
    ["socket-setup", "bad-parameters", "not-permitted"].contains(&error.code.as_str())
}

/// Another try would end alike.
fn is_final(error: &ErrorEntry) -> bool {
    !["server-busy", "timeout", "stream"].contains(&error.code.as_str())
}
