//! UDP accounting of one direction.

use landspeed_model::{Direction, LossLocation, StreamEnd, UdpEnd};

use crate::flow::Flow;
use crate::host::mean;

/// Maximum datagrams that GRO merges into one batch (`UDP_GRO_CNT_MAX` in the kernel's udp.h).
const MAX_BATCH: f64 = 64.0;

/// Maximum datagrams of a GSO packet (`UDP_MAX_SEGMENTS` in the kernel's udp.h).
const MAX_SEGMENTS: f64 = 128.0;

/// What is missing where the receiving socket dropped GRO batches.
pub(crate) const BATCHES: &str =
    "how many datagrams the receiving socket dropped: the kernel counts a GRO batch of up to 64 as one";

/// Packets and rates of one direction, all streams.
#[derive(Debug, Default)]
pub(crate) struct Udp {
    /// Ratio of lost to sent packets, 0..=1; `None` without both reports.
    pub loss: Option<f64>,
    /// Packets lost, all streams.
    pub lost: f64,
    /// Part of `lost` dropped by the receiving socket, from the accounting of the run.
    pub at_socket: f64,
    /// Whether the socket dropped GRO batches, which the kernel counts as one each: then `at_socket` is an upper bound.
    pub in_batches: bool,
    /// Part of `lost` dropped in the receiving host before the socket (backlog, interface).
    pub in_receiver: f64,
    /// Part of `lost` dropped in the sending host (qdisc, interface).
    pub in_sender: f64,
    /// Part of `lost` that no host counter explains.
    pub in_network: f64,
    /// Part of `lost` dropped in the hosts, in a run of two directions, whose counters do not separate them.
    pub of_either: f64,
    /// Packets refused by the sender's kernel: dropped by its own qdisc (ENOBUFS) or packet filter (EPERM).
    pub refused: f64,
    /// Largest number of datagrams that the sender's kernel counts as one packet (GSO).
    pub datagrams_per_packet: f64,
    /// Ratio of refused to refused plus sent packets, 0..=1.
    pub refused_share: f64,
    /// Payload rate of the senders in the steady phase, bits/s.
    pub offered_bps: Option<f64>,
    /// Requested payload rate, bits/s; `None` without `--rate`.
    pub requested_bps: Option<f64>,
}

impl Udp {
    /// Computes the UDP accounting of `flow`.
    pub(crate) fn new(flow: &Flow) -> Self {
        let sum = |of: &dyn Fn(&UdpEnd) -> Option<u64>, sender: bool| -> f64 {
            let ends = flow.streams.iter().filter_map(|s| if sender { s.sender() } else { s.receiver() });
            ends.filter_map(|end| of(end.udp.as_ref()?)).map(|count| count as f64).sum()
        };
        let sent = sum(&|udp| Some(udp.sent_packets), true);
        let delivered = sum(&|udp| Some(udp.delivered_packets), false);
        let seen = flow.sender_seen() && flow.receiver_seen() && sent > 0.0;
        let lost = if seen { (sent - delivered).max(0.0) } else { 0.0 };
        let refused = sum(&|udp| udp.send_errors, true);
        let mut senders = flow.streams.iter().filter_map(|stream| stream.sender()?.udp.as_ref());
        let batches = senders.any(|udp| udp.gso_used);
        let mut udp = Self {
            refused,
            datagrams_per_packet: if batches { MAX_SEGMENTS } else { 1.0 },
            refused_share: if sent + refused > 0.0 { refused / (sent + refused) } else { 0.0 },
            lost,
            loss: seen.then(|| lost / sent),
            at_socket: sum(&|udp| udp.socket_drops, false).min(lost),
            offered_bps: offered_bps(flow),
            requested_bps: flow
                .parameters
                .rate_bps
                .map(|rate| rate as f64 * flow.streams.len() as f64)
                .filter(|&rate| rate > 0.0),
            ..Self::default()
        };
        // The accounting covers the whole run: for two directions its places cannot be separated.
        let losses = &flow.document.conservation.losses;
        let at = |places: &[LossLocation]| -> f64 {
            losses.iter().filter(|loss| places.contains(&loss.place)).map(|loss| loss.packets as f64).sum()
        };
        let both = flow.document.requested.direction == Direction::Both;
        if !both && !losses.is_empty() {
            udp.at_socket = at(&[LossLocation::ReceiverSocket]).min(lost);
            udp.in_batches = losses.iter().any(|loss| loss.place == LossLocation::ReceiverSocket && !loss.exact);
            udp.in_sender = at(&[LossLocation::SenderQdisc, LossLocation::SenderNic]);
            udp.in_receiver = at(&[LossLocation::ReceiverNic, LossLocation::ReceiverBacklog]);
        } else if udp.at_socket > 0.0 && flow.streams.iter().any(|stream| coalesces(stream.receiver())) {
            // The kernel counts a GRO batch as one drop.
            udp.in_batches = true;
            udp.at_socket = (udp.at_socket * MAX_BATCH).min(lost);
        }
        // On one machine where nothing between the sockets can drop, the socket dropped all of them.
        if udp.in_batches && !flow.has_network() {
            udp.at_socket = lost;
            udp.in_batches = false;
        }
        udp.in_receiver = udp.in_receiver.min(lost - udp.at_socket);
        udp.in_sender = udp.in_sender.min(lost - udp.at_socket - udp.in_receiver);
        udp.in_network = lost - udp.at_socket - udp.in_receiver - udp.in_sender;
        if both && !losses.is_empty() {
            // Neither direction lost more there than both together.
            let in_network = at(&[LossLocation::Network]).min(udp.in_network);
            udp.of_either = udp.in_network - in_network;
            udp.in_network = in_network;
        }
        udp
    }

    /// Ratio of offered to requested rate.
    pub(crate) fn reached(&self) -> Option<f64> {
        Some(self.offered_bps? / self.requested_bps?)
    }

    /// Whether loss limits the goodput.
    pub(crate) fn loses(&self) -> bool {
        self.loss.is_some_and(|loss| loss >= crate::thresholds::UDP_LOSS)
    }

    /// Whether packets refused by the sender's kernel limit the rate.
    pub(crate) fn refuses(&self) -> bool {
        self.refused_share >= crate::thresholds::UDP_LOSS
    }

    /// Returns `part` as a share of the lost packets.
    pub(crate) fn share(&self, part: f64) -> Option<f64> {
        (self.lost > 0.0).then(|| part / self.lost)
    }
}

/// Whether the receiver got datagrams in GRO batches.
fn coalesces(end: Option<&StreamEnd>) -> bool {
    end.and_then(|end| end.udp.as_ref()).is_some_and(|udp| udp.gro_used)
}

fn offered_bps(flow: &Flow) -> Option<f64> {
    let rates: Vec<f64> = flow
        .streams
        .iter()
        .filter_map(|stream| {
            let (first, last) = (stream.sent.first()?, stream.sent.last()?);
            let seconds = last.t_ns.saturating_sub(first.t_ns) as f64 / 1e9;
            let bytes = last.bytes.checked_sub(first.bytes)? as f64;
            (seconds > 0.0).then(|| bytes * 8.0 / seconds)
        })
        .collect();
    mean(rates.iter().copied()).map(|rate| rate * rates.len() as f64)
}
