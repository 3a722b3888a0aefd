//! `landspeed schema`.

use anyhow::bail;

use crate::CommandOutcome;

const EXAMPLES: &str = "\
Examples:
  landspeed schema run > run.schema.json
  landspeed schema scenario > scenario.schema.json";

/// Names of the schemas of input files.
const SCENARIO: &str = "scenario";
const PATH: &str = "path";

/// Options of `schema`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[arg(value_name = "DOCUMENT", help = help())]
    name: String,
}

fn help() -> String {
    format!(
        "Which document: {}; or what a file may say: {SCENARIO} (lab), {PATH} (emulate)",
        landspeed_model::SCHEMA_NAMES.join(", ")
    )
}

/// Returns the names of all schemas.
pub fn names() -> impl Iterator<Item = &'static str> {
    landspeed_model::SCHEMA_NAMES.iter().copied().chain([SCENARIO, PATH])
}

/// Prints the schema.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let found = landspeed_model::schema(&args.name);
    let written = || match &args.name[..] {
        SCENARIO => Some(landspeed_lab::scenario::schema()),
        PATH => Some(landspeed_emulation::schema()),
        _ => None,
    };
    let Some(schema) = found.or_else(written) else {
        let names = names().collect::<Vec<_>>().join(", ");
        bail!("no document is called `{}`; there is: {names}", args.name);
    };
    outln!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(CommandOutcome::Clean)
}
