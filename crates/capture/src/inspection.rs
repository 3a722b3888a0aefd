//! Selection of frames, and verification of their checksums, before they reach a sink.

use landspeed_model::TraceChecksums;
use landspeed_wire::capture::{Frame, InterfaceStatistics, Sink};
use landspeed_wire::filter::PacketFilter;
use landspeed_wire::{Checksum, Transport, checksums, dissect};

/// Maximum number of frames with a wrong checksum that are listed.
const MAX_LISTED: usize = 8;

/// Selection and verification of frames before their analysis.
#[derive(Debug, Default)]
pub struct Inspection {
    filter: Option<PacketFilter>,
    checksums: Option<TraceChecksums>,
    /// Number of the latest frame, from 1.
    number: u64,
}

impl Inspection {
    /// Creates an inspection: with a filter, other frames are skipped; with `verify`, checksums are verified.
    pub fn new(filter: Option<PacketFilter>, verify: bool) -> Self {
        Self { filter, checksums: verify.then(TraceChecksums::default), number: 0 }
    }

    /// Returns the verified checksums, if that was asked for.
    pub fn checksums(&self) -> Option<&TraceChecksums> {
        self.checksums.as_ref()
    }

    /// Returns a sink that inspects frames before they reach `sink`.
    pub(crate) fn before<'a, S: Sink>(&'a mut self, sink: &'a mut S) -> InspectingSink<'a, S> {
        InspectingSink { inspection: self, sink }
    }

    /// Returns whether a frame is analysed.
    fn inspect(&mut self, frame: &Frame<'_>) -> bool {
        self.number += 1;
        if let Some(filter) = &self.filter {
            let packet = dissect(frame.link, frame.data, frame.original);
            if !packet.is_ok_and(|packet| filter.matches(&packet)) {
                return false;
            }
        }
        if let Some(counts) = &mut self.checksums {
            verify(frame, self.number, counts);
        }
        true
    }
}

/// Counts the checksums of a frame.
fn verify(frame: &Frame<'_>, number: u64, counts: &mut TraceChecksums) {
    let Some(found) = checksums(frame.link, frame.data, frame.original) else { return };
    let wrong = match (found.network, found.transport) {
        (Checksum::Wrong, _) => &mut counts.wrong_ip,
        (_, Checksum::Wrong) => {
            let packet = dissect(frame.link, frame.data, frame.original);
            let is_tcp = packet.is_ok_and(|packet| matches!(packet.transport, Transport::Tcp(_)));
            if is_tcp { &mut counts.wrong_tcp } else { &mut counts.wrong_udp }
        }
        (_, right_or_unknown) => {
            match right_or_unknown {
                Checksum::Offloaded => counts.offloaded += 1,
                Checksum::Unknown => counts.unknown += 1,
                Checksum::Right | Checksum::Wrong => counts.right += 1,
            }
            return;
        }
    };
    *wrong += 1;
    if counts.first_wrong.len() < MAX_LISTED {
        counts.first_wrong.push(number);
    }
}

/// A sink that passes the frames of an inspection to another sink.
#[derive(Debug)]
pub(crate) struct InspectingSink<'a, S> {
    inspection: &'a mut Inspection,
    sink: &'a mut S,
}

impl<S: Sink> Sink for InspectingSink<'_, S> {
    fn frame(&mut self, frame: &Frame<'_>) {
        if self.inspection.inspect(frame) {
            self.sink.frame(frame);
        } else {
            self.sink.skipped();
        }
    }

    fn statistics(&mut self, statistics: InterfaceStatistics) {
        self.sink.statistics(statistics);
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use landspeed_wire::LinkType;

    use super::*;

    /// A sink that counts.
    #[derive(Default)]
    struct Counter {
        frames: u64,
        skipped: u64,
    }

    impl Sink for Counter {
        fn frame(&mut self, _: &Frame<'_>) {
            self.frames += 1;
        }

        fn skipped(&mut self) {
            self.skipped += 1;
        }

        fn statistics(&mut self, _: InterfaceStatistics) {}
    }

    fn tcp(port: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        let built = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        built.tcp(port, 443, 1, 500).write(&mut bytes, &[7; 33]).expect("memory");
        bytes
    }

    fn udp6() -> Vec<u8> {
        let mut bytes = Vec::new();
        let built = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv6([1; 16], [2; 16], 64);
        built.udp(40_000, 53).write(&mut bytes, &[7; 33]).expect("memory");
        bytes
    }

    fn inspect(inspection: &mut Inspection, frames: &[&[u8]]) -> Counter {
        let mut counter = Counter::default();
        for data in frames {
            let frame =
                Frame { interface: 0, link: LinkType::ETHERNET, time_ns: 0, original: data.len() as u32, data };
            inspection.before(&mut counter).frame(&frame);
        }
        counter
    }

    #[test]
    fn checksums_are_right_wrong_offloaded_or_unknown() {
        let changed = |mut frame: Vec<u8>, at: usize| {
            frame[at] ^= 0x10;
            frame
        };
        let mut offloaded = tcp(1);
        // The sum of the pseudo-header: addresses, protocol 6, length 53.
        let pseudo = 0x0a00_u16 + 0x0001 + 0x0a00 + 0x0002 + 6 + 53;
        offloaded[50..52].copy_from_slice(&pseudo.to_be_bytes());
        let mut cut = tcp(1);
        cut.truncate(60);
        let mut absent = udp6();
        absent[60..62].fill(0);
        let frames =
            [tcp(1), udp6(), changed(tcp(1), 60), changed(udp6(), 70), changed(tcp(1), 22), offloaded, cut, absent];
        let mut inspection = Inspection::new(None, true);
        let counter = inspect(&mut inspection, &frames.each_ref().map(Vec::as_slice));
        assert_eq!((counter.frames, counter.skipped), (8, 0));
        let expected = TraceChecksums {
            right: 2,
            wrong_ip: 1,
            wrong_tcp: 1,
            wrong_udp: 1,
            offloaded: 1,
            unknown: 2,
            first_wrong: vec![3, 4, 5],
        };
        assert_eq!(inspection.checksums(), Some(&expected));
    }

    #[test]
    fn frames_that_do_not_match_are_skipped() {
        let filter = PacketFilter::parse("src port 2").expect("an expression");
        let mut inspection = Inspection::new(Some(filter), true);
        let counter = inspect(&mut inspection, &[&tcp(1), &tcp(2), &udp6(), &[0; 60]]);
        assert_eq!((counter.frames, counter.skipped), (1, 3));
        assert_eq!(inspection.checksums().map(|sums| sums.right), Some(1));
    }
}
