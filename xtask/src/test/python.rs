//! The Python package: style, types, tests, the wheel and the notebook, in an environment below `target/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::setup::quiet;
use super::steps::Lane;
use super::tally;
use crate::machine;

/// Pinned requirements, beside the package.
const REQUIREMENTS: &str = "requirements-test.txt";

/// The interpreter of the environment that the steps use.
pub fn prepare(lane: Lane<'_>, no_install: bool) -> Option<PathBuf> {
    let root = lane.root();
    lane.fetch("python: environment", || environment(root, &root.join("python"), no_install))
}

/// Runs all steps by `python` with `program` as the program under test; `kernels` has the lab's.
pub fn run(lane: Lane<'_>, python: &Path, program: &Path, kernels: &Path) {
    let package = lane.root().join("python");
    let module = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(python);
        command.args(["-m", name]).args(arguments).env("LANDSPEED_BINARY", program).env(super::KERNELS, kernels);
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("LANDSPEED_ARCHIVE", "off");
        command
    };
    let source = package.display().to_string();
    lane.run("python: style", &mut module("ruff", &["check", "--quiet", &source]), tally::one_check);
    lane.run("python: format", &mut module("ruff", &["format", "--quiet", "--check", &source]), tally::one_check);
    let configuration = format!("--config-file={source}/pyproject.toml");
    let files = ["src", "tests", "hatch_build.py"].map(|name| format!("{source}/{name}"));
    let mut types = module("mypy", &[&configuration, "--no-error-summary"]);
    lane.run("python: types", types.args(&files), tally::one_check);
    let mut tests = module("pytest", &["-q", "-p", "no:cacheprovider", &source]);
    lane.run("python: tests", tests.env("PYTHONPATH", package.join("src")), tally::pytest);
}

/// The interpreter of an environment with the requirements; made anew when they change.
fn environment(root: &Path, package: &Path, no_install: bool) -> Result<PathBuf> {
    let place = root.join("target").join("python");
    let python = place.join("bin").join("python");
    let wanted = package.join(REQUIREMENTS);
    let text = std::fs::read_to_string(&wanted).with_context(|| format!("cannot read {}", wanted.display()))?;
    let made_of = place.join(REQUIREMENTS);
    if std::fs::read_to_string(&made_of).is_ok_and(|made_of| made_of == text) {
        return Ok(python);
    }
    ensure!(!no_install, "target/python is missing or older than its requirements");
    ensure!(machine::find("python3").is_some(), "python3 is not installed");
    let _ = std::fs::remove_dir_all(&place);
    quiet(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries=2", "-r"];
    quiet(Command::new(&python).args(pip).arg(&wanted))?;
    std::fs::write(&made_of, text).context("cannot note the requirements")?;
    Ok(python)
}
