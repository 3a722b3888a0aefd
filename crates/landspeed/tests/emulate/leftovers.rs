//! An ended emulation leaves nothing behind, even after SIGKILL.

use std::process::Command;

use landspeed_testkit::process::{Process, until};

use super::{TIMEOUT_S, Wire, landspeed, path_file};

/// Whether a process with the argument `word` is running.
pub(super) fn runs(word: &str) -> bool {
    std::fs::read_dir("/proc").expect("proc").flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    })
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(|why| why.to_string(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Links, qdiscs, namespaces, mounts and network settings, except counters.
fn host() -> String {
    let settings = output("sysctl", &["-a", "-r", "^(net|user)\\."]);
    let settings: Vec<&str> = settings.lines().filter(|line| !line.contains("nf_conntrack_count")).collect();
    [
        output("ip", &["-d", "link"]),
        output("tc", &["qdisc"]),
        output("ip", &["address"]),
        output("ip", &["netns"]),
        std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(),
        settings.join("\n"),
    ]
    .concat()
}

/// State of the middle namespace, which only this test changes.
pub(super) fn middle_state(wire: &Wire) -> String {
    wire.middle.run(|| [output("ip", &["-d", "link"]), output("tc", &["qdisc"]), output("ip", &["address"])].concat())
}

#[test]
fn a_killed_emulation_around_a_command_leaves_nothing() {
    let (_directory, file) = path_file("[[link]]\nrate = \"10M\"\ndelay = \"5ms\"");
    // In a separate namespace: other tests create and remove links at the same time.
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let before = middle_state(&wire);
    let mut command = landspeed();
    command.arg("emulate").arg(&file).args(["--remote", "exec sleep 73.125"]);
    command.args(["--", "sh", "-c", "(trap '' TERM INT HUP; setsid sleep 74.125) & sleep 75.125"]);
    let mut process = wire.middle.run(|| Process::start(command));
    until(TIMEOUT_S, "all run", || ["73.125", "74.125", "75.125"].iter().all(|word| runs(word)));
    process.kill();
    until(TIMEOUT_S, "all end", || !["73.125", "74.125", "75.125"].iter().any(|word| runs(word)));
    assert_eq!(middle_state(&wire), before);
}

#[test]
fn a_killed_emulation_between_interfaces_leaves_nothing() {
    let (_directory, file) = path_file("[[link]]\nrate = \"10M\"\ndelay = \"5ms\"");
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let before = middle_state(&wire);
    let mut process = wire.emulate(&file, &[]);
    let during = middle_state(&wire);
    assert_ne!(during, before, "the interfaces are promiscuous while it runs");
    process.kill();
    until(TIMEOUT_S, "the interfaces are as before", || middle_state(&wire) == before);
}

#[test]
fn an_interrupted_emulation_leaves_nothing() {
    let (_directory, file) = path_file("[[link]]\nrate = \"10M\"\ndelay = \"5ms\"");
    let wire = landspeed_testkit::or_skip!(Wire::new());
    let before = host();
    let mut command = landspeed();
    command.arg("emulate").arg(&file).args(["--", "sleep", "76.125"]);
    let process = wire.middle.run(|| Process::start(command));
    // The emulator's own command line contains the number too.
    until(TIMEOUT_S, "it runs", || process.stderr().contains("asked") && runs("76.125"));
    // On a terminal the command would receive the signal too; here it does not, and is killed after a grace
    // period.
    process.signal("INT");
    let ended = process.end(TIMEOUT_S);
    assert!(ended.stderr.contains("ended: interrupted"), "{}", ended.stderr);
    assert!(!runs("76.125"));
    let settings =
        |text: &str| text.lines().filter(|line| line.contains(" = ")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(settings(&host()), settings(&before), "network settings are as before");
}
