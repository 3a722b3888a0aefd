//! `cargo xtask gains`: what the checks' recommendations bring, tried in the lab, for the pages in `docs/checks`.

mod questions;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use landspeed_checks::{Figure, Gain, Row, Run};
use serde_json::Value;

use questions::{QUESTIONS, Question};

/// Seeds of every value; three are the least that have a middle.
const SEEDS: [u64; 3] = [1, 2, 3];
/// Seconds of wall time after which a run is given up. The longest takes about twenty.
const PATIENCE: &str = "600";
/// What the lab says of a stream whose last byte never came.
const STUCK: &str = "the sender's end of file did not arrive";
/// Where the figures are kept.
const FIGURES: &str = "crates/checks/gains.jsonl";

/// Options of `cargo xtask gains`.
#[derive(clap::Args)]
pub struct Options {
    /// Only what these checks recommend; all when none is given
    #[arg(value_name = "CODE")]
    codes: Vec<String>,
    /// Only what has no figures yet
    #[arg(long)]
    missing: bool,
}

/// Measures and writes the figures after each question, so that little is lost when it is stopped.
pub fn run(options: &Options) -> Result<()> {
    let root = crate::law::root();
    let path = root.join(FIGURES);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut gains = Gain::parse(&text).with_context(|| format!("cannot read {}", path.display()))?;
    let before = gains.len();
    gains.retain(|gain| QUESTIONS.iter().any(|question| question.is(gain)) && described(&root, gain));
    if gains.len() < before {
        eprintln!("{} of the figures answer nothing that is still asked; they go", before - gains.len());
    }
    // The words are the table's, whenever the figures were measured.
    for gain in &mut gains {
        if let Some(question) = QUESTIONS.iter().find(|question| question.is(gain)) {
            (gain.because, gain.expected) = (question.because.to_owned(), question.expected);
        }
    }
    for code in &options.codes {
        ensure!(QUESTIONS.iter().any(|q| q.codes.contains(&code.as_str())), "nothing is asked about `{code}`");
    }
    let program = program(&root)?;
    let mut failed = 0;
    for question in QUESTIONS {
        let asked =
            options.codes.is_empty() || options.codes.iter().any(|code| question.codes.contains(&code.as_str()));
        let known = gains.iter().any(|gain| question.is(gain));
        if !asked || (options.missing && known) {
            continue;
        }
        match question.answer(&program, &root) {
            Ok(gain) => {
                println!("{} {}: {}", question.codes.join(" "), question.setting, gain.says());
                if gain.verdict() != gain.expected {
                    println!(
                        "  expected {:?}, measured {:?}: look, and reword `because`",
                        gain.expected,
                        gain.verdict()
                    );
                }
                gains.retain(|old| !question.is(old));
                gains.push(gain);
            }
            Err(error) => {
                failed += 1;
                eprintln!("{} {}: {error:#}", question.codes.join(" "), question.setting);
            }
        }
        gains.sort_by_key(|gain| QUESTIONS.iter().position(|question| question.is(gain)));
        write(&path, &gains)?;
    }
    write(&path, &gains)?;
    ensure!(failed == 0, "{failed} questions have no answer");
    println!("now: SNAPSHOTS=overwrite cargo test -p landspeed-checks");
    Ok(())
}

/// `LANDSPEED_BINARY`, else the release build.
fn program(root: &Path) -> Result<PathBuf> {
    if let Some(program) = std::env::var_os("LANDSPEED_BINARY") {
        return Ok(program.into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let program = target.join("release/landspeed");
    ensure!(program.is_file(), "{} is not there: cargo build --release", program.display());
    Ok(program)
}

/// Whether the scenario still is what the figures were measured on, by its description.
fn described(root: &Path, gain: &Gain) -> bool {
    let text = std::fs::read_to_string(root.join("docs/checks/lab").join(&gain.scenario));
    text.is_ok_and(|text| text.contains(&format!("description = \"{}\"\n", gain.path)))
}

/// Replaces the file whole.
fn write(path: &Path, gains: &[Gain]) -> Result<()> {
    let mut text = String::new();
    for gain in gains {
        text += &(serde_json::to_string(gain)? + "\n");
    }
    let fresh = path.with_extension("jsonl.new");
    std::fs::write(&fresh, text).with_context(|| format!("cannot write {}", fresh.display()))?;
    std::fs::rename(&fresh, path).with_context(|| format!("cannot write {}", path.display()))
}

impl Question {
    /// Whether `gain` answers it: it is of the same setting with the same values.
    fn is(&self, gain: &Gain) -> bool {
        let rows = gain.rows.iter().map(|row| (row.value.clone(), row.set.clone()));
        gain.setting == self.setting
            && gain.scenario == self.scenario
            && gain.codes == self.codes
            && gain.figure == self.figure
            && rows.eq(self.values.iter().map(|(value, set)| ((*value).to_owned(), self.sets(set))))
    }

    /// Everything that is set for a value which sets `own`.
    fn sets(&self, own: &[&str]) -> Vec<String> {
        self.always.iter().chain(own).map(ToString::to_string).collect()
    }

    fn answer(&self, program: &Path, root: &Path) -> Result<Gain> {
        let mut gain = Gain {
            codes: self.codes.iter().map(ToString::to_string).collect(),
            setting: self.setting.to_owned(),
            scenario: self.scenario.to_owned(),
            path: String::new(),
            figure: self.figure,
            kernel: String::new(),
            rows: Vec::new(),
            expected: self.expected,
            because: self.because.to_owned(),
        };
        let scenario = root.join("docs/checks/lab").join(self.scenario);
        for (value, set) in self.values {
            let mut row = Row { value: (*value).to_owned(), set: self.sets(set), runs: Vec::new() };
            for seed in SEEDS {
                let document = lab(program, &scenario, &row.set, seed)?;
                let run = self.read(&document, seed).with_context(|| format!("{value}, seed {seed}"))?;
                text(&document, "/scenario/description")?.clone_into(&mut gain.path);
                text(&document, "/kernel/release")?.clone_into(&mut gain.kernel);
                row.runs.push(run);
            }
            gain.rows.push(row);
        }
        Ok(gain)
    }

    /// The figure of the flow `bulk`.
    fn read(&self, document: &Value, seed: u64) -> Result<Run> {
        let flows = document["flows"].as_array().context("the document has no flows")?;
        let flow = flows.iter().find(|flow| flow["name"] == "bulk").context("no flow is called `bulk`")?;
        let figure = match self.figure {
            Figure::Goodput => flow["goodput_bps"].as_f64().map(|bps| bps.round() as u64),
            Figure::Median => flow["run"]["latency"][0]["p50_ns"].as_u64(),
            Figure::P99 => flow["run"]["latency"][0]["p99_ns"].as_u64(),
        };
        let figure = figure.context("the flow has no such figure")?;
        let stuck = document["status"] != "complete";
        Ok(Run { seed, figure, retransmits: flow["retransmits"].as_u64(), stuck })
    }
}

fn text<'a>(document: &'a Value, pointer: &str) -> Result<&'a str> {
    document.pointer(pointer).and_then(Value::as_str).with_context(|| format!("the document has no {pointer}"))
}

/// One cell, at low priority. An error is anything but a run that is complete, or that only waited in vain for the end of
/// what was sent: without the setting a connection may hang.
fn lab(program: &Path, scenario: &Path, set: &[String], seed: u64) -> Result<Value> {
    let output = Command::new("timeout")
        .args(["-k", "5", PATIENCE, "nice"])
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
        ensure!(check["name"] == "accounting" && detail.ends_with(STUCK), "{}: {detail}", run());
    }
    ensure!(output.status.success() || !checks.is_empty(), "{}: nothing was checked", run());
    Ok(document)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_question_has_a_check_and_is_unique() {
        let codes: BTreeSet<_> = landspeed_checks::all().map(|check| check.code).collect();
        let mut asked = BTreeSet::new();
        for question in QUESTIONS {
            assert!(question.codes.iter().all(|code| codes.contains(code)), "{:?}", question.codes);
            assert!(question.values.len() >= 2, "{:?} compares nothing", question.codes);
            assert!(asked.insert((question.codes, question.setting, question.scenario)), "{:?}", question.codes);
        }
    }

    /// The words in the file are the table's; the figures only `cargo xtask gains` may change.
    #[test]
    fn the_figures_answer_the_questions_as_they_are_asked() {
        for question in QUESTIONS {
            let gain = landspeed_checks::gains().iter().find(|gain| question.is(gain));
            let Some(gain) = gain else {
                panic!("cargo xtask gains {}: never measured", question.codes[0]);
            };
            assert_eq!((gain.because.as_str(), gain.expected), (question.because, question.expected));
            assert!(described(&crate::law::root(), gain), "{} is another path now", gain.scenario);
        }
        assert_eq!(landspeed_checks::gains().len(), QUESTIONS.len());
    }
}
