//! Terminal output of transactions.

use std::fmt::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;

use landspeed_model::Change;
use landspeed_quote::shell_command;
use landspeed_sys::clock;
use landspeed_sys::process::Identity;
use landspeed_tune::{
    Applied, Engine, Journal, Plan, Recovered, RestoreOutcome, State, Step, StepCheck, StepState, Value,
};
use serde_json::json;

/// Maximum width of the name column.
const NAME_COLUMNS: usize = 40;

/// Returns the command that plans these changes.
pub fn plan_command(changes: &[Change]) -> String {
    let settings = changes.iter().flat_map(|change| ["--set".to_owned(), landspeed_tune::setting(change)]);
    shell_command(["landspeed", "tune", "plan"].map(str::to_owned).into_iter().chain(settings))
}

/// Formats the plan like a diff: `+` will be written, `=` is already set, `!` is refused.
pub fn plan(plan: &Plan) -> String {
    let mut text = String::new();
    let refused = plan.refused().count();
    let already = plan.steps.iter().filter(|step| step.no_op).count();
    let _ = writeln!(text, "Plan: {} to write, {already} already set, {refused} refused", plan.writes());
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
            format!("mq with {} on each of {} queues", step.desired, tree.transmit_qdiscs().len())
        }
        _ => step.desired.clone(),
    }
}

/// Formats the written settings and how to confirm them.
pub fn applied(applied: &Applied) -> String {
    let mut text = String::new();
    for step in applied.written.iter().filter(|step| step.rounded) {
        let _ =
            writeln!(text, "  {}: {} was asked for, the driver took {}", step.target, step.requested, step.observed);
    }
    let _ = writeln!(
        text,
        "Transaction {}: {} written and read back. It is rolled back in {} s unless it is confirmed.\n\
         From a new session: landspeed tune confirm",
        applied.id,
        applied.written.len(),
        seconds_to(applied.deadline_ns)
    );
    if let Some(warning) = &applied.watchdog.warning {
        let _ = writeln!(text, "Warning: {warning}.");
    }
    text
}

/// Returns the seconds until a deadline, rounded up.
fn seconds_to(deadline_ns: u64) -> u64 {
    deadline_ns.saturating_sub(clock::monotonic_ns()).div_ceil(1_000_000_000)
}

/// Formats the result of a revert.
pub fn reverted(engine: &Engine<'_>, journal: &Journal, state: &State) -> String {
    let mut text = String::new();
    let steps = journal.steps();
    let why = journal.reason().unwrap_or("no reason recorded");
    if *state != State::Reverted {
        let open = if journal.is_planned() { String::new() } else { format!(" {why}") };
        let _ = writeln!(text, "Transaction {} is not rolled back in full:{open}", journal.id);
    } else if is_from_this_boot(engine, journal) {
        let as_before =
            (0..steps.len()).filter(|&step| engine.check_step(journal, step) == StepCheck::AsBefore).count();
        let _ = writeln!(
            text,
            "Transaction {} rolled back ({why}). {as_before} of {} settings checked: as before.",
            journal.id,
            steps.len()
        );
    } else {
        let _ = writeln!(text, "Transaction {} rolled back ({why}).", journal.id);
    }
    for (number, step) in steps.iter().enumerate() {
        let StepState::Settled { before, outcome, .. } = journal.step_state(number) else { continue };
        match outcome {
            RestoreOutcome::Restored | RestoreOutcome::AlreadyThere | RestoreOutcome::Unwritten => {}
            RestoreOutcome::Gone => {
                let _ = writeln!(text, "  {} is gone, and the change with it", step.target);
            }
            RestoreOutcome::Drift { found } => {
                let _ = writeln!(
                    text,
                    "  ! {} is {found} and was {before}: another program set it, or its record is lost. --force restores {before}",
                    step.target
                );
            }
            RestoreOutcome::Unchecked { why } => {
                let _ = writeln!(text, "  ! {} is not checked: {why}", step.target);
            }
            RestoreOutcome::Failed { why } => {
                let _ = writeln!(text, "  ! {why}");
            }
        }
    }
    text
}

/// Formats all transactions, latest first.
pub fn status(engine: &Engine<'_>, journals: &[Journal], recovered: &[Recovered]) -> String {
    let mut text = String::new();
    for found in recovered {
        let _ = writeln!(text, "Transaction {} was unfinished and has been dealt with: {}.", found.id, found.why);
    }
    if journals.is_empty() {
        let _ = writeln!(text, "No transactions.");
    }
    for journal in journals.iter().rev() {
        let _ = writeln!(text, "{:>4}  {}", journal.id, transaction_state(engine, journal));
        if let Some(namespace) = namespace(engine, journal) {
            let _ = writeln!(text, "      network namespace {namespace}");
        }
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

fn is_from_this_boot(engine: &Engine<'_>, journal: &Journal) -> bool {
    journal.records().first().is_none_or(|record| record.boot == engine.context().boot)
}

fn transaction_state(engine: &Engine<'_>, journal: &Journal) -> String {
    match journal.state() {
        State::Committed if !is_from_this_boot(engine, journal) => {
            "confirmed before the last restart, which undid what was set at run time".into()
        }
        State::Committed => "confirmed".into(),
        State::AwaitingConfirm { deadline_ns } => {
            let left = seconds_to(deadline_ns);
            match journal.holder() {
                Some(Identity { pid, .. }) => {
                    format!("held by process {pid}: rolled back when that ends, in {left} s at the latest")
                }
                None => format!("awaiting confirmation: {left} s left, then it is rolled back"),
            }
        }
        State::Planned | State::Armed => "about to be written".into(),
        State::Applying => "being written".into(),
        State::Reverting => "being rolled back".into(),
        State::Reverted => format!("rolled back ({})", journal.reason().unwrap_or("no reason recorded")),
        State::NeedsAttention => format!("needs attention: {}", journal.reason().unwrap_or("see its journal")),
    }
}

/// Network namespace of a transaction: inode name, name in `/run/netns`, and whether it is this process's.
struct Namespace<'a> {
    kernel: &'a str,
    name: Option<String>,
    current: bool,
}

fn namespace<'a>(engine: &Engine<'_>, journal: &'a Journal) -> Option<Namespace<'a>> {
    let kernel = journal.records().first()?.namespace.as_str();
    let name = is_from_this_boot(engine, journal).then(|| namespace_name(kernel)).flatten();
    Some(Namespace { kernel, name, current: kernel == engine.context().namespace })
}

/// Returns the `ip netns` name of the kernel's `net:[INODE]`.
fn namespace_name(kernel: &str) -> Option<String> {
    let inode: u64 = kernel.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()?;
    let entries = std::fs::read_dir("/run/netns").ok()?;
    let found =
        entries.flatten().find(|entry| std::fs::metadata(entry.path()).is_ok_and(|facts| facts.ino() == inode));
    found.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

impl fmt::Display for Namespace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kernel)?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        f.write_str(if self.current { " (this one)" } else { " (another one)" })
    }
}

/// Formats the current state of a step; `None` if it is as a finished transaction left it.
fn step_line(engine: &Engine<'_>, journal: &Journal, number: usize) -> Option<String> {
    let step = &journal.steps()[number];
    let check = engine.check_step(journal, number);
    let now = match &check {
        StepCheck::AsBefore => ", now as before".to_owned(),
        StepCheck::AsWritten => String::new(),
        StepCheck::Differs { now } => format!(", now {now}"),
        StepCheck::Gone => ", now gone".to_owned(),
        StepCheck::NotChecked { why } => format!(", not checked: {why}"),
    };
    match journal.step_state(number) {
        StepState::Applied { before, observed, .. } => Some(format!("{before} -> {observed}{now}")),
        StepState::InFlight { before } => Some(format!("{before} -> {} (under way){now}", step.desired)),
        StepState::NotStarted | StepState::Settled { .. } => match (journal.state(), check) {
            (_, StepCheck::AsBefore | StepCheck::Gone) | (State::Reverted, StepCheck::NotChecked { .. }) => None,
            (State::Reverted, _) => Some(format!("{}, changed since it was rolled back{now}", step.before)),
            _ => Some(format!("{} before{now}", step.before)),
        },
    }
}

/// Returns a transaction as JSON.
pub fn transaction_json(engine: &Engine<'_>, journal: &Journal) -> serde_json::Value {
    let steps: Vec<_> = journal
        .steps()
        .iter()
        .enumerate()
        .map(|(number, step)| {
            let (state, before, observed, outcome) = match journal.step_state(number) {
                StepState::NotStarted => ("untouched", Some(step.before.clone()), None, None),
                StepState::InFlight { before } => ("in-flight", Some(before), None, None),
                StepState::Applied { before, observed, .. } => ("applied", Some(before), Some(observed), None),
                StepState::Settled { before, observed, outcome } => {
                    ("settled", Some(before), observed, Some(outcome))
                }
            };
            let check = engine.check_step(journal, number);
            json!({
                "name": step.target.to_string(), "target": step.target, "requested": step.desired, "state": state,
                "before": before, "observed": observed, "outcome": outcome, "now": check,
            })
        })
        .collect();
    json!({
        "schema": "landspeed.tune/1",
        "id": journal.id,
        "state": journal.state(),
        "why": journal.reason(),
        "this_boot": is_from_this_boot(engine, journal),
        "network_namespace": namespace(engine, journal)
            .map(|found| json!({"id": found.kernel, "name": found.name, "current": found.current})),
        "steps": steps,
        "persisted": journal.persisted().map(|(files, _)| files.iter().map(|file| &file.path).collect::<Vec<_>>()),
    })
}
