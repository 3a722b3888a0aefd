use crate::prelude::*;

const NAME: &str = "net.ipv4.ip_no_pmtu_disc";

declare_check! {
    /// Whether the host discovers the path MTU.
    ///
    /// **Reads** `net.ipv4.ip_no_pmtu_disc`.
    ///
    /// **Matters** because with 1 the first "too big" message cuts packets to that destination to about 550
    /// bytes for minutes, and large packets are fragmented on the way; 2 and 3 change which messages are
    /// accepted.
    ///
    /// **Leave it alone** at 3 on a host that must distrust ICMP.
    code: "TCP-016",
    title: "Path MTU discovery",
    severity: Major,
    sources: ["RFC 1191, Path MTU Discovery", IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "1"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    match value {
        0 => Outcome::pass("on"),
        3 => Outcome::pass("on, with messages that are checked against a connection"),
        1 => Outcome::found(
            advice::sysctl(
                NAME,
                value,
                0,
                "A single message cuts packets to a few hundred bytes, where the path takes thousands.",
            )
            .with_effect(Effect::stated(
                "Packets to that destination shrink to min_pmtu, 552 bytes by default",
                IP_SYSCTL,
            )),
        ),
        _ => Outcome::found(
            advice::sysctl(
                NAME,
                value,
                0,
                "\"Packet too big\" messages are ignored: routers have to fragment packets, or drop them.",
            )
            .with_effect(Effect::stated("The MTU of the path is not discovered", IP_SYSCTL)),
        ),
    }
}
