//! `landspeed qualify`.

mod args;
pub mod drive;
mod section;
pub mod text;

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use landspeed_experiment::hosts::{Unmeasured, try_run};
use landspeed_flow::client::{self, Request};
use landspeed_flow::control::channel::Key;
use landspeed_model::{ErrorEntry, Parameters, QualifyDocument, QualifyResult, RunDocument, Status};
use landspeed_qualify::Suite;
use landspeed_sys::{clock, process};

pub use args::{Args, ModelArg};
use drive::{Ended, Runner, Task};

use crate::{CommandOutcome, keep};

/// Tests the section, and prints the result.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if let Some(sink) = &args.json {
        sink.check()?;
    }
    let target = args.target();
    target.derive()?;
    let key = args.connection.key()?;
    let task = Task {
        server: args.server().to_string(),
        target,
        direction: args.direction(),
        max_test_ns: args.time.get(),
        gentle: args.gentle,
        parameters: args.parameters(),
        section: None,
    };
    let mut runner = HostRunner { args, key, interrupted: process::catch_interrupts(), announced: None };
    let document = drive::qualify(&task, &mut runner)?;
    deliver(args, &document)
}

/// Runs tests over the section, and shows them.
struct HostRunner<'a> {
    args: &'a Args,
    key: Option<Key>,
    interrupted: &'static AtomicBool,
    /// Test that was shown last.
    announced: Option<usize>,
}

impl Runner for HostRunner<'_> {
    fn run(&mut self, parameters: Parameters) -> Result<RunDocument, Ended> {
        let request = Request {
            target: self.args.server(),
            parameters,
            key: self.key.clone(),
            command: Vec::new(),
            data: None,
            local_port: None,
            start_ns: None,
        };
        let measured = try_run(self.interrupted, &mut || client::run(&request, self.interrupted, &mut |_| {}));
        measured.map_err(|why| match why {
            Unmeasured::Interrupted => Ended::Interrupted,
            Unmeasured::Refused(message) => {
                Ended::Failed(ErrorEntry { code: "refused".to_owned(), message, advice: None })
            }
            Unmeasured::Failed(error) => Ended::Failed(error),
        })
    }

    fn pause(&mut self, pause_ns: u64) -> bool {
        const STEP_NS: u64 = 100_000_000;
        let end_ns = clock::monotonic_ns() + pause_ns;
        while clock::monotonic_ns() < end_ns && !self.interrupted.load(Ordering::Relaxed) {
            clock::sleep_until(end_ns.min(clock::monotonic_ns() + STEP_NS));
        }
        !self.interrupted.load(Ordering::Relaxed)
    }

    fn begins(&mut self, document: &QualifyDocument, suite: &Suite) {
        if self.args.prints() {
            out!("{}", text::begin(document, suite));
        }
    }

    fn sends(&mut self, suite: &Suite) {
        if self.args.prints() && self.announced != Some(suite.current()) {
            self.announced = Some(suite.current());
            out!("{}", text::starting(suite));
        }
    }
}

fn deliver(args: &Args, document: &QualifyDocument) -> anyhow::Result<CommandOutcome> {
    if args.prints() && !document.tests.is_empty() {
        out!("{}", text::result(document));
    }
    for error in &document.errors {
        errln!("landspeed: {}", crate::text::error(error));
    }
    if document.status != Status::Failed {
        keep::keep(document);
    }
    if let Some(sink) = &args.json {
        let mut text = serde_json::to_vec(document).context("cannot encode the document")?;
        text.push(b'\n');
        sink.write(&text)?;
    }
    let interrupted = document.errors.iter().any(|error| error.code == "interrupted");
    Ok(match (document.status, document.verdict) {
        (Status::Complete, QualifyResult::Pass) => CommandOutcome::Clean,
        (Status::Complete, _) => CommandOutcome::Findings,
        _ if interrupted => CommandOutcome::Findings,
        _ => CommandOutcome::Failure,
    })
}
