//! Known defects of other tuning tools: tests that landspeed does not have them. Those covered by other
//! tests are in the table of docs/tuning.md.

use std::path::Path;
use std::process::{Command, Stdio};

use landspeed_testkit::process::Process;
use landspeed_testkit::{hosts, skip};
use serde_json::Value;

use crate::common::chosen_program;
use crate::tune::bench::{Bench, alive, bench, expect, output_text, run};
use crate::tune::crash::{PLAN, apply};
use crate::tune::qdisc::qdisc_lines;

/// Goals from a short path to a long fat network.
const GOALS: &[&[&str]] = &[
    &["--goal", "1G", "--rtt", "100us"],
    &["--goal", "10G", "--rtt", "1ms"],
    &["--goal", "10G", "--rtt", "100ms"],
    &["--goal", "100G", "--rtt", "100ms"],
];

/// Maximum buffer of tuned's network-throughput profile: 16 MiB, enough for 1.34 Gb/s at 100 ms.
const TUNED_MAXIMUM: u64 = 16 << 20;

/// Last of the three numbers of a sysctl in the namespace.
fn maximum(bench: &Bench, name: &str) -> u64 {
    let text = bench.shell(&format!("cat /proc/sys/net/ipv4/{name}"));
    text.split_whitespace().last().and_then(|word| word.parse().ok()).expect("three numbers")
}

/// Steps of `tune plan` that are not no-ops: name and desired value.
fn planned(bench: &Bench, arguments: &[&str]) -> Vec<(String, String)> {
    let plan = bench.plan(arguments);
    let text = |step: &Value, key: &str| step[key].as_str().expect("a text").to_owned();
    let steps = plan["steps"].as_array().expect("a list");
    steps
        .iter()
        .filter(|step| step["no_op"] != true)
        .map(|step| (text(step, "name"), text(step, "desired")))
        .collect()
}

#[test]
fn buffers_are_computed_from_the_path() {
    let bench = bench!();
    bench.shell("for name in rmem wmem; do echo 4096 65536 4194304 > /proc/sys/net/ipv4/tcp_$name; done");
    let before = bench.snapshot();
    for (rate, rtt, bdp) in
        [("10G", "20ms", 25_000_000), ("10G", "100ms", 125_000_000), ("40G", "100ms", 500_000_000)]
    {
        bench.remove_state();
        let arguments = ["apply", "--confirm", "600", "--only", "BUF-001,BUF-002", "--goal", rate, "--rtt", rtt];
        expect(bench.tune(&arguments), 0);
        for name in ["tcp_rmem", "tcp_wmem"] {
            let set = maximum(&bench, name);
            // In the worst case half of a receive buffer is overhead; more than 3 BDP is waste.
            assert!(set >= bdp && set <= 3 * bdp && set > TUNED_MAXIMUM, "{rate} over {rtt}: {name} {set}");
        }
        expect(bench.tune(&["revert"]), 0);
        bench.snapshot().must_equal(&before, &rtt);
    }
}

#[test]
fn buffer_sizes_never_exceed_the_kernel_int_limit() {
    // The largest value in guides, 2^31, is negative in the kernel; bpftune wrote negative values (its issue
    // 36).
    let bench = bench!();
    bench.shell("for name in rmem wmem; do echo 4096 65536 4194304 > /proc/sys/net/ipv4/tcp_$name; done");
    for (rate, rtt) in [("100G", "300ms"), ("400G", "1s")] {
        for (name, value) in planned(&bench, &["--only", "BUF-001,BUF-002,BUF-004", "--goal", rate, "--rtt", rtt]) {
            let largest: i64 = value.split_whitespace().last().and_then(|word| word.parse().ok()).expect("a number");
            assert!((1 << 30..=i64::from(i32::MAX)).contains(&largest), "{rate} over {rtt}: {name} {value}");
        }
    }
    let wanted = "4096 65536 2147483648";
    let text = expect(bench.tune(&apply(&[&format!("net.ipv4.tcp_rmem={wanted}")], "600")), 2);
    assert!(text.contains("nothing was changed") && text.contains("2147483647"), "{text}");
}

#[test]
fn larger_existing_buffers_are_never_lowered() {
    // tuned's profile lowers the 32 MB of Linux 6.18 to 16 MB.
    let bench = bench!();
    for ours in ["4096 131072 33554432", "4096 131072 2000000000"] {
        bench.shell(&format!("for name in rmem wmem; do echo {ours} > /proc/sys/net/ipv4/tcp_$name; done"));
        let now: u64 = ours.split(' ').next_back().and_then(|word| word.parse().ok()).expect("a number");
        for goal in GOALS {
            for (name, value) in planned(&bench, goal) {
                if name.ends_with("tcp_rmem") || name.ends_with("tcp_wmem") {
                    let wanted: u64 =
                        value.split(' ').next_back().and_then(|word| word.parse().ok()).expect("a number");
                    assert!(wanted > now, "{goal:?}: {name} from {ours} to {value}");
                }
            }
        }
    }
}

#[test]
fn a_host_that_meets_its_goal_is_not_changed() {
    // One profile for all hosts made one site of three slower.
    let bench = bench!();
    let before = bench.snapshot();
    let arguments =
        ["--only", "BUF-001,BUF-002,BUF-004,BUF-005,TCP-001,TCP-002,TCP-003", "--goal", "1G", "--rtt", "100us"];
    let text = expect(bench.tune(&[&["apply", "--confirm", "600"], &arguments[..]].concat()), 0);
    assert!(text.contains("Nothing to write"), "{text}");
    assert!(!bench.state().exists(), "no transaction was begun");
    bench.snapshot().must_equal(&before, &"nothing to do");
}

#[test]
fn timestamps_and_sack_are_enabled() {
    // Vendors' scripts disable timestamps to save 12 bytes per segment.
    let bench = bench!();
    bench.shell("for name in timestamps sack window_scaling; do echo 0 > /proc/sys/net/ipv4/tcp_$name; done");
    let before = bench.snapshot();
    let arguments =
        ["apply", "--confirm", "600", "--only", "TCP-001,TCP-002,TCP-003", "--goal", "10G", "--rtt", "50ms"];
    expect(bench.tune(&arguments), 0);
    let now = bench.shell("cd /proc/sys/net/ipv4; cat tcp_timestamps tcp_sack tcp_window_scaling");
    assert_eq!(now, "1\n1\n1\n");
    expect(bench.tune(&["revert"]), 0);
    bench.snapshot().must_equal(&before, &"what the script did is its owner's");
    // And no goal disables them.
    bench.shell("for name in timestamps sack window_scaling; do echo 1 > /proc/sys/net/ipv4/tcp_$name; done");
    for goal in GOALS {
        let plan = planned(&bench, goal);
        assert!(!plan.iter().any(|(name, _)| name.contains("timestamps") || name.contains("sack")), "{plan:?}");
    }
}

#[test]
fn every_queue_is_set_and_restored() {
    // fasterdata-tuning.sh saves the first line of `tc qdisc show` and restores pfifo_fast at the root, without mq.
    let bench = bench!();
    bench.shell(
        "tc qdisc add dev v0 root handle 10: mq
         for queue in 1 2 3 4; do tc qdisc add dev v0 parent 10:$queue handle 1$queue: pfifo limit 7$queue; done",
    );
    let before = bench.snapshot();
    expect(bench.tune(&apply(&["v0:qdisc=bfifo limit 50000"], "600")), 0);
    let during = qdisc_lines(&bench);
    assert_eq!(during.len(), 5, "{during:?}");
    assert_eq!(
        during.iter().filter(|line| line.contains("bfifo") && line.contains("50000")).count(),
        4,
        "{during:?}"
    );
    assert!(during.iter().any(|line| line.contains("qdisc mq 10: root")), "{during:?}");
    expect(bench.tune(&["revert"]), 0);
    bench.snapshot().must_equal(&before, &"a leaf for each queue");
}

/// Starts a process with the name of a daemon.
fn start_daemon(bench: &Bench, name: &str) -> Process {
    let file = bench.directory.path().join(name);
    std::fs::copy("/bin/sleep", &file).expect("copied");
    Process::start(Command::new(&file).arg("600").stdin(Stdio::null()))
}

#[test]
fn the_firewall_and_daemons_are_never_changed() {
    // mlnx_tune has a profile that flushes the firewall; it and others stop irqbalance permanently.
    let bench = bench!();
    let rules =
        "nft 'add table inet guard; add chain inet guard in { type filter hook input priority 0; policy drop; };
         add rule inet guard in tcp dport 22 accept; add rule inet guard in ct state established accept'";
    if !bench.try_shell(rules).status.success() {
        skip!("a separate firewall needs nft");
    }
    let firewall = || bench.shell("nft list ruleset");
    let before = firewall();
    assert!(before.contains("policy drop"), "{before}");
    let daemons = ["irqbalance", "tuned", "firewalld"].map(|name| start_daemon(&bench, name));
    let unharmed = |when: &str| {
        assert_eq!(firewall(), before, "{when}");
        assert!(daemons.iter().all(|daemon| alive(daemon.id())), "{when}");
    };
    expect(bench.tune(&apply(PLAN, "600")), 0);
    unharmed("applied");
    expect(bench.tune(&["confirm"]), 0);
    unharmed("confirmed");
    expect(bench.tune(&["revert"]), 0);
    unharmed("reverted");
}

#[test]
fn conflicting_boot_settings_are_named_and_not_overridden() {
    // Settings written by the administrator are not silently overridden (tuned's issues 492 and 518).
    let bench = bench!();
    let root = bench.directory.path().join("root");
    let theirs = root.join("etc/sysctl.d/99-theirs.conf");
    std::fs::create_dir_all(root.join("etc/sysctl.d")).expect("a directory");
    std::fs::write(&theirs, "# measured in May\nnet.ipv4.tcp_mtu_probing = 2\n").expect("written");
    expect(bench.tune(&apply(&["net.ipv4.tcp_mtu_probing=1", "net.core.somaxconn=8192"], "600")), 0);
    expect(bench.tune(&["confirm"]), 0);
    let text = expect(bench.tune(&["persist", "--root", root.to_str().expect("plain")]), 1);
    assert!(text.contains("99-theirs.conf, line 2") && text.contains("would win at boot"), "{text}");
    let read = |path: &Path| std::fs::read_to_string(path).expect("there");
    assert_eq!(read(&theirs), "# measured in May\nnet.ipv4.tcp_mtu_probing = 2\n");
    let ours = read(&root.join("etc/sysctl.d/90-landspeed.conf"));
    assert!(ours.contains("net.core.somaxconn = 8192") && !ours.contains("tcp_mtu_probing"), "{ours}");
}

/// Audits of the recorded hosts in the source tree: name with goal, and document.
fn audits() -> Vec<(String, Value)> {
    let mut audits = Vec::new();
    // Through a file: the document exceeds a pipe's capacity.
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("audit.json");
    for host in hosts::names() {
        let recorded = hosts::unpack(&host);
        for goal in GOALS {
            let mut command = Command::new(chosen_program());
            command
                .arg("check")
                .args(*goal)
                .arg("--host")
                .arg(recorded.path())
                .arg("--json")
                .arg(&file)
                .stdin(Stdio::null());
            let output = run(command);
            assert!(matches!(output.code, 0 | 1), "{}", output_text(&output));
            let name = format!("{} {}", host, goal.join(" "));
            let text = std::fs::read(&file).expect("written");
            audits.push((name, serde_json::from_slice(&text).expect("a document")));
        }
    }
    assert!(audits.len() >= 8 * GOALS.len(), "{}", audits.len());
    audits
}

/// One test, because the audits take longer than the checks of them.
#[test]
fn audits_of_recorded_hosts_repeat_no_defect_of_other_tools() {
    let audits = audits();
    values_are_not_copied_between_hosts(&audits);
    no_finding_asks_to_stop_irqbalance_for_good(&audits);
    only_available_governors_are_requested(&audits);
    every_change_has_a_reason_gain_and_source(&audits);
    no_two_findings_ask_for_different_values_of_one_setting(&audits);
}

fn findings(audit: &Value) -> &[Value] {
    audit["findings"].as_array().expect("a list")
}

/// All changes of an audit: code of the finding, target and value.
fn changes(audit: &Value) -> impl Iterator<Item = (&str, &Value, &str)> {
    findings(audit).iter().flat_map(|finding| {
        let code = finding["code"].as_str().expect("a code");
        let changes = finding["changes"].as_array().expect("a list").iter();
        changes.map(move |change| (code, &change["target"], change["desired"].as_str().expect("a value")))
    })
}

fn values_are_not_copied_between_hosts(audits: &[(String, Value)]) {
    // The deck-40g host of 2012 has a tcp_mem of three times 16777216 pages, 64 GiB. Backlogs of 250000 come
    // from guides too.
    let mut cured = 0;
    for (name, audit) in audits {
        let memory = audit["facts"]["memory_bytes"]["known"].as_u64();
        for (code, target, desired) in changes(audit) {
            if target["kind"] == "tx-queue-len" {
                assert!(desired.parse::<u64>().is_ok_and(|packets| packets <= 1000), "{name}: {code}");
            }
            match target["name"].as_str() {
                Some("net.ipv4.tcp_mem") => {
                    let pages: Vec<u64> = desired.split(' ').map(|word| word.parse().expect("a number")).collect();
                    let memory = memory.expect("it is worked out from the memory");
                    assert!(pages[0] < pages[1] && pages[1] < pages[2], "{name}: {desired}");
                    // Pressure at no more than a quarter of the memory; the maximum at one and a half times that.
                    assert!(pages[2] * 4096 <= memory / 8 * 3, "{name}: {desired}");
                    cured += 1;
                }
                Some("net.ipv4.tcp_timestamps" | "net.ipv4.tcp_sack" | "net.ipv4.tcp_window_scaling") => {
                    assert_eq!(desired, "1", "{name}: {code}");
                }
                Some("net.core.netdev_max_backlog") => {
                    assert!(desired.parse::<u64>().is_ok_and(|n| n < 250_000), "{name}");
                }
                Some("net.ipv4.tcp_adv_win_scale" | "net.ipv4.tcp_low_latency" | "net.ipv4.tcp_tw_recycle") => {
                    panic!("{name}: {code} sets what the kernel no longer has");
                }
                _ => {}
            }
        }
    }
    assert!(cured > 0, "deck-40g has that tcp_mem");
}

fn no_finding_asks_to_stop_irqbalance_for_good(audits: &[(String, Value)]) {
    let mut seen = 0;
    for (name, audit) in audits {
        for finding in findings(audit).iter().filter(|finding| finding["code"] == "IRQ-003") {
            assert_eq!(finding["applicability"], "display-only", "{name}");
            assert_eq!(finding["changes"].as_array().map(Vec::len), Some(0), "{name}");
            let advice = finding["recommended"].as_str().expect("a text");
            assert!(advice.contains("keep it") && !advice.contains("disable"), "{name}: {advice}");
            seen += 1;
        }
    }
    assert!(seen > 0, "arm-server and deck-40g run it");
}

fn only_available_governors_are_requested(audits: &[(String, Value)]) {
    let mut asked = 0;
    for (name, audit) in audits {
        let policies = audit["facts"]["cpu"]["policies"]["known"].as_array().cloned().unwrap_or_default();
        for (code, target, desired) in changes(audit).filter(|(_, target, _)| target["kind"] == "governor") {
            let policy = policies.iter().find(|policy| policy["name"] == target["policy"]);
            let offers = policy
                .and_then(|policy| policy["governors"].as_array())
                .is_some_and(|all| all.iter().any(|one| one == desired));
            assert!(offers, "{name}: {code} {target} {desired}");
            asked += 1;
        }
        let guest = ["container", "virtio-guest", "cloud-sriov"].iter().any(|guest| name.starts_with(guest));
        assert!(!guest || changes(audit).all(|(_, target, _)| target["kind"] != "governor"), "{name}");
    }
    assert!(asked > 0, "arm-server and deck-40g follow the load");
}

#[test]
fn a_missing_governor_is_refused_by_name() {
    let bench = bench!();
    if Path::new("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor").exists() {
        skip!("this machine has frequencies to govern, which no test may write to");
    }
    let plan = ["cpufreq:policy0/governor=performance", "net.ipv4.tcp_mtu_probing=1"];
    let text = expect(bench.tune(&apply(&plan, "600")), 2);
    assert!(text.contains("nothing was changed") && text.contains("does not exist here"), "{text}");
}

fn every_change_has_a_reason_gain_and_source(audits: &[(String, Value)]) {
    // Reasons are required: bpftune's issue 188 asks "why exactly".
    for (name, audit) in audits {
        for finding in findings(audit).iter().filter(|finding| finding["changes"] != serde_json::json!([])) {
            for key in ["observed", "recommended", "why", "effect", "by_hand", "source"] {
                assert!(finding[key].as_str().is_some_and(|text| !text.is_empty()), "{name}: {key} of {finding:#}");
            }
        }
    }
}

fn no_two_findings_ask_for_different_values_of_one_setting(audits: &[(String, Value)]) {
    // No silent override (tuned's issue 492): a plan would refuse both values.
    for (name, audit) in audits {
        let all: Vec<_> = changes(audit).collect();
        for (number, (code, target, desired)) in all.iter().enumerate() {
            let other = all[..number].iter().find(|(_, other, value)| other == target && value != desired);
            assert!(other.is_none(), "{name}: {code} asks for {desired}, but {other:?}");
        }
    }
}
