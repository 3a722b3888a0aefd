//! Losses and duration of one stream of a test.

use landspeed_model::{LossLocation, RunDocument};

use crate::plan::Stream;

/// Tolerated delay of the sender's last packet: share of the stream's span, and in addition nanoseconds, at most a quarter of
/// a short stream.
const LATE_SHARE: f64 = 0.02;
const LATE_NS: u64 = 2_000_000;
/// Lateness (p99) from which the sender's catching up (at 125% of the rate) may have caused the losses, nanoseconds.
const LATE_P99_NS: u64 = 1_000_000;

/// Losses and duration of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamOutcome {
    /// Packets that left the sender.
    pub sent: u64,
    /// Packets lost between the hosts.
    pub lost: u64,
    /// Reason why the stream does not count for a pass: the sender sent less, or slower.
    pub no_pass: Option<String>,
    /// Reason why the losses do not count for a failure: a host may have caused them.
    pub no_fail: Option<String>,
    /// Time from the first to the last packet at the sender, nanoseconds.
    pub send_span_ns: Option<u64>,
    /// Time from the first to the last packet at the receiver, nanoseconds.
    pub receive_span_ns: Option<u64>,
}

impl StreamOutcome {
    /// Reads a run of `stream`.
    pub fn of(document: &RunDocument, stream: &Stream) -> Self {
        let Some(udp) = &document.udp else { return Self::unknown("the run has no count of packets") };
        let (Some(sent), Some(lost)) = (udp.sent_packets, udp.lost_packets) else {
            return Self::unknown("a host did not report its count of packets");
        };
        let lost = lost.max(0) as u64;
        let sender = document.streams.first().and_then(|stream| stream.sender.as_ref());
        let receiver = document.streams.first().and_then(|stream| stream.receiver.as_ref());
        let span = |first: Option<u64>, last: Option<u64>| Some(last?.saturating_sub(first?));
        let send_span_ns = sender.and_then(|end| span(end.first_byte_ns, end.last_byte_ns));
        let placed: Vec<_> = document.conservation.losses.iter().filter(|loss| loss.packets > 0).collect();
        let network: u64 =
            placed.iter().filter(|loss| loss.place == LossLocation::Network).map(|loss| loss.packets).sum();
        let host: u64 = placed.iter().map(|loss| loss.packets).sum::<u64>() - network;
        let refused = udp.refused_packets.unwrap_or(0);
        let late_ns = sender.and_then(|end| end.udp.as_ref()?.departure_error.as_ref()).map_or(0, |late| late.p99_ns);
        // A single burst leaves as fast as the host can: it has no planned duration and no schedule within.
        let paced = stream.packets > u64::from(stream.burst_packets);
        let longest_ns = (stream.span_ns() as f64 * (1.0 + LATE_SHARE)) as u64 + LATE_NS.min(stream.span_ns() / 4);
        let no_pass = if refused > 0 {
            Some(format!("the sending host refused {refused} packets"))
        } else if sent < stream.packets {
            Some(format!("the sender sent {sent} of {} packets", stream.packets))
        } else {
            match send_span_ns {
                Some(span_ns) if paced && span_ns > longest_ns => Some(format!(
                    "the sender could not keep the rate: {:.1} ms instead of {:.1} ms",
                    span_ns as f64 / 1e6,
                    stream.span_ns() as f64 / 1e6
                )),
                Some(_) => None,
                None => Some("the sender's times are unknown".to_owned()),
            }
        };
        let no_fail = if host > 0 {
            Some(format!("the hosts dropped {host} packets themselves"))
        } else if lost > network {
            Some(format!("{lost} packets lost, unknown whether by the network or by a host"))
        } else if refused > 0 {
            no_pass.clone()
        } else if lost > 0 && late_ns > LATE_P99_NS && (stream.burst_packets == 1 || (paced && no_pass.is_none())) {
            Some(format!("the sender was up to {:.1} ms late (p99)", late_ns as f64 / 1e6))
        } else {
            None
        };
        Self {
            sent,
            lost: network,
            no_pass,
            no_fail,
            send_span_ns,
            receive_span_ns: receiver.and_then(|end| span(end.first_byte_ns, end.last_byte_ns)),
        }
    }

    fn unknown(why: &str) -> Self {
        Self { no_pass: Some(why.to_owned()), no_fail: Some(why.to_owned()), ..Self::default() }
    }
}
