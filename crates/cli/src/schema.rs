//! `landspeed schema`.

use anyhow::bail;

use crate::CommandOutcome;

const EXAMPLES: &str = "\
Examples:
  landspeed schema run > run.schema.json
  landspeed schema scenario > scenario.schema.json";

/// The one schema of a file that people write.
const SCENARIO: &str = "scenario";

/// Options of `schema`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Which document: run, lab, labset, audit, facts, trace, tap, watch, tuneup, demo; or scenario, what a lab scenario may say
    #[arg(value_name = "DOCUMENT")]
    name: String,
}

/// What there is.
pub fn names() -> impl Iterator<Item = &'static str> {
    landspeed_model::SCHEMA_NAMES.iter().copied().chain([SCENARIO])
}

/// Prints the schema.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let found = landspeed_model::schema(&args.name);
    let Some(schema) = found.or_else(|| (args.name == SCENARIO).then(landspeed_lab::scenario::schema)) else {
        let names = names().collect::<Vec<_>>().join(", ");
        bail!("no document is called `{}`; there is: {names}", args.name);
    };
    println!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(CommandOutcome::Clean)
}
