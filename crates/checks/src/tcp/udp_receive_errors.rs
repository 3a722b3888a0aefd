use crate::prelude::*;

/// Share of datagrams that is reported: at one in ten thousand, UDP loss tests would attribute it to the
/// network.
const SHARE: f64 = 0.0001;

declare_check! {
    /// Whether UDP datagrams are lost in this host.
    ///
    /// **Reads** `Udp.RcvbufErrors` against `Udp.InDatagrams`.
    ///
    /// **Matters** because the network delivered them: a test tool counts them as the network's loss, and a UDP
    /// transfer retransmits them.
    ///
    /// **Leave it alone** where a receiver drops what it cannot use by design (multicast, logs).
    code: "TCP-024",
    title: "UDP receive buffer errors",
    severity: Minor,
    sources: ["RFC 4113, udpInErrors", "udp(7), SO_RCVBUF"],
    bad: |facts, _| example::counter(facts, "Udp.RcvbufErrors", 30_000),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let dropped =
        known!(counted(view, &["Udp.RcvbufErrors"], &Reference::Beside("Udp.InDatagrams", "datagrams for programs")));
    if !dropped.exceeds(SHARE) {
        return Outcome::pass(dropped.text);
    }
    let share = dropped.share;
    let problem = advice::manual_problem(
        dropped.text,
        format!(
            "below {}: a larger SO_RCVBUF in the program, net.core.rmem_max that allows it (BUF-013)",
            percent(SHARE)
        ),
        "They reached the host and were dropped before the program read them.",
        "nstat -az UdpRcvbufErrors UdpInDatagrams; ss -uam",
    );
    Outcome::found(problem.with_effect(Effect::arithmetic(format!(
        "{} of the datagrams that reached the host never reach a program.",
        percent(share)
    ))))
}
