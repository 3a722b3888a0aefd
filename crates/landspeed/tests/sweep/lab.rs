//! Sweeps of a lab scenario.

use landspeed_testkit::needs_lab_kernel;
use landspeed_testkit::process::until;
use serde_json::Value;

use crate::sweep::{Sweep, runs};

/// Number of runs of the tiny plan: cells, control, and one repeated run.
fn all_runs(blocks: usize) -> usize {
    5 * blocks + 1
}

#[test]
fn every_cell_runs_once_in_each_block() {
    needs_lab_kernel!();
    let sweep = Sweep::tiny(2);
    let ended = sweep.run(&[]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let document = sweep.document();
    assert_eq!((document["status"].as_str(), runs(&document).len()), (Some("complete"), 10));
    assert_eq!(sweep.runs().len(), all_runs(2));
    assert_eq!(document["design"]["blocks"], 2);
    assert_eq!(document["digests"]["compared"], 1);
    assert_eq!(document["factors"][1]["numbers"][0], 10e6);
    // The link's rate has the largest effect.
    let rate = document["effects"].as_array().expect("effects").iter().find(|effect| effect["factor"] == "rate");
    assert!(rate.and_then(|effect| effect["ratio"].as_f64()).is_some_and(|ratio| ratio > 1.5), "{document:#}");
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ended.stdout);
}

#[test]
fn a_second_sweep_runs_only_what_is_missing() {
    needs_lab_kernel!();
    let sweep = Sweep::tiny(1);
    assert_eq!(sweep.run(&[]).code, 0);
    let first = sweep.document();
    std::fs::remove_file(&sweep.runs()[2]).expect("removed");
    let ended = sweep.run(&[]);
    assert!(ended.stderr.contains("6 runs, 5 of them there already"), "{}", ended.stderr);
    let digests = |document: &Value| {
        let mut all: Vec<String> = runs(document).iter().map(|run| run["digest"].to_string()).collect();
        all.sort();
        all
    };
    assert_eq!(digests(&sweep.document()), digests(&first), "the same seed gives the same result");
    // An additional level keeps the runs of the others.
    sweep.edit("\"10M\", \"20M\"", "\"10M\", \"20M\", \"15M\"");
    let ended = sweep.run(&[]);
    assert!(ended.stderr.contains("8 runs, 6 of them there already"), "{}", ended.stderr);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn killed_sweep_resumes_with_its_completed_runs() {
    needs_lab_kernel!();
    let sweep = Sweep::tiny(2);
    let mut process = sweep.start(&["--jobs", "1"]);
    until(100, "three runs", || sweep.runs().len() >= 3);
    process.kill();
    let made = sweep.runs();
    assert!(made.len() < all_runs(2), "it was killed midway");
    let ended = sweep.run(&[]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains(&format!("{} of them there already", made.len())), "{}", ended.stderr);
    assert_eq!((sweep.runs().len(), sweep.document()["status"].as_str()), (all_runs(2), Some("complete")));
}

#[test]
fn interrupted_sweep_can_be_resumed() {
    needs_lab_kernel!();
    let sweep = Sweep::tiny(4);
    let process = sweep.start(&["--jobs", "1"]);
    until(100, "three runs", || sweep.runs().len() >= 3);
    process.signal("INT");
    let ended = process.end(30);
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("landspeed sweep plan.toml"), "{}", ended.stderr);
    let document = sweep.document();
    assert_eq!(
        (document["status"].as_str(), document["ended_because"].as_str()),
        (Some("partial"), Some("interrupted"))
    );
    assert!(runs(&document).iter().all(|run| run["usable"] == true), "{document:#}");
}

#[test]
fn concurrent_sweeps_in_one_directory_are_refused() {
    needs_lab_kernel!();
    let sweep = Sweep::tiny(4);
    let first = sweep.start(&[]);
    until(100, "one run", || !sweep.runs().is_empty());
    let second = sweep.run(&[]);
    assert_eq!(second.code, 2);
    assert!(second.stderr.contains("another landspeed is at work there"), "{}", second.stderr);
    assert!(second.stderr.contains(&format!("(process {})", first.id())), "{}", second.stderr);
    first.signal("INT");
    assert_eq!(first.end(30).code, 1);
}

#[test]
fn corrupt_run_documents_are_repeated() {
    needs_lab_kernel!();
    let sweep = Sweep::tiny(1);
    assert_eq!(sweep.run(&[]).code, 0);
    for (path, content) in sweep.runs().iter().zip(["{", "{\"schema\": \"landspeed.lab/9\"}"]) {
        std::fs::write(path, content).expect("written");
    }
    assert_eq!(sweep.run(&[]).code, 0);
    assert_eq!(runs(&sweep.document()).iter().filter(|run| run["usable"] == true).count(), 5);
}

#[test]
fn worker_repeats_a_run_with_the_same_digest() {
    needs_lab_kernel!();
    let sweep = Sweep::tiny(1);
    assert_eq!(sweep.run(&[]).code, 0);
    let document = sweep.document();
    let run = runs(&document)[0];
    let id = run["id"].as_str().expect("an id");
    let cell = &document["cells"][0];
    // The list of runs, as an engine publishes it.
    let entry = serde_json::json!([{
        "id": id, "cell": cell["id"], "number": 0, "levels": [0, 0], "block": run["block"], "place": run["place"],
        "kind": if run["control"] == true { "control" } else { "cell" }, "seed": run["seed"],
    }]);
    let bundle = sweep.path().join("plan.sweep");
    std::fs::write(bundle.join("runs.json"), entry.to_string()).expect("written");
    for path in sweep.runs().iter().filter(|path| path.to_string_lossy().contains(id)) {
        std::fs::remove_file(path).expect("removed");
    }
    let output = std::process::Command::new(crate::common::PROGRAM)
        .args(["sweep", "worker"])
        .arg(&bundle)
        .arg("0")
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(sweep.run(&[]).code, 0);
    let again = sweep.document();
    let same = runs(&again).into_iter().find(|run| run["id"] == id).expect("the run").clone();
    assert_eq!(same["digest"], run["digest"]);
}

#[test]
fn full_disk_ends_a_sweep_without_partial_files() {
    needs_lab_kernel!();
    let sweep = Sweep::tiny(2);
    let mount = sweep.path().join("small");
    std::fs::create_dir(&mount).expect("a directory");
    let mounted =
        std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=120k", "tmpfs"]).arg(&mount).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        landspeed_testkit::skip!("no privilege to mount a small file system");
    }
    let ended = sweep.run(&["--out", "small/sweep"]);
    let files: Vec<String> = std::fs::read_dir(mount.join("sweep/runs"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .collect();
    let unmounted = std::process::Command::new("umount").arg(&mount).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert_eq!(ended.code, 2, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("No space left on device"), "{}", ended.stderr);
    assert!(files.iter().all(|name| !name.contains(".part")), "{files:?}");
}
