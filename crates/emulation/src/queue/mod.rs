//! Queueing disciplines before a link.

mod codel;
mod fifo;
mod fq_codel;
mod pie;
mod red;

pub(crate) use codel::Codel;
pub use codel::CodelSettings;
pub(crate) use fifo::Fifo;
pub(crate) use fq_codel::FqCodel;
pub(crate) use pie::Pie;
pub(crate) use red::Red;
pub use red::RedSettings;

use crate::event::{DropCause, Frame};

/// Dropped frames with the reason.
pub(crate) type Drops<T> = Vec<(Frame<T>, DropCause)>;

/// Decision on an arriving frame by a discipline that drops on arrival (red, pie).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnqueueDecision {
    /// The frame is queued.
    Accept,
    /// The frame is dropped early, or marked if ECN is enabled and the frame is capable.
    Congested,
    /// The frame is dropped even if it is ECN-capable.
    Reject,
}

/// A queueing discipline of any kind.
#[derive(Debug)]
pub(crate) enum AnyQueue<T> {
    Fifo(Fifo<T>),
    Red(Red<T>),
    Codel(Codel<T>),
    FqCodel(Box<FqCodel<T>>),
    Pie(Pie<T>),
}

impl<T: Copy> AnyQueue<T> {
    /// Queues an arriving frame; adds dropped frames to `drops`.
    pub(crate) fn enqueue(&mut self, now_ns: u64, frame: Frame<T>, drops: &mut Drops<T>) {
        match self {
            Self::Fifo(queue) => queue.enqueue(frame, drops),
            Self::Red(queue) => queue.enqueue(now_ns, frame, drops),
            Self::Codel(queue) => queue.enqueue(frame, drops),
            Self::FqCodel(queue) => queue.enqueue(frame, drops),
            Self::Pie(queue) => queue.enqueue(now_ns, frame, drops),
        }
    }

    /// Returns the next frame to send. CoDel may drop frames, and have none left.
    pub(crate) fn dequeue(&mut self, now_ns: u64, drops: &mut Drops<T>) -> Option<Frame<T>> {
        match self {
            Self::Fifo(queue) => queue.pop(),
            Self::Red(queue) => queue.dequeue(now_ns),
            Self::Codel(queue) => queue.dequeue(now_ns, drops),
            Self::FqCodel(queue) => queue.dequeue(now_ns, drops),
            Self::Pie(queue) => queue.dequeue(now_ns),
        }
    }

    /// Number of queued frames.
    pub(crate) fn packets(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.packets(),
            Self::Red(queue) => queue.fifo.packets(),
            Self::Codel(queue) => queue.packets(),
            Self::FqCodel(queue) => queue.packets(),
            Self::Pie(queue) => queue.fifo.packets(),
        }
    }

    /// Queued bytes, counted from the Ethernet header on.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Fifo(queue) => queue.bytes(),
            Self::Red(queue) => queue.fifo.bytes(),
            Self::Codel(queue) => queue.bytes(),
            Self::FqCodel(queue) => queue.bytes(),
            Self::Pie(queue) => queue.fifo.bytes(),
        }
    }
}
