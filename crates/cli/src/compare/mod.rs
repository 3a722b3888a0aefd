//! `landspeed compare`.

mod args;
pub mod groups;
pub mod text;

use std::time::{Duration, UNIX_EPOCH};

use landspeed_compare::Options;
use landspeed_model::{BuildInfo, ComparisonCondition, ComparisonDocument, ComparisonVerdict, Warning};
use landspeed_report::{Source, render_document};
use landspeed_results::Document;
use landspeed_sys::clock;

pub use args::Args;

use crate::{CommandOutcome, keep};

/// Compares the groups and prints the result.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    args.output.check()?;
    let mut metrics = args.metrics.clone();
    if !metrics.is_empty() {
        metrics.extend(args.conditions.iter().filter_map(landspeed_compare::Condition::metric));
    }
    let loaded = groups::load(&args.groups)?;
    let factors = if args.factors.is_empty() { loaded.factors } else { args.factors.clone() };
    let options = Options { level: args.level, seed: args.seed, metrics, factors };
    let build = BuildInfo { version: env!("CARGO_PKG_VERSION").to_owned(), server_version: None };
    let mut document = landspeed_compare::document(loaded.groups, &options, &args.conditions, build);
    document.created =
        humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(clock::realtime_ns())).to_string();
    document.command = landspeed_sys::process::command_line();
    if !loaded.unreadable.is_empty() {
        let message = loaded.unreadable.join("; ");
        document.warnings.insert(0, Warning { code: "unreadable".to_owned(), message });
    }
    anyhow::ensure!(
        !document.metrics.is_empty(),
        "cannot compare: the groups have no figure in common\nCompare results of the same kind, such as two directories of runs."
    );
    if args.output.prints() {
        out!("{}", text::report(&document));
    }
    keep::keep(&document);
    args.output.write(&document, || {
        let document = Document::Comparison(Box::new(document.clone()));
        Ok(render_document(&Source { name: "comparison".to_owned(), document }, &[])?)
    })?;
    if let Some(condition) = document.conditions.iter().find(|condition| undecided(condition, &document)) {
        anyhow::bail!("cannot evaluate --fail-if '{}': {}", condition.condition, condition.detail);
    }
    let holds = document.conditions.iter().any(|condition| condition.holds);
    Ok(if holds { CommandOutcome::Findings } else { CommandOutcome::Clean })
}

/// Whether none of the condition's metrics has a verdict: a condition that cannot be evaluated must not pass.
fn undecided(condition: &ComparisonCondition, document: &ComparisonDocument) -> bool {
    let name = condition.condition.split(' ').next().unwrap_or_default();
    let mut about = document.metrics.iter().filter(|metric| name == "any" || metric.name == name);
    !condition.holds && about.all(|metric| metric.verdict == ComparisonVerdict::TooFewRuns)
}
