//! The tree that goes into a package: `make install` below a directory, with fixed modes and dates.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

use super::build::{Build, output, set_mode};

/// A tree of files.
pub struct Stage {
    /// Absolute path.
    pub path: PathBuf,
    epoch: u64,
}

impl Stage {
    /// An empty one.
    pub fn empty(build: &Build<'_>, name: &str) -> Result<Self> {
        let path = build.root.join(&build.scratch).join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self { path, epoch: build.epoch })
    }

    /// What `make install` installs below `prefix`, with the configuration in /etc, or elsewhere.
    pub fn installed(build: &Build<'_>, name: &str, prefix: &str) -> Result<Self> {
        let stage = Self::empty(build, name)?;
        let mut make = Command::new("make");
        // Relative paths: make takes none with a space.
        make.current_dir(build.root).args(["--silent", "install", "MAKEFLAGS="]);
        make.arg(format!("PREFIX={prefix}"));
        make.arg(format!("DESTDIR={}", build.scratch.join(name).display()));
        make.arg(format!("BINARY={}", build.scratch.join("landspeed").display()));
        make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        make.env("SOURCE_DATE_EPOCH", build.epoch.to_string());
        output(&mut make).context("cannot stage the files")?;
        Ok(stage)
    }

    /// Writes a file.
    pub fn write(&self, below: &str, contents: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.path.join(below);
        let parent = path.parent().context("a file without a directory")?;
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        std::fs::write(&path, contents).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// Copies a file of the workspace.
    pub fn copy(&self, from: &Path, below: &str) -> Result<PathBuf> {
        self.write(below, std::fs::read(from).with_context(|| format!("cannot read {}", from.display()))?)
    }

    /// Compresses the manual pages, as distributions do.
    pub fn gzip_pages(&self) -> Result<()> {
        gzip(
            &self
                .files()?
                .into_iter()
                .filter(|path| path.extension().is_some_and(|end| end == "1"))
                .collect::<Vec<_>>(),
        )
    }

    /// All files, sorted.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(self.entries()?.into_iter().filter(|path| !path.is_dir()).collect())
    }

    /// Gives every file and directory the mode and the date that it has in each build, whatever the umask.
    pub fn finish(&self, executable: impl Fn(&Path) -> bool) -> Result<()> {
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(self.epoch);
        // From the leaves up: a change in a directory changes its date.
        for path in self.entries()?.iter().rev().chain([&self.path]) {
            let below = path.strip_prefix(&self.path).unwrap_or(path);
            set_mode(path, if path.is_dir() || executable(below) { 0o755 } else { 0o644 })?;
            let file = std::fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
            file.set_modified(date).with_context(|| format!("cannot date {}", path.display()))?;
        }
        Ok(())
    }

    /// Packs the entry `name` of the tree, or all of it (`.`), owned by root, sorted.
    pub fn tar(&self, name: &str, to: &Path) -> Result<()> {
        let mut tar = Command::new("tar");
        tar.args(["--create", "--sort=name", "--format=ustar", "--owner=root:0", "--group=root:0"]);
        tar.arg(format!("--mtime=@{}", self.epoch))
            .arg("--file")
            .arg(to)
            .arg("--directory")
            .arg(&self.path)
            .arg(name);
        output(&mut tar).map(drop)
    }

    /// All files and directories below it, sorted, each directory before what it contains.
    fn entries(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let mut open = vec![self.path.clone()];
        while let Some(directory) = open.pop() {
            let entries =
                std::fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
            for entry in entries {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    open.push(entry.path());
                }
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }
}

/// Compresses files like `gzip -n`: without name and date.
pub fn gzip(files: &[PathBuf]) -> Result<()> {
    output(Command::new("gzip").args(["-9", "-n", "-f"]).args(files)).map(drop)
}
