//! Server side: one answer per request, and no unsolicited messages.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_sys::clock;

use super::port::{Port, PortEvent, SendResult};
use super::wire::{HEADER_LEN, Kind, Message};
use crate::control::deadline::timeout_ns;

/// Idle timeout of a client, in addition to four round trips.
const IDLE_NS: u64 = 3_000_000_000;
/// Interval between checks of the stop flag, nanoseconds.
const TICK_NS: u64 = 100_000_000;
/// Maximum duration of a session, in addition to 20 round trips, nanoseconds.
const TOTAL_NS: u64 = 20_000_000_000;
/// Maximum number of answers; more than any search needs.
const MAX_ANSWERS: u32 = 4_000;
const EMSGSIZE_ERRNO: u16 = 90;
const EAGAIN_ERRNO: u16 = 11;

/// Answers the probes of one client whose address is validated: answers may be larger than requests. Returns
/// when the client is done, after 3 s and four RTTs without a request, after 20 s and 20 RTTs, or soon after `stop` is set.
pub fn serve(socket: &UdpSocket, tag: u32, rtt_ns: u64, stop: &AtomicBool) {
    let Ok(mut port) = Port::new(socket, tag) else { return };
    let mut state = State { interface_mtu: port.interface_mtu().unwrap_or(0), ..State::default() };
    let end_ns = clock::monotonic_ns() + TOTAL_NS + 20 * rtt_ns;
    let idle_timeout_ns = timeout_ns(IDLE_NS, rtt_ns);
    let mut idle_ns = clock::monotonic_ns() + idle_timeout_ns;
    let mut answers = 0;
    while answers < MAX_ANSWERS && clock::monotonic_ns() < idle_ns.min(end_ns) && !stop.load(Ordering::Relaxed) {
        let tick_ns = clock::monotonic_ns() + TICK_NS;
        match port.receive_event(idle_ns.min(end_ns).min(tick_ns)) {
            None => {}
            Some(PortEvent::PortUnreachable) => return,
            Some(PortEvent::TooBig { quoted, mtu }) => state.icmp(quoted.as_ref(), mtu),
            Some(PortEvent::Proof(stream)) => {
                answers += 1;
                port.welcome(stream);
            }
            Some(PortEvent::Message { message: request, len, fragment }) => {
                if state.answer(&mut port, &request, len, fragment) {
                    answers += 1;
                    idle_ns = clock::monotonic_ns() + idle_timeout_ns;
                }
                if request.kind == Kind::Done {
                    return;
                }
            }
        }
    }
}

/// State that is sent with every answer.
#[derive(Default)]
struct State {
    interface_mtu: u32,
    icmp_count: u32,
    icmp_size: u32,
    icmp_mtu: u32,
    /// Size of the last down-probe larger than a header.
    last_size: u32,
}

impl State {
    /// Records an ICMP message about a down-probe. If it does not quote enough, it must be about the last large
    /// one.
    fn icmp(&mut self, quoted: Option<&Message>, mtu: u32) {
        let size = quoted.map_or(self.last_size, |message| message.size);
        if size > 0 {
            (self.icmp_size, self.icmp_mtu) = (size, mtu);
            self.icmp_count = self.icmp_count.wrapping_add(1);
        }
    }

    /// Answers a request; `false` if the message is not a request.
    fn answer(&mut self, port: &mut Port<'_>, request: &Message, len: usize, fragment: Option<u32>) -> bool {
        let answer = Message {
            interface_mtu: self.interface_mtu,
            icmp_count: self.icmp_count,
            icmp_size: self.icmp_size,
            icmp_mtu: self.icmp_mtu,
            ..Message::new(Kind::Ack, request.tag, request.sequence, request.size)
        };
        match request.kind {
            // A datagram whose length differs from its header was tampered with: do not answer.
            Kind::ProbeUp if len == request.size as usize => {
                port.send(&Message { fragment: fragment.unwrap_or(0), ..answer }, HEADER_LEN);
            }
            Kind::Done => {
                port.send(&answer, HEADER_LEN);
            }
            Kind::RequestDown if request.size as usize >= HEADER_LEN => {
                if request.size as usize > HEADER_LEN {
                    self.last_size = request.size;
                }
                let errno = match port.send(&Message { kind: Kind::DownProbe, ..answer }, request.size as usize) {
                    SendResult::Queued => return true,
                    SendResult::TooBig(mtu) => {
                        self.interface_mtu = if mtu > 0 { mtu } else { self.interface_mtu };
                        EMSGSIZE_ERRNO
                    }
                    SendResult::Retry => EAGAIN_ERRNO,
                    SendResult::Blocked(errno) => errno as u16,
                };
                let refused = Message { kind: Kind::Refused, errno, interface_mtu: self.interface_mtu, ..answer };
                port.send(&refused, HEADER_LEN);
            }
            Kind::ProbeUp | Kind::RequestDown | Kind::Ack | Kind::DownProbe | Kind::Refused => return false,
        }
        true
    }
}
