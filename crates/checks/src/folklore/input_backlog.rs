use crate::prelude::*;

const NAME: &str = "net.core.netdev_max_backlog";

/// Kernel default, packets.
const KERNEL_DEFAULT: u64 = 1000;

/// Ten times the default may be a considered choice; guides have 30000 to 300000.
const HIGH_BACKLOG_PACKETS: u64 = 10_000;

declare_check! {
    /// Whether the input backlog was raised without need.
    ///
    /// **Reads** `net.core.netdev_max_backlog` and drops of the backlog since boot.
    ///
    /// **Matters** because drivers with NAPI, all fast ones, do not use it; it serves RPS, tunnels and virtual
    /// interfaces. There a backlog of 250000 packets, as a deck of 2012 sets, only turns overload into seconds of
    /// delay.
    ///
    /// **Leave it alone** where it was raised because of counted drops.
    code: "OLD-006",
    title: "netdev_max_backlog raised",
    severity: Note,
    sources: [esnet_2016!("Settings to leave alone in CentOS7"), red_hat_2012!("Tuning – sysctl settings"), "Linux Documentation/admin-guide/sysctl/net.rst, netdev_max_backlog"],
    bad: |facts, _| example::sysctl(facts, NAME, "250000"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    let softnet = known!(&view.facts.softnet);
    let text = format!(
        "{NAME} = {value}{}, {} dropped of {} packets",
        origin(view, NAME),
        softnet.dropped,
        softnet.processed
    );
    if value <= HIGH_BACKLOG_PACKETS || softnet.dropped > 0 {
        return Outcome::pass(text);
    }
    Outcome::found(Problem {
        observed: text,
        recommended: format!("{KERNEL_DEFAULT}, the kernel default, until drops are counted"),
        ..advice::sysctl(
            NAME,
            value,
            KERNEL_DEFAULT,
            "Drivers of fast cards do not use it; where it is used, a long one is delay.",
        )
    })
}
