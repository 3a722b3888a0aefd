//! Recorded hosts that are damaged or malicious: they may lose facts, but never crash the program.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use landspeed_host::{RecordedHost, collect};
use landspeed_model::{Fact, Facts};
use landspeed_testkit::hosts::unpack;
use proptest::prelude::*;

#[path = "../../../fuzz/src/host.rs"]
mod claims;

/// Damages the content of a file.
type Edit = fn(Vec<u8>) -> Vec<u8>;

const EDITS: [(&str, Edit); 7] = [
    ("empty", |_| Vec::new()),
    ("cut", |bytes| bytes[..bytes.len() / 2].to_vec()),
    ("noise", |bytes| bytes.iter().map(|b| b.wrapping_mul(167).wrapping_add(13)).collect()),
    ("huge numbers", |bytes| bytes.iter().map(|b| if b.is_ascii_digit() { b'9' } else { *b }).collect()),
    ("longer numbers", |bytes| {
        bytes.iter().flat_map(|b| vec![*b; if b.is_ascii_digit() { 30 } else { 1 }]).collect()
    }),
    ("negative numbers", |bytes| {
        bytes.iter().flat_map(|b| if b.is_ascii_digit() { vec![b'-', *b] } else { vec![*b] }).collect()
    }),
    ("no blanks", |bytes| bytes.into_iter().filter(|b| !b.is_ascii_whitespace()).collect()),
];

fn files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(below).expect("tree").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_none_or(|extension| extension != "md") {
            found.push(path);
        }
    }
    found.sort_unstable();
    found
}

/// Returns the facts, after a round trip as JSON; `None` if the host cannot be opened, with an error that names
/// the cause.
fn facts(directory: &Path) -> Option<Facts> {
    match RecordedHost::open(directory) {
        Ok(host) => {
            let facts = collect(&host);
            let text = serde_json::to_string(&facts).expect("a document");
            assert_eq!(serde_json::from_str::<Facts>(&text).expect("it is read again"), facts);
            Some(facts)
        }
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains("kernel.json") || said.contains("schema"), "{said}");
            None
        }
    }
}

/// Damages each file in two of seven ways, and its neighbours, which are often of the same kind, in others.
#[test]
fn a_damaged_file_loses_only_its_own_facts() {
    damage_each_file(|number| vec![EDITS[number % 7].1, EDITS[(number + 3) % 7].1]);
}

#[test]
#[ignore = "long: every file damaged in every way"]
fn a_file_damaged_in_any_way_loses_only_its_facts() {
    damage_each_file(|_| EDITS.map(|(_, edit)| edit).into());
}

fn damage_each_file(edits: impl Fn(usize) -> Vec<Edit>) {
    let tree = unpack("container");
    let whole = facts(tree.path()).expect("whole");
    // Sysctls are text that is not parsed here.
    let parsed = |path: &PathBuf| !path.to_string_lossy().contains("/proc/sys/net/");
    for (number, path) in files(tree.path()).into_iter().filter(parsed).enumerate() {
        let bytes = fs::read(&path).expect("a file");
        for edit in edits(number) {
            fs::write(&path, edit(bytes.clone())).expect("written");
            facts(tree.path());
        }
        fs::write(&path, &bytes).expect("restored");
    }
    assert_eq!(facts(tree.path()), Some(whole));
}

#[test]
fn a_host_with_every_file_damaged_is_still_collected() {
    for name in ["dtn-100g", "deck-40g", "bonded"] {
        let tree = unpack(name);
        let all: Vec<_> = files(tree.path())
            .into_iter()
            .filter(|path| !path.ends_with("kernel.json"))
            .map(|path| (fs::read(&path).expect("a file"), path))
            .collect();
        for (what, edit) in &EDITS {
            for (bytes, path) in &all {
                fs::write(path, edit(bytes.clone())).expect("written");
            }
            assert!(facts(tree.path()).is_some(), "{name}, {what}");
        }
    }
}

#[test]
fn special_files_are_not_opened() {
    let tree = unpack("container");
    let at = |path: &str| tree.path().join(path);
    let replace = |path: &str| fs::remove_file(at(path)).expect("it was there");
    // A pipe without a writer: opening it would block.
    replace("proc/cmdline");
    let pipe = std::process::Command::new("mkfifo").arg(at("proc/cmdline")).status();
    assert!(pipe.is_ok_and(|status| status.success()), "mkfifo");
    // Two links that lead to each other.
    replace("proc/uptime");
    symlink("meminfo2", at("proc/uptime")).expect("link");
    symlink("uptime", at("proc/meminfo2")).expect("link");
    // A link out of the recording, to a file of this host.
    replace("proc/sys/kernel/hostname");
    symlink("/proc/sys/kernel/hostname", at("proc/sys/kernel/hostname")).expect("link");
    // A directory in place of a file, a file in place of a directory, an endless device.
    replace("proc/meminfo");
    fs::create_dir(at("proc/meminfo")).expect("directory");
    fs::remove_dir_all(at("sys/devices/system/node")).expect("it was there");
    fs::write(at("sys/devices/system/node"), "0-3").expect("written");
    replace("etc/os-release");
    symlink("/dev/zero", at("etc/os-release")).expect("link");

    let facts = facts(tree.path()).expect("a host");
    let why = |fact: Fact<String>| match fact {
        Fact::Unknown(why) | Fact::Absent(why) => why,
        Fact::Known(value) => panic!("known: {value}"),
    };
    assert!(why(facts.kernel.command_line).contains("cannot read /proc/cmdline"));
    assert!(why(facts.hostname).contains("leads out of the recorded host"));
    assert!(matches!(facts.memory_bytes, Fact::Unknown(_)), "{:?}", facts.memory_bytes);
    assert!(!matches!(facts.uptime_s, Fact::Known(_)), "{:?}", facts.uptime_s);
    assert!(matches!(facts.numa, Fact::Absent(_)), "{:?}", facts.numa);
    assert!(!matches!(facts.os, Fact::Known(_)), "{:?}", facts.os);
}

#[test]
fn huge_files_are_read_up_to_a_limit() {
    let tree = unpack("container");
    for path in
        ["proc/interrupts", "proc/cpuinfo", "proc/self/cgroup", "proc/cmdline", "proc/modules", "etc/os-release"]
    {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directory");
        fs::File::create(&path).and_then(|file| file.set_len(100 << 20)).expect("a sparse file");
    }
    let facts = facts(tree.path()).expect("a host");
    assert!(facts.kernel.command_line.known().is_none_or(|text| text.len() <= 8 << 20));
    let huge = tree.path().join("kernel.json");
    fs::File::create(&huge).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
    let error = RecordedHost::open(tree.path()).expect_err("too long").to_string();
    assert!(error.contains("is longer than"), "{error}");
}

#[test]
fn invalid_kernel_json_errors_name_the_cause() {
    let directory = tempfile::tempdir().expect("directory");
    let open = |text: &str| {
        fs::write(directory.path().join("kernel.json"), text).expect("written");
        RecordedHost::open(directory.path()).err().map(|error| error.to_string())
    };
    let missing = RecordedHost::open(Path::new("/nonexistent")).expect_err("nothing there").to_string();
    assert!(missing.contains("is not a recorded host") && missing.contains("check --record"), "{missing}");
    let deep = format!("{{\"x\": {}", "[".repeat(100_000));
    let cases = [
        ("", "EOF while parsing"),
        ("{", "EOF while parsing"),
        ("null", "invalid type"),
        ("{}", "has the schema ``"),
        (
            r#"{"schema": "landspeed.kernel/9\u001b[2J"}"#,
            "has the schema `landspeed.kernel/9[2J`, which this version does not know",
        ),
        (r#"{"schema": "landspeed.kernel/1", "kernel": {"links": {"known": [{"index": -1}]}}}"#, "invalid value"),
        (r#"{"schema": "landspeed.kernel/1", "kernel": {"root": "yes"}}"#, "invalid type"),
        (r#"{"schema": "landspeed.kernel/1", "interfaces": {"x": {"speed_bps": {"known": 1e400}}}}"#, "out of range"),
        (&deep, "EOF while parsing"),
    ];
    for (text, expected) in cases {
        let said = open(text).unwrap_or_else(|| panic!("accepted: {}", &text[..text.len().min(80)]));
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains('\u{1b}'), "{said:?}");
    }
    assert_eq!(open(r#"{"schema": "landspeed.kernel/1"}"#), None, "what is missing is unknown");
    let facts = facts(directory.path()).expect("a host");
    assert!(matches!(facts.default_interface, Fact::Unknown(_)) && facts.interfaces.is_empty());
}

#[test]
fn interface_names_with_paths_do_not_escape_the_recording() {
    let directory = tempfile::tempdir().expect("directory");
    let inside = directory.path().join("host");
    fs::create_dir_all(inside.join("sys/class/net")).expect("directory");
    fs::create_dir_all(directory.path().join("secret")).expect("directory");
    fs::write(directory.path().join("secret/ifindex"), "7").expect("written");
    let answers = r#"{"schema": "landspeed.kernel/1", "kernel": {"links": {"known": [
        {"index": 7, "name": "../../../../secret", "master": 7, "link": 7, "kind": "vlan"}]}}}"#;
    fs::write(inside.join("kernel.json"), answers).expect("written");
    let facts = facts(&inside).expect("a host");
    let nic = &facts.interfaces[0];
    assert!(matches!(nic.tx_queues, Fact::Unknown(_)), "{:?}", nic.tx_queues);
}

static ANSWERS: LazyLock<Vec<u8>> =
    LazyLock::new(|| fs::read(unpack("container").path().join("kernel.json")).expect("a fixture"));

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn random_bytes_are_not_a_host(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        claims::recorded_host(&bytes);
    }

    #[test]
    fn damaged_kernel_json_never_panics(at in any::<prop::sample::Index>(), with in "[-0-9a-z\"{}\\[\\]:,.]{0,12}", drop in 0_usize..12) {
        let mut bytes = ANSWERS.clone();
        let at = at.index(bytes.len());
        let end = (at + drop).min(bytes.len());
        bytes.splice(at..end, with.bytes());
        claims::recorded_host(&bytes);
    }
}
