//! The steps of a run, in lanes beside each other: each one command, timed and counted, and the summary that closes the run.

use std::fmt::{self, Write as _};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::tally::Tally;
use crate::machine;

/// Lines of the list of slow tests.
const SLOWEST: usize = 20;

/// Reads a tool's output for what passed, failed and was skipped.
pub type Read = fn(&[String]) -> Tally;

/// A step that is over.
struct Row {
    name: String,
    tally: Tally,
    began: Instant,
    took: Duration,
}

/// A test and how long it ran.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedTest {
    /// Test binary: `landspeed::testsuite`.
    pub binary: String,
    /// Test within it: `lab::exact::a_burst_is_queued`.
    pub test: String,
    /// Seconds.
    pub seconds: f64,
}

impl TimedTest {
    /// Binary and test.
    pub fn name(&self) -> String {
        format!("{} {}", self.binary, self.test)
    }
}

/// The steps of a run. Those of different [`Lane`]s run beside each other.
pub struct Steps {
    root: PathBuf,
    began: Instant,
    done: Mutex<Done>,
}

/// What has run so far.
#[derive(Default)]
struct Done {
    total: Tally,
    rows: Vec<Row>,
    tests: Vec<TimedTest>,
}

/// Steps that run one after the other.
#[derive(Clone, Copy)]
pub struct Lane<'s> {
    steps: &'s Steps,
    beside: Option<Weight>,
}

/// Priority of a lane that runs beside the tests. Their programs wait for the clock and must not wait for a compiler as well.
#[derive(Debug, Clone, Copy)]
pub enum Weight {
    /// Tests wait for its result.
    Needed,
    /// It must end within its own deadlines.
    Low,
    /// It fills what the others leave idle.
    Idle,
}

impl Weight {
    /// For `nice`(1).
    fn nice(self) -> &'static str {
        match self {
            Self::Needed => "5",
            Self::Low => "10",
            Self::Idle => "19",
        }
    }
}

impl Steps {
    /// None yet; commands run in `root`.
    pub fn new(root: PathBuf) -> Self {
        Self { root, began: machine::now(), done: Mutex::default() }
    }

    /// The workspace's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The lane whose output is shown as it comes.
    pub fn foreground(&self) -> Lane<'_> {
        Lane { steps: self, beside: None }
    }

    /// A lane beside it. The output of a step is printed when the step is over, so that steps do not mix.
    pub fn beside(&self, weight: Weight) -> Lane<'_> {
        Lane { steps: self, beside: Some(weight) }
    }

    /// The times of all tests so far.
    pub fn tests(&self) -> Vec<TimedTest> {
        self.done().tests.clone()
    }

    fn done(&self) -> std::sync::MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Prints the slowest tests, every step with its time, and, alone on the last line, the sum.
    pub fn finish(self) -> Result<ExitCode> {
        let Done { total, rows, mut tests } =
            self.done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        tests.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        if !tests.is_empty() {
            println!("\nSlowest tests");
        }
        for test in tests.iter().take(SLOWEST) {
            println!("{:8.1} s  {}", test.seconds, test.name());
        }
        println!("\nSteps, {:.0} s in all; some ran beside each other", (machine::now() - self.began).as_secs_f64());
        println!("   begin      took");
        for Row { name, tally, began, took } in &rows {
            let verdict = if tally.failed == 0 { "ok  " } else { "FAIL" };
            let began = (*began - self.began).as_secs_f64();
            println!("{began:8.0} {:8.1} s  {verdict} {name}: {tally}", took.as_secs_f64());
        }
        println!("\n{total}");
        std::io::stdout().flush()?;
        Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Lane<'_> {
    /// The workspace's directory.
    pub fn root(&self) -> &Path {
        &self.steps.root
    }

    /// Runs one command, shows its output, and counts what it says. A command that fails without naming a failure (it did
    /// not compile) is one failure; one that succeeds without counts is one pass.
    pub fn run(&self, name: &str, command: &mut Command, read: Read) {
        let began = self.heading(name);
        command.current_dir(self.root());
        let outcome = match self.beside {
            None => stream(command),
            Some(weight) => capture(&mut with_priority(command, weight)),
        };
        let (tally, said) = match outcome {
            Ok((lines, success)) => (judge(read(&lines), success), lines),
            Err(error) => failure(&error),
        };
        self.add(name, tally, began, &said);
    }

    /// Like [`Lane::run`], for work inside this program.
    pub fn call(&self, name: &str, work: impl FnOnce(&Path) -> Result<(Tally, Vec<TimedTest>)>) {
        let began = self.heading(name);
        let (tally, said) = match work(self.root()) {
            Ok((tally, tests)) => {
                self.steps.done().tests.extend(tests);
                (judge(tally, true), Vec::new())
            }
            Err(error) => failure(&error),
        };
        self.add(name, tally, began, &said);
    }

    /// Times a preparation, which is not a check.
    pub fn prepare(&self, name: &str, work: impl FnOnce()) {
        let began = self.heading(name);
        work();
        self.add(name, Tally::default(), began, &[]);
    }

    /// Fetches what the tests can do without; that it cannot be had is a skip.
    pub fn fetch(&self, name: &str, fetch: impl FnOnce() -> Result<PathBuf>) -> Option<PathBuf> {
        let began = self.heading(name);
        match fetch() {
            Ok(place) => {
                self.add(name, Tally::default(), began, &[]);
                Some(place)
            }
            Err(why) => {
                self.add(name, Tally { skipped: 1, ..Tally::default() }, began, &[format!("SKIPPED: {why:#}")]);
                None
            }
        }
    }

    /// Counts a step that cannot run here.
    pub fn skip(&self, name: &str, why: &str) {
        let began = self.heading(name);
        self.add(name, Tally { skipped: 1, ..Tally::default() }, began, &[format!("SKIPPED: {why}")]);
    }

    fn heading(&self, name: &str) -> Instant {
        if self.beside.is_none() {
            println!("\n== {name}");
        }
        machine::now()
    }

    /// Counts a step that is over, and prints what was not shown yet.
    fn add(&self, name: &str, tally: Tally, began: Instant, said: &[String]) {
        let took = machine::now() - began;
        let mut text = String::new();
        if self.beside.is_some() {
            let _ = writeln!(text, "\n== {name} ({:.0} s, beside the tests)", took.as_secs_f64());
        }
        if self.beside.is_some() || tally.failed + tally.skipped > 0 {
            said.iter().for_each(|line| text.extend([line.as_str(), "\n"]));
        }
        print!("{text}");
        let mut done = self.steps.done();
        done.total += tally;
        done.rows.push(Row { name: name.to_owned(), tally, began, took });
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

fn failure(error: &anyhow::Error) -> (Tally, Vec<String>) {
    (Tally { failed: 1, ..Tally::default() }, vec![format!("{error:#}")])
}

fn judge(tally: Tally, success: bool) -> Tally {
    if !success && tally.failed == 0 {
        Tally { passed: 0, failed: 1, ..tally }
    } else if tally.is_empty() {
        Tally { passed: 1, ..tally }
    } else {
        tally
    }
}

/// Runs with no input, echoes and keeps standard output; errors go straight to the terminal.
pub fn stream(command: &mut Command) -> Result<(Vec<String>, bool)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let mut lines = Vec::new();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            println!("{line}");
            lines.push(line);
        }
    }
    Ok((lines, child.wait()?.success()))
}

/// The same command with a lower priority.
fn with_priority(command: &Command, weight: Weight) -> Command {
    let mut low = Command::new("nice");
    low.args(["-n", weight.nice()]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => low.env(name, value),
            None => low.env_remove(name),
        };
    }
    low.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
    low
}

/// Runs with no input and keeps both outputs, in the order in which they came.
fn capture(command: &mut Command) -> Result<(Vec<String>, bool)> {
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    // The write ends stay open in `command`, and the reader would wait for them.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut lines = Vec::new();
    for line in BufReader::new(reader).split(b'\n') {
        lines.push(String::from_utf8_lossy(&line?).into_owned());
    }
    Ok((lines, child.wait()?.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_without_counts_is_one_failure() {
        assert_eq!(judge(Tally::default(), false), Tally { failed: 1, ..Tally::default() });
        let counted = Tally { passed: 3, failed: 2, skipped: 1 };
        assert_eq!(judge(counted, false), counted);
    }

    #[test]
    fn a_command_that_succeeds_without_counts_is_one_pass() {
        assert_eq!(judge(Tally::default(), true), Tally { passed: 1, ..Tally::default() });
    }
}
