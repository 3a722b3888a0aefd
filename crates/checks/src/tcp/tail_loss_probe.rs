use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_early_retrans";

declare_check! {
    /// Whether tail losses are found by a probe (TLP) rather than by an RTO.
    ///
    /// **Reads** `net.ipv4.tcp_early_retrans`.
    ///
    /// **Matters** because nothing follows the last segments that could reveal their loss; without a probe the sender
    /// waits for its timer, at least 200 ms, and begins again with a small window.
    ///
    /// **Leave it alone** in experiments on recovery itself.
    code: "TCP-006",
    title: "Tail loss probe (TLP)",
    severity: Minor,
    sources: ["RFC 8985 section 7, Tail Loss Probe", IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "0"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    if value >= 3 {
        return Outcome::pass("on");
    }
    let problem =
        advice::sysctl(NAME, value, 3, "The loss of a transfer's last segments costs a timeout of at least 200 ms.");
    Outcome::found(problem.with_effect(Effect::stated(
        "Tail losses then wait for the retransmission timer, at least 200 ms on Linux",
        "RFC 8985 section 7",
    )))
}
