//! ECN of one direction (RFC 3168), and AccECN's counter (RFC 9768).

use landspeed_model::TraceEcn;
use landspeed_wire::Flags;

/// The accurate counter of the first segment after the handshake (RFC 9768, 3.2.2.1).
const FIRST_COUNT: u8 = 5;

/// ECN counts of a direction.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Ecn {
    /// Whether its SYN or SYN-ACK asked for or accepted the accurate counter.
    accurate: bool,
    /// The last value of the counter.
    last: Option<u8>,
    ece: u32,
    /// Packets by codepoint: Not-ECT, ECT(1), ECT(0), CE.
    packets: [u64; 4],
    cwr: u32,
    /// What the counter adds up to.
    reported: u64,
}

impl Ecn {
    /// A packet with a codepoint passes.
    #[inline]
    pub fn pass(&mut self, traffic_class: u8) {
        self.packets[usize::from(traffic_class & 3)] += 1;
    }

    /// Its flags, where they have a bit of ECN or the counter is in use. `peer` is the other end's.
    pub fn flags(&mut self, flags: Flags, peer: &Self) {
        let [ae, cwr, ece] = [Flags::AE, Flags::CWR, Flags::ECE].map(|flag| flags.has(flag));
        match (flags.has(Flags::SYN), flags.has(Flags::ACK)) {
            (true, false) => self.accurate = ae && cwr && ece,
            (true, true) => self.accurate = peer.accurate && (ae || cwr) && !(ae && cwr && ece),
            (false, _) if self.accurate && peer.accurate => {
                let count = u8::from(ae) << 2 | u8::from(cwr) << 1 | u8::from(ece);
                let before = self.last.replace(count);
                // The client's first acknowledgement has the codepoint of the SYN-ACK in there.
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

    /// Whether the accurate counter is asked for or in use.
    #[inline]
    pub fn is_accurate(&self) -> bool {
        self.accurate
    }

    /// The client has ended the handshake: its counter begins.
    pub fn begin_count(&mut self) {
        if self.accurate {
            self.last = Some(FIRST_COUNT);
        }
    }

    /// Returns it as in the document.
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
