//! State directories, journals and locks that another user could have written are refused.

use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;

use crate::tune::bench::{Bench, bench, expect};
use crate::tune::crash::apply;

const OTHER_UID: u32 = 4242;
const SETTING: &[&str] = &["net.ipv4.tcp_mtu_probing=1"];
const INSECURE_OPTION: &str = "--insecure-permissions";

fn every_command() -> Vec<Vec<&'static str>> {
    vec![
        apply(SETTING, "600"),
        vec!["status"],
        vec!["confirm"],
        vec!["revert"],
        vec!["revert", "--persisted"],
        vec!["persist"],
    ]
}

fn refused(bench: &Bench, words: &[&str]) {
    let before = bench.snapshot();
    for command in every_command() {
        let text = expect(bench.tune(&command), 2);
        assert!(
            words.iter().all(|word| text.contains(word)) && text.contains(INSECURE_OPTION),
            "{command:?}: {text}"
        );
    }
    bench.snapshot().must_equal(&before, &"refused");
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
}

#[test]
fn a_state_directory_of_another_user_is_refused() {
    let bench = bench!();
    std::fs::create_dir(bench.state()).expect("made");
    chown(bench.state(), Some(OTHER_UID), None).expect("given away");
    refused(&bench, &["cannot use state directory", "owned by another user (uid 4242)"]);
    chown(bench.state(), Some(0), None).expect("taken");
    for open in [0o770, 0o707, 0o1777] {
        mode(&bench.state(), open);
        refused(&bench, &["cannot use state directory", "writable by others", "chmod go-w"]);
    }
    mode(&bench.state(), 0o755);
    let real = bench.directory.path().join("real");
    std::fs::rename(bench.state(), &real).expect("moved");
    symlink(&real, bench.state()).expect("linked");
    refused(&bench, &["cannot use state directory", "symbolic link"]);
    std::fs::remove_file(bench.state()).expect("removed");
    // The parent directory could be replaced.
    mode(bench.directory.path(), 0o777);
    refused(&bench, &["cannot use state directory", "writable by others (mode 0777)"]);
    assert!(!bench.state().exists());
}

#[test]
fn insecure_permissions_override_always_warns() {
    let bench = bench!();
    let before = bench.snapshot();
    std::fs::create_dir(bench.state()).expect("made");
    mode(&bench.state(), 0o777);
    for command in [&apply(SETTING, "600")[..], &["confirm"], &["revert"]] {
        let text = expect(bench.tune(&[command, &[INSECURE_OPTION]].concat()), 0);
        assert!(text.contains("warning") && text.contains("writable by others (mode 0777)"), "{command:?}: {text}");
    }
    bench.snapshot().must_equal(&before, &"reverted");
}

#[test]
fn journal_of_another_user_is_refused() {
    let bench = bench!();
    let before = bench.snapshot();
    expect(bench.tune(&apply(SETTING, "600")), 0);
    expect(bench.tune(&["confirm"]), 0);
    // A journal written by another user could restore arbitrary values and files.
    let journal = bench.state().join("0001.journal");
    chown(&journal, Some(OTHER_UID), None).expect("given away");
    refused(&bench, &["cannot use journal", "owned by another user (uid 4242)"]);
    chown(&journal, Some(0), None).expect("taken");
    mode(&journal, 0o622);
    refused(&bench, &["cannot use journal", "writable by others (mode 0622)"]);
    mode(&journal, 0o600);
    let elsewhere = bench.directory.path().join("elsewhere");
    std::fs::rename(&journal, &elsewhere).expect("moved");
    symlink(&elsewhere, &journal).expect("linked");
    refused(&bench, &["cannot use journal", "symbolic link"]);
    std::fs::rename(&elsewhere, &journal).expect("moved back");
    expect(bench.tune(&["revert"]), 0);
    bench.snapshot().must_equal(&before, &"reverted");
}

#[test]
fn symbolic_link_as_lock_is_refused() {
    let bench = bench!();
    let before = bench.snapshot();
    std::fs::create_dir(bench.state()).expect("made");
    let victim = bench.directory.path().join("victim");
    for there in [false, true] {
        if there {
            std::fs::write(&victim, "root's own").expect("written");
        }
        let _ = std::fs::remove_file(bench.state().join("lock"));
        symlink(&victim, bench.state().join("lock")).expect("linked");
        for command in [&apply(SETTING, "600")[..], &["confirm"], &["revert"], &["status"]] {
            let text = expect(bench.tune(command), 2);
            assert!(text.contains("cannot use lock") && text.contains("symbolic link"), "{command:?}: {text}");
        }
        assert_eq!(victim.exists(), there);
    }
    assert_eq!(std::fs::read_to_string(&victim).expect("there"), "root's own");
    bench.snapshot().must_equal(&before, &"nothing was changed");
}

#[test]
fn an_audit_writable_by_others_is_not_applied() {
    let bench = bench!();
    let before = bench.snapshot();
    let audit = bench.directory.path().join("audit.json");
    std::fs::write(&audit, "{}").expect("written");
    chown(&audit, Some(OTHER_UID), None).expect("given away");
    let arguments = ["apply", "--findings", audit.to_str().expect("plain")];
    let text = expect(bench.tune(&arguments), 2);
    assert!(text.contains("cannot use audit") && text.contains("owned by another user"), "{text}");
    // With sudo, the file's owner may apply it.
    let mut command = bench.tune(&arguments);
    command.env("SUDO_UID", OTHER_UID.to_string());
    let text = expect(command, 2);
    assert!(text.contains("is not an audit"), "{text}");
    chown(&audit, Some(0), None).expect("taken");
    mode(&audit, 0o666);
    let text = expect(bench.tune(&arguments), 2);
    assert!(text.contains("writable by others"), "{text}");
    bench.snapshot().must_equal(&before, &"nothing was changed");
}
