//! The time to confirm starts with the first write, whatever happens to the writing process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use landspeed_testkit::{or_skip, skip};

use crate::tune::bench::{Bench, alive, bench, expect, output_text, run, signal, wait_until, was_killed};
use crate::tune::crash::{PLAN, apply, create_qdisc_tree};
use crate::tune::others::PausedApply;

#[test]
fn a_stopped_apply_is_rolled_back_at_its_deadline() {
    // After the watchdog's record, an intent, a write, in the middle, and after the last write; on separate
    // benches, so that they wait in parallel.
    let records = [2, 3, 4, 11, 2 + 2 * PLAN.len() as u64];
    let benches: Vec<Bench> = or_skip!(records.iter().map(|_| Bench::new()).collect());
    let stopped = |bench: &Bench, record: u64| {
        create_qdisc_tree(bench);
        let before = bench.snapshot();
        let paused = PausedApply::after(bench, &apply(PLAN, "6"), record).expect("it stops");
        bench.wait_reverted(1);
        bench.snapshot().must_equal(&before, &record);
        assert!(!alive(paused.process()), "{record}: it was killed, not left to go on");
        assert!(was_killed(&paused.resume()), "{record}");
        bench.snapshot().must_equal(&before, &record);
        let status = bench.status();
        let why = status["transactions"][0]["why"].as_str().unwrap_or_default().to_owned();
        assert!(why.contains("past the time to confirm in"), "{record}: {why}");
        expect(bench.tune(&apply(PLAN, "600")), 0);
        expect(bench.tune(&["revert"]), 0);
    };
    std::thread::scope(|scope| {
        for (bench, record) in benches.iter().zip(records) {
            scope.spawn(move || stopped(bench, record));
        }
    });
}

#[test]
fn the_next_command_kills_a_stopped_apply() {
    let bench = bench!();
    let before = bench.snapshot();
    // The plan is on disk, and the watchdog has not been started.
    let early = PausedApply::after(&bench, &apply(PLAN, "1"), 1).expect("it stops");
    bench.finish_recovery();
    assert!(was_killed(&early.resume()));
    bench.snapshot().must_equal(&before, &"nothing was written");
    bench.remove_state();
    let late = PausedApply::after(&bench, &apply(PLAN, "4"), 6).expect("it stops");
    bench.kill_watchdog(1);
    bench.finish_recovery();
    assert!(was_killed(&late.resume()));
    bench.snapshot().must_equal(&before, &"the next command did the watchdog's work");
}

/// A cgroup v1 freezer: a frozen process cannot be killed until it is thawed, like one that hangs in a
/// driver.
struct Freezer(PathBuf);

impl Freezer {
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
        let mount = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mount =
            mount.into_iter().find(|f| f[2] == "cgroup" && f[3].split(',').any(|option| option == "freezer"))?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(mount[1]).join(format!("landspeed-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).ok().map(|()| Self(path))
    }

    fn freeze(&self, process: u32) {
        std::fs::write(self.0.join("cgroup.procs"), process.to_string()).expect("moved");
        std::fs::write(self.0.join("freezer.state"), "FROZEN").expect("asked");
        wait_until("it freezes", || {
            std::fs::read_to_string(self.0.join("freezer.state")).is_ok_and(|state| state.trim() == "FROZEN")
        });
    }

    fn thaw(&self) {
        let _ = std::fs::write(self.0.join("freezer.state"), "THAWED");
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.thaw();
        let empty = || std::fs::read_to_string(self.0.join("cgroup.procs")).is_ok_and(|text| text.is_empty());
        for _ in 0..1000 {
            if empty() {
                break;
            }
            landspeed_sys::clock::sleep_until(landspeed_sys::clock::monotonic_ns() + 5_000_000);
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn an_apply_that_cannot_be_killed_is_taken_over() {
    let bench = bench!();
    let Some(freezer) = Freezer::new() else { skip!("there is no freezer of cgroups version 1 here") };
    create_qdisc_tree(&bench);
    let before = bench.snapshot();
    let stuck = PausedApply::after(&bench, &apply(PLAN, "4"), 7).expect("it stops");
    freezer.freeze(stuck.process());
    wait_until("the watchdog takes over", || bench.has_record(1, "needs-attention"));
    assert!(bench.has_record(1, "taken-over"));
    bench.snapshot().must_equal(&before, &"restored beside a process that hangs");
    assert!(alive(stuck.process()), "it still hangs");
    // Other commands are not blocked, and report the stuck process.
    let text = expect(bench.tune(&["status"]), 1);
    assert!(text.contains("could not be killed") && text.contains("may still change"), "{text}");
    expect(bench.tune(&apply(&["net.core.somaxconn=8192"], "600")), 0);
    expect(bench.tune(&["revert"]), 0);
    freezer.thaw();
    assert!(was_killed(&stuck.resume()));
    bench.wait_reverted(1);
    wait_until("everything is compared once more", || bench.has_record(1, "reverted"));
    bench.snapshot().must_equal(&before, &"after it was gone");
    expect(bench.tune(&["status"]), 0);
}

#[test]
fn a_truncated_journal_reverts_and_names_what_remains() {
    let bench = bench!();
    let before = bench.snapshot();
    expect(bench.tune(&apply(PLAN, "600")), 0);
    let planned = bench.snapshot();
    bench.kill_watchdog(1);
    let cut: String = bench.journal(1).split_inclusive('\n').take(2).collect();
    std::fs::write(bench.state().join("0001.journal"), cut).expect("cut");
    let text = expect(bench.tune(&["revert", "1"]), 1);
    assert!(text.contains("not rolled back in full") && text.contains("its record is lost"), "{text}");
    bench.snapshot().must_equal(&planned, &"nothing is overwritten that the journal does not know");
    let status = bench.status();
    let one = &status["transactions"][0];
    assert_eq!(one["state"], "needs-attention", "{status:#}");
    assert!(one["steps"].as_array().expect("a list").iter().all(|step| step["now"]["check"] == "differs"), "{one:#}");
    let text = expect(bench.tune(&["revert", "1", "--force"]), 0);
    assert!(text.contains(&format!("{0} of {0} settings checked", PLAN.len())), "{text}");
    bench.snapshot().must_equal(&before, &"forced");
}

#[test]
fn two_state_directories_do_not_share_an_open_setting() {
    let bench = bench!();
    let before = bench.snapshot();
    let other = bench.directory.path().join("other");
    expect(bench.tune(&apply(&["net.ipv4.tcp_mtu_probing=1"], "5")), 0);
    let mine = bench.snapshot();
    let theirs = apply(&["net.ipv4.tcp_mtu_probing=2"], "600");
    let text = expect(bench.tune_with(&[], &theirs, &other), 2);
    assert!(text.contains("nothing was changed") && text.contains("net.ipv4.tcp_mtu_probing"), "{text}");
    bench.snapshot().must_equal(&mine, &"refused");
    bench.wait_reverted(1);
    bench.snapshot().must_equal(&before, &"rolled back");
    expect(bench.tune_with(&[], &theirs, &other), 0);
    expect(bench.tune_with(&[], &["revert"], &other), 0);
    bench.snapshot().must_equal(&before, &"the other one, too");
}

#[test]
fn status_names_the_network_namespace() {
    let bench = bench!();
    expect(bench.tune(&apply(&["net.ipv4.tcp_mtu_probing=1"], "600")), 0);
    let text = expect(bench.tune(&["status"]), 1);
    assert!(text.contains(bench.namespace.name()) && text.contains("(this one)"), "{text}");
    assert_eq!(bench.status()["transactions"][0]["network_namespace"]["current"], true);
    let mut outside = Command::new(crate::common::chosen_program());
    outside.args(["tune", "status", "--state"]).arg(bench.state());
    let text = output_text(&run(outside));
    assert!(text.contains(bench.namespace.name()) && text.contains("(another one)"), "{text}");
    assert!(text.contains("not checked: it is in network namespace"), "{text}");
    expect(bench.tune(&["revert"]), 0);
}

/// Runs a command as if systemd were running, with a fake `systemd-run` first in PATH, in a mount namespace
/// that ends with the command.
fn with_systemd(bench: &Bench, script: &str) -> Command {
    use std::os::unix::fs::PermissionsExt as _;
    let tools = bench.directory.path().join("tools");
    std::fs::create_dir_all(&tools).expect("a directory");
    let fake = tools.join("systemd-run");
    std::fs::write(&fake, script).expect("written");
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).expect("set");
    let run = "mount -t tmpfs tmpfs /run/systemd && mkdir /run/systemd/system && PATH=\"$0:$PATH\" exec \"$@\"";
    let by = ["sh", "-c", run, tools.to_str().expect("plain")];
    let arguments = [&apply(&["net.ipv4.tcp_mtu_probing=1"], "600")[..], &["--json", "-"]].concat();
    bench.tune_with(&by, &arguments, &bench.state())
}

fn watchdog_of(command: Command) -> serde_json::Value {
    let output = run(command);
    assert!(output.code == 0, "{}", output_text(&output));
    let document: serde_json::Value = serde_json::from_str(&output.stdout).expect("a document");
    document["watchdog"].clone()
}

#[test]
fn the_watchdog_runs_in_its_own_unit_or_warns() {
    let bench = bench!();
    if !Path::new("/run/systemd").is_dir() {
        skip!("there is no /run/systemd to mount over");
    }
    let asked = bench.directory.path().join("asked");
    let exec = "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"";
    let noted = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {}\n", asked.display());
    let end = || {
        expect(bench.tune(&["revert"]), 0);
        bench.remove_state();
    };
    // The fake systemd-run is asked for a scope, but leaves the watchdog in its cgroup.
    let watchdog = watchdog_of(with_systemd(&bench, &format!("{noted}{exec}\n")));
    assert!(watchdog["unit"].is_null(), "{watchdog}");
    assert!(
        watchdog["warning"].as_str().is_some_and(|text| text.contains("systemd-run left it there")),
        "{watchdog}"
    );
    let words = std::fs::read_to_string(&asked).expect("it was asked");
    assert!(words.contains("--scope\n") && words.contains("--unit=landspeed-tune-1-"), "{words}");
    assert!(words.contains("tune\nwatchdog\n--id\n1\n"), "{words}");
    end();
    // The fake systemd-run fails.
    let watchdog = watchdog_of(with_systemd(&bench, "#!/bin/sh\nexit 1\n"));
    assert!(watchdog["warning"].as_str().is_some_and(|text| text.contains("systemd-run failed")), "{watchdog}");
    assert!(alive(watchdog["process"].as_u64().expect("a number") as u32));
    end();
    // The fake systemd-run moves the watchdog.
    let Some(group) = Freezer::new() else { skip!("there is no cgroup to move a process to here") };
    // The bench's /sys does not contain cgroups.
    let mount = bench.directory.path().join("freezer");
    std::fs::create_dir(&mount).expect("a directory");
    let name = group.0.file_name().expect("it has one").display();
    let mount = mount.display();
    let moved = format!(
        "{noted}mount -t cgroup -o freezer cgroup {mount} && echo $$ > {mount}/{name}/cgroup.procs\n{exec}\n"
    );
    let watchdog = watchdog_of(with_systemd(&bench, &moved));
    assert!(watchdog["warning"].is_null(), "{watchdog}");
    assert!(watchdog["unit"].as_str().is_some_and(|unit| unit.split('.').next_back() == Some("scope")), "{watchdog}");
    assert_eq!(bench.watchdog(1), watchdog["process"].as_u64().map(|process| process as u32));
    end();
    drop(group);
    // Without a systemd-run.
    let text = expect(bench.tune(&apply(&["net.ipv4.tcp_mtu_probing=1"], "600")), 0);
    assert_eq!(text.contains("Warning: the watchdog"), !Path::new("/run/systemd/system").is_dir(), "{text}");
    let watchdog = bench.watchdog(1).expect("armed");
    signal(watchdog, "HUP");
    assert!(alive(watchdog));
    end();
}
