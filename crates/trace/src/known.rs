//! Flows recognised by their headers: their packets need no dissection and no lookup.

use landspeed_wire::capture::Frame;
use landspeed_wire::{FastHeader, HeaderTemplate};

use crate::flows::FlowPosition;

/// Number of directions kept: they fit the L1 cache, and more of them gain nothing.
const SLOTS: usize = 64;

/// A known direction of a flow.
#[derive(Debug, Clone, Copy, Default)]
struct KnownDirection {
    template: HeaderTemplate,
    interface: u32,
    owner: DirectionOwner,
}

/// Station and flow of the packets of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectionOwner {
    /// Index of the station that sends them.
    pub station: u16,
    /// Whether the direction is from the flow's lower endpoint to its higher one.
    pub upward: bool,
    /// Position of the flow in the flow table.
    pub flow: FlowPosition,
}

/// The known directions, in slots by their ports.
#[derive(Debug)]
pub struct KnownDirections(Box<[KnownDirection; SLOTS]>);

impl KnownDirections {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self(Box::new([KnownDirection::default(); SLOTS]))
    }

    /// Returns the owner and the variable header fields of a frame whose headers match those of an earlier packet.
    #[inline(always)]
    pub fn find<'a>(&self, frame: &Frame<'a>) -> Option<(DirectionOwner, FastHeader<'a>)> {
        let known = self.0.get(HeaderTemplate::place(frame.data)?)?;
        let fast_header = known.template.fast_header(frame.link, frame.data)?;
        (known.interface == frame.interface).then_some((known.owner, fast_header))
    }

    /// Records the owner of packets with these headers.
    pub fn keep(&mut self, headers: &Headers, station: usize, upward: bool, flow: FlowPosition) {
        let Headers { template, place, interface } = *headers;
        self.0[place] =
            KnownDirection { template, interface, owner: DirectionOwner { station: station as u16, upward, flow } };
    }
}

/// The part of a frame's headers that all packets of a direction have in common.
#[derive(Debug, Clone, Copy)]
pub struct Headers {
    template: HeaderTemplate,
    place: usize,
    interface: u32,
}

impl Headers {
    /// Returns the headers of a plain frame; `None` for other frames.
    pub fn of(frame: &Frame<'_>) -> Option<Self> {
        let place = HeaderTemplate::place(frame.data).filter(|&place| place < SLOTS)?;
        Some(Self { template: HeaderTemplate::of(frame.link, frame.data)?, place, interface: frame.interface })
    }
}
