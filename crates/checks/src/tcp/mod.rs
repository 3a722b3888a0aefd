//! Checks of TCP and UDP behaviour, one per file.

use crate::advice;
use crate::check::{Check, Group, Outcome};
use crate::view::View;

mod backlog_drops;
mod bbr_trial;
mod congestion_control;
mod congestion_control_missing;
mod dsack;
mod duplicates_at_the_peer;
mod ecn;
mod idle_restart;
mod listen_overflows;
mod loss_recovery;
mod memory_pressure;
mod metrics_cache;
mod mtu_probing;
mod pacing_ratios;
mod path_mtu_discovery;
mod receive_queue_drops;
mod retransmission_timeout;
mod retransmissions;
mod sack;
mod small_queue_limit;
mod tail_loss_probe;
mod timeouts;
mod timestamps;
mod udp_receive_errors;
mod unsent_limit;
mod window_scaling;
mod zero_windows;

const GROUP: Group = Group::Tcp;

/// Checks of this group, by code.
pub(crate) static CHECKS: &[&Check] = &[
    &sack::CHECK,
    &timestamps::CHECK,
    &window_scaling::CHECK,
    &dsack::CHECK,
    &loss_recovery::CHECK,
    &tail_loss_probe::CHECK,
    &congestion_control::CHECK,
    &bbr_trial::CHECK,
    &congestion_control_missing::CHECK,
    &mtu_probing::CHECK,
    &metrics_cache::CHECK,
    &idle_restart::CHECK,
    &unsent_limit::CHECK,
    &small_queue_limit::CHECK,
    &ecn::CHECK,
    &path_mtu_discovery::CHECK,
    &retransmission_timeout::CHECK,
    &retransmissions::CHECK,
    &receive_queue_drops::CHECK,
    &backlog_drops::CHECK,
    &timeouts::CHECK,
    &memory_pressure::CHECK,
    &listen_overflows::CHECK,
    &udp_receive_errors::CHECK,
    &duplicates_at_the_peer::CHECK,
    &zero_windows::CHECK,
    &pacing_ratios::CHECK,
];

/// Checks a switch that should be on; any value except 0 is on.
fn on(view: &View<'_>, name: &str, why: &str) -> Outcome {
    let value = known!(view.sysctl(name));
    if value != "0" {
        return Outcome::pass("on");
    }
    Outcome::found(advice::sysctl(name, value, 1, why))
}
