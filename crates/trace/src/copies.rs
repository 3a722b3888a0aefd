//! Frames captured twice: by a mirror (SPAN) port that copies frames both entering and leaving a switch, or on
//! two interfaces of one router.
//!
//! A network duplicates a packet occasionally; a mirror port duplicates nearly all packets of a direction. Both
//! produce identical packets, with the same IP identification and timestamps; only their share distinguishes
//! them.

/// Number of sets in the cache of fingerprints, and (`WAYS`) of entries per set.
const SETS: usize = 4_096;
const WAYS: usize = 4;
/// Maximum delay of a copy after its original, nanoseconds. The second is for packets without an IP
/// identification: a retransmit may look the same, but takes longer.
const MAX_COPY_DELAY_NS: u64 = 50_000_000;
const MAX_COPY_DELAY_NO_ID_NS: u64 = 1_000_000;

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

/// A packet to be compared with earlier ones.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// Fingerprint of the fields that no hop changes.
    pub print: u64,
    /// Capture timestamp, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Whether the packet goes from the flow's lower endpoint to its higher one.
    pub upward: bool,
    /// Whether it has an IP identification.
    pub has_ip_id: bool,
    /// Whether it has data, SYN or FIN; pure ACKs are often identical.
    pub has_content: bool,
}

/// The latest packets, while copies are searched for.
#[derive(Debug, Default)]
pub struct Copies {
    sets: Vec<[Original; WAYS]>,
    /// By direction: packets that are identical only if copied, and pure ACKs, which may be identical.
    shares: [[Share; 2]; 2],
    /// Whether the latest copy of a packet that is not a pure ACK was attributed to a mirror port.
    mirrored: bool,
    /// Packets to examine before the capture is assumed to have no copies.
    left: u64,
    ignored: u64,
}

impl Copies {
    /// Searches the first `look` packets for copies, and all packets if there are some.
    pub fn new(look: u64) -> Self {
        Self { left: look, ..Self::default() }
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
    pub fn is_copy(&mut self, packet: Candidate) -> bool {
        if self.sets.is_empty() {
            self.sets = vec![[Original::default(); WAYS]; SETS];
        }
        let Candidate { print, time_ns, upward, has_ip_id, has_content } = packet;
        let is_distinct = has_ip_id || has_content;
        let share = &mut self.shares[usize::from(!upward)][usize::from(!is_distinct)];
        let set = &mut self.sets[(print >> 52) as usize % SETS];
        let soon_ns = if has_ip_id { MAX_COPY_DELAY_NS } else { MAX_COPY_DELAY_NO_ID_NS };
        let is_alike = |original: &&mut Original| {
            original.number > 0 && original.print == print && time_ns.saturating_sub(original.time_ns) <= soon_ns
        };
        if let Some(original) = set.iter_mut().find(is_alike) {
            // Compared with the originals up to this one: later ones may still be copied.
            share.copies += 1;
            let copied = if is_distinct {
                self.mirrored = share.copies * 2 >= original.number;
                self.mirrored
            } else {
                self.mirrored && share.copies * 4 >= original.number * 3
            };
            if !is_distinct {
                // The next identical packet is another ACK.
                original.number = 0;
            }
            self.ignored += u64::from(copied);
            return copied;
        }
        share.originals += 1;
        if let Some(oldest) = set.iter_mut().min_by_key(|original| (original.number > 0, original.time_ns)) {
            *oldest = Original { print, time_ns, number: share.originals };
        }
        self.left -= 1;
        if self.left == 0 {
            let originals: u64 = self.shares.iter().flatten().map(|share| share.originals).sum();
            if self.ignored > 0 && self.ignored * 4 >= originals {
                self.left = u64::MAX;
            } else {
                self.sets = Vec::new();
            }
        }
        false
    }
}
