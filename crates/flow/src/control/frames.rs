//! Extracts messages from a byte stream, independent of TCP segmentation. No I/O.

use std::sync::Arc;

use crate::error::FlowError;

/// Buffer of received bytes, in plaintext or inside a Noise session.
///
/// Contains at most one message of the maximum size and one read beyond it.
pub struct Frames {
    session: Option<Arc<snow::StatelessTransportState>>,
    nonce: u64,
    /// Ciphertext of an incomplete transport message.
    sealed: Vec<u8>,
    /// Plaintext; bytes before `at` are consumed.
    plain: Vec<u8>,
    at: usize,
    limit: usize,
}

impl Frames {
    /// Creates a buffer for plaintext frames of at most `limit` bytes each.
    pub fn new(limit: usize) -> Self {
        Self::sealed(None, limit)
    }

    pub(super) fn sealed(session: Option<Arc<snow::StatelessTransportState>>, limit: usize) -> Self {
        Self { session, nonce: 0, sealed: Vec::new(), plain: Vec::new(), at: 0, limit }
    }

    /// Raises the message size limit from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Number of bytes buffered.
    pub fn held(&self) -> usize {
        self.sealed.len() + self.plain.len()
    }

    /// Adds received bytes.
    ///
    /// # Errors
    /// When an encrypted message was modified, replayed, lost or reordered.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), FlowError> {
        let Some(session) = &self.session else {
            self.plain.extend_from_slice(bytes);
            return Ok(());
        };
        self.sealed.extend_from_slice(bytes);
        let mut used = 0;
        while let Some(header) = self.sealed.get(used..used + 2) {
            let n = usize::from(u16::from_be_bytes([header[0], header[1]]));
            let Some(cipher) = self.sealed.get(used + 2..used + 2 + n) else { break };
            let start = self.plain.len();
            self.plain.resize(start + n, 0);
            let len = session.read_message(self.nonce, cipher, &mut self.plain[start..]).map_err(|_| {
                FlowError::Protocol {
                    during: "on the authenticated control connection",
                    message: "a message was changed, repeated or lost on the way".to_owned(),
                }
            })?;
            self.plain.truncate(start + len);
            self.nonce += 1;
            used += 2 + n;
        }
        self.sealed.drain(..used);
        Ok(())
    }

    /// Whether the next message is complete, or its length exceeds the limit.
    pub fn has_message(&self) -> bool {
        let held = &self.plain[self.at..];
        held.first_chunk::<4>().is_some_and(|header| {
            let len = u32::from_be_bytes(*header) as usize;
            len > self.limit || held.len() >= 4 + len
        })
    }

    /// Returns the next complete message.
    ///
    /// # Errors
    /// When its length exceeds the limit.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, FlowError> {
        let rest = &self.plain[self.at..];
        let body = match rest.first_chunk::<4>() {
            None => None,
            Some(header) => {
                let len = u32::from_be_bytes(*header) as usize;
                if len > self.limit {
                    return Err(FlowError::Protocol {
                        during: "while waiting for a control message",
                        message: format!("a message of {len} bytes is over the limit of {}", self.limit),
                    });
                }
                rest.get(4..4 + len).map(<[u8]>::to_vec)
            }
        };
        if let Some(body) = &body {
            self.at += 4 + body.len();
        } else {
            // At most once per read, and only an incomplete message is moved.
            self.plain.drain(..self.at);
            self.at = 0;
        }
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_any_segmentation() {
        let bytes = [b"\0\0\0\x02{}".as_slice(), b"\0\0\0\0", b"\0\0\0\x03abc"].concat();
        for cut in 1..bytes.len() {
            let mut frames = Frames::new(3);
            let mut taken = Vec::new();
            for piece in bytes.chunks(cut) {
                frames.push(piece).expect("in the clear");
                while let Some(frame) = frames.take().expect("within the limit") {
                    taken.push(frame);
                }
            }
            assert_eq!(taken, [b"{}".to_vec(), Vec::new(), b"abc".to_vec()]);
            assert_eq!(frames.held(), 0);
        }
    }

    #[test]
    fn an_oversized_length_is_refused_before_buffering() {
        let mut frames = Frames::new(1024);
        frames.push(&u32::MAX.to_be_bytes()).expect("in the clear");
        assert!(frames.take().is_err());
        assert_eq!(frames.held(), 4);
    }
}
