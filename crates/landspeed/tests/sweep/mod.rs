//! `landspeed sweep` from the command line: in the lab, over loopback, interrupted, killed, and with
//! invalid plans.

mod hosts;
mod lab;
mod plans;

use std::path::{Path, PathBuf};
use std::process::Command;

use landspeed_testkit::process::{Ended, Process};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{PROGRAM, assert_valid};

/// Timeout of every sweep here, seconds.
const TIMEOUT_S: u64 = 240;

/// Two hosts and a switch; each run takes a second of real time.
const SCENARIO: &str = "\
name = \"tiny\"
time = \"400ms\"
sample = \"50ms\"
[host.a]
[host.b]
[switch.s]
queue = { kind = \"bfifo\", limit = \"100KB\" }
[[link]]
between = [\"a\", \"s\"]
rate = \"100M\"
delay = \"1ms\"
[[link]]
between = [\"s\", \"b\"]
rate = \"20M\"
delay = \"1ms\"
[[flow]]
name = \"tcp\"
from = \"a\"
to = \"b\"
start-spread = \"20ms\"
";

/// A plan in its own temporary directory.
pub struct Sweep {
    directory: TempDir,
}

impl Sweep {
    /// Writes this text to `plan.toml`.
    pub fn new(plan: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("plan.toml"), plan).expect("written");
        Self { directory }
    }

    /// Four cells of the tiny scenario, in `blocks` blocks.
    pub fn tiny(blocks: u32) -> Self {
        let sweep = Self::new(&format!(
            "name = \"tiny\"\nblocks = {blocks}\n[lab]\nscenario = \"tiny.toml\"\n[[factor]]\nname = \"buffer\"\n\
             key = \"switch.s.queue.limit\"\nlevels = [\"10KB\", \"100KB\"]\n[[factor]]\nname = \"rate\"\n\
             key = \"link.1.rate\"\nlevels = [\"10M\", \"20M\"]\n"
        ));
        std::fs::write(sweep.directory.path().join("tiny.toml"), SCENARIO).expect("written");
        sweep
    }

    /// Replaces text of the plan.
    pub fn edit(&self, from: &str, to: &str) {
        let path = self.directory.path().join("plan.toml");
        let text = std::fs::read_to_string(&path).expect("a plan");
        assert!(text.contains(from), "{text}");
        std::fs::write(path, text.replace(from, to)).expect("written");
    }

    /// Directory of the plan.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Starts the sweep with these arguments.
    pub fn start(&self, arguments: &[&str]) -> Process {
        let mut command = Command::new(PROGRAM);
        command.args(["sweep", "plan.toml"]).args(arguments).current_dir(self.path()).env("LANDSPEED_ARCHIVE", "off");
        Process::start(command)
    }

    /// Runs the sweep to its end.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end(TIMEOUT_S)
    }

    /// Reads the sweep document and validates it.
    pub fn document(&self) -> Value {
        let text = std::fs::read_to_string(self.path().join("plan.sweep/sweep.json")).expect("a document");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        valid(&document);
        document
    }

    /// Paths of the stored runs.
    pub fn runs(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.path().join("plan.sweep/runs")).into_iter().flatten().flatten();
        let mut runs: Vec<PathBuf> = files.map(|file| file.path()).filter(|path| is_run(path)).collect();
        runs.sort();
        runs
    }
}

fn is_run(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name.ends_with(".json") || name.ends_with(".json.gz")
}

/// All runs of a document.
pub fn runs(document: &Value) -> Vec<&Value> {
    let cells = document["cells"].as_array().expect("cells");
    cells.iter().flat_map(|cell| cell["runs"].as_array().expect("runs")).collect()
}

/// Validates the document against the schema, and asserts that a cell runs once per block.
fn valid(document: &Value) {
    assert_valid("sweep", document);
    for cell in document["cells"].as_array().expect("cells") {
        let own = cell["runs"].as_array().expect("runs").iter().filter(|run| run["control"] != true);
        let mut blocks: Vec<u64> = own.filter_map(|run| run["block"].as_u64()).collect();
        let count = blocks.len();
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), count, "a cell runs once in each block: {cell:#}");
    }
}
