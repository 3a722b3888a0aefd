//! `landspeed tuneup`.

mod args;
pub mod hosts;
mod map;
pub mod runner;
pub mod text;

use std::time::Duration;

use anyhow::anyhow;
use landspeed_model::{
    ErrorEntry, Status, TUNEUP_SCHEMA, TuneupDocument, TuneupEnd, TuneupPlan, TuneupResult, TuneupRung,
};
use landspeed_sys::{clock, process};
use landspeed_tuneup::{Candidate, Ladder, LadderOptions, RULES, Settings, TooShort, run_options};
use landspeed_units::Nanos;

pub use args::Args;

use self::hosts::Hosts;
use self::runner::{NoOutcome, Runner};
use self::text::Progress;
use crate::{CommandOutcome, keep};

/// Searches, and prints the result.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    args.output.check()?;
    let original = Settings { parameters: args.parameters(), plan: TuneupPlan::default() };
    landspeed_flow::validate::check(&original.parameters)?;
    let key = args.connection.key()?;
    let began_ns = clock::monotonic_ns();
    let seed = args.seed.unwrap_or_else(|| clock::realtime_ns() % 1_000_000);
    let ladder_options = LadderOptions {
        budget_ns: args.budget.get(),
        seed,
        host_changes: args.allow_host_changes,
        test_ns: args.time.map(Nanos::get),
        omit_ns: args.omit.map(Nanos::get),
        memory_bps: None,
        map: args.map.clone(),
    };
    let ladder = Ladder::new(original, ladder_options).map_err(|TooShort { min_ns }| {
        let least_s = min_ns.div_ceil(1_000_000_000);
        anyhow!("--budget {} is too short for these tests\nUse --budget {least_s}s or more.", args.budget)
    })?;
    let mut ladder = ladder.with_memory_bps(copy_bps());
    let interrupted = process::catch_interrupts();
    let hosts = args.allow_host_changes.then(|| {
        let budget = Duration::from_nanos(args.budget.get());
        Hosts::begin(
            &args.server(),
            args.parameters().family,
            key.as_ref(),
            budget,
            args.connection.trust,
            interrupted,
        )
    });
    let hosts = hosts.transpose().map_err(|error| anyhow!("{}", crate::text::error(&error.entry)))?;
    let mut runner = Runner::new(args.server(), key, hosts, interrupted);
    let mut progress = Progress::new(args.output.prints());
    progress.begin(&args.server().to_string(), args.budget, seed);
    let mut errors = Vec::new();
    while let Some(test) = ladder.next_test(clock::monotonic_ns() - began_ns) {
        progress.show_running(&test.what, ladder.tests() + 1);
        match runner.run(&test) {
            Ok(outcome) => ladder.take(clock::monotonic_ns() - began_ns, outcome),
            Err(NoOutcome::Interrupted) => ladder.stop(TuneupEnd::Interrupted, "it was interrupted"),
            Err(NoOutcome::Failed(error)) => {
                ladder.stop(TuneupEnd::Failed, error.message.clone());
                errors.push(error);
            }
        }
        progress.shows(&ladder);
        if args.dry_run && ladder.diagnosis().is_some() {
            break;
        }
    }
    if let Err(error) = runner.restore() {
        ladder.stop(TuneupEnd::Failed, error.entry.message.clone());
        errors.push(error.entry);
    }
    progress.end();
    let mut document = document(args, &ladder, &runner, errors);
    document.seed = seed;
    document.spent_ns = clock::monotonic_ns() - began_ns;
    deliver(args, &document)
}

/// Measures the rate at which one core copies uncached memory, bits/s: the best of three.
fn copy_bps() -> f64 {
    const BYTES: usize = 64 << 20;
    // Both buffers are written first, to exclude page faults from the measurement.
    let (from, mut to) = (vec![1_u8; BYTES], vec![2_u8; BYTES]);
    let mut copy = || {
        let began_ns = clock::monotonic_ns();
        std::hint::black_box(&mut to).copy_from_slice(std::hint::black_box(&from));
        clock::monotonic_ns() - began_ns
    };
    let fastest_ns = (0..3).map(|_| copy()).min().unwrap_or(u64::MAX);
    BYTES as f64 * 8e9 / fastest_ns.max(1) as f64
}

/// Returns the document of the search so far.
fn document(args: &Args, ladder: &Ladder, runner: &Runner, mut errors: Vec<ErrorEntry>) -> TuneupDocument {
    let (ended, because) = match ladder.ended() {
        Some((ended, because)) => (ended, because.to_owned()),
        None => (TuneupEnd::DryRun, "only the changes that would be tried were asked for".to_owned()),
    };
    if ended == TuneupEnd::Failed && errors.is_empty() {
        errors.push(ErrorEntry { code: "test-failed".to_owned(), message: because.clone(), advice: None });
    }
    let baseline = ladder.baseline();
    let status = match ended {
        TuneupEnd::Failed | TuneupEnd::Interrupted if baseline.is_none() => Status::Failed,
        TuneupEnd::Failed | TuneupEnd::Interrupted => Status::Partial,
        _ => Status::Complete,
    };
    let rungs = match ended {
        TuneupEnd::DryRun => ladder.available().iter().map(|candidate| not_tried(candidate, ladder)).collect(),
        _ => ladder.rungs().to_vec(),
    };
    let (test_ns, omit_ns) = ladder.lengths_ns();
    let placement = ladder.placement();
    let map = ladder.map();
    let mut notes: Vec<String> = map.as_ref().and_then(map::note).into_iter().collect();
    if let Some(flow) = placement.iter().find(|flow| flow.collides_with.iter().any(|other| *other > flow.stream)) {
        let cpu = flow.receive_queue_cpu.unwrap_or(0);
        let others: Vec<String> = flow.collides_with.iter().map(ToString::to_string).collect();
        notes.push(format!(
            "CPU {cpu} of the receiver serves stream {} and {}: they collide in one receive queue",
            flow.stream,
            others.join(", ")
        ));
    }
    TuneupDocument {
        schema: TUNEUP_SCHEMA.to_owned(),
        landspeed: runner.build.clone(),
        started: runner.started.clone().unwrap_or_default(),
        command: process::command_line(),
        status,
        errors,
        target: args.server().to_string(),
        direction: args.parameters().direction,
        seed: 0,
        budget_ns: args.budget.get(),
        spent_ns: 0,
        tests: ladder.tests(),
        test_ns,
        omit_ns,
        ended,
        ended_because: because,
        rules: RULES,
        baseline,
        rungs,
        map,
        sanity: ladder.sanity(),
        baseline_again: ladder.baseline_again(),
        result: result(args, ladder),
        placement,
        notes,
    }
}

fn result(args: &Args, ladder: &Ladder) -> Option<TuneupResult> {
    let goodput_bps = ladder.best_bps()?;
    let gain = ladder.total_gain();
    let verdict = ladder.diagnosis().map(|diagnosis| &diagnosis.verdict);
    Some(TuneupResult {
        goodput_bps,
        ratio: gain.map(|gain| gain.estimate),
        low: gain.map(|gain| gain.low),
        high: gain.map(|gain| gain.high),
        command: command(args, ladder.best()),
        plan: ladder.plan().clone(),
        settings: ladder.best().parameters.clone(),
        cause: verdict.map(|verdict| verdict.cause),
        summary: verdict.map(|verdict| verdict.summary.clone()),
    })
}

/// Returns a change that a dry run lists without testing it.
fn not_tried(candidate: &Candidate, ladder: &Ladder) -> TuneupRung {
    let verdict = ladder.diagnosis().filter(|_| candidate.cause.is_some()).map(|diagnosis| &diagnosis.verdict);
    TuneupRung {
        change: candidate.change.clone(),
        reason: candidate.reason.clone(),
        cause: candidate.cause,
        evidence: verdict.map(|verdict| verdict.evidence.clone()).unwrap_or_default(),
        ratio: None,
        low: None,
        high: None,
        level: None,
        pairs: 0,
        best_bps: None,
        goodput_bps: None,
        bounds: Vec::new(),
        kept: false,
        rejected: Some("not tried (--dry-run)".to_owned()),
        client_changes: candidate.settings.plan.client.clone(),
        server_changes: candidate.settings.plan.server.clone(),
    }
}

/// Returns the `landspeed run` command with these settings.
fn command(args: &Args, settings: &Settings) -> String {
    let mut words = vec!["landspeed".to_owned(), "run".to_owned(), args.server().to_string()];
    words.extend(run_options(&settings.parameters));
    if let Some(path) = &args.connection.key_file {
        words.extend(["--key-file".to_owned(), path.display().to_string()]);
    }
    landspeed_quote::shell_command(words)
}

fn deliver(args: &Args, document: &TuneupDocument) -> anyhow::Result<CommandOutcome> {
    if args.output.prints() {
        out!("{}", text::summary(document));
    }
    if document.status != Status::Complete {
        for error in &document.errors {
            errln!("landspeed: {}", crate::text::error(error));
        }
    }
    if document.status != Status::Failed {
        keep::keep(document);
    }
    args.output.write(document, || Ok(landspeed_report::render_tuneup(document)?))?;
    Ok(match document.status {
        _ if document.ended == TuneupEnd::Failed => CommandOutcome::Failure,
        Status::Failed | Status::Partial => CommandOutcome::Findings,
        Status::Complete if document.baseline_again.as_ref().is_some_and(|again| again.moved) => {
            CommandOutcome::Findings
        }
        Status::Complete => CommandOutcome::Clean,
    })
}
