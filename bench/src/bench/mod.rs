//! `cargo xtask bench`: benchmarks landspeed against iperf3, nuttcp, xfr and sockperf.
//!
//! On a shared machine the same test can vary by half within a minute, so results are never compared across
//! minutes: each round runs every contestant of a case once, the next round starts with the next contestant, and
//! ratios are of medians over rounds. Everything runs on loopback. Tools that are not installed, or cannot run a
//! case, are listed as SKIPPED.

mod archive;
mod capture;
mod case;
mod cases;
mod child;
mod conversation;
mod emulate;
mod hostile;
mod net;
mod qualify;
pub mod rivals;
mod row;
mod search;
mod tools;
mod verdicts;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::machine::{self, Machine};
use hostile::local::LocalRow;
use hostile::{AttackRow, Hostile};
use row::Row;
use tools::Tools;

/// Options of `cargo xtask bench`.
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    other: Option<Other>,
    /// Cases to run, by name prefix (all by default)
    cases: Vec<String>,
    /// Rounds per case
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Duration of a run, seconds
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// Three rounds of one second: to check that it works, not for published figures
    #[arg(long)]
    quick: bool,
    /// Path of a landspeed binary, instead of building it
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Share of datagrams that a "loss-free" run may lose: 0, or 0.0001 on hosts with steal time
    #[arg(long, default_value_t = 0.0)]
    tolerate_loss: f64,
    /// Measure the rivals only
    #[arg(long)]
    rivals_only: bool,
    /// Write every value to this file
    #[arg(long, value_name = "FILE", default_value = "target/bench.json")]
    json: PathBuf,
    /// Write the documentation page to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// List the cases and stop
    #[arg(long)]
    list: bool,
}

/// Benchmarks with separate options.
#[derive(Debug, Clone, clap::Subcommand)]
enum Other {
    /// Fill an archive with 100,000 runs and time queries
    Archive(archive::Options),
    /// Compare verdicts with the known causes of scenarios (needs a built lab kernel)
    Verdicts(verdicts::Options),
    /// Compare verdicts of `qualify` on short sections with TCP over the long paths (needs a built lab kernel)
    Qualify(qualify::Options),
    /// Build current versions of the rivals from source into target/rivals
    Rivals(rivals::Options),
}

/// Input for building the cases.
pub struct Bench {
    /// Tools that were found.
    pub tools: Tools,
    /// Duration of a run, seconds.
    pub seconds: u32,
    /// Number of cores of this machine.
    pub cores: usize,
    /// Maximum share of datagrams lost in a run that counts as loss-free.
    pub tolerated_loss: f64,
    /// Whether the benchmark runs in its own network namespace.
    is_isolated: bool,
    /// Congestion control of this namespace at the start.
    congestion: String,
}

/// The default congestion control of this network namespace.
const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

impl Bench {
    /// Makes `name` the congestion control of all sockets opened from now on, by any tool.
    ///
    /// # Errors
    /// Outside a separate network namespace, or if the kernel does not have `name`.
    pub fn set_congestion_control(&self, name: &str) -> Result<(), String> {
        if !self.is_isolated {
            return Err("setting the congestion control needs root: it is done in a network namespace".to_owned());
        }
        std::fs::write(CONGESTION, name).map_err(|error| {
            format!("congestion control {name}: {error}; add it to net.ipv4.tcp_allowed_congestion_control first")
        })
    }

    fn restore_congestion_control(&self) {
        if self.is_isolated && !self.congestion.is_empty() {
            let _ = std::fs::write(CONGESTION, &self.congestion);
        }
    }
}

/// The file written by `--json`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    date: String,
    rounds: u32,
    seconds: u32,
    tolerated_loss: f64,
    own_network_namespace: bool,
    machine: &'a Machine,
    versions: &'a [(String, String)],
    rows: &'a [Row],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    hostile: &'a [AttackRow],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    hostile_local: &'a [LocalRow],
}

/// Returns the names of all cases.
fn names() -> impl Iterator<Item = &'static str> {
    cases::ALL
        .iter()
        .map(|(name, _)| *name)
        .chain(hostile::ALL.iter().map(|attack| attack.name))
        .chain(hostile::local::ALL.iter().map(|attack| attack.name))
}

/// Runs the chosen cases and writes the results after each one.
pub fn run(options: &Options) -> Result<()> {
    match &options.other {
        Some(Other::Archive(other)) => {
            let options =
                Options { binary: other.binary.clone().or_else(|| options.binary.clone()), ..options.clone() };
            let binary = binary(&options).map_err(|why| anyhow::anyhow!(why))?;
            return archive::run(other, &binary);
        }
        Some(Other::Verdicts(options)) => return verdicts::run(options),
        Some(Other::Qualify(options)) => return qualify::run(options),
        Some(Other::Rivals(options)) => return rivals::run(options),
        None => {}
    }
    if options.list {
        for name in names() {
            println!("{name}");
        }
        return Ok(());
    }
    ensure!(options.rounds > 0 && options.seconds > 0, "rounds and seconds start at 1");
    let (rounds, seconds) = if options.quick { (3, 1) } else { (options.rounds, options.seconds) };
    let is_chosen =
        |name: &str| options.cases.is_empty() || options.cases.iter().any(|start| name.starts_with(start.as_str()));
    ensure!(names().any(is_chosen), "no such case; `cargo xtask bench --list` names them");

    let binary = binary(options);
    let is_isolated = isolate_network(&binary)?;
    let bench = Bench {
        tools: Tools::find(binary),
        seconds,
        cores: machine::cores(),
        tolerated_loss: options.tolerate_loss,
        is_isolated,
        congestion: std::fs::read_to_string(CONGESTION).unwrap_or_default(),
    };
    let machine = Machine::read();
    for warning in machine.warnings() {
        println!("warning: {warning}");
    }
    warn_about_outdated(&date(), &bench.tools);
    let save = |rows: &[Row], hostile: &[AttackRow], hostile_local: &[LocalRow]| {
        let document = Document {
            schema: "landspeed.bench/1",
            date: date(),
            rounds,
            seconds,
            tolerated_loss: options.tolerate_loss,
            own_network_namespace: is_isolated,
            machine: &machine,
            versions: &bench.tools.versions,
            rows,
            hostile,
            hostile_local,
        };
        write(&options.json, &serde_json::to_string_pretty(&document)?)?;
        options.markdown.as_ref().map_or(Ok(()), |path| write(path, &page(&document)))
    };
    let (mut rows, mut attacks, mut local) = (Vec::new(), Vec::new(), Vec::new());
    for (name, build) in cases::ALL.iter().filter(|(name, _)| is_chosen(name)) {
        println!("\n{name}");
        bench.restore_congestion_control();
        rows.extend(build(&bench, name).run_rounds(rounds));
        save(&rows, &attacks, &local)?;
    }
    let chosen: Vec<_> = hostile::ALL.iter().filter(|attack| is_chosen(attack.name)).collect();
    if !chosen.is_empty() {
        let ours = bench.tools.landspeed.clone().map(|landspeed| landspeed.0.clone());
        let iperf3 = machine::find("iperf3").ok_or_else(|| "iperf3 is not installed".to_owned());
        let hostile = Hostile::new(ours, iperf3)?;
        for attack in chosen {
            println!("\n{}", attack.name);
            attacks.push(hostile.run_rounds(attack, rounds));
            save(&rows, &attacks, &local)?;
        }
    }
    for attack in hostile::local::ALL.iter().filter(|attack| is_chosen(attack.name)) {
        println!("\n{}", attack.name);
        let program = bench.tools.landspeed.clone().map(|landspeed| landspeed.0.clone());
        local.push(attack.run(&program));
        save(&rows, &attacks, &local)?;
    }
    println!("\n{}", tables(&rows, &attacks, &local));
    println!("every value: {}", options.json.display());
    Ok(())
}

/// Warns about rivals whose source is more than a year old.
fn warn_about_outdated(today: &str, tools: &Tools) {
    let built = rivals::built();
    for rival in built.iter().filter(|rival| rival.is_outdated(today)) {
        let date = rival.date.as_deref().unwrap_or_default();
        println!("warning: {} is of {date}, more than a year ago: `cargo xtask bench rivals`", rival.name);
    }
    if tools.iperf3.is_ok() && !tools.iperf3_is_new {
        println!(
            "warning: this iperf3 is older than 3.20, without --gsro and --skip-rx-copy: `cargo xtask bench rivals iperf3`"
        );
    }
}

/// Environment variable that is set in the process started by [`isolate_network`].
const ISOLATED_VARIABLE: &str = "LANDSPEED_BENCH_ALONE";

/// Shell script that prepares the namespace and runs the remaining arguments. Slurm resolves even 127.0.0.1 only
/// if an interface other than loopback has an address.
const SETUP: &str = "\"$0\" link set lo up && \"$0\" link add veth0 type veth peer veth1 && \
                     \"$0\" address add 192.0.2.1/32 dev veth0 && \"$0\" link set veth0 up && exec \"$@\"";

/// Moves this run into a new network namespace, where no other traffic is in the kernel's counters. Without root
/// it does nothing. Returns whether the run is isolated.
fn isolate_network(binary: &Result<PathBuf, String>) -> Result<bool> {
    if std::env::var_os(ISOLATED_VARIABLE).is_some() {
        return Ok(true);
    }
    let (Some(unshare), Some(ip)) = (machine::find("unshare"), machine::find("ip")) else { return Ok(false) };
    if !nix::unistd::geteuid().is_root() {
        return Ok(false);
    }
    let mut command = Command::new(unshare);
    command
        .args(["--net", "--", "sh", "-c", SETUP])
        .arg(ip)
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(ISOLATED_VARIABLE, "1");
    if let (Ok(binary), false) = (binary, std::env::args_os().any(|argument| argument == "--binary")) {
        command.arg("--binary").arg(binary);
    }
    // exec returns only on failure.
    Err(command.exec()).context("cannot enter a network namespace")
}

/// Returns the landspeed binary, or why there is none.
fn binary(options: &Options) -> Result<PathBuf, String> {
    if options.rivals_only {
        return Err("left out by --rivals-only".to_owned());
    }
    match &options.binary {
        Some(path) if path.is_file() => Ok(path.clone()),
        Some(path) => Err(format!("{} does not exist", path.display())),
        None => crate::validate::program(&crate::root()).map_err(|error| format!("{error:#}")),
    }
}

fn page(document: &Document<'_>) -> String {
    let Machine {
        cpu, cores, memory_bytes, kernel, virtual_machine, congestion, rmem_max_bytes, load_at_start, ..
    } = document.machine;
    let versions: Vec<&str> = document.versions.iter().map(|(_, version)| version.as_str()).collect();
    let kind = if *virtual_machine { "virtual machine" } else { "machine" };
    format!(
        "# Benchmarks\n\n\
         Written by `cargo xtask bench`; not edited by hand. {} rounds of {} s each, contestants interleaved, on\n\
         loopback, {}. A ratio is of medians; in brackets the 95 % interval of the median\n\
         ratio within a round, with fewer than six rounds their range.\n\n\
         {kind}: {cpu}, {cores} cores, {:.0} GiB, {kernel}; congestion control {congestion}, `rmem_max` {rmem_max_bytes};\n\
         load {load_at_start:.2} when it began.\n\n\
         Versions: {}.\n\n\
         Loss-free means {}; the network namespace was {}.\n\n\
         Loopback is one machine on both ends: no NIC, no wire, copies where a NIC would send from memory. These figures\n\
         compare programs; they are not what a path can carry.\n\n{}",
        document.rounds,
        document.seconds,
        document.date,
        *memory_bytes as f64 / f64::from(1 << 30),
        versions.join("; "),
        if document.tolerated_loss > 0.0 {
            format!("at most {:.2} % lost", document.tolerated_loss * 100.0)
        } else {
            "nothing lost, by the tool's count and the kernel's".to_owned()
        },
        if document.own_network_namespace { "the benchmark's own" } else { "shared with other programs" },
        tables(document.rows, document.hostile, document.hostile_local)
    )
}

/// Formats one table per kind of case that ran.
fn tables(rows: &[Row], attacks: &[AttackRow], local: &[LocalRow]) -> String {
    let rows = (!rows.is_empty()).then(|| row::markdown(rows));
    let attacks = (!attacks.is_empty()).then(|| hostile::markdown(attacks));
    let local = (!local.is_empty()).then(|| hostile::local::markdown(local));
    rows.into_iter().chain(attacks).chain(local).collect::<Vec<_>>().join("\n")
}

fn date() -> String {
    let finished = child::run(Command::new("date").args(["-u", "+%F"]), Duration::from_secs(5));
    finished.map(|finished| finished.stdout.trim().to_owned()).unwrap_or_default()
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
