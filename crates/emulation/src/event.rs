//! Frames, and the events at which they leave the path.

use crate::frame::{self, FrameInfo};

/// A frame in the path. `T` is the caller's handle, with which it finds the frame's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<T> {
    /// The caller's handle.
    pub item: T,
    /// Length from the Ethernet header on, without the FCS, bytes.
    pub bytes: u32,
    /// Length of the IP packet, bytes; 0 if there is none, or for an ICMP message, which a PMTUD black hole passes.
    pub ip_bytes: u32,
    /// Flow hash, by which fq_codel chooses a queue.
    pub flow: u32,
    /// Whether it is ECN-capable (ECT in the IP header), so that it may be marked instead of dropped.
    pub ecn_capable: bool,
    /// Whether a queue marked it CE.
    pub marked: bool,
    /// Arrival at the line, nanoseconds.
    pub offered_ns: u64,
    /// Arrival at its current queue, nanoseconds.
    pub queued_ns: u64,
    /// Sequence number, in the order of arrival at the line.
    pub number: u64,
}

impl<T> Frame<T> {
    /// Creates a frame of `bytes` without IP packet, flow and ECN.
    pub fn new(item: T, bytes: u32) -> Self {
        Self {
            item,
            bytes,
            ip_bytes: bytes.saturating_sub(frame::ETHERNET_HEADER),
            flow: 0,
            ecn_capable: false,
            marked: false,
            offered_ns: 0,
            queued_ns: 0,
            number: 0,
        }
    }

    /// Creates a frame with the IP length, flow and ECN capability of `ethernet`, its bytes from the Ethernet header on.
    pub fn inspected(item: T, ethernet: &[u8]) -> Self {
        let FrameInfo { ip_bytes, flow, ecn_capable } = frame::inspect(ethernet);
        Self { ip_bytes, flow, ecn_capable, ..Self::new(item, ethernet.len() as u32) }
    }
}

/// Reason why a frame was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropCause {
    /// The policer had too few tokens.
    Policer,
    /// The queue was full.
    QueueFull,
    /// Active queue management dropped it (red, codel, fq_codel, pie).
    Aqm,
    /// The loss process of the link dropped it.
    Lost,
    /// The link was down.
    LinkDown,
}

/// An event of a frame. Every offered frame ends in exactly one `Deliver` or `Drop`, plus one for each `Copy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<T> {
    /// The frame leaves the path.
    Deliver {
        /// The frame, with the caller's handle.
        frame: Frame<T>,
        /// Departure, nanoseconds.
        due_ns: u64,
    },
    /// The frame was duplicated: `item` will be delivered or dropped once more.
    Copy {
        /// The caller's handle.
        item: T,
    },
    /// The frame was dropped.
    Drop {
        /// The caller's handle.
        item: T,
        /// Reason for the drop.
        cause: DropCause,
    },
}
