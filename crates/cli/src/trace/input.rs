//! Captures from files and pipes, compressed or not, as frames.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::Context as _;
use landspeed_columns::Stream;
use landspeed_wire::capture::{CaptureError, Frame, InterfaceStatistics, Next, Reader, Sink, Sorter};

use super::source::Source;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Room before bytes that are [fed](Capture::feed), for the beginning of an incomplete record.
pub const ROOM: usize = 64 << 10;

/// A capture being read.
pub struct Capture {
    source: Source,
    /// The file, if it is a plain one.
    file: Option<File>,
    reader: Reader,
    sorter: Sorter,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the capture before `start`.
    position: u64,
    early: Option<String>,
}

/// A sink that passes frames to a closure.
pub struct Frames<F>(pub F);

impl<F: FnMut(&Frame<'_>)> Sink for Frames<F> {
    fn frame(&mut self, frame: &Frame<'_>) {
        (self.0)(frame);
    }

    fn statistics(&mut self, _: InterfaceStatistics) {}
}

/// An opened capture.
struct Input {
    bytes: Box<dyn Read + Send>,
    is_compressed: bool,
    /// The file itself, if it is a plain one.
    file: Option<File>,
}

/// Opens a capture; `-` is standard input.
fn open(path: &Path) -> anyhow::Result<Input> {
    let mut whole = None;
    let plain: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            anyhow::bail!("cannot read {}: it is a directory\nName a capture file in it.", path.display());
        }
        if is_columns(&file) {
            let stream = Stream::new(file).with_context(|| format!("cannot read {}", path.display()))?;
            return Ok(Input { bytes: Box::new(stream), is_compressed: true, file: None });
        }
        whole = file.try_clone().ok().filter(|file| file.metadata().is_ok_and(|metadata| metadata.is_file()));
        Box::new(file)
    };
    let (bytes, is_compressed) = decompressed(plain).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Input { bytes, is_compressed, file: whole.filter(|_| !is_compressed) })
}

/// Returns whether a file is Parquet, which is not read sequentially.
fn is_columns(file: &File) -> bool {
    let mut first = [0; 4];
    file.read_at(&mut first, 0).is_ok_and(|read| first.get(..read) == Some(landspeed_columns::MAGIC))
}

/// Returns the decompressed bytes, and whether they were compressed.
fn decompressed(mut plain: Box<dyn Read + Send>) -> io::Result<(Box<dyn Read + Send>, bool)> {
    let mut first = Vec::with_capacity(ZSTANDARD.len());
    plain.by_ref().take(ZSTANDARD.len() as u64).read_to_end(&mut first)?;
    let complete = io::Cursor::new(first.clone()).chain(plain);
    if first.starts_with(GZIP) {
        return Ok((Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::new(complete))), true));
    }
    if first.starts_with(ZSTANDARD) {
        let decoder = ruzstd::decoding::StreamingDecoder::new(BufReader::new(complete));
        return Ok((Box::new(decoder.map_err(io::Error::other)?), true));
    }
    Ok((Box::new(complete), false))
}

impl Capture {
    /// Opens a capture; with `ahead`, a thread decompresses it. Plain bytes are always read on demand: fetching them from
    /// another core costs more than reading them.
    pub fn open(path: &Path, ahead: bool) -> anyhow::Result<Self> {
        let Input { bytes, is_compressed, file } = open(path)?;
        let source = if ahead && is_compressed { Source::ahead(bytes)? } else { Source::Direct(bytes) };
        Ok(Self { file, ..Self::from_source(source) })
    }

    /// Reads a capture from a reader.
    pub fn from_reader(input: Box<dyn Read + Send>) -> Self {
        Self::from_source(Source::Direct(input))
    }

    fn from_source(source: Source) -> Self {
        let (buffer, start, end) = (Vec::new(), 0, 0);
        let (reader, sorter) = (Reader::new(), Sorter::default());
        Self { source, file: None, reader, sorter, buffer, start, end, position: 0, early: None }
    }

    /// Reads the next frame, and the statistics before it; `false` at the end. `sink` gets frames in the order of their
    /// timestamps, so a step may deliver none or several. Damage ends the capture without an error: earlier frames count.
    pub fn step(&mut self, sink: &mut impl Sink) -> anyhow::Result<bool> {
        let more = self.step_unsorted(sink)?;
        if !more {
            self.sorter.flush(sink);
        }
        Ok(more)
    }

    fn step_unsorted(&mut self, sink: &mut impl Sink) -> anyhow::Result<bool> {
        while self.early.is_none() {
            let (used, next) = match self.reader.next(&self.buffer[self.start..self.end]) {
                Ok(next) => next,
                Err(why) if self.reader.format().is_none() => return Err(not_a_capture(&why)),
                Err(why) => {
                    self.damaged(&why);
                    break;
                }
            };
            self.start += used;
            self.position += used as u64;
            match next {
                Next::Frame(frame) => {
                    self.sorter.before(sink).frame(&frame);
                    return Ok(true);
                }
                Next::Statistics(statistics) => sink.statistics(statistics),
                Next::Skipped => {}
                Next::More(needed) => {
                    if !self.fill(needed)? {
                        break;
                    }
                }
            }
        }
        Ok(false)
    }

    /// Reads one buffer and gives its frames to `sink`; `false` at the end.
    pub fn drain(&mut self, sink: &mut impl Sink) -> anyhow::Result<bool> {
        let more = self.drain_unsorted(sink)?;
        if !more {
            self.sorter.flush(sink);
        }
        Ok(more)
    }

    fn drain_unsorted(&mut self, sink: &mut impl Sink) -> anyhow::Result<bool> {
        if self.early.is_some() {
            return Ok(false);
        }
        let (used, needed) = self.reader.drain(&self.buffer[self.start..self.end], &mut self.sorter.before(sink));
        self.start += used;
        self.position += used as u64;
        match needed {
            Ok(needed) => self.fill(needed),
            Err(why) if self.reader.format().is_none() => Err(not_a_capture(&why)),
            Err(why) => {
                self.damaged(&why);
                Ok(false)
            }
        }
    }

    /// Returns the file, the offset read so far and its size, if it is a plain file of known format.
    pub fn rest_of_file(&self) -> anyhow::Result<Option<(File, u64, u64)>> {
        let left = self.end - self.start;
        let Some(file) = &self.file else { return Ok(None) };
        if self.reader.format().is_none() || self.early.is_some() || left > ROOM {
            return Ok(None);
        }
        Ok(Some((file.try_clone()?, self.position + left as u64, file.metadata()?.len())))
    }

    /// Gives `sink` the complete records of the next bytes of the file, which begin at [`ROOM`] in `piece`. `false` if the
    /// capture is damaged or a record is too long.
    pub fn feed(&mut self, piece: &mut [u8], sink: &mut impl Sink) -> bool {
        let from = ROOM - (self.end - self.start);
        piece[from..ROOM].copy_from_slice(&self.buffer[self.start..self.end]);
        let (used, needed) = self.reader.drain(&piece[from..], &mut self.sorter.before(sink));
        let left = &piece[from + used..];
        self.buffer.clear();
        self.buffer.extend_from_slice(left);
        (self.start, self.end) = (0, left.len());
        self.position += used as u64;
        if let Err(why) = &needed {
            self.damaged(why);
        }
        needed.is_ok() && self.end <= ROOM
    }

    fn damaged(&mut self, why: &CaptureError) {
        self.early = Some(format!("{why} (at byte {})", self.position));
    }

    /// Reads until `needed` bytes are buffered; `false` at the end of the input.
    fn fill(&mut self, needed: usize) -> anyhow::Result<bool> {
        let started = self.reader.format().is_some();
        let left = self.end - self.start;
        match self.source.more(&mut self.buffer, self.start..self.end, needed) {
            Ok(span) if span.len() > left => {
                (self.start, self.end) = (span.start, span.end);
                return Ok(true);
            }
            Ok(_) if left == 0 && started => {}
            Ok(_) if left == 0 => anyhow::bail!(
                "not a capture: it is empty\nCheck that the capture was written, and that it saw packets."
            ),
            Ok(_) if !started => {
                anyhow::bail!("not a capture: it ends after {left} bytes\nCheck that the file is complete.")
            }
            Ok(_) => self.early = Some(format!("it ends in the middle of a record, after {left} bytes of it")),
            Err(why) if !started => return Err(why.into()),
            Err(why) => self.early = Some(why.to_string()),
        }
        Ok(false)
    }

    /// Returns the number of frames that were sorted by time.
    pub fn sorted(&self) -> u64 {
        self.sorter.sorted()
    }

    /// Returns why the capture ended before the end of the file, if it did.
    pub fn early(&self) -> Option<String> {
        self.early.clone()
    }

    /// Returns the reader, which has the format and the interfaces.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}

/// Returns the error for input that is not a capture, with what to do.
fn not_a_capture(why: &CaptureError) -> anyhow::Error {
    anyhow::anyhow!("{why}\nConvert it to pcapng, for example with `editcap -F pcapng FILE OUT`.")
}
