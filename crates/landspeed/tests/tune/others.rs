//! Concurrent events: a second apply, other programs that write settings, a full disk, a removed interface,
//! a lost link, signals.

use std::path::Path;
use std::process::Command;

use landspeed_testkit::process::{Ended, Process};
use landspeed_testkit::skip;

use crate::tune::bench::{
    Bench, WAIT_S, alive, bench, expect, output_text, remove_state, run, signal, state_of, wait_until,
};
use crate::tune::crash::{PLAN, apply, create_qdisc_tree};

const FAULT_VARIABLE: &str = "LANDSPEED_TUNE_FAULT";

/// An apply that stopped (SIGSTOP) after one of its records.
pub struct PausedApply {
    process: Process,
}

impl PausedApply {
    /// Starts an apply and waits until it stops; returns its output if it ended instead.
    pub fn after(bench: &Bench, arguments: &[&str], record: u64) -> Result<Self, Ended> {
        Self::of(bench.tune(arguments), record)
    }

    fn of(mut command: Command, record: u64) -> Result<Self, Ended> {
        let mut process = Process::start(command.env(FAULT_VARIABLE, format!("stop-after-record:{record}")));
        wait_until("it stops or ends", || process.has_ended() || state_of(process.id()) == Some('T'));
        if process.has_ended() { Err(process.end(WAIT_S)) } else { Ok(Self { process }) }
    }

    /// Process id of the apply.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Continues the apply and waits for its end.
    pub fn resume(self) -> Ended {
        self.process.signal("CONT");
        self.process.end(WAIT_S)
    }
}

#[test]
fn one_of_two_concurrent_applies_is_refused() {
    let bench = bench!();
    let before = bench.snapshot();
    let one = apply(&["net.ipv4.tcp_mtu_probing=1"], "600");
    let other = apply(&["net.core.somaxconn=8192"], "600");
    // At every record of the first apply.
    let mut places = 0;
    for record in 1.. {
        bench.remove_state();
        let Ok(paused) = PausedApply::after(&bench, &one, record) else {
            expect(bench.tune(&["revert"]), 0);
            break;
        };
        let second = Process::start(bench.tune(&other));
        let first = paused.resume();
        let second = second.end(WAIT_S);
        assert!(first.code == 0, "{record}: {}", output_text(&first));
        assert_eq!(second.code, 2, "{record}: {}", output_text(&second));
        assert!(
            output_text(&second).contains("transaction 1 awaits its confirmation"),
            "{record}: {}",
            output_text(&second)
        );
        assert!(bench.journal(2).is_empty());
        expect(bench.tune(&["revert"]), 0);
        bench.snapshot().must_equal(&before, &record);
        places = record;
    }
    assert_eq!(places, 5, "plan, watchdog, intent, applied, awaiting");
    // All at the same time.
    for _ in 0..5 {
        bench.remove_state();
        let processes = [&one, &other, &one, &other].map(|arguments| Process::start(bench.tune(arguments)));
        let outputs = processes.map(|process| process.end(WAIT_S));
        let won = outputs.iter().filter(|output| output.code == 0).count();
        assert_eq!(won, 1, "{}", outputs.iter().map(output_text).collect::<String>());
        expect(bench.tune(&["revert"]), 0);
        bench.snapshot().must_equal(&before, &"four at once");
    }
}

#[test]
fn values_changed_since_the_plan_are_kept() {
    let bench = bench!();
    let plan = ["v0:mtu=9000", "net.ipv4.tcp_mtu_probing=1", "net.ipv4.tcp_notsent_lowat=1000000"];
    // After the record of the plan or of the watchdog, before its first write.
    for record in [1, 2] {
        bench.remove_state();
        let paused = PausedApply::after(&bench, &apply(&plan, "600"), record).expect("it stops");
        bench.shell("echo 2 > /proc/sys/net/ipv4/tcp_mtu_probing");
        let theirs = bench.snapshot();
        let output = paused.resume();
        assert_eq!(output.code, 2);
        let text = output_text(&output);
        assert!(
            text.contains("another program is changing it") && text.contains("everything was put back"),
            "{text}"
        );
        bench.snapshot().must_equal(&theirs, &record);
        bench.shell("echo 0 > /proc/sys/net/ipv4/tcp_mtu_probing");
    }
}

#[test]
fn later_changes_are_reverted_only_by_force() {
    let bench = bench!();
    create_qdisc_tree(&bench);
    let before = bench.snapshot();
    for theirs in [
        "echo 2 > /proc/sys/net/ipv4/tcp_mtu_probing",
        "ip link set v0 mtu 4000",
        "tc qdisc replace dev v0 parent 10:2 handle 77: bfifo limit 123456",
        "ip link set v0 txqueuelen 555",
    ] {
        bench.remove_state();
        expect(bench.tune(&apply(PLAN, "600")), 0);
        bench.shell(theirs);
        let refused = expect(bench.tune(&["confirm"]), 2);
        assert!(refused.contains("not confirmed") && refused.contains("now"), "{refused}");
        let text = expect(bench.tune(&["revert"]), 1);
        assert!(text.contains("not rolled back in full") && text.contains("another program set it"), "{text}");
        let status = bench.status();
        assert_eq!(status["transactions"][0]["state"], "needs-attention", "{status:#}");
        let left = bench.snapshot().difference(&before);
        assert!(!left.is_empty() && left.len() <= 14, "{theirs}: only theirs is left: {left:#?}");
        expect(bench.tune(&["revert", "--force"]), 0);
        bench.snapshot().must_equal(&before, &theirs);
    }
}

/// Interrupts an apply after each record with one of three signals in turn; with three rounds each of them.
fn interrupted_apply_is_rolled_back(rounds: usize) {
    let bench = bench!();
    create_qdisc_tree(&bench);
    let before = bench.snapshot();
    for round in 0..rounds {
        let mut places = 0;
        for record in 1.. {
            let name = ["INT", "TERM", "HUP"][(round + record as usize) % 3];
            bench.remove_state();
            // Signals ignored by `nohup` or a shell's `&` stay ignored in child processes, so reset them.
            let heeding = ["env", "--default-signal=INT,TERM,HUP"];
            let command = bench.tune_with(&heeding, &apply(&PLAN[3..7], "600"), &bench.state());
            let paused = match PausedApply::of(command, record) {
                Ok(paused) => paused,
                Err(output) => {
                    assert!(output.code == 0, "{}", output_text(&output));
                    expect(bench.tune(&["revert"]), 0);
                    break;
                }
            };
            signal(paused.process(), name);
            let output = paused.resume();
            assert!(output.code != 0, "{name} {record}: {}", output_text(&output));
            bench.settle();
            bench.finish_recovery();
            bench.snapshot().must_equal(&before, &format_args!("{name} after record {record}"));
            places += 1;
        }
        assert_eq!(places, 3 + 2 * 4);
    }
}

#[test]
fn an_interrupted_apply_is_rolled_back() {
    interrupted_apply_is_rolled_back(1);
}

#[test]
#[ignore = "long: each of three signals after each record"]
fn an_apply_interrupted_by_any_signal_is_rolled_back() {
    interrupted_apply_is_rolled_back(3);
}

#[test]
fn watchdog_survives_a_session_hangup() {
    let bench = bench!();
    let before = bench.snapshot();
    expect(bench.tune(&apply(&["net.ipv4.tcp_mtu_probing=1"], "3")), 0);
    let watchdog = bench.watchdog(1).expect("armed");
    let stat = std::fs::read_to_string(format!("/proc/{watchdog}/stat")).expect("it lives");
    let words: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
    // Fields 5, 6 and 7 of proc(5): its own process group and session, no terminal.
    assert_eq!((words[2], words[3], words[4]), (watchdog.to_string().as_str(), watchdog.to_string().as_str(), "0"));
    signal(watchdog, "HUP");
    bench.wait_reverted(1);
    bench.snapshot().must_equal(&before, &"not confirmed in time");
    assert!(
        bench.status()["transactions"][0]["why"].as_str().is_some_and(|why| why.contains("not confirmed in time"))
    );
}

#[test]
fn a_full_disk_stops_applies_but_not_reverts() {
    let bench = bench!();
    create_qdisc_tree(&bench);
    let before = bench.snapshot();
    let place = bench.directory.path().join("small");
    let Some(_small) = Mounted::tmpfs(&place, "size=512k") else { skip!("mounting needs root") };
    let state = place.join("state");
    let plan = &PLAN[3..7];
    // The disk is full from the start.
    fill(&place);
    let output = run(bench.tune_with(&[], &apply(plan, "600"), &state));
    assert_eq!(output.code, 2);
    let text = output_text(&output);
    assert!(text.contains("No space left") && text.contains("--state"), "{text}");
    bench.snapshot().must_equal(&before, &"full from the start");
    empty(&place);
    // The disk is full from a record on: the apply completes, or everything is rolled back; a revert always
    // succeeds.
    for record in 1..=3 + 2 * plan.len() as u64 {
        remove_state(&state);
        let mut command = bench.tune_with(&[], &apply(plan, "600"), &state);
        let process = Process::start(command.env(FAULT_VARIABLE, format!("stop-after-record:{record}")));
        wait_until("it stops", || state_of(process.id()) == Some('T'));
        fill(&place);
        process.signal("CONT");
        let output = process.end(WAIT_S);
        if output.code == 0 {
            expect(bench.tune_with(&[], &["revert"], &state), 0);
        }
        bench.snapshot().must_equal(&before, &format_args!("full from record {record}: {}", output_text(&output)));
        expect(bench.tune_with(&[], &["status"], &state), 0);
        empty(&place);
    }
}

#[test]
fn the_watchdog_works_with_a_read_only_state_directory() {
    let bench = bench!();
    create_qdisc_tree(&bench);
    let before = bench.snapshot();
    expect(bench.tune(&apply(PLAN, "5")), 0);
    let watchdog = bench.watchdog(1).expect("armed");
    // In the mount namespace of the watchdog.
    let state = bench.state();
    let inside = format!("mount --bind {0} {0} && mount -o remount,bind,ro {0}", state.display());
    let mut command = Command::new("nsenter");
    command.args(["-m", "-t", &watchdog.to_string(), "sh", "-c", &inside]);
    if !command.output().is_ok_and(|output| output.status.success()) {
        skip!("mounting beside a process needs nsenter");
    }
    wait_until("the watchdog ends", || !alive(watchdog));
    bench.snapshot().must_equal(&before, &"read-only since");
    let read_only = Mounted::read_only(&state, &state).expect("mounts");
    let text = expect(bench.tune(&apply(PLAN, "5")), 2);
    assert!(text.contains("Read-only file system"), "{text}");
    drop(read_only);
    bench.finish_recovery();
    bench.snapshot().must_equal(&before, &"status");
}

#[test]
fn the_watchdog_works_without_its_state_directory() {
    let bench = bench!();
    create_qdisc_tree(&bench);
    let before = bench.snapshot();
    expect(bench.tune(&apply(PLAN, "5")), 0);
    let watchdog = bench.watchdog(1).expect("armed");
    std::fs::remove_dir_all(bench.state()).expect("removed");
    wait_until("the watchdog ends", || !alive(watchdog));
    bench.snapshot().must_equal(&before, &"without its journal");
}

#[test]
fn a_renamed_interface_is_restored_under_its_new_name() {
    let bench = bench!();
    create_qdisc_tree(&bench);
    let rename =
        |from: &str, to: &str| bench.shell(&format!("ip link set {from} down; ip link set {from} name {to}"));
    let up = |name: &str| bench.shell(&format!("ip link set {name} up"));
    for unattended in [false, true] {
        bench.remove_state();
        let before =
            bench.shell("ip -d link show v0; tc -d qdisc show dev v0 | sort; cat /proc/sys/net/ipv4/conf/v0/*");
        expect(bench.tune(&apply(PLAN, if unattended { "5" } else { "600" })), 0);
        rename("v0", "lan0");
        if unattended {
            bench.wait_reverted(1);
        } else {
            let text = expect(bench.tune(&["revert"]), 0);
            assert!(!text.contains("gone"), "{text}");
        }
        rename("lan0", "v0");
        up("v0");
        let after =
            bench.shell("ip -d link show v0; tc -d qdisc show dev v0 | sort; cat /proc/sys/net/ipv4/conf/v0/*");
        assert_eq!(after, before);
    }
}

#[test]
fn new_interface_with_the_same_name_is_not_changed() {
    let bench = bench!();
    let tcp = bench.shell("cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_mtu_probing");
    expect(bench.tune(&apply(PLAN, "600")), 0);
    bench.shell(
        "ip link del v0
         ip link add v0 numtxqueues 4 numrxqueues 4 mtu 9000 txqueuelen 2000 type veth peer name v1
         ip link set v0 up; ip link set v1 up; echo 1 > /proc/sys/net/ipv4/conf/v0/arp_filter",
    );
    let namesake = bench.shell("ip -d link show v0; cat /proc/sys/net/ipv4/conf/v0/arp_filter");
    let text = expect(bench.tune(&["revert"]), 0);
    assert!(text.contains("v0 mtu is gone"), "{text}");
    assert_eq!(bench.shell("ip -d link show v0; cat /proc/sys/net/ipv4/conf/v0/arp_filter"), namesake);
    assert_eq!(bench.shell("cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_mtu_probing"), tcp);
}

#[test]
fn an_interface_keeps_its_identity_after_a_mac_change() {
    // A bond port takes the MAC address of its bond.
    let bench = bench!();
    create_qdisc_tree(&bench);
    expect(bench.tune(&apply(PLAN, "600")), 0);
    bench.shell("ip link set v0 address 02:00:00:00:00:77");
    expect(bench.tune(&["revert"]), 0);
    let link = bench.shell("ip link show v0");
    assert!(link.contains("mtu 1500") && link.contains("qlen 1000"), "{link}");
}

#[test]
fn a_cut_management_link_is_rolled_back() {
    let bench = bench!();
    let before = bench.snapshot();
    let session = "10.97.0.2 50000 10.97.0.1 22";
    let mut command = bench.tune(&apply(&["v0:mtu=9000", "net.ipv4.tcp_mtu_probing=1"], "5"));
    command.env("SSH_CONNECTION", session);
    expect(command, 0);
    bench.shell("ip link set v1 down");
    let text = expect(bench.tune(&["confirm"]), 2);
    assert!(text.contains("v0 lost its carrier") && text.contains("10.97.0.2 is out of reach"), "{text}");
    bench.wait_reverted(1);
    bench.shell("ip link set v1 up; ip route replace default via 10.97.0.2; ip route replace 10.98.0.0/16 via 10.97.0.2 mtu 1400");
    wait_until("the link is back", || {
        bench.snapshot().difference(&before).iter().all(|line| line.contains("route6"))
    });
}

/// A mounted file system, unmounted on drop.
pub struct Mounted<'a> {
    at: &'a Path,
}

impl<'a> Mounted<'a> {
    pub fn tmpfs(at: &'a Path, options: &str) -> Option<Self> {
        std::fs::create_dir_all(at).expect("a directory");
        mount(&["-t", "tmpfs", "-o", options, "tmpfs"], at).then_some(Self { at })
    }

    /// A read-only bind mount of the directory.
    pub fn read_only(from: &Path, at: &'a Path) -> Option<Self> {
        std::fs::create_dir_all(at).expect("a directory");
        let bound = mount(&["--bind", from.to_str().expect("plain")], at).then_some(Self { at })?;
        mount(&["-o", "remount,bind,ro"], at).then_some(bound)
    }
}

fn mount(arguments: &[&str], at: &Path) -> bool {
    let mut command = Command::new("mount");
    command.args(arguments).arg(at).output().is_ok_and(|output| output.status.success())
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.at).output();
    }
}

fn fill(place: &Path) {
    let _ = std::fs::write(place.join("filler"), vec![0_u8; 1 << 20]);
    // Fill the last bytes: write files until it fails.
    let mut number = 0;
    while std::fs::write(place.join(format!("filler{number}")), [0_u8; 4096]).is_ok() {
        number += 1;
    }
}

fn empty(place: &Path) {
    for entry in std::fs::read_dir(place).expect("there").flatten() {
        if entry.file_name().to_string_lossy().starts_with("filler") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
