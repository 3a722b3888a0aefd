//! Crashes at every step: after each record, after each write, at each system call; once and twice; with
//! the watchdog running and killed. For combinations of two steps, the ordinary tests try a selection and
//! the long tests all.

use landspeed_testkit::process::Ended;
use landspeed_testkit::skip;

use crate::tune::bench::{Bench, bench, expect, output_text, run, was_killed};

const FAULT_VARIABLE: &str = "LANDSPEED_TUNE_FAULT";
/// Upper bound of the steps of any plan here.
const MAX_STEPS: u64 = 200;

/// A plan with every kind of setting of a namespace, on an interface with a qdisc tree.
pub const PLAN: &[&str] = &[
    "net.ipv4.tcp_rmem=4096 131072 1073741824",
    "net.ipv4.tcp_mtu_probing=1",
    "net.core.somaxconn=8192",
    "net.ipv4.conf.v0.arp_filter=1",
    "v0:mtu=9000",
    "v0:qdisc=pfifo limit 500",
    "v0:txqueuelen=2000",
    "v0:gso_max_size=32768",
    "v0:tx-tcp-segmentation=off",
    "v0:rx-0/rps_cpus=1",
    "v0:gro_flush_timeout=20000",
];

/// Creates the qdisc tree: an mq, two configured leaves, two default leaves.
pub fn create_qdisc_tree(bench: &Bench) {
    bench.shell(
        "tc qdisc add dev v0 root handle 10: mq
         tc qdisc add dev v0 parent 10:1 handle 11: bfifo limit 30000
         tc qdisc add dev v0 parent 10:3 handle 5: pfifo limit 77",
    );
}

/// Arguments of `apply` for a plan.
pub fn apply<'a>(plan: &[&'a str], confirm: &'a str) -> Vec<&'a str> {
    let mut arguments = vec!["apply", "--confirm", confirm];
    for setting in plan {
        arguments.extend(["--set", setting]);
    }
    arguments
}

/// Runs `step` with every fault of each kind, until `step` returns that one was not reached; returns the
/// number reached.
fn each_fault(kinds: &[&str], step: impl FnMut(&str) -> bool) -> u64 {
    some_faults(kinds, 1, 1, step)
}

/// As [`each_fault`], with the fault `first` and every `stride`th after it.
fn some_faults(kinds: &[&str], first: u64, stride: usize, mut step: impl FnMut(&str) -> bool) -> u64 {
    let mut steps = 0;
    for kind in kinds {
        let numbers = (first..MAX_STEPS).step_by(stride);
        let all = numbers.clone().count() as u64;
        let reached = numbers.take_while(|number| step(&format!("{kind}:{number}"))).count() as u64;
        assert!(reached < all, "{kind} has no end");
        steps += reached;
    }
    steps
}

fn with_fault(bench: &Bench, arguments: &[&str], fault: &str) -> Ended {
    let mut command = bench.tune(arguments);
    command.env(FAULT_VARIABLE, fault);
    run(command)
}

const FAULT_KINDS: &[&str] = &["after-record", "after-write"];

#[test]
fn watchdog_rolls_back_a_killed_apply() {
    let bench = bench!();
    create_qdisc_tree(&bench);
    let before = bench.snapshot();
    let steps = each_fault(FAULT_KINDS, |fault| {
        bench.remove_state();
        let output = with_fault(&bench, &apply(PLAN, "600"), fault);
        if !was_killed(&output) {
            assert!(output.code == 0, "{}", output_text(&output));
            expect(bench.tune(&["revert"]), 0);
            bench.snapshot().must_equal(&before, &"reverted");
            return false;
        }
        bench.settle();
        bench.snapshot().must_equal(&before, &fault);
        bench.finish_recovery();
        bench.snapshot().must_equal(&before, &format_args!("{fault}, then status"));
        true
    });
    // One record each for the plan, the watchdog and the end; two records and a write per step.
    assert_eq!(steps, 3 + 3 * PLAN.len() as u64);
}

/// After each fault of an apply runs one of three commands in turn; with three rounds each of them.
fn next_command_rolls_back(rounds: usize) {
    let bench = bench!();
    create_qdisc_tree(&bench);
    let before = bench.snapshot();
    let commands = [&["status"][..], &["revert"], &["confirm"]];
    for round in 0..rounds {
        let mut turns = commands.iter().cycle().skip(round);
        each_fault(FAULT_KINDS, |fault| {
            let next = *turns.next().expect("endless");
            bench.remove_state();
            let mut command = bench.tune(&apply(PLAN, "600"));
            command.env(FAULT_VARIABLE, fault).env("LANDSPEED_TUNE_WATCHDOG_FAULT", "after-awake");
            let killed = was_killed(&run(command));
            bench.kill_watchdog(1);
            let output = run(bench.tune(next));
            let whole = bench.has_record(1, "awaiting-confirm");
            if next[0] != "confirm" || !whole {
                bench
                    .snapshot()
                    .must_equal(&before, &format_args!("{fault}, then {next:?}: {}", output_text(&output)));
            } else {
                // The apply had completed, so it can be confirmed.
                expect(bench.tune(&["revert"]), 0);
                bench.snapshot().must_equal(&before, &"reverted");
            }
            killed
        });
    }
}

#[test]
fn the_next_command_rolls_back_without_a_watchdog() {
    next_command_rolls_back(1);
}

#[test]
#[ignore = "long: each of three commands after each of 36 faults"]
fn each_next_command_rolls_back_without_a_watchdog() {
    next_command_rolls_back(3);
}

/// Crashes at every step of an apply and at every `stride`th step of its recovery, starting at different
/// steps.
fn crashed_recovery_is_finished(stride: usize) {
    let bench = bench!();
    create_qdisc_tree(&bench);
    let before = bench.snapshot();
    let plan = &PLAN[3..7];
    let mut turns = (1..=stride as u64).cycle();
    each_fault(FAULT_KINDS, |first| {
        let mut killed = false;
        some_faults(FAULT_KINDS, turns.next().expect("endless"), stride, |second| {
            bench.remove_state();
            let mut command = bench.tune(&apply(plan, "600"));
            command.env(FAULT_VARIABLE, first).env("LANDSPEED_TUNE_WATCHDOG_FAULT", "after-awake");
            killed = was_killed(&run(command));
            bench.kill_watchdog(1);
            let again = was_killed(&with_fault(&bench, &["status"], second));
            bench.finish_recovery();
            bench.snapshot().must_equal(&before, &format_args!("{first}, then {second}"));
            again
        });
        killed
    });
}

#[test]
fn killed_recovery_is_completed_later() {
    crashed_recovery_is_finished(9);
}

#[test]
#[ignore = "long: every step of an apply, times every step of its recovery"]
fn recovery_killed_at_any_step_is_completed_later() {
    crashed_recovery_is_finished(1);
}

/// Crashes at each step of a revert, alternately of a confirmed and an unconfirmed transaction; with two
/// rounds both.
fn crashed_revert_is_finished(rounds: usize) {
    let bench = bench!();
    create_qdisc_tree(&bench);
    let before = bench.snapshot();
    for round in 0..rounds {
        let mut confirmed = round > 0;
        let steps = each_fault(FAULT_KINDS, |fault| {
            confirmed = !confirmed;
            bench.remove_state();
            expect(bench.tune(&apply(PLAN, "600")), 0);
            if confirmed {
                expect(bench.tune(&["confirm"]), 0);
            }
            let killed = was_killed(&with_fault(&bench, &["revert"], fault));
            if killed && !confirmed {
                // The watchdog is still running.
                bench.wait_reverted(1);
                bench.snapshot().must_equal(&before, &fault);
            }
            bench.finish_recovery();
            bench.snapshot().must_equal(&before, &format_args!("{fault}, confirmed before: {confirmed}"));
            killed
        });
        assert_eq!(steps, 2 + 3 * PLAN.len() as u64);
    }
}

#[test]
fn revert_killed_at_any_step_is_completed() {
    crashed_revert_is_finished(1);
}

#[test]
#[ignore = "long: every step twice, confirmed before and not"]
fn killed_revert_is_completed_confirmed_or_not() {
    crashed_revert_is_finished(2);
}

#[test]
fn killed_confirmation_is_atomic() {
    let bench = bench!();
    create_qdisc_tree(&bench);
    let before = bench.snapshot();
    let steps = each_fault(FAULT_KINDS, |fault| {
        bench.remove_state();
        expect(bench.tune(&apply(PLAN, "600")), 0);
        let planned = bench.snapshot();
        assert!(planned.difference(&before).len() > PLAN.len(), "it does something");
        let killed = was_killed(&with_fault(&bench, &["confirm"], fault));
        // The confirmation has only one record, and it was written.
        bench.status();
        bench.snapshot().must_equal(&planned, &fault);
        assert!(bench.has_record(1, "committed"));
        expect(bench.tune(&["revert"]), 0);
        bench.snapshot().must_equal(&before, &"reverted");
        killed
    });
    assert_eq!(steps, 1);
}

/// System calls with effects outside of the process.
const SYSCALLS: &[&str] = &[
    "write",
    "pwrite64",
    "sendto",
    "sendmsg",
    "fsync",
    "fallocate",
    "ftruncate",
    "unlinkat",
    "renameat",
    "mkdirat",
    "flock",
    "ioctl",
    "clone",
    "clone3",
    "vfork",
];

/// Kills the apply of a plan at each of its system calls, and asserts that there are more than `min_syscalls`.
fn rolled_back_at_any_syscall(plan: &[&str], min_syscalls: usize) {
    let probe = std::process::Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        skip!("ending at a system call needs strace");
    }
    let bench = bench!();
    create_qdisc_tree(&bench);
    let before = bench.snapshot();
    let mut ends = 0;
    for call in SYSCALLS {
        for number in 1..MAX_STEPS {
            bench.remove_state();
            let inject = format!("inject={call}:signal=SIGKILL:when={number}");
            let trace = format!("trace={call}");
            let by = ["strace", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
            let output = run(bench.tune_with(&by, &apply(plan, "600"), &bench.state()));
            if !was_killed(&output) {
                assert!(output.code == 0, "{call} {number}: {}", output_text(&output));
                expect(bench.tune(&["revert"]), 0);
                break;
            }
            ends += 1;
            bench.settle();
            bench.finish_recovery();
            bench.snapshot().must_equal(&before, &format_args!("{call} {number}"));
        }
    }
    assert!(ends > min_syscalls, "{ends} ends");
}

#[test]
fn an_apply_killed_at_any_syscall_is_rolled_back() {
    // One file and one netlink message.
    rolled_back_at_any_syscall(&PLAN[3..5], 30);
}

#[test]
#[ignore = "long: hundreds of system calls"]
fn an_apply_of_every_kind_killed_at_any_syscall_is_rolled_back() {
    rolled_back_at_any_syscall(PLAN, 60);
}
