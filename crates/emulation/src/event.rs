//! Frames, and what becomes of them.

/// A frame in the path. `T` is the caller's handle: what it needs to find the bytes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<T> {
    /// The caller's handle.
    pub item: T,
    /// Length, bytes, from the Ethernet header on, without the FCS.
    pub bytes: u32,
    /// Length of its IP packet, bytes; 0 if it has none, or if it is an ICMP message, which a PMTUD black hole passes.
    pub ip_bytes: u32,
    /// Hash of what makes a flow; fq_codel's queues go by it.
    pub flow: u32,
    /// Whether it is ECN-capable (ECT in the IP header): it may be marked instead of dropped.
    pub ecn_capable: bool,
    /// Whether a queue marked it (CE).
    pub marked: bool,
    /// When it was offered, nanoseconds.
    pub offered_ns: u64,
    /// When it reached its present queue, nanoseconds.
    pub queued_ns: u64,
    /// Number, in the order of arrival at the line.
    pub number: u64,
}

impl<T> Frame<T> {
    /// A frame of `bytes` about which nothing else is known.
    pub fn new(item: T, bytes: u32) -> Self {
        Self {
            item,
            bytes,
            ip_bytes: bytes.saturating_sub(crate::frame::ETHERNET_HEADER),
            flow: 0,
            ecn_capable: false,
            marked: false,
            offered_ns: 0,
            queued_ns: 0,
            number: 0,
        }
    }
}

/// Why a frame did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropCause {
    /// The policer had no tokens left.
    Policer,
    /// The queue was full.
    QueueFull,
    /// The queue's active management dropped it (red, codel, fq_codel, pie).
    Aqm,
    /// The link lost it.
    Lost,
    /// The link was down.
    LinkDown,
}

/// What became of a frame. Every frame offered ends in exactly one `Deliver` or `Drop`, and in one more for each `Copy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<T> {
    /// It leaves the path.
    Deliver {
        /// The frame.
        frame: Frame<T>,
        /// When, nanoseconds.
        due_ns: u64,
    },
    /// It was duplicated: `item` will be delivered twice.
    Copy {
        /// The caller's handle.
        item: T,
    },
    /// It does not arrive.
    Drop {
        /// The caller's handle.
        item: T,
        /// Why.
        cause: DropCause,
    },
}
