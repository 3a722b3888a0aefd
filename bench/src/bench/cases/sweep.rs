//! Sweeps of a scenario: overhead beyond the runs, two jobs compared with one, and two Slurm nodes compared with
//! two jobs.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use landspeed_testkit::slurm::Slurm;
use serde_json::Value;

use crate::bench::Bench;
use crate::bench::case::{Case, Measure, Role};
use crate::bench::child::Running;
use crate::bench::row::{Better, Unit};

const SCENARIO: &str = include_str!("../lab/single-flow.toml");
/// Sixteen runs, an even number for two jobs: five blocks of two cells and a control, and the repeat.
const PLAN: &str = "name = \"bench\"\nblocks = 5\n[lab]\nscenario = \"scenario.toml\"\nset = { time = \"2s\" }\n\
                    [[factor]]\nname = \"sample\"\nkey = \"sample\"\nlevels = [\"1ms\", \"2ms\"]\n";
/// The gallery's buffer-size curve with 15 seeds: 61 runs.
const CURVE: &str = "name = \"Throughput over buffer size\"\nblocks = 15\n[lab]\nscenario = \"gallery:buffer-size\"\nflow = \"tcp\"\n\
                     set = { time = \"2s\", \"flow.cross.time\" = \"4.2s\" }\n[[factor]]\nname = \"buffer\"\n\
                     key = \"switch.west.queue.limit\"\nlevels = [\"64KB\", \"1MB\", \"16MB\"]\n";
/// Time limit; a sweep that takes longer counts as hung.
const LIMIT: Duration = Duration::from_mins(10);

/// Measures the overhead share of a sweep, and the speedup of two jobs.
pub fn case(bench: &Bench, name: &str) -> Case {
    Case::new(name)
        .metric("time without a run", Unit::Ratio, Better::Lower, None)
        .metric("speed of two jobs over one", Unit::Ratio, Better::Higher, None)
        .with(Role::Ours, "landspeed, targets 0.05 and 1.8", &bench.tools.landspeed, |tool| {
            Ok(Box::new(move || {
                let of = |jobs| sweep(&mut Command::new(&tool.0), PLAN, &["--jobs", jobs], &std::env::temp_dir());
                let (one, two) = (of("1")?, of("2")?);
                let share = number(&one, "overhead_s")? / number(&one, "wall_s")?;
                Ok(vec![share, number(&one, "wall_s")? / number(&two, "wall_s")?])
            }) as Measure)
        })
}

/// Measures the buffer curve on two Slurm nodes on this machine; the digests must equal those of local runs.
pub fn slurm(bench: &Bench, name: &str) -> Case {
    let digests: Rc<RefCell<Option<Vec<String>>>> = Rc::default();
    let alike = move |document: &Value| -> Result<f64> {
        let found = digests_of(document)?;
        let mut known = digests.borrow_mut();
        ensure!(known.get_or_insert_with(|| found.clone()) == &found, "another run gave other digests");
        Ok(number(document, "wall_s")? * 1e9)
    };
    let of_jobs = alike.clone();
    Case::new(name)
        .rounds(3)
        .metric("61 runs of the buffer curve", Unit::Ns, Better::Lower, Some(1.1))
        .with(Role::Ours, "two Slurm nodes", &bench.tools.landspeed, |tool| {
            let cluster = Slurm::start().map_err(|why| anyhow!(why))?;
            Ok(Box::new(move || {
                let mut command = cluster.command(&tool.0);
                Ok(vec![alike(&sweep(&mut command, CURVE, &["--engine", "slurm"], &cluster.shared())?)?])
            }) as Measure)
        })
        .with(Role::Rival, "--jobs 2", &bench.tools.landspeed, |tool| {
            Ok(Box::new(move || {
                let mut command = Command::new(&tool.0);
                Ok(vec![of_jobs(&sweep(&mut command, CURVE, &["--jobs", "2"], &std::env::temp_dir())?)?])
            }) as Measure)
        })
}

/// Runs a sweep in a new directory below `place` and returns its document.
fn sweep(command: &mut Command, plan: &str, options: &[&str], place: &Path) -> Result<Value> {
    let directory = tempfile::tempdir_in(place)?;
    std::fs::write(directory.path().join("scenario.toml"), SCENARIO)?;
    let file = directory.path().join("plan.toml");
    std::fs::write(&file, plan)?;
    command.args(["sweep", "--quiet", "--yes"]).args(options).arg(&file);
    let finished = Running::start(command)?.finish(LIMIT)?;
    ensure!(finished.status.success(), "landspeed sweep: {}", finished.last_line());
    let text = std::fs::read(directory.path().join("plan.sweep/sweep.json")).context("no sweep.json")?;
    serde_json::from_slice(&text).context("sweep.json is not JSON")
}

/// Returns the digests of all runs in a comparable order.
fn digests_of(document: &Value) -> Result<Vec<String>> {
    let cells = document["cells"].as_array().context("no cells")?;
    let runs = cells.iter().flat_map(|cell| cell["runs"].as_array().into_iter().flatten());
    let mut digests = runs
        .map(|run| Some(format!("{} {} {}", run["block"], run["place"], run["digest"].as_str()?)))
        .collect::<Option<Vec<String>>>()
        .context("a run without a digest")?;
    digests.sort();
    Ok(digests)
}

fn number(document: &Value, key: &str) -> Result<f64> {
    document[key].as_f64().with_context(|| format!("the sweep's document has no number `{key}`"))
}
