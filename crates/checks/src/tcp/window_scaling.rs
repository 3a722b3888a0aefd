use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_window_scaling";

declare_check! {
    /// Whether windows may be larger than 64 KiB.
    ///
    /// **Reads** `net.ipv4.tcp_window_scaling`.
    ///
    /// **Matters** because the window field has 16 bits: without scaling a connection carries 64 KiB for each round
    /// trip, 5.7 Mb/s over 92 ms, whatever the buffers.
    ///
    /// **Leave it alone** never on a host that transfers data; it was turned off for broken firewalls twenty years ago.
    code: "TCP-003",
    title: "TCP window scaling",
    severity: Critical,
    sources: ["RFC 7323 section 2", IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "0"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    super::on(view, NAME, "Without it a connection has at most 64 KiB in flight.")
}
