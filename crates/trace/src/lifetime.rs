//! Separates connections with the same four-tuple.

use landspeed_wire::{Flags, TcpHeader};

/// Flags that open or close a connection.
pub const TURNING: Flags = Flags(Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0);

/// How far a connection has come, by the segments that open and close it. Index 0 is the direction from the lesser end of the
/// key to the greater one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lifetime {
    /// Initial sequence numbers.
    initial: [Option<u32>; 2],
    /// Initial sequence numbers that the other end's SYN-ACK acknowledges.
    answered: [Option<u32>; 2],
    closed: [bool; 2],
    reset: bool,
}

impl Lifetime {
    /// Of a connection whose first segment passes.
    pub fn of(tcp: &TcpHeader, upward: bool) -> Self {
        let mut lifetime = Self::default();
        lifetime.record(tcp, upward);
        lifetime
    }

    /// A later segment with one of the [`TURNING`] flags passes. Returns whether it opens another connection, whose lifetime
    /// this is then.
    pub fn opens_another(&mut self, tcp: &TcpHeader, upward: bool) -> bool {
        let another = tcp.flags.has(Flags::SYN) && !self.includes(tcp, upward);
        if another {
            *self = Self::default();
        }
        self.record(tcp, upward);
        another
    }

    /// The initial sequence number of the end that opened the connection, if the capture has it.
    pub fn client(&self) -> Option<u32> {
        let [up, down] = self.answered;
        let [first, second] = self.initial;
        up.or(down).or_else(|| if second.is_none() { first } else { second })
    }

    /// Whether a SYN belongs to this connection.
    fn includes(&self, tcp: &TcpHeader, upward: bool) -> bool {
        let (own, other) = (usize::from(!upward), usize::from(upward));
        let answers = tcp.flags.has(Flags::ACK).then(|| tcp.acknowledgement.wrapping_sub(1));
        match (self.initial[own], answers) {
            // A SYN retransmitted, or a connection that a stack without random numbers opens anew.
            (Some(initial), _) if initial == tcp.sequence => !self.is_over(),
            // A server with SYN cookies may answer each copy of a SYN with another number.
            (_, Some(answers)) => self.initial[other] == Some(answers),
            (Some(_), None) => false,
            (None, None) => match (self.answered[own], self.initial[other]) {
                // The SYN-ACK was captured before its SYN.
                (Some(answered), _) => answered == tcp.sequence,
                // Both ends open it at once.
                (None, Some(_)) => !self.is_over(),
                // The capture began in the middle of another one.
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
                self.answered[other] = Some(tcp.acknowledgement.wrapping_sub(1));
            }
        }
        self.closed[own] |= tcp.flags.has(Flags::FIN);
        self.reset |= tcp.flags.has(Flags::RST);
    }
}
