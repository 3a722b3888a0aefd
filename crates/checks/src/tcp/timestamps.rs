use crate::advice::{ESNET_2016, IP_SYSCTL};
use crate::check::Outcome;
use crate::example;
use crate::view::View;

declare_check! {
    /// Whether segments carry time stamps.
    ///
    /// **Reads** `net.ipv4.tcp_timestamps`.
    ///
    /// **Matters** because at high rates sequence numbers come round while old segments may still be on their way (at
    /// 100 Gb/s every third of a second), and only time stamps tell them apart; and because without them a sender
    /// measures the round trip from fewer segments. Vendors' scripts still turn them off to save 12 bytes a segment.
    ///
    /// **Leave it alone**: the 2016 ESnet deck lists it among the settings not to touch. Where time stamps must not
    /// tell the uptime, Linux has shifted them at random for each connection since 4.10.
    code: "TCP-002",
    name: "timestamps",
    group: Tcp,
    title: "TCP time stamps",
    scope: Host,
    severity: Major,
    since: "0.1",
    sources: [
        "RFC 7323, sections 4 and 5: round-trip measurement and protection against wrapped sequence numbers",
        ESNET_2016,
        IP_SYSCTL,
    ],
    example: { good: example::as_is, bad: |facts, _| example::sysctl(facts, NAME, "0") },
}

const NAME: &str = "net.ipv4.tcp_timestamps";

fn evaluate(view: &View<'_>) -> Outcome {
    super::on(
        view,
        NAME,
        "At high rates wrapped sequence numbers cannot be told apart, and the round trip is measured less often.",
    )
}
