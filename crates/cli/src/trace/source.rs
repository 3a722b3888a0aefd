//! Where a capture's bytes come from: read when they are wanted, or decompressed ahead of that by a thread of its own.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Bytes read at once: small enough to stay in a core's cache until they are looked at.
const CHUNK: usize = 256 << 10;
/// Room before a chunk that was read ahead, for the rest of the one before. A record that is longer is put together by
/// copying.
const HEADROOM: usize = 64 << 10;
/// Chunks read ahead at most.
const AHEAD: usize = 4;

/// A source of bytes.
pub enum Source {
    /// Read here.
    Here(Box<dyn Read + Send>),
    /// Read, and decompressed, by another thread.
    Elsewhere {
        /// Chunks with their end, or why there are no more.
        chunks: Receiver<io::Result<(Vec<u8>, usize)>>,
        /// Chunks that are done with.
        back: SyncSender<Vec<u8>>,
    },
}

impl Source {
    /// A source that a thread reads ahead of whoever asks. The thread ends with the input, or soon after the source is
    /// dropped.
    pub fn ahead(input: Box<dyn Read + Send>) -> io::Result<Self> {
        let (there, chunks) = sync_channel(AHEAD);
        let (back, empty) = sync_channel(AHEAD + 1);
        thread::Builder::new().name("reader".to_owned()).spawn(move || read_ahead(input, &there, &empty))?;
        Ok(Self::Elsewhere { chunks, back })
    }

    /// Puts more behind the bytes that `span` of `buffer` holds, where `needed` bytes must have room. Says where all of them
    /// are now: no more than before at the end.
    pub fn more(&mut self, buffer: &mut Vec<u8>, span: Range<usize>, needed: usize) -> io::Result<Range<usize>> {
        let left = span.len();
        match self {
            Self::Here(input) => {
                buffer.copy_within(span, 0);
                buffer.resize(buffer.len().max(needed.next_multiple_of(CHUNK)), 0);
                loop {
                    match input.read(&mut buffer[left..]) {
                        Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                        read => return Ok(0..left + read?),
                    }
                }
            }
            Self::Elsewhere { chunks, back } => {
                let Ok(chunk) = chunks.recv() else { return Ok(span) };
                let (mut chunk, end) = chunk?;
                if left > HEADROOM {
                    buffer.copy_within(span, 0);
                    buffer.truncate(left);
                    buffer.extend_from_slice(&chunk[HEADROOM..end]);
                    let _ = back.try_send(chunk);
                    return Ok(0..buffer.len());
                }
                let start = HEADROOM - left;
                chunk[start..HEADROOM].copy_from_slice(&buffer[span]);
                // The reader may have ended and not want it any more.
                let _ = back.try_send(std::mem::replace(buffer, chunk));
                Ok(start..end)
            }
        }
    }
}

fn read_ahead(
    mut input: Box<dyn Read + Send>,
    there: &SyncSender<io::Result<(Vec<u8>, usize)>>,
    empty: &Receiver<Vec<u8>>,
) {
    loop {
        let mut chunk = empty.try_recv().unwrap_or_default();
        chunk.resize(HEADROOM + CHUNK, 0);
        let next = match input.read(&mut chunk[HEADROOM..]) {
            Ok(0) => return,
            Ok(read) => Ok((chunk, HEADROOM + read)),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(why) => Err(why),
        };
        let ended = next.is_err();
        // Nobody there any more: what was wanted has been read.
        if there.send(next).is_err() || ended {
            return;
        }
    }
}
