//! The seam to `/proc` and `/sys`: the running kernel's, or a recorded tree of them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

/// What a gzip file begins with (RFC 1952).
const GZIP: &[u8] = &[0x1f, 0x8b, 8];
/// No file read here is longer, except by mistake or malice.
const LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// A file that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {cause}")]
pub struct FileError {
    /// Its path on the host, without the recorded tree's own.
    pub path: String,
    /// The system's answer.
    #[source]
    pub cause: io::Error,
}

/// Where host files are read from.
#[derive(Debug, Clone)]
pub struct Files {
    root: PathBuf,
    /// The root without links, which every file of a recorded tree must be below.
    inside: Option<PathBuf>,
    live: bool,
}

impl Files {
    /// The running kernel's own files.
    pub fn live() -> Self {
        Self { root: PathBuf::from("/"), inside: None, live: true }
    }

    /// A tree with `proc`, `sys`, `etc` below `root`.
    pub fn recorded(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { inside: root.canonicalize().ok(), root, live: false }
    }

    /// Whether these are the running kernel's, so that asking the kernel itself gives the same host.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// The file's text; that of a compressed one (gzip, as `/proc/config.gz`) is what it holds. Bytes that are not UTF-8 are
    /// replaced.
    pub fn read(&self, path: &str) -> Result<String, FileError> {
        let read = || -> io::Result<String> {
            let mut bytes = Vec::new();
            let path = self.inside(path)?;
            // Opening a pipe that lies in a file's place would wait for a writer.
            let kind = fs::metadata(&path)?;
            if !kind.is_file() {
                let what = if kind.is_dir() { io::ErrorKind::IsADirectory } else { io::ErrorKind::InvalidInput };
                return Err(what.into());
            }
            File::open(path)?.take(LIMIT_BYTES as u64).read_to_end(&mut bytes)?;
            if bytes.starts_with(GZIP) {
                let mut text = Vec::new();
                GzDecoder::new(bytes.as_slice()).take(LIMIT_BYTES as u64).read_to_end(&mut text)?;
                bytes = text;
            }
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().map_err(|cause| FileError { path: path.into(), cause })
    }

    /// The file's text without white space around it.
    pub fn word(&self, path: &str) -> Result<String, FileError> {
        self.read(path).map(|text| text.trim().to_owned())
    }

    /// The file's text as a number.
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Result<T, FileError> {
        self.word(path)?.parse().map_err(|_| FileError {
            path: path.into(),
            cause: io::Error::new(io::ErrorKind::InvalidData, "not a number in range"),
        })
    }

    /// The last component of what a symbolic link points to.
    pub fn link_name(&self, path: &str) -> Option<String> {
        Some(fs::read_link(self.at(path)).ok()?.file_name()?.to_string_lossy().into_owned())
    }

    /// Whether there is such a file.
    pub fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// Names in a directory, sorted; none if it cannot be read.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(directory)).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    /// What a symbolic link points to, as it is written there.
    pub(crate) fn link_target(&self, path: &str) -> io::Result<String> {
        Ok(fs::read_link(self.at(path))?.to_string_lossy().into_owned())
    }

    /// Names in a directory that begin with `prefix`, sorted.
    pub(crate) fn names_like(&self, directory: &str, prefix: &str) -> io::Result<Vec<String>> {
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
        File::open(self.inside(path)?)
    }

    /// Opens a file to be read many times.
    pub(crate) fn keep(&self, path: &str) -> Result<Kept, FileError> {
        match File::open(self.at(path)) {
            Ok(file) => Ok(Kept { file, path: path.into() }),
            Err(cause) => Err(FileError { path: path.into(), cause }),
        }
    }

    /// Where the file is. A recorded tree comes from elsewhere: a link in it that leads out of it is refused, lest what is
    /// on this host be shown as that one's.
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

/// A file kept open and read again from its start: `/proc` makes its text anew each time. What a `/proc/thread-self/net`
/// file says stays that of the network namespace it was opened in.
#[derive(Debug)]
pub(crate) struct Kept {
    file: File,
    path: String,
}

impl Kept {
    /// Fills `buffer` with the file, keeping its capacity from one reading to the next.
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
    fn a_kept_file_is_read_whole_each_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let files = Files::recorded(dir.path());
        for (written, expected) in [(10_000, 10_000), (3, 3), (5000, 5000)] {
            fs::write(dir.path().join("f"), vec![b'x'; written]).expect("written");
            let kept = files.keep("/f").expect("opened");
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
