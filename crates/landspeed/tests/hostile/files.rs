//! Keys, user files and configurations that other users could have read or written.

use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use landspeed_testkit::skip;

use crate::hostile::common::{Process, TIMEOUT_S, landspeed, run, scratch};

const INSECURE_OPTION: &str = "--insecure-permissions";

/// Creates a file with this content and mode.
fn file(directory: &Path, name: &str, content: &str, mode: u32) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, content).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
    path
}

/// Returns a directory that everybody may search.
fn public_directory() -> tempfile::TempDir {
    let directory = scratch();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).expect("set");
    directory
}

fn key(directory: &Path, mode: u32) -> PathBuf {
    file(directory, "site.key", &"07".repeat(32), mode)
}

/// Returns standard error of a command that must fail.
fn failure(arguments: &[&str]) -> String {
    let mut command = landspeed();
    command.args(arguments);
    let ended = Process::start(command).end(TIMEOUT_S);
    // The drop-in mode exits as iperf3 does.
    let code = if arguments.first() == Some(&"iperf3") { 1 } else { 2 };
    assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
    ended.stderr
}

#[test]
fn a_key_readable_by_others_is_refused_with_advice() {
    let directory = public_directory();
    let path = key(directory.path(), 0o644);
    let path = path.to_str().expect("plain");
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0", "--key-file", path][..],
        &["check", "--peer", "127.0.0.1:9", "--key-file", path],
        &["run", "127.0.0.1:9", "--key-file", path],
    ] {
        let said = failure(arguments);
        assert!(
            said.contains(&format!("cannot use key file {path}: it is readable by others (mode 0644)")),
            "{said}"
        );
        assert!(said.contains(&format!("Run chmod 600 {path}, or pass {INSECURE_OPTION}.")), "{said}");
    }
    run("127.0.0.1:9", &["--key-file", path]).assert_failed("bad-key");
    let said = failure(&["run", "127.0.0.1:9", "--key-file", path, INSECURE_OPTION]);
    assert!(said.contains("warning") && said.contains("readable by others (mode 0644)"), "{said}");
    assert!(!said.contains("cannot use"), "it is used: {said}");
}

#[test]
fn linked_or_foreign_keys_are_refused() {
    let directory = scratch();
    let path = key(directory.path(), 0o600);
    let link = directory.path().join("link");
    symlink(&path, &link).expect("linked");
    let said = failure(&["run", "127.0.0.1:9", "--key-file", link.to_str().expect("plain")]);
    assert!(said.contains("it is a symbolic link"), "{said}");
    if !landspeed_sys::process::is_root() {
        skip!("giving files to another user needs root");
    }
    chown(&path, Some(4242), None).expect("given away");
    let said = failure(&["run", "127.0.0.1:9", "--key-file", path.to_str().expect("plain")]);
    assert!(said.contains("owned by another user (uid 4242)"), "{said}");
}

#[test]
fn invalid_key_file_is_named() {
    let directory = scratch();
    let path = file(directory.path(), "no.key", "nonsense", 0o600);
    let said = failure(&["run", "127.0.0.1:9", "--key-file", path.to_str().expect("plain")]);
    assert!(said.contains("--new-key"), "{said}");
}

#[test]
fn a_configuration_writable_by_others_is_refused() {
    let directory = public_directory();
    let config = file(directory.path(), "serve.toml", "max_tests = 4\n", 0o666);
    let said = failure(&["serve", "--config", config.to_str().expect("plain")]);
    assert!(
        said.contains("cannot use configuration file") && said.contains("writable by others (mode 0666)"),
        "{said}"
    );
    let users = file(directory.path(), "users.csv", "mario,00\n", 0o600);
    let pem = file(directory.path(), "private.pem", "nonsense", 0o640);
    let [users, pem] = [&users, &pem].map(|path| path.to_str().expect("plain"));
    let options = ["--authorized-users-path", users, "--rsa-private-key-path", pem];
    for server in [&["serve", "--listen", "127.0.0.1:0"][..], &["iperf3", "-s", "-p", "0"]] {
        let said = failure(&[server, &options].concat());
        assert!(said.contains("cannot use private key") && said.contains("readable by others"), "{server:?}: {said}");
    }
    let public = file(directory.path(), "public.pem", "nonsense", 0o646);
    let public = public.to_str().expect("plain");
    let said = failure(&["run", "127.0.0.1:9", "--iperf3", "--username", "mario", "--rsa-public-key-path", public]);
    assert!(said.contains("cannot use public key") && said.contains("writable by others"), "{said}");
}
