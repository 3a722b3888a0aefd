//! `cake`.

use super::super::super::Request;

// linux/pkt_sched.h
const TCA_CAKE_BASE_RATE64: u16 = 2;
const TCA_CAKE_DIFFSERV_MODE: u16 = 3;
const TCA_CAKE_FLOW_MODE: u16 = 5;
const TCA_CAKE_OVERHEAD: u16 = 6;
const TCA_CAKE_RTT: u16 = 7;
const TCA_CAKE_TARGET: u16 = 8;
const TCA_CAKE_MEMORY: u16 = 10;
const TCA_CAKE_MPU: u16 = 14;
const TCA_CAKE_INGRESS: u16 = 15;
const TCA_CAKE_ACK_FILTER: u16 = 16;
const TCA_CAKE_SPLIT_GSO: u16 = 17;

/// Common applications kept enhanced: a shaper, flow and host fairness, and AQM (COBALT) in one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cake {
    /// Rate, bytes/s; 0, the default, is unlimited.
    pub rate_bytes_per_s: Option<u64>,
    /// Round trip to be tuned for, µs; 100,000.
    pub rtt_us: Option<u32>,
    /// Standing delay aimed at, µs; 5000. `tc` sets a twentieth of the round trip, and so should you.
    pub target_us: Option<u32>,
    /// Between whom it is fair.
    pub flows: Option<CakeFlows>,
    /// Its classes of traffic.
    pub diffserv: Option<CakeDiffserv>,
    /// Counted on top of each IP packet, bytes, −64 to 256. `None` counts what the link counts.
    pub overhead_bytes: Option<i32>,
    /// Each packet counts for at least this, bytes.
    pub minimum_packet_bytes: Option<u32>,
    /// Most memory held, bytes of kernel buffers; four times rate × round trip, at least 4 MiB, and at most (as well as
    /// without a rate) 10,240 times the MTU.
    pub memory_limit_bytes: Option<u32>,
    /// Count dropped packets against the rate: for the downstream end of a bottleneck.
    pub ingress: Option<bool>,
    /// Drop pure acknowledgements that a later one makes needless.
    pub ack_filter: Option<bool>,
    /// Cut super-packets up; on.
    pub split_gso: Option<bool>,
}

/// Between whom a [`Cake`] is fair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CakeFlows {
    /// One queue.
    Blind = 0,
    /// Source addresses.
    SourceHosts = 1,
    /// Destination addresses.
    DestinationHosts = 2,
    /// Pairs of addresses.
    Hosts = 3,
    /// Flows.
    Flows = 4,
    /// Source addresses, then their flows.
    DualSource = 5,
    /// Destination addresses, then their flows.
    DualDestination = 6,
    /// Source and destination addresses, then their flows: the default.
    Triple = 7,
}

/// Classes of traffic ("tins") of a [`Cake`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CakeDiffserv {
    /// Three by DSCP: the default.
    Three = 0,
    /// Four by DSCP.
    Four = 1,
    /// Eight by DSCP.
    Eight = 2,
    /// One.
    BestEffort = 3,
    /// Eight by IP precedence.
    Precedence = 4,
}

impl Cake {
    pub(super) fn encode(&self, r: &mut Request) {
        if let Some(rate) = self.rate_bytes_per_s {
            r.u64(TCA_CAKE_BASE_RATE64, rate);
        }
        r.maybe_u32(TCA_CAKE_DIFFSERV_MODE, self.diffserv.map(|mode| mode as u32));
        r.maybe_u32(TCA_CAKE_FLOW_MODE, self.flows.map(|mode| mode as u32));
        r.maybe_u32(TCA_CAKE_OVERHEAD, self.overhead_bytes.map(|bytes| bytes as u32));
        r.maybe_u32(TCA_CAKE_MPU, self.minimum_packet_bytes);
        r.maybe_u32(TCA_CAKE_RTT, self.rtt_us);
        r.maybe_u32(TCA_CAKE_TARGET, self.target_us);
        r.maybe_u32(TCA_CAKE_MEMORY, self.memory_limit_bytes);
        r.maybe_bool(TCA_CAKE_INGRESS, self.ingress);
        r.maybe_bool(TCA_CAKE_ACK_FILTER, self.ack_filter);
        r.maybe_bool(TCA_CAKE_SPLIT_GSO, self.split_gso);
    }
}
