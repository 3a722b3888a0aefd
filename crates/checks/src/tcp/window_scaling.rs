use crate::advice::IP_SYSCTL;
use crate::check::Outcome;
use crate::example;
use crate::view::View;

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
    name: "window-scaling",
    group: Tcp,
    title: "TCP window scaling",
    scope: Host,
    severity: Critical,
    since: "0.1",
    sources: ["RFC 7323 section 2", IP_SYSCTL],
    example: { good: example::as_is, bad: |facts, _| example::sysctl(facts, NAME, "0") },
}

fn evaluate(view: &View<'_>) -> Outcome {
    super::on(view, NAME, "Without it a connection has at most 64 KiB in flight.")
}
