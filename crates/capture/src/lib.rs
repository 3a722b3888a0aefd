//! Captures from files and pipes, compressed or not, as frames: [`Capture`]; and their analysis on several cores: [`analyse`].
#![forbid(unsafe_code)]

mod inspection;
mod shares;
mod source;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use landspeed_wire::capture::{CaptureError, CaptureItem, Frame, InterfaceStatistics, Reader, Sink, Sorter};

pub use inspection::Inspection;
pub use shares::analyse;
use source::Source;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The first bytes of a Parquet file.
const PARQUET: &[u8] = b"PAR1";

/// Reason why a capture cannot be read. Damage after its beginning is not an error: see [`Capture::early_end`].
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The path is a directory.
    #[error("cannot read {}: it is a directory\nName a capture file in it.", .0.display())]
    Directory(PathBuf),
    /// A Parquet file without packets, or a corrupt one.
    #[cfg(feature = "columns")]
    #[error("cannot read {}", path.display())]
    Columns {
        /// Path of the file.
        path: PathBuf,
        /// Error of the Parquet reader.
        source: landspeed_columns::ColumnsError,
    },
    /// A Parquet file, which this build does not support.
    #[cfg(not(feature = "columns"))]
    #[error("cannot read {}: this landspeed was built without Parquet (Cargo feature `columns`)", .0.display())]
    NoColumns(PathBuf),
    /// The file is empty.
    #[error("not a capture: it is empty\nCheck that the capture was written, and that it saw packets.")]
    Empty,
    /// The file ends after so many bytes, before its format is known.
    #[error("not a capture: it ends after {0} bytes\nCheck that the file is complete.")]
    TooShort(usize),
    /// The file has another format.
    #[error("{0}\nConvert it to pcapng, for example with `editcap -F pcapng FILE OUT`.")]
    UnknownFormat(CaptureError),
    /// Its first bytes cannot be read or decompressed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A capture being read.
pub struct Capture {
    source: Source,
    reader: Reader,
    sorter: Sorter,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the capture before `start`.
    position: u64,
    early_end: Option<String>,
    inspection: Option<Inspection>,
}

/// A sink that passes frames to a closure.
pub struct Frames<F>(pub F);

impl<F: FnMut(&Frame<'_>)> Sink for Frames<F> {
    fn frame(&mut self, frame: &Frame<'_>) {
        (self.0)(frame);
    }

    fn statistics(&mut self, _: InterfaceStatistics) {}
}

/// The bytes of a capture, and whether they are decompressed.
type Input = (Box<dyn Read + Send>, bool);

/// Opens a capture; `-` is standard input.
fn open(path: &Path) -> Result<Input, ReadError> {
    let plain: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = landspeed_sys::file::open(path).map_err(|source| match source.kind() {
            io::ErrorKind::IsADirectory => ReadError::Directory(path.to_owned()),
            _ => ReadError::Open { path: path.to_owned(), source },
        })?;
        if is_parquet(&file) {
            return open_columns(file, path);
        }
        Box::new(file)
    };
    decompressed(plain).map_err(|source| ReadError::Read { path: path.to_owned(), source })
}

#[cfg(feature = "columns")]
fn open_columns(file: File, path: &Path) -> Result<Input, ReadError> {
    let stream = landspeed_columns::Stream::new(file);
    let stream = stream.map_err(|source| ReadError::Columns { path: path.to_owned(), source })?;
    Ok((Box::new(stream), true))
}

#[cfg(not(feature = "columns"))]
fn open_columns(_: File, path: &Path) -> Result<Input, ReadError> {
    Err(ReadError::NoColumns(path.to_owned()))
}

/// Returns whether a file is Parquet, which is not read sequentially.
fn is_parquet(file: &File) -> bool {
    let mut first = [0; 4];
    file.read_at(&mut first, 0).is_ok_and(|read| first.get(..read) == Some(PARQUET))
}

/// Returns the decompressed bytes, and whether they were compressed.
fn decompressed(mut plain: Box<dyn Read + Send>) -> io::Result<Input> {
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
    pub fn open(path: &Path, ahead: bool) -> Result<Self, ReadError> {
        let (bytes, is_compressed) = open(path)?;
        let source = if ahead && is_compressed { Source::ahead(bytes)? } else { Source::Direct(bytes) };
        Ok(Self::from_source(source))
    }

    /// Reads a capture from a reader.
    pub fn from_reader(input: Box<dyn Read + Send>) -> Self {
        Self::from_source(Source::Direct(input))
    }

    fn from_source(source: Source) -> Self {
        let (buffer, start, end) = (Vec::new(), 0, 0);
        let (reader, sorter) = (Reader::new(), Sorter::default());
        Self { source, reader, sorter, buffer, start, end, position: 0, early_end: None, inspection: None }
    }

    /// Inspects each frame before it reaches a sink.
    #[must_use]
    pub fn inspected(mut self, inspection: Option<Inspection>) -> Self {
        self.inspection = inspection;
        self
    }

    /// Returns what inspects the frames, if anything does.
    pub fn inspection(&self) -> Option<&Inspection> {
        self.inspection.as_ref()
    }

    /// Reads the next frame, and the statistics before it; `false` at the end. `sink` gets frames in the order of their
    /// timestamps, so a step may deliver none or several. Damage ends the capture without an error: earlier frames count.
    pub fn step(&mut self, sink: &mut impl Sink) -> Result<bool, ReadError> {
        let Some(mut inspection) = self.inspection.take() else { return self.step_sorted(sink) };
        let more = self.step_sorted(&mut inspection.before(sink));
        self.inspection = Some(inspection);
        more
    }

    fn step_sorted(&mut self, sink: &mut impl Sink) -> Result<bool, ReadError> {
        let more = self.step_unsorted(sink)?;
        if !more {
            self.sorter.flush(sink);
        }
        Ok(more)
    }

    fn step_unsorted(&mut self, sink: &mut impl Sink) -> Result<bool, ReadError> {
        while self.early_end.is_none() {
            let (used, next) = match self.reader.next(&self.buffer[self.start..self.end]) {
                Ok(next) => next,
                Err(why) if self.reader.format().is_none() => return Err(ReadError::UnknownFormat(why)),
                Err(why) => {
                    self.damaged(&why);
                    break;
                }
            };
            self.start += used;
            self.position += used as u64;
            match next {
                CaptureItem::Frame(frame) => {
                    self.sorter.before(sink).frame(&frame);
                    return Ok(true);
                }
                CaptureItem::Statistics(statistics) => sink.statistics(statistics),
                CaptureItem::Skipped => {}
                CaptureItem::More(needed) => {
                    if !self.fill(needed)? {
                        break;
                    }
                }
            }
        }
        Ok(false)
    }

    /// Reads one buffer and gives its frames to `sink`; `false` at the end.
    pub fn drain(&mut self, sink: &mut impl Sink) -> Result<bool, ReadError> {
        let Some(mut inspection) = self.inspection.take() else { return self.drain_sorted(sink) };
        let more = self.drain_sorted(&mut inspection.before(sink));
        self.inspection = Some(inspection);
        more
    }

    fn drain_sorted(&mut self, sink: &mut impl Sink) -> Result<bool, ReadError> {
        let more = self.drain_unsorted(sink)?;
        if !more {
            self.sorter.flush(sink);
        }
        Ok(more)
    }

    fn drain_unsorted(&mut self, sink: &mut impl Sink) -> Result<bool, ReadError> {
        if self.early_end.is_some() {
            return Ok(false);
        }
        let (used, needed) = self.reader.drain(&self.buffer[self.start..self.end], &mut self.sorter.before(sink));
        self.start += used;
        self.position += used as u64;
        match needed {
            Ok(needed) => self.fill(needed),
            Err(why) if self.reader.format().is_none() => Err(ReadError::UnknownFormat(why)),
            Err(why) => {
                self.damaged(&why);
                Ok(false)
            }
        }
    }

    fn damaged(&mut self, why: &CaptureError) {
        self.early_end = Some(format!("{why} (at byte {})", self.position));
    }

    /// Reads until `needed` bytes are buffered; `false` at the end of the input.
    fn fill(&mut self, needed: usize) -> Result<bool, ReadError> {
        let started = self.reader.format().is_some();
        let left = self.end - self.start;
        match self.source.more(&mut self.buffer, self.start..self.end, needed) {
            Ok(span) if span.len() > left => {
                (self.start, self.end) = (span.start, span.end);
                return Ok(true);
            }
            Ok(_) if left == 0 && started => {}
            Ok(_) if left == 0 => return Err(ReadError::Empty),
            Ok(_) if !started => return Err(ReadError::TooShort(left)),
            Ok(_) => self.early_end = Some(format!("it ends in the middle of a record, after {left} bytes of it")),
            Err(why) if !started => return Err(why.into()),
            Err(why) => self.early_end = Some(why.to_string()),
        }
        Ok(false)
    }

    /// Returns the number of frames that were sorted by time.
    pub fn sorted(&self) -> u64 {
        self.sorter.sorted()
    }

    /// Returns why the capture ended before the end of the file, if it did.
    pub fn early_end(&self) -> Option<String> {
        self.early_end.clone()
    }

    /// Returns the reader, which has the format and the interfaces.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}
