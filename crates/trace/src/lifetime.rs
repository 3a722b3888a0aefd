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
    /// Payload of the SYN of each direction (TCP fast open), bytes.
    syn_payload: [u32; 2],
    /// Acknowledgement number minus 1 in the peer's SYN-ACK: the initial sequence number, plus the payload of the SYN
    /// that the peer accepted.
    acked_syn: [Option<u32>; 2],
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
        let [first, second] = self.initial;
        match self.acked_syn {
            [Some(acked), None] => first.or(Some(acked)),
            [None, Some(acked)] => second.or(Some(acked)),
            // Simultaneous open: both sides sent SYN-ACKs.
            [Some(_), Some(_)] => first.or(second),
            [None, None] => {
                if second.is_none() {
                    first
                } else {
                    second
                }
            }
        }
    }

    /// Returns the initial sequence numbers of client and server, if the capture has the SYN and the SYN-ACK.
    pub fn both(&self) -> Option<(u32, u32)> {
        let [up, down] = self.initial.map(|initial| initial.unwrap_or(0));
        self.initial.iter().all(Option::is_some).then_some(())?;
        match self.acked_syn {
            [Some(_), None] => Some((up, down)),
            [None, Some(_)] => Some((down, up)),
            _ => None,
        }
    }

    /// Returns the initial sequence number of a SYN in this direction without an answer.
    pub fn unanswered(&self, upward: bool) -> Option<u32> {
        let (own, other) = (usize::from(!upward), usize::from(upward));
        self.initial[own].filter(|_| self.initial[other].is_none() && !self.reset)
    }

    /// Returns whether a SYN belongs to this connection.
    fn includes(&self, tcp: &TcpHeader, upward: bool) -> bool {
        let (own, other) = (usize::from(!upward), usize::from(upward));
        // A SYN-ACK also acknowledges the payload of the SYN that the server accepts (RFC 7413).
        let accepts = |acked: u32, initial: u32, payload: u32| acked.wrapping_sub(initial) <= payload;
        if tcp.flags.has(Flags::ACK) {
            let acked = tcp.acknowledgement.wrapping_sub(1);
            // A server with SYN cookies may answer each copy of a SYN with another sequence number, and a SYN-ACK may
            // arrive after a reset.
            let answers = |initial| accepts(acked, initial, self.syn_payload[other]) || self.initial[own].is_none();
            // Without the SYN, the sequence number shows whether it is the same SYN-ACK. One that acknowledges another
            // number than that of a SYN without an answer is left over from an earlier connection.
            return self.initial[other].map_or(self.initial[own] == Some(tcp.sequence), answers);
        }
        match self.initial[own] {
            // A retransmitted SYN, or a new connection of a stack without random initial sequence numbers.
            Some(initial) => initial == tcp.sequence && !self.is_over(),
            None => match (self.acked_syn[own], self.initial[other]) {
                // The SYN-ACK was captured before its SYN.
                (Some(acked), _) => accepts(acked, tcp.sequence, tcp.payload),
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
        let is_left_over = tcp.flags.has(Flags::ACK)
            && self.initial[other].is_some_and(|initial| {
                tcp.acknowledgement.wrapping_sub(initial.wrapping_add(1)) > self.syn_payload[other]
            });
        if tcp.flags.has(Flags::SYN) && !is_left_over {
            self.initial[own] = Some(tcp.sequence);
            self.syn_payload[own] = self.syn_payload[own].max(tcp.payload);
            if tcp.flags.has(Flags::ACK) {
                self.acked_syn[other] = Some(tcp.acknowledgement.wrapping_sub(1));
            }
        }
        self.closed[own] |= tcp.flags.has(Flags::FIN);
        self.reset |= tcp.flags.has(Flags::RST);
    }
}
