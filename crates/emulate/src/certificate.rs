//! The JSON document (certificate) of an emulation.

use landspeed_emulation::{DirectionPlan, HopCounters, LoadedPath};
use landspeed_model::{
    BuildInfo, DelayError, DelaySummary, EMULATE_SCHEMA, EmulateAsked, EmulateCpu, EmulateDatapath, EmulateDelivered,
    EmulateDirections, EmulateDocument, EmulateEnd, EmulateHop, EmulatePlacement, EmulateStore, EmulatedPath,
    InvalidReason, Warning,
};
use landspeed_stats::LatencyHistogram;

use crate::carry::{EarlyEnd, EmulationOutcome};
use crate::direction::DirectionOutcome;

/// Parts of the document that the caller supplies.
#[derive(Debug, Clone)]
pub struct CertificateInfo {
    /// Command line of landspeed.
    pub command: Vec<String>,
    /// Version of landspeed.
    pub version: String,
    /// Placement of the path.
    pub placement: EmulatePlacement,
    /// Reason for the end, unless the emulation ended by itself.
    pub ended: EmulateEnd,
    /// Exit status of the command, if there was one.
    pub exit_status: Option<i32>,
}

/// Builds the document of an emulation.
pub fn certificate(path: &LoadedPath, carried: EmulationOutcome, about: CertificateInfo) -> EmulateDocument {
    let EmulationOutcome {
        datapath,
        start_unix_ns,
        duration_ns,
        directions,
        errors,
        invalid,
        seconds,
        work_share,
        work_share_max,
        early_end,
    } = carried;
    let ended = match early_end {
        Some(EarlyEnd::InterfaceLost) => EmulateEnd::InterfaceGone,
        Some(EarlyEnd::Loop) => EmulateEnd::Loop,
        None => about.ended,
    };
    let is_userspace = datapath == EmulateDatapath::Userspace;
    let quantile = |p| errors.as_ref().map(|errors| errors.quantile(p).unwrap_or(0));
    let mut warnings: Vec<Warning> =
        path.warnings.iter().map(|message| Warning { code: "path".to_owned(), message: message.clone() }).collect();
    if invalid.iter().any(|second| second.reasons.contains(&InvalidReason::SuperPackets)) {
        warnings.push(Warning {
            code: "super-packets".to_owned(),
            message: "hosts beside the path sent super-packets, which were refused; on their interfaces: `ethtool -K IF tso off gso \
                      off gro off`"
                .to_owned(),
        });
    }
    let store = EmulateStore {
        reserved_bytes: directions.iter().map(|direction| direction.store_capacity).sum(),
        used_bytes_max: directions.iter().map(|direction| direction.store_used_max).sum(),
    };
    let [forward, reverse] = directions;
    EmulateDocument {
        schema: EMULATE_SCHEMA.to_owned(),
        landspeed: BuildInfo { version: about.version, server_version: None },
        command: about.command,
        path: emulated(path),
        datapath,
        placement: about.placement,
        start_unix_ns,
        duration_ns,
        ended,
        exit_status: about.exit_status,
        asked: EmulateDirections { forward: asked(&path.forward), reverse: asked(&path.reverse) },
        delivered: EmulateDirections {
            forward: delivered(&forward, duration_ns),
            reverse: delivered(&reverse, duration_ns),
        },
        delay_error_ns: DelayError {
            p50: quantile(0.5),
            p99: quantile(0.99),
            max: errors.as_ref().map(|errors| errors.max_ns().unwrap_or(0)),
            packets: errors.as_ref().map(LatencyHistogram::count),
        },
        invalid,
        seconds,
        hops: EmulateDirections {
            forward: hops(&path.forward, &forward, duration_ns),
            reverse: hops(&path.reverse, &reverse, duration_ns),
        },
        store: is_userspace.then_some(store),
        cpu: is_userspace.then_some(EmulateCpu { work_share, work_share_max, headroom: 1.0 - work_share_max }),
        warnings,
    }
}

/// Summary of the path: name, seed, MTU and number of links.
pub(crate) fn emulated(path: &LoadedPath) -> EmulatedPath {
    EmulatedPath {
        name: path.path.name.clone(),
        seed: path.path.seed,
        mtu_bytes: path.forward.frame_bytes() - landspeed_emulation::frame::ETHERNET_HEADER,
        links: path.forward.links() as u32,
    }
}

fn asked(plan: &DirectionPlan) -> EmulateAsked {
    EmulateAsked { rate_bps: plan.rate_bps(), rate_varies: plan.rate_varies(), delay_ns: plan.delay_ns() }
}

fn delivered(outcome: &DirectionOutcome, duration_ns: u64) -> EmulateDelivered {
    let counters = outcome.counters;
    let framed = counters.delivered_bytes + counters.delivered * outcome.framing_bytes;
    EmulateDelivered {
        offered_packets: counters.offered,
        offered_bytes: counters.offered_bytes,
        delivered_packets: counters.delivered,
        delivered_bytes: counters.delivered_bytes,
        dropped_packets: counters.dropped,
        duplicated_packets: counters.duplicated,
        reordered_packets: outcome.counts_reordered.then_some(counters.reordered),
        inside_packets: counters.in_flight,
        unhandled_packets: outcome.unhandled,
        rate_bps: (u128::from(framed) * 8_000_000_000 / u128::from(duration_ns.max(1))) as u64,
        peak_rate_bps: outcome.peak_bps,
        delay_ns: summary(&outcome.delays),
    }
}

fn summary(delays: &LatencyHistogram) -> Option<DelaySummary> {
    Some(DelaySummary { min: delays.min_ns()?, p50: delays.p50()?, p99: delays.p99()?, max: delays.max_ns()? })
}

fn hops(plan: &DirectionPlan, outcome: &DirectionOutcome, duration_ns: u64) -> Vec<EmulateHop> {
    let hop = |(queue, counters): (&str, &HopCounters)| EmulateHop {
        queue: queue.to_owned(),
        arrived_packets: counters.arrived,
        policed_packets: counters.policed,
        queue_full_packets: counters.queue_full,
        aqm_packets: counters.aqm,
        marked_packets: counters.marked,
        sent_packets: counters.sent,
        lost_packets: counters.lost,
        down_packets: counters.down,
        duplicated_packets: counters.duplicated,
        queue_mean_bytes: (counters.queue_byte_ns / u128::from(duration_ns.max(1))) as u64,
        queue_max_bytes: counters.queue_bytes_max,
        queue_max_packets: counters.queue_packets_max,
    };
    plan.queues().zip(&outcome.hops).map(hop).collect()
}
