//! Python code (the package, pScheduler's tool, the tests of the Ansible role): style, types, tests, in an environment below `target/`.

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

/// Python code of the tree: what its steps are called, where it is, and what is type-checked.
const SOURCES: [(&str, &str, &[&str]); 3] = [
    ("python", "python", &["src", "tests", "hatch_build.py"]),
    ("perfSONAR", "packaging/pscheduler", &["landspeed_tool", "tests"]),
    ("Ansible", "packaging/ansible", &["tests"]),
];

/// Runs all steps, or only the long tests, by `python` with `program` as the program under test; `kernels` has the lab's.
pub fn run(lane: Lane<'_>, python: &Path, program: &Path, kernels: &Path, long: bool) {
    let module = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(python);
        command.args(["-m", name]).args(arguments).env("LANDSPEED_BINARY", program).env(super::KERNELS, kernels);
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("LANDSPEED_ARCHIVE", "off");
        if let Ok(xtask) = std::env::current_exe() {
            command.env("LANDSPEED_XTASK", xtask);
        }
        command
    };
    for (name, directory, typed) in SOURCES {
        let source = lane.root().join(directory).display().to_string();
        let mut tests = module("pytest", &["-q", "-p", "no:cacheprovider", &source]);
        tests.env("PYTHONPATH", lane.root().join("python").join("src"));
        if long {
            if name == "Ansible" {
                lane.run(&format!("{name}: long tests"), tests.args(["-m", "long"]), tally::pytest);
            }
            continue;
        }
        lane.run(&format!("{name}: style"), &mut module("ruff", &["check", "--quiet", &source]), tally::one_check);
        let format = ["format", "--quiet", "--check", &source];
        lane.run(&format!("{name}: format"), &mut module("ruff", &format), tally::one_check);
        let configuration = format!("--config-file={source}/pyproject.toml");
        let mut types = module("mypy", &[&configuration, "--no-error-summary"]);
        types.args(typed.iter().map(|path| format!("{source}/{path}")));
        lane.run(&format!("{name}: types"), &mut types, tally::one_check);
        lane.run(&format!("{name}: tests"), &mut tests, tally::pytest);
    }
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
