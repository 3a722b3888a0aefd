//! Queueing disciplines: from the plan to the kernel's settings.

use landspeed_netlink::configure::{
    self, Codel, Discipline as Qdisc, Fq, FqCodel, Loss, Netem, NetemRate, Pie, Probability, Red, Tbf,
};
use landspeed_netlink::{self as netlink, Netlink};

use super::network::error_text;
use crate::plan::{Discipline, EgressKind, Impairments, PlannedLoss, Port};
use crate::scenario::ETHERNET_HEADER;
use crate::scenario::QueueKind;

/// Limit of a wire's netem, packets. It holds the packets in flight, and none may be dropped by the limit.
pub(super) const WIRE_LIMIT: u32 = u32::MAX / 2;
/// Rate of the loopback interface of hosts with programs, bytes/s: 100 Gb/s.
const LOOPBACK_BYTES_PER_S: u64 = 12_500_000_000;
/// Burst of that interface, bytes: more than one super-packet.
const LOOPBACK_BURST_BYTES: u32 = 1 << 20;

/// Installs the qdiscs of a port.
pub fn install(socket: &mut Netlink, interface: u32, port: &Port) -> Result<(), String> {
    let root = netlink::Qdisc::ROOT;
    let overhead = u16::try_from(port.egress.overhead).unwrap_or(0);
    match &port.egress.kind {
        EgressKind::Shaped { rate_bps, counts_overhead, burst_bytes, discipline } => {
            let bucket = Tbf {
                rate_bytes_per_s: rate_bps / 8,
                burst_bytes: *burst_bytes,
                limit_bytes: u32::MAX / 2,
                overhead_bytes: if *counts_overhead { overhead } else { 0 },
            };
            let major = configure::handle(1, 0);
            socket.add_qdisc(interface, root, major, &Qdisc::Tbf(bucket)).map_err(error_text)?;
            let inside = configure::handle(1, 1);
            // The token bucket creates a default queue, which this replaces.
            socket
                .replace_qdisc(interface, inside, configure::handle(2, 0), &inner(port, discipline))
                .map_err(error_text)
        }
        EgressKind::Carried => Ok(()),
        EgressKind::Wire(impairments) => {
            socket.add_qdisc(interface, root, configure::handle(1, 0), &wire(port, impairments)).map_err(error_text)
        }
    }
}

/// Limits a loopback interface: traffic that nothing limits takes no virtual time, and would never end.
pub fn limit_loopback(socket: &mut Netlink, interface: u32) -> Result<(), String> {
    let bucket = Tbf {
        rate_bytes_per_s: LOOPBACK_BYTES_PER_S,
        burst_bytes: LOOPBACK_BURST_BYTES,
        limit_bytes: u32::MAX / 2,
        overhead_bytes: 0,
    };
    let major = configure::handle(1, 0);
    socket.add_qdisc(interface, netlink::Qdisc::ROOT, major, &Qdisc::Tbf(bucket)).map_err(error_text)
}

fn wire(port: &Port, impairments: &Impairments) -> Qdisc {
    let loss = match impairments.loss {
        PlannedLoss::None | PlannedLoss::Every(_) | PlannedLoss::Packets(_) | PlannedLoss::LongerThan(_) => {
            Loss::None
        }
        PlannedLoss::Random(p) => Loss::Random(Probability::new(p)),
        PlannedLoss::GilbertElliott(p, r, bad, good) => Loss::GilbertElliott {
            failure: Probability::new(p),
            recovery: Probability::new(r),
            loss_in_bad: Probability::new(bad),
            loss_in_good: Probability::new(good),
        },
    };
    Qdisc::Netem(Netem {
        limit_packets: WIRE_LIMIT,
        delay_ns: impairments.delay_ns,
        jitter_ns: impairments.jitter_ns,
        slot_ns: impairments.slot_ns,
        normal_jitter: impairments.normal,
        loss,
        duplicate: Probability::new(impairments.duplicate),
        // netem's reorder probability is the share that is NOT delayed.
        reorder: Probability::new(impairments.reorder),
        rate: Some(NetemRate { bytes_per_s: port.egress.rate_bps / 8, packet_overhead_bytes: port.egress.overhead }),
        seed: Some(impairments.seed),
    })
}

fn inner(port: &Port, d: &Discipline) -> Qdisc {
    let frame = port.mtu + ETHERNET_HEADER;
    let micros = |ns: Option<u64>| ns.map(|ns| u32::try_from(ns / 1000).unwrap_or(u32::MAX));
    let codel = Codel {
        limit_packets: d.limit_packets,
        target_us: micros(d.target_ns),
        interval_us: micros(d.interval_ns),
        ecn: d.ecn,
        ce_threshold_us: None,
    };
    match d.kind {
        QueueKind::Bfifo => Qdisc::Bfifo { limit_bytes: d.limit_bytes.unwrap_or(1_000_000) },
        // With one class of traffic the three bands are one queue of txqueuelen packets.
        QueueKind::Pfifo | QueueKind::PfifoFast => Qdisc::Pfifo { limit_packets: d.limit_packets.unwrap_or(1000) },
        QueueKind::Red => {
            let limit_bytes = d.limit_bytes.unwrap_or(1_000_000);
            let (min_bytes, max_bytes) = d.thresholds.unwrap_or((limit_bytes / 12, limit_bytes / 4));
            Qdisc::Red(Red {
                limit_bytes,
                min_bytes,
                max_bytes,
                probability: Probability::new(d.probability.unwrap_or(0.02)),
                // A link's largest frame, the burst that tc-red(8) recommends, and the link's rate.
                average_packet_bytes: frame,
                burst_packets: (min_bytes.saturating_mul(2).saturating_add(max_bytes)).div_ceil(3 * frame),
                bandwidth_bytes_per_s: port.egress.rate_bps / 8,
                ecn: d.ecn.unwrap_or(false),
            })
        }
        QueueKind::Codel => Qdisc::Codel(codel),
        QueueKind::FqCodel => Qdisc::FqCodel(FqCodel { codel, ..FqCodel::default() }),
        QueueKind::Cake => Qdisc::Cake { rtt_us: micros(d.interval_ns) },
        QueueKind::Pie => {
            Qdisc::Pie(Pie { limit_packets: d.limit_packets, target_us: micros(d.target_ns), ecn: d.ecn })
        }
        QueueKind::Fq => Qdisc::Fq(Fq {
            limit_packets: d.limit_packets,
            flow_limit_packets: d.flow_packets,
            pacing: d.pacing,
            flow_max_rate_bytes_per_s: d.max_rate_bps.map(|bps| bps / 8),
            ..Fq::default()
        }),
        QueueKind::Sfq => Qdisc::Sfq { limit_packets: d.limit_packets.unwrap_or(1000) },
        QueueKind::Netem => Qdisc::Netem(Netem {
            limit_packets: d.limit_packets.unwrap_or(1000),
            delay_ns: d.delay_ns.unwrap_or(0),
            loss: d.loss.filter(|p| *p > 0.0).map_or(Loss::None, |p| Loss::Random(Probability::new(p))),
            seed: Some(d.seed),
            ..Netem::default()
        }),
    }
}
