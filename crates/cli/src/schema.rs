//! `landspeed schema`.

use anyhow::bail;

use crate::Outcome;

const EXAMPLES: &str = "\
Examples:
  landspeed schema run > run.schema.json";

/// Options of `schema`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Which document: run
    name: String,
}

/// Prints the schema.
pub fn main(args: &Args) -> anyhow::Result<Outcome> {
    let Some(schema) = landspeed_model::schema(&args.name) else {
        bail!("no document is called `{}`; there is: {}", args.name, landspeed_model::SCHEMA_NAMES.join(", "));
    };
    println!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(Outcome::Clean)
}
