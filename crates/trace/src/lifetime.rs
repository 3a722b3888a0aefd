//! Separates connections with the same four-tuple.

use landspeed_wire::{Flags, TcpHeader};

/// Flags that open or close a connection.
pub const LIFECYCLE_FLAGS: Flags = Flags(Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0);

/// Progress of a connection, by the segments that open and close it. Index 0 is the direction from the lower
/// endpoint of the key to the higher.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lifetime {
    /// Initial sequence number of each direction.
    initial: [Option<u32>; 2],
    /// Initial sequence number of each direction, as acknowledged by the peer's SYN-ACK.
    acked_isn: [Option<u32>; 2],
    closed: [bool; 2],
    reset: bool,
}

impl Lifetime {
    /// Returns the lifetime of a connection that begins with this segment.
    pub fn of(tcp: &TcpHeader, upward: bool) -> Self {
        let mut lifetime = Self::default();
        lifetime.record(tcp, upward);
        lifetime
    }

    /// Accounts for a later segment with one of the [`LIFECYCLE_FLAGS`] flags. Returns whether it opens another connection,
    /// whose lifetime then replaces this one.
    pub fn opens_new_connection(&mut self, tcp: &TcpHeader, upward: bool) -> bool {
        let another = tcp.flags.has(Flags::SYN) && !self.includes(tcp, upward);
        if another {
            *self = Self::default();
        }
        self.record(tcp, upward);
        another
    }

    /// Returns the initial sequence number of the client, if the capture has it.
    pub fn client(&self) -> Option<u32> {
        let [up, down] = self.acked_isn;
        let [first, second] = self.initial;
        up.or(down).or_else(|| if second.is_none() { first } else { second })
    }

    /// Returns whether a SYN belongs to this connection.
    fn includes(&self, tcp: &TcpHeader, upward: bool) -> bool {
        let (own, other) = (usize::from(!upward), usize::from(upward));
        let answers = tcp.flags.has(Flags::ACK).then(|| tcp.acknowledgement.wrapping_sub(1));
        match (self.initial[own], answers) {
            // A retransmitted SYN, or a new connection of a stack without random initial sequence numbers.
            (Some(initial), _) if initial == tcp.sequence => !self.is_over(),
            // A server with SYN cookies may answer each copy of a SYN with another sequence number.
            (_, Some(answers)) => self.initial[other] == Some(answers),
            (Some(_), None) => false,
            (None, None) => match (self.acked_isn[own], self.initial[other]) {
                // The SYN-ACK was captured before its SYN.
                (Some(acked_isn), _) => acked_isn == tcp.sequence,
                // Simultaneous open.
                (None, Some(_)) => !self.is_over(),
                // The capture began in the middle of an earlier connection.
                (None, None) => false,
            },
        }
    }

    fn is_over(&self) -> bool {
        let open = self.initial.iter().all(Option::is_some);
        open && (self.reset || self.closed == [true, true])
    }

    fn record(&mut self, tcp: &TcpHeader, upward: bool) {
        let (own, other) = (usize::from(!upward), usize::from(upward));
        if tcp.flags.has(Flags::SYN) {
            self.initial[own] = Some(tcp.sequence);
            if tcp.flags.has(Flags::ACK) {
                self.acked_isn[other] = Some(tcp.acknowledgement.wrapping_sub(1));
            }
        }
        self.closed[own] |= tcp.flags.has(Flags::FIN);
        self.reset |= tcp.flags.has(Flags::RST);
    }
}
