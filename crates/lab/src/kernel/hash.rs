//! Content hashes.

use std::io::{self, Read as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest as _, Sha256};

/// SHA-256 over fields, each preceded by its length, so that different lists of fields never give the same bytes.
#[derive(Default)]
pub(super) struct Hasher(Sha256);

impl Hasher {
    /// Adds one field.
    pub fn field(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Returns the hash as lower-case hexadecimal digits.
    pub fn hex(self) -> String {
        hex(&self.0.finalize())
    }
}

/// Returns the SHA-256 of a file, as `sha256sum` prints it. `Ok(None)` when interrupted.
pub(super) fn file(path: &Path, interrupted: &AtomicBool) -> io::Result<Option<String>> {
    let mut input = landspeed_sys::file::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        if interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match input.read(&mut buffer)? {
            0 => return Ok(Some(hex(&digest.finalize()))),
            count => digest.update(&buffer[..count]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_field_boundaries_give_different_hashes() {
        let of = |fields: &[&str]| {
            let mut hasher = Hasher::default();
            for field in fields {
                hasher.field(field.as_bytes());
            }
            hasher.hex()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_eq!(of(&["ab", "c"]).len(), 64);
    }

    #[test]
    fn file_hashes_equal_those_of_sha256sum() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("x");
        std::fs::write(&path, "abc").expect("written");
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(file(&path, &AtomicBool::new(false)).expect("readable").as_deref(), Some(expected));
        assert_eq!(file(&path, &AtomicBool::new(true)).expect("readable"), None);
    }
}
