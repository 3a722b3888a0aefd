//! ACK spacing, bursts and one-way delays, from captures at both hosts.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use landspeed_stats::quantile;
use landspeed_wire::capture::{CaptureItem, Reader};
use landspeed_wire::{Transport, dissect};

use super::Figures;

/// Figures shown for a run with captures.
pub(super) const FIGURES: &[&str] = &[
    "goodput",
    "retransmits",
    "ack-gap-p50",
    "ack-gap-p99",
    "per-ack",
    "data-gap-p50",
    "data-gap-p99",
    "burst-p50",
    "burst-p99",
    "burst-max",
    "burst-gap",
    "ms-max",
    "forward-min",
    "forward-p50",
    "forward-p99",
    "forward-max",
    "reverse-min",
    "reverse-p50",
    "reverse-p99",
    "reverse-max",
];

/// Maximum gap between the sender's frames within a burst, nanoseconds: half the transmission time of a full
/// frame at 100 Mb/s.
const BURST_GAP_NS: u64 = 61_500;
/// Payload of a full segment, bytes.
const FULL_PAYLOAD_BYTES: u32 = 1448;
const MS_NS: u64 = 1_000_000;

/// Identifies a segment in both captures: IP identification, sequence number, acknowledgement number, payload
/// length.
type SegmentKey = (u16, u32, u32, u32);

/// Segments of one direction of the largest flow, in capture order.
#[derive(Debug, Default)]
struct Direction {
    /// Capture time in nanoseconds, key, payload bytes, and frame length of each segment.
    segments: Vec<(u64, SegmentKey, u32, u32)>,
}

/// Computes the figures of a connection captured at both hosts with the same clock.
pub(super) fn figures(sender: &Path, receiver: &Path) -> Result<Figures> {
    let ([sent, acks_in], [received, acks_out]) = (read(sender)?, read(receiver)?);
    let mut figures = Figures::new();
    let us = |ns: f64| ns / 1e3;
    let mut add = |name: &str, values: &[f64], parts: &[(&str, f64)], scale: fn(f64) -> f64| {
        for (part, p) in parts {
            figures.extend(quantile(values, *p).map(|value| (format!("{name}-{part}"), scale(value))));
        }
    };
    let middle_and_tail = &[("p50", 0.5), ("p99", 0.99)];
    add("ack-gap", &gaps(acks_in.segments.iter().map(|segment| segment.0)), middle_and_tail, us);
    let full = received.segments.iter().filter(|segment| segment.2 == FULL_PAYLOAD_BYTES).map(|segment| segment.0);
    add("data-gap", &gaps(full), middle_and_tail, us);
    let (bursts, gaps_inside) = bursts(sent.segments.iter().map(|segment| segment.0));
    add("burst", &bursts, &[("p50", 0.5), ("p99", 0.99), ("max", 1.0)], |frames| frames);
    let delay_parts = &[("min", 0.0), ("p50", 0.5), ("p99", 0.99), ("max", 1.0)];
    add("forward", &delays(&sent, &received), delay_parts, |ns| ns / 1e6);
    add("reverse", &delays(&acks_out, &acks_in), delay_parts, |ns| ns / 1e6);
    figures.extend(quantile(&gaps_inside, 0.5).map(|ns| ("burst-gap".to_owned(), us(ns))));
    let ratio = received.segments.len() as f64 / acks_out.segments.len().max(1) as f64;
    figures.insert("per-ack".to_owned(), ratio);
    figures.insert("ms-max".to_owned(), max_bits_per_ms(&sent) as f64 / 1e3);
    Ok(figures)
}

/// Returns the gaps between successive times, nanoseconds.
fn gaps(times: impl Iterator<Item = u64>) -> Vec<f64> {
    let times: Vec<u64> = times.collect();
    times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect()
}

/// Returns the burst lengths in frames (single frames included) and the gaps within bursts, nanoseconds.
fn bursts(times: impl Iterator<Item = u64>) -> (Vec<f64>, Vec<f64>) {
    let (mut lengths, mut inside) = (vec![1.0], Vec::new());
    for gap in gaps(times) {
        if gap <= BURST_GAP_NS as f64 {
            *lengths.last_mut().expect("there is a first burst") += 1.0;
            inside.push(gap);
        } else {
            lengths.push(1.0);
        }
    }
    (lengths, inside)
}

/// Returns the bits sent in the busiest millisecond, counted from the first frame.
fn max_bits_per_ms(direction: &Direction) -> u64 {
    let mut bits: HashMap<u64, u64> = HashMap::new();
    let first_ns = direction.segments.first().map_or(0, |segment| segment.0);
    for (at_ns, _, _, length) in &direction.segments {
        *bits.entry(at_ns.saturating_sub(first_ns) / MS_NS).or_default() += u64::from(*length) * 8;
    }
    bits.into_values().max().unwrap_or(0)
}

/// Returns the one-way delays, nanoseconds, of segments that both captures contain.
fn delays(sent: &Direction, received: &Direction) -> Vec<f64> {
    let mut waiting: HashMap<SegmentKey, VecDeque<u64>> = HashMap::new();
    for (at_ns, key, ..) in &sent.segments {
        waiting.entry(*key).or_default().push_back(*at_ns);
    }
    let arrived = received.segments.iter().filter_map(|(at_ns, key, ..)| {
        let sent_ns = waiting.get_mut(key)?.pop_front()?;
        Some(at_ns.saturating_sub(sent_ns) as f64)
    });
    arrived.collect()
}

/// Reads the connection with the most payload: its data direction, and the pure ACKs of the other direction.
fn read(path: &Path) -> Result<[Direction; 2]> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (mut reader, mut at) = (Reader::new(), 0);
    let mut by_ports: HashMap<(u16, u16), (u64, Direction)> = HashMap::new();
    loop {
        let (used, next) = reader.next(&bytes[at..]).with_context(|| format!("cannot read {}", path.display()))?;
        at += used;
        let frame = match next {
            CaptureItem::Frame(frame) => frame,
            CaptureItem::More(_) => break,
            _ => continue,
        };
        let Ok(packet) = dissect(frame.link, frame.data, frame.original) else { continue };
        let Transport::Tcp(tcp) = packet.transport else { continue };
        let key = (packet.network.identification, tcp.sequence, tcp.acknowledgement, tcp.payload);
        let (payload, direction) = by_ports.entry((tcp.source, tcp.destination)).or_default();
        *payload += u64::from(tcp.payload);
        direction.segments.push((frame.time_ns, key, tcp.payload, frame.original));
    }
    let largest = by_ports.iter().max_by_key(|(_, (payload, _))| *payload).map(|(ports, _)| *ports);
    let (source, destination) = largest.context("the capture has no TCP")?;
    let mut take = |ports| by_ports.remove(&ports).map(|(_, direction)| direction).unwrap_or_default();
    let (mut data, mut acks) = (take((source, destination)), take((destination, source)));
    data.segments.retain(|segment| segment.2 > 0);
    acks.segments.retain(|segment| segment.2 == 0);
    ensure!(!acks.segments.is_empty(), "{} has no ACKs", path.display());
    Ok([data, acks])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_end_where_the_gap_is_longer_than_half_a_frame() {
        let times = [0, 1_230, 2_460, 123_000, 123_000 + BURST_GAP_NS, 400_000];
        let (lengths, inside) = bursts(times.into_iter());
        assert_eq!(lengths, [3.0, 2.0, 1.0]);
        assert_eq!(inside, [1_230.0, 1_230.0, BURST_GAP_NS as f64]);
    }

    #[test]
    fn a_retransmit_is_matched_by_its_own_identification() {
        let segment =
            |at_ns, identification| (at_ns, (identification, 7, 0, FULL_PAYLOAD_BYTES), FULL_PAYLOAD_BYTES, 1514);
        let sent = Direction { segments: vec![segment(0, 1), segment(500, 2)] };
        let received = Direction { segments: vec![segment(1_500, 2)] };
        assert_eq!(delays(&sent, &received), [1_000.0]);
    }
}
