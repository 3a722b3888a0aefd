//! The order in which packets were sent.

/// Fields that show which of two packets was sent first.
#[derive(Debug, Clone, Copy, Default)]
pub struct SendOrder {
    /// IPv4 identification; 0 if unknown.
    pub identification: u16,
    /// TSval of the TCP timestamps option.
    pub timestamp: Option<u32>,
}

impl SendOrder {
    /// Returns `Some(true)` if this packet was certainly sent before the other, `Some(false)` if after it.
    pub(super) fn before(self, other: Self) -> Option<bool> {
        // Timestamps do not wrap within a connection's memory; identifications do, within 40 ms at 10 Gb/s.
        if let Some((mine, theirs)) = self.timestamp.zip(other.timestamp)
            && mine != theirs
        {
            return Some((mine.wrapping_sub(theirs) as i32) < 0);
        }
        let (mine, theirs) = (self.identification, other.identification);
        (mine != 0 && theirs != 0 && mine != theirs).then(|| (mine.wrapping_sub(theirs) as i16) < 0)
    }

    /// Returns the same without the IP identification if it is too old to be compared: others have used it since.
    pub(super) fn younger_than(self, age_ns: u64, limit_ns: u64) -> Self {
        if age_ns < limit_ns { self } else { Self { identification: 0, ..self } }
    }
}

/// The latest segment that consumed sequence numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastData {
    pub start: u64,
    pub length: u32,
    pub mark: SendOrder,
    pub time_ns: u64,
}
