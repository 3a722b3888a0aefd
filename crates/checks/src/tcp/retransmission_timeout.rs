use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_rto_min_us";

/// Linux default, microseconds; the documentation recommends not to exceed it.
const DEFAULT_US: u64 = 200_000;

declare_check! {
    /// Whether the minimum RTO is above the default.
    ///
    /// **Reads** `net.ipv4.tcp_rto_min_us` (since Linux 6.11).
    ///
    /// **Matters** because a connection stalls until the timer fires when nothing else reveals a loss.
    ///
    /// **Leave it alone** below 200 ms if the RTTs are short and it was measured; the timer rises with the RTT
    /// anyway.
    code: "TCP-017",
    title: "Minimum RTO",
    severity: Minor,
    sources: [IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "1000000"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    if value <= DEFAULT_US {
        return Outcome::pass(format!("{value} us"));
    }
    let problem = advice::sysctl(
        NAME,
        value,
        DEFAULT_US,
        "Every timeout stops a connection for longer than the kernel default 200 ms.",
    );
    Outcome::found(problem.with_effect(Effect::arithmetic(format!(
        "Each timeout stops a connection for at least {} ms instead of 200 ms.",
        value / 1000
    ))))
}
