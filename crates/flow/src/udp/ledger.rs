//! Tracks which datagrams have arrived, in a sequence bitmap of fixed size.

/// Accounting of the arrivals of a stream with datagrams numbered from 0.
///
/// A bitmap stores the arrivals of the last [`SequenceLedger::WINDOW`] numbers up to the highest. Datagrams
/// with older numbers may be late or duplicate and are counted separately. Memory is allocated once.
#[derive(Debug)]
pub struct SequenceLedger {
    /// Bit `seq % WINDOW` is set if `seq` has arrived, for numbers in the window.
    arrived_bits: Box<[u64]>,
    /// Highest number received plus one.
    next: u64,
    delivered: u64,
    duplicates: u64,
    reordered: u64,
    beyond_window: u64,
    /// Runs of numbers that were skipped.
    gaps: u64,
}

impl SequenceLedger {
    /// Range in which duplicates are recognized: 4 Mi packets, 512 KiB of bitmap; 0.5 s at 8.5 Mpps.
    pub const WINDOW: u64 = 1 << 22;
    /// Largest accepted jump of the sequence number. A larger one (two minutes of loss at 35 Mpps) is not plausible
    /// loss but a corrupt or forged datagram, which would push all real numbers out of the window.
    pub const MAX_JUMP: u64 = 1 << 32;

    /// Creates a ledger without arrivals.
    pub fn new() -> Self {
        let arrived_bits = vec![0; (Self::WINDOW / 64) as usize].into_boxed_slice();
        Self { arrived_bits, next: 0, delivered: 0, duplicates: 0, reordered: 0, beyond_window: 0, gaps: 0 }
    }

    /// Whether `seq` is acceptable; see [`SequenceLedger::MAX_JUMP`].
    #[inline]
    pub fn plausible(&self, seq: u64) -> bool {
        seq < self.next.saturating_add(Self::MAX_JUMP).min(u64::MAX - u64::from(u32::MAX))
    }

    /// Records `count` arrivals with consecutive numbers from `first`, in this order. Returns how many are known
    /// not to be duplicates.
    ///
    /// # Panics
    /// In debug builds, if `first` is not [`SequenceLedger::plausible`].
    #[inline]
    pub fn record_run(&mut self, first: u64, count: u32) -> u32 {
        debug_assert!(self.plausible(first), "{first} after {}", self.next);
        if first == self.next {
            self.append(u64::from(count));
            return count;
        }
        (first..first + u64::from(count)).map(|seq| u32::from(self.record(seq))).sum()
    }

    /// Records one arrival; returns whether it is known not to be a duplicate.
    fn record(&mut self, seq: u64) -> bool {
        if seq >= self.next {
            self.gaps += u64::from(seq > self.next);
            self.skip_to(seq);
            self.append(1);
            return true;
        }
        if self.next - seq > Self::WINDOW {
            self.beyond_window += 1;
            return false;
        }
        let (word, bit) = Self::bit_position(seq);
        let first_copy = self.arrived_bits[word] & bit == 0;
        self.arrived_bits[word] |= bit;
        self.delivered += u64::from(first_copy);
        self.reordered += u64::from(first_copy);
        self.duplicates += u64::from(!first_copy);
        first_copy
    }

    fn bit_position(seq: u64) -> (usize, u64) {
        (((seq % Self::WINDOW) / 64) as usize, 1 << (seq % 64))
    }

    /// Marks the `count` numbers from `next` as arrived.
    #[inline]
    fn append(&mut self, count: u64) {
        self.fill(count, u64::MAX);
        self.delivered += count;
    }

    /// Marks the numbers from `next` to before `seq` as not arrived.
    fn skip_to(&mut self, seq: u64) {
        if seq - self.next >= Self::WINDOW {
            self.arrived_bits.fill(0);
            self.next = seq;
        } else {
            self.fill(seq - self.next, 0);
        }
    }

    /// Advances `next` by `count`, setting the bits to those of `pattern` (all ones or all zeros), word by word.
    #[inline]
    fn fill(&mut self, count: u64, pattern: u64) {
        let mut left = count;
        while left > 0 {
            let (word, _) = Self::bit_position(self.next);
            let shift = self.next % 64;
            let bits = left.min(64 - shift);
            let mask = (u64::MAX >> (64 - bits)) << shift;
            self.arrived_bits[word] = self.arrived_bits[word] & !mask | pattern & mask;
            self.next += bits;
            left -= bits;
        }
    }

    /// Number of datagrams delivered, without duplicates.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Number of duplicates.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Number of delivered datagrams that arrived after a higher number (RFC 4737 section 3.3, type-P-reordered).
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Number of arrivals older than the window: late or duplicate.
    pub fn beyond_window(&self) -> u64 {
        self.beyond_window
    }

    /// Number of runs of consecutive missing datagrams before the last arrival (loss periods, RFC 3357); `None` if a datagram arrived
    /// late, which may have filled or split one.
    pub fn loss_periods(&self) -> Option<u64> {
        (self.reordered == 0 && self.beyond_window == 0).then_some(self.gaps)
    }

    /// Highest number received plus one; 0 before the first arrival.
    pub fn highest_seq(&self) -> u64 {
        self.next
    }

    /// Number of datagrams missing of the `sent` that the sender reports: lost, except that up to
    /// [`SequenceLedger::beyond_window`] of them arrived too late to identify. Negative if more arrived than were
    /// sent, which indicates an error on one side.
    pub fn missing(&self, sent: u64) -> i64 {
        sent.wrapping_sub(self.delivered).cast_signed()
    }

    /// Number of missing datagrams that were sent after the last arrival (tail loss).
    pub fn missing_tail(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.next)
    }
}

impl Default for SequenceLedger {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const WINDOW: u64 = SequenceLedger::WINDOW;

    fn after(runs: &[(u64, u32)]) -> SequenceLedger {
        let mut ledger = SequenceLedger::new();
        for &(first, count) in runs {
            ledger.record_run(first, count);
        }
        ledger
    }

    #[test]
    fn tail_loss_is_counted() {
        let ledger = after(&[(0, 900)]);
        assert_eq!((ledger.missing(1404), ledger.missing_tail(1404)), (504, 504));
    }

    #[test]
    fn duplicates_do_not_erase_loss() {
        let ledger = after(&[(0, 90), (0, 10), (100, 100)]);
        assert_eq!((ledger.delivered(), ledger.duplicates(), ledger.missing(200)), (190, 10, 10));
    }

    #[test]
    fn a_run_of_losses_is_one_loss_period() {
        let ledger = after(&[(2, 3), (5, 1), (30, 1), (32, 4)]);
        assert_eq!((ledger.loss_periods(), ledger.missing(36)), (Some(3), 27), "0 to 1, 6 to 29, 31");
        assert_eq!(after(&[(0, 5), (6, 4), (5, 1)]).loss_periods(), None, "5 arrived late");
    }

    #[test]
    fn a_late_datagram_is_reordered_not_duplicate() {
        let ledger = after(&[(0, 5), (6, 4), (5, 1), (5, 1)]);
        assert_eq!((ledger.reordered(), ledger.duplicates(), ledger.missing(10)), (1, 1, 0));
    }

    #[test]
    fn packets_older_than_the_window_are_counted_separately() {
        let mut ledger = after(&[(0, 1), (WINDOW, 1)]);
        assert_eq!(ledger.record_run(1, 1), 1, "the oldest in the window");
        assert_eq!(ledger.record_run(0, 1), 0, "one older");
        assert_eq!((ledger.beyond_window(), ledger.duplicates()), (1, 0));
    }

    #[test]
    fn a_jump_beyond_the_window_clears_it() {
        let mut ledger = after(&[(0, 1000), (3 * WINDOW + 500, 1)]);
        assert_eq!(ledger.record_run(3 * WINDOW, 100), 100, "none of these has been seen");
        assert_eq!(ledger.duplicates(), 0);
    }

    #[test]
    fn numbers_near_2_to_the_64_are_rejected() {
        let ledger = SequenceLedger::new();
        assert!(ledger.plausible(0) && ledger.plausible(SequenceLedger::MAX_JUMP - 1));
        assert!(!ledger.plausible(SequenceLedger::MAX_JUMP) && !ledger.plausible(u64::MAX));
    }

    #[test]
    fn surplus_arrivals_make_missing_negative() {
        assert_eq!(after(&[(0, 10)]).missing(9), -1);
    }

    /// Reference implementation with unlimited memory.
    #[derive(Default)]
    struct Naive {
        seen: HashSet<u64>,
        next: u64,
        duplicates: u64,
        reordered: u64,
        beyond_window: u64,
    }

    impl Naive {
        fn record(&mut self, seq: u64) {
            if seq < self.next && self.next - seq > WINDOW {
                self.beyond_window += 1;
            } else if !self.seen.insert(seq) {
                self.duplicates += 1;
            } else if seq < self.next {
                self.reordered += 1;
            }
            self.next = self.next.max(seq + 1);
        }
    }

    /// Runs near the current sequence number: in order, with gaps, behind, around the window's edge, far away.
    fn steps() -> impl Strategy<Value = Vec<(i64, u32)>> {
        let window = WINDOW as i64;
        let offset = prop_oneof![
            8 => Just(0i64),
            3 => 1i64..200,
            4 => -300i64..0,
            1 => (-window - 150)..(-window + 150),
            1 => (window - 150)..(window + 150),
        ];
        prop::collection::vec((offset, 1u32..200), 1..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_bitmap_agrees_with_a_set_of_all_numbers(steps in steps()) {
            let (mut ledger, mut naive) = (SequenceLedger::new(), Naive::default());
            for (offset, count) in steps {
                let first = ledger.highest_seq().saturating_add_signed(offset);
                let before = naive.seen.len();
                (first..first + u64::from(count)).for_each(|seq| naive.record(seq));
                let first_copies = ledger.record_run(first, count);
                prop_assert_eq!(first_copies as usize, naive.seen.len() - before);
            }
            prop_assert_eq!(ledger.delivered(), naive.seen.len() as u64);
            prop_assert_eq!(
                (ledger.duplicates(), ledger.reordered(), ledger.beyond_window(), ledger.highest_seq()),
                (naive.duplicates, naive.reordered, naive.beyond_window, naive.next)
            );
        }

        #[test]
        fn every_arrival_is_counted_exactly_once(steps in steps()) {
            let mut ledger = SequenceLedger::new();
            let mut arrivals = 0;
            for (offset, count) in steps {
                ledger.record_run(ledger.highest_seq().saturating_add_signed(offset), count);
                arrivals += u64::from(count);
            }
            prop_assert_eq!(arrivals, ledger.delivered() + ledger.duplicates() + ledger.beyond_window());
        }
    }
}
