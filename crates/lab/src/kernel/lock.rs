//! Locks: only one process at a time builds a kernel or uses the package index.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_sys::clock;
use landspeed_sys::file::open_lock;

use super::error::Error;

/// Polling interval of a waiting build, nanoseconds.
const POLL_NS: u64 = 200_000_000;

/// A held lock file. The lock is released when the process ends, in any way.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the lock if it is free.
    pub fn try_take(path: &Path) -> Result<Option<Self>, Error> {
        let mut file = open_lock(path).map_err(Error::io("lock", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", path)(error)),
        }
        // The previous holder may have removed the file between our open and our lock, which makes this lock invalid.
        let same = |a: std::fs::Metadata, b: std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        let current = file.metadata().and_then(|mine| Ok(same(mine, std::fs::metadata(path)?))).unwrap_or(false);
        if !current {
            return Ok(None);
        }
        // The PID is shown to users who wait for the lock; nothing else depends on it.
        let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Some(Self { path: path.to_owned(), _file: file }))
    }

    /// Waits for the lock; `waiting` is called once, with the PID of the holder if it is known. `Ok(None)` when
    /// interrupted.
    pub fn take(
        path: &Path,
        interrupted: &AtomicBool,
        mut waiting: impl FnMut(Option<u32>),
    ) -> Result<Option<Self>, Error> {
        let mut notified = false;
        loop {
            if let Some(lock) = Self::try_take(path)? {
                return Ok(Some(lock));
            }
            if !std::mem::replace(&mut notified, true) {
                waiting(holder(path));
            }
            clock::sleep_until(clock::monotonic_ns() + POLL_NS);
            if interrupted.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
    }

    /// Releases the lock and removes its file.
    pub fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn holder(path: &Path) -> Option<u32> {
    let mut text = String::new();
    File::open(path).ok()?.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_exclusive_until_dropped() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("lock");
        let lock = Lock::try_take(&path).expect("lockable").expect("free");
        assert!(Lock::try_take(&path).expect("lockable").is_none());
        let mut notified = Vec::new();
        let waited = Lock::take(&path, &AtomicBool::new(true), |pid| notified.push(pid)).expect("lockable");
        assert!(waited.is_none());
        assert_eq!(notified, [Some(std::process::id())]);
        lock.remove();
        assert!(!path.exists());
        assert!(Lock::try_take(&path).expect("lockable").is_some());
    }
}
