use crate::advice::{self, IP_SYSCTL};
use crate::check::Outcome;
use crate::example;
use crate::view::View;

const NAME: &str = "net.ipv4.tcp_rto_min_us";

/// Linux's own, microseconds; the documentation recommends no more.
const STOCK_US: u64 = 200_000;

declare_check! {
    /// Whether a timeout takes longer than it must.
    ///
    /// **Reads** `net.ipv4.tcp_rto_min_us` (since Linux 6.11).
    ///
    /// **Matters** because a connection stands still until the timer fires when nothing else reveals a loss.
    ///
    /// **Leave it alone** below 200 ms if the round trips are short and it was measured; the timer follows the round
    /// trip upwards by itself.
    code: "TCP-017",
    name: "retransmission-timeout",
    group: Tcp,
    title: "Shortest retransmission timeout",
    scope: Host,
    severity: Minor,
    since: "0.1",
    sources: [IP_SYSCTL],
    example: { good: example::as_is, bad: |facts, _| example::sysctl(facts, NAME, "1000000") },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    if value <= STOCK_US {
        return Outcome::pass(format!("{value} us"));
    }
    Outcome::found(advice::sysctl(
        NAME,
        value,
        STOCK_US,
        "Every timeout stops a connection for longer than the kernel's own 200 ms.",
    ))
}
