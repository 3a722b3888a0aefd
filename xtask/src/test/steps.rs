//! The steps of a run: each one command, timed and counted, and the summary that closes the run.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
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
    took: Duration,
}

/// A test and how long it ran.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedTest {
    /// Test binary and test: `landspeed::lab exact::a_burst_is_queued`.
    pub name: String,
    /// Seconds.
    pub seconds: f64,
}

/// The steps so far.
pub struct Steps {
    root: PathBuf,
    began: Instant,
    total: Tally,
    rows: Vec<Row>,
    tests: Vec<TimedTest>,
}

impl Steps {
    /// None yet; commands run in `root`.
    pub fn new(root: PathBuf) -> Self {
        Self { root, began: machine::now(), total: Tally::default(), rows: Vec::new(), tests: Vec::new() }
    }

    /// The workspace's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Runs one command, shows its output as it comes, and counts what it says. A command that fails without naming a
    /// failure (it did not compile) is one failure; one that succeeds without counts is one pass.
    pub fn run(&mut self, name: &str, command: &mut Command, read: Read) {
        let began = heading(name);
        let tally = match stream(command.current_dir(&self.root)) {
            Ok((lines, success)) => judge(read(&lines), success),
            Err(error) => failure(&error),
        };
        self.add(name, tally, began);
    }

    /// Like [`Steps::run`], for work inside this program.
    pub fn call(&mut self, name: &str, work: impl FnOnce(&Path) -> Result<(Tally, Vec<TimedTest>)>) {
        let began = heading(name);
        let tally = match work(&self.root) {
            Ok((tally, tests)) => {
                self.tests.extend(tests);
                judge(tally, true)
            }
            Err(error) => failure(&error),
        };
        self.add(name, tally, began);
    }

    /// Times a preparation, which is not a check.
    pub fn prepare(&mut self, name: &str, work: impl FnOnce()) {
        let began = heading(name);
        work();
        self.add(name, Tally::default(), began);
    }

    /// Fetches what the tests can do without; that it cannot be had is a skip.
    pub fn fetch(&mut self, name: &str, fetch: impl FnOnce() -> Result<PathBuf>) -> Option<PathBuf> {
        let began = heading(name);
        match fetch() {
            Ok(place) => {
                self.add(name, Tally::default(), began);
                Some(place)
            }
            Err(why) => {
                println!("SKIPPED: {why:#}");
                self.add(name, Tally { skipped: 1, ..Tally::default() }, began);
                None
            }
        }
    }

    /// Counts a step that cannot run here.
    pub fn skip(&mut self, name: &str, why: &str) {
        let began = heading(name);
        println!("SKIPPED: {why}");
        self.add(name, Tally { skipped: 1, ..Tally::default() }, began);
    }

    fn add(&mut self, name: &str, tally: Tally, began: Instant) {
        self.total += tally;
        self.rows.push(Row { name: name.to_owned(), tally, took: machine::now() - began });
    }

    /// Prints the slowest tests, every step with its time, and, alone on the last line, the sum.
    pub fn finish(mut self) -> Result<ExitCode> {
        self.tests.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        if !self.tests.is_empty() {
            println!("\nSlowest tests");
        }
        for test in self.tests.iter().take(SLOWEST) {
            println!("{:8.1} s  {}", test.seconds, test.name);
        }
        println!("\nSteps, {:.0} s in all", (machine::now() - self.began).as_secs_f64());
        for Row { name, tally, took } in &self.rows {
            let verdict = if tally.failed == 0 { "ok  " } else { "FAIL" };
            println!("{:8.1} s  {verdict} {name}: {tally}", took.as_secs_f64());
        }
        println!("\n{}", self.total);
        std::io::stdout().flush()?;
        Ok(if self.total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

fn heading(name: &str) -> Instant {
    println!("\n== {name}");
    machine::now()
}

fn failure(error: &anyhow::Error) -> Tally {
    println!("{error:#}");
    Tally { failed: 1, ..Tally::default() }
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
