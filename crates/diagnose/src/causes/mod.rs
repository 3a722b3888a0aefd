//! One cause, one file: each weighs its own readings of a [`Flow`] and says whether it holds.

mod application;
mod cpu;
mod link_rate;
mod network_congestion;
mod network_loss;
mod network_path;
mod pacing;
mod receiver_cpu;
mod receiver_window;
mod round_trip;
mod send_buffer;
mod sender_cpu;
mod slow_reader;

use landspeed_model::Cause;

use crate::finding::Finding;
use crate::flow::Flow;

/// Every cause in the order of the procedure: rates somebody asked for, the hosts' processors and interfaces (the
/// veto), the receiver, the send buffer, the application, the network.
pub(crate) fn evaluate_all(flow: &Flow) -> Vec<Finding> {
    [
        pacing::evaluate,
        round_trip::evaluate,
        receiver_cpu::evaluate,
        sender_cpu::evaluate,
        link_rate::evaluate,
        slow_reader::evaluate,
        receiver_window::evaluate,
        send_buffer::evaluate,
        application::evaluate,
        network_congestion::evaluate,
        network_loss::evaluate,
        network_path::evaluate,
    ]
    .into_iter()
    .map(|evaluate| evaluate(flow))
    .collect()
}

/// Whether `cause` brings about what `other` sees, so that both holding is no contradiction.
pub(crate) fn explains(cause: Cause, other: Cause) -> bool {
    matches!(
        (cause, other),
        // A receiver without processor time reads late, closes its window and drops packets.
        (
            Cause::ReceiverCpu,
            Cause::ReceiverWindow | Cause::SlowReader | Cause::NetworkLoss | Cause::NetworkCongestion
        )
        // A sender without processor time leaves its queue empty.
        | (Cause::SenderCpu, Cause::Application)
        // A full interface is a full path.
        | (Cause::LinkRate, Cause::NetworkPath | Cause::NetworkCongestion | Cause::NetworkLoss)
        // BBR takes the rate a reader keeps to for the path's.
        | (Cause::SlowReader, Cause::NetworkPath)
        // A sender held to a rate leaves its window to grow.
        | (Cause::Pacing, Cause::NetworkPath | Cause::LinkRate)
    )
}
