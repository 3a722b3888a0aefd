//! Writes packets to a Parquet file, which gets its name when it is complete.

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use landspeed_capture::{Capture, Frames};
#[cfg(feature = "columns")]
use landspeed_columns::{Detail, Writer};
use landspeed_sys::file::AtomicFile;
use landspeed_trace::{Analysis, Limits, Row};
use landspeed_units::Bytes;
use landspeed_wire::capture::Frame;
#[cfg(not(feature = "columns"))]
use without_columns::{Detail, Writer};

/// Options for packets as columns.
#[derive(Debug, clap::Args)]
pub struct Packets {
    /// Write every packet to this Parquet file: headers, class, RTT, gap, data in flight
    #[arg(long, value_name = "FILE", conflicts_with = "headers")]
    packets: Option<PathBuf>,
    /// Write a header trace to this Parquet file, about 3 bytes per packet; `landspeed trace` reads it like a capture
    #[arg(long, value_name = "FILE")]
    headers: Option<PathBuf>,
}

impl Packets {
    /// Creates the requested file.
    pub fn open(&self) -> anyhow::Result<Option<Columns>> {
        let (path, detail) = match (&self.packets, &self.headers) {
            (Some(path), _) => (path, Detail::Analysis),
            (None, Some(path)) => (path, Detail::Headers),
            (None, None) => return Ok(None),
        };
        Columns::create(path, detail).map(Some)
    }

    /// Returns whether a file was requested.
    pub fn wanted(&self) -> bool {
        self.packets.is_some() || self.headers.is_some()
    }
}

/// Returns an error in a build without Parquet.
pub fn check_columns() -> anyhow::Result<()> {
    anyhow::ensure!(cfg!(feature = "columns"), "this landspeed was built without Parquet (Cargo feature `columns`)");
    Ok(())
}

/// Substitute for the Parquet writer in a build without it; never used because [`check_columns`] fails first.
#[cfg(not(feature = "columns"))]
mod without_columns {
    use std::convert::Infallible;
    use std::marker::PhantomData;

    use landspeed_trace::Row;
    use landspeed_wire::capture::Frame;

    pub enum Detail {
        Headers,
        Analysis,
    }

    pub struct Writer<W>(Infallible, PhantomData<W>);

    impl<W> Writer<W> {
        pub fn new(_: W, _: Detail) -> anyhow::Result<Self> {
            anyhow::bail!("built without Parquet")
        }

        pub fn packet(&mut self, _: &Frame<'_>, _: &Row) -> anyhow::Result<()> {
            match self.0 {}
        }

        pub fn finish(self) -> anyhow::Result<(W, u64)> {
            match self.0 {}
        }
    }
}

/// A Parquet file of packets being written.
pub struct Columns {
    path: PathBuf,
    file: AtomicFile,
    writer: Option<Writer<BufWriter<File>>>,
}

impl Columns {
    fn create(path: &Path, detail: Detail) -> anyhow::Result<Self> {
        check_columns()?;
        let file = AtomicFile::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        let writer = Some(Writer::new(BufWriter::new(file.handle()?), detail)?);
        Ok(Self { path: path.to_owned(), file, writer })
    }

    /// Writes a frame and its row.
    pub fn packet(&mut self, frame: &Frame<'_>, row: &Row) -> anyhow::Result<()> {
        match &mut self.writer {
            Some(writer) => {
                writer.packet(frame, row).with_context(|| format!("cannot write {}", self.path.display()))
            }
            None => Ok(()),
        }
    }

    /// Completes the file and renames it to its final name.
    pub fn finish(mut self) -> anyhow::Result<Written> {
        let writer = self.writer.take().context("the file was completed before")?;
        let (file, packets) = writer.finish().with_context(|| format!("cannot write {}", self.path.display()))?;
        let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        let size = Bytes::new(file.metadata()?.len());
        self.file.commit().with_context(|| format!("cannot create {}", self.path.display()))?;
        Ok(Written { path: self.path, packets, size })
    }
}

/// A completed Parquet file.
pub struct Written {
    path: PathBuf,
    packets: u64,
    /// Size of the file.
    pub size: Bytes,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.size.get() as f64 / self.packets.max(1) as f64;
        write!(f, "{}: {} packets, {}, {each:.2} bytes per packet", self.path.display(), self.packets, self.size)
    }
}

/// Writes the header trace of a capture.
pub fn header_trace(from: Box<dyn Read + Send>, path: &Path) -> anyhow::Result<Written> {
    let mut columns = Columns::create(path, Detail::Headers)?;
    let mut capture = Capture::from_reader(from);
    let mut analysis = Analysis::new(Limits::default());
    let mut failure = None;
    while failure.is_none() {
        let mut each = Frames(|frame: &Frame<'_>| {
            analysis.frame_with_row(frame, &mut |row: &Row| failure = columns.packet(frame, row).err());
        });
        if !capture.step(&mut each)? {
            break;
        }
    }
    failure.map_or(Ok(()), Err)?;
    columns.finish()
}
