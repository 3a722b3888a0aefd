//! `landspeed schema`.

use anyhow::bail;

use crate::CommandOutcome;

const EXAMPLES: &str = "\
Examples:
  landspeed schema run > run.schema.json
  landspeed schema scenario > scenario.schema.json";

/// Names of the schemas of input files.
pub const SCENARIO: &str = "scenario";
pub const PATH: &str = "path";

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

/// Returns the schema with this name.
pub fn find(name: &str) -> Option<serde_json::Value> {
    landspeed_model::schema(name).or_else(|| match name {
        SCENARIO => Some(landspeed_lab::scenario::schema()),
        PATH => Some(landspeed_emulation::schema()),
        _ => None,
    })
}

/// Prints the schema.
pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let Some(schema) = find(&args.name) else {
        let names = names().collect::<Vec<_>>().join(", ");
        bail!("no document is called `{}`; there is: {names}", args.name);
    };
    outln!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(CommandOutcome::Clean)
}
