//! First in, first out, with a limit in bytes, in packets, or both.

use std::collections::VecDeque;

use super::Drops;
use crate::event::{DropCause, Frame};

/// A tail-drop queue.
#[derive(Debug)]
pub(crate) struct Fifo<T> {
    frames: VecDeque<Frame<T>>,
    bytes: u64,
    limit_bytes: u64,
    limit_packets: usize,
}

impl<T: Copy> Fifo<T> {
    pub(crate) fn of_bytes(limit_bytes: u64) -> Self {
        Self { frames: VecDeque::new(), bytes: 0, limit_bytes, limit_packets: usize::MAX }
    }

    pub(crate) fn of_packets(limit_packets: usize) -> Self {
        Self { frames: VecDeque::new(), bytes: 0, limit_bytes: u64::MAX, limit_packets }
    }

    /// Whether another frame of `bytes` fits.
    pub(crate) fn fits(&self, bytes: u32) -> bool {
        self.bytes + u64::from(bytes) <= self.limit_bytes && self.frames.len() < self.limit_packets
    }

    pub(crate) fn enqueue(&mut self, frame: Frame<T>, drops: &mut Drops<T>) {
        if self.fits(frame.bytes) {
            self.push(frame);
        } else {
            drops.push((frame, DropCause::QueueFull));
        }
    }

    pub(crate) fn push(&mut self, frame: Frame<T>) {
        self.bytes += u64::from(frame.bytes);
        self.frames.push_back(frame);
    }

    pub(crate) fn pop(&mut self) -> Option<Frame<T>> {
        let frame = self.frames.pop_front()?;
        self.bytes -= u64::from(frame.bytes);
        Some(frame)
    }

    pub(crate) fn packets(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}
