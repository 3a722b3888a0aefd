//! The RPM package.

use std::path::PathBuf;
use std::process::Command;

use landspeed_testkit::or_skip;

use super::{Program, Root, last_line, require, succeed};

fn rpm(root: &Root) -> Command {
    let mut rpm = Command::new("rpm");
    rpm.arg(format!("--root={}", root.path("").display())).arg("--dbpath=/var/lib/rpm");
    rpm
}

#[test]
fn rpm_package_installs_upgrades_and_keeps_a_changed_configuration() {
    or_skip!(require(&["rpmbuild", "rpm"]));
    let program = or_skip!(Program::new());
    let out = tempfile::tempdir().expect("a temporary directory");
    let first = program.build_twice("rpm", out.path());
    let root = or_skip!(Root::new());
    let next = last_line(&succeed(program.package("rpm", out.path()).args(["--revision", "2"])));
    let before = root.files();
    let config = "etc/landspeed/serve.toml";
    // The root's shell is no package.
    succeed(rpm(&root).args(["--install", "--nodeps"]).arg(&first));
    let shipped = root.read(config);
    assert!(root.version().starts_with("landspeed "));
    root.write(config, "max_tests = 7\n");
    succeed(rpm(&root).args(["--upgrade", "--nodeps"]).arg(&next));
    assert_eq!(root.read(config), "max_tests = 7\n");
    let again = rpm(&root).args(["--upgrade", "--nodeps"]).arg(&next).output().expect("rpm runs");
    assert!(String::from_utf8_lossy(&again.stderr).contains("already installed"), "{again:?}");
    let list = ["--query", "--queryformat", "[%{FILENAMES} %{FILEFLAGS:fflags}\n]", "landspeed"];
    let list = String::from_utf8_lossy(&succeed(rpm(&root).args(list)).stdout).into_owned();
    assert!(list.lines().any(|line| line == "/etc/landspeed/serve.toml cn"), "config(noreplace): {list}");
    succeed(rpm(&root).args(["--erase", "landspeed"]));
    assert_eq!(root.read("etc/landspeed/serve.toml.rpmsave"), "max_tests = 7\n");
    std::fs::remove_file(root.path("etc/landspeed/serve.toml.rpmsave")).expect("removed");
    assert_eq!(root.changes(&before), Vec::<PathBuf>::new());
    assert_eq!(root.read("tmp/sysusers"), "landspeed.conf\n".repeat(2));
    // Installed anew, the shipped configuration is back.
    succeed(rpm(&root).args(["--install", "--nodeps"]).arg(&next));
    assert_eq!(root.read(config), shipped);
}

#[test]
fn rpmlint_accepts_the_rpm_package() {
    or_skip!(require(&["rpmbuild", "rpmlint"]));
    let program = or_skip!(Program::new());
    let out = tempfile::tempdir().expect("a temporary directory");
    let package = last_line(&succeed(&mut program.package("rpm", out.path())));
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/rpm/rpmlint.toml");
    let said = Command::new("rpmlint").args(["--strict", "--config", config]).arg(package).output();
    let said = said.expect("rpmlint runs");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && text.contains("0 errors, 0 warnings"), "{text}");
}
