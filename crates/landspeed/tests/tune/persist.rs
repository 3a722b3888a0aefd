//! Files that apply settings at boot: all of them are written or none.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use landspeed_testkit::skip;

use crate::tune::bench::{Bench, bench, expect, output_text, run, was_killed};
use crate::tune::crash::apply;
use crate::tune::others::Mounted;

const FAULT_VARIABLE: &str = "LANDSPEED_TUNE_FAULT";
const SYSCTL_FILE: &str = "etc/sysctl.d/90-landspeed.conf";

/// Content, permissions and owner of every file below a directory.
fn files(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32, u32)> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory").flatten() {
            let data = entry.metadata().expect("its data");
            if data.is_dir() {
                open.push(entry.path());
                found.insert(entry.path(), (Vec::new(), data.mode(), data.uid()));
            } else {
                found.insert(entry.path(), (std::fs::read(entry.path()).expect("its text"), data.mode(), data.uid()));
            }
        }
    }
    found
}

/// A root directory with existing files, optionally one with our file name.
fn create_root(bench: &Bench, with_ours: bool) -> PathBuf {
    let root = bench.directory.path().join("root");
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(root.join("etc")).expect("a directory");
    std::fs::write(root.join("etc/sysctl.conf"), "net.ipv4.tcp_sack = 1\n").expect("written");
    if with_ours {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::create_dir_all(root.join("etc/sysctl.d")).expect("a directory");
        std::fs::write(root.join(SYSCTL_FILE), "# kept\nnet.ipv4.tcp_ecn = 1\n").expect("written");
        std::fs::set_permissions(root.join(SYSCTL_FILE), std::fs::Permissions::from_mode(0o600)).expect("set");
    }
    root
}

fn apply_and_confirm(bench: &Bench) {
    bench.remove_state();
    expect(bench.tune(&apply(&["net.ipv4.tcp_mtu_probing=1", "net.core.somaxconn=8192"], "600")), 0);
    expect(bench.tune(&["confirm"]), 0);
}

fn command_with_root<'a>(command: &[&'a str], root: &'a Path) -> Vec<&'a str> {
    [command, &["--root", root.to_str().expect("plain")]].concat()
}

#[test]
fn persist_and_undo_are_atomic() {
    let bench = bench!();
    for with_ours in [false, true] {
        let root = create_root(&bench, with_ours);
        let before = files(&root);
        apply_and_confirm(&bench);
        expect(bench.tune(&command_with_root(&["persist"], &root)), 0);
        let whole = files(&root);
        assert_ne!(whole, before);
        expect(bench.tune(&["revert", "--persisted"]), 0);
        assert_eq!(files(&root), before, "undone; there was one before: {with_ours}");
        expect(bench.tune(&["revert"]), 0);
        for undo in [false, true] {
            let mut ends = 0;
            for kind in ["after-record", "after-write"] {
                for number in 1..20 {
                    let root = create_root(&bench, with_ours);
                    apply_and_confirm(&bench);
                    let command = if undo {
                        expect(bench.tune(&command_with_root(&["persist"], &root)), 0);
                        vec!["revert", "--persisted"]
                    } else {
                        command_with_root(&["persist"], &root)
                    };
                    let mut command = bench.tune(&command);
                    command.env(FAULT_VARIABLE, format!("{kind}:{number}"));
                    let killed = was_killed(&run(command));
                    let finished = bench.has_record(1, if undo { "unpersisted" } else { "persisted" });
                    bench.status();
                    let expected = if finished && !undo { &whole } else { &before };
                    assert_eq!(&files(&root), expected, "{kind}:{number}, undo: {undo}, ours before: {with_ours}");
                    expect(bench.tune(&["revert"]), 0);
                    if !killed {
                        break;
                    }
                    ends += 1;
                }
            }
            assert_eq!(ends, 3, "two records and a file");
        }
    }
}

#[test]
fn persist_on_a_read_only_etc_fails_cleanly() {
    let bench = bench!();
    let root = create_root(&bench, true);
    let before = files(&root);
    apply_and_confirm(&bench);
    let place = bench.directory.path().join("read-only");
    let Some(mounted) = Mounted::read_only(&root, &place) else { skip!("mounting needs root") };
    let text = expect(bench.tune(&command_with_root(&["persist"], &place)), 2);
    assert!(text.contains("Read-only file system") && text.contains("nothing was left behind"), "{text}");
    drop(mounted);
    assert_eq!(files(&root), before);
    let status = bench.status();
    assert!(status["transactions"][0]["persisted"].is_null(), "{status:#}");
    // The same transaction can then be persisted elsewhere.
    expect(bench.tune(&command_with_root(&["persist"], &root)), 0);
}

#[test]
fn foreign_edits_of_our_files_are_kept_and_reported() {
    let bench = bench!();
    let root = create_root(&bench, false);
    apply_and_confirm(&bench);
    expect(bench.tune(&command_with_root(&["persist"], &root)), 0);
    let theirs = std::fs::read_to_string(root.join(SYSCTL_FILE)).expect("written") + "net.ipv4.tcp_ecn = 1\n";
    std::fs::write(root.join(SYSCTL_FILE), &theirs).expect("written");
    let output = run(bench.tune(&["revert", "--persisted"]));
    assert_eq!(output.code, 1, "{}", output_text(&output));
    assert!(output_text(&output).contains("was changed since"), "{}", output_text(&output));
    assert_eq!(std::fs::read_to_string(root.join(SYSCTL_FILE)).expect("there"), theirs);
}
