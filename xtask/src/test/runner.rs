//! Running the workspace's tests: by cargo-nextest, which knows their groups (`.config/nextest.toml`), or by `cargo test`
//! where there is no nextest.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::steps::{TimedTest, stream};
use super::tally::{self, Tally};
use super::{cargo, junit};
use landspeed_testkit::lab_kernel::NOT_BUILT;

/// The group of tests that need neither root nor network and measure no time.
pub const UNIT: &str = "unit";

/// How the tests run.
#[derive(Clone)]
pub struct Runner {
    nextest: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    /// Where nextest finds the test binaries without calling cargo, which another step may keep locked.
    built: Option<[OsString; 4]>,
    ignored: bool,
    /// Tests that needed the lab's kernel before it was built.
    waiting: BTreeSet<String>,
}

impl Runner {
    /// With that `cargo-nextest`, and property tests that start from `seed`. `ignored`: only the tests that are too long for
    /// every run.
    pub fn new(nextest: Option<PathBuf>, seed: u64, ignored: bool) -> Self {
        println!("property tests start from seed {seed}; --seed {seed} repeats them");
        let environment = vec![("PROPTEST_RNG_SEED".into(), seed.to_string().into())];
        Self { nextest, environment, built: None, ignored, waiting: BTreeSet::new() }
    }

    /// Sets a variable for the tests.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.push((name.into(), value.into()));
    }

    /// Builds every test binary, once: a build of one package has other features of dependencies, and compiles them anew.
    pub fn build(&mut self, root: &Path) -> Result<()> {
        let Some(nextest) = &self.nextest else {
            let built = cargo(&["build", "--workspace", "--all-targets", "--quiet"]).current_dir(root).status();
            ensure!(built.context("cannot run cargo")?.success(), "the workspace does not build");
            return Ok(());
        };
        let directory = root.join("target").join("nextest");
        std::fs::create_dir_all(&directory).context("cannot make a directory")?;
        let keep = |name: &str, command: &mut Command| -> Result<PathBuf> {
            let output = command.current_dir(root).stderr(Stdio::inherit()).output().context("cannot run cargo")?;
            ensure!(output.status.success(), "the workspace does not build");
            let path = directory.join(name);
            std::fs::write(&path, output.stdout).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(path)
        };
        let mut list = Command::new(nextest);
        list.args(["nextest", "list", "--workspace", "--all-targets", "--cargo-quiet"]);
        list.args(["--list-type", "binaries-only", "--message-format", "json"]);
        let binaries = keep("binaries.json", &mut list)?;
        let metadata = keep("cargo.json", &mut cargo(&["metadata", "--format-version", "1", "--locked"]))?;
        self.built =
            Some(["--binaries-metadata".into(), binaries.into(), "--cargo-metadata".into(), metadata.into()]);
        Ok(())
    }

    /// Runs some groups, or all tests. `cargo test` knows no groups: for [`UNIT`] it runs the crates' inner tests, and all for
    /// none.
    pub fn run(&mut self, root: &Path, groups: &[&str]) -> Result<(Tally, Vec<TimedTest>)> {
        let (tally, tests, skips) = self.run_groups(root, groups)?;
        Ok((with_skips(tally, &skips), tests))
    }

    /// As [`Runner::run`], while the lab's kernel is being built. A test that lacks it is not counted, and runs again with the
    /// next groups.
    pub fn run_before_kernel(&mut self, root: &Path, groups: &[&str]) -> Result<(Tally, Vec<TimedTest>)> {
        let (mut tally, mut tests, mut skips) = self.run_groups(root, groups)?;
        let waiting: BTreeSet<String> =
            skips.iter().filter_map(|line| lacks_kernel(line)).map(str::to_owned).collect();
        tally.passed = tally.passed.saturating_sub(waiting.len() as u64);
        tests.retain(|test| !waiting.contains(&test.test));
        skips.retain(|line| !waiting.iter().any(|test| line.starts_with(&format!("SKIPPED: {test}: "))));
        self.waiting = waiting;
        Ok((with_skips(tally, &skips), tests))
    }

    /// Counts, times and the lines of the skip log.
    fn run_groups(&mut self, root: &Path, groups: &[&str]) -> Result<(Tally, Vec<TimedTest>, Vec<String>)> {
        let log = SkipLog::new(root)?;
        let (tally, tests) = match &self.nextest {
            Some(nextest) => {
                let chosen = groups.iter().map(|group| format!("group({group})"));
                let chosen: Vec<String> =
                    chosen.chain(self.waiting.iter().map(|test| format!("test(={test})"))).collect();
                self.with_nextest(nextest, root, (!chosen.is_empty()).then(|| chosen.join(" | ")), &log)?
            }
            None => (self.with_cargo(root, groups, &log)?, Vec::new()),
        };
        self.waiting.clear();
        Ok((tally, tests, log.lines()?))
    }

    /// Whether the tests are run in groups.
    pub fn knows_groups(&self) -> bool {
        self.nextest.is_some()
    }

    /// Runs the tests again that can do more of the same: property tests of captures with more cases, the lab with the cases that
    /// take minutes.
    pub fn more(&self, root: &Path) -> Result<(Tally, Vec<TimedTest>)> {
        let Some(nextest) = &self.nextest else { return Ok(Default::default()) };
        let mut again = Self { ignored: false, ..self.clone() };
        again.set("PROPTEST_CASES", "1000");
        again.set("LANDSPEED_LAB_LONG", "1");
        let chosen = "package(landspeed-trace) | (package(landspeed) & test(/^lab::/))";
        again.with_nextest(nextest, root, Some(chosen.to_owned()), &SkipLog::new(root)?)
    }

    fn with_nextest(
        &self,
        nextest: &Path,
        root: &Path,
        filter: Option<String>,
        skips: &SkipLog,
    ) -> Result<(Tally, Vec<TimedTest>)> {
        // The path is set in `.config/nextest.toml`.
        let report = root.join("target").join("nextest").join("default").join("junit.xml");
        remove(&report)?;
        let mut command = Command::new(nextest);
        // Groups that compute are limited to one test for each core.
        let threads = (2 * crate::machine::cores()).to_string();
        command.args(["nextest", "run", "--no-fail-fast", "--no-tests", "pass", "--test-threads", &threads]);
        command.args(self.binaries()).args(["--status-level", "slow"]);
        if self.ignored {
            command.args(["--run-ignored", "only"]);
        }
        if let Some(filter) = filter {
            command.arg("-E").arg(filter);
        }
        let (_, success) = stream(self.prepare(&mut command, root, skips))?;
        let report = std::fs::read_to_string(report).context("nextest left no report: the tests were not run")?;
        let (tally, tests) = junit::read(&report)?;
        ensure!(success || tally.failed > 0, "nextest failed, and no test did");
        Ok((tally, tests))
    }

    /// Where the test binaries are: known since the build, or for cargo to find.
    fn binaries(&self) -> Vec<&OsStr> {
        let found = self.built.as_ref().map(|found| found.iter().map(OsString::as_os_str).collect());
        found.unwrap_or_else(|| vec![OsStr::new("--workspace")])
    }

    /// The group of each test, by binary and test.
    pub fn groups(&self, root: &Path) -> Result<BTreeMap<(String, String), String>> {
        let Some(nextest) = &self.nextest else { return Ok(BTreeMap::new()) };
        let mut command = Command::new(nextest);
        command.args(["nextest", "show-config", "test-groups"]).args(self.binaries());
        let output = command.current_dir(root).output().context("cannot run nextest")?;
        ensure!(output.status.success(), "nextest names no groups: {}", String::from_utf8_lossy(&output.stderr));
        Ok(groups_of(&String::from_utf8_lossy(&output.stdout)))
    }

    fn with_cargo(&self, root: &Path, groups: &[&str], skips: &SkipLog) -> Result<Tally> {
        let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
        command.args(if groups.is_empty() { &["--all-targets"][..] } else { &["--lib", "--bins"] });
        if self.ignored {
            command.args(["--", "--ignored"]);
        }
        let (lines, success) = stream(self.prepare(&mut command, root, skips))?;
        let tally = tally::cargo_test(&lines);
        ensure!(success || tally.failed > 0, "cargo test failed, and no test did");
        Ok(tally)
    }

    /// Runs the examples of the documentation, which nextest does not.
    pub fn doctests(&self, root: &Path) -> Command {
        let mut command = cargo(&["test", "--workspace", "--no-fail-fast", "--doc"]);
        self.prepare(&mut command, root, &SkipLog::at(root));
        command
    }

    fn prepare<'c>(&self, command: &'c mut Command, root: &Path, skips: &SkipLog) -> &'c mut Command {
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        command.envs(environment).env("LANDSPEED_SKIP_LOG", &skips.0).current_dir(root)
    }
}

/// Reads `nextest show-config test-groups`: groups, in them rules, in them binaries, in them tests, each further in.
fn groups_of(text: &str) -> BTreeMap<(String, String), String> {
    let (mut group, mut binary) = ("", "");
    let mut groups = BTreeMap::new();
    for line in text.lines() {
        let name = line.trim_start();
        match line.len() - name.len() {
            // A rule's filter may have several lines.
            0 if name.starts_with("group: ") => group = name["group: ".len()..].split(' ').next().unwrap_or_default(),
            6 => binary = name.trim_end_matches(':'),
            10 => {
                groups.insert((binary.to_owned(), name.to_owned()), group.to_owned());
            }
            _ => {}
        }
    }
    groups
}

/// The test that a line of the skip log names, if it lacked the lab's kernel.
fn lacks_kernel(line: &str) -> Option<&str> {
    let (test, why) = line.strip_prefix("SKIPPED: ")?.split_once(": ")?;
    why.contains(NOT_BUILT).then_some(test)
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

    /// Its lines, sorted.
    fn lines(&self) -> Result<Vec<String>> {
        let text = match std::fs::read_to_string(&self.0) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            text => text.with_context(|| format!("cannot read {}", self.0.display()))?,
        };
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        Ok(lines)
    }
}

/// Prints the lines of the skip log, and counts them as skipped instead of passed.
fn with_skips(tally: Tally, skips: &[String]) -> Tally {
    for line in skips {
        println!("{line}");
    }
    let skipped = (skips.len() as u64).min(tally.passed);
    Tally { passed: tally.passed - skipped, skipped: tally.skipped + skipped, ..tally }
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_lack_the_kernel_are_found_in_the_skip_log() {
        let line = format!("SKIPPED: a::b: no fq here; not in the lab's kernel either: {NOT_BUILT}");
        assert_eq!(lacks_kernel(&line), Some("a::b"));
        assert_eq!(lacks_kernel("SKIPPED: a::b: nginx is not installed"), None);
    }

    #[test]
    fn groups_are_read_from_the_configuration_nextest_shows() {
        let text = "group: lab (max threads = 2)\n  * override for default profile with filter 'a\nb':\n      \
                    landspeed::testsuite:\n          lab::exact::a\n          lab::exact::b\ngroup: unit (max threads = 2)\n  \
                    * override:\n      landspeed-calc:\n          tests::c\n";
        let groups = groups_of(text);
        let of = |binary: &str, test: &str| groups.get(&(binary.to_owned(), test.to_owned())).map(String::as_str);
        assert_eq!(of("landspeed::testsuite", "lab::exact::b"), Some("lab"));
        assert_eq!(of("landspeed-calc", "tests::c"), Some("unit"));
        assert_eq!(groups.len(), 3);
    }
}
