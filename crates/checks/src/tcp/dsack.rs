use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_dsack";

declare_check! {
    /// Whether the receiver reports duplicate segments (DSACK, RFC 2883).
    ///
    /// **Reads** `net.ipv4.tcp_dsack`.
    ///
    /// **Matters** because a sender learns from it that it retransmitted spuriously: it restores the reduced
    /// window and raises its tolerance of reordering.
    ///
    /// **Leave it alone** never: it costs nothing without duplicates.
    code: "TCP-004",
    title: "DSACK",
    severity: Note,
    sources: [
        "RFC 2883, An Extension to the Selective Acknowledgement Option for TCP",
        "RFC 8985 section 3.3: RACK adapts its reordering window by DSACK",
        IP_SYSCTL,
    ],
    bad: |facts, _| example::sysctl(facts, NAME, "0"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    super::on(view, NAME, "Peers cannot undo spurious window reductions, nor adapt to reordering.")
}
