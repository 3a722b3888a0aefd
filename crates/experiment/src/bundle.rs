//! Files that workers need in addition to the sweep's directory: landspeed and the lab's kernels, named by
//! content.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use landspeed_lab::kernel::Kernel;
use landspeed_sweep::id;
use landspeed_sys::file::{self, AtomicFile};

use crate::error::Error;

/// Number of hexadecimal digits of the digest in a file name.
const DIGITS: usize = 16;

/// Paths of program and kernels in the sweep's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// Path of the landspeed executable.
    pub program: PathBuf,
    /// Directory of the lab's kernels.
    pub kernels: PathBuf,
}

impl Bundle {
    /// Returns the bundle's paths in `directory`, for a program with this content.
    pub fn in_directory(directory: &Path, program: &[u8]) -> Self {
        let digest: String = id::sha256(program).chars().take(DIGITS).collect();
        let bundle = directory.join("bundle");
        Self { program: bundle.join(format!("landspeed-{digest}")), kernels: bundle.join("kernels") }
    }

    /// Copies missing files. The name of a kernel's directory identifies its build inputs.
    pub fn stage(&self, program: &[u8], kernels: &[Kernel]) -> Result<(), Error> {
        self.copy(program, kernels).map_err(|cause| {
            let path = self.kernels.parent().unwrap_or(&self.kernels).to_owned();
            Error::Bundle { path, cause }
        })
    }

    fn copy(&self, program: &[u8], kernels: &[Kernel]) -> io::Result<()> {
        file::create_directory(&self.kernels)?;
        if !self.program.exists() {
            write_program(&self.program, program)?;
        }
        for kernel in kernels {
            let name = kernel.directory().file_name().ok_or(io::ErrorKind::InvalidFilename)?;
            let place = self.kernels.join(name);
            if !place.exists() {
                copy_directory(kernel.directory(), &place)?;
            }
        }
        Ok(())
    }
}

/// Writes the program completely or not at all.
fn write_program(path: &Path, program: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(program)?;
    file.set_mode(0o755)?;
    file.commit()
}

/// Copies a directory completely or not at all: under a temporary name first.
fn copy_directory(from: &Path, to: &Path) -> io::Result<()> {
    let part = to.with_extension(format!("{}.part", std::process::id()));
    let copied = copy_files(from, &part).and_then(|()| fs::rename(&part, to));
    if copied.is_err() {
        let _ = fs::remove_dir_all(&part);
    }
    copied
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    file::create_directory(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_files(&entry.path(), &place)?;
        } else {
            file::copy(&entry.path(), &place)?;
            // The kernel is an executable.
            fs::set_permissions(&place, entry.metadata()?.permissions())?;
            file::open(&place)?.sync_all()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_bundle_is_copied_once_and_named_by_its_content() {
        let directory = tempfile::tempdir().expect("a directory");
        let bundle = Bundle::in_directory(directory.path(), b"program");
        assert_ne!(bundle, Bundle::in_directory(directory.path(), b"another"));
        bundle.stage(b"program", &[]).expect("copied");
        let modified = || bundle.program.metadata().and_then(|file| file.modified()).expect("it is there");
        let first = modified();
        assert!(bundle.program.metadata().expect("it is there").permissions().mode() & 0o100 != 0);
        bundle.stage(b"program", &[]).expect("nothing to do");
        assert_eq!(modified(), first);
        assert!(bundle.kernels.is_dir());
    }
}
