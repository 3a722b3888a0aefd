use crate::prelude::*;

/// Duplicates per retransmit from which retransmits are reported as spurious: at one half, most were
/// unnecessary.
const SHARE: f64 = 0.5;

declare_check! {
    /// Whether retransmits are spurious (DSACK).
    ///
    /// **Reads** `TcpExt.TCPDSACKRecv` against `Tcp.RetransSegs`.
    ///
    /// **Matters** because the path then reorders or delays packets instead of losing them: bonds that
    /// distribute single packets, equal-cost paths of different delay, a device that delays packets. Each
    /// spurious retransmit also slows the sender down.
    ///
    /// **Leave it alone** while few segments are retransmitted at all.
    code: "TCP-025",
    title: "Spurious retransmits",
    severity: Note,
    sources: [
        "RFC 2883, An Extension to the Selective Acknowledgement Option for TCP",
        "Linux Documentation/networking/snmp_counter.rst, TCPDSACKRecv",
    ],
    bad: |facts, _| {
        example::counter(facts, "Tcp.RetransSegs", 1_000_000);
        example::counter(facts, "TcpExt.TCPDSACKRecv", 700_000);
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let twice = known!(counted(view, &["TcpExt.TCPDSACKRecv"], &Reference::Per("Tcp.RetransSegs")));
    let repeated = known!(counted(view, &["Tcp.RetransSegs"], &SEGMENTS_SENT));
    if !repeated.exceeds(SIGNIFICANT_LOSS_RATE) || !twice.exceeds(SHARE) {
        return Outcome::pass(twice.text);
    }
    Outcome::found(advice::manual_problem(
        twice.text,
        format!("below {}: look for reordering (bonding mode, equal paths) and for delays", percent(SHARE)),
        "The path reorders or delays rather than loses; TCP slows down for nothing.",
        "nstat -az TcpExtTCPDSACKRecv TcpRetransSegs; ss -ti  # reordering, dsack_dups",
    ))
}
