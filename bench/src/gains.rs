//! `cargo xtask gains`: measures in the lab the effect of the checks' recommendations, for the pages in
//! `docs/checks`.
//!
//! `crates/checks/gains.json` has one line per question, with its figures. In a new question `runs`, `path` and
//! `kernel` are empty; its first row sets the value that the check reports, its last row the recommended value.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use landspeed_checks::{Figure, Gain, Run};
use serde_json::Value;

/// Seeds per value; three is the smallest number with a median.
const SEEDS: [u64; 3] = [1, 2, 3];
/// Time limit of a run, wall-clock seconds. The longest run takes about twenty.
const RUN_TIMEOUT_S: &str = "600";
/// Accounting detail in the lab's document when a stream's last byte did not arrive.
const FIN_NOT_RECEIVED: &str = "the sender's end of file did not arrive";
/// File with the figures.
const FIGURES: &str = "crates/checks/gains.json";

/// Options of `cargo xtask gains`.
#[derive(clap::Args)]
pub struct Options {
    /// Only recommendations of these checks; all by default
    #[arg(value_name = "CODE")]
    codes: Vec<String>,
    /// Only recommendations without figures
    #[arg(long)]
    missing: bool,
}

/// Measures, and writes the figures after each question so that an interrupted run loses little.
pub fn run(options: &Options) -> Result<()> {
    let root = crate::root();
    let path = root.join(FIGURES);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut gains: Vec<Gain> =
        serde_json::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
    let asks = |gain: &Gain, code: &String| gain.codes.contains(code);
    for code in &options.codes {
        ensure!(gains.iter().any(|gain| asks(gain, code)), "nothing is asked about `{code}`");
    }
    let program = program(&root)?;
    let mut failed = 0;
    for at in 0..gains.len() {
        let gain = &gains[at];
        let asked = options.codes.is_empty() || options.codes.iter().any(|code| asks(gain, code));
        let known = description_is_current(&root, gain) && gain.rows.iter().all(|row| !row.runs.is_empty());
        if !asked || (options.missing && known) {
            continue;
        }
        let what = format!("{} {}", gain.codes.join(" "), gain.setting);
        match answer(gain, &program, &root) {
            Ok(gain) => {
                println!("{what}: {}", gain.verdict_sentence());
                if gain.verdict() != gain.expected {
                    println!(
                        "  expected {:?}, measured {:?}: look, and reword `because`",
                        gain.expected,
                        gain.verdict()
                    );
                }
                gains[at] = gain;
                write(&path, &gains)?;
            }
            Err(error) => {
                failed += 1;
                eprintln!("{what}: {error:#}");
            }
        }
    }
    ensure!(failed == 0, "{failed} questions have no answer");
    println!("now: SNAPSHOTS=overwrite cargo test -p landspeed-checks");
    Ok(())
}

/// Returns `LANDSPEED_BINARY`, else builds the release binary.
fn program(root: &Path) -> Result<PathBuf> {
    if let Some(program) = std::env::var_os("LANDSPEED_BINARY") {
        return Ok(program.into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let program = target.join("release/landspeed");
    ensure!(program.is_file(), "{} is not there: cargo build --release", program.display());
    Ok(program)
}

/// Whether the scenario's description still matches the one that the figures were measured on.
fn description_is_current(root: &Path, gain: &Gain) -> bool {
    let text = std::fs::read_to_string(root.join("docs/checks/lab").join(&gain.scenario));
    text.is_ok_and(|text| text.contains(&format!("description = \"{}\"\n", gain.path)))
}

/// Writes the whole file anew, one line per question.
fn write(path: &Path, gains: &[Gain]) -> Result<()> {
    let lines: Vec<_> = gains.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    let fresh = path.with_extension("json.new");
    std::fs::write(&fresh, text).with_context(|| format!("cannot write {}", fresh.display()))?;
    std::fs::rename(&fresh, path).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns `question` with new figures.
fn answer(question: &Gain, program: &Path, root: &Path) -> Result<Gain> {
    let mut gain = question.clone();
    let scenario = root.join("docs/checks/lab").join(&gain.scenario);
    for row in &mut gain.rows {
        row.runs.clear();
        for seed in SEEDS {
            let document = lab(program, &scenario, &row.set, seed)?;
            let run = read(gain.figure, &document, seed).with_context(|| format!("{}, seed {seed}", row.value))?;
            text(&document, "/scenario/description")?.clone_into(&mut gain.path);
            text(&document, "/kernel/release")?.clone_into(&mut gain.kernel);
            row.runs.push(run);
        }
    }
    Ok(gain)
}

/// Reads the figure of the flow `bulk`.
fn read(figure: Figure, document: &Value, seed: u64) -> Result<Run> {
    let flows = document["flows"].as_array().context("the document has no flows")?;
    let flow = flows.iter().find(|flow| flow["name"] == "bulk").context("no flow is called `bulk`")?;
    let figure = match figure {
        Figure::Goodput => flow["goodput_bps"].as_f64().map(|bps| bps.round() as u64),
        Figure::Median => flow["run"]["latency"][0]["p50_ns"].as_u64(),
        Figure::P99 => flow["run"]["latency"][0]["p99_ns"].as_u64(),
    };
    let figure = figure.context("the flow has no such figure")?;
    let stuck = document["status"] != "complete";
    Ok(Run { seed, figure, retransmits: flow["retransmits"].as_u64(), stuck })
}

fn text<'a>(document: &'a Value, pointer: &str) -> Result<&'a str> {
    document.pointer(pointer).and_then(Value::as_str).with_context(|| format!("the document has no {pointer}"))
}

/// Runs one cell at low priority. Returns an error unless the run is complete, or failed only because the end of
/// the stream did not arrive: without the recommended setting a connection may hang.
fn lab(program: &Path, scenario: &Path, set: &[String], seed: u64) -> Result<Value> {
    let output = Command::new("timeout")
        .args(["-k", "5", RUN_TIMEOUT_S, "nice"])
        .arg(program)
        .args(["lab", "run", "--quiet", "--yes", "--json", "-", "--seed", &seed.to_string()])
        .args(set.iter().flat_map(|set| ["--set", set]))
        .arg(scenario)
        .output()
        .context("cannot run timeout")?;
    let run = || format!("{} {set:?}, seed {seed}: {}", scenario.display(), output.status);
    let document: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{}: {}", run(), String::from_utf8_lossy(&output.stderr).trim()))?;
    let checks = document["checks"].as_array().map(Vec::as_slice).unwrap_or_default();
    for check in checks.iter().filter(|check| check["passed"] == false) {
        let detail = check["detail"].as_str().unwrap_or_default();
        ensure!(check["name"] == "accounting" && detail.ends_with(FIN_NOT_RECEIVED), "{}: {detail}", run());
    }
    ensure!(output.status.success() || !checks.is_empty(), "{}: nothing was checked", run());
    Ok(document)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn gains_are_unique_and_match_the_current_scenarios() {
        let mut asked = BTreeSet::new();
        for gain in landspeed_checks::gains() {
            assert!(asked.insert((&gain.codes, &gain.setting, &gain.scenario)), "{:?}", gain.codes);
            assert!(description_is_current(&crate::root(), gain), "{} is another path now", gain.scenario);
        }
    }
}
