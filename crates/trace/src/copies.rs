//! Frames captured twice: by a mirror (SPAN) port that copies frames both entering and leaving a switch, or on
//! two interfaces of one router.
//!
//! A network duplicates a packet occasionally; a mirror port duplicates nearly all packets of a flow in a direction. Both
//! produce identical packets, with the same IP identification and timestamps; only their share distinguishes
//! them. The first copies of a flow are held back until it has enough of them.

use std::collections::HashMap;

use foldhash::fast::FixedState;

/// Number of sets in the cache of fingerprints, and (`WAYS`) of entries per set.
const SETS: usize = 4_096;
const WAYS: usize = 4;
/// Maximum delay of a copy after its original, nanoseconds. The second is for packets without an IP
/// identification: a retransmit may look the same, but takes longer.
const MAX_COPY_DELAY_NS: u64 = 50_000_000;
const MAX_COPY_DELAY_NO_ID_NS: u64 = 1_000_000;
/// Number of copies in a flow that prove a mirror port, and (`MIN_COPIES`) in a capture of flows with fewer packets each.
const MIN_FLOW_COPIES: u64 = 3;
const MIN_COPIES: u64 = 8;
/// Number of copies from which all packets are examined, however few they are of the first ones.
const MANY_COPIES: u64 = 64;
/// Maximum number of flows whose copies are counted; further ones share one count.
const MAX_FLOWS: usize = 65_536;
/// Maximum number of packets held back; further ones count as copies.
const MAX_HELD: usize = 4_096;

/// A packet seen earlier.
#[derive(Debug, Clone, Copy, Default)]
struct Original {
    print: u64,
    time_ns: u64,
    /// Position among the packets of its direction and kind, from 1; 0 in an empty slot.
    number: u64,
}

/// Numbers of originals and copies in a direction.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    originals: u64,
    copies: u64,
}

/// The copies of a flow.
#[derive(Debug, Clone, Copy, Default)]
struct FlowCopies {
    /// By direction: packets that are identical only if copied, and pure ACKs, which may be identical.
    shares: [[Share; 2]; 2],
    /// Whether the latest copy of a packet that is not a pure ACK is that of a mirror port, and (`proven`) whether any is.
    mirrored: bool,
    proven: bool,
}

impl FlowCopies {
    /// Returns the copies of packets that are identical only if copied, and their originals.
    fn distinct(&self) -> (u64, u64) {
        let [up, down] = self.shares.map(|[distinct, _]| distinct);
        (up.copies + down.copies, up.originals + down.originals)
    }
}

/// A packet to be compared with earlier ones.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// Fingerprint of the fields that no hop changes.
    pub print: u64,
    /// Hash of the flow's endpoints.
    pub flow: u64,
    /// Capture timestamp, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Whether the packet goes from the flow's lower endpoint to its higher one.
    pub upward: bool,
    /// Whether it has an IP identification.
    pub has_ip_id: bool,
    /// Whether it has data, SYN or FIN; pure ACKs are often identical.
    pub has_content: bool,
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Not seen before, or duplicated by the network.
    Original,
    /// A mirror port's copy.
    Copy,
    /// Seen before: a copy if the flow has more of them, otherwise duplicated by the network.
    Held,
}

/// The latest packets, while copies are searched for, and the packets `T` held back.
#[derive(Debug)]
pub struct Copies<T> {
    sets: Vec<[Original; WAYS]>,
    flows: HashMap<u64, FlowCopies, FixedState>,
    held: Vec<(u64, bool, T)>,
    /// Packets to examine before the capture is assumed to have no copies.
    left: u64,
    ignored: u64,
}

impl<T> Default for Copies<T> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<T> Copies<T> {
    /// Searches the first `look` packets for copies, and all packets if there are some.
    pub fn new(look: u64) -> Self {
        Self { sets: Vec::new(), flows: HashMap::default(), held: Vec::new(), left: look, ignored: 0 }
    }

    /// Returns whether copies are searched for.
    #[inline]
    pub fn is_looking(&self) -> bool {
        self.left > 0
    }

    /// Returns the number of copies ignored.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Returns whether a packet is a mirror port's copy of an earlier one.
    pub fn judge(&mut self, packet: Candidate) -> Verdict {
        if self.sets.is_empty() {
            self.sets = vec![[Original::default(); WAYS]; SETS];
        }
        let Candidate { print, time_ns, upward, has_ip_id, has_content, .. } = packet;
        let is_known = self.flows.len() < MAX_FLOWS || self.flows.contains_key(&packet.flow);
        let flow = self.flows.entry(if is_known { packet.flow } else { 0 }).or_default();
        let is_distinct = has_ip_id || has_content;
        let share = &mut flow.shares[usize::from(!upward)][usize::from(!is_distinct)];
        let set = &mut self.sets[(print >> 52) as usize % SETS];
        let soon_ns = if has_ip_id { MAX_COPY_DELAY_NS } else { MAX_COPY_DELAY_NO_ID_NS };
        let is_alike = |original: &&mut Original| {
            original.number > 0 && original.print == print && time_ns.saturating_sub(original.time_ns) <= soon_ns
        };
        if let Some(original) = set.iter_mut().find(is_alike) {
            // Compared with the originals up to this one: later ones may still be copied.
            share.copies += 1;
            let copied = if is_distinct {
                flow.mirrored = share.copies * 2 >= original.number;
                flow.mirrored
            } else {
                flow.mirrored && share.copies * 4 >= original.number * 3
            };
            if !is_distinct {
                // The next identical packet is another ACK.
                original.number = 0;
            }
            if !copied {
                return Verdict::Original;
            }
            flow.proven |= flow.distinct().0 >= MIN_FLOW_COPIES;
            if !flow.proven && self.held.len() < MAX_HELD {
                return Verdict::Held;
            }
            self.ignored += 1;
            return Verdict::Copy;
        }
        share.originals += 1;
        if let Some(oldest) = set.iter_mut().min_by_key(|original| (original.number > 0, original.time_ns)) {
            *oldest = Original { print, time_ns, number: share.originals };
        }
        self.left -= 1;
        if self.left == 0 {
            let originals: u64 = self.flows.values().map(|flow| flow.distinct().1).sum();
            let copies = self.ignored + self.held.len() as u64;
            if copies >= MANY_COPIES || copies > 0 && copies * 4 >= originals {
                self.left = u64::MAX;
            } else {
                self.sets = Vec::new();
            }
        }
        Verdict::Original
    }

    /// Holds a packet back.
    pub fn hold(&mut self, flow: u64, upward: bool, packet: T) {
        self.held.push((flow, upward, packet));
    }

    /// Returns the packets held back that the network duplicated, at the end of the capture; the others are copies.
    pub fn release(&mut self) -> Vec<T> {
        let totals = self.flows.values().map(FlowCopies::distinct);
        let (copies, originals) = totals.fold((0, 0), |sum, flow| (sum.0 + flow.0, sum.1 + flow.1));
        // Flows with a few packets each prove a mirror port together.
        let mirrored = copies >= MIN_COPIES && copies * 2 >= originals;
        let mut duplicates = Vec::new();
        for (flow, upward, packet) in std::mem::take(&mut self.held) {
            let flow = self.flows.get(&flow).or_else(|| self.flows.get(&0)).copied().unwrap_or_default();
            let [share, _] = flow.shares[usize::from(!upward)];
            if (flow.proven || mirrored) && share.copies * 2 >= share.originals {
                self.ignored += 1;
            } else {
                duplicates.push(packet);
            }
        }
        duplicates
    }
}
