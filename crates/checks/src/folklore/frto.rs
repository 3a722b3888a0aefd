use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_frto";

declare_check! {
    /// Whether spurious RTOs are undone (F-RTO, RFC 5682).
    ///
    /// **Reads** `net.ipv4.tcp_frto`.
    ///
    /// **Matters** because after an RTO the sender checks with it whether the segments were only late, and then
    /// continues instead of retransmitting everything. Guides from its early, troublesome years turn it off;
    /// all values above 0 have the same effect today.
    ///
    /// **Leave it alone** at 1 or 2.
    code: "OLD-004",
    title: "tcp_frto turned off",
    severity: Note,
    sources: ["RFC 5682, Forward RTO-Recovery (F-RTO)", IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "0"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    if value != 0 {
        return Outcome::pass("on");
    }
    Outcome::found(Problem {
        observed: format!("{NAME} = 0{}", origin(view, NAME)),
        ..advice::sysctl(NAME, value, 2, "After a spurious RTO the whole window is retransmitted.")
    })
}
