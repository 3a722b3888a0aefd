//! The working directory of a guest. It contains the guest's memory, a file that must be mapped executable.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use landspeed_units::Bytes;

/// Environment variable with the directory in which guests get their working directory.
pub const DIRECTORY_VARIABLE: &str = "LANDSPEED_LAB_TMP";

/// A temporary directory, removed on drop.
#[derive(Debug)]
pub struct MemoryDirectory {
    path: PathBuf,
}

/// Error: no candidate directory is writable, large enough, and not mounted noexec.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot create the guest's memory: no directory is writable and not mounted noexec: {tried}\nSet {DIRECTORY_VARIABLE} to such a directory."
)]
pub struct MemoryDirectoryError {
    tried: String,
}

impl MemoryDirectory {
    /// Creates the directory: in `LANDSPEED_LAB_TMP` if that is set, otherwise in the first usable one of `/dev/shm`,
    /// the temporary directory and `/var/tmp`. `needed_bytes` must be free there, since the guest's memory is allocated
    /// as it is used.
    pub fn make(needed_bytes: u64) -> Result<Self, MemoryDirectoryError> {
        let candidates = match std::env::var_os(DIRECTORY_VARIABLE) {
            Some(named) => vec![PathBuf::from(named)],
            None => vec![PathBuf::from("/dev/shm"), std::env::temp_dir(), PathBuf::from("/var/tmp")],
        };
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mut tried = Vec::new();
        for candidate in candidates {
            match Self::make_in(&candidate, needed_bytes, &mounts) {
                Ok(place) => return Ok(place),
                Err(why) => tried.push(format!("{} ({why})", candidate.display())),
            }
        }
        Err(MemoryDirectoryError { tried: tried.join(", ") })
    }

    fn make_in(directory: &Path, needed_bytes: u64, mounts: &str) -> Result<Self, String> {
        let directory = directory.canonicalize().map_err(|e| e.to_string())?;
        if mounted_noexec(&directory, mounts) {
            return Err("mounted noexec".to_owned());
        }
        let free = landspeed_sys::disk::available_bytes(&directory).map_err(|e| e.to_string())?;
        if free < needed_bytes {
            return Err(format!("{} free, {} needed", Bytes::new(free), Bytes::new(needed_bytes)));
        }
        remove_stale(&directory);
        // In a directory that everybody may write, a name that can be guessed can be taken.
        let make = || {
            let unique = u64::from_ne_bytes(landspeed_sys::random::bytes()?);
            let path = directory.join(format!("{PREFIX}{}.{unique:016x}", std::process::id()));
            DirBuilder::new().mode(0o700).create(&path).map(|()| path)
        };
        make().map(|path| Self { path }).map_err(|e: io::Error| e.to_string())
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for MemoryDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Prefix of the directories' names; the PID and random digits follow.
const PREFIX: &str = "landspeed-lab.";

/// Removes directories of dead processes, which were killed before they could.
fn remove_stale(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('.').next()?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            // Directories of other users stay: removing them fails.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns whether the mount that contains a directory has the option `noexec`, by `/proc/self/mounts`.
fn mounted_noexec(directory: &Path, mounts: &str) -> bool {
    mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?.replace("\\040", " "), words.nth(1)?))
        })
        .filter(|(at, _)| directory.starts_with(at))
        // Of two mounts on one directory, the later one is effective.
        .reduce(|best, next| if next.0.len() >= best.0.len() { next } else { best })
        .is_some_and(|(_, options)| options.split(',').any(|option| option == "noexec"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    #[test]
    fn the_nearest_mount_decides_about_noexec() {
        let mounts =
            "/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw,nosuid,noexec 0 0\ntmpfs /dev/shm/x tmpfs rw 0 0\n";
        assert!(!mounted_noexec(Path::new("/tmp"), mounts));
        assert!(mounted_noexec(Path::new("/dev/shm"), mounts));
        assert!(mounted_noexec(Path::new("/dev/shm/y"), mounts));
        assert!(!mounted_noexec(Path::new("/dev/shm/x/y"), mounts));
        assert!(!mounted_noexec(Path::new("/dev/shmoo"), mounts));
    }

    #[test]
    fn a_memory_directory_is_removed_with_its_value() {
        let place = MemoryDirectory::make(1 << 20).expect("somewhere");
        let path = place.path().to_owned();
        assert_eq!(std::fs::metadata(&path).expect("a directory").permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("memory"), b"x").expect("writable");
        drop(place);
        assert!(!path.exists());
    }

    #[test]
    fn only_directories_of_dead_processes_are_swept() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // No process has number 0 in /proc.
        let (gone, mine) = (directory.path().join("landspeed-lab.0.0"), format!("{PREFIX}{}.7", std::process::id()));
        let (mine, other) = (directory.path().join(mine), directory.path().join("landspeed-lab.x"));
        for path in [&gone, &mine, &other] {
            std::fs::create_dir(path).expect("writable");
        }
        remove_stale(directory.path());
        assert!(!gone.exists() && mine.exists() && other.exists());
    }
}
