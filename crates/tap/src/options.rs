//! Options of a tap.

use std::io::PipeWriter;
use std::path::PathBuf;
use std::sync::Arc;

use crate::selection::Selection;

/// Direction of the packets to capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TapDirection {
    /// Both directions.
    #[default]
    Both,
    /// Received packets only.
    In,
    /// Sent packets only.
    Out,
}

/// Clock of the timestamps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clock {
    /// Kernel timestamps (software).
    #[default]
    Software,
    /// Interface timestamps (hardware) if available; otherwise the kernel's, with a warning.
    Hardware,
}

/// When the next file is begun, and how many are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rotation {
    /// Maximum size of a file, bytes.
    pub file_bytes: Option<u64>,
    /// Maximum time span of a file, nanoseconds of packet time.
    pub file_ns: Option<u64>,
    /// Maximum number of files; the oldest is removed when exceeded.
    pub files: Option<u32>,
}

impl Rotation {
    /// Whether files are rotated.
    pub fn is_enabled(&self) -> bool {
        self.file_bytes.is_some() || self.file_ns.is_some()
    }
}

/// Destination of the packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Output {
    /// None: packets are only counted.
    #[default]
    None,
    /// Standard output.
    Stdout,
    /// A file; with rotation, several files with numbered names.
    File(PathBuf),
    /// A consumer that converts the capture.
    Pipe(Pipe),
}

/// A pipe to a consumer, which converts the capture.
#[derive(Debug, Clone)]
pub struct Pipe {
    /// Path of the file that the consumer writes, for messages.
    pub name: PathBuf,
    /// Write end of the pipe. The reader sees the end of file when the tap and its options are dropped.
    pub into: Arc<PipeWriter>,
}

impl PartialEq for Pipe {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.into, &other.into)
    }
}

impl Eq for Pipe {}

/// Limits after which the capture ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of packets written.
    pub packets: Option<u64>,
    /// Maximum number of bytes written.
    pub bytes: Option<u64>,
    /// Maximum duration, nanoseconds.
    pub time_ns: Option<u64>,
}

/// All options of a tap.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names of the interfaces to capture on.
    pub interfaces: Vec<String>,
    /// Capture filter in the language of pcap-filter(7).
    pub filter: Option<String>,
    /// Keeps only headers, and only of flows that may belong to one test.
    pub selection: Option<Arc<Selection>>,
    /// Snap length: maximum captured bytes of a packet.
    pub snap_bytes: u32,
    /// Direction of the packets to capture.
    pub direction: TapDirection,
    /// Clock of the timestamps.
    pub clock: Clock,
    /// Whether to capture frames for other hosts too (promiscuous mode).
    pub promiscuous: bool,
    /// Total size of the rings of an interface, bytes.
    pub ring_bytes: u64,
    /// Number of rings per interface; packets are distributed by CPU.
    pub rings: u32,
    /// Core to which the reading thread is pinned.
    pub core: Option<u32>,
    /// Destination of the packets.
    pub output: Output,
    /// When the next file is begun, and how many are kept.
    pub rotation: Rotation,
    /// Limits after which the capture ends.
    pub limits: Limits,
    /// Whether to record kernel events too.
    pub events: bool,
    /// Duration of the CPU measurement before the capture, nanoseconds; 0 disables it.
    pub baseline_ns: u64,
    /// Duration of the measurement of the tap's effect on traffic, nanoseconds; 0 disables it.
    pub slices_ns: u64,
    /// Name of the writing program, recorded in the file.
    pub application: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interfaces: Vec::new(),
            filter: None,
            selection: None,
            snap_bytes: 128,
            direction: TapDirection::Both,
            clock: Clock::Software,
            promiscuous: false,
            ring_bytes: 32 << 20,
            rings: 1,
            core: None,
            output: Output::None,
            rotation: Rotation::default(),
            limits: Limits::default(),
            events: false,
            baseline_ns: 0,
            slices_ns: 0,
            application: String::new(),
        }
    }
}
