//! The first file system of a machine: a shell, drivers, the program under test, and the files of the test.

use std::io::{self, Write};
use std::path::Path;

use cpio::newc::{self, ModeFileType};

/// A file of a test: path, permissions and text.
pub(super) type TestFile = (String, u32, String);

/// Writes an uncompressed cpio archive with the drivers of a kernel, whose directory in `downloads` is `suite`.
pub(super) fn write(to: &Path, downloads: &Path, suite: &str, program: &Path, files: &[TestFile]) -> io::Result<()> {
    let suite = downloads.join(suite);
    let mut archive = Archive { out: io::BufWriter::new(std::fs::File::create(to)?), made: Vec::new() };
    archive.add("init", 0o755, include_bytes!("init.sh"))?;
    archive.add("machine/agent", 0o755, include_bytes!("agent.sh"))?;
    archive.add("machine/bin/busybox", 0o755, &std::fs::read(downloads.join("busybox"))?)?;
    archive.add("machine/landspeed", 0o755, &std::fs::read(program)?)?;
    let order = std::fs::read_to_string(suite.join("order"))?;
    for module in order.lines() {
        let file = std::fs::read(suite.join("modules").join(format!("{module}.ko")))?;
        archive.add(&format!("machine/modules/{module}.ko"), 0o644, &file)?;
    }
    archive.add("machine/order", 0o644, (order + "\n").as_bytes())?;
    archive.directory("machine/files")?;
    for (path, permissions, text) in files {
        archive.add(&format!("machine/files/{}", path.trim_start_matches('/')), *permissions, text.as_bytes())?;
    }
    newc::trailer(archive.out)?.flush()
}

struct Archive {
    out: io::BufWriter<std::fs::File>,
    /// Directories that are there.
    made: Vec<String>,
}

impl Archive {
    fn add(&mut self, path: &str, permissions: u32, content: &[u8]) -> io::Result<()> {
        if let Some((directory, _)) = path.rsplit_once('/') {
            self.directory(directory)?;
        }
        let size = u32::try_from(content.len()).map_err(io::Error::other)?;
        let entry = newc::Builder::new(path).mode(permissions).set_mode_file_type(ModeFileType::Regular);
        let mut file = entry.write(&mut self.out, size);
        file.write_all(content)?;
        file.finish()?;
        Ok(())
    }

    /// Adds a directory and those above it.
    fn directory(&mut self, path: &str) -> io::Result<()> {
        if self.made.iter().any(|made| made == path) {
            return Ok(());
        }
        if let Some((above, _)) = path.rsplit_once('/') {
            self.directory(above)?;
        }
        let entry = newc::Builder::new(path).mode(0o755).set_mode_file_type(ModeFileType::Directory);
        entry.write(&mut self.out, 0).finish()?;
        self.made.push(path.to_owned());
        Ok(())
    }
}
