use crate::prelude::*;

/// Timeouts for each retransmit that are reported: with SACK, RACK and tail loss probes, timeouts are rare,
/// and one in ten is too many.
const SHARE: f64 = 0.1;

declare_check! {
    /// Whether losses end in RTOs.
    ///
    /// **Reads** `TcpExt.TCPTimeouts` against `Tcp.RetransSegs`, and these against `Tcp.OutSegs`.
    ///
    /// **Matters** because a timeout stops a connection for at least 200 ms and restarts it in slow start,
    /// where other recovery takes one RTT. Many of them mean whole windows lost at once (a small buffer, a link
    /// that goes away) or SACK turned off.
    ///
    /// **Leave it alone** where peers vanish silently (laptops, scanners): their connections time out too.
    code: "TCP-021",
    title: "RTO share of retransmits",
    severity: Minor,
    sources: ["Linux Documentation/networking/ip-sysctl.rst, tcp_rto_min_us: 200 ms", "RFC 8985 section 1: what a timeout costs", "RFC 6298, Computing TCP's Retransmission Timer"],
    bad: |facts, _| {
        example::counter(facts, "Tcp.RetransSegs", 1_000_000);
        example::counter(facts, "TcpExt.TCPTimeouts", 400_000);
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let timeouts = known!(counted(view, &["TcpExt.TCPTimeouts"], &Reference::Per("Tcp.RetransSegs")));
    let repeated = known!(counted(view, &["Tcp.RetransSegs"], &SEGMENTS_SENT));
    if !repeated.exceeds(SIGNIFICANT_LOSS_RATE) || !timeouts.exceeds(SHARE) {
        return Outcome::pass(timeouts.text);
    }
    Outcome::found(Problem {
        effect: Effect::stated(
            "Each stops a connection for at least the minimum RTO, 200 ms on Linux",
            "Linux Documentation/networking/ip-sysctl.rst, tcp_rto_min_us",
        ),
        ..advice::manual_problem(
            timeouts.text,
            format!("below {}: look for whole windows that are lost", percent(SHARE)),
            "A timeout stops the connection and throws its window away.",
            "nstat -az TcpExtTCPTimeouts TcpRetransSegs",
        )
    })
}
