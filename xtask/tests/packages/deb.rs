//! The Debian package.

use std::path::{Path, PathBuf};
use std::process::Command;

use landspeed_testkit::{or_skip, skip};

use super::{Program, Root, require, succeed};

fn dpkg(root: &Root) -> Command {
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.path("").display()));
    // Conffiles as in an unattended upgrade; no synchronous writes.
    dpkg.args(["--force-confdef", "--force-confold", "--force-unsafe-io", "--log=/dev/null"]);
    dpkg.env("DEBIAN_FRONTEND", "noninteractive");
    dpkg
}

/// The same package as version 0.0.1 with another configuration.
fn older(package: &Path, place: &Path) -> PathBuf {
    let tree = place.join("older");
    succeed(Command::new("dpkg-deb").arg("-R").arg(package).arg(&tree));
    let control = std::fs::read_to_string(tree.join("DEBIAN/control")).expect("a control file");
    let older: String = control
        .lines()
        .map(|line| if line.starts_with("Version: ") { "Version: 0.0.1-1\n".to_owned() } else { format!("{line}\n") })
        .collect();
    std::fs::write(tree.join("DEBIAN/control"), older).expect("writable");
    std::fs::write(tree.join("etc/landspeed/serve.toml"), "max_tests = 1\n").expect("writable");
    let package = place.join("older.deb");
    succeed(Command::new("dpkg-deb").args(["-Zgzip", "-z1", "--root-owner-group", "-b"]).arg(&tree).arg(&package));
    package
}

/// Installs, upgrades, removes and purges in `root`, and asserts that only journals of `tune` remain.
fn install_upgrade_remove_purge(root: &Root, package: &Path) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let older = older(package, place.path());
    let before = root.files();
    let config = "etc/landspeed/serve.toml";

    // An unchanged configuration is replaced by an upgrade, a changed one is kept beside the new one.
    succeed(dpkg(root).arg("-i").arg(&older));
    assert_eq!(root.read(config), "max_tests = 1\n");
    succeed(dpkg(root).arg("-i").arg(package));
    let shipped = root.read(config);
    assert!(shipped.contains("max_tests = 32"), "{shipped}");
    assert!(root.version().starts_with("landspeed "));
    succeed(dpkg(root).arg("--purge").arg("landspeed"));
    succeed(dpkg(root).arg("-i").arg(&older));
    root.write(config, "max_tests = 7\n");
    succeed(dpkg(root).arg("-i").arg(package));
    assert_eq!(root.read(config), "max_tests = 7\n");
    assert_eq!(root.read("etc/landspeed/serve.toml.dpkg-dist"), shipped);
    // Installing the same version again changes nothing.
    let installed = root.files();
    succeed(dpkg(root).arg("-i").arg(package));
    assert_eq!(root.changes(&installed), Vec::<PathBuf>::new());
    let changed = succeed(dpkg(root).args(["--verify", "landspeed"])).stdout;
    assert_eq!(String::from_utf8_lossy(&changed), "??5?????? c /etc/landspeed/serve.toml\n");

    // What an administrator and the program add.
    let link = "etc/systemd/system/multi-user.target.wants/landspeed.service";
    root.write(link, "");
    root.write("var/lib/landspeed/tune/1.json", "{}");
    succeed(dpkg(root).arg("--remove").arg("landspeed"));
    assert!(!root.path("usr/bin/landspeed").exists());
    assert_eq!(root.read(config), "max_tests = 7\n");
    succeed(dpkg(root).arg("--purge").arg("landspeed"));
    assert_eq!(root.read("var/lib/landspeed/tune/1.json"), "{}", "the host's original settings are kept");
    std::fs::remove_dir_all(root.path("var/lib/landspeed")).expect("removed");
    assert_eq!(root.changes(&before), Vec::<PathBuf>::new());

    // Without journals, their directory goes, too.
    succeed(dpkg(root).arg("-i").arg(package));
    std::fs::create_dir_all(root.path("var/lib/landspeed/tune")).expect("created");
    succeed(dpkg(root).arg("--purge").arg("landspeed"));
    assert!(!root.path("var/lib/landspeed").exists());
    assert_eq!(root.changes(&before), Vec::<PathBuf>::new());
}

#[test]
fn debian_package_installs_upgrades_and_leaves_nothing_after_purge() {
    or_skip!(require(&["dpkg", "dpkg-deb"]));
    let program = or_skip!(Program::new());
    let out = tempfile::tempdir().expect("a temporary directory");
    let package = program.build_twice("deb", out.path());
    let root = or_skip!(Root::new());
    install_upgrade_remove_purge(&root, &package);
    let calls = root.read("tmp/sysusers");
    assert!(calls.lines().all(|line| line == "landspeed.conf") && calls.lines().count() >= 4, "{calls}");
}

#[test]
fn lintian_accepts_the_debian_package() {
    or_skip!(require(&["dpkg-deb", "lintian"]));
    let program = or_skip!(Program::new());
    let out = tempfile::tempdir().expect("a temporary directory");
    succeed(&mut program.package("deb", out.path()));
    let package = std::fs::read_dir(out.path()).expect("a directory").flatten().map(|entry| entry.path());
    let package = package.filter(|path| path.extension().is_some_and(|end| end == "deb"));
    let said = Command::new("lintian").args(["--allow-root", "--fail-on=error,warning"]).args(package).output();
    let said = said.expect("lintian runs");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && text.is_empty(), "{text}{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
#[ignore = "long: makes a Debian root, 140 MB"]
fn a_clean_debian_root_has_the_account_until_it_is_removed() {
    or_skip!(require(&["dpkg", "dpkg-deb", "mmdebstrap"]));
    if !super::is_root() {
        skip!("a Debian root needs root");
    }
    let program = or_skip!(Program::new());
    let out = tempfile::tempdir().expect("a temporary directory");
    succeed(&mut program.package("deb", out.path()));
    let root = Root(tempfile::tempdir().expect("a temporary directory"));
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap.args(["--quiet", "--variant=essential", "--include=systemd-standalone-sysusers", "bookworm"]);
    succeed(mmdebstrap.arg(root.path("")));
    let package = std::fs::read_dir(out.path()).expect("a directory").flatten().map(|entry| entry.path());
    let package = package.filter(|path| path.extension().is_some_and(|end| end == "deb")).last().expect("a package");
    install_upgrade_remove_purge(&root, &package);
    // Accounts stay: a file may still belong to one.
    assert!(
        root.read("etc/passwd").lines().any(|line| line.starts_with("landspeed:")),
        "{}",
        root.read("etc/passwd")
    );
}
