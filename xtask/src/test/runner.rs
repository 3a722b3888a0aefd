//! Running the workspace's tests: by cargo-nextest, which knows their groups (`.config/nextest.toml`), or by `cargo test`
//! where there is no nextest.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::steps::{TimedTest, stream};
use super::tally::{self, Tally};
use super::{cargo, junit};

/// The group of tests that need neither root nor network and measure no time.
pub const UNIT: &str = "unit";

/// How the tests run.
pub struct Runner {
    nextest: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
}

impl Runner {
    /// With that `cargo-nextest`, and property tests that start from `seed`.
    pub fn new(nextest: Option<PathBuf>, seed: u64) -> Self {
        println!("property tests start from seed {seed}; --seed {seed} repeats them");
        Self { nextest, environment: vec![("PROPTEST_RNG_SEED".into(), seed.to_string().into())] }
    }

    /// Sets a variable for the tests.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.push((name.into(), value.into()));
    }

    /// Runs one group, or all tests. `cargo test` knows no groups: for [`UNIT`] it runs the crates' inner tests.
    pub fn run(&self, root: &Path, group: Option<&str>) -> Result<(Tally, Vec<TimedTest>)> {
        let skips = SkipLog::new(root)?;
        let (tally, tests) = match &self.nextest {
            Some(nextest) => self.with_nextest(nextest, root, group, &skips)?,
            None => (self.with_cargo(root, group, &skips)?, Vec::new()),
        };
        let skipped = skips.print()?.min(tally.passed);
        let tally = Tally { passed: tally.passed - skipped, skipped: tally.skipped + skipped, ..tally };
        Ok((tally, tests))
    }

    fn with_nextest(
        &self,
        nextest: &Path,
        root: &Path,
        group: Option<&str>,
        skips: &SkipLog,
    ) -> Result<(Tally, Vec<TimedTest>)> {
        // The path is set in `.config/nextest.toml`.
        let report = root.join("target").join("nextest").join("default").join("junit.xml");
        remove(&report)?;
        let mut command = Command::new(nextest);
        // Groups that compute are limited to one test for each core.
        let threads = (2 * crate::machine::cores()).to_string();
        command.args(["nextest", "run", "--workspace", "--no-fail-fast", "--test-threads", &threads]);
        if let Some(group) = group {
            command.args(["--status-level", "slow", "-E", &format!("group({group})")]);
        }
        let (_, success) = stream(self.prepare(&mut command, root, skips))?;
        let report = std::fs::read_to_string(report).context("nextest left no report: the tests were not run")?;
        let (tally, tests) = junit::read(&report)?;
        ensure!(success || tally.failed > 0, "nextest failed, and no test did");
        Ok((tally, tests))
    }

    fn with_cargo(&self, root: &Path, group: Option<&str>, skips: &SkipLog) -> Result<Tally> {
        let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
        command.args(if group.is_some() { &["--lib", "--bins"][..] } else { &["--all-targets"] });
        self.count(&mut command, root, skips)
    }

    /// Runs the examples of the documentation, which nextest does not.
    pub fn doctests(&self, root: &Path) -> Result<(Tally, Vec<TimedTest>)> {
        let mut command = cargo(&["test", "--workspace", "--no-fail-fast", "--doc"]);
        Ok((self.count(&mut command, root, &SkipLog::at(root))?, Vec::new()))
    }

    fn count(&self, command: &mut Command, root: &Path, skips: &SkipLog) -> Result<Tally> {
        let (lines, success) = stream(self.prepare(command, root, skips))?;
        let tally = tally::cargo_test(&lines);
        ensure!(success || tally.failed > 0, "cargo test failed, and no test did");
        Ok(tally)
    }

    fn prepare<'c>(&self, command: &'c mut Command, root: &Path, skips: &SkipLog) -> &'c mut Command {
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        command.envs(environment).env("LANDSPEED_SKIP_LOG", &skips.0).current_dir(root)
    }
}

/// The file that skipped tests name themselves in: to the harness they look like passed ones.
struct SkipLog(PathBuf);

impl SkipLog {
    /// An empty one.
    fn new(root: &Path) -> Result<Self> {
        let log = Self::at(root);
        remove(&log.0)?;
        Ok(log)
    }

    fn at(root: &Path) -> Self {
        Self(root.join("target").join("skipped-tests.log"))
    }

    /// Prints its lines and returns their number.
    fn print(&self) -> Result<u64> {
        let text = match std::fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", self.0.display())),
        };
        let mut skips: Vec<&str> = text.lines().collect();
        skips.sort_unstable();
        for skip in &skips {
            println!("{skip}");
        }
        Ok(skips.len() as u64)
    }
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
