//! The tar archive and the checksums.

use std::process::Command;

use landspeed_testkit::or_skip;

use super::{Program, files, require, succeed};

#[test]
fn tarball_is_unpacked_over_usr_local_and_matches_its_checksum() {
    or_skip!(require(&["tar", "gzip", "sha256sum"]));
    let program = or_skip!(Program::new());
    let out = tempfile::tempdir().expect("a temporary directory");
    let archive = program.build_twice("tarball", out.path());
    succeed(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(out.path()));
    let local = tempfile::tempdir().expect("a temporary directory");
    let unpack = || {
        let mut tar = Command::new("tar");
        tar.args(["-xzf"]).arg(&archive).args(["--strip-components=1", "--no-same-owner", "-C"]).arg(local.path());
        succeed(&mut tar);
        files(local.path())
    };
    let installed = unpack();
    assert_eq!(unpack(), installed);
    for file in [
        "bin/landspeed",
        "lib/systemd/system/landspeed.service",
        "lib/sysusers.d/landspeed.conf",
        "share/bash-completion/completions/landspeed",
        "share/doc/landspeed/CHANGELOG.md",
        "share/doc/landspeed/serve.toml",
        "share/man/man1/landspeed-run.1",
    ] {
        assert!(installed.contains(&local.path().join(file)), "{file} is not in {installed:?}");
    }
    let said = succeed(Command::new(local.path().join("bin/landspeed")).arg("--version")).stdout;
    assert!(said.starts_with(b"landspeed "));
    let unit = std::fs::read_to_string(local.path().join("lib/systemd/system/landspeed.service")).expect("a unit");
    assert!(unit.contains("ExecStart=/usr/local/bin/landspeed serve --config /etc/landspeed/serve.toml"), "{unit}");
}

#[test]
fn the_account_of_the_unit_is_valid_for_systemd() {
    or_skip!(require(&["systemd-sysusers"]));
    let conf = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/sysusers.conf");
    let root = tempfile::tempdir().expect("a temporary directory");
    let said = succeed(
        Command::new("systemd-sysusers").arg("--dry-run").arg(format!("--root={}", root.path().display())).arg(conf),
    );
    let said = String::from_utf8_lossy(&said.stderr).into_owned() + &String::from_utf8_lossy(&said.stdout);
    assert!(said.contains("landspeed"), "{said}");
    let unit = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/landspeed.service"))
        .expect("a unit");
    assert!(unit.contains("\nUser=landspeed\n") && unit.contains("\nDynamicUser=yes\n"), "{unit}");
}
