use crate::prelude::*;

/// Closed windows for each segment that are reported, one in ten thousand: about one for every 90 MB at MTU
/// 9000.
const SHARE: f64 = 0.0001;

declare_check! {
    /// Whether programs here read more slowly than data arrives.
    ///
    /// **Reads** `TcpExt.TCPToZeroWindowAdv` against segments received.
    ///
    /// **Matters** because a closed window stops the sender: the disk or the program is the limit, and no network
    /// setting helps.
    ///
    /// **Leave it alone** where receivers slow down senders by design (a queue, a tape).
    code: "TCP-026",
    title: "Zero windows",
    severity: Note,
    sources: [
        "Linux Documentation/networking/snmp_counter.rst, TCPToZeroWindowAdv",
        "RFC 9293 section 3.8.6.1, Zero-Window Probing",
    ],
    bad: |facts, _| example::counter(facts, "TcpExt.TCPToZeroWindowAdv", 2_000_000),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let closed = known!(counted(view, &["TcpExt.TCPToZeroWindowAdv"], &Reference::Per("Tcp.InSegs")));
    if !closed.exceeds(SHARE) {
        return Outcome::pass(closed.text);
    }
    Outcome::found(advice::manual_problem(
        closed.text,
        format!("below {}: a faster disk or program, or fewer streams for them", percent(SHARE)),
        "The receiving program is the limit; it closes the window and the sender stalls.",
        "nstat -az TcpExtTCPToZeroWindowAdv; ss -tmi  # a Recv-Q that stays full",
    ))
}
