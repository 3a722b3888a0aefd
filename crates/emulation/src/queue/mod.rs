//! Queues in front of a link.

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

/// Frames that a queue dropped, and why.
pub(crate) type Drops<T> = Vec<(Frame<T>, DropCause)>;

/// What happened to a frame at the entrance of an active queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It goes in.
    Enter,
    /// It is dropped early, or marked where that is configured and the frame can be.
    Congested,
    /// It is dropped whatever it says.
    Refuse,
}

/// Any queue.
#[derive(Debug)]
pub(crate) enum AnyQueue<T> {
    Fifo(Fifo<T>),
    Red(Red<T>),
    Codel(Codel<T>),
    FqCodel(Box<FqCodel<T>>),
    Pie(Pie<T>),
}

impl<T: Copy> AnyQueue<T> {
    /// A frame arrives.
    pub(crate) fn enqueue(&mut self, now_ns: u64, frame: Frame<T>, drops: &mut Drops<T>) {
        match self {
            Self::Fifo(queue) => queue.enqueue(frame, drops),
            Self::Red(queue) => queue.enqueue(now_ns, frame, drops),
            Self::Codel(queue) => queue.enqueue(frame, drops),
            Self::FqCodel(queue) => queue.enqueue(frame, drops),
            Self::Pie(queue) => queue.enqueue(now_ns, frame, drops),
        }
    }

    /// The link is free: the next frame for it. An active queue may drop some, and have none left.
    pub(crate) fn dequeue(&mut self, now_ns: u64, drops: &mut Drops<T>) -> Option<Frame<T>> {
        match self {
            Self::Fifo(queue) => queue.pop(),
            Self::Red(queue) => queue.dequeue(now_ns),
            Self::Codel(queue) => queue.dequeue(now_ns, drops),
            Self::FqCodel(queue) => queue.dequeue(now_ns, drops),
            Self::Pie(queue) => queue.dequeue(now_ns),
        }
    }

    /// Frames in it.
    pub(crate) fn packets(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.packets(),
            Self::Red(queue) => queue.fifo.packets(),
            Self::Codel(queue) => queue.packets(),
            Self::FqCodel(queue) => queue.packets(),
            Self::Pie(queue) => queue.fifo.packets(),
        }
    }

    /// Bytes in it, of frames from the Ethernet header on.
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
