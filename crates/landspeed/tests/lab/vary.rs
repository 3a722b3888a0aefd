//! A scenario that varies keys is a sweep without a plan file.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{assert_valid, chosen_program};
use crate::lab::scenario::{file, run};

/// Runs the scenario with two values of one key, with the document in `directory`.
fn vary(directory: &Path, arguments: &[&str]) -> (Output, Value) {
    let document = directory.join("sweep.json");
    let mut command = Command::new(chosen_program());
    command.args(["lab", "run", "--set", "time=10ms", "--set", "switch.middle.queue.limit=100KB,1MB"]);
    let output = command.arg(file("burst")).args(arguments).arg("--json").arg(&document).output().expect("it runs");
    let text =
        std::fs::read(&document).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&output.stderr)));
    (output, serde_json::from_slice(&text).expect("a document"))
}

#[test]
fn varied_scenario_is_a_sweep_of_the_single_runs() {
    landspeed_testkit::needs_lab_kernel!();
    let directory = tempfile::tempdir().expect("a directory");
    let (output, sweep) = vary(directory.path(), &[]);
    assert_valid("sweep", &sweep);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("one run each") && !table.contains("INTERVAL"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert_eq!((output.status.code(), sweep["status"].as_str()), (Some(0), Some("complete")));
    let factor = sweep["factors"].as_array().into_iter().flatten().find(|factor| factor["numbers"][0] == 1e5);
    assert_eq!(factor.expect("a factor")["key"], "switch.middle.queue.limit");
    assert_eq!(
        (&sweep["design"]["blocks"], &sweep["control"], &sweep["digests"]),
        (&1.into(), &Value::Null, &Value::Null)
    );
    for (cell, limit) in [(0, "100KB"), (1, "1MB")] {
        let runs = sweep["cells"][cell]["runs"].as_array().expect("runs");
        let single = run("burst", &["time=10ms", &format!("switch.middle.queue.limit={limit}")]);
        assert_eq!((runs.len(), &runs[0]["digest"]), (1, &single.digest().into()), "{limit}");
    }
}

#[test]
fn kept_runs_are_not_made_again() {
    landspeed_testkit::needs_lab_kernel!();
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().join("kept");
    let out = out.to_str().expect("UTF-8");
    let (_, first) = vary(directory.path(), &["--out", out]);
    let runs = || {
        std::fs::read_dir(Path::new(out).join("runs"))
            .expect("a directory")
            .map(|entry| {
                let entry = entry.expect("an entry");
                (entry.file_name(), entry.metadata().and_then(|data| data.modified()).expect("a time"))
            })
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let made = runs();
    let (_, second) = vary(directory.path(), &["--out", out]);
    assert_eq!(runs(), made);
    assert_eq!(first["cells"], second["cells"]);
}
