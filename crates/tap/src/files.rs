//! Output of packets: none, a pipe, a file, or rotating files. Every file begins with its interfaces and ends
//! with their statistics, so each can be read separately.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use landspeed_model::TapFile;
use landspeed_sys::file;
use landspeed_wire::capture::write::{self, Counts, Packet};

use crate::options::{Output, Rotation};

/// Size of a write, bytes.
const CHUNK: usize = 256 << 10;

/// Failed write, with path and cause.
#[derive(Debug)]
pub struct WriteFailure {
    pub path: PathBuf,
    pub cause: io::Error,
}

enum Sink {
    None,
    Stdout(io::Stdout),
    Pipe(Arc<io::PipeWriter>),
    File(File),
}

/// Output files of a capture.
pub struct Files {
    output: Output,
    rotation: Rotation,
    /// Encoded section and interface blocks, for the start of each file.
    header_blocks: Vec<u8>,
    sink: Sink,
    buffer: Vec<u8>,
    current: TapFile,
    /// Packets of the current file that are written, not only buffered.
    flushed_packets: u64,
    number: u32,
    closed_files: VecDeque<TapFile>,
    removed: u64,
    bytes: u64,
}

impl Files {
    /// Creates the first file.
    pub fn create(output: Output, rotation: Rotation, header_blocks: Vec<u8>) -> Result<Self, WriteFailure> {
        let mut files = Self {
            output,
            rotation,
            header_blocks,
            sink: Sink::None,
            buffer: Vec::with_capacity(CHUNK + (64 << 10)),
            current: TapFile::default(),
            flushed_packets: 0,
            number: 0,
            closed_files: VecDeque::new(),
            removed: 0,
            bytes: 0,
        };
        files.open()?;
        Ok(files)
    }

    fn open(&mut self) -> Result<(), WriteFailure> {
        self.number += 1;
        let (sink, path) = match &self.output {
            Output::None => (Sink::None, PathBuf::new()),
            Output::Stdout => (Sink::Stdout(io::stdout()), PathBuf::from("-")),
            Output::Pipe(pipe) => (Sink::Pipe(Arc::clone(&pipe.into)), pipe.name.clone()),
            Output::File(path) => {
                let path = if self.rotation.is_enabled() { numbered(path, self.number) } else { path.clone() };
                let file = file::create(&path).map_err(|cause| WriteFailure { path: path.clone(), cause })?;
                (Sink::File(file), path)
            }
        };
        self.sink = sink;
        self.flushed_packets = 0;
        self.current = TapFile { path: path.display().to_string(), ..TapFile::default() };
        self.buffer.extend_from_slice(&self.header_blocks);
        self.flush()
    }

    /// Whether packets are written at all.
    pub fn is_enabled(&self) -> bool {
        !matches!(self.sink, Sink::None)
    }

    /// Writes a packet; starts a new file before it if the rotation requires one. `counts` are the statistics of
    /// each interface so far.
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>, counts: &[Counts]) -> Result<(), WriteFailure> {
        if matches!(self.sink, Sink::None) {
            return Ok(());
        }
        if self.rotation.is_enabled() && self.is_full(packet) {
            self.rotate(counts)?;
        }
        write::packet(&mut self.buffer, packet);
        self.current.packets += 1;
        self.current.first_ns.get_or_insert(packet.time_ns);
        self.current.last_ns = Some(packet.time_ns);
        if self.buffer.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    /// Appends a block that is not a packet.
    pub fn block(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        if self.is_enabled() {
            put(&mut self.buffer);
        }
    }

    fn is_full(&self, packet: &Packet<'_>) -> bool {
        let bytes = self.current.bytes + self.buffer.len() as u64 + packet.data.len() as u64;
        self.current.packets > 0
            && (self.rotation.file_bytes.is_some_and(|most| bytes > most)
                || self
                    .rotation
                    .file_ns
                    .zip(self.current.first_ns)
                    .is_some_and(|(most, first)| packet.time_ns.saturating_sub(first) >= most))
    }

    fn rotate(&mut self, counts: &[Counts]) -> Result<(), WriteFailure> {
        self.close(counts)?;
        if let Some(most) = self.rotation.files {
            while self.closed_files.len() >= most.max(1) as usize {
                if let Some(oldest) = self.closed_files.pop_front() {
                    let _ = file::remove(Path::new(&oldest.path));
                    self.removed += 1;
                }
            }
        }
        self.open()
    }

    fn close(&mut self, counts: &[Counts]) -> Result<(), WriteFailure> {
        for (number, counts) in counts.iter().enumerate() {
            write::statistics(&mut self.buffer, number as u32, counts);
        }
        let flushed = self.flush();
        self.finish_current();
        flushed
    }

    fn finish_current(&mut self) {
        if self.is_enabled() {
            self.closed_files.push_back(std::mem::take(&mut self.current));
        }
        self.sink = Sink::None;
    }

    /// Writes the buffer. If that fails, the file is truncated after its last complete block, so that it stays
    /// readable.
    pub fn flush(&mut self) -> Result<(), WriteFailure> {
        let outcome = match &mut self.sink {
            Sink::None => Ok(()),
            Sink::Stdout(pipe) => pipe.write_all(&self.buffer).and_then(|()| pipe.flush()),
            Sink::Pipe(pipe) => (&**pipe).write_all(&self.buffer),
            Sink::File(file) => file.write_all(&self.buffer),
        };
        match outcome {
            Ok(()) => {
                self.current.bytes += self.buffer.len() as u64;
                self.bytes += self.buffer.len() as u64;
                self.flushed_packets = self.current.packets;
                self.buffer.clear();
                Ok(())
            }
            Err(cause) => {
                if let Sink::File(file) = &mut self.sink {
                    let _ = file.set_len(self.current.bytes);
                    let _ = io::Seek::seek(file, io::SeekFrom::Start(self.current.bytes));
                }
                self.buffer.clear();
                self.current.packets = self.flushed_packets;
                Err(WriteFailure { path: PathBuf::from(&self.current.path), cause })
            }
        }
    }

    /// Bytes written and buffered.
    pub fn bytes(&self) -> u64 {
        self.bytes + self.buffer.len() as u64
    }

    /// Closes the last file. Statistics are written even after a failure: truncation may have made space for them.
    pub fn finish(&mut self, counts: &[Counts]) -> Result<(), WriteFailure> {
        if self.is_enabled() { self.close(counts) } else { Ok(()) }
    }

    /// The existing files, oldest first, and the number of removed files.
    pub fn listed(&mut self) -> (Vec<TapFile>, u64) {
        (std::mem::take(&mut self.closed_files).into(), self.removed)
    }
}

/// Inserts a number into a file name: `name.pcapng` becomes `name.00001.pcapng`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}.{number:05}.{}", extension.to_string_lossy()),
        None => format!("{stem}.{number:05}"),
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use landspeed_wire::capture::write::{PacketDirection, Reception};

    use super::*;

    fn packet(time_ns: u64) -> Packet<'static> {
        let (direction, reception) = (PacketDirection::In, Reception::Unknown);
        Packet { interface: 0, time_ns, original_bytes: 1500, data: &[1; 100], vlan: None, direction, reception }
    }

    #[test]
    fn rotation_keeps_the_newest_files() {
        let directory = std::env::temp_dir().join(format!("landspeed-tap-files-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let rotation = Rotation { file_bytes: Some(2000), file_ns: None, files: Some(3) };
        let output = Output::File(directory.join("x.pcapng"));
        let mut files = Files::create(output, rotation, vec![0; 100]).expect("it can be made");
        for time_ns in 0..100 {
            files.packet(&packet(time_ns), &[]).expect("room enough");
        }
        files.finish(&[]).expect("room enough");
        let (listed, removed) = files.listed();
        let there: Vec<_> = std::fs::read_dir(&directory).expect("it is there").collect();
        assert_eq!((listed.len(), there.len()), (3, 3));
        assert!(removed > 0);
        for file in &listed {
            let length = std::fs::metadata(&file.path).expect("it is there").len();
            assert!(length == file.bytes && length <= 2000 && file.packets > 5, "{file:?}");
        }
        assert_eq!(listed.last().and_then(|file| file.last_ns), Some(99));
        std::fs::remove_dir_all(&directory).expect("it is ours");
    }

    #[test]
    fn unwritten_packets_are_reported_and_not_counted() {
        let output = Output::File("/dev/full".into());
        let failure = Files::create(output, Rotation::default(), vec![0; 100]).err().expect("it is full");
        assert_eq!(failure.cause.raw_os_error(), Some(28));
    }
}
