//! The causes that a verdict can name, described in one table: names, place, viewpoints and what may help.
//! `crates/diagnose` and `docs/causes` say how each is recognised.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::TuneupKind::{
    self, Buffers, Congestion, Mss, Offloads, Pacing as Pace, Placement, Qdisc, Streams, Window, Writes, ZeroCopy,
};

/// Where a limit is, in the direction of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CausePlace {
    /// On the sending host.
    Sender,
    /// On the receiving host.
    Receiver,
    /// On one of the two hosts.
    EitherHost,
    /// Between the hosts.
    Network,
    /// Unknown.
    Unknown,
}

/// What a verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewpoint {
    /// `lab run`: both ends, and the links and queues of the path.
    Lab,
    /// `run`: the reports of both ends.
    BothEnds,
    /// `run` or `iperf3`: the sender's report only (the remote end is iperf3, or its report is lost).
    Sender,
    /// `run` or `iperf3`: the receiver's report only.
    Receiver,
    /// `watch` on the sending host.
    WatchSender,
    /// `watch` on the receiving host.
    WatchReceiver,
}

impl Viewpoint {
    /// All viewpoints.
    pub const ALL: [Self; 6] =
        [Self::Lab, Self::BothEnds, Self::Sender, Self::Receiver, Self::WatchSender, Self::WatchReceiver];
}

/// Needs the sender's TCP counters.
const SENDER_TCP: &[Viewpoint] = &[Viewpoint::Lab, Viewpoint::BothEnds, Viewpoint::Sender, Viewpoint::WatchSender];
/// Needs the sender's TCP counters, or when and in what order data arrives at the receiver.
const SENDER_TCP_OR_ARRIVALS: &[Viewpoint] =
    &[Viewpoint::Lab, Viewpoint::BothEnds, Viewpoint::Sender, Viewpoint::WatchSender, Viewpoint::WatchReceiver];
/// Needs the sender's TCP counters or the options of the run.
const SENDER_TCP_OR_OPTIONS: &[Viewpoint] =
    &[Viewpoint::Lab, Viewpoint::BothEnds, Viewpoint::Sender, Viewpoint::Receiver, Viewpoint::WatchSender];
/// Needs CPU times of the sending host; the lab's hosts have none.
const SENDER_HOST: &[Viewpoint] = &[Viewpoint::BothEnds, Viewpoint::Sender, Viewpoint::WatchSender];
/// Needs CPU times of the receiving host.
const RECEIVER_HOST: &[Viewpoint] = &[Viewpoint::BothEnds, Viewpoint::Receiver, Viewpoint::WatchReceiver];
/// Needs the reports of both ends.
const TWO_ENDS: &[Viewpoint] = &[Viewpoint::Lab, Viewpoint::BothEnds];
/// Needs readings of one host; the lab's hosts have none.
const HOST: &[Viewpoint] =
    &[Viewpoint::BothEnds, Viewpoint::Sender, Viewpoint::Receiver, Viewpoint::WatchSender, Viewpoint::WatchReceiver];
/// Needs readings of the process or its host that only `watch` takes.
const WATCH: &[Viewpoint] = &[Viewpoint::WatchSender, Viewpoint::WatchReceiver];

/// A row of the table.
struct Row {
    name: &'static str,
    phrase: &'static str,
    place: CausePlace,
    visible: &'static [Viewpoint],
    settings: &'static [&'static str],
    changes: &'static [TuneupKind],
}

macro_rules! causes {
    ($(
        $(#[$doc:meta])+
        $variant:ident {
            name: $name:tt, phrase: $phrase:literal, place: $place:ident, visible: $visible:expr,
            $(settings: [$($code:literal),+],)?
            $(changes: [$($kind:expr),+],)?
        }
    )+) => {
        /// Cause that limits a flow. Each verdict has exactly one, which may be `undetermined`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Cause {
            $($(#[$doc])+ #[serde(rename = $name)] $variant,)+
        }

        /// One row for each cause, in the order of the enum.
        const ROWS: &[Row] = &[$(Row {
            name: $name,
            phrase: $phrase,
            place: CausePlace::$place,
            visible: $visible,
            settings: &[$($($code),+)?],
            changes: &[$($($kind),+)?],
        },)+];

        impl Cause {
            /// All causes, `undetermined` last.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];
        }
    };
}

impl Cause {
    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Returns the cause with this JSON name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|cause| cause.name() == name)
    }

    /// Name in documents (`request-gaps`).
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Name in texts (`request gaps`).
    pub fn phrase(self) -> &'static str {
        self.row().phrase
    }

    /// Where the limit is.
    pub fn place(self) -> CausePlace {
        self.row().place
    }

    /// Viewpoints from which it can be named.
    pub fn visible(self) -> &'static [Viewpoint] {
        self.row().visible
    }

    /// Host settings that affect it, as codes of their checks, on the host at its [`place`](Self::place) (the sender
    /// for a cause in the network). Empty if no host setting helps.
    pub fn settings(self) -> &'static [&'static str] {
        self.row().settings
    }

    /// Categories of changes that `tuneup` tries first, the most direct one first.
    pub fn changes(self) -> &'static [TuneupKind] {
        self.row().changes
    }
}

causes! {
    /// The receive window: the receiver's buffer is too small for the path.
    ReceiverWindow {
        name: "receiver-window", phrase: "receiver window", place: Receiver, visible: SENDER_TCP_OR_ARRIVALS,
        settings: ["BUF-001", "BUF-003", "BUF-004", "BUF-006", "BUF-009", "TCP-003"],
        changes: [Window, Buffers, Streams],
    }
    /// The receiving application does not read fast enough.
    SlowReader {
        name: "slow-reader", phrase: "slow reader", place: Receiver, visible: &Viewpoint::ALL,
        changes: [Placement, Writes, Streams],
    }
    /// UDP: the receiving socket's buffer is too small for the bursts that arrive.
    ReceiveBuffer { name: "receive-buffer", phrase: "receive buffer", place: Receiver, visible: TWO_ENDS, }
    /// The send buffer is too small for the path.
    SendBuffer {
        name: "send-buffer", phrase: "send buffer", place: Sender, visible: SENDER_TCP,
        settings: ["BUF-002", "BUF-004", "BUF-006"],
        changes: [Window, Buffers, Writes],
    }
    /// The sending application does not offer enough data.
    Application {
        name: "application", phrase: "application", place: Sender, visible: &Viewpoint::ALL,
        changes: [Writes, Placement, ZeroCopy, Streams],
    }
    /// The requested pacing rate is reached.
    Pacing {
        name: "pacing", phrase: "pacing", place: Sender, visible: SENDER_TCP_OR_OPTIONS,
        changes: [Pace],
    }
    /// BBR paces below what a short path and the hosts could carry.
    BbrPacing {
        name: "bbr-pacing", phrase: "BBR pacing", place: Sender, visible: SENDER_HOST,
        changes: [Congestion],
    }
    /// The sender's CPU is fully used.
    SenderCpu {
        name: "sender-cpu", phrase: "sender CPU", place: Sender, visible: SENDER_HOST,
        settings: ["CPU-001", "CPU-003", "CPU-004", "NIC-007", "NIC-016"],
        changes: [Writes, Placement, ZeroCopy, Offloads, Streams],
    }
    /// The receiver's CPU is fully used.
    ReceiverCpu {
        name: "receiver-cpu", phrase: "receiver CPU", place: Receiver, visible: RECEIVER_HOST,
        settings: ["CPU-001", "CPU-003", "CPU-004", "NIC-008", "NIC-010", "IRQ-001", "IRQ-002", "IRQ-007", "IRQ-008"],
        changes: [Placement, Writes, Offloads, Streams],
    }
    /// The interface is used at its full rate.
    LinkRate { name: "link-rate", phrase: "link rate", place: EitherHost, visible: &Viewpoint::ALL, }
    /// The network loses packets because a queue overflows.
    NetworkCongestion {
        name: "network-congestion", phrase: "network congestion", place: Network, visible: SENDER_TCP_OR_ARRIVALS,
        settings: ["TCP-007", "TCP-008", "QDISC-001", "QDISC-004", "QDISC-005"],
        changes: [Congestion, Qdisc, Pace, Streams],
    }
    /// The network loses packets independently of queues: a bad link, random loss.
    NetworkLoss {
        name: "network-loss", phrase: "network loss", place: Network, visible: SENDER_TCP_OR_ARRIVALS,
        settings: ["TCP-001", "TCP-002", "TCP-005", "TCP-006", "TCP-007", "TCP-008", "QDISC-001"],
        changes: [Congestion, Qdisc, Pace, Streams],
    }
    /// The congestion window fills the path without loss: the path is full, or the window is still growing.
    NetworkPath {
        name: "network-path", phrase: "network path", place: Network, visible: SENDER_TCP_OR_ARRIVALS,
        changes: [Congestion, Qdisc, Pace, Streams],
    }
    /// The congestion window was still growing at the end of the test.
    WindowGrowth {
        name: "window-growth", phrase: "window growth", place: Network, visible: SENDER_TCP,
        changes: [Congestion, Streams],
    }
    /// Slow start overflowed a queue; the congestion window was still growing when the run ended.
    SlowStartOvershoot {
        name: "slow-start-overshoot", phrase: "slow-start overshoot", place: Network,
        visible: &[Viewpoint::Lab, Viewpoint::BothEnds, Viewpoint::Sender],
        settings: ["TCP-007", "TCP-008", "QDISC-001", "QDISC-004", "QDISC-005"],
        changes: [Congestion, Qdisc, Pace, Streams],
    }
    /// A queue far smaller than the bandwidth-delay product overflows although the link has spare capacity.
    ShallowBuffer {
        name: "shallow-buffer", phrase: "shallow buffer", place: Network, visible: SENDER_TCP,
        settings: ["TCP-007", "TCP-008", "QDISC-001", "QDISC-004", "QDISC-005"],
        changes: [Pace, Qdisc, Congestion, Streams],
    }
    /// A policer drops traffic above its rate instead of queueing it.
    Policer {
        name: "policer", phrase: "policer", place: Network, visible: &[Viewpoint::Lab],
        settings: ["TCP-007", "TCP-008", "QDISC-001", "QDISC-004", "QDISC-005"],
        changes: [Pace, Qdisc, Congestion, Streams],
    }
    /// Reordering in the network makes TCP retransmit packets that were not lost.
    Reordering {
        name: "reordering", phrase: "reordering", place: Network, visible: SENDER_TCP,
        settings: ["TCP-001", "TCP-002", "TCP-005", "OLD-018"],
        changes: [Congestion, Qdisc, Pace, Streams],
    }
    /// The receiving host drops packets before they reach TCP (backlog, ring, filter).
    ReceiverHostDrops {
        name: "receiver-host-drops", phrase: "receiver host drops", place: Receiver,
        visible: &[Viewpoint::Lab, Viewpoint::BothEnds, Viewpoint::WatchReceiver],
        settings: ["NIC-006", "NIC-014", "IRQ-002", "IRQ-004", "IRQ-013", "IRQ-014", "TCP-019", "TCP-020"],
        changes: [Pace, Placement, Qdisc],
    }
    /// The reverse path is congested or loses ACKs.
    AckPath {
        name: "ack-path", phrase: "ACK path", place: Network, visible: TWO_ENDS,
        changes: [Congestion, Qdisc, Pace, Streams],
    }
    /// The sender's own queueing discipline limits the rate or drops packets.
    LocalQdisc {
        name: "local-qdisc", phrase: "local qdisc", place: Sender, visible: SENDER_TCP,
        settings: ["QDISC-001", "QDISC-003", "QDISC-005", "QDISC-006", "QDISC-008"],
        changes: [Qdisc, Pace, Streams],
    }
    /// Packets of the path MTU in use are lost without an ICMP message (PMTU black hole).
    PathMtu {
        name: "path-mtu", phrase: "path MTU", place: Network, visible: SENDER_TCP,
        settings: ["TCP-010", "TCP-016", "NIC-005"],
        changes: [Mss],
    }
    /// Nothing is delivered any more: no ACK arrives from some time on.
    PathDown {
        name: "path-down", phrase: "path down", place: Network,
        visible: &[Viewpoint::BothEnds, Viewpoint::Sender, Viewpoint::Receiver, Viewpoint::WatchSender],
    }
    /// Request/response: the round-trip time limits the rate.
    RoundTrip { name: "round-trip", phrase: "round trip", place: Network, visible: &Viewpoint::ALL, }
    /// A process waits for storage: it is blocked in file I/O.
    Storage { name: "storage", phrase: "storage", place: EitherHost, visible: WATCH, }
    /// The connection is idle between requests.
    RequestGaps { name: "request-gaps", phrase: "request gaps", place: Receiver, visible: WATCH, }
    /// The CPU quota of the process's control group is used up.
    CpuQuota { name: "cpu-quota", phrase: "CPU quota", place: EitherHost, visible: HOST, }
    /// The packet filter of a host (nft, conntrack) drops packets.
    Firewall { name: "firewall", phrase: "firewall", place: EitherHost, visible: HOST, }
    /// The evidence does not support a single cause.
    Undetermined { name: "undetermined", phrase: "undetermined", place: Unknown, visible: &Viewpoint::ALL, }
}
