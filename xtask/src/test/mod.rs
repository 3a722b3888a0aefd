//! `cargo xtask test`: everything that must hold before a commit, in one run with one closing line.

mod apt;
mod corpus;
mod iperf3;
mod setup;
mod tally;

use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use tally::Tally;

/// What to leave out of a run.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Install nothing: what is missing is skipped, and says so
    #[arg(long)]
    no_install: bool,
    /// Do not build a kernel for the lab's tests
    #[arg(long)]
    no_kernel: bool,
    /// Leave out the web report's tests
    #[arg(long)]
    no_web: bool,
}

/// Names where the lab's kernels are kept.
const KERNELS: &str = "LANDSPEED_KERNELS";

/// How the tests' output says how they went.
type Read = fn(&[String]) -> Tally;

/// Runs every step, whatever became of the ones before it.
pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::law::root();
    let skip_log = root.join("target").join("skipped-tests.log");
    std::fs::create_dir_all(root.join("target")).context("cannot create target/")?;
    if let Err(error) = std::fs::remove_file(&skip_log)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(error).with_context(|| format!("cannot clear {}", skip_log.display()));
    }

    let mut run = Run { root: root.clone(), total: Tally::default(), rows: Vec::new() };
    if !options.no_install {
        setup::programs();
    }
    run.step("format", &mut cargo(&["fmt", "--all", "--check"]), tally::one_check);
    run.step(
        "lints",
        &mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
        tally::one_check,
    );
    // The lab's kernel is built once, of the newest source Debian packages, and kept under target/ unless said otherwise.
    let kernels = std::env::var_os(KERNELS).map_or_else(|| root.join("target").join("kernels"), PathBuf::from);
    if options.no_install || options.no_kernel {
        run.skip("the lab's kernel", "it was to be left out: tests of the lab use one that is there, or skip");
    } else {
        let mut build = cargo(&["run", "--quiet", "-p", "landspeed", "--", "lab", "kernel", "build"]);
        run.step("the lab's kernel", build.env(KERNELS, &kernels), tally::one_check);
    }
    let mut tests = cargo(&["test", "--workspace", "--no-fail-fast"]);
    tests.env("LANDSPEED_SKIP_LOG", &skip_log).env(KERNELS, &kernels);
    match corpus::captures(&root, options.no_install) {
        Ok(captures) => {
            tests.env(corpus::VARIABLE, captures);
        }
        Err(why) => run.skip("the captures of tcpdump and Wireshark", &format!("{why:#}")),
    }
    match iperf3::fetch(&root, options.no_install) {
        Ok(place) => {
            tests.env(iperf3::VARIABLE, place);
        }
        Err(why) => run.skip("iperf3 of other releases", &format!("{why:#}")),
    }
    match iperf3::consumers(&root, options.no_install) {
        Ok(place) => {
            tests.env(iperf3::CONSUMERS, place);
        }
        Err(why) => run.skip("a reader of iperf3's JSON", &format!("{why:#}")),
    }
    run.step("tests", &mut tests, tally::cargo_test);
    run.count_skips(&skip_log)?;
    run.step(
        "documentation",
        cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings"),
        tally::one_check,
    );
    match setup::cargo_deny(&root, options.no_install) {
        Ok(deny) => {
            // It looks at crates of other platforms too, which no build here has fetched.
            run.step("crates of every platform", &mut cargo(&["fetch", "--locked", "--quiet"]), tally::one_check);
            run.step(
                "licences and bans",
                Command::new(deny).args(["--offline", "check", "bans", "licenses", "sources"]),
                tally::one_check,
            );
        }
        Err(why) => run.skip("licences and bans", &format!("{why:#}")),
    }
    if !options.no_web {
        run.web(options.no_install);
    }
    run.finish()
}

/// Downloads the releases of iperf3 that the tests speak with, for a single `cargo test` to use.
pub fn fetch_iperf3() -> Result<()> {
    let place = iperf3::fetch(&crate::law::root(), false)?;
    println!("{}={}", iperf3::VARIABLE, place.display());
    let readers = iperf3::consumers(&crate::law::root(), false)?;
    println!("{}={}", iperf3::CONSUMERS, readers.display());
    Ok(())
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// The pages in `directory`, joined as in `PATH`.
fn pages(directory: &Path) -> Result<OsString> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        pages.push(entry?.path());
    }
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "html"));
    pages.sort();
    anyhow::ensure!(!pages.is_empty(), "no page in {}", directory.display());
    Ok(std::env::join_paths(pages)?)
}

struct Run {
    root: PathBuf,
    total: Tally,
    rows: Vec<(String, Tally)>,
}

impl Run {
    /// Runs one command, shows its output as it comes, and counts what it says. A command that fails without naming a
    /// failure (it did not compile) is one.
    fn step(&mut self, name: &str, command: &mut Command, read: Read) {
        println!("\n== {name}");
        let mut tally = match stream(command.current_dir(&self.root)) {
            Ok((lines, success)) => {
                let mut tally = read(&lines);
                if !success && tally.failed == 0 {
                    tally = Tally { passed: 0, failed: 1, ..tally };
                }
                tally
            }
            Err(error) => {
                println!("{error:#}");
                Tally { failed: 1, ..Tally::default() }
            }
        };
        if tally.is_empty() {
            tally.passed = 1;
        }
        self.add(name, tally);
    }

    fn skip(&mut self, name: &str, why: &str) {
        println!("\n== {name}\nSKIPPED: {why}");
        self.add(name, Tally { skipped: 1, ..Tally::default() });
    }

    fn add(&mut self, name: &str, tally: Tally) {
        self.total += tally;
        self.rows.push((name.to_owned(), tally));
    }

    /// A skipped test looks like a passed one to cargo; the log tells them apart.
    fn count_skips(&mut self, log: &Path) -> Result<()> {
        let text = match std::fs::read_to_string(log) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", log.display())),
        };
        let mut skips: Vec<&str> = text.lines().collect();
        skips.sort_unstable();
        for skip in &skips {
            println!("{skip}");
        }
        let Some((_, tests)) = self.rows.last_mut() else { return Ok(()) };
        let skipped = (skips.len() as u64).min(tests.passed);
        let moved = Tally { passed: tests.passed - skipped, skipped: tests.skipped + skipped, ..*tests };
        self.total.passed -= skipped;
        self.total.skipped += skipped;
        *tests = moved;
        Ok(())
    }

    fn web(&mut self, no_install: bool) {
        let web = self.root.join("web");
        if !web.join("package.json").exists() {
            return self.skip("web", "there is no web/package.json");
        }
        if let Err(why) = setup::web(&web, no_install) {
            return self.skip("web", &format!("{why:#}"));
        }
        let npm = |script: &str| {
            let mut command = Command::new("npm");
            command.args(["--prefix", "web", "run", "--silent", script]);
            command
        };
        self.step("web: types, freshness, units", &mut npm("check"), tally::script);
        // Reports of every kind of document, drawn by the real renderer.
        let reports = self.root.join("target").join("reports");
        // What an earlier run drew may be of a kind that is gone.
        let _ = std::fs::remove_dir_all(&reports);
        let mut draw = cargo(&["run", "--quiet", "-p", "landspeed-report", "--example", "synthesize", "--"]);
        self.step("web: reports drawn", draw.arg(&reports), tally::one_check);
        match pages(&reports) {
            Ok(pages) => {
                let mut test = npm("test");
                test.env("LANDSPEED_REPORT", pages).env("SCREENSHOTS", self.root.join("target").join("pictures"));
                self.step("web: reports in a browser", &mut test, tally::script);
            }
            Err(why) => self.skip("web: reports in a browser", &format!("no report was drawn: {why:#}")),
        }
    }

    /// Prints the table and, alone on the last line, the sum.
    fn finish(self) -> Result<ExitCode> {
        println!();
        for (name, tally) in &self.rows {
            println!("{} {name}: {tally}", if tally.failed == 0 { "ok  " } else { "FAIL" });
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

/// Runs with no input, echoes and keeps standard output; errors go straight to the terminal.
fn stream(command: &mut Command) -> Result<(Vec<String>, bool)> {
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
