//! Input files: regular files within a limit.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Maximum size of a text that people or small programs write (plans, scenarios, lists, logs), bytes.
pub const MAX_TEXT_BYTES: u64 = 16 << 20;
/// Maximum size of a document, bytes. That of one hour with 128 streams takes about 200 MB.
pub const MAX_DOCUMENT_BYTES: u64 = 1 << 30;

/// Opens a regular file for reading. Anything else is an error: a directory, a device without end, a FIFO that would wait
/// for a writer.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening a device can have effects, so its kind is checked before; and after, because the path may have changed.
    check_regular(&std::fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

fn check_regular(metadata: &std::fs::Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    let name = if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {name}, not a regular file")))
}

/// Reads a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    if file.metadata()?.len() > limit {
        return Err(too_large(limit));
    }
    read_from(file, limit)
}

/// Reads a regular file of at most `limit` bytes as UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    text(read(path, limit)?)
}

/// Reads at most `limit` bytes to the end of a stream, such as standard input or a decompressor.
pub fn read_from(stream: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large(limit)) } else { Ok(bytes) }
}

/// Reads at most `limit` bytes to the end of a stream as UTF-8.
pub fn read_text_from(stream: impl Read, limit: u64) -> io::Result<String> {
    text(read_from(stream, limit)?)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why.utf8_error()))
}

/// The error of a file or stream of more than `limit` bytes.
fn too_large(limit: u64) -> io::Error {
    let size = match limit {
        n if n % (1 << 30) == 0 => format!("{} GiB", n >> 30),
        n if n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n if n % (1 << 10) == 0 => format!("{} KiB", n >> 10),
        n => format!("{n} bytes"),
    };
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {size}, the limit for such a file"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let _socket = UnixListener::bind(at("socket")).expect("a socket");
        assert!(Command::new("mkfifo").arg(at("fifo")).status().expect("mkfifo").success());
        std::os::unix::fs::symlink("fifo", at("link")).expect("a link");
        for (path, word) in [
            ("/dev/zero".into(), "a device"),
            ("/dev/null".into(), "a device"),
            (at("fifo"), "a FIFO"),
            (at("link"), "a FIFO"),
            (at("socket"), "a socket"),
            (at(""), "directory"),
            (at("missing"), "No such file"),
        ] {
            let why = read(&path, 1 << 20).expect_err("not a regular file").to_string();
            assert!(why.contains(word), "{}: {why}", path.display());
        }
        assert!(read("/proc/self/status".as_ref(), 1 << 20).is_ok_and(|bytes| !bytes.is_empty()));
    }

    #[test]
    fn files_and_streams_have_a_limit() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        std::fs::write(&path, [b'x'; 1024]).expect("written");
        assert_eq!(read_text(&path, 1024).expect("within the limit").len(), 1024);
        let why = read(&path, 1023).expect_err("too long").to_string();
        assert!(why.contains("more than 1023 bytes"), "{why}");
        File::create(&path).expect("created").set_len(1 << 40).expect("a sparse file");
        let why = read(&path, 1 << 20).expect_err("too long").to_string();
        assert!(why.contains("more than 1 MiB"), "{why}");
        assert_eq!(read_from(io::repeat(0), 4096).expect_err("endless").kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_text_from(&b"\xff"[..], 4096).expect_err("no text").kind(), io::ErrorKind::InvalidData);
    }
}
