//! Checks of settings in tuning guides that no longer help, or never did, one per file.

use landspeed_model::Severity;

use crate::advice::{self, origin};
use crate::check::{Check, Effect, Group, Outcome, Problem};
use crate::view::View;

mod adv_win_scale;
mod application_window;
mod autocorking;
mod busy_polling;
mod forward_acknowledgement;
mod frto;
mod input_backlog;
mod low_latency;
mod maxima_below_default;
mod metrics_cache_in_production;
mod old_congestion_control;
mod removed_settings;
mod reordering;
mod softirq_budget;
mod transmit_queue_length;
mod tso_window_divisor;
mod udp_minimum;
mod web_server_advice;

const GROUP: Group = Group::Folklore;

/// Checks of this group, by code.
pub(crate) static CHECKS: &[&Check] = &[
    &adv_win_scale::CHECK,
    &low_latency::CHECK,
    &forward_acknowledgement::CHECK,
    &frto::CHECK,
    &transmit_queue_length::CHECK,
    &input_backlog::CHECK,
    &softirq_budget::CHECK,
    &web_server_advice::CHECK,
    &removed_settings::CHECK,
    &metrics_cache_in_production::CHECK,
    &busy_polling::CHECK,
    &udp_minimum::CHECK,
    &application_window::CHECK,
    &old_congestion_control::CHECK,
    &maxima_below_default::CHECK,
    &tso_window_divisor::CHECK,
    &autocorking::CHECK,
    &reordering::CHECK,
];

/// Checks a sysctl that the kernel ignores since a version; `stock` is its untouched value.
fn ignored(view: &View<'_>, name: &str, stock: u64, (major, minor): (u32, u32), instead: &str) -> Outcome {
    let value = known!(view.sysctl(name));
    if value == stock.to_string() {
        return Outcome::pass(format!("{value}, as the kernel has it"));
    }
    match view.facts.kernel.at_least(major, minor) {
        Some(true) => {}
        Some(false) => return Outcome::not_applicable(format!("before Linux {major}.{minor} it has an effect")),
        None => return Outcome::unknown("the kernel's version is not known"),
    }
    Outcome::found(Problem {
        severity: Some(Severity::Note),
        effect: Effect::arithmetic("None: the kernel ignores it."),
        ..advice::manual_problem(
            format!("{name} = {value}{}", origin(view, name)),
            "remove the line that sets it",
            format!("Ignored since Linux {major}.{minor}. {instead}"),
            format!("sysctl {name}; grep -r {name} /etc/sysctl.conf /etc/sysctl.d"),
        )
    })
}

/// Checks a sysctl that guides change from the kernel default without a gain.
fn changed_without_gain(view: &View<'_>, name: &str, stock: u64, why: &str) -> Outcome {
    let value = known!(view.sysctl_last(name));
    if value == stock {
        return Outcome::pass(format!("{value}, as the kernel has it"));
    }
    Outcome::found(Problem {
        observed: format!("{name} = {value}{}", origin(view, name)),
        recommended: format!("{stock}, the kernel default"),
        ..advice::sysctl(name, value, stock, why)
    })
}
