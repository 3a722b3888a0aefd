//! `landspeed schema`.

use anyhow::bail;

use crate::Outcome;

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
    /// Which document: run, lab, labset, audit, facts, trace, tap; or scenario, what a lab scenario may say
    name: String,
}

/// Prints the schema.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    let found = landspeed_model::schema(&args.name);
    let Some(schema) = found.or_else(|| (args.name == SCENARIO).then(landspeed_lab::scenario::schema)) else {
        let names = landspeed_model::SCHEMA_NAMES.join(", ");
        bail!("no document is called `{}`; there is: {names}, {SCENARIO}", args.name);
    };
    println!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(Outcome::Clean)
}
