//! Losses and duration of one stream of a test.

use landspeed_model::{LossLocation, RunDocument};

use crate::plan::Stream;

/// Tolerated delay of the sender's last packet: share of the stream's span, and in addition nanoseconds, at most a quarter of
/// a short stream.
const LATE_SHARE: f64 = 0.02;
const LATE_NS: u64 = 2_000_000;
/// Lateness (p99) from which the sender's catching up (at 125% of the rate) may have caused the losses, nanoseconds.
const LATE_P99_NS: u64 = 1_000_000;
/// Ratio of median to p99 lateness from which a slow sender was late all the time, and so never caught up.
const ALWAYS_LATE: f64 = 0.8;

/// Losses and duration of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamOutcome {
    /// Packets that left the sender.
    pub sent: u64,
    /// Packets lost between the hosts.
    pub lost: u64,
    /// Runs of consecutive packets that were lost between the hosts; `None` if unknown.
    pub loss_periods: Option<u64>,
    /// Packets that a host dropped: they show nothing of the network, and are not counted as sent over it.
    pub host_dropped: u64,
    /// Reason why the stream does not count for a pass: the sender sent less, or slower, or a host dropped packets.
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
            let sent = udp.sent_packets.unwrap_or(0);
            return Self { sent, ..Self::unknown("a host did not report its count of packets") };
        };
        let lost = lost.max(0) as u64;
        let sender = document.streams.first().and_then(|stream| stream.sender.as_ref());
        let receiver = document.streams.first().and_then(|stream| stream.receiver.as_ref());
        let span = |first: Option<u64>, last: Option<u64>| Some(last?.saturating_sub(first?));
        let send_span_ns = sender.and_then(|end| span(end.first_byte_ns, end.last_byte_ns));
        let losses = Losses::of(document);
        // A single burst leaves as fast as the host can: it has no planned duration and no schedule within.
        let paced = stream.packets > u64::from(stream.burst_packets);
        let no_pass = sender_fault(stream, sent, udp.refused_packets, send_span_ns).or_else(|| losses.host_fault());
        let lateness = sender.and_then(|end| end.udp.as_ref()?.departure_error.as_ref());
        let is_behind = no_pass.is_some();
        let no_fail = if losses.network == 0 && losses.host > 0 {
            losses.host_fault()
        } else if lost > losses.network + losses.host {
            Some(format!("{lost} packets lost, unknown whether by the network or by a host"))
        } else if udp.refused_packets.is_some_and(|refused| refused > 0) {
            no_pass.clone()
        } else if lost > 0 && udp.refused_packets.is_none() {
            Some(format!("{lost} packets lost, unknown whether the sending host refused some"))
        } else if lost > 0 && (paced || stream.burst_packets == 1) {
            match lateness {
                Some(late) if is_behind && late.p50_ns as f64 >= ALWAYS_LATE * late.p99_ns as f64 => None,
                Some(late) if late.p99_ns > LATE_P99_NS + stream.burst_ns => {
                    Some(format!("the sender was up to {:.1} ms late (p99)", late.p99_ns as f64 / 1e6))
                }
                Some(_) => None,
                None => Some("packets lost, unknown whether the sender kept its schedule".to_owned()),
            }
        } else {
            None
        };
        // The receiver knows nothing of packets after its last one.
        let tail = udp.tail_lost_packets.map(|lost| u64::from(lost > 0));
        let periods = receiver.and_then(|end| end.udp.as_ref()?.loss_periods).zip(tail);
        Self {
            sent,
            loss_periods: periods.map(|(before, tail)| before + tail).filter(|_| losses.network == lost),
            lost: losses.network,
            host_dropped: losses.host,
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

/// Losses of a run by location.
struct Losses {
    network: u64,
    host: u64,
}

impl Losses {
    fn of(document: &RunDocument) -> Self {
        let sum = |network: bool| {
            let losses = document.conservation.losses.iter();
            losses.filter(|loss| (loss.place == LossLocation::Network) == network).map(|loss| loss.packets).sum()
        };
        Self { network: sum(true), host: sum(false) }
    }

    /// Returns why a stream with drops in a host cannot pass: host-wide counters may include losses of the network.
    fn host_fault(&self) -> Option<String> {
        (self.host > 0).then(|| format!("the hosts dropped {} packets themselves", self.host))
    }
}

/// Returns why the sender did not send `stream` as planned.
fn sender_fault(stream: &Stream, sent: u64, refused: Option<u64>, send_span_ns: Option<u64>) -> Option<String> {
    let paced = stream.packets > u64::from(stream.burst_packets);
    let planned_ns = stream.span_ns();
    let late_ns = LATE_NS.min(planned_ns / 4) + stream.burst_ns;
    let longest_ns = (planned_ns as f64 * (1.0 + LATE_SHARE)) as u64 + late_ns;
    if let Some(refused) = refused.filter(|refused| *refused > 0) {
        return Some(format!("the sending host refused {refused} packets"));
    }
    if sent < stream.packets {
        return Some(format!("the sender sent {sent} of {} packets", stream.packets));
    }
    match send_span_ns {
        Some(span_ns) if paced && span_ns > longest_ns => Some(format!(
            "the sender could not keep the rate: {:.1} ms instead of {:.1} ms",
            span_ns as f64 / 1e6,
            planned_ns as f64 / 1e6
        )),
        Some(_) => None,
        None => Some("the sender's times are unknown".to_owned()),
    }
}
