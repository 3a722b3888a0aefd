//! Sweeps on a real Slurm with two nodes, and the manifest for Kubernetes.
//!
//! Tests that wait for Slurm's own timeouts of minutes are long tests. Without Slurm, root or a kernel
//! built for the lab these tests skip.
#![forbid(unsafe_code)]

mod kubernetes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use landspeed_testkit::process::{Ended, Process, until};
use landspeed_testkit::slurm::Slurm;
use landspeed_testkit::{needs_lab_kernel, or_skip};
use serde_json::Value;

use crate::common::landspeed;

/// Timeout of every sweep here, seconds; allows for a busy machine.
const TIMEOUT_S: u64 = 300;

/// A plan with three cells.
fn plan(blocks: u32, time: &str) -> String {
    format!(
        "name = \"Buffers\"\nblocks = {blocks}\n[lab]\nscenario = \"gallery:buffer-size\"\nset = {{ time = \"{time}\", \"flow.cross.time\" = \"{time}\" }}\n\
         [[factor]]\nname = \"buffer\"\nkey = \"switch.west.queue.limit\"\nlevels = [\"64KB\", \"1MB\", \"16MB\"]\n"
    )
}

/// Two of its cells, shortened to a second: without the flow's five seconds of omit, and with a long
/// sampling interval.
fn short_plan() -> String {
    let short = "set = { sample = \"50ms\", \"flow.tcp.omit\" = \"0s\",";
    plan(1, "200ms").replace("set = {", short).replace(", \"16MB\"", "")
}

/// `landspeed sweep` of a plan, in a directory shared by all nodes.
pub struct Sweep {
    directory: PathBuf,
}

impl Sweep {
    /// Writes the plan into a new directory.
    pub fn new(directory: &Path, plan: &str) -> Self {
        std::fs::create_dir_all(directory).expect("created");
        std::fs::write(directory.join("plan.toml"), plan).expect("written");
        Self { directory: directory.to_owned() }
    }

    /// The sweep command with further arguments.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = landspeed();
        command.args(["sweep", "plan.toml", "--yes"]).args(args).current_dir(&self.directory);
        command.env("LANDSPEED_ARCHIVE", "off");
        command
    }

    fn on(&self, slurm: &Slurm, args: &[&str]) -> Process {
        let mut command = self.command(&[&["--engine", "slurm"], args].concat());
        let path = slurm.command("true");
        let path = path.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value).expect("set");
        Process::start(command.env("SLURM_CONF", slurm.conf()).env("PATH", path))
    }

    fn document(&self) -> Value {
        let text = std::fs::read(self.directory.join("plan.sweep/sweep.json")).expect("a document");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// Digest of each run, keyed by cell, block, place and seed.
    fn digests(&self) -> BTreeMap<String, String> {
        let document = self.document();
        let cells = document["cells"].as_array().expect("a list");
        let runs =
            cells.iter().flat_map(|cell| cell["runs"].as_array().expect("a list").iter().map(move |run| (cell, run)));
        runs.map(|(cell, run)| {
            let name = format!("{} {} {} {}", cell["levels"], run["block"], run["place"], run["seed"]);
            (name, run["digest"].as_str().expect("a digest").to_owned())
        })
        .collect()
    }

    fn completed_runs(&self) -> usize {
        let runs = std::fs::read_dir(self.directory.join("plan.sweep/runs")).into_iter().flatten().flatten();
        runs.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "worker")).count()
    }
}

fn queue(slurm: &Slurm) -> String {
    let output = slurm.command("squeue").args(["--noheader", "--format=%j %t"]).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn assert_complete(ended: &Ended) {
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
}

#[test]
#[ignore = "long: two whole sweeps take two minutes"]
fn slurm_sweep_gives_the_digests_of_a_local_sweep() {
    needs_lab_kernel!();
    let slurm = or_skip!(Slurm::start());
    let shared = slurm.shared();
    let local = Sweep::new(&shared.join("local"), &plan(2, "1s"));
    assert_complete(&Process::start(local.command(&["--quiet"])).end(TIMEOUT_S));
    let far = Sweep::new(&shared.join("far"), &plan(2, "1s"));
    assert_complete(&far.on(&slurm, &[]).end(TIMEOUT_S));
    assert_eq!(far.digests(), local.digests());
    let document = far.document();
    assert_eq!((&document["status"], &document["engine"]["name"]), (&"complete".into(), &"slurm".into()));
    assert_eq!(document["engine"]["requeued"], 0);
    assert_eq!(document["engine"]["workers"].to_string(), r#"["n1","n2"]"#);
    assert_eq!(document["id"], local.document()["id"], "the same experiment");
    // All runs exist, so nothing is submitted.
    let again = far.on(&slurm, &[]).end(TIMEOUT_S);
    assert_complete(&again);
    assert!(!far.directory.join("plan.sweep/slurm/array-2.sh").exists());
    assert_eq!(queue(&slurm), "");
}

#[test]
#[ignore = "long: Slurm finds a dead node after minutes"]
fn runs_of_a_failed_node_are_repeated() {
    needs_lab_kernel!();
    let mut slurm = or_skip!(Slurm::start());
    let sweep = Sweep::new(&slurm.shared().join("sweep"), &plan(3, "1s"));
    let driver = sweep.on(&slurm, &["--jobs", "2"]);
    until(TIMEOUT_S, "the first run", || sweep.completed_runs() > 0);
    slurm.kill_node("n2");
    let ended = driver.end(TIMEOUT_S);
    assert_complete(&ended);
    let document = sweep.document();
    assert_eq!(document["status"], "complete");
    assert!(document["engine"]["requeued"].as_u64() > Some(0), "{}\n{}", document["engine"], slurm.log());
}

#[test]
#[ignore = "long: Slurm ends and starts the jobs in minutes"]
fn ctrl_c_cancels_the_jobs_of_the_sweep_and_no_others() {
    needs_lab_kernel!();
    let slurm = or_skip!(Slurm::start());
    let other =
        slurm.command("sbatch").args(["--output=/dev/null", "--job-name=other", "--wrap", "sleep 1000"]).output();
    assert!(other.expect("it runs").status.success());
    let sweep = Sweep::new(&slurm.shared().join("sweep"), &plan(3, "1s"));
    let driver = sweep.on(&slurm, &[]);
    until(TIMEOUT_S, "the first run", || sweep.completed_runs() > 0);
    driver.signal("INT");
    let ended = driver.end(TIMEOUT_S);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("Run the same command"), "{}", ended.stderr);
    until(TIMEOUT_S, "the end of the sweep's tasks", || !queue(&slurm).contains("landspeed"));
    assert_eq!(queue(&slurm), "other R");
    let completed_runs = sweep.completed_runs();
    assert_complete(&sweep.on(&slurm, &[]).end(TIMEOUT_S));
    assert!(sweep.completed_runs() > completed_runs);
}

#[test]
fn slurm_errors_are_quoted() {
    needs_lab_kernel!();
    let slurm = or_skip!(Slurm::start());
    let sweep = Sweep::new(&slurm.shared().join("sweep"), &plan(1, "1s"));
    for (args, said) in [
        (&["--partition", "nope"][..], "invalid partition specified: nope"),
        (&["--slurm-option=--nodelist=n9"], "Invalid node name"),
        (&["--slurm-option=--no-such-option"], "unrecognized option"),
    ] {
        let ended = sweep.on(&slurm, args).end(TIMEOUT_S);
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("landspeed: ")).collect();
        assert_eq!(lines.len(), 1, "{args:?}: {}", ended.stderr);
        assert!(
            lines[0].contains("cannot submit to Slurm: sbatch: ") && lines[0].contains(said),
            "{args:?}: {}",
            lines[0]
        );
    }
    assert_eq!(queue(&slurm), "");
    let mut command = sweep.command(&["--engine", "slurm"]);
    let ended = Process::start(command.env("PATH", "/nonexistent")).end(TIMEOUT_S);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("is not on PATH"), "{}", ended.stderr);
}

#[test]
fn down_partition_is_named_while_waiting() {
    needs_lab_kernel!();
    let slurm = or_skip!(Slurm::start());
    let sweep = Sweep::new(&slurm.shared().join("sweep"), &plan(1, "1s"));
    let driver = sweep.on(&slurm, &["--partition", "closed"]);
    until(TIMEOUT_S, "the reason", || driver.stderr().contains("pending: PartitionDown"));
    driver.signal("INT");
    assert_eq!(driver.end(TIMEOUT_S).code, 2, "nothing was measured");
    assert_eq!(queue(&slurm), "");
}

#[test]
fn a_dry_run_submits_nothing_and_a_run_gives_local_digests() {
    needs_lab_kernel!();
    let slurm = or_skip!(Slurm::start());
    let sweep = Sweep::new(&slurm.shared().join("sweep"), &short_plan());
    let ended = sweep.on(&slurm, &["--dry-run", "--slurm-option=--time=10"]).end(TIMEOUT_S);
    assert_complete(&ended);
    for words in ["sbatch", "--array=0-", "--time=10", "#!/bin/sh", "sweep worker"] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    assert!(!sweep.directory.join("plan.sweep").exists());
    assert_eq!(queue(&slurm), "");
    assert_complete(&sweep.on(&slurm, &[]).end(TIMEOUT_S));
    let local = Sweep::new(&slurm.shared().join("local"), &short_plan());
    assert_complete(&Process::start(local.command(&["--quiet"])).end(TIMEOUT_S));
    assert_eq!(sweep.digests(), local.digests());
    assert_eq!((&sweep.document()["status"], queue(&slurm)), (&"complete".into(), String::new()));
}
