//! The causes: each evaluates its own readings of a [`Flow`] and returns a finding. The network causes
//! exclude each other and share a module.

mod application;
mod bbr_pacing;
mod cpu;
mod cpu_quota;
mod datagrams;
mod firewall;
mod link_rate;
mod network;
mod pacing;
mod path_down;
mod receive_buffer;
mod receiver_cpu;
mod receiver_drops;
mod receiver_window;
mod request_gaps;
mod round_trip;
mod send_buffer;
mod sender_cpu;
mod slow_reader;
mod storage;

use landspeed_model::Cause;

pub(crate) use cpu_quota::{quota_of, throttled_share};
pub(crate) use path_down::evaluate as path_down;

use crate::finding::Finding;
use crate::flow::Flow;

/// Evaluates every cause, in the order of the procedure: requested rates, the hosts' CPUs and interfaces
/// (the veto), the receiver, the send buffer, the application, the network.
pub(crate) fn evaluate_all(flow: &Flow) -> Vec<Finding> {
    let hosts = [
        path_down::evaluate,
        pacing::evaluate,
        bbr_pacing::evaluate,
        round_trip::evaluate,
        cpu_quota::evaluate,
        receiver_cpu::evaluate,
        sender_cpu::evaluate,
        link_rate::evaluate,
        storage::evaluate,
        request_gaps::evaluate,
        slow_reader::evaluate,
        receive_buffer::evaluate,
        receiver_window::evaluate,
        send_buffer::evaluate,
        application::evaluate,
        firewall::evaluate,
    ];
    let mut findings: Vec<Finding> = hosts.into_iter().map(|evaluate| evaluate(flow)).collect();
    findings.extend(network::evaluate_all(flow));
    findings
}

/// Whether `cause` produces the symptoms of `other`, so that they do not contradict each other.
pub(crate) fn explains(cause: Cause, other: Cause) -> bool {
    matches!(
        (cause, other),
        // A receiver without CPU time reads late, its window closes, frames wait in its ring, and it drops packets.
        (
            Cause::ReceiverCpu,
            Cause::ReceiverWindow
                | Cause::NetworkPath
                | Cause::SlowReader
                | Cause::ReceiveBuffer
                | Cause::NetworkLoss
                | Cause::NetworkCongestion
                | Cause::ShallowBuffer
                | Cause::ReceiverHostDrops
        )
        // Packets that are paced one at a time cost CPU time, and the rate looks like the path's.
        | (
            Cause::BbrPacing,
            Cause::SenderCpu | Cause::ReceiverCpu | Cause::NetworkPath | Cause::Reordering | Cause::WindowGrowth
        )
        // A sender without CPU time cannot fill its send queue.
        | (Cause::SenderCpu, Cause::Application)
        // A process that is throttled or waits for storage looks like a slow application.
        | (
            Cause::CpuQuota,
            Cause::SenderCpu | Cause::ReceiverCpu | Cause::Application | Cause::SlowReader | Cause::ReceiverWindow
        )
        | (Cause::Storage, Cause::Application | Cause::SlowReader | Cause::ReceiverWindow)
        // Where nothing arrives, every other reading follows from it.
        | (Cause::PathDown, _)
        // Waiting for a round trip, neither end has anything to send.
        | (Cause::RoundTrip, Cause::Application | Cause::RequestGaps | Cause::SendBuffer)
        // Between two requests the answering application has no data to send.
        | (Cause::RequestGaps, Cause::Application | Cause::Storage)
        // TCP sees packets dropped by a filter as lost on the path.
        | (
            Cause::Firewall,
            Cause::NetworkLoss
                | Cause::NetworkCongestion
                | Cause::ShallowBuffer
                | Cause::Policer
                | Cause::NetworkPath
                | Cause::WindowGrowth
                | Cause::ReceiverHostDrops
                | Cause::LocalQdisc
        )
        // A full interface makes the path full.
        | (
            Cause::LinkRate,
            Cause::NetworkPath | Cause::NetworkCongestion | Cause::NetworkLoss | Cause::ShallowBuffer | Cause::LocalQdisc
        )
        // BBR takes the reader's rate for the bandwidth of the path.
        | (Cause::SlowReader, Cause::NetworkPath | Cause::WindowGrowth)
        // A paced sender still lets its congestion window grow.
        | (Cause::Pacing, Cause::NetworkPath | Cause::WindowGrowth | Cause::LinkRate)
    )
}

#[cfg(test)]
mod tests {
    use landspeed_model::{Direction, RunDocument};

    use super::*;

    #[test]
    fn every_cause_is_evaluated_once() {
        let run = include_str!("../../fixtures/real/send-buffer-bbr.json");
        let run: RunDocument = serde_json::from_str(run).expect("a document");
        let findings = evaluate_all(&Flow::new(&run, Direction::Upload));
        for cause in Cause::ALL {
            let count = findings.iter().filter(|finding| finding.cause == *cause).count();
            assert_eq!(count, usize::from(*cause != Cause::Undetermined), "{cause:?}");
        }
    }
}
