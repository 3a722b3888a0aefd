//! Flows recognised by their headers: their packets need no dissection and no lookup.

use landspeed_wire::capture::Frame;
use landspeed_wire::{Alike, Brief};

use crate::flows::FlowAt;

/// Directions known at once: they fit the L1 cache, and more of them gain nothing.
const SLOTS: usize = 64;

/// A direction of a flow.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    alike: Alike,
    interface: u32,
    owner: Owner,
}

/// Where the packets of one direction of a flow belong.
#[derive(Debug, Clone, Copy, Default)]
pub struct Owner {
    /// The station that sends them.
    pub station: u16,
    /// Whether the direction is from the flow's lesser end to its greater one.
    pub upward: bool,
    /// The flow.
    pub flow: FlowAt,
}

/// The directions known, by their ports.
#[derive(Debug)]
pub struct Directions(Box<[Known; SLOTS]>);

impl Directions {
    /// None yet.
    pub fn new() -> Self {
        Self(Box::new([Known::default(); SLOTS]))
    }

    /// Where a frame belongs, and what else it says, if its headers are like those of a packet before.
    #[inline(always)]
    pub fn find<'a>(&self, frame: &Frame<'a>) -> Option<(Owner, Brief<'a>)> {
        let known = self.0.get(Alike::place(frame.data)?)?;
        let brief = known.alike.brief(frame.link, frame.data)?;
        (known.interface == frame.interface).then_some((known.owner, brief))
    }

    /// Keeps where packets like a frame belong.
    pub fn keep(&mut self, headers: &Headers, station: usize, upward: bool, flow: FlowAt) {
        let Headers { alike, place, interface } = *headers;
        self.0[place] = Known { alike, interface, owner: Owner { station: station as u16, upward, flow } };
    }
}

/// The headers of a frame, as far as those of others may be like them.
#[derive(Debug, Clone, Copy)]
pub struct Headers {
    alike: Alike,
    place: usize,
    interface: u32,
}

impl Headers {
    /// Of a frame, if it is a plain one.
    pub fn of(frame: &Frame<'_>) -> Option<Self> {
        let place = Alike::place(frame.data).filter(|&place| place < SLOTS)?;
        Some(Self { alike: Alike::of(frame.link, frame.data)?, place, interface: frame.interface })
    }
}
