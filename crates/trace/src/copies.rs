//! Frames that a capture has twice: from a mirror (SPAN) port that copies frames that enter and leave a switch, or from two
//! interfaces of one router.
//!
//! A network duplicates a packet now and then; a mirror copies nearly all of a direction. Both are the very same packet, IP
//! identification and timestamps alike, and only their share distinguishes them.

/// Sets of fingerprints remembered, and how many each has room for.
const SETS: usize = 4_096;
const WAYS: usize = 4;
/// A copy comes this soon after its original, nanoseconds; a packet without an IP identification may be retransmitted alike,
/// which takes longer than the second.
const SOON_NS: u64 = 50_000_000;
const SOON_ALIKE_NS: u64 = 1_000_000;

/// A packet that was seen.
#[derive(Debug, Clone, Copy, Default)]
struct Original {
    print: u64,
    time_ns: u64,
    /// In the order of its direction's packets of its kind; 0 in an empty slot.
    number: u64,
}

/// What is copied of a direction.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    originals: u64,
    copies: u64,
}

/// A packet to be compared with those before it.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// Its fingerprint.
    pub print: u64,
    /// When it passed.
    pub time_ns: u64,
    /// Whether the direction is from the flow's lesser end to its greater one.
    pub upward: bool,
    /// Whether it has an IP identification.
    pub identified: bool,
    /// Whether it has data or opens or closes a connection: acknowledgements are often alike.
    pub moves: bool,
}

/// The latest packets, while there may be copies.
#[derive(Debug, Default)]
pub struct Copies {
    sets: Vec<[Original; WAYS]>,
    /// By direction: packets that cannot be alike unless they are copies, and acknowledgements that can.
    shares: [[Share; 2]; 2],
    /// Whether the latest copy of one that cannot was a mirror's.
    mirrored: bool,
    /// Packets to look at before the capture is taken to have none.
    left: u64,
    ignored: u64,
}

impl Copies {
    /// Looks for copies among so many packets, and among all if there are some.
    pub fn new(look: u64) -> Self {
        Self { left: look, ..Self::default() }
    }

    /// Whether copies are looked for.
    #[inline]
    pub fn is_looking(&self) -> bool {
        self.left > 0
    }

    /// How many there were.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Returns whether a packet is a mirror port's copy of an earlier one.
    pub fn is_copy(&mut self, packet: Candidate) -> bool {
        if self.sets.is_empty() {
            self.sets = vec![[Original::default(); WAYS]; SETS];
        }
        let Candidate { print, time_ns, upward, identified, moves } = packet;
        let is_distinct = identified || moves;
        let share = &mut self.shares[usize::from(!upward)][usize::from(!is_distinct)];
        let set = &mut self.sets[(print >> 52) as usize % SETS];
        let soon_ns = if identified { SOON_NS } else { SOON_ALIKE_NS };
        let is_alike = |original: &&mut Original| {
            original.number > 0 && original.print == print && time_ns.saturating_sub(original.time_ns) <= soon_ns
        };
        if let Some(original) = set.iter_mut().find(is_alike) {
            // What came after the original may be copied yet.
            share.copies += 1;
            let copied = if is_distinct {
                self.mirrored = share.copies * 2 >= original.number;
                self.mirrored
            } else {
                self.mirrored && share.copies * 4 >= original.number * 3
            };
            if !is_distinct {
                // The next one alike is another acknowledgement.
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
