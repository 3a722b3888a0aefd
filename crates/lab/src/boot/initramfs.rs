//! The guest's file system: this program as `/init`, a console, and mount points. It contains no file of the
//! host, and only the results directory of the host can be reached from it, which the guest mounts.

use std::io::{self, Write};
use std::path::Path;

use cpio::newc::{self, ModeFileType};

/// Mount points of the guest.
const DIRECTORIES: &[&str] = &["dev", "proc", "sys", "tmp", "out"];
/// The console's device number, major and minor (Documentation/admin-guide/devices.txt).
const CONSOLE: (u32, u32) = (5, 1);

/// Writes an uncompressed cpio archive with `program` as `/init`.
pub fn write(program: &[u8], to: &Path) -> io::Result<()> {
    let mut out = io::BufWriter::new(std::fs::File::create(to)?);
    let mut inode = 0;
    let mut entry = |name: &str, kind: ModeFileType, permissions: u32| {
        inode += 1;
        newc::Builder::new(name).ino(inode).mode(permissions).set_mode_file_type(kind)
    };
    for directory in DIRECTORIES {
        entry(directory, ModeFileType::Directory, 0o755).write(&mut out, 0).finish()?;
    }
    let console = entry("dev/console", ModeFileType::Char, 0o600).rdev_major(CONSOLE.0).rdev_minor(CONSOLE.1);
    console.write(&mut out, 0).finish()?;
    let program = loaded(program);
    let size = u32::try_from(program.len()).map_err(|_| io::Error::other("the program is larger than 4 GiB"))?;
    let mut init = entry("init", ModeFileType::Regular, 0o755).write(&mut out, size);
    init.write_all(program)?;
    init.finish()?;
    newc::trailer(&mut out)?.flush()
}

/// Returns the part of a 64-bit ELF program that the kernel loads (elf(5)): symbols and debug information follow
/// it, and those of a debug build would fill the guest's memory. Other files are returned whole.
fn loaded(program: &[u8]) -> &[u8] {
    const LOAD: u32 = 1;
    let u16_at = |at: usize| Some(u16::from_le_bytes(program.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(program.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_le_bytes(program.get(at..at + 8)?.try_into().ok()?));
    let end = || -> Option<usize> {
        if !program.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let (table, size, count) = (u64_at(32)?, u16_at(54)?, u16_at(56)?);
        let mut end = table + u64::from(size) * u64::from(count);
        for number in 0..u64::from(count) {
            let header = usize::try_from(table + number * u64::from(size)).ok()?;
            if u32_at(header)? == LOAD {
                end = end.max(u64_at(header + 8)?.checked_add(u64_at(header + 32)?)?);
            }
        }
        usize::try_from(end).ok()
    };
    end().and_then(|end| program.get(..end)).unwrap_or(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_omits_symbols_of_the_program() {
        let own = std::fs::read("/proc/self/exe").expect("readable");
        let loaded = loaded(&own);
        assert!(loaded.len() < own.len(), "this program has symbols");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("program");
        std::fs::write(&path, loaded).expect("writable");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("permissions");
        let listed = std::process::Command::new(&path).arg("--list").output().expect("it runs");
        assert!(listed.status.success(), "{listed:?}");
        for whole in [&b"\x7fELF program"[..], b"", b"#!/bin/sh"] {
            assert_eq!(super::loaded(whole), whole);
        }
    }

    #[test]
    fn the_archive_contains_only_program_and_mount_points() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("initramfs");
        write(b"\x7fELF program", &path).expect("writable");
        let mut left = std::fs::File::open(&path).expect("written");
        let mut names = Vec::new();
        loop {
            let reader = newc::Reader::new(left).expect("an entry");
            if reader.entry().is_trailer() {
                break;
            }
            let entry = reader.entry();
            names.push((entry.name().to_owned(), entry.mode() & 0o170_000, entry.file_size()));
            left = reader.finish().expect("the next entry");
        }
        let kinds: Vec<_> = names.iter().map(|(name, kind, size)| (name.as_str(), *kind, *size)).collect();
        let expected = [
            ("dev", 0o040_000, 0),
            ("proc", 0o040_000, 0),
            ("sys", 0o040_000, 0),
            ("tmp", 0o040_000, 0),
            ("out", 0o040_000, 0),
            ("dev/console", 0o020_000, 0),
            ("init", 0o100_000, 12),
        ];
        assert_eq!(kinds, expected);
    }
}
