//! Files that are written completely or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Writes a file completely or not at all: to a temporary file in the same directory, which is then renamed.
/// Devices and pipes are written directly.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    if is_special(path) {
        let mut file = OpenOptions::new().write(true).open(path)?;
        return file.write_all(content);
    }
    let temporary_path = temporary_path(path);
    let result = (|| {
        let mut file = BufWriter::new(File::create(&temporary_path)?);
        file.write_all(content)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        std::fs::rename(&temporary_path, path)
    })();
    if result.is_err() {
        let _ = std::fs::remove_file(&temporary_path);
    }
    result
}

/// Checks that [`write_atomically`] can write to a path.
pub fn check_writable(path: &Path) -> io::Result<()> {
    if is_special(path) {
        return OpenOptions::new().write(true).open(path).map(drop);
    }
    let temporary_path = temporary_path(path);
    File::create(&temporary_path).and_then(|_| std::fs::remove_file(&temporary_path))
}

fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| !m.is_file())
}

/// Returns the path of the temporary file that is renamed to `path`.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(std::ffi::OsStr::to_os_string).unwrap_or_default();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}
