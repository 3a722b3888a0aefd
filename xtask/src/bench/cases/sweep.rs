//! Sweeps of a scenario: what they cost beside their runs, and two jobs beside one.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::Bench;
use crate::bench::case::{Case, Measure, Role};
use crate::bench::child::Running;
use crate::bench::row::{Better, Unit};

const SCENARIO: &str = include_str!("../lab/single-flow.toml");
/// Sixteen runs, an even number for two jobs: five blocks of two cells and a control, and the repeat.
const PLAN: &str = "name = \"bench\"\nblocks = 5\n[lab]\nscenario = \"scenario.toml\"\nset = { time = \"2s\" }\n\
                    [[factor]]\nname = \"sample\"\nkey = \"sample\"\nlevels = [\"1ms\", \"2ms\"]\n";
/// A sweep that takes longer counts as hung.
const LIMIT: Duration = Duration::from_mins(10);

/// Real time without a run for each job, and the speed of two jobs over one.
pub fn case(bench: &Bench, name: &str) -> Case {
    Case::new(name)
        .metric("time without a run", Unit::Ratio, Better::Lower, None)
        .metric("speed of two jobs over one", Unit::Ratio, Better::Higher, None)
        .with(Role::Ours, "landspeed, targets 0.05 and 1.8", &bench.tools.landspeed, |tool| {
            Ok(Box::new(move || {
                let (one, two) = (sweep(&tool.0, "1")?, sweep(&tool.0, "2")?);
                let share = number(&one, "overhead_s")? / number(&one, "wall_s")?;
                Ok(vec![share, number(&one, "wall_s")? / number(&two, "wall_s")?])
            }) as Measure)
        })
}

/// The document of a sweep in a directory of its own.
fn sweep(program: &Path, jobs: &str) -> Result<Value> {
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("scenario.toml"), SCENARIO)?;
    let plan = directory.path().join("plan.toml");
    std::fs::write(&plan, PLAN)?;
    let mut command = Command::new(program);
    command.args(["sweep", "--quiet", "--yes", "--jobs", jobs]).arg(&plan);
    let finished = Running::start(&mut command)?.finish(LIMIT)?;
    ensure!(finished.status.success(), "landspeed sweep: {}", finished.last_words());
    let text = std::fs::read(directory.path().join("plan.sweep/sweep.json")).context("no sweep.json")?;
    serde_json::from_slice(&text).context("sweep.json is not JSON")
}

fn number(document: &Value, key: &str) -> Result<f64> {
    document[key].as_f64().with_context(|| format!("the sweep's document has no number `{key}`"))
}
