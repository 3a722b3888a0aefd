//! The messages; their table is in the documentation of [the module](super).

/// Length of the header, which is all of every message but the probes, bytes.
pub const HEADER_LEN: usize = 40;
/// Largest datagram that can be asked for: 65,535 less the header of UDP. IPv4 carries 20 bytes less.
pub const MAX_PAYLOAD: u32 = 65_527;

const MAGIC: &[u8; 4] = b"LMTU";

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Client: a datagram of `size` bytes.
    ProbeUp,
    /// Server: that one arrived; or the end is known.
    Ack,
    /// Client: send me a datagram of `size` bytes.
    RequestDown,
    /// Server: here it is.
    DownProbe,
    /// Server: the kernel would not send it; `errno` says why.
    Refused,
    /// Client: no more requests.
    Done,
}

/// A message. Every client's message has one answer at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// What it is for.
    pub kind: Kind,
    /// The test's tag: strangers do not know it.
    pub tag: u32,
    /// Number of the request; answers repeat it.
    pub sequence: u32,
    /// UDP payload of the probe in question, header included, bytes.
    pub size: u32,
    /// Refused: the error number.
    pub errno: u16,
    /// Answers: MTU of the server's interface, bytes; 0 unknown.
    pub interface_mtu: u32,
    /// Ack: the largest fragment the probe came in, bytes; 0 if it came whole.
    pub fragment: u32,
    /// Answers: how many ICMP messages so far called a down-probe too big.
    pub icmp_count: u32,
    /// Answers: UDP payload of the down-probe the last one was about, bytes; 0 if there was none.
    pub icmp_size: u32,
    /// With `icmp_size`: the MTU that message named, bytes; 0 if it named none.
    pub icmp_mtu: u32,
}

impl Message {
    /// A message with everything else zero.
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

    /// Its header.
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

/// Reads the header of a datagram, or of the part of one that an ICMP message quotes; `None` if it is not one of
/// these. The caller, who knows the datagram's length, checks the claimed length of a probe.
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
        fn every_message_survives_the_wire_whatever_follows_it(message in any_message(), padding in 0_usize..64) {
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
    fn a_size_beyond_udp_is_not_a_message() {
        let with = |size| decode(&Message::new(Kind::RequestDown, 1, 2, size).encode());
        assert!(with(MAX_PAYLOAD).is_some());
        assert_eq!(with(MAX_PAYLOAD + 1), None);
        assert_eq!(with(HEADER_LEN as u32 - 1), None);
    }
}
