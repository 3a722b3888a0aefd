//! The same scenario, seed and kernel give the same digest, for every user and under any load of the machine.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_testkit::skip;

use crate::lab::scenario::{command, finish, run, unprivileged_user};

/// Scenario with random losses: many draws affect the digest.
const SCENARIO: &str = "random-loss";
/// Settings for half a second: thousands of draws.
const SHORT: &[&str] = &["time=500ms", "flow.0.omit=0s"];

fn reference() -> String {
    run(SCENARIO, SHORT).digest()
}

#[test]
fn digest_is_independent_of_load_and_cpu_count() {
    landspeed_testkit::needs_lab_kernel!();
    let first = reference();
    assert_eq!(reference(), first, "repeated");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let busy = std::panic::catch_unwind(reference);
        over.store(true, Ordering::Relaxed);
        assert_eq!(busy.expect("it runs"), first, "on a busy machine");
    });
    let plain = command(SCENARIO, SHORT);
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", "0"]).arg(plain.get_program()).args(plain.get_args());
    if Command::new("taskset").arg("--version").stdout(Stdio::null()).status().is_err() {
        skip!("there is no taskset here");
    }
    assert_eq!(finish(pinned, None).digest(), first, "on one CPU");
}

#[test]
fn digest_is_the_same_for_another_user() {
    landspeed_testkit::needs_lab_kernel!();
    let Some((user, group)) = unprivileged_user() else { skip!("only root can become another user") };
    // The other user works on copies: it may not have access to the originals.
    let directory =
        tempfile::Builder::new().permissions(world_accessible()).tempdir().expect("a temporary directory");
    let copy = |from: &std::path::Path, name: &str| {
        let to = directory.path().join(name);
        std::fs::copy(from, &to).expect("a copy");
        std::fs::set_permissions(&to, world_accessible()).expect("its permissions");
        to
    };
    let program = copy(&crate::common::chosen_program(), "landspeed");
    let scenario = copy(&crate::lab::scenario::file(SCENARIO), "scenario.toml");
    let kernels = crate::lab::scenario::cache();
    let there = directory.path().join("kernels");
    crate::lab::scenario::copy_tree(&kernels, &there);
    let mut other = Command::new(program);
    other.args(["lab", "run", "--quiet", "--yes", "--json", "-"]).arg(scenario);
    for set in SHORT {
        other.args(["--set", set]);
    }
    other.env("LANDSPEED_KERNELS", &there).env("HOME", directory.path()).uid(user).gid(group);
    other.current_dir(directory.path());
    assert_eq!(finish(other, None).digest(), reference());
}

fn world_accessible() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}

#[test]
fn different_seeds_give_different_repeatable_results() {
    landspeed_testkit::needs_lab_kernel!();
    let seeded = |seed: &str| {
        let mut command = command(SCENARIO, SHORT);
        command.args(["--seed", seed]);
        finish(command, None)
    };
    let (one, two, again) = (seeded("1"), seeded("2"), seeded("2"));
    assert_ne!(one.digest(), two.digest());
    assert_ne!(one.goodput(0).to_bits(), two.goodput(0).to_bits(), "not only the digest differs");
    assert_eq!(two.digest(), again.digest());
}
