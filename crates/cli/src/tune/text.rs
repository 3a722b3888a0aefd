//! What a person reads of a transaction.

use std::fmt::Write as _;

use landspeed_sys::clock;
use landspeed_tune::{Applied, Engine, Journal, Outcome, Plan, Recovered, State, Step, StepState, Value};
use serde_json::json;

/// Widest name column.
const NAME_COLUMNS: usize = 40;

/// The plan as a difference: `+` is written, `=` is there already, `!` is refused.
pub fn plan(plan: &Plan) -> String {
    let mut text = String::new();
    let refused = plan.refused().count();
    let already = plan.steps.iter().filter(|step| step.no_op).count();
    let _ = writeln!(text, "Plan: {} to write, {already} already so, {refused} refused", plan.writes());
    let width = plan.steps.iter().map(|step| step.name.len()).max().unwrap_or(0).min(NAME_COLUMNS);
    for step in plan.steps.iter().filter(|step| !step.keep) {
        let now = step.observed.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string);
        let name = &step.name;
        if step.no_op {
            let _ = writeln!(text, "  = {name:width$}  {now}");
            continue;
        }
        let mark = if step.refused.is_some() { '!' } else { '+' };
        let _ = writeln!(text, "  {mark} {name:width$}  {now} -> {}", desired(step));
        if let Some(why) = &step.refused {
            let _ = writeln!(text, "    {:width$}  refused: {why}", "");
        }
        for note in &step.notes {
            let _ = writeln!(text, "    {:width$}  {note}", "");
        }
    }
    text
}

fn desired(step: &Step) -> String {
    match &step.observed {
        Some(Value::Qdiscs(tree))
            if tree.root().is_some_and(|root| root.kind == "mq") && !["default", "htb"].contains(&&*step.desired) =>
        {
            format!("mq with {} on each of {} queues", step.desired, tree.senders().len())
        }
        _ => step.desired.clone(),
    }
}

/// What was written, and what has to be done now.
pub fn applied(applied: &Applied) -> String {
    let mut text = String::new();
    for step in applied.written.iter().filter(|step| step.rounded) {
        let _ =
            writeln!(text, "  {}: {} was asked for, the driver took {}", step.target, step.requested, step.observed);
    }
    let _ = writeln!(
        text,
        "Transaction {}: {} written and read back. It is taken back in {} s unless it is confirmed.\n\
         From a new session: landspeed tune confirm",
        applied.id,
        applied.written.len(),
        applied.confirm_s
    );
    text
}

/// What became of a revert.
pub fn reverted(journal: &Journal, state: &State) -> String {
    let mut text = String::new();
    if *state == State::Reverted {
        let _ =
            writeln!(text, "Transaction {} is taken back: {}.", journal.id, journal.reason().unwrap_or("as before"));
    } else {
        let _ = writeln!(text, "Transaction {} is not taken back in full:", journal.id);
    }
    for (number, step) in journal.steps().iter().enumerate() {
        let StepState::Settled { before, outcome, .. } = journal.step_state(number) else { continue };
        match outcome {
            Outcome::Restored | Outcome::AlreadyThere => {}
            Outcome::Gone => {
                let _ = writeln!(text, "  {} is gone, and the change with it", step.target);
            }
            Outcome::Drift { found } => {
                let _ = writeln!(
                    text,
                    "  ! {}: somebody else set it to {found}; before, it was {before}. --force puts that back",
                    step.target
                );
            }
            Outcome::Failed { why } => {
                let _ = writeln!(text, "  ! {why}");
            }
        }
    }
    text
}

/// All transactions, the last first.
pub fn status(engine: &Engine<'_>, journals: &[Journal], recovered: &[Recovered]) -> String {
    let mut text = String::new();
    for found in recovered {
        let _ = writeln!(text, "Transaction {} was unfinished and has been dealt with: {}.", found.id, found.why);
    }
    if journals.is_empty() {
        let _ = writeln!(text, "No transactions.");
    }
    for journal in journals.iter().rev() {
        let _ = writeln!(text, "{:>4}  {}", journal.id, standing(engine, journal));
        for (number, step) in journal.steps().iter().enumerate().filter(|(_, step)| !step.keep) {
            if let Some(line) = step_line(engine, journal, number) {
                let _ = writeln!(text, "      {}  {line}", step.target);
            }
        }
        if let Some((files, whole)) = journal.persisted() {
            let how = if whole { "kept over reboots in" } else { "being written:" };
            let paths: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
            let _ = writeln!(text, "      {how} {}", paths.join(", "));
        }
    }
    text
}

fn of_this_boot(engine: &Engine<'_>, journal: &Journal) -> bool {
    journal.records().first().is_none_or(|record| record.boot == engine.context().boot)
}

fn standing(engine: &Engine<'_>, journal: &Journal) -> String {
    match journal.state() {
        State::Committed if !of_this_boot(engine, journal) => {
            "confirmed before the last restart, which undid what was set at run time".into()
        }
        State::Committed => "confirmed".into(),
        State::AwaitingConfirm { deadline_ns } => {
            let left = deadline_ns.saturating_sub(clock::monotonic_ns()) / 1_000_000_000;
            format!("awaits its confirmation: {left} s left, then it is taken back")
        }
        State::Planned | State::Armed => "about to be written".into(),
        State::Applying => "being written".into(),
        State::Reverting => "being taken back".into(),
        State::Reverted => format!("taken back: {}", journal.reason().unwrap_or("as before")),
        State::NeedsAttention => format!("needs attention: {}", journal.reason().unwrap_or("see its journal")),
    }
}

fn step_line(engine: &Engine<'_>, journal: &Journal, number: usize) -> Option<String> {
    let step = &journal.steps()[number];
    match journal.step_state(number) {
        StepState::Applied { before, observed, .. } => {
            let mut line = format!("{before} -> {observed}");
            let name = step.device.as_ref().map(|device| engine.knobs().find(device));
            let target = match name {
                None => Some(step.target.clone()),
                Some(name) => name.map(|name| step.target_on(&name)),
            };
            let here = journal.records().first().is_some_and(|r| r.namespace == engine.context().namespace);
            if here && of_this_boot(engine, journal) {
                match target.map(|target| engine.knobs().read(&target)) {
                    Some(Ok(now)) if now.same(&observed) => {}
                    Some(Ok(now)) => {
                        let _ = write!(line, ", now {now}");
                    }
                    _ => line.push_str(", now gone"),
                }
            }
            Some(line)
        }
        StepState::InFlight { before } => Some(format!("{before} -> {} (under way)", step.desired)),
        StepState::Untouched | StepState::Settled { .. } => None,
    }
}

/// A transaction as a document.
pub fn transaction_json(engine: &Engine<'_>, journal: &Journal) -> serde_json::Value {
    let steps: Vec<_> = journal
        .steps()
        .iter()
        .enumerate()
        .map(|(number, step)| {
            let (state, before, observed, outcome) = match journal.step_state(number) {
                StepState::Untouched => ("untouched", Some(step.before.clone()), None, None),
                StepState::InFlight { before } => ("in-flight", Some(before), None, None),
                StepState::Applied { before, observed, .. } => ("applied", Some(before), Some(observed), None),
                StepState::Settled { before, observed, outcome } => {
                    ("settled", Some(before), observed, Some(outcome))
                }
            };
            json!({
                "name": step.target.to_string(), "target": step.target, "requested": step.desired, "state": state,
                "before": before, "observed": observed, "outcome": outcome,
            })
        })
        .collect();
    json!({
        "schema": "landspeed.tune/1",
        "id": journal.id,
        "state": journal.state(),
        "why": journal.reason(),
        "this_boot": of_this_boot(engine, journal),
        "steps": steps,
        "persisted": journal.persisted().map(|(files, _)| files.iter().map(|file| &file.path).collect::<Vec<_>>()),
    })
}
