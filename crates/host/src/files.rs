//! Access to `/proc` and `/sys`: those of the running kernel, or a recorded tree.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use landspeed_sys::file;

/// First bytes of a gzip file (RFC 1952).
const GZIP: &[u8] = &[0x1f, 0x8b, 8];
/// Maximum size of a file; longer ones are an error or malicious.
const LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// A file that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {cause}")]
pub struct FileError {
    /// Path on the host, without the root of a recorded tree.
    pub path: String,
    /// Error of the operating system.
    #[source]
    pub cause: io::Error,
}

/// Files of a host: live or recorded.
#[derive(Debug, Clone)]
pub struct Files {
    root: PathBuf,
    /// Root with all links resolved; every file of a recorded tree must be below it.
    inside: Option<PathBuf>,
    live: bool,
}

impl Files {
    /// Returns the files of the running kernel.
    pub fn live() -> Self {
        Self { root: PathBuf::from("/"), inside: None, live: true }
    }

    /// Returns the files of a tree with `proc`, `sys`, `etc` below `root`.
    pub fn recorded(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { inside: root.canonicalize().ok(), root, live: false }
    }

    /// Returns whether these files belong to the running kernel, so that asking it describes the same host.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Reads a file's text, decompressed if it is gzip (as `/proc/config.gz`). Bytes that are not UTF-8 are
    /// replaced.
    pub fn read(&self, path: &str) -> Result<String, FileError> {
        let read = || -> io::Result<String> {
            let mut bytes = Vec::new();
            let path = self.inside(path)?;
            file::open(&path)?.take(LIMIT_BYTES as u64).read_to_end(&mut bytes)?;
            if bytes.starts_with(GZIP) {
                let mut text = Vec::new();
                GzDecoder::new(bytes.as_slice()).take(LIMIT_BYTES as u64).read_to_end(&mut text)?;
                bytes = text;
            }
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().map_err(|cause| FileError { path: path.into(), cause })
    }

    /// Reads a file's text without surrounding white space.
    pub fn word(&self, path: &str) -> Result<String, FileError> {
        self.read(path).map(|text| text.trim().to_owned())
    }

    /// Reads a file's text as a number.
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Result<T, FileError> {
        self.word(path)?.parse().map_err(|_| FileError {
            path: path.into(),
            cause: io::Error::new(io::ErrorKind::InvalidData, "not a number in range"),
        })
    }

    /// Returns the last component of a symbolic link's target.
    pub fn link_name(&self, path: &str) -> Option<String> {
        Some(fs::read_link(self.at(path)).ok()?.file_name()?.to_string_lossy().into_owned())
    }

    /// Returns whether a file exists.
    pub fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// Returns the names in a directory, sorted; none if it cannot be read.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(directory)).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    /// Returns the target of a symbolic link as written.
    pub(crate) fn link_target(&self, path: &str) -> io::Result<String> {
        Ok(fs::read_link(self.at(path))?.to_string_lossy().into_owned())
    }

    /// Returns the names in a directory that begin with `prefix`, sorted.
    pub(crate) fn names_with_prefix(&self, directory: &str, prefix: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.inside(directory)?)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with(prefix) {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Opens a file.
    pub fn open(&self, path: &str) -> io::Result<File> {
        file::open(&self.inside(path)?)
    }

    /// Opens a file to be read many times.
    pub(crate) fn open_kept(&self, path: &str) -> Result<KeptFile, FileError> {
        match file::open(&self.at(path)) {
            Ok(file) => Ok(KeptFile { file, path: path.into() }),
            Err(cause) => Err(FileError { path: path.into(), cause }),
        }
    }

    /// Resolves a path. A recorded tree comes from elsewhere: a link that leads out of it is refused, so that
    /// no data of this host is reported as the recorded host's.
    fn inside(&self, path: &str) -> io::Result<PathBuf> {
        let path = self.at(path);
        if self.live {
            return Ok(path);
        }
        let real = path.canonicalize()?;
        if !self.inside.as_ref().is_some_and(|inside| real.starts_with(inside)) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "a link that leads out of the recorded host",
            ));
        }
        Ok(real)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(Path::new(path).strip_prefix("/").unwrap_or(Path::new(path)))
    }
}

/// A file that is kept open and read again from its start: `/proc` regenerates its text each time. A
/// `/proc/thread-self/net` file remains that of the network namespace it was opened in.
#[derive(Debug)]
pub(crate) struct KeptFile {
    file: File,
    path: String,
}

impl KeptFile {
    /// Reads the file into `buffer`, reusing its capacity.
    pub(crate) fn read_into(&self, buffer: &mut Vec<u8>) -> Result<(), FileError> {
        let fail = |cause| FileError { path: self.path.clone(), cause };
        let mut length = 0;
        buffer.resize(buffer.capacity().max(4096), 0);
        loop {
            if length == buffer.len() {
                if length >= LIMIT_BYTES {
                    return Err(fail(io::ErrorKind::FileTooLarge.into()));
                }
                buffer.resize((2 * length).min(LIMIT_BYTES), 0);
            }
            match self.file.read_at(&mut buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(n) => length += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(fail(e)),
            }
        }
        buffer.truncate(length);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_file_is_read_from_its_start_each_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let files = Files::recorded(dir.path());
        for (written, expected) in [(10_000, 10_000), (3, 3), (5000, 5000)] {
            fs::write(dir.path().join("f"), vec![b'x'; written]).expect("written");
            let kept = files.open_kept("/f").expect("opened");
            let mut buffer = vec![b'y'; 7];
            for _ in 0..2 {
                kept.read_into(&mut buffer).expect("read");
                assert_eq!(buffer.len(), expected);
                assert!(buffer.iter().all(|&b| b == b'x'));
            }
        }
    }

    fn compressed(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        io::Write::write_all(&mut encoder, text).expect("in memory");
        encoder.finish().expect("in memory")
    }

    #[test]
    fn compressed_files_are_read_live_and_recorded() {
        let dir = tempfile::tempdir().expect("a directory");
        let files = Files::recorded(dir.path());
        let text = "CONFIG_HZ=250\n# CONFIG_NET_SCH_FQ is not set\n";
        let bytes = compressed(text.as_bytes());
        for content in [&bytes[..], text.as_bytes()] {
            fs::write(dir.path().join("config.gz"), content).expect("written");
            assert_eq!(files.read("/config.gz").expect("readable"), text);
        }
        fs::write(dir.path().join("config.gz"), &bytes[..bytes.len() - 12]).expect("written");
        assert!(files.read("/config.gz").is_err(), "a truncated file is an error");
    }

    #[test]
    fn a_decompression_bomb_is_cut_off() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("f"), compressed(&vec![b'x'; 4 * LIMIT_BYTES])).expect("written");
        assert_eq!(Files::recorded(dir.path()).read("/f").expect("readable").len(), LIMIT_BYTES);
    }

    #[test]
    fn an_error_names_the_path_on_the_host() {
        let dir = tempfile::tempdir().expect("a directory");
        let error = Files::recorded(dir.path()).read("/proc/stat").expect_err("nothing is there");
        assert!(error.to_string().starts_with("cannot read /proc/stat: No such file"), "{error}");
    }
}
