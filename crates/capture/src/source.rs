//! Sources of a capture's bytes: read on demand, or read and decompressed ahead by a thread.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Bytes of a chunk: small enough to stay in a core's cache until they are analysed.
const CHUNK: usize = 256 << 10;
/// Free space before a chunk that was read ahead, for the remainder of the previous chunk. A longer record is
/// assembled by copying.
const HEADROOM: usize = 64 << 10;
/// Maximum number of chunks read ahead.
const MAX_CHUNKS_AHEAD: usize = 4;

/// A source of bytes.
pub enum Source {
    /// Read on demand.
    Direct(Box<dyn Read + Send>),
    /// Read ahead, and decompressed, by a thread.
    Ahead {
        /// Chunks and their lengths, or the error that ended them.
        chunks: Receiver<io::Result<(Vec<u8>, usize)>>,
        /// Chunks to reuse.
        used: SyncSender<Vec<u8>>,
    },
}

impl Source {
    /// Starts a thread that reads ahead. It ends with the input, or soon after the source is dropped.
    pub fn ahead(input: Box<dyn Read + Send>) -> io::Result<Self> {
        let (filled, chunks) = sync_channel(MAX_CHUNKS_AHEAD);
        let (used, empty) = sync_channel(MAX_CHUNKS_AHEAD + 1);
        thread::Builder::new().name("reader".to_owned()).spawn(move || read_ahead(input, &filled, &empty))?;
        Ok(Self::Ahead { chunks, used })
    }

    /// Appends input to the bytes of `buffer` in `span`, with space for at least `needed` bytes. Returns the
    /// new span, which has the same length at the end of the input.
    pub fn more(&mut self, buffer: &mut Vec<u8>, span: Range<usize>, needed: usize) -> io::Result<Range<usize>> {
        let left = span.len();
        match self {
            Self::Direct(input) => {
                buffer.copy_within(span, 0);
                buffer.resize(buffer.len().max(needed.next_multiple_of(CHUNK)), 0);
                loop {
                    match input.read(&mut buffer[left..]) {
                        Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                        read => return Ok(0..left + read?),
                    }
                }
            }
            Self::Ahead { chunks, used } => {
                let Ok(chunk) = chunks.recv() else { return Ok(span) };
                let (mut chunk, end) = chunk?;
                if left > HEADROOM {
                    buffer.copy_within(span, 0);
                    buffer.truncate(left);
                    buffer.extend_from_slice(&chunk[HEADROOM..end]);
                    let _ = used.try_send(chunk);
                    return Ok(0..buffer.len());
                }
                let start = HEADROOM - left;
                chunk[start..HEADROOM].copy_from_slice(&buffer[span]);
                // The reader may have ended.
                let _ = used.try_send(std::mem::replace(buffer, chunk));
                Ok(start..end)
            }
        }
    }
}

fn read_ahead(
    mut input: Box<dyn Read + Send>,
    filled: &SyncSender<io::Result<(Vec<u8>, usize)>>,
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
        // The source was dropped: its capture has ended.
        if filled.send(next).is_err() || ended {
            return;
        }
    }
}
