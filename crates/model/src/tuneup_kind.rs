//! Categories of the changes that a tune-up tries.

/// Category of a change that a tune-up tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TuneupKind {
    /// A fixed window, or none.
    Window,
    /// Autotuning's limits.
    Buffers,
    /// The size of a write.
    Writes,
    /// The cores of both ends.
    Placement,
    /// The send mode.
    ZeroCopy,
    /// The number of streams.
    Streams,
    /// The congestion control.
    Congestion,
    /// The pacing rate.
    Pacing,
    /// The segment size.
    Mss,
    /// The queueing discipline.
    Qdisc,
    /// Offloads of the interface.
    Offloads,
    /// Several changes that were not tried alone.
    Together,
}
