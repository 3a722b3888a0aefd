//! What the virtual machines of the tests boot: kernels with drivers as Debian's suites have them, a shell, and a root with
//! systemd. They stay under `target/`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::apt::{Apt, Index};
use super::setup::quiet;
use crate::machine;

/// Names the directory for the tests: one directory in it for each suite, `busybox`, and `root.img`.
pub const VARIABLE: &str = "LANDSPEED_MACHINES";

/// The suite of the sample in `make test` (6.1), and of the root.
const SAMPLE: &str = "bookworm";
/// Oldest and newest: 5.10 and 7.x.
const OTHERS: [&str; 2] = ["bullseye", "trixie-backports"];

/// Modules that the tests use; what these need comes with them. A suite's kernel may lack some, or have them built in.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_net",
    "virtio_blk",
    "e1000e",
    "vmxnet3",
    "8139cp",
    "crc32c_generic",
    "ext4",
    "veth",
    "sch_fq",
    "sch_fq_codel",
    "sch_htb",
    "sch_netem",
    "sch_tbf",
    "sch_ingress",
    "cls_bpf",
    "tcp_bbr",
    "tcp_diag",
    "udp_diag",
];

/// What the root with systemd has, beside what these need: every manager of interfaces that `tune persist` writes for.
const ROOT_PACKAGES: &str = "systemd-sysv,udev,dbus,ifupdown,network-manager,iproute2,ethtool,procps,kmod";

/// The kernel of the sample (70 MB, once), and the shell.
pub fn sample(root: &Path, no_install: bool) -> Result<PathBuf> {
    let place = root.join("target").join("machines");
    fetch(&place, "busybox", no_install, busybox)?;
    fetch(&place, SAMPLE, no_install, |new| kernel(SAMPLE, new))?;
    Ok(place)
}

/// The other kernels (180 MB, once) and the root, beside the sample's. Unavailable ones are skipped by their tests.
pub fn all(root: &Path, no_install: bool) -> Result<PathBuf> {
    let place = sample(root, no_install)?;
    for suite in OTHERS {
        if let Err(why) = fetch(&place, suite, no_install, |new| kernel(suite, new)) {
            println!("kernel of {suite}: {why:#}");
        }
    }
    if let Err(why) = fetch(&place, "root.img", no_install, root_image) {
        println!("root with systemd: {why:#}");
    }
    Ok(place)
}

/// Makes `name` in `place`, unless it is there. It is put in place only when it is whole: a rename within one file system.
fn fetch(place: &Path, name: &str, no_install: bool, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let there = place.join(name);
    if there.exists() {
        return Ok(());
    }
    ensure!(!no_install, "{name} is not downloaded yet");
    std::fs::create_dir_all(place).context("cannot make a directory")?;
    let scratch = tempfile::tempdir_in(place).context("cannot make a directory")?;
    let new = scratch.path().join(name);
    make(&new)?;
    std::fs::rename(&new, &there).context("cannot put it in place")
}

fn busybox(new: &Path) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    let tree = unpacked(SAMPLE, "busybox-static", scratch.path())?;
    // Two file systems, perhaps.
    std::fs::copy(tree.join("bin/busybox"), new).context("the package has no busybox")?;
    Ok(())
}

/// Image and modules of a suite's kernel: `vmlinuz`, `modules/NAME.ko`, and `order`, in which they are loaded.
fn kernel(suite: &str, new: &Path) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    let tree = unpacked(suite, "linux-image-amd64", scratch.path())?;
    let files = files(&tree)?;
    let image =
        files.iter().find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz")));
    std::fs::create_dir_all(new.join("modules")).context("cannot make a directory")?;
    std::fs::copy(image.context("the packages have no kernel")?, new.join("vmlinuz")).context("cannot copy it")?;
    let mut order = Vec::new();
    for module in MODULES {
        add_module(module, &files, &new.join("modules"), &mut order)?;
    }
    std::fs::write(new.join("order"), order.join("\n")).context("cannot write the order")
}

/// Copies a module after those that it needs. One that is not there is built in.
fn add_module(name: &str, files: &[PathBuf], to: &Path, order: &mut Vec<String>) -> Result<()> {
    let plain = |name: &str| name.replace('-', "_");
    let is = |path: &&PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.split_once(".ko").is_some_and(|(stem, _)| plain(stem) == plain(name))
    };
    let name = plain(name);
    let Some(file) = files.iter().find(is).filter(|_| !order.contains(&name)) else { return Ok(()) };
    let copy = to.join(format!("{name}.ko"));
    if file.extension().is_some_and(|extension| extension == "xz") {
        let module = Command::new("xz").args(["--decompress", "--stdout"]).arg(file).output();
        let module = module.context("cannot run xz")?;
        ensure!(module.status.success(), "xz failed: {}", String::from_utf8_lossy(&module.stderr));
        std::fs::write(&copy, module.stdout).context("cannot write a module")?;
    } else {
        std::fs::copy(file, &copy).context("cannot copy a module")?;
    }
    for needed in dependencies(&std::fs::read(&copy).context("cannot read a module")?) {
        add_module(&needed, files, to, order)?;
    }
    order.push(name);
    Ok(())
}

/// The names after `depends=` in a module's `.modinfo`: text ended by a zero byte.
fn dependencies(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else { return Vec::new() };
    let value = module[at + KEY.len()..].split(|&byte| byte == 0).next().unwrap_or_default();
    let value = String::from_utf8_lossy(value);
    value.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Downloads a package and the parts of a kernel that it depends on; returns their files, as one tree.
fn unpacked(suite: &str, package: &str, scratch: &Path) -> Result<PathBuf> {
    let apt = Apt::new(scratch)?;
    // A suite that moves daily is signed all the same where the mirror is behind.
    apt.read(suite, Index::ProgramsOfAnyAge)?;
    let tree = scratch.join("tree");
    std::fs::create_dir_all(&tree).context("cannot make a directory")?;
    let (mut wanted, mut done) = (vec![package.to_owned()], BTreeSet::new());
    while let Some(name) = wanted.pop() {
        if !done.insert(name.clone()) {
            continue;
        }
        apt.run(&["download", &name])?;
        let downloads = std::fs::read_dir(apt.downloads()).context("cannot read the download")?;
        let file = downloads.flatten().map(|entry| entry.path()).find(|path| {
            path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&format!("{name}_")))
        });
        let file = file.with_context(|| format!("{name} did not come"))?;
        let depends = Command::new("dpkg-deb").arg("--field").arg(&file).arg("Depends").output();
        wanted.extend(parts(&String::from_utf8_lossy(&depends.context("cannot run dpkg-deb")?.stdout)));
        quiet(Command::new("dpkg-deb").arg("--extract").arg(&file).arg(&tree))?;
    }
    Ok(tree)
}

/// The packages of a kernel among dependencies: image, and from Linux 7 on, its binary and modules.
fn parts(depends: &str) -> Vec<String> {
    let names = depends.split([',', '|']).filter_map(|dependency| dependency.split_whitespace().next());
    let is_part = |name: &&str| {
        ["linux-image-", "linux-binary-", "linux-modules-"].iter().any(|part| {
            name.strip_prefix(part).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        })
    };
    names.filter(is_part).map(str::to_owned).collect()
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).context("cannot read what was unpacked")? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path())?);
        } else {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// A root with systemd, as an ext4 image. The packages are configured in it, which needs root.
fn root_image(new: &Path) -> Result<()> {
    ensure!(machine::find("mmdebstrap").is_some(), "mmdebstrap is not installed");
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    let tree = scratch.path().join("root");
    let host = Command::new("apt-config").args(["dump", "Acquire"]).output().context("cannot run apt-config")?;
    let settings = scratch.path().join("apt.conf");
    let proxies: Vec<&str> = std::str::from_utf8(&host.stdout)
        .context("apt's settings are not text")?
        .lines()
        .filter(|line| line.contains("::Proxy"))
        .collect();
    std::fs::write(&settings, proxies.join("\n")).context("cannot write apt's settings")?;
    let mut make = Command::new("mmdebstrap");
    make.args(["--quiet", "--variant=minbase", "--aptopt=APT::Install-Recommends \"false\""]);
    make.arg(format!("--aptopt={}", settings.display())).arg(format!("--include={ROOT_PACKAGES}"));
    make.arg(SAMPLE).arg(&tree).arg("http://deb.debian.org/debian");
    quiet(&mut make)?;
    // Documentation and locales are of no use here.
    let _ = std::fs::remove_dir_all(tree.join("usr/share/doc"));
    let _ = std::fs::remove_dir_all(tree.join("usr/share/locale"));
    let mut image = Command::new("mke2fs");
    quiet(image.args(["-q", "-t", "ext4", "-d"]).arg(&tree).arg(new).arg("768M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_parts_of_a_kernel_are_followed() {
        let depends =
            "kmod, linux-base (>= 4.3~), initramfs-tools | linux-initramfs-tool, linux-image-6.1.0-50-amd64 (= 6.1)";
        assert_eq!(parts(depends), ["linux-image-6.1.0-50-amd64"]);
        let depends = "linux-base-7.3.4, linux-binary-7.3.4+deb13-amd64 (= 7.3.4-1), linux-modules-7.3.4+deb13-amd64, linux-modules-amd64";
        assert_eq!(parts(depends), ["linux-binary-7.3.4+deb13-amd64", "linux-modules-7.3.4+deb13-amd64"]);
    }

    #[test]
    fn a_modules_dependencies_are_read_from_it() {
        assert_eq!(
            dependencies(b"\x7fELF\0license=GPL\0depends=net_failover,virtio\0name=x\0"),
            ["net_failover", "virtio"]
        );
        assert!(dependencies(b"license=GPL\0depends=\0name=x").is_empty());
    }
}
