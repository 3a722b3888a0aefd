//! Generates captures for benchmarks of the analysis, as a tap at the sender would record them: headers only,
//! nanosecond timestamps.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use landspeed_stats::SplitMix64;
use landspeed_wire::LinkType;
use landspeed_wire::capture::write::{pcap_header, pcap_record};

/// Payload of a full segment with TCP timestamps at an MTU of 1500, bytes.
const SEGMENT: u32 = 1448;
/// Snapshot length, bytes.
const SNAPLEN: u32 = 96;
const SYN: u8 = 0x02;
const FIN: u8 = 0x01;
const ACK: u8 = 0x10;

/// A pcap file being written: little-endian, nanosecond timestamps.
struct Tap {
    file: BufWriter<File>,
    frames: u64,
}

/// A segment to write.
#[derive(Debug, Clone, Copy, Default)]
struct Segment<'a> {
    time_ns: u64,
    /// Time for the TCP timestamp option, if not `time_ns`; it is the same at both taps.
    timestamp_option_ns: Option<u64>,
    /// Number of the connection; `from_server` is its direction.
    flow: u32,
    from_server: bool,
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
    payload: u32,
    /// Raw window field; the SYN announces a window scale of 8.
    window: u16,
    identification: u16,
    sack: &'a [(u32, u32)],
}

impl Tap {
    fn new(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        let mut header = Vec::new();
        pcap_header(&mut header, LinkType::ETHERNET, SNAPLEN);
        file.write_all(&header)?;
        Ok(Self { file, frames: 0 })
    }

    fn write(&mut self, segment: &Segment<'_>) -> Result<()> {
        let Segment { time_ns, flow, from_server, sequence, acknowledgement, flags, payload, .. } = *segment;
        let mut options = Vec::with_capacity(40);
        if flags & SYN != 0 {
            options.extend([2, 4, 0x05, 0xb4, 4, 2, 1, 3, 3, 8]);
            options.extend([1, 1]);
        }
        options.extend([1, 1, 8, 10]);
        let stamp = (segment.timestamp_option_ns.unwrap_or(time_ns) / 1_000_000) as u32;
        options.extend(stamp.to_be_bytes());
        options.extend(stamp.wrapping_sub(1).to_be_bytes());
        if !segment.sack.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * segment.sack.len() as u8]);
            for (low, high) in segment.sack {
                options.extend(low.to_be_bytes());
                options.extend(high.to_be_bytes());
            }
        }
        let length = 40 + options.len() as u32 + payload;
        let client = [10, (flow >> 14) as u8, (flow >> 7) as u8 & 0x7f, flow as u8 & 0x7f];
        let (server, ports) = ([10, 255, 0, 1], [40_000 + (flow % 20_000) as u16, 5201]);
        let (mut from, mut to, mut out) = ((client, ports[0]), (server, ports[1]), 2_u8);
        if from_server {
            (from, to, out) = (to, from, 1);
        }
        let mut frame = vec![2, 0, 0, 0, 0, 3 - out, 2, 0, 0, 0, 0, out, 8, 0, 0x45, 0];
        frame.extend((length as u16).to_be_bytes());
        frame.extend(segment.identification.to_be_bytes());
        frame.extend([0x40, 0, 64, 6, 0, 0]);
        frame.extend(from.0);
        frame.extend(to.0);
        frame.extend(from.1.to_be_bytes());
        frame.extend(to.1.to_be_bytes());
        frame.extend(sequence.to_be_bytes());
        frame.extend(acknowledgement.to_be_bytes());
        frame.extend([((20 + options.len()) as u8 / 4) << 4, flags]);
        frame.extend(segment.window.to_be_bytes());
        frame.extend([0, 0, 0, 0]);
        frame.extend(&options);
        let original = frame.len() as u32 + payload;
        frame.resize(original.min(SNAPLEN) as usize, 0x55);
        let mut record = Vec::with_capacity(16 + frame.len());
        pcap_record(&mut record, time_ns, &frame, original);
        self.file.write_all(&record)?;
        self.frames += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<u64> {
        self.file.flush()?;
        Ok(self.frames)
    }
}

/// The taps of a bulk capture: at the sender, and optionally at the receiver.
struct Taps {
    local: Tap,
    remote: Option<Tap>,
    /// Segments not yet written to the remote tap, which sees data later than the local tap and ACKs earlier.
    pending: BinaryHeap<PendingSegment>,
    order: u64,
}

/// A segment pending for the remote tap; the earliest is popped first.
struct PendingSegment {
    time_ns: u64,
    order: u64,
    segment: Segment<'static>,
    sack: Vec<(u32, u32)>,
}

impl PartialEq for PendingSegment {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for PendingSegment {}

impl PartialOrd for PendingSegment {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PendingSegment {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.time_ns, other.order).cmp(&(self.time_ns, self.order))
    }
}

impl Taps {
    /// Writes a segment to the local tap, and to the remote tap unless it is lost between them.
    fn write(&mut self, segment: &Segment<'_>, lost: bool) -> Result<()> {
        self.local.write(segment)?;
        if self.remote.is_some() && !lost {
            let half = BULK_RTT_NS / 2;
            let time_ns = if segment.from_server { segment.time_ns - half } else { segment.time_ns + half };
            self.order += 1;
            let kept = Segment { time_ns, timestamp_option_ns: Some(segment.time_ns), sack: &[], ..*segment };
            self.pending.push(PendingSegment {
                time_ns,
                order: self.order,
                segment: kept,
                sack: segment.sack.to_vec(),
            });
            self.release(segment.time_ns.saturating_sub(half))?;
        }
        Ok(())
    }

    /// Writes the segments that passed the remote tap before `until_ns`.
    fn release(&mut self, until_ns: u64) -> Result<()> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        while self.pending.peek().is_some_and(|pending| pending.time_ns < until_ns) {
            if let Some(PendingSegment { segment, sack, .. }) = self.pending.pop() {
                remote.write(&Segment { sack: &sack, ..segment })?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<u64> {
        self.release(u64::MAX)?;
        let remote = self.remote.map_or(Ok(0), Tap::finish)?;
        Ok(self.local.finish()? + remote)
    }
}

/// RTT of the bulk capture, nanoseconds.
const BULK_RTT_NS: u64 = 10_000_000;

/// Contents of a bulk capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bulk {
    /// Frames of both captures.
    pub frames: u64,
    /// Retransmitted segments.
    pub retransmits: u64,
}

/// Writes one connection at 10 Gb/s over 10 ms with `segments` data segments; one in ten thousand is lost after
/// the local tap and repaired by SACK. The capture at the receiver is optional.
pub fn bulk(local: &Path, remote: Option<&Path>, segments: u64) -> Result<Bulk> {
    const GAP_NS: u64 = 1_230;
    const RTT_NS: u64 = BULK_RTT_NS;
    const WINDOW: u64 = 10_000;
    let remote = remote.map(Tap::new).transpose()?;
    let mut tap = Taps { local: Tap::new(local)?, remote, pending: BinaryHeap::new(), order: 0 };
    let mut random = SplitMix64::new(7);
    let base = 4_000_000_000_u32;
    let number = |segment: u64| base.wrapping_add(1).wrapping_add((segment * u64::from(SEGMENT)) as u32);
    let mut now = 1_700_000_000_000_000_000_u64;
    let data = Segment { acknowledgement: 901, flags: ACK, payload: SEGMENT, window: 512, ..Segment::default() };
    let bare = Segment { from_server: true, sequence: 901, flags: ACK, window: 60_000, ..Segment::default() };
    tap.write(&Segment { time_ns: now, sequence: base, flags: SYN, payload: 0, acknowledgement: 0, ..data }, false)?;
    now += RTT_NS;
    let answer = Segment { sequence: 900, acknowledgement: number(0), flags: SYN | ACK, ..bare };
    tap.write(&Segment { time_ns: now, ..answer }, false)?;
    now += 20_000;
    tap.write(&Segment { time_ns: now, sequence: number(0), payload: 0, ..data }, false)?;
    // Pending ACKs, ordered by the time at which they pass the local tap.
    let mut back: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let mut beyond: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut next, mut expected, mut acked, mut unacked) = (0_u64, 0_u64, 0_u64, 0_u32);
    let (mut identification, mut retransmits) = (0_u16, 0_u64);
    let mut repaired = 0_u64;
    while acked < segments {
        if next < segments && next - acked < WINDOW && back.peek().is_none_or(|Reverse((at, _))| *at > now) {
            identification = identification.wrapping_add(1);
            let lost = random.below(10_000) == 0;
            tap.write(&Segment { time_ns: now, sequence: number(next), identification, ..data }, lost)?;
            if !lost {
                back.push(Reverse((now + RTT_NS, next)));
            }
            next += 1;
            now += GAP_NS;
            continue;
        }
        let Some(Reverse((at, arrived))) = back.pop() else { break };
        now = now.max(at);
        if arrived == expected {
            expected += 1;
            if let Some((&low, &high)) = beyond.first_key_value()
                && low == expected
            {
                expected = high;
                beyond.pop_first();
            }
        } else if arrived > expected {
            match beyond.range_mut(..=arrived).next_back() {
                Some((_, high)) if *high == arrived => *high += 1,
                Some((_, high)) if *high > arrived => {}
                _ => drop(beyond.insert(arrived, arrived + 1)),
            }
        }
        unacked += 1;
        let hole = !beyond.is_empty();
        if unacked < 2 && !hole && expected < segments {
            continue;
        }
        unacked = 0;
        let sack: Vec<_> = beyond.iter().rev().take(3).map(|(&low, &high)| (number(low), number(high))).collect();
        tap.write(&Segment { time_ns: now, acknowledgement: number(expected), sack: &sack, ..bare }, false)?;
        acked = acked.max(expected);
        let lost = hole && beyond.first_key_value().is_some_and(|(low, high)| high - low >= 3);
        if lost && repaired <= expected {
            // At this loss rate a window has one loss, so the first hole is one segment.
            repaired = expected + 1;
            identification = identification.wrapping_add(1);
            now += 500;
            tap.write(&Segment { time_ns: now, sequence: number(expected), identification, ..data }, false)?;
            retransmits += 1;
            back.push(Reverse((now + RTT_NS, expected)));
        }
    }
    Ok(Bulk { frames: tap.finish()?, retransmits })
}

/// Writes `flows` connections of about twenty packets each, 20,000 at a time.
pub fn many(path: &Path, flows: u32) -> Result<u64> {
    const MAX_CONCURRENT_FLOWS: u64 = 20_000;
    let mut tap = Tap::new(path)?;
    let mut random = SplitMix64::new(11);
    let mut now = 1_700_000_000_000_000_000_u64;
    // Connection and its next step.
    let mut live: Vec<(u32, u32)> = Vec::new();
    let mut begun = 0;
    loop {
        while (live.len() as u64) < MAX_CONCURRENT_FLOWS && begun < flows {
            live.push((begun, 0));
            begun += 1;
        }
        if live.is_empty() {
            return tap.finish();
        }
        let at = random.below(live.len() as u64) as usize;
        let (flow, step) = live[at];
        now += 400;
        let (mine, theirs) = (flow.wrapping_mul(77_777), flow.wrapping_mul(99_999));
        let client = Segment { time_ns: now, flow, flags: ACK, window: 512, ..Segment::default() };
        let server = Segment { from_server: true, ..client };
        let sent = |count: u32| theirs.wrapping_add(1).wrapping_add(count * SEGMENT);
        let request = mine.wrapping_add(301);
        let segment = match step {
            0 => Segment { sequence: mine, flags: SYN, ..client },
            1 => Segment { sequence: theirs, acknowledgement: mine.wrapping_add(1), flags: SYN | ACK, ..server },
            2 => Segment { sequence: mine.wrapping_add(1), acknowledgement: sent(0), ..client },
            3 => Segment { sequence: mine.wrapping_add(1), acknowledgement: sent(0), payload: 300, ..client },
            4..22 if step % 3 == 0 => {
                Segment { sequence: request, acknowledgement: sent(step / 3 * 2 - 2), ..client }
            }
            4..22 => {
                let number = (step - 4) / 3 * 2 + (step - 4) % 3;
                Segment { sequence: sent(number), acknowledgement: request, payload: SEGMENT, ..server }
            }
            22 => Segment { sequence: sent(12), acknowledgement: request, flags: ACK | FIN, ..server },
            23 => {
                let acknowledgement = sent(12).wrapping_add(1);
                Segment { sequence: request, acknowledgement, flags: ACK | FIN, ..client }
            }
            _ => Segment { sequence: sent(12).wrapping_add(1), acknowledgement: request.wrapping_add(1), ..server },
        };
        tap.write(&Segment { identification: step as u16 + 1, ..segment })?;
        if step >= 24 {
            live.swap_remove(at);
        } else {
            live[at].1 += 1;
        }
    }
}
