//! Client side: runs a search in each direction.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_model::{Direction, MtuProbe};
use landspeed_sys::clock;

use super::port::{Port, PortEvent, SendResult};
use super::search::{Failure, Search};
use super::wire::{HEADER_LEN, Kind, MAX_PAYLOAD, Message};
use super::words::{self, SearchEnd};

const MS: u64 = 1_000_000;
/// Deadlines of the upload search, the download search and the whole measurement, nanoseconds after its start; in
/// addition to 8, 16 and 18 round trips.
const UPLOAD_NS: u64 = 7_500 * MS;
const DOWNLOAD_NS: u64 = 14_000 * MS;
const TOTAL_NS: u64 = 14_800 * MS;
/// Retransmission interval of the first small packets, at least.
const FIRST_RETRANSMIT_NS: u64 = 300 * MS;
/// Maximum number of first packets, and number of answers needed.
const MAX_FIRST_PACKETS: u32 = 8;
const MIN_ANSWERS: u32 = 3;
/// Number of consecutive volleys without an answer after which the path is given up.
const MAX_UNANSWERED_VOLLEYS: u32 = 4;
const EMSGSIZE_ERRNO: u16 = 90;
const EAGAIN_ERRNO: u16 = 11;

/// Probes both directions of a connected socket, upload first. `path_ns` is
/// an RTT measured before, 0 if unknown. Takes at most 15 s and 18 RTTs, typically less than one second. The
/// peer runs [`serve`](super::serve) with the same tag. Ends early with partial results if `interrupted` is
/// set.
pub fn probe(socket: &UdpSocket, tag: u32, path_ns: u64, interrupted: &AtomicBool) -> Vec<MtuProbe> {
    let start_ns = clock::monotonic_ns();
    let port = match Port::new(socket, tag) {
        Ok(port) => port,
        Err(error) => {
            let note = format!("not probed: cannot set up the socket: {error}");
            return [Direction::Upload, Direction::Download].map(|way| words::unknown(way, &note)).into();
        }
    };
    let mut client = Client {
        port,
        interrupted,
        log: Vec::new(),
        rtt_ns: 0,
        unanswered_volleys: 0,
        server_mtu: None,
        icmp_count: 0,
        ending: SearchEnd::Exact,
    };
    if !client.measure_rtt(FIRST_RETRANSMIT_NS.max(path_ns + path_ns / 4)) {
        let note = "no answer to small probes: UDP does not pass here, or the server left";
        return [Direction::Upload, Direction::Download].map(|way| words::unknown(way, note)).into();
    }
    let upload = client.search(Direction::Upload, start_ns + UPLOAD_NS + 8 * path_ns);
    let download = client.search(Direction::Download, start_ns + DOWNLOAD_NS + 16 * path_ns);
    client.send_done(start_ns + TOTAL_NS + 18 * path_ns);
    vec![upload, download]
}

/// A probe and the small packet after it: sequence numbers 2n and 2n + 1, where n is the index in the log.
#[derive(Debug, Clone, Copy)]
struct ProbeRecord {
    direction: Direction,
    /// Size of the IP packet, bytes.
    size: u32,
    sent_ns: u64,
    /// Time of the answer to the small packet.
    small_answered_ns: Option<u64>,
    /// Whether the probe is decided: answered, or counted as lost or inconclusive.
    settled: bool,
}

struct Client<'a> {
    port: Port<'a>,
    interrupted: &'a AtomicBool,
    log: Vec<ProbeRecord>,
    /// Smoothed upper estimate of the RTT.
    rtt_ns: u64,
    /// Number of consecutive volleys without an answer.
    unanswered_volleys: u32,
    server_mtu: Option<u32>,
    /// Last ICMP count received from the server.
    icmp_count: u32,
    /// Outcome of the current search.
    ending: SearchEnd,
}

impl Client<'_> {
    /// Measures the RTT with small packets; `false` if none is answered.
    fn measure_rtt(&mut self, retransmit_ns: u64) -> bool {
        let mut search = Search::new(self.min_size(), self.min_size());
        for _ in 0..MAX_FIRST_PACKETS {
            let number = self.log_probe(Direction::Upload, self.min_size());
            self.send_small(Direction::Upload, number);
            let until_ns = clock::monotonic_ns() + retransmit_ns;
            while self.log[number].small_answered_ns.is_none()
                && let Some(heard) = self.port.receive_event(until_ns)
            {
                self.handle_event(&heard, Direction::Upload, &mut search);
            }
            let answered = self.log.iter().filter(|one| one.small_answered_ns.is_some()).count();
            if answered >= MIN_ANSWERS as usize || self.ending != SearchEnd::Exact || self.is_interrupted() {
                break;
            }
        }
        // The first RTT may include ARP or neighbour discovery; the shortest does not.
        let round_trips = self.log.iter().filter_map(|one| Some(one.small_answered_ns?.saturating_sub(one.sent_ns)));
        match round_trips.min() {
            Some(shortest_ns) => self.rtt_ns = shortest_ns.max(1),
            None => return false,
        }
        true
    }

    /// Sends the final message so that the server can stop.
    fn send_done(&mut self, end_ns: u64) {
        let done = Message::new(Kind::Done, self.port.tag(), u32::MAX, 0);
        for _ in 0..3 {
            self.port.send(&done, HEADER_LEN);
            if self.is_interrupted() {
                return;
            }
            let until_ns = (clock::monotonic_ns() + self.timeout_ns().min(250 * MS)).min(end_ns);
            loop {
                match self.port.receive_event(until_ns) {
                    Some(PortEvent::Message { message, .. }) if message.sequence == u32::MAX => return,
                    Some(PortEvent::PortUnreachable) => return,
                    Some(_) if clock::monotonic_ns() < until_ns => {}
                    _ => break,
                }
            }
        }
    }

    fn search(&mut self, direction: Direction, deadline_ns: u64) -> MtuProbe {
        let most =
            (MAX_PAYLOAD + self.port.overhead()).min(if self.port.overhead() == 28 { 65_535 } else { u32::MAX });
        let mut search = Search::new(self.min_size(), most);
        let first = self.log.len();
        if self.ending != SearchEnd::PortUnreachable {
            self.ending = SearchEnd::Exact;
            self.unanswered_volleys = 0;
            while self.ending == SearchEnd::Exact
                && let Some((size, wanted)) = search.next()
            {
                self.volley(direction, size, wanted, &mut search, deadline_ns);
            }
        }
        let interface = match direction {
            Direction::Upload => self.port.interface_mtu(),
            _ => self.server_mtu,
        };
        let probes = (self.log.len() - first) as u32;
        words::result(direction, &search, interface, probes, self.ending)
    }

    /// Sends up to `wanted` probes of one size, until the search needs another size or no more answers can arrive.
    fn volley(&mut self, direction: Direction, size: u32, wanted: u32, search: &mut Search, deadline_ns: u64) {
        let first = self.log.len();
        let gap_ns = (self.rtt_ns / 4).clamp(2 * MS, 50 * MS);
        let (mut left, mut next_ns) = (wanted, 0);
        let mut received_any = false;
        while search.next().is_some_and(|(next, _)| next == size) {
            let now_ns = clock::monotonic_ns();
            if now_ns >= deadline_ns || self.is_interrupted() {
                self.ending = if now_ns >= deadline_ns { SearchEnd::DeadlinePassed } else { SearchEnd::Interrupted };
                return;
            }
            if left > 0 && now_ns >= next_ns {
                self.send_probe(direction, size, search);
                (left, next_ns) = (left - 1, now_ns + gap_ns);
                continue;
            }
            let Some(settles_ns) = self.decide_probes(first, now_ns, search) else {
                if left == 0 {
                    break;
                }
                // No probe is in flight; wait until the next is due.
                self.wait_for_event(next_ns, direction, search);
                continue;
            };
            let until_ns = if left > 0 { settles_ns.min(next_ns) } else { settles_ns };
            received_any |= self.wait_for_event(until_ns.min(deadline_ns), direction, search);
            if self.ending != SearchEnd::Exact {
                return;
            }
        }
        let passed_or_explained = received_any || self.log.len() == first;
        self.unanswered_volleys = if passed_or_explained { 0 } else { self.unanswered_volleys + 1 };
        if self.unanswered_volleys >= MAX_UNANSWERED_VOLLEYS {
            self.ending = SearchEnd::NoAnswers;
        }
    }

    /// Handles one message or error, if one arrives in time. Returns within 100 ms, so that the caller can check
    /// for an interrupt.
    fn wait_for_event(&mut self, until_ns: u64, direction: Direction, search: &mut Search) -> bool {
        match self.port.receive_event(until_ns.min(clock::monotonic_ns() + 100 * MS)) {
            Some(heard) => {
                self.handle_event(&heard, direction, search);
                true
            }
            None => false,
        }
    }

    fn send_probe(&mut self, direction: Direction, size: u32, search: &mut Search) {
        let payload = size - self.port.overhead();
        let number = self.log.len();
        let (kind, len) = match direction {
            Direction::Upload => (Kind::ProbeUp, payload as usize),
            _ => (Kind::RequestDown, HEADER_LEN),
        };
        let message = Message::new(kind, self.port.tag(), 2 * number as u32, payload);
        match self.port.send(&message, len) {
            SendResult::Queued => {
                self.log_probe(direction, size);
                self.send_small(direction, number);
            }
            SendResult::TooBig(mtu) => search.fail(size, Failure::Interface(mtu)),
            SendResult::Blocked(errno) => search.fail(size, Failure::Blocked(errno)),
            SendResult::Retry => {}
        }
    }

    fn log_probe(&mut self, direction: Direction, size: u32) -> usize {
        let sent_ns = clock::monotonic_ns();
        self.log.push(ProbeRecord { direction, size, sent_ns, small_answered_ns: None, settled: false });
        self.log.len() - 1
    }

    /// Sends the small packet after a probe.
    fn send_small(&mut self, direction: Direction, number: usize) {
        let kind = if direction == Direction::Upload { Kind::ProbeUp } else { Kind::RequestDown };
        let message = Message::new(kind, self.port.tag(), 2 * number as u32 + 1, HEADER_LEN as u32);
        self.port.send(&message, HEADER_LEN);
    }

    /// Decides probes whose waiting time is over. Returns when the next one is due, `None` if all are decided.
    fn decide_probes(&mut self, first: usize, now_ns: u64, search: &mut Search) -> Option<u64> {
        // Allows for reordering.
        let grace_ns = (self.rtt_ns / 4).clamp(3 * MS, 100 * MS);
        let timeout_ns = self.timeout_ns();
        let mut next_ns: Option<u64> = None;
        for one in self.log[first..].iter_mut().filter(|one| !one.settled) {
            let due_ns = one
                .small_answered_ns
                .map_or(one.sent_ns + timeout_ns, |small_answered_ns| small_answered_ns + grace_ns);
            if now_ns < due_ns {
                next_ns = Some(next_ns.map_or(due_ns, |earliest| earliest.min(due_ns)));
                continue;
            }
            one.settled = true;
            if one.small_answered_ns.is_some() {
                search.fail(one.size, Failure::Lost);
            }
        }
        next_ns
    }

    fn handle_event(&mut self, heard: &PortEvent, direction: Direction, search: &mut Search) {
        match *heard {
            PortEvent::PortUnreachable => self.ending = SearchEnd::PortUnreachable,
            PortEvent::Proof(_) => {}
            PortEvent::TooBig { quoted, mtu } => {
                if direction != Direction::Upload {
                    return;
                }
                let sequence = quoted.filter(|message| message.kind == Kind::ProbeUp).map(|message| message.sequence);
                let number = sequence.map_or(self.log.len().wrapping_sub(1), |sequence| sequence as usize / 2);
                if let Some(one) = self.log.get_mut(number).filter(|one| one.direction == direction) {
                    one.settled = true;
                    search.fail(one.size, Failure::Icmp(mtu));
                }
            }
            PortEvent::Message { message, len, fragment } => {
                self.handle_message(&message, len, fragment, direction, search);
            }
        }
    }

    fn handle_message(
        &mut self,
        message: &Message,
        len: usize,
        fragment: Option<u32>,
        direction: Direction,
        search: &mut Search,
    ) {
        let answers = match direction {
            Direction::Upload => message.kind == Kind::Ack,
            _ => matches!(message.kind, Kind::DownProbe | Kind::Refused),
        };
        if message.interface_mtu > 0 {
            self.server_mtu = Some(message.interface_mtu);
        }
        if message.icmp_count != self.icmp_count {
            self.icmp_count = message.icmp_count;
            let size = message.icmp_size + self.port.overhead();
            if direction == Direction::Download
                && self.log.iter().any(|one| (one.direction, one.size) == (direction, size))
            {
                search.fail(size, Failure::Icmp(message.icmp_mtu));
            }
        }
        let overhead = self.port.overhead();
        let Some(one) = self.log.get_mut(message.sequence as usize / 2) else { return };
        if !answers || one.direction != direction {
            return;
        }
        if message.sequence % 2 == 1 {
            let now_ns = clock::monotonic_ns();
            if one.small_answered_ns.is_none() {
                one.small_answered_ns = Some(now_ns);
                let sample_ns = (now_ns - one.sent_ns).max(1);
                self.rtt_ns = sample_ns.max((7 * self.rtt_ns + sample_ns) / 8);
            }
            return;
        }
        one.settled = true;
        let size = one.size;
        match message.kind {
            _ if message.size + overhead != size => {}
            Kind::Ack if message.fragment > 0 => search.fail(size, Failure::Fragmented(message.fragment)),
            Kind::Ack => search.pass(size),
            Kind::DownProbe if len != message.size as usize => {}
            Kind::DownProbe => match fragment {
                Some(largest) => search.fail(size, Failure::Fragmented(largest)),
                None => search.pass(size),
            },
            Kind::Refused if message.errno == EMSGSIZE_ERRNO => {
                search.fail(size, Failure::Interface(message.interface_mtu));
            }
            Kind::Refused if message.errno != EAGAIN_ERRNO => {
                search.fail(size, Failure::Blocked(message.errno.into()));
            }
            _ => {}
        }
    }

    /// Timeout of a small packet: long, since a busy host may answer late, and doubled with each unanswered volley.
    fn timeout_ns(&self) -> u64 {
        ((2 * self.rtt_ns + 50 * MS) << self.unanswered_volleys.min(4))
            .min((1_400 * MS).max(2 * self.rtt_ns + 50 * MS))
    }

    /// Size of the small packets, which the path is known to carry.
    fn min_size(&self) -> u32 {
        HEADER_LEN as u32 + self.port.overhead()
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
