//! Multipath TCP options of a flow (RFC 8684).

use landspeed_wire::{DataNumber, Flags, MultipathOption};

/// Multipath options of a flow. Index 0 of an array is the lower endpoint of the flow's key.
#[derive(Debug, Clone, Default)]
pub struct Subflow {
    /// `MP_CAPABLE`: its version.
    pub version: Option<u8>,
    /// `MP_JOIN`: token in the SYN.
    pub token: Option<u32>,
    /// Whether it has `MP_JOIN`.
    pub joined: bool,
    /// Whether it is a backup.
    pub backup: bool,
    /// Whether the lower endpoint sent the SYN with the option.
    pub client_is_low: Option<bool>,
    /// Whether each endpoint sent an option in the handshake, or later ones.
    pub took_part: [bool; 2],
    /// Key of each endpoint.
    pub keys: [Option<u64>; 2],
    /// Highest data acknowledgement that each endpoint sent.
    pub acknowledged: [Option<DataNumber>; 2],
    /// Number after the last byte of data that each endpoint sent.
    pub end: [Option<DataNumber>; 2],
}

impl Subflow {
    /// Accounts for the option of a segment.
    pub fn account(&mut self, option: MultipathOption, flags: Flags, upward: bool) {
        let (own, other) = (usize::from(!upward), usize::from(upward));
        self.took_part[own] = true;
        if flags.has(Flags::SYN) {
            self.client_is_low.get_or_insert(upward != flags.has(Flags::ACK));
        }
        match option {
            MultipathOption::Capable { version, sender_key, receiver_key } => {
                self.version = Some(version);
                self.keys[own] = self.keys[own].or(sender_key);
                self.keys[other] = self.keys[other].or(receiver_key);
            }
            MultipathOption::Join { token, backup } => {
                self.joined = true;
                self.token = self.token.or(token);
                self.backup |= backup;
            }
            MultipathOption::Signal(signal) => {
                if let Some(number) = signal.acknowledgement {
                    self.acknowledged[own] = Some(later(self.acknowledged[own], number));
                }
                self.end[own] = self.end[own].or(signal.end);
            }
        }
    }
}

/// Returns the later of two data sequence numbers; a whole one rather than the lower half of one.
fn later(latest: Option<DataNumber>, number: DataNumber) -> DataNumber {
    match (latest, number) {
        (Some(DataNumber::Whole(before)), DataNumber::Whole(now)) if (now.wrapping_sub(before) as i64) < 0 => {
            DataNumber::Whole(before)
        }
        (Some(DataNumber::Low(before)), DataNumber::Low(now)) if (now.wrapping_sub(before) as i32) < 0 => {
            DataNumber::Low(before)
        }
        (Some(before @ DataNumber::Whole(_)), DataNumber::Low(_)) => before,
        _ => number,
    }
}
