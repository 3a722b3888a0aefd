//! `cargo xtask test`: everything that must hold before a commit; `cargo xtask check`: the part of it that is fast. Both
//! run every step, whatever became of the ones before it, and close with one line of counts.

mod apt;
mod corpus;
mod cyclonedx;
mod flent;
mod iperf3;
mod junit;
mod kubernetes;
mod load;
mod machines;
mod prometheus;
mod python;
mod runner;
mod setup;
mod steps;
mod tally;
mod times;

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use runner::Runner;
use steps::{Lane, Steps, Weight};
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
    /// Run only one group of tests: unit, e2e, netns, timing, lab, machine or rivals (needs cargo-nextest)
    #[arg(long)]
    group: Option<String>,
    /// Run the tests that are too long for every run, and only these (`make test-long`)
    #[arg(long)]
    long: bool,
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
const DOWNLOADS: [(&str, &str, Fetch); 8] = [
    ("captures of tcpdump and Wireshark", corpus::VARIABLE, corpus::captures),
    ("iperf3 of other releases", iperf3::VARIABLE, iperf3::fetch),
    ("a reader of iperf3's JSON", iperf3::CONSUMERS, iperf3::consumers),
    ("flent of PyPI", flent::VARIABLE, flent::fetch),
    ("Prometheus", prometheus::VARIABLE, prometheus::fetch),
    ("the schema of Kubernetes' objects", kubernetes::VARIABLE, kubernetes::fetch),
    ("the schema of CycloneDX", cyclonedx::VARIABLE, cyclonedx::fetch),
    ("a kernel for machines", machines::VARIABLE, machines::sample),
];

/// What only the long tests use.
const LONG_DOWNLOADS: [(&str, &str, Fetch); 1] =
    [("kernels and a root for machines", machines::VARIABLE, machines::all)];

/// Names where the lab's kernels are kept.
const KERNELS: &str = "LANDSPEED_KERNELS";

/// Groups that run beside other work; `timing` runs alone.
const GROUPS: [&str; 6] = [runner::UNIT, "e2e", "rivals", "netns", "lab", "machine"];

/// Groups that run while the lab's kernel is built; those of their tests that need it run again once it is there.
const BEFORE_KERNEL: [&str; 4] = [runner::UNIT, "e2e", "rivals", "netns"];

/// `cargo xtask check`: format, lints, law, and the tests that need neither root nor network and measure no time.
pub fn check(seed: &Seed) -> Result<ExitCode> {
    let steps = Steps::new(crate::law::root());
    let front = steps.foreground();
    let mut runner = Runner::new(setup::nextest(steps.root(), false), seed.value()?, false);
    front.run("format", &mut format(), tally::one_check);
    front.run("bench: format", &mut bench(&["fmt", "--check"]), tally::one_check);
    front.call("law", |_| crate::law::run().map(|()| (Tally::default(), Vec::new())));
    front.call("build", |root| runner.build(root).map(|()| (Tally::default(), Vec::new())));
    std::thread::scope(|scope| {
        scope.spawn(|| steps.beside(Weight::Needed).run("lints", &mut lints(), tally::one_check));
        front.call("unit tests", |root| runner.run(root, &[runner::UNIT]));
    });
    steps.finish()
}

/// `cargo xtask test`. What compiles or downloads runs in lanes beside the tests, most of which wait for a clock or a network;
/// at the end, alone, run the few that measure real traffic.
pub fn run(options: &Options) -> Result<ExitCode> {
    let steps = Steps::new(crate::law::root());
    let root = steps.root().to_owned();
    let load = load::Reading::now();
    std::fs::create_dir_all(root.join("target")).context("cannot create target/")?;
    let front = steps.foreground();
    let [needed, low, idle] = [Weight::Needed, Weight::Low, Weight::Idle].map(|weight| steps.beside(weight));
    if !options.no_install {
        front.prepare("programs", || setup::programs(&root));
    }
    let mut runner = Runner::new(setup::nextest(&root, options.no_install), options.seed.value()?, options.long);
    front.run("format", &mut format(), tally::one_check);
    front.run("bench: format", &mut bench(&["fmt", "--check"]), tally::one_check);
    front.call("build", |root| runner.build(root).map(|()| (Tally::default(), Vec::new())));
    let program = built("landspeed")?;
    let kernels = std::env::var_os(KERNELS).map_or_else(|| root.join("target").join("kernels"), PathBuf::from);
    runner.set(KERNELS, &kernels);
    // A single group, or long tests, are looked at by themselves.
    let all = options.group.is_none() && !options.long;
    let wants = |group: &str| options.group.as_deref().is_none_or(|wanted| wanted == group);
    std::thread::scope(|scope| -> Result<()> {
        let kernel = scope.spawn(|| kernel(needed, &program, &kernels, options));
        let downloads = scope.spawn(|| downloads(needed, options));
        let python = (options.group.is_none() && !options.no_python)
            .then(|| scope.spawn(|| python::prepare(low, options.no_install)));
        let doctests = runner.doctests(&root);
        if all {
            scope.spawn(move || compiled(idle, doctests));
        }
        for (variable, place) in downloads.join().unwrap_or_default() {
            runner.set(variable, place);
        }
        if all && runner.knows_groups() {
            let name = format!("tests: {}", BEFORE_KERNEL.join(", "));
            front.call(&name, |root| runner.run_before_kernel(root, &BEFORE_KERNEL));
        }
        let _ = kernel.join();
        if options.group.is_none() && !options.no_web {
            scope.spawn(|| web(low, options.no_install, options.long));
        }
        if let Some(Ok(Some(python))) = python.map(std::thread::ScopedJoinHandle::join) {
            let (program, kernels) = (&program, &kernels);
            scope.spawn(move || python::run(low, &python, program, kernels, options.long));
        }
        if runner.knows_groups() {
            let done: &[&str] = if all { &BEFORE_KERNEL } else { &[] };
            let groups: Vec<&str> =
                GROUPS.into_iter().filter(|group| wants(group) && !done.contains(group)).collect();
            if !groups.is_empty() {
                front.call(&format!("tests: {}", groups.join(", ")), |root| runner.run(root, &groups));
            }
        } else {
            front.call("tests", |root| runner.run(root, &[]));
        }
        Ok(())
    })?;
    if wants("timing") && runner.knows_groups() {
        front.call("tests: timing", |root| runner.run(root, &["timing"]));
    }
    if options.long {
        let core = ["check", "--package", "landspeed", "--no-default-features", "--quiet"];
        front.run("core without Cargo features", &mut cargo(&core), tally::one_check);
        oldest_compiler(front);
        front.call("tests: more cases", |root| runner.more(root));
        let target = ["--target-dir", "target/bench"];
        let mut lints = bench(&["clippy", "--all-targets"]);
        front.run("bench: lints", lints.args(target).args(["--", "-D", "warnings"]), tally::one_check);
        front.run("bench: tests", bench(&["test"]).args(target), tally::cargo_test);
    }
    front.call("times", |root| times::write(root, &steps.tests(), &runner.groups(root)?, all, &load));
    steps.finish()
}

/// Compiles with the oldest Rust that Cargo.toml names (`rust-version`).
fn oldest_compiler(lane: Lane<'_>) {
    const VERSION: &str = env!("CARGO_PKG_RUST_VERSION");
    let name = format!("compiles with Rust {VERSION}");
    match setup::toolchain(VERSION) {
        Ok(toolchain) => {
            let mut check = Command::new("rustup");
            check.args(["run", &toolchain, "cargo", "check", "--workspace", "--all-targets", "--locked", "--quiet"]);
            lane.run(&name, check.args(["--target-dir", "target/oldest"]), tally::one_check);
        }
        Err(why) => lane.skip(&name, &format!("{why:#}")),
    }
}

/// The lab's kernel, of the newest source Debian packages, built once and kept under target/ unless said otherwise.
fn kernel(lane: Lane<'_>, program: &Path, kernels: &Path, options: &Options) {
    if options.no_install || options.no_kernel {
        let why = "left out by an option: tests of the lab use an existing kernel, or skip";
        return lane.skip("the lab's kernel", why);
    }
    let mut build = Command::new(program);
    build.args(["lab", "kernel", "build"]).env(KERNELS, kernels);
    lane.run("the lab's kernel", &mut build, tally::one_check);
}

/// What can be downloaded, and the variables that name it to the tests.
fn downloads(lane: Lane<'_>, options: &Options) -> Vec<(&'static str, PathBuf)> {
    let no_install = options.no_install;
    let fetch = |(name, variable, fetch): (&str, &'static str, Fetch)| {
        let place = lane.fetch(name, || fetch(lane.root(), no_install))?;
        Some((variable, place))
    };
    let long = LONG_DOWNLOADS.into_iter().filter(|_| options.long);
    let places = DOWNLOADS.into_iter().chain(long).filter_map(fetch).collect();
    if let Some(deny) = lane.fetch("cargo-deny", || setup::cargo_deny(lane.root(), no_install)) {
        // It looks at crates of other platforms too, which no build here has fetched.
        lane.run("crates of every platform", &mut cargo(&["fetch", "--locked", "--quiet"]), tally::one_check);
        lane.run(
            "licences and bans",
            Command::new(deny).args(["--offline", "check", "bans", "licenses", "sources"]),
            tally::one_check,
        );
    }
    places
}

/// What compiles again: lints, the documentation and its examples.
fn compiled(lane: Lane<'_>, mut doctests: Command) {
    lane.run("lints", &mut lints(), tally::one_check);
    lane.run("documentation's examples", &mut doctests, tally::cargo_test);
    lane.run(
        "documentation",
        cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings"),
        tally::one_check,
    );
}

/// Downloads what the virtual machines of the tests boot, for a single `cargo test` to use.
pub fn fetch_machines() -> Result<()> {
    println!("{}={}", machines::VARIABLE, machines::all(&crate::law::root(), false)?.display());
    Ok(())
}

/// Downloads the releases of iperf3 that the tests speak with, for a single `cargo test` to use.
pub fn fetch_iperf3() -> Result<()> {
    let place = iperf3::fetch(&crate::law::root(), false)?;
    println!("{}={}", iperf3::VARIABLE, place.display());
    let readers = iperf3::consumers(&crate::law::root(), false)?;
    println!("{}={}", iperf3::CONSUMERS, readers.display());
    Ok(())
}

/// Downloads the Prometheus that scrapes the program in the tests, for a single `cargo test` to use.
pub fn fetch_prometheus() -> Result<()> {
    println!("{}={}", prometheus::VARIABLE, prometheus::fetch(&crate::law::root(), false)?.display());
    Ok(())
}

fn format() -> Command {
    cargo(&["fmt", "--all", "--check"])
}

fn lints() -> Command {
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])
}

/// A cargo command for the workspace in `bench/`.
fn bench(arguments: &[&str]) -> Command {
    let mut command = cargo(arguments);
    command.args(["--quiet", "--manifest-path", "bench/Cargo.toml"]);
    command
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

/// The web report: its sources, and reports of every kind of document, drawn by the real renderer, in a browser.
/// `with_pictures`: for people, at every width and in both themes; they take longer than the claims.
fn web(lane: Lane<'_>, no_install: bool, with_pictures: bool) {
    let root = lane.root();
    let web = root.join("web");
    if let Err(why) = setup::web(&web, no_install) {
        return lane.skip("web", &format!("{why:#}"));
    }
    let npm = |script: &str| {
        let mut command = Command::new("npm");
        command.args(["--prefix", "web", "run", "--silent", script]);
        command
    };
    lane.run("web: types, freshness, units", &mut npm("check"), tally::script);
    let reports = root.join("target").join("reports");
    // Pictures of earlier runs may be of a removed kind.
    let _ = std::fs::remove_dir_all(&reports);
    let drawn = built("examples").map(|examples| {
        lane.run("web: reports drawn", Command::new(examples.join("samples")).arg(&reports), tally::one_check);
    });
    match drawn.and_then(|()| pages(&reports)) {
        Ok(pages) => {
            let mut test = npm("test");
            test.env("LANDSPEED_REPORT", pages);
            if with_pictures {
                test.env("SCREENSHOTS", root.join("target").join("pictures"));
            }
            lane.run("web: reports in a browser", &mut test, tally::script);
        }
        Err(why) => lane.skip("web: reports in a browser", &format!("no report was drawn: {why:#}")),
    }
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
