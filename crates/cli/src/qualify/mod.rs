//! `landspeed qualify`.

mod args;
mod section;
pub mod text;

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use landspeed_experiment::hosts::{Unmeasured, try_run};
use landspeed_flow::client::{self, Request};
use landspeed_flow::control::channel::Key;
use landspeed_model::{ErrorEntry, Parameters, QUALIFY_SCHEMA, QualifyDocument, QualifyResult, RunDocument, Status};
use landspeed_qualify::{StreamOutcome, Suite, SuiteOptions};
use landspeed_sys::{clock, process};

pub use args::{Args, ModelArg};

use crate::{CommandOutcome, keep};

/// Tests the section, and prints the result.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    if let Some(sink) = &args.json {
        sink.check()?;
    }
    args.target().derive()?;
    let key = args.connection.key()?;
    let mut run = Runner { args, key, interrupted: process::catch_interrupts() };
    let document = qualify(args, &mut run)?;
    deliver(args, &document)
}

/// Runs tests over the section.
struct Runner<'a> {
    args: &'a Args,
    key: Option<Key>,
    interrupted: &'static AtomicBool,
}

/// Reason for the end of the tests.
enum Ended {
    Interrupted,
    Failed(ErrorEntry),
}

impl Runner<'_> {
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

    /// Waits; returns whether it was not interrupted.
    fn pause(&self, pause_ns: u64) -> bool {
        const STEP_NS: u64 = 100_000_000;
        let end_ns = clock::monotonic_ns() + pause_ns;
        while clock::monotonic_ns() < end_ns && !self.interrupted.load(Ordering::Relaxed) {
            clock::sleep_until(end_ns.min(clock::monotonic_ns() + STEP_NS));
        }
        !self.interrupted.load(Ordering::Relaxed)
    }
}

fn qualify(args: &Args, runner: &mut Runner<'_>) -> anyhow::Result<QualifyDocument> {
    let mut target = args.target();
    let mut document = QualifyDocument {
        schema: QUALIFY_SCHEMA.to_owned(),
        landspeed: landspeed_model::BuildInfo::default(),
        started: String::new(),
        command: process::command_line(),
        status: Status::Failed,
        errors: Vec::new(),
        target: args.server().to_string(),
        direction: args.direction(),
        target_performance: target.document(),
        derived: target.derive()?,
        section: None,
        verdict: QualifyResult::Inconclusive,
        reason: "no test ran".to_owned(),
        tests: Vec::new(),
        bottleneck_buffer_bytes: None,
        bottleneck_buffer_interval_bytes: None,
        sent_packets: 0,
        sent_bytes: 0,
    };
    let probe = match runner.run(args.probe()) {
        Ok(probe) => probe,
        Err(why) => {
            end(&mut document, why);
            return Ok(document);
        }
    };
    document.started.clone_from(&probe.started);
    document.landspeed = probe.landspeed.clone();
    let section = section::of(&probe, args.direction());
    target.ip_version = section::ip_version(&section);
    document.derived = target.derive()?;
    let unfit = section::check(&section, &target).err();
    let line_rate_bps = section.line_rate_bps;
    document.section = Some(section);
    if let Some(error) = unfit {
        end(&mut document, Ended::Failed(error));
        return Ok(document);
    }
    let options = SuiteOptions { line_rate_bps, max_test_ns: args.time.get(), gentle: args.gentle };
    let mut suite = Suite::new(target, &document.derived, options);
    if args.prints() {
        out!("{}", text::begin(&document, &suite));
    }
    let mut status = Status::Complete;
    let mut announced = None;
    while let Some(stream) = suite.next_stream() {
        if args.prints() && announced != Some(suite.current()) {
            announced = Some(suite.current());
            out!("{}", text::starting(&suite));
        }
        let ran = if runner.pause(stream.pause_ns) {
            runner.run(args.parameters(&stream))
        } else {
            Err(Ended::Interrupted)
        };
        match ran {
            Ok(run) => suite.take(&StreamOutcome::of(&run, &stream)),
            Err(why) => {
                status = Status::Partial;
                end(&mut document, why);
                break;
            }
        }
    }
    document.status = status;
    document.tests = suite.tests();
    (document.verdict, document.reason) = suite.verdict();
    let buffer = suite.buffer_bytes();
    document.bottleneck_buffer_bytes = buffer.map(|(bytes, _)| bytes);
    document.bottleneck_buffer_interval_bytes = buffer.map(|(_, interval)| interval);
    document.sent_packets = suite.sent_packets();
    document.sent_bytes = document.sent_packets * u64::from(target.mtu_bytes);
    Ok(document)
}

fn end(document: &mut QualifyDocument, why: Ended) {
    document.errors.push(match why {
        Ended::Interrupted => {
            ErrorEntry { code: "interrupted".to_owned(), message: "interrupted".to_owned(), advice: None }
        }
        Ended::Failed(error) => error,
    });
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
