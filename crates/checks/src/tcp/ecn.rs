use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_ecn";

declare_check! {
    /// Whether ECN is accepted, so that routers may mark instead of drop.
    ///
    /// **Reads** `net.ipv4.tcp_ecn`.
    ///
    /// **Matters** little on most research networks, which do not mark; but with 0 the host refuses it to peers
    /// that request it, and routers can only signal congestion by a loss.
    ///
    /// **Leave it alone** where a device on the path is known to drop such connections.
    code: "TCP-015",
    title: "ECN",
    severity: Note,
    sources: ["RFC 3168, The Addition of Explicit Congestion Notification (ECN) to IP", IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "0"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    if value != 0 {
        return Outcome::pass(if value == 2 { "when the peer asks".to_owned() } else { format!("{value}") });
    }
    Outcome::found(advice::sysctl(NAME, value, 2, "Peers that ask for it are refused; the default answers them."))
}
