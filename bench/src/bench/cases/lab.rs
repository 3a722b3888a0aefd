//! The lab: real time per virtual time, compared with ns-3 where both can run the same scenario.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::bench::Bench;
use crate::bench::case::{Case, Measure, Role};
use crate::bench::child::{Running, run_checked};
use crate::bench::row::{Better, Unit};
use crate::bench::tools::{Found, Landspeed};

const SINGLE: &str = include_str!("../lab/single-flow.toml");
const LONG_FAT: &str = include_str!("../lab/long-fat.toml");
const CROSS: &str = include_str!("../lab/cross.toml");
const NS3_SOURCE: &str = include_str!("../lab/single-flow.cc");
/// Libraries that the ns-3 program links with (Debian: libns3-dev).
const NS3_LIBRARIES: [&str; 6] = ["core", "network", "internet", "point-to-point", "applications", "traffic-control"];
/// Virtual duration of every scenario, seconds: `time` in the scenarios.
const VIRTUAL_S: u32 = 5;
/// Real time after which ns-3 stops, seconds: at 10 Gb/s over 50 ms a full run may need hours.
const RIVAL_LIMIT_S: u32 = 20;
/// Time limit; a run that takes longer counts as hung.
const LIMIT: Duration = Duration::from_mins(10);

/// One CUBIC flow, 10 Gb/s over 50 ms, MTU 9000; target: 0.7 s per virtual second, and faster than ns-3.
pub fn single(bench: &Bench, name: &str) -> Case {
    simulation_speed(name, Some(1.0))
        .with(Role::Ours, "landspeed, target 0.70", &bench.tools.landspeed, one(SINGLE))
        .with(Role::Rival, "ns-3", &ns3(), |program| {
            Ok(Box::new(move || {
                let asked = [VIRTUAL_S, RIVAL_LIMIT_S].map(|seconds| seconds.to_string());
                let finished = run_checked(Command::new(&program.path).args(asked), LIMIT)?;
                Ok(vec![seconds_per_virtual_second(&finished.stdout)?])
            }) as Measure)
        })
}

/// One CUBIC flow, 100 Gb/s over 92 ms, MTU 9000.
pub fn long_fat(bench: &Bench, name: &str) -> Case {
    simulation_speed(name, None).with(Role::Ours, "landspeed, target 5.00", &bench.tools.landspeed, one(LONG_FAT))
}

/// Memory of the `long_fat` run.
pub fn memory(bench: &Bench, name: &str) -> Case {
    Case::new(name).rounds(1).metric("peak memory", Unit::Bytes, Better::Lower, None).with(
        Role::Ours,
        "landspeed, target 6 GiB",
        &bench.tools.landspeed,
        |tool| {
            let scenario = scenario_file(LONG_FAT)?;
            Ok(Box::new(move || Ok(vec![number(&start(&tool, scenario.path())?.finish()?, "memory_peak_bytes")?])))
        },
    )
}

/// Two TCP flows and 2 Gb/s of UDP over two switches and links with delay.
pub fn cross(bench: &Bench, name: &str) -> Case {
    simulation_speed(name, None).with(Role::Ours, "landspeed, target 1.50", &bench.tools.landspeed, one(CROSS))
}

/// Boot time: from the start of the kernel until the flows get ready.
pub fn boot(bench: &Bench, name: &str) -> Case {
    Case::new(name).metric("boot", Unit::Ns, Better::Lower, None).with(
        Role::Ours,
        "landspeed, target 1 s",
        &bench.tools.landspeed,
        |tool| {
            let scenario = scenario_file(&SINGLE.replacen("5s", "10ms", 1))?;
            Ok(Box::new(move || Ok(vec![number(&start(&tool, scenario.path())?.finish()?, "boot_s")? * 1e9])))
        },
    )
}

/// Two concurrent runs compared with one: total virtual seconds per real second, relative to one run.
pub fn two(bench: &Bench, name: &str) -> Case {
    Case::new(name).metric("speed of two at once over one", Unit::Ratio, Better::Higher, None).with(
        Role::Ours,
        "landspeed, target 1.8",
        &bench.tools.landspeed,
        |tool| {
            let scenario = scenario_file(SINGLE)?;
            Ok(Box::new(move || {
                let alone = cost(&start(&tool, scenario.path())?.finish()?)?;
                let both = [start(&tool, scenario.path())?, start(&tool, scenario.path())?];
                let costs = both.into_iter().map(|run| cost(&run.finish()?)).collect::<Result<Vec<_>>>()?;
                Ok(vec![costs.iter().map(|cost| alone / cost).sum()])
            }))
        },
    )
}

fn simulation_speed(name: &str, target: Option<f64>) -> Case {
    Case::new(name).metric("real per virtual second", Unit::Ratio, Better::Lower, target)
}

fn one(scenario: &'static str) -> impl FnOnce(Rc<Landspeed>) -> Result<Measure> {
    move |tool| {
        let scenario = scenario_file(scenario)?;
        Ok(Box::new(move || Ok(vec![cost(&start(&tool, scenario.path())?.finish()?)?])))
    }
}

fn scenario_file(scenario: &str) -> Result<tempfile::NamedTempFile> {
    let file = tempfile::Builder::new().suffix(".toml").tempfile()?;
    std::fs::write(file.path(), scenario)?;
    Ok(file)
}

/// A running lab.
struct Lab {
    running: Running,
    document: tempfile::NamedTempFile,
}

fn start(tool: &Landspeed, scenario: &Path) -> Result<Lab> {
    let document = tempfile::NamedTempFile::new()?;
    let mut command = Command::new(&tool.0);
    command.args(["lab", "run"]).arg(scenario).arg("--json").arg(document.path());
    Ok(Lab { running: Running::start(&mut command)?, document })
}

impl Lab {
    /// Waits for the end and returns the document. A run with a failed check is an error.
    fn finish(self) -> Result<Value> {
        let finished = self.running.finish(LIMIT)?;
        ensure!(finished.status.success(), "landspeed lab: {}", finished.last_line());
        let text = std::fs::read_to_string(self.document.path()).context("cannot read the lab's document")?;
        let document: Value = serde_json::from_str(&text).context("the lab's document is not JSON")?;
        let checks = document["checks"].as_array().context("the lab's document has no checks")?;
        ensure!(checks.iter().all(|check| check["passed"] == true), "a check of the lab's run failed");
        Ok(document)
    }
}

/// Real seconds per virtual second.
fn cost(document: &Value) -> Result<f64> {
    Ok(number(document, "wall_s")? / number(document, "virtual_s")?)
}

fn number(document: &Value, key: &str) -> Result<f64> {
    document[key].as_f64().with_context(|| format!("the lab's document has no number `{key}`"))
}

/// Returns real seconds per virtual second reached, from the two numbers that the ns-3 program prints.
fn seconds_per_virtual_second(said: &str) -> Result<f64> {
    let numbers: Vec<f64> =
        said.split_whitespace().map(str::parse).collect::<Result<_, _>>().context("ns-3 says times")?;
    let [real_s, virtual_s] = numbers[..] else { bail!("ns-3 says {} numbers, not two", numbers.len()) };
    ensure!(virtual_s > 0.0, "ns-3 did not get anywhere in {real_s} s");
    Ok(real_s / virtual_s)
}

/// The ns-3 program, compiled for this run.
struct Ns3 {
    path: PathBuf,
    _directory: tempfile::TempDir,
}

fn ns3() -> Found<Ns3> {
    build_ns3().map(Rc::new).map_err(|error| format!("{error:#} (Debian: libns3-dev and g++)"))
}

fn build_ns3() -> Result<Ns3> {
    let directory = tempfile::tempdir()?;
    let source = directory.path().join("single-flow.cc");
    std::fs::write(&source, NS3_SOURCE)?;
    let path = directory.path().join("single-flow");
    let mut compile = Command::new("g++");
    compile.args(["-std=c++17", "-O2", "-o"]).arg(&path).arg(&source);
    compile.args(NS3_LIBRARIES.map(|library| format!("-lns3-{library}")));
    run_checked(&mut compile, LIMIT).context("cannot build the ns-3 program")?;
    Ok(Ns3 { path, _directory: directory })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cost_is_real_time_over_virtual_time() {
        let cost = cost(&json!({ "wall_s": 3.0, "virtual_s": 5.0 })).expect("both are there");
        assert!((cost - 0.6).abs() < 1e-9);
        assert!(number(&json!({}), "boot_s").is_err());
    }

    #[test]
    fn ns3_cost_uses_the_virtual_time_it_reached() {
        assert!((seconds_per_virtual_second("20 0.5\n").expect("two numbers") - 40.0).abs() < 1e-9);
        assert!(seconds_per_virtual_second("20").is_err() && seconds_per_virtual_second("20 0").is_err());
    }

    #[test]
    fn every_scenario_lasts_the_common_virtual_time() {
        for scenario in [SINGLE, LONG_FAT, CROSS] {
            assert!(scenario.contains(&format!("time = \"{VIRTUAL_S}s\"")), "{scenario}");
        }
    }
}
