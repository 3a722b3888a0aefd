//! Messages; the format is described in [the module](super).

/// Length of the header, and of every message except probes, bytes.
pub const HEADER_LEN: usize = 40;
/// Largest UDP payload of a probe: 65,535 minus the UDP header. IPv4 allows 20 bytes less.
pub const MAX_PAYLOAD: u32 = 65_527;

const MAGIC: &[u8; 4] = b"LMTU";

/// Type of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Client: probe of `size` bytes.
    ProbeUp,
    /// Server: acknowledges a probe or the end of the measurement.
    Ack,
    /// Client: requests a probe of `size` bytes from the server.
    RequestDown,
    /// Server: the requested probe.
    DownProbe,
    /// Server: the kernel refused to send the probe, with `errno`.
    Refused,
    /// Client: the measurement is over.
    Done,
}

/// A message. Each message of the client has at most one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Type of the message.
    pub kind: Kind,
    /// Tag of the test, unknown to other hosts.
    pub tag: u32,
    /// Sequence number of the request, repeated in its answer.
    pub sequence: u32,
    /// UDP payload of the probe, header included, bytes.
    pub size: u32,
    /// Refused: error number.
    pub errno: u16,
    /// Answers: MTU of the server's interface, bytes; 0 unknown.
    pub interface_mtu: u32,
    /// Ack: largest fragment of the probe, bytes; 0 if unfragmented.
    pub fragment: u32,
    /// Answers: number of ICMP "too big" messages about down-probes so far.
    pub icmp_count: u32,
    /// Answers: UDP payload of the down-probe that the last of them was about, bytes; 0 if there was none.
    pub icmp_size: u32,
    /// Answers: MTU reported in it, bytes; 0 if none.
    pub icmp_mtu: u32,
}

impl Message {
    /// Creates a message with all other fields zero.
    pub fn new(kind: Kind, tag: u32, sequence: u32, size: u32) -> Self {
        Self {
            kind,
            tag,
            sequence,
            size,
            errno: 0,
            interface_mtu: 0,
            fragment: 0,
            icmp_count: 0,
            icmp_size: 0,
            icmp_mtu: 0,
        }
    }

    /// Encodes the header.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4] = match self.kind {
            Kind::ProbeUp => 1,
            Kind::Ack => 2,
            Kind::RequestDown => 3,
            Kind::DownProbe => 4,
            Kind::Refused => 5,
            Kind::Done => 6,
        };
        bytes[6..8].copy_from_slice(&self.errno.to_be_bytes());
        let words = [
            self.tag,
            self.sequence,
            self.size,
            self.interface_mtu,
            self.fragment,
            self.icmp_count,
            self.icmp_size,
            self.icmp_mtu,
        ];
        for (to, word) in bytes[8..].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

/// Decodes the header of a datagram, or of the part of one that an ICMP message quotes; `None` if it is not a
/// message. The caller must compare the length of a probe with its `size`.
pub fn decode(datagram: &[u8]) -> Option<Message> {
    let bytes: &[u8; HEADER_LEN] = datagram.first_chunk()?;
    if &bytes[..4] != MAGIC || bytes[5] != 0 {
        return None;
    }
    let kind = match bytes[4] {
        1 => Kind::ProbeUp,
        2 => Kind::Ack,
        3 => Kind::RequestDown,
        4 => Kind::DownProbe,
        5 => Kind::Refused,
        6 => Kind::Done,
        _ => return None,
    };
    let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let message = Message {
        kind,
        errno: u16::from_be_bytes([bytes[6], bytes[7]]),
        tag: word(8)?,
        sequence: word(12)?,
        size: word(16)?,
        interface_mtu: word(20)?,
        fragment: word(24)?,
        icmp_count: word(28)?,
        icmp_size: word(32)?,
        icmp_mtu: word(36)?,
    };
    let sane = |size: u32| size == 0 || (HEADER_LEN as u32..=MAX_PAYLOAD).contains(&size);
    (sane(message.size) && sane(message.icmp_size)).then_some(message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_message() -> impl Strategy<Value = Message> {
        let kinds = [Kind::ProbeUp, Kind::Ack, Kind::RequestDown, Kind::DownProbe, Kind::Refused, Kind::Done];
        let size = || prop_oneof![Just(0), HEADER_LEN as u32..=MAX_PAYLOAD];
        let words = any::<[u32; 6]>();
        (0..kinds.len(), any::<u16>(), size(), size(), words).prop_map(
            move |(kind, errno, size, icmp_size, words)| {
                let [tag, sequence, interface_mtu, fragment, icmp_count, icmp_mtu] = words;
                let kind = kinds[kind];
                Message { kind, tag, sequence, size, errno, interface_mtu, fragment, icmp_count, icmp_size, icmp_mtu }
            },
        )
    }

    proptest! {
        #[test]
        fn messages_round_trip_with_any_padding(message in any_message(), padding in 0_usize..64) {
            let mut bytes = message.encode().to_vec();
            bytes.resize(HEADER_LEN + padding, 0xa5);
            prop_assert_eq!(decode(&bytes), Some(message));
            prop_assert_eq!(decode(&bytes[..HEADER_LEN - 1]), None);
        }

        #[test]
        fn accepted_messages_are_bounded_and_round_trip(junk in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut bytes = junk;
            if let Some(start) = bytes.get_mut(..4) {
                start.copy_from_slice(MAGIC);
            }
            if let Some(message) = decode(&bytes) {
                prop_assert!(message.size <= MAX_PAYLOAD);
                prop_assert_eq!(&message.encode()[..], &bytes[..HEADER_LEN]);
            }
        }
    }

    #[test]
    fn sizes_out_of_range_are_rejected() {
        let with = |size| decode(&Message::new(Kind::RequestDown, 1, 2, size).encode());
        assert!(with(MAX_PAYLOAD).is_some());
        assert_eq!(with(MAX_PAYLOAD + 1), None);
        assert_eq!(with(HEADER_LEN as u32 - 1), None);
    }
}
