//! The pcapng format: sections of blocks (draft-ietf-opsawg-pcapng).

use super::{CaptureError, CaptureItem, Frame, InterfaceStatistics, MAX_RECORD_BYTES, Order};
use crate::LinkType;

/// Type of a section header block: the same in both byte orders.
pub const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
/// Obsolete packet block, found in old files.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
/// Size of a block's type and its two length fields, bytes.
const BLOCK_OVERHEAD: u32 = 12;
/// Maximum plausible number of interfaces in a section.
const MAX_INTERFACES: usize = 65_536;
/// Maximum stored length of an interface name, characters.
const MAX_NAME_CHARS: usize = 64;

/// Timestamp resolution of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resolution {
    Microseconds,
    Nanoseconds,
    /// Units per second.
    Units(u64),
}

#[derive(Debug, Clone)]
struct Interface {
    link: LinkType,
    snap: u32,
    resolution: Resolution,
    offset_s: i64,
    name: Option<String>,
}

/// Reader of pcapng blocks.
#[derive(Debug, Clone)]
pub struct Pcapng {
    order: Order,
    /// Interfaces of all sections so far; those of the current section start at `first`.
    interfaces: Vec<Interface>,
    first: usize,
}

impl Default for Pcapng {
    fn default() -> Self {
        Self { order: Order::Little, interfaces: Vec::new(), first: 0 }
    }
}

impl Pcapng {
    /// Name of an interface.
    pub fn interface_name(&self, interface: u32) -> Option<&str> {
        self.interfaces.get(interface as usize)?.name.as_deref()
    }

    /// Parses the next block.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, CaptureItem<'a>), CaptureError> {
        let Some(head) = bytes.first_chunk::<12>() else { return Ok((0, CaptureItem::More(12))) };
        let mut kind = self.order.u32_at(head, 0);
        if kind == SECTION {
            self.order = match self.order.u32_at(head, 8) {
                BYTE_ORDER => self.order,
                swapped if swapped == BYTE_ORDER.swap_bytes() => match self.order {
                    Order::Little => Order::Big,
                    Order::Big => Order::Little,
                },
                _ => return Err(CaptureError::Damaged("a section without its byte order mark")),
            };
            kind = SECTION;
        }
        let length = self.order.u32_at(head, 4);
        if length < BLOCK_OVERHEAD || !length.is_multiple_of(4) || length > MAX_RECORD_BYTES {
            return Err(CaptureError::Length(length));
        }
        let Some(block) = bytes.get(..length as usize) else { return Ok((0, CaptureItem::More(length as usize))) };
        if self.order.u32_at(block, block.len() - 4) != length {
            return Err(CaptureError::Damaged("a block whose two lengths differ"));
        }
        let body = block.get(8..block.len() - 4).unwrap_or_default();
        let next = match kind {
            ENHANCED_PACKET => self.enhanced(body)?,
            SECTION => self.section(body)?,
            INTERFACE => self.interface(body)?,
            SIMPLE_PACKET => self.simple(body)?,
            PACKET => self.obsolete(body)?,
            STATISTICS => self.statistics(body),
            _ => CaptureItem::Skipped,
        };
        Ok((block.len(), next))
    }

    fn section(&mut self, body: &[u8]) -> Result<CaptureItem<'static>, CaptureError> {
        let (major, minor) = (self.order.u16_at(body, 4), self.order.u16_at(body, 6));
        if major != 1 {
            return Err(CaptureError::Version { format: "pcapng", major, minor });
        }
        self.first = self.interfaces.len();
        Ok(CaptureItem::Skipped)
    }

    fn interface(&mut self, body: &[u8]) -> Result<CaptureItem<'static>, CaptureError> {
        if body.len() < 8 {
            return Err(CaptureError::Damaged("an interface description that is too short"));
        }
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(CaptureError::Damaged("more interfaces than any host has"));
        }
        let mut interface = Interface {
            link: LinkType(u32::from(self.order.u16_at(body, 0))),
            snap: self.order.u32_at(body, 4),
            resolution: Resolution::Microseconds,
            offset_s: 0,
            name: None,
        };
        for (code, value) in Options::new(self.order, body.get(8..).unwrap_or_default()) {
            match (code, value) {
                (2, name) => {
                    let name = name.get(..name.len().min(MAX_NAME_CHARS)).unwrap_or_default();
                    interface.name = Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned());
                }
                (9, &[resolution, ..]) => interface.resolution = units(resolution)?,
                (14, value) => {
                    if let Some(value) = value.first_chunk::<8>() {
                        interface.offset_s = match self.order {
                            Order::Little => i64::from_le_bytes(*value),
                            Order::Big => i64::from_be_bytes(*value),
                        };
                    }
                }
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(CaptureItem::Skipped)
    }

    fn of(&self, interface: u32) -> Result<(u32, &Interface), CaptureError> {
        let number = self.first + interface as usize;
        let found =
            self.interfaces.get(number).ok_or(CaptureError::Damaged("a frame of an interface not described"))?;
        Ok((number as u32, found))
    }

    fn enhanced<'a>(&self, body: &'a [u8]) -> Result<CaptureItem<'a>, CaptureError> {
        let header: &[u8; 20] =
            body.first_chunk().ok_or(CaptureError::Damaged("a packet block that is too short"))?;
        let order = self.order;
        self.frame(order.u32_at(header, 0), header, body)
    }

    fn obsolete<'a>(&self, body: &'a [u8]) -> Result<CaptureItem<'a>, CaptureError> {
        let header: &[u8; 20] =
            body.first_chunk().ok_or(CaptureError::Damaged("a packet block that is too short"))?;
        self.frame(u32::from(self.order.u16_at(header, 0)), header, body)
    }

    /// Parses the common part of enhanced and obsolete packet blocks, which have the same layout from the fifth
    /// byte on.
    fn frame<'a>(&self, interface: u32, header: &[u8; 20], body: &'a [u8]) -> Result<CaptureItem<'a>, CaptureError> {
        let order = self.order;
        let (number, of) = self.of(interface)?;
        let units = u64::from(order.u32_at(header, 4)) << 32 | u64::from(order.u32_at(header, 8));
        let captured = order.u32_at(header, 12);
        let data = body.get(20..).and_then(|rest| rest.get(..captured as usize));
        let data = data.ok_or(CaptureError::Damaged("a packet longer than its block"))?;
        let original = order.u32_at(header, 16).max(captured);
        Ok(CaptureItem::Frame(Frame { interface: number, link: of.link, time_ns: of.time_ns(units), original, data }))
    }

    fn simple<'a>(&self, body: &'a [u8]) -> Result<CaptureItem<'a>, CaptureError> {
        let (number, of) = self.of(0)?;
        let original = self.order.u32_at(body, 0);
        let rest = body.get(4..).ok_or(CaptureError::Damaged("a packet block that is too short"))?;
        let snap = if of.snap == 0 { u32::MAX } else { of.snap };
        let captured = (original.min(snap) as usize).min(rest.len());
        let data = rest.get(..captured).unwrap_or_default();
        Ok(CaptureItem::Frame(Frame { interface: number, link: of.link, time_ns: 0, original, data }))
    }

    fn statistics(&self, body: &[u8]) -> CaptureItem<'static> {
        let Ok((interface, _)) = self.of(self.order.u32_at(body, 0)) else { return CaptureItem::Skipped };
        let mut statistics = InterfaceStatistics { interface, ..InterfaceStatistics::default() };
        for (code, value) in Options::new(self.order, body.get(12..).unwrap_or_default()) {
            let Some(number) = value.first_chunk::<8>().map(|bytes| match self.order {
                Order::Little => u64::from_le_bytes(*bytes),
                Order::Big => u64::from_be_bytes(*bytes),
            }) else {
                continue;
            };
            match code {
                4 => statistics.received = Some(number),
                5 | 7 => statistics.dropped = Some(statistics.dropped.unwrap_or(0).saturating_add(number)),
                _ => {}
            }
        }
        CaptureItem::Statistics(statistics)
    }
}

impl Interface {
    fn time_ns(&self, units: u64) -> u64 {
        let ns = match self.resolution {
            Resolution::Microseconds => units.saturating_mul(1_000),
            Resolution::Nanoseconds => units,
            Resolution::Units(second) => {
                let ns = u128::from(units) * 1_000_000_000 / u128::from(second);
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
        };
        ns.saturating_add_signed(self.offset_s.saturating_mul(1_000_000_000))
    }
}

/// Parses `if_tsresol`: a negative power of 10, or of 2 if the top bit is set.
fn units(resolution: u8) -> Result<Resolution, CaptureError> {
    const INVALID_RESOLUTION: CaptureError = CaptureError::Damaged("a time resolution that cannot be");
    let exponent = u32::from(resolution & 0x7f);
    let second = if resolution & 0x80 == 0 { 10_u64.checked_pow(exponent) } else { 1_u64.checked_shl(exponent) };
    Ok(match second.ok_or(INVALID_RESOLUTION)? {
        1_000_000 => Resolution::Microseconds,
        1_000_000_000 => Resolution::Nanoseconds,
        second => Resolution::Units(second),
    })
}

/// Iterates over the options of a block (code and value), up to the end or the first malformed one.
struct Options<'a> {
    order: Order,
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    fn new(order: Order, rest: &'a [u8]) -> Self {
        Self { order, rest }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let head = self.rest.first_chunk::<4>()?;
        let (code, length) = (self.order.u16_at(head, 0), usize::from(self.order.u16_at(head, 2)));
        let value = self.rest.get(4..4 + length)?;
        self.rest = self.rest.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        (code != 0).then_some((code, value))
    }
}
