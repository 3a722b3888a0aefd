//! A kernel's source: reading its version, unpacking or copying it, editing the copy.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_sys::file;

use super::child::Job;
use super::edits::Edit;
use super::error::Error;
use super::hash::Hasher;
use super::version::{MIN_VERSION, Version};

/// Code that a User-Mode kernel without devices never compiles: two thirds of the source. The Kconfig files in it
/// are kept, because the configuration reads all of them.
const UNUSED: &[&str] = &[
    "Documentation",
    "arch/alpha",
    "arch/arc",
    "arch/arm",
    "arch/arm64",
    "arch/csky",
    "arch/hexagon",
    "arch/loongarch",
    "arch/m68k",
    "arch/microblaze",
    "arch/mips",
    "arch/nios2",
    "arch/openrisc",
    "arch/parisc",
    "arch/powerpc",
    "arch/riscv",
    "arch/s390",
    "arch/sh",
    "arch/sparc",
    "arch/xtensa",
    "drivers/accel",
    "drivers/clk",
    "drivers/crypto",
    "drivers/gpu",
    "drivers/iio",
    "drivers/infiniband",
    "drivers/media",
    "drivers/net/ethernet",
    "drivers/net/wireless",
    "drivers/pinctrl",
    "drivers/scsi",
    "drivers/staging",
    "drivers/usb",
    "drivers/video",
    "sound/pci",
    "sound/soc",
    "sound/usb",
    "tools/perf",
    "tools/testing",
];

/// File extensions that are omitted in these directories.
const UNUSED_EXTENSIONS: &[&str] = &["S", "c", "dts", "dtsi", "h", "json", "rst", "svg", "txt", "yaml"];

/// Approximate number of unpacked files, for the progress line.
pub(super) const APPROX_FILES: u64 = 41_000;

/// Returns the version of the source in a directory; an error if there is none, or if it is too old.
pub(super) fn version_of_directory(directory: &Path) -> Result<Version, Error> {
    let makefile = directory.join("Makefile");
    let text = file::read_text(&makefile, file::MAX_TEXT_BYTES).map_err(|error| Error::NotAKernel {
        path: directory.to_owned(),
        why: format!("cannot read its Makefile: {error}"),
    })?;
    judge(directory, &text)
}

/// Returns the version of the source in a tarball, which is read up to its top-level Makefile.
pub(super) fn version_of_tarball(tarball: &Path, interrupted: &AtomicBool) -> Result<Version, Error> {
    // A FIFO or a device has no end.
    file::open(tarball)
        .map_err(|error| Error::NotAKernel { path: tarball.to_owned(), why: format!("cannot read it: {error}") })?;
    let mut command = Command::new("tar");
    command.arg("-xOf").arg(tarball);
    command.args(["--wildcards", "--no-wildcards-match-slash", "--occurrence=1", "*/Makefile"]);
    let job = Job { what: "reading the tarball", command, interrupted, log: None, place: tarball.to_owned() };
    let text = job.output().map_err(|error| match error {
        Error::Command { tail, .. } => Error::NotAKernel {
            path: tarball.to_owned(),
            why: format!("no Makefile in its top directory: {}", tail.replace('\n', "; ")),
        },
        other => other,
    })?;
    judge(tarball, &text)
}

fn judge(path: &Path, makefile: &str) -> Result<Version, Error> {
    let version = Version::from_makefile(makefile).ok_or_else(|| Error::NotAKernel {
        path: path.to_owned(),
        why: "its Makefile has no VERSION and PATCHLEVEL".to_owned(),
    })?;
    if version < MIN_VERSION { Err(Error::TooOld(version.to_string())) } else { Ok(version) }
}

/// Returns the patterns of the files that a copy of the source omits.
pub(super) fn unused_files() -> impl Iterator<Item = String> {
    let of = |directory: &&str| {
        let directory = (*directory).to_owned();
        UNUSED_EXTENSIONS.iter().map(move |extension| format!("{directory}/*.{extension}"))
    };
    UNUSED.iter().flat_map(of)
}

/// Unpacks the used part of a tarball; `file` is called for each file.
pub(super) fn unpack(
    tarball: &Path,
    into: &Path,
    interrupted: &AtomicBool,
    mut file: impl FnMut(),
) -> Result<(), Error> {
    let mut command = Command::new("tar");
    command.arg("-xvf").arg(tarball).arg("-C").arg(into);
    command.args(["--strip-components=1", "--no-same-owner", "--no-same-permissions"]);
    command.args(unused_files().map(|pattern| format!("--exclude={pattern}")));
    let place = into.parent().unwrap_or(into).to_owned();
    Job { what: "unpacking the source", command, interrupted, log: None, place }.run(|_| file())
}

/// Returns the files of a source directory that a build uses: sorted, relative, without the products of earlier
/// builds. `Ok(None)` when interrupted.
pub(super) fn files_of(root: &Path, interrupted: &AtomicBool) -> Result<Option<Vec<PathBuf>>, Error> {
    let (mut files, mut pending) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = pending.pop() {
        if interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let path = root.join(&directory);
        for entry in fs::read_dir(&path).map_err(Error::io("read", &path))? {
            let entry = entry.map_err(Error::io("read", &path))?;
            let kind = entry.file_type().map_err(Error::io("read", &entry.path()))?;
            let relative = directory.join(entry.file_name());
            if !is_used(&relative) {
                continue;
            }
            if kind.is_dir() {
                pending.push(relative);
            } else if kind.is_file() || kind.is_symlink() {
                files.push(relative);
            }
        }
    }
    files.sort_unstable();
    Ok(Some(files))
}

fn is_used(relative: &Path) -> bool {
    let extension = relative.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let name = relative.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let made = [".git", ".config", ".config.old", "vmlinux", "linux", "System.map"].contains(&name)
        && relative.components().count() == 1
        || ["o", "a", "ko", "cmd", "mod", "order"].contains(&extension)
        || relative.ends_with("include/generated")
        || relative == Path::new("include/config");
    let unused = || UNUSED_EXTENSIONS.contains(&extension) && UNUSED.iter().any(|part| relative.starts_with(part));
    !made && !unused()
}

/// Returns the hash over names, contents and executable bits. `Ok(None)` when interrupted.
pub(super) fn hash_of_files(
    root: &Path,
    files: &[PathBuf],
    interrupted: &AtomicBool,
) -> Result<Option<String>, Error> {
    let mut hasher = Hasher::default();
    for relative in files {
        if interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let path = root.join(relative);
        let metadata = fs::symlink_metadata(&path).map_err(Error::io("read", &path))?;
        hasher.field(relative.as_os_str().as_bytes());
        if metadata.is_symlink() {
            let target = fs::read_link(&path).map_err(Error::io("read", &path))?;
            hasher.field(b"link");
            hasher.field(target.as_os_str().as_bytes());
        } else {
            hasher.field(if metadata.permissions().mode() & 0o111 == 0 { b"file" } else { b"exec" });
            hasher.field(&fs::read(&path).map_err(Error::io("read", &path))?);
        }
    }
    Ok(Some(hasher.hex()))
}

/// Copies files of a source; `file` is called for each. `Ok(None)` when interrupted.
pub(super) fn copy(
    root: &Path,
    files: &[PathBuf],
    into: &Path,
    interrupted: &AtomicBool,
    mut file: impl FnMut(),
) -> Result<Option<()>, Error> {
    for relative in files {
        if interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (from, to) = (root.join(relative), into.join(relative));
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        let link = fs::read_link(&from);
        match link {
            Ok(target) => std::os::unix::fs::symlink(target, &to),
            Err(_) => fs::copy(&from, &to).map(drop),
        }
        .map_err(Error::io("copy", &from))?;
        file();
    }
    Ok(Some(()))
}

/// Copies a build tree with source and objects, with the times of its files: make then compiles only what changes.
pub(super) fn copy_tree(from: &Path, into: &Path, interrupted: &AtomicBool) -> Result<(), Error> {
    let mut command = Command::new("cp");
    command.args(["-a", "--reflink=auto", "--"]).arg(from).arg(into);
    let place = into.parent().unwrap_or(into).to_owned();
    Job { what: "copying the build tree", command, interrupted, log: None, place }.run(|_| ())
}

/// Applies all edits to a copy of the source, or none: the first that does not fit is the error.
pub(super) fn edit(source: &Path) -> Result<(), Error> {
    let mut changed: Vec<(PathBuf, String)> = Vec::new();
    for edit in Edit::all() {
        let path = edit.path_in(source);
        let before = match changed.iter().find(|(other, _)| *other == path) {
            Some((_, text)) => text.clone(),
            None => fs::read_to_string(&path).map_err(|_| edit.without_file())?,
        };
        let after = edit.apply(&before)?;
        changed.retain(|(other, _)| *other != path);
        changed.push((path, after));
    }
    for (path, text) in changed {
        // A file copied from a read-only tree is read-only: replace it by a new one.
        fs::remove_file(&path).and_then(|()| fs::write(&path, text)).map_err(Error::io("write", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::edits::fitting_source;

    const MAKEFILE: &str = "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\n";

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("below the root")).expect("made");
            fs::write(path, text).expect("written");
        }
        directory
    }

    fn not_interrupted() -> AtomicBool {
        AtomicBool::new(false)
    }

    #[test]
    fn a_kernel_without_seccomp_mode_is_refused() {
        let old = tree(&[("Makefile", "VERSION = 6\nPATCHLEVEL = 15\nSUBLEVEL = 9\n")]);
        let error = version_of_directory(old.path()).expect_err("too old").to_string();
        assert!(error.contains("6.15.9") && error.contains("seccomp") && error.contains("6.16"), "{error}");
    }

    #[test]
    fn paths_without_kernel_source_are_refused() {
        let other = tree(&[("Makefile", "all:\n")]);
        for path in [other.path(), Path::new("/nonexistent")] {
            let error = version_of_directory(path).expect_err("no kernel").to_string();
            assert!(error.contains("is not a kernel source"), "{error}");
        }
        let junk = tree(&[("x.tar.xz", "not a tarball")]);
        let error =
            version_of_tarball(&junk.path().join("x.tar.xz"), &not_interrupted()).expect_err("junk").to_string();
        assert!(error.contains("is not a kernel source"), "{error}");
    }

    #[test]
    fn a_tarball_gives_its_version_and_needed_files() {
        let source = tree(&[
            ("linux/Documentation/Makefile", "VERSION = 1\n"),
            ("linux/Documentation/Kconfig", "x"),
            ("linux/Documentation/a/b.rst", "x"),
            ("linux/drivers/gpu/drm/a.c", "x"),
            ("linux/include/sound/core.h", "x"),
            ("linux/Makefile", MAKEFILE),
        ]);
        let tarball = source.path().join("linux.tar");
        let status = Command::new("tar").arg("-C").arg(source.path()).arg("-cf").arg(&tarball).arg("linux").status();
        assert!(status.expect("tar is everywhere").success());
        assert_eq!(version_of_tarball(&tarball, &not_interrupted()).expect("a kernel").to_string(), "7.3.4");
        let into = tempfile::tempdir().expect("a temporary directory");
        unpack(&tarball, into.path(), &not_interrupted(), || ()).expect("unpacked");
        let there = files_of(into.path(), &not_interrupted()).expect("readable").expect("not_interrupted");
        let expected = ["Documentation/Kconfig", "Documentation/Makefile", "Makefile", "include/sound/core.h"];
        assert_eq!(there, expected.map(PathBuf::from));
    }

    #[test]
    fn a_source_directory_is_copied_without_build_products() {
        let source = tree(&[
            ("Makefile", MAKEFILE),
            (".config", "x"),
            (".git/HEAD", "x"),
            ("include/config/auto.conf", "x"),
            ("include/generated/x.h", "x"),
            ("arch/x86/include/generated/asm/x.h", "x"),
            ("kernel/fork.c", "x"),
            ("kernel/fork.o", "x"),
            ("kernel/.fork.o.cmd", "x"),
            ("net/config/keep.h", "x"),
            ("drivers/scsi/sd.c", "x"),
            ("drivers/scsi/Kconfig", "x"),
        ]);
        std::os::unix::fs::symlink("kernel/fork.c", source.path().join("link")).expect("linked");
        let files = files_of(source.path(), &not_interrupted()).expect("readable").expect("not_interrupted");
        let expected = ["Makefile", "drivers/scsi/Kconfig", "kernel/fork.c", "link", "net/config/keep.h"];
        assert_eq!(files, expected.map(PathBuf::from));
        let hash = hash_of_files(source.path(), &files, &not_interrupted()).expect("readable");
        let into = tempfile::tempdir().expect("a temporary directory");
        copy(source.path(), &files, into.path(), &not_interrupted(), || ())
            .expect("copied")
            .expect("not_interrupted");
        assert_eq!(hash_of_files(into.path(), &files, &not_interrupted()).expect("readable"), hash);
        fs::write(into.path().join("kernel/fork.c"), "y").expect("written");
        assert_ne!(hash_of_files(into.path(), &files, &not_interrupted()).expect("readable"), hash);
        assert_eq!(fs::read_to_string(source.path().join("kernel/fork.c")).expect("there"), "x");
        assert!(source.path().join("kernel/fork.o").exists());
    }

    #[test]
    fn all_edits_are_applied_even_to_read_only_files() {
        let source = fitting_source();
        for edit in Edit::all() {
            let path = edit.path_in(source.path());
            fs::set_permissions(path, fs::Permissions::from_mode(0o444)).expect("changed");
        }
        edit(source.path()).expect("all fit");
        for edit in Edit::all() {
            let text = fs::read_to_string(edit.path_in(source.path())).expect("there");
            assert!(text.contains(&edit.new) && text.ends_with("after\n"), "{}", edit.name);
        }
    }

    #[test]
    fn one_failing_edit_prevents_all_edits() {
        let source = fitting_source();
        let last = Edit::all().pop().expect("some");
        let path = last.path_in(source.path());
        let moved = fs::read_to_string(&path).expect("there").replacen(&last.old, "moved", 1);
        fs::write(path, moved).expect("written");
        let error = edit(source.path()).expect_err("moved").to_string();
        assert!(error.contains(&last.name) && error.contains("--version or --source"), "{error}");
        let first = &Edit::all()[0];
        assert!(fs::read_to_string(first.path_in(source.path())).expect("there").contains(&first.old));
        fs::remove_file(first.path_in(source.path())).expect("removed");
        let error = edit(source.path()).expect_err("missing").to_string();
        assert!(error.contains("does not exist"), "{error}");
    }
}
