//! Reassembly of IP fragments by their lengths: the headers are in the first fragment, and payload is not needed.

use std::collections::{HashMap, VecDeque};

use crate::dissect::{FragmentedPacket, Packet, Transport};

/// Maximum number of incomplete datagrams. Beyond it, the oldest is given up.
const MAX_INCOMPLETE: usize = 4_096;
/// Time after which a receiver gives up an incomplete datagram (`net.ipv4.ipfrag_time` of Linux), nanoseconds.
const TIMEOUT_NS: u64 = 30_000_000_000;
/// Maximum number of gaps in a datagram: 65,535 bytes in fragments of 8 bytes have more, but no sender makes them.
const MAX_RANGES: usize = 256;

/// Fragments of a packet that is not complete yet.
#[derive(Debug, Default)]
struct Incomplete {
    first_ns: u64,
    /// The packet as dissected from its first fragment, and the length of that.
    head: Option<(Packet, u32)>,
    total: Option<u32>,
    /// Ranges of the payload, in order, not touching each other.
    ranges: Vec<(u32, u32)>,
    fragments: u64,
    is_analysed: bool,
}

impl Incomplete {
    fn add(&mut self, from: u32, to: u32) {
        let (mut from, mut to) = (from, to);
        self.ranges.retain(|&(low, high)| {
            let is_disjoint = high < from || to < low;
            if !is_disjoint {
                (from, to) = (from.min(low), to.max(high));
            }
            is_disjoint
        });
        if self.ranges.len() < MAX_RANGES {
            self.ranges.push((from, to));
        }
    }

    fn is_complete(&self) -> bool {
        self.total.is_some_and(|total| self.ranges == [(0, total)])
    }
}

/// Fragments of packets, until these are complete.
#[derive(Debug, Default)]
pub struct Reassembler {
    incomplete: HashMap<FragmentedPacket, Incomplete>,
    /// The incomplete packets and their first times, oldest first; complete ones among them are skipped.
    order: VecDeque<(FragmentedPacket, u64)>,
    reassembled: u64,
    given_up: u64,
}

impl Reassembler {
    /// Adds a fragment. Returns its packet once that is complete: with the headers of the first fragment and the payload
    /// of all of them.
    pub fn add(&mut self, packet: Packet, time_ns: u64) -> Option<Packet> {
        let Some(fragment) = packet.fragment else { return Some(packet) };
        let key = fragment.packet;
        if self.incomplete.get(&key).is_some_and(|other| time_ns.saturating_sub(other.first_ns) > TIMEOUT_NS) {
            self.give_up(&key);
        }
        if !self.incomplete.contains_key(&key) {
            self.order.push_back((key, time_ns));
            self.incomplete.insert(key, Incomplete { first_ns: time_ns, ..Incomplete::default() });
            if self.incomplete.len() > MAX_INCOMPLETE {
                self.give_up_oldest();
            }
            if self.order.len() > 2 * MAX_INCOMPLETE {
                let incomplete = &self.incomplete;
                self.order
                    .retain(|(key, since_ns)| incomplete.get(key).is_some_and(|other| other.first_ns == *since_ns));
            }
        }
        let datagram = self.incomplete.get_mut(&key)?;
        datagram.fragments += 1;
        datagram.add(fragment.offset, fragment.offset.saturating_add(fragment.length));
        if !fragment.more {
            datagram.total = Some(fragment.offset.saturating_add(fragment.length));
        }
        let is_head = fragment.offset == 0 && packet.transport != Transport::Fragment;
        if is_head {
            datagram.head.get_or_insert((packet, fragment.length));
        }
        // Only the headers of an encapsulated packet are needed.
        let is_wrapper = is_head && fragment.encapsulates && !std::mem::replace(&mut datagram.is_analysed, true);
        if datagram.is_complete() {
            let Incomplete { head, total, fragments, is_analysed, .. } = self.incomplete.remove(&key)?;
            let (head, length) = match head {
                Some(head) if !is_analysed || is_wrapper => head,
                Some(_) => {
                    self.reassembled += fragments;
                    return None;
                }
                None => {
                    // The transport header itself is split.
                    self.given_up += fragments;
                    return None;
                }
            };
            self.reassembled += fragments;
            return Some(if is_wrapper { head } else { whole(head, total?.saturating_sub(length)) });
        }
        is_wrapper.then_some(packet)
    }

    /// Returns the number of fragments that were analysed.
    pub fn reassembled(&self) -> u64 {
        let open = self.incomplete.values().filter(|datagram| datagram.is_analysed);
        self.reassembled + open.map(|datagram| datagram.fragments).sum::<u64>()
    }

    /// Returns the number of fragments of incomplete packets, which were not analysed.
    pub fn not_analysed(&self) -> u64 {
        let open = self.incomplete.values().filter(|datagram| !datagram.is_analysed);
        self.given_up + open.map(|datagram| datagram.fragments).sum::<u64>()
    }

    fn give_up(&mut self, key: &FragmentedPacket) {
        if let Some(Incomplete { fragments, is_analysed, .. }) = self.incomplete.remove(key) {
            *(if is_analysed { &mut self.reassembled } else { &mut self.given_up }) += fragments;
        }
    }

    fn give_up_oldest(&mut self) {
        while let Some((key, since_ns)) = self.order.pop_front() {
            if self.incomplete.get(&key).is_some_and(|other| other.first_ns == since_ns) {
                self.give_up(&key);
                return;
            }
        }
    }
}

/// Returns a packet with the payload of its later fragments.
fn whole(mut packet: Packet, more: u32) -> Packet {
    packet.network.payload = packet.network.payload.saturating_add(more);
    packet.fragment = None;
    match &mut packet.transport {
        Transport::Tcp(tcp) => tcp.payload = tcp.payload.saturating_add(more),
        Transport::Udp { payload, .. } => *payload = payload.saturating_add(more),
        Transport::Icmp(_) | Transport::Fragment | Transport::Other => {}
    }
    packet
}
