//! Accounting of received messages. Pure: times are arguments.

use landspeed_stats::Jitter;

use super::header::Format;
use super::ledger::SequenceLedger;

/// Counters of one stream's arrivals.
#[derive(Debug)]
pub(super) struct Arrivals {
    format: Format,
    ledger: SequenceLedger,
    bytes: u64,
    foreign: u64,
    jitter: Jitter,
    jitter_sent_ns: Option<u64>,
    coalesced: bool,
    late: LateCount,
}

/// Consecutive datagrams that arrived in sequence.
struct Run {
    first: u64,
    count: u32,
    bytes: u64,
}

impl Arrivals {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            ledger: SequenceLedger::new(),
            bytes: 0,
            foreign: 0,
            jitter: Jitter::new(),
            jitter_sent_ns: None,
            coalesced: false,
            late: LateCount::new(),
        }
    }

    /// Processes a message of datagrams of `segment_bytes` each (the last may be shorter) with the kernel's
    /// timestamp, read at `now_ns` of the receiver's clock. Returns whether any of it belongs to the stream.
    #[inline]
    pub(super) fn record_message(
        &mut self,
        data: &[u8],
        segment_bytes: usize,
        stamp_ns: Option<u64>,
        now_ns: u64,
    ) -> bool {
        let delivered_before = self.ledger.delivered();
        let next = self.ledger.highest_seq();
        let (mut run, mut ours) = (None::<Run>, 0u64);
        let mut first_sent_ns = None;
        let mut rest = data;
        loop {
            let (datagram, after) = rest.split_at(segment_bytes.min(rest.len()));
            match self.format.decode(datagram, next) {
                Some(header) => {
                    if ours == 0 {
                        first_sent_ns = Some(header.sent_ns);
                    }
                    ours += 1;
                    let bytes = datagram.len() as u64;
                    match &mut run {
                        // Only datagrams of equal length, so that the bytes of a duplicate in the run are known.
                        Some(run)
                            if run.first.wrapping_add(u64::from(run.count)) == header.seq
                                && u64::from(run.count) * bytes == run.bytes =>
                        {
                            run.count += 1;
                            run.bytes += bytes;
                        }
                        _ => {
                            let ended = run.replace(Run { first: header.seq, count: 1, bytes });
                            self.finish_run(ended, &mut ours);
                        }
                    }
                }
                None => self.foreign += 1,
            }
            if after.is_empty() {
                break;
            }
            rest = after;
        }
        self.finish_run(run, &mut ours);
        self.coalesced |= data.len() > segment_bytes;
        let first_copies = self.ledger.delivered() - delivered_before;
        if first_copies > 0 {
            self.late.record(now_ns, first_copies);
            self.time(first_sent_ns, stamp_ns);
        }
        ours > 0
    }

    #[inline]
    fn finish_run(&mut self, run: Option<Run>, ours: &mut u64) {
        let Some(run) = run else { return };
        if self.ledger.plausible(run.first) {
            let first_copies = self.ledger.record_run(run.first, run.count);
            self.bytes += run.bytes / u64::from(run.count) * u64::from(first_copies);
        } else {
            self.foreign += u64::from(run.count);
            *ours -= u64::from(run.count);
        }
    }

    /// Updates the jitter with the first datagram of a message, unless the sender sent it in the same system call
    /// as the last one used: then their spacing is due to the sender's batch, not to the path.
    #[inline]
    fn time(&mut self, sent_ns: Option<u64>, stamp_ns: Option<u64>) {
        let (Some(sent_ns), Some(stamp_ns)) = (sent_ns, stamp_ns) else { return };
        if self.jitter_sent_ns != Some(sent_ns) {
            self.jitter_sent_ns = Some(sent_ns);
            self.jitter.record(sent_ns, stamp_ns);
        }
    }

    /// Sets the time the sender stopped; later arrivals count as late, including past ones.
    pub(super) fn sender_stopped(&mut self, stopped_ns: u64) {
        self.late.sender_stopped(stopped_ns);
    }

    pub(super) fn ledger(&self) -> &SequenceLedger {
        &self.ledger
    }

    /// Payload bytes without duplicates.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of foreign or corrupt datagrams.
    pub(super) fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Number of datagrams, without duplicates, that arrived after the sender had stopped, accurate to a
    /// millisecond.
    pub(super) fn late(&self) -> u64 {
        self.late.late
    }

    pub(super) fn jitter_ns(&self) -> Option<u64> {
        self.jitter.jitter_ns().map(|ns| ns.round() as u64)
    }

    /// Whether any message contained more than one datagram.
    pub(super) fn coalesced(&self) -> bool {
        self.coalesced
    }
}

/// Counts datagrams, without duplicates, that arrive after the sender has stopped. The stop is known only
/// later, so the number of arrivals in each of the last milliseconds is stored.
#[derive(Debug)]
struct LateCount {
    slots: Box<[u64]>,
    /// Newest slot; a slot's number is its time in milliseconds.
    newest: u64,
    stopped_ns: Option<u64>,
    late: u64,
}

impl LateCount {
    const SLOT_NS: u64 = 1_000_000;
    /// Four seconds: longer than a control message takes to arrive.
    const SLOTS: u64 = 4096;

    fn new() -> Self {
        Self { slots: vec![0; Self::SLOTS as usize].into(), newest: 0, stopped_ns: None, late: 0 }
    }

    #[inline]
    fn record(&mut self, now_ns: u64, packets: u64) {
        if let Some(stopped_ns) = self.stopped_ns {
            self.late += if now_ns > stopped_ns { packets } else { 0 };
            return;
        }
        let slot = now_ns / Self::SLOT_NS;
        while self.newest < slot {
            // After a long pause, clear only the slots within the window.
            self.newest = (self.newest + 1).max(slot.saturating_sub(Self::SLOTS));
            self.slots[(self.newest % Self::SLOTS) as usize] = 0;
        }
        self.slots[(slot % Self::SLOTS) as usize] += packets;
    }

    fn sender_stopped(&mut self, stopped_ns: u64) {
        if self.stopped_ns.replace(stopped_ns).is_some() {
            return;
        }
        // Sum the full milliseconds after the one in which it stopped, as far back as stored.
        let oldest = (self.newest + 1).saturating_sub(Self::SLOTS);
        let from = (stopped_ns / Self::SLOT_NS).saturating_add(1).max(oldest);
        self.late = (from..=self.newest).map(|slot| self.slots[(slot % Self::SLOTS) as usize]).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::header::Stamp;

    const FORMAT: Format = Format::Landspeed { tag: 0x5eed_0001 };
    const MS: u64 = 1_000_000;

    fn datagram(seq: u64, bytes: usize) -> Vec<u8> {
        let mut datagram = vec![0; bytes];
        FORMAT.write_constant(&mut datagram);
        FORMAT.stamp(&mut datagram, Stamp { seq, sent_ns: seq.wrapping_mul(1000) });
        datagram
    }

    fn message(seqs: impl IntoIterator<Item = u64>, bytes: usize) -> Vec<u8> {
        seqs.into_iter().flat_map(|seq| datagram(seq, bytes)).collect()
    }

    #[test]
    fn each_datagram_of_a_coalesced_batch_is_counted() {
        let mut arrivals = Arrivals::new(FORMAT);
        assert!(arrivals.record_message(&message(0..128, 64), 64, Some(1), 1));
        assert_eq!((arrivals.ledger().delivered(), arrivals.bytes(), arrivals.coalesced()), (128, 8192, true));
    }

    #[test]
    fn a_short_last_segment_counts_its_own_bytes() {
        let mut arrivals = Arrivals::new(FORMAT);
        let data = [message(0..3, 100), datagram(3, 40)].concat();
        arrivals.record_message(&data, 100, None, 1);
        arrivals.record_message(&datagram(3, 40), 40, None, 1);
        assert_eq!((arrivals.ledger().delivered(), arrivals.bytes(), arrivals.ledger().duplicates()), (4, 340, 1));
    }

    #[test]
    fn gaps_and_duplicates_within_a_batch_are_counted() {
        let mut arrivals = Arrivals::new(FORMAT);
        arrivals.record_message(&message([0, 1, 4, 5, 5, 2, 9], 30), 30, None, 1);
        let ledger = arrivals.ledger();
        assert_eq!((ledger.delivered(), ledger.duplicates(), ledger.reordered()), (6, 1, 1));
        assert_eq!((arrivals.bytes(), ledger.missing(10)), (180, 4));
    }

    #[test]
    fn foreign_and_corrupt_datagrams_affect_only_the_foreign_count() {
        let mut arrivals = Arrivals::new(FORMAT);
        let mut other = datagram(5, 30);
        Format::Landspeed { tag: 0x5eed_0002 }.write_constant(&mut other);
        for data in [&b""[..], b"junk", &other, &message([u64::MAX], 30), &message([1 << 60], 30)] {
            assert!(!arrivals.record_message(data, data.len().max(1), Some(7), 1));
        }
        assert_eq!((arrivals.foreign(), arrivals.ledger().highest_seq(), arrivals.bytes()), (5, 0, 0));
    }

    #[test]
    fn a_foreign_datagram_does_not_hide_others_in_its_batch() {
        let mut arrivals = Arrivals::new(FORMAT);
        let data = [message(0..2, 30), vec![0xff; 30], message(2..4, 30)].concat();
        assert!(arrivals.record_message(&data, 30, None, 1));
        assert_eq!((arrivals.ledger().delivered(), arrivals.foreign()), (4, 1));
    }

    #[test]
    fn late_packets_are_counted_retroactively_from_the_stop_time() {
        let mut arrivals = Arrivals::new(FORMAT);
        for seq in 0..100 {
            arrivals.record_message(&datagram(seq, 30), 30, None, 5_000 * MS + seq * MS);
        }
        arrivals.sender_stopped(5_000 * MS + 89 * MS + 5);
        assert_eq!(arrivals.late(), 10, "those of the slots 90 to 99");
        arrivals.record_message(&message(100..103, 30), 30, None, 5_200 * MS);
        arrivals.record_message(&message(100..103, 30), 30, None, 5_200 * MS);
        assert_eq!(arrivals.late(), 13, "duplicates are not late packets");
    }

    #[test]
    fn a_long_pause_clears_the_late_window() {
        let mut late = LateCount::new();
        late.record(10 * MS, 5);
        late.record(10 * MS + LateCount::SLOTS * MS * 3, 7);
        late.sender_stopped(9 * MS);
        assert_eq!(late.late, 7);
    }

    #[test]
    fn jitter_ignores_packets_sent_in_the_same_call() {
        let mut arrivals = Arrivals::new(FORMAT);
        for seq in 0..50u64 {
            let mut data = datagram(seq, 30);
            FORMAT.stamp(&mut data, Stamp { seq, sent_ns: seq / 5 * 10_000 }); // five to a departure, 10 µs apart
            arrivals.record_message(&data, 30, Some(90_000 + seq / 5 * 10_000 + seq % 5 * 1_200), 1);
        }
        assert_eq!(arrivals.jitter_ns(), Some(0));
    }
}
