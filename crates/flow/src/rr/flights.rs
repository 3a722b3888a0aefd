//! Tracks UDP requests in flight and matches responses to them.

/// Marks an answered request.
const ANSWERED: u64 = 0;
/// Marks a request that timed out.
const GIVEN_UP: u64 = 1;

/// Window over the latest requests, which are numbered from 0 in the order sent.
#[derive(Debug)]
pub(super) struct RequestsInFlight {
    /// For each request of the window: time sent, [`ANSWERED`] or [`GIVEN_UP`].
    ring: Box<[u64]>,
    /// Oldest request that may still be in flight.
    oldest: u64,
    /// Number of the next request.
    next: u64,
    in_flight: u64,
}

/// Classification of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// First response, within the timeout.
    First,
    Duplicate,
    /// First response, after the timeout.
    Late,
    /// Unknown request, or one too old to identify.
    Unknown,
}

impl RequestsInFlight {
    /// Largest window, independent of rate and timeout.
    const MAX_WINDOW: usize = 1 << 20;

    /// Creates a window for `expected` requests in flight, with a margin.
    pub(super) fn new(expected: f64) -> Self {
        let window = (expected.clamp(0.0, Self::MAX_WINDOW as f64) as usize * 2)
            .next_power_of_two()
            .clamp(4096, Self::MAX_WINDOW);
        Self { ring: vec![ANSWERED; window].into_boxed_slice(), oldest: 0, next: 0, in_flight: 0 }
    }

    /// Number of requests sent so far, and the number of the next one.
    pub(super) fn sent_count(&self) -> u64 {
        self.next
    }

    /// Number of requests neither answered nor timed out.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Whether the next request must wait until the oldest one is answered or times out.
    pub(super) fn full(&self) -> bool {
        self.next - self.oldest >= self.ring.len() as u64
    }

    /// Records that the next request was sent at `now_ns` (greater than 1). The window must not be full.
    #[inline]
    pub(super) fn record_send(&mut self, now_ns: u64) {
        debug_assert!(!self.full() && now_ns > GIVEN_UP);
        *self.slot(self.next) = now_ns;
        self.next += 1;
        self.in_flight += 1;
    }

    /// Records a response to request `index`.
    #[inline]
    pub(super) fn answer(&mut self, index: u64) -> Answer {
        if index >= self.next || self.next - index > self.ring.len() as u64 {
            return Answer::Unknown;
        }
        match std::mem::replace(self.slot(index), ANSWERED) {
            ANSWERED => Answer::Duplicate,
            GIVEN_UP => Answer::Late,
            _ => {
                self.in_flight -= 1;
                self.skip_resolved();
                Answer::First
            }
        }
    }

    /// Times out the requests sent at `before_ns` or earlier, oldest first; calls `lost` with the number of each.
    pub(super) fn give_up(&mut self, before_ns: u64, mut lost: impl FnMut(u64)) {
        while self.oldest < self.next {
            let index = self.oldest;
            let sent_ns = *self.slot(index);
            if sent_ns > GIVEN_UP {
                if sent_ns > before_ns {
                    return;
                }
                *self.slot(index) = GIVEN_UP;
                self.in_flight -= 1;
                lost(index);
            }
            self.oldest += 1;
        }
    }

    fn skip_resolved(&mut self) {
        while self.oldest < self.next && *self.slot(self.oldest) <= GIVEN_UP {
            self.oldest += 1;
        }
    }

    fn slot(&mut self, index: u64) -> &mut u64 {
        let mask = self.ring.len() - 1;
        &mut self.ring[index as usize & mask]
    }
}

/// Encoding of a request's number in a datagram: up to eight low bytes, as many as fit into both messages.
///
/// Eight bytes identify every response. With fewer, a response that is 256^bytes requests late is mistaken for
/// a newer one: with one-byte messages, one that arrives 256 requests later.
#[derive(Debug, Clone, Copy)]
pub(super) struct SequenceCode {
    base: u64,
    bytes: usize,
}

impl SequenceCode {
    /// Creates the encoding for these message sizes. `base` is the first number: leftovers of an earlier
    /// measurement on the same port should not match.
    pub(super) fn new(base: u64, request_bytes: u32, response_bytes: u32) -> Self {
        Self { base, bytes: Self::len(request_bytes, response_bytes) }
    }

    /// Number of leading bytes of a request that the responder copies into its response.
    pub(super) fn len(request_bytes: u32, response_bytes: u32) -> usize {
        request_bytes.min(response_bytes).min(8) as usize
    }

    /// Writes the number of request `index` into the message.
    #[inline]
    pub(super) fn write(self, index: u64, message: &mut [u8]) {
        let number = self.base.wrapping_add(index).to_le_bytes();
        message[..self.bytes].copy_from_slice(&number[..self.bytes]);
    }

    /// Returns the newest request below `sent_count` whose number matches the start of the message.
    #[inline]
    pub(super) fn read(self, message: &[u8], sent_count: u64) -> Option<u64> {
        let mut number = [0; 8];
        number[..self.bytes].copy_from_slice(&message[..self.bytes]);
        let behind = self.base.wrapping_add(sent_count).wrapping_sub(1).wrapping_sub(u64::from_le_bytes(number));
        let behind = if self.bytes == 8 { behind } else { behind & ((1 << (8 * self.bytes)) - 1) };
        sent_count.checked_sub(1)?.checked_sub(behind)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_response_is_first_duplicate_late_or_unknown() {
        let mut flights = RequestsInFlight::new(1.0);
        (0..3).for_each(|k| flights.record_send(100 + k));
        assert_eq!(flights.answer(1), Answer::First);
        assert_eq!(flights.answer(1), Answer::Duplicate);
        let mut lost = Vec::new();
        flights.give_up(101, |index| lost.push(index));
        assert_eq!((lost, flights.in_flight()), (vec![0], 1));
        assert_eq!((flights.answer(0), flights.answer(0)), (Answer::Late, Answer::Duplicate));
        assert_eq!(flights.answer(3), Answer::Unknown);
        assert_eq!((flights.answer(2), flights.in_flight()), (Answer::First, 0));
    }

    #[test]
    fn a_full_window_opens_when_its_oldest_request_times_out() {
        let mut flights = RequestsInFlight::new(0.0);
        while !flights.full() {
            flights.record_send(50);
        }
        assert_eq!(flights.in_flight(), 4096);
        assert_eq!(flights.answer(9), Answer::First);
        assert!(flights.full(), "the oldest is still out");
        flights.give_up(50, |_| ());
        assert!(!flights.full() && flights.in_flight() == 0);
    }

    proptest! {
        #[test]
        fn recent_request_numbers_round_trip(
            base: u64, sent_count in 1u64..1 << 40, behind in 0u64..1000, size in 1u32..12,
        ) {
            prop_assume!(behind < sent_count && (size > 1 || behind < 256));
            let code = SequenceCode::new(base, size, 64);
            let mut message = [0; 64];
            code.write(sent_count - 1 - behind, &mut message);
            prop_assert_eq!(code.read(&message, sent_count), Some(sent_count - 1 - behind));
        }

        #[test]
        fn decoded_numbers_refer_to_sent_requests_only(base: u64, sent_count: u64, message: [u8; 8], size in 1u32..12) {
            let index = SequenceCode::new(base, size, size).read(&message, sent_count);
            prop_assert!(index.is_none_or(|index| index < sent_count));
        }
    }
}
