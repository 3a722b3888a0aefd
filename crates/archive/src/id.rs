//! Ids of documents.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a document's bytes, as 64 lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(String);

impl Id {
    /// Hex digits that a list shows; enough to be unique among millions.
    pub const SHORT: usize = 10;

    /// The id of a document.
    pub fn of(bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(64);
        for byte in Sha256::digest(bytes) {
            text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
            text.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
        }
        Self(text)
    }

    /// From 64 hex digits; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 64 && is_prefix(text)).then(|| Self(text.to_owned()))
    }

    /// All digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first [`Id::SHORT`] digits.
    pub fn short(&self) -> &str {
        &self.0[..Self::SHORT]
    }

    /// The first two digits: the name of its directory.
    pub(crate) fn directory(&self) -> &str {
        &self.0[..2]
    }
}

/// Whether a text can begin an id.
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
    fn an_id_is_the_hash_of_the_bytes() {
        let id = Id::of(b"abc");
        assert_eq!(id.as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Id::parse(id.as_str()), Some(id));
        assert_eq!(Id::parse("ba78"), None);
        assert_eq!(Id::parse(&"A".repeat(64)), None);
    }
}
