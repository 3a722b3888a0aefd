//! ECN of one direction (RFC 3168), and AccECN's counter (RFC 9768).

use landspeed_model::TraceEcn;
use landspeed_wire::Flags;

/// AccECN counter (ACE field) in the first segment after the handshake (RFC 9768, 3.2.2.1).
const FIRST_COUNT: u8 = 5;

/// ECN counts of a direction.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Ecn {
    /// Whether its SYN or SYN-ACK requested or accepted AccECN.
    accurate: bool,
    /// Latest value of the ACE field.
    last: Option<u8>,
    ece: u32,
    /// Packets by codepoint: Not-ECT, ECT(1), ECT(0), CE.
    packets: [u64; 4],
    cwr: u32,
    /// Sum of the increments of the ACE field: CE marks that this side reports.
    reported: u64,
}

impl Ecn {
    /// Counts a packet by its ECN codepoint.
    #[inline]
    pub fn account(&mut self, traffic_class: u8) {
        self.packets[usize::from(traffic_class & 3)] += 1;
    }

    /// Accounts for the flags of a segment with an ECN flag, or while AccECN is in use. `peer` is the opposite
    /// direction.
    pub fn flags(&mut self, flags: Flags, peer: &Self) {
        let [ae, cwr, ece] = [Flags::AE, Flags::CWR, Flags::ECE].map(|flag| flags.has(flag));
        match (flags.has(Flags::SYN), flags.has(Flags::ACK)) {
            (true, false) => self.accurate = ae && cwr && ece,
            (true, true) => self.accurate = peer.accurate && (ae || cwr) && !(ae && cwr && ece),
            (false, _) if self.accurate && peer.accurate => {
                let count = u8::from(ae) << 2 | u8::from(cwr) << 1 | u8::from(ece);
                let before = self.last.replace(count);
                // In the client's first ACK, these bits encode the codepoint of the SYN-ACK.
                if let Some(before) = before {
                    self.reported += u64::from(count.wrapping_sub(before) & 7);
                }
            }
            (false, _) => {
                self.ece += u32::from(ece);
                self.cwr += u32::from(cwr);
            }
        }
    }

    /// Returns whether AccECN is requested or in use.
    #[inline]
    pub fn is_accurate(&self) -> bool {
        self.accurate
    }

    /// Starts the ACE count after the handshake.
    pub fn begin_count(&mut self) {
        if self.accurate {
            self.last = Some(FIRST_COUNT);
        }
    }

    /// Returns the ECN counts for the document; `None` if ECN was not used.
    pub fn document(&self, peer: &Self) -> Option<TraceEcn> {
        let [_, ect1, ect0, ce] = self.packets;
        let accurate = self.accurate;
        let used = ect0 + ect1 + ce + u64::from(self.ece) + u64::from(self.cwr) > 0 || accurate;
        used.then(|| TraceEcn {
            ect0,
            ect1,
            ce,
            ece: u64::from(self.ece),
            cwr: u64::from(self.cwr),
            accurate,
            reported_ce: (accurate && peer.accurate).then_some(self.reported),
        })
    }
}
