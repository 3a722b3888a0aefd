//! Captures from files and pipes, compressed or not, cut into frames.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use anyhow::Context as _;
use landspeed_wire::capture::{Frame, InterfaceStatistics, Next, Reader};

/// Bytes read at once: small enough to stay in a core's cache until they are looked at.
const CHUNK: usize = 256 << 10;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// What a capture brings.
pub enum Item<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// Statistics of an interface.
    Statistics(InterfaceStatistics),
}

/// How reading ended.
pub struct Ended {
    /// Why before the end of the file, if so.
    pub early: Option<String>,
    /// The reader, which knows the format and the interfaces.
    pub reader: Reader,
}

/// Opens a capture; `-` is standard input.
pub fn open(path: &Path) -> anyhow::Result<Box<dyn Read>> {
    let plain: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            anyhow::bail!("cannot read {}: it is a directory", path.display());
        }
        Box::new(file)
    };
    decompressed(plain).with_context(|| format!("cannot read {}", path.display()))
}

/// Looks at the first bytes and puts a decompressor before them if they ask for one.
fn decompressed(mut plain: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
    let mut first = Vec::with_capacity(ZSTANDARD.len());
    plain.by_ref().take(ZSTANDARD.len() as u64).read_to_end(&mut first)?;
    let whole = io::Cursor::new(first.clone()).chain(plain);
    if first.starts_with(GZIP) {
        return Ok(Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::new(whole))));
    }
    if first.starts_with(ZSTANDARD) {
        let decoder = ruzstd::decoding::StreamingDecoder::new(BufReader::new(whole));
        return Ok(Box::new(decoder.map_err(io::Error::other)?));
    }
    Ok(Box::new(whole))
}

/// Reads to the end, one item after the other. What cannot be read on is no failure: what came before it counts.
pub fn read(mut input: Box<dyn Read>, mut each: impl FnMut(Item<'_>)) -> anyhow::Result<Ended> {
    let mut reader = Reader::new();
    let mut buffer = vec![0; CHUNK];
    let (mut start, mut end, mut offset) = (0, 0, 0_u64);
    let early = loop {
        let (used, next) = match reader.next(&buffer[start..end]) {
            Ok(next) => next,
            Err(why) if reader.format().is_none() => return Err(why.into()),
            Err(why) => break Some(format!("{why} (byte {})", offset + start as u64)),
        };
        start += used;
        match next {
            Next::Frame(frame) => each(Item::Frame(frame)),
            Next::Statistics(statistics) => each(Item::Statistics(statistics)),
            Next::Skipped => {}
            Next::More(needed) => {
                buffer.copy_within(start..end, 0);
                offset += start as u64;
                (start, end) = (0, end - start);
                if needed > buffer.len() {
                    buffer.resize(needed.next_multiple_of(CHUNK), 0);
                }
                match input.read(&mut buffer[end..]) {
                    Ok(0) if end == 0 => break None,
                    Ok(0) if reader.format().is_none() => {
                        anyhow::bail!("this is no capture: it ends after {end} bytes")
                    }
                    Ok(0) => break Some(format!("it ends in the middle of a record, {end} bytes into it")),
                    Ok(read) => end += read,
                    Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                    Err(why) if reader.format().is_none() => return Err(why.into()),
                    Err(why) => break Some(why.to_string()),
                }
            }
        }
    };
    if reader.format().is_none() && early.is_none() {
        anyhow::bail!("this is no capture: it is empty");
    }
    Ok(Ended { early, reader })
}
