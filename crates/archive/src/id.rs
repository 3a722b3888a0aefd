//! Document ids.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Document id: the SHA-256 of its bytes, as 64 lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(String);

impl Id {
    /// Number of hex digits shown in lists; unique among millions of documents.
    pub const SHORT_LEN: usize = 10;

    /// Computes the id of a document.
    pub fn of(bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(64);
        for byte in Sha256::digest(bytes) {
            text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
            text.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
        }
        Self(text)
    }

    /// Parses 64 lower-case hex digits; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 64 && is_prefix(text)).then(|| Self(text.to_owned()))
    }

    /// All 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first [`Id::SHORT_LEN`] digits.
    pub fn short(&self) -> &str {
        &self.0[..Self::SHORT_LEN]
    }

    /// The first two digits: the name of the document's directory.
    pub(crate) fn directory(&self) -> &str {
        &self.0[..2]
    }
}

/// Whether a text can be the beginning of an id.
pub(crate) fn is_prefix(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_sha256_of_the_bytes() {
        let id = Id::of(b"abc");
        assert_eq!(id.as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Id::parse(id.as_str()), Some(id));
        assert_eq!(Id::parse("ba78"), None);
        assert_eq!(Id::parse(&"A".repeat(64)), None);
    }
}
