use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_slow_start_after_idle";

declare_check! {
    /// Whether a connection restarts in slow start after an idle period.
    ///
    /// **Reads** `net.ipv4.tcp_slow_start_after_idle`, the goal's RTT.
    ///
    /// **Matters** on long paths: a pause of one retransmission timeout (the disk is slow, the next file is
    /// opened) resets the congestion window, and each doubling takes one RTT again.
    ///
    /// **Leave it alone** on short paths, where doubling is quick, and where the path changes its capacity between
    /// transfers.
    code: "TCP-012",
    title: "Slow start after idle",
    severity: Minor,
    sources: ["RFC 2861, TCP Congestion Window Validation", IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "1"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl(NAME));
    if value == "0" {
        return Outcome::pass("the window outlives a pause");
    }
    if !is_long_path(view) || view.role() == Role::Router {
        return Outcome::not_applicable("no long path was given (--rtt)");
    }
    Outcome::found(advice::sysctl(
        NAME,
        value,
        0,
        "A pause of a fraction of a second throws away a window that took many RTTs to build.",
    ))
}
