//! What cannot be packaged, and where.

use std::process::Command;

use landspeed_testkit::{or_skip, skip};

use super::{Program, is_root, require};

/// Runs a command that must fail, and returns its error.
fn fail(command: &mut Command) -> String {
    let out = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success(), "{said}");
    said
}

#[test]
fn missing_program_is_named_with_its_debian_package() {
    let program = or_skip!(Program::new());
    let out = tempfile::tempdir().expect("a temporary directory");
    for (kind, missing) in [("deb", "make is not"), ("rpm", "make is not"), ("oci", "tar is not")] {
        let mut package = program.package(kind, out.path());
        let said = fail(package.env("PATH", out.path()));
        assert!(
            said.contains(&format!("{missing} installed")) && said.contains("\nInstall it: apt-get install "),
            "{said}"
        );
    }
    let made = std::fs::read_dir(out.path()).expect("a directory").count();
    assert_eq!(made, 0);
}

#[test]
fn dynamic_and_missing_programs_are_refused() {
    let out = tempfile::tempdir().expect("a temporary directory");
    let package = |binary: &str| {
        let mut xtask = Command::new(super::XTASK);
        xtask.args(["package", "tarball", "--binary", binary, "--out"]).arg(out.path());
        fail(&mut xtask)
    };
    let said = package("/nonexistent/landspeed");
    assert!(said.contains("cannot read /nonexistent/landspeed") && said.contains("make dist"), "{said}");
    let said = package(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    assert!(said.contains("not a 64-bit little-endian ELF file"), "{said}");
    let said = package("/usr/bin/env");
    assert!(said.contains("is not static: it needs ") || said.contains("cannot read"), "{said}");
    let said = package(super::XTASK);
    assert!(said.contains("landspeed-xtask is not landspeed"), "{said}");
}

#[test]
fn full_disk_leaves_no_part_of_a_package() {
    or_skip!(require(&["unshare", "mount"]));
    if !is_root() {
        skip!("mounting a small file system needs root");
    }
    let program = or_skip!(Program::new());
    let place = tempfile::tempdir().expect("a temporary directory");
    let package = program.package("tarball", place.path());
    let mut full = Command::new("unshare");
    let script = "mount -t tmpfs -o size=1M small \"$0\" && { \"$@\"; ls -A \"$0\"; echo left; }";
    full.env("SOURCE_DATE_EPOCH", "1700000000")
        .args(["--mount", "sh", "-c", script])
        .arg(place.path())
        .arg(package.get_program())
        .args(package.get_args());
    let out = full.output().expect("unshare runs");
    let said = String::from_utf8_lossy(&out.stderr);
    if said.contains("mount:") || said.contains("unshare:") {
        skip!("no mount namespace: {said}");
    }
    assert!(said.contains("cannot write ") && said.contains("No space left on device"), "{said}");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "left\n");
}
