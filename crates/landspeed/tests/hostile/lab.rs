//! The lab with invalid scenarios, too little memory, and interrupted runs.

use std::path::Path;

use crate::hostile::common::{Ended, Process, TIMEOUT_S, landspeed, scratch, until};

/// A scenario of two hosts and a link, with a flow of `seconds` of virtual time.
fn scenario(seconds: u64, more: &str) -> String {
    format!(
        "name = \"short\"\ntime = \"{seconds}s\"\n{more}\n[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\n\
         rate = \"1G\"\ndelay = \"5ms\"\n[[flow]]\nfrom = \"a\"\nto = \"b\"\n"
    )
}

/// Starts `lab run` of a scenario, with temporary files in `directory`.
fn run(directory: &Path, text: &str, args: &[&str]) -> Process {
    let path = directory.join("scenario.toml");
    std::fs::write(&path, text).expect("writable");
    let mut command = landspeed();
    command.args(["lab", "run"]).arg(&path).args(args).env("LANDSPEED_LAB_TMP", directory);
    Process::start(command)
}

/// Reads the progress that the only guest below `directory` reports; its own directory has a random name.
fn guest_progress(directory: &Path) -> Option<Vec<u8>> {
    let mut places = std::fs::read_dir(directory).ok()?.filter_map(Result::ok);
    places.find_map(|place| std::fs::read(place.path().join("out/progress.json")).ok())
}

fn ended(text: &str, args: &[&str]) -> Ended {
    let directory = scratch();
    let ended = run(directory.path(), text, args).end(TIMEOUT_S);
    assert_empty(directory.path());
    ended
}

/// Asserts that only the scenario is left.
fn assert_empty(directory: &Path) {
    let left: Vec<_> = std::fs::read_dir(directory).expect("readable").flatten().map(|e| e.file_name()).collect();
    assert!(left.iter().all(|name| name == "scenario.toml"), "left behind: {left:?}");
}

#[test]
fn a_bad_scenario_is_refused_with_line_and_suggestion() {
    for (text, said) in [
        ("name = ", "scenario.toml:1"),
        ("", "name"),
        (&scenario(1, "sed = 1"), "seed"),
        (&scenario(1, "").replace("\"1G\"", "\"10 parsecs\""), "rate"),
        (&scenario(1, "").replace("\"1G\"", "0"), "rate"),
        (&scenario(1, "").replace("to = \"b\"", "to = \"bb\""), "'b'"),
        (&scenario(1, "[host.c]").replace("to = \"b\"", "to = \"c\""), "c"),
    ] {
        let ended = ended(text, &[]);
        assert_eq!(ended.code, 2, "{text}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{text}\n{}", ended.stderr);
        assert!(ended.stdout.is_empty());
    }
}

#[test]
fn an_oversized_or_long_scenario_does_not_start() {
    let large = ended(&scenario(1, "memory = \"900GiB\""), &[]);
    assert_eq!(large.code, 2, "{}", large.stderr);
    assert!(large.stderr.contains("memory"), "{}", large.stderr);
    let long = ended(&scenario(100_000, ""), &[]);
    assert_eq!(long.code, 2, "{}", long.stderr);
    assert!(long.stderr.contains("--yes"), "{}", long.stderr);
    let dry = ended(&scenario(100_000, ""), &["--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
}

#[test]
fn a_missing_kernel_is_named_with_advice() {
    let nowhere = scratch();
    let cache = nowhere.path().to_str().expect("a plain path");
    let none = ended(&scenario(1, ""), &["--cache", cache]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("lab kernel build"), "{}", none.stderr);
    let sink = ended(&scenario(1, ""), &["--json", "/nonexistent/x.json"]);
    assert_eq!(sink.code, 2);
    assert!(sink.stderr.contains("/nonexistent"), "{}", sink.stderr);
    let mut command = landspeed();
    command.args(["lab", "run", "/nonexistent.toml"]);
    let file = Process::start(command).end(TIMEOUT_S);
    assert_eq!(file.code, 2);
    assert!(file.stderr.contains("lab new"), "{}", file.stderr);
}

#[test]
fn lab_guest_runs_only_in_a_guest() {
    let mut command = landspeed();
    command.args(["lab", "guest"]);
    let ended = Process::start(command).end(TIMEOUT_S);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("lab run"), "{}", ended.stderr);
}

#[test]
fn an_unwritable_output_fails_before_the_boot() {
    landspeed_testkit::needs_lab_kernel!();
    let directory = scratch();
    let path = directory.path().join("scenario.toml");
    std::fs::write(&path, scenario(1, "")).expect("writable");
    let mut command = landspeed();
    command.args(["lab", "run"]).arg(&path).env("LANDSPEED_LAB_TMP", "/proc");
    let ended = Process::start(command).end(TIMEOUT_S);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("LANDSPEED_LAB_TMP"), "{}", ended.stderr);
}

#[test]
fn a_guest_that_dies_shows_its_console_and_leaves_nothing() {
    landspeed_testkit::needs_lab_kernel!();
    // Too little memory to unpack the program.
    let ended = ended(&scenario(1, "memory = \"64MiB\"\n[hosts]\nbuffers = \"stock\"").replace("1G", "100G"), &[]);
    if ended.code == 0 {
        landspeed_testkit::skip!("64 MiB were enough for this guest");
    }
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("end of its console"), "{}", ended.stderr);
}

#[test]
fn ctrl_c_ends_the_guest_and_leaves_nothing() {
    landspeed_testkit::needs_lab_kernel!();
    for signal in ["INT", "TERM"] {
        let directory = scratch();
        let text = scenario(100_000, "");
        let process = run(directory.path(), &text, &["--yes", "--quiet"]);
        until(TIMEOUT_S, "the guest's progress", || guest_progress(directory.path()).is_some());
        process.signal(signal);
        let ended = process.end(TIMEOUT_S);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains("interrupted"), "{}", ended.stderr);
        assert_empty(directory.path());
    }
}

#[test]
fn a_killed_run_leaves_no_guest() {
    landspeed_testkit::needs_lab_kernel!();
    let directory = scratch();
    let mut process = run(directory.path(), &scenario(100_000, ""), &["--yes", "--quiet"]);
    until(TIMEOUT_S, "the guest's progress", || guest_progress(directory.path()).is_some());
    process.kill();
    let progress = || guest_progress(directory.path()).unwrap_or_default();
    let mut before = progress();
    until(TIMEOUT_S, "the guest to be gone", || {
        std::thread::yield_now();
        landspeed_sys::clock::sleep_until(landspeed_sys::clock::monotonic_ns() + 300_000_000);
        let now = progress();
        std::mem::replace(&mut before, now) == before
    });
    let next = run(directory.path(), &scenario(1, ""), &["--quiet"]).end(TIMEOUT_S);
    assert_eq!(next.code, 0, "{}", next.stderr);
    assert_empty(directory.path());
}

#[test]
fn two_runs_at_once_do_not_disturb_each_other() {
    landspeed_testkit::needs_lab_kernel!();
    let directories = [scratch(), scratch()];
    let digest = |ended: &Ended| -> Option<String> {
        let document: serde_json::Value = serde_json::from_str(&ended.stdout).ok()?;
        assert_eq!(document["status"], "complete", "{}", document["checks"]);
        document["digest"].as_str().map(str::to_owned)
    };
    let runs: Vec<_> = directories.iter().map(|d| run(d.path(), &scenario(1, ""), &["--json", "-"])).collect();
    let ended: Vec<_> = runs.into_iter().map(|process| process.end(TIMEOUT_S)).collect();
    assert!(ended.iter().all(|e| e.code == 0), "{:?}", ended[0].stderr);
    assert!(digest(&ended[0]).is_some());
    assert_eq!(digest(&ended[0]), digest(&ended[1]));
}
