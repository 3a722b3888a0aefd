//! `cargo xtask test`: everything that must hold before a commit; `cargo xtask check`: the part of it that is fast. Both
//! run every step, whatever became of the ones before it, and close with one line of counts.

mod apt;
mod corpus;
mod iperf3;
mod junit;
mod kubernetes;
mod python;
mod runner;
mod setup;
mod steps;
mod tally;

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use runner::Runner;
use steps::Steps;
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
    /// Leave out the Python package's tests
    #[arg(long)]
    no_python: bool,
    /// Run only one group of tests: unit, e2e, netns, timing, lab or rivals (needs cargo-nextest)
    #[arg(long)]
    group: Option<String>,
    #[command(flatten)]
    seed: Seed,
}

/// Where the property tests start. The same seed every time, so that a change is never failed by chance.
#[derive(Debug, Clone, clap::Args)]
pub struct Seed {
    /// Seed of the property tests
    #[arg(long, default_value_t = 1, conflicts_with = "random_seed")]
    seed: u64,
    /// Draw a new seed for the property tests: a search for what the fixed one does not find
    #[arg(long)]
    random_seed: bool,
}

impl Seed {
    fn value(&self) -> Result<u64> {
        if !self.random_seed {
            return Ok(self.seed);
        }
        let mut bytes = [0; 8];
        let mut source = std::fs::File::open("/dev/urandom").context("cannot open /dev/urandom")?;
        source.read_exact(&mut bytes).context("cannot read /dev/urandom")?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

/// Gives a directory, downloading it first if that is allowed.
type Fetch = fn(root: &Path, no_install: bool) -> Result<PathBuf>;

/// What the tests use if it can be had, and the variables that name it to them.
const DOWNLOADS: [(&str, &str, Fetch); 4] = [
    ("captures of tcpdump and Wireshark", corpus::VARIABLE, corpus::captures),
    ("iperf3 of other releases", iperf3::VARIABLE, iperf3::fetch),
    ("a reader of iperf3's JSON", iperf3::CONSUMERS, iperf3::consumers),
    ("the schema of Kubernetes' objects", kubernetes::VARIABLE, kubernetes::fetch),
];

/// Names where the lab's kernels are kept.
const KERNELS: &str = "LANDSPEED_KERNELS";

/// `cargo xtask check`: format, lints, law, and the tests that need neither root nor network and measure no time.
pub fn check(seed: &Seed) -> Result<ExitCode> {
    let mut steps = Steps::new(crate::law::root());
    let runner = Runner::new(setup::nextest(steps.root(), false), seed.value()?);
    static_checks(&mut steps);
    steps.call("law", |_| crate::law::run().map(|()| (Tally::default(), Vec::new())));
    steps.call("unit tests", |root| runner.run(root, Some(runner::UNIT)));
    steps.finish()
}

/// `cargo xtask test`.
pub fn run(options: &Options) -> Result<ExitCode> {
    let mut steps = Steps::new(crate::law::root());
    let root = steps.root().to_owned();
    std::fs::create_dir_all(root.join("target")).context("cannot create target/")?;
    if !options.no_install {
        steps.prepare("programs", setup::programs);
    }
    let mut runner = Runner::new(setup::nextest(&root, options.no_install), options.seed.value()?);
    static_checks(&mut steps);
    let core = ["check", "--package", "landspeed", "--no-default-features", "--quiet"];
    steps.run("core without Cargo features", &mut cargo(&core), tally::one_check);
    // Everything at once: a build of one package has other features of dependencies, and compiles them anew.
    steps.run("build", &mut cargo(&["build", "--workspace", "--all-targets", "--quiet"]), tally::one_check);
    // The lab's kernel is built once, of the newest source Debian packages, and kept under target/ unless said otherwise.
    let kernels = std::env::var_os(KERNELS).map_or_else(|| root.join("target").join("kernels"), PathBuf::from);
    if options.no_install || options.no_kernel {
        steps.skip("the lab's kernel", "it was to be left out: tests of the lab use one that is there, or skip");
    } else {
        let mut build = Command::new(built("landspeed")?);
        build.args(["lab", "kernel", "build"]).env(KERNELS, &kernels);
        steps.run("the lab's kernel", &mut build, tally::one_check);
    }
    runner.set(KERNELS, &kernels);
    for (name, variable, fetch) in DOWNLOADS {
        if let Some(place) = steps.fetch(name, || fetch(&root, options.no_install)) {
            runner.set(variable, place);
        }
    }
    steps.call("tests", |root| runner.run(root, options.group.as_deref()));
    steps.call("documentation's examples", |root| runner.doctests(root));
    steps.run(
        "documentation",
        cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings"),
        tally::one_check,
    );
    if let Some(deny) = steps.fetch("cargo-deny", || setup::cargo_deny(&root, options.no_install)) {
        // It looks at crates of other platforms too, which no build here has fetched.
        steps.run("crates of every platform", &mut cargo(&["fetch", "--locked", "--quiet"]), tally::one_check);
        steps.run(
            "licences and bans",
            Command::new(deny).args(["--offline", "check", "bans", "licenses", "sources"]),
            tally::one_check,
        );
    }
    if !options.no_web {
        web(&mut steps, options.no_install)?;
    }
    if !options.no_python {
        python::run(&mut steps, &built("landspeed")?, &kernels, options.no_install);
    }
    steps.finish()
}

/// Downloads the releases of iperf3 that the tests speak with, for a single `cargo test` to use.
pub fn fetch_iperf3() -> Result<()> {
    let place = iperf3::fetch(&crate::law::root(), false)?;
    println!("{}={}", iperf3::VARIABLE, place.display());
    let readers = iperf3::consumers(&crate::law::root(), false)?;
    println!("{}={}", iperf3::CONSUMERS, readers.display());
    Ok(())
}

/// Format and lints.
fn static_checks(steps: &mut Steps) {
    steps.run("format", &mut cargo(&["fmt", "--all", "--check"]), tally::one_check);
    steps.run(
        "lints",
        &mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
        tally::one_check,
    );
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// A program of the workspace: cargo puts it beside this one.
fn built(name: &str) -> Result<PathBuf> {
    Ok(std::env::current_exe().context("cannot find the running program")?.with_file_name(name))
}

fn web(steps: &mut Steps, no_install: bool) -> Result<()> {
    let root = steps.root().to_owned();
    let web = root.join("web");
    if let Err(why) = setup::web(&web, no_install) {
        steps.skip("web", &format!("{why:#}"));
        return Ok(());
    }
    let npm = |script: &str| {
        let mut command = Command::new("npm");
        command.args(["--prefix", "web", "run", "--silent", script]);
        command
    };
    steps.run("web: types, freshness, units", &mut npm("check"), tally::script);
    // Reports of every kind of document, drawn by the real renderer.
    let reports = root.join("target").join("reports");
    // Pictures of earlier runs may be of a removed kind.
    let _ = std::fs::remove_dir_all(&reports);
    let mut draw = Command::new(built("examples")?.join("samples"));
    steps.run("web: reports drawn", draw.arg(&reports), tally::one_check);
    match pages(&reports) {
        Ok(pages) => {
            let mut test = npm("test");
            test.env("LANDSPEED_REPORT", pages).env("SCREENSHOTS", root.join("target").join("pictures"));
            steps.run("web: reports in a browser", &mut test, tally::script);
        }
        Err(why) => steps.skip("web: reports in a browser", &format!("no report was drawn: {why:#}")),
    }
    Ok(())
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
