//! What a tap is asked for.

use std::io::PipeWriter;
use std::path::PathBuf;
use std::sync::Arc;

use crate::selection::Selection;

/// Direction of the packets to capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TapDirection {
    /// Both ways.
    #[default]
    Both,
    /// Received.
    In,
    /// Sent.
    Out,
}

/// The clock of packets' timestamps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clock {
    /// The kernel's, when it sees the packet.
    #[default]
    Software,
    /// The interface's, where it has one; else the kernel's, which is said.
    Hardware,
}

/// A ring of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rotation {
    /// A new file after so many bytes.
    pub file_bytes: Option<u64>,
    /// A new file after so long, nanoseconds of the packets' time.
    pub file_ns: Option<u64>,
    /// Files kept: the oldest is removed for a newer one.
    pub files: Option<u32>,
}

impl Rotation {
    /// Whether there is more than one file at all.
    pub fn is_on(&self) -> bool {
        self.file_bytes.is_some() || self.file_ns.is_some()
    }
}

/// Where packets go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Output {
    /// Nowhere: they are counted.
    #[default]
    None,
    /// Standard output.
    Stdout,
    /// A file, or with a rotation several whose names are made from this one's.
    File(PathBuf),
    /// A consumer that converts the capture.
    Pipe(Pipe),
}

/// A pipe, and what comes of what is written to it.
#[derive(Debug, Clone)]
pub struct Pipe {
    /// The file that is made of it.
    pub name: PathBuf,
    /// The end to write to. The other end sees the end when the tap and its options are gone.
    pub into: Arc<PipeWriter>,
}

impl PartialEq for Pipe {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.into, &other.into)
    }
}

impl Eq for Pipe {}

/// When it ends by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// After so many packets written.
    pub packets: Option<u64>,
    /// After so many bytes written.
    pub bytes: Option<u64>,
    /// After so long, nanoseconds.
    pub time_ns: Option<u64>,
}

/// A tap.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names of the interfaces.
    pub interfaces: Vec<String>,
    /// Capture filter in the language of pcap-filter(7).
    pub filter: Option<String>,
    /// Keep only headers, and only of flows that may belong to one test.
    pub selection: Option<Arc<Selection>>,
    /// Snap length: bytes captured of each packet at most.
    pub snap_bytes: u32,
    /// Its direction.
    pub direction: TapDirection,
    /// Whose clock.
    pub clock: Clock,
    /// Frames for other hosts too.
    pub promiscuous: bool,
    /// Bytes of the ring of an interface, all its parts together.
    pub ring_bytes: u64,
    /// Rings per interface, each for the packets of some CPUs.
    pub rings: u32,
    /// Core of the thread that reads and writes.
    pub core: Option<u32>,
    /// Where packets go.
    pub output: Output,
    /// In which files.
    pub rotation: Rotation,
    /// Until when.
    pub limits: Limits,
    /// Record the kernel's events, too.
    pub events: bool,
    /// How long the host is looked at before the tap begins, nanoseconds; 0 for not at all.
    pub baseline_ns: u64,
    /// How long the tap is switched on and off to see what it does to the traffic, nanoseconds; 0 for not at all.
    pub slices_ns: u64,
    /// What the file says about where it comes from.
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
