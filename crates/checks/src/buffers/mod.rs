//! Checks of buffers and memory limits, one per file.

use landspeed_calc::{MAX_SYSCTL_BYTES, MAX_WINDOW_BYTES};
use landspeed_model::{Fact, KernelOption};

use crate::advice;
use crate::check::{Check, Group};
use crate::view::View;

mod buffer_numbers;
mod buffers_beyond_memory;
mod core_defaults;
mod core_maxima;
mod one_flow_ceiling;
mod option_memory;
mod receive_autotuning;
mod receive_buffer;
mod send_buffer;
mod tcp_initial_sizes;
mod tcp_mem_copied;
mod tcp_mem_small;
mod udp_mem_copied;
mod udp_receive_buffer;
mod wan_buffers_on_a_lan;

const GROUP: Group = Group::Buffers;

/// Checks of this group, by code.
pub(crate) static CHECKS: &[&Check] = &[
    &receive_buffer::CHECK,
    &send_buffer::CHECK,
    &one_flow_ceiling::CHECK,
    &core_maxima::CHECK,
    &tcp_mem_copied::CHECK,
    &tcp_mem_small::CHECK,
    &core_defaults::CHECK,
    &tcp_initial_sizes::CHECK,
    &receive_autotuning::CHECK,
    &option_memory::CHECK,
    &buffers_beyond_memory::CHECK,
    &buffer_numbers::CHECK,
    &udp_receive_buffer::CHECK,
    &udp_mem_copied::CHECK,
    &wan_buffers_on_a_lan::CHECK,
];

/// Share of a receive buffer that becomes window at MTU 9000, measured by landspeed on Linux 6.18; the rest is
/// kernel overhead. Linux measures the share per flow since 6.6; before, `tcp_adv_win_scale` = 1 reserved one
/// half.
const USABLE: f64 = 0.67;
const USABLE_BEFORE_6_6: f64 = 0.5;

/// Shares of memory that `tcp_mem` gets by default: minimum, pressure and limit (Linux net/ipv4/tcp.c,
/// tcp_init_mem: 4.68, 6.25 and 9.37 %).
const DEFAULT_TCP_SHARE: [f64; 3] = [0.0468, 0.0625, 0.0937];

/// Returns the share of a receive buffer that becomes window on this kernel.
pub(crate) fn usable(view: &View<'_>) -> f64 {
    if view.facts.kernel.at_least(6, 6) == Some(false) { USABLE_BEFORE_6_6 } else { USABLE }
}

/// Returns the window that one flow needs for the goal, bytes: the BDP, capped at the largest window TCP can
/// advertise.
pub(crate) fn window_bytes(view: &View<'_>) -> Fact<f64> {
    if !view.rtt_s().1 {
        return Fact::Absent("no RTT was given (--rtt): the kernel's defaults are made for a local network".into());
    }
    view.bdp_bytes().map(|bdp| bdp.min(MAX_WINDOW_BYTES))
}

/// Returns the buffer maximum that the goal needs, bytes.
fn buffer_bytes(view: &View<'_>) -> Fact<u64> {
    let rtt_s = view.rtt_s().0;
    view.rate_bps().map(|rate| landspeed_calc::socket_buffer_bytes(rate as f64, rtt_s) as u64)
}

/// Returns the page size, bytes: 4 KiB on x86, else from the kernel's configuration; unknown without that.
fn page_bytes(view: &View<'_>) -> Fact<u64> {
    const SIZES: [(&str, u64); 5] = [
        ("CONFIG_ARM64_4K_PAGES", 4096),
        ("CONFIG_ARM64_16K_PAGES", 16_384),
        ("CONFIG_ARM64_64K_PAGES", 65_536),
        ("CONFIG_PPC_4K_PAGES", 4096),
        ("CONFIG_PPC_64K_PAGES", 65_536),
    ];
    let kernel = &view.facts.kernel;
    if kernel.machine == "x86_64" || kernel.machine == "i686" {
        return Fact::Known(4096);
    }
    let built = SIZES.iter().find(|(option, _)| kernel.option(option) == KernelOption::Built);
    built.map_or_else(
        || Fact::Unknown(format!("the page size of this {} kernel is unknown", kernel.machine)),
        |(_, bytes)| Fact::Known(*bytes),
    )
}

/// Returns the kernel's default `tcp_mem` for this amount of memory, pages.
fn default_tcp_mem(memory_bytes: u64, page_bytes: u64) -> [u64; 3] {
    DEFAULT_TCP_SHARE.map(|share| (memory_bytes as f64 * share) as u64 / page_bytes.max(1))
}

/// Formats three numbers as a sysctl value.
fn triple(numbers: [u64; 3]) -> String {
    numbers.map(|number| number.to_string()).join(" ")
}

/// Defaults of Linux 6.18 on a machine with enough memory, and the initial size above which it counts as
/// raised, bytes.
const KERNEL_DEFAULTS: [(&str, [u64; 3]); 2] =
    [("net.ipv4.tcp_rmem", [4096, 131_072, 33_554_432]), ("net.ipv4.tcp_wmem", [4096, 16_384, 4_194_304])];
const HIGH_INITIAL_BYTES: u64 = 4 << 20;

/// Returns the recommended `tcp_rmem` or `tcp_wmem`: the current minimum and initial size if they are valid,
/// and the current maximum unless the goal needs more. All checks of the three numbers use it, so that their
/// changes agree.
fn desired(view: &View<'_>, name: &str) -> String {
    let stock = KERNEL_DEFAULTS
        .iter()
        .find(|(known, _)| *known == name)
        .map_or([4096, 131_072, 33_554_432], |(_, stock)| *stock);
    let Fact::Known([minimum, initial, maximum]) = view.sysctl_triple(name) else {
        return triple(stock);
    };
    let sane = |number: u64| (1..=MAX_SYSCTL_BYTES as u64).contains(&number);
    let initial =
        if initial > HIGH_INITIAL_BYTES || initial < minimum || !sane(initial) { stock[1] } else { initial };
    let minimum = if sane(minimum) && minimum <= initial { minimum } else { stock[0] };
    let needed = window_bytes(view).known().and_then(|_| buffer_bytes(view).known().copied()).unwrap_or(0);
    let maximum = if maximum < initial || !sane(maximum) { stock[2] } else { maximum };
    let enough = window_bytes(view).known().is_none_or(|window| maximum as f64 * share_of(view, name) >= *window);
    triple([minimum, initial, if enough { maximum } else { needed }.max(initial)])
}

/// Returns whether the goal has an RTT below [`advice::LONG_PATH_S`].
fn is_short_path(view: &View<'_>) -> bool {
    let (rtt_s, given) = view.rtt_s();
    given && rtt_s < advice::LONG_PATH_S
}

/// Returns the share of a buffer that can be data in flight: for receivers the part that becomes window, for
/// senders all.
fn share_of(view: &View<'_>, name: &str) -> f64 {
    if name == "net.ipv4.tcp_rmem" { usable(view) } else { 1.0 }
}

/// Formats the rate of one window per RTT.
fn rate_of_window(window_bytes: f64, rtt_s: f64) -> String {
    crate::view::rate_text((window_bytes * 8.0 / rtt_s.max(1e-9)) as u64)
}

/// Returns `Minor` if one flow reaches at least 0.9 of the goal, else `None`: the check's own severity.
fn severity_of(reached: f64) -> Option<landspeed_model::Severity> {
    (reached >= 0.9).then_some(landspeed_model::Severity::Minor)
}

/// Returns the numbers of a sysctl, which may be negative; unknown if one is not a number.
fn signed(view: &View<'_>, name: &str) -> Fact<Vec<i128>> {
    match view.sysctl(name) {
        Fact::Known(text) => {
            let numbers: Result<Vec<i128>, _> = text.split_whitespace().map(str::parse).collect();
            numbers.map_or_else(|_| Fact::Unknown(format!("{name} is `{text}`, which is not numbers")), Fact::Known)
        }
        Fact::Absent(why) => Fact::Absent(why),
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::example;

    #[test]
    fn page_size_comes_from_the_arm_kernel_configuration() {
        for (options, bytes) in [
            (vec![("CONFIG_ARM64_64K_PAGES", "y")], Some(65_536)),
            (vec![("CONFIG_ARM64_4K_PAGES", "y"), ("CONFIG_ARM64_64K_PAGES", "n")], Some(4096)),
            (vec![("CONFIG_HZ", "250")], None),
        ] {
            let (mut facts, goal) = (example::facts(), example::goal());
            facts.kernel.machine = "aarch64".into();
            let options = options.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
            facts.kernel.configuration = Fact::Known(options.collect::<BTreeMap<_, _>>());
            let view = View { facts: &facts, goal: &goal, top: None, bottom: None, ports: 0 };
            assert_eq!(page_bytes(&view).known().copied(), bytes);
        }
    }
}
