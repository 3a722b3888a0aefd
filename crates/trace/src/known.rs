//! Flows recognised by their headers: their packets need no dissection and no lookup.

use landspeed_wire::capture::Frame;
use landspeed_wire::{Alike, Brief};

use crate::flows::FlowAt;

/// Number of directions kept: they fit the L1 cache, and more of them gain nothing.
const SLOTS: usize = 64;

/// A known direction of a flow.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    alike: Alike,
    interface: u32,
    owner: Owner,
}

/// Station and flow of the packets of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Owner {
    /// Index of the station that sends them.
    pub station: u16,
    /// Whether the direction is from the flow's lower endpoint to its higher one.
    pub upward: bool,
    /// Position of the flow in the flow table.
    pub flow: FlowAt,
}

/// The known directions, in slots by their ports.
#[derive(Debug)]
pub struct Directions(Box<[Known; SLOTS]>);

impl Directions {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self(Box::new([Known::default(); SLOTS]))
    }

    /// Returns the owner and the variable header fields of a frame whose headers match those of an earlier packet.
    #[inline(always)]
    pub fn find<'a>(&self, frame: &Frame<'a>) -> Option<(Owner, Brief<'a>)> {
        let known = self.0.get(Alike::place(frame.data)?)?;
        let brief = known.alike.brief(frame.link, frame.data)?;
        (known.interface == frame.interface).then_some((known.owner, brief))
    }

    /// Records the owner of packets with these headers.
    pub fn keep(&mut self, headers: &Headers, station: usize, upward: bool, flow: FlowAt) {
        let Headers { alike, place, interface } = *headers;
        self.0[place] = Known { alike, interface, owner: Owner { station: station as u16, upward, flow } };
    }
}

/// The part of a frame's headers that all packets of a direction have in common.
#[derive(Debug, Clone, Copy)]
pub struct Headers {
    alike: Alike,
    place: usize,
    interface: u32,
}

impl Headers {
    /// Returns the headers of a plain frame; `None` for other frames.
    pub fn of(frame: &Frame<'_>) -> Option<Self> {
        let place = Alike::place(frame.data).filter(|&place| place < SLOTS)?;
        Some(Self { alike: Alike::of(frame.link, frame.data)?, place, interface: frame.interface })
    }
}
