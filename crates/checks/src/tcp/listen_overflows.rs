use crate::prelude::*;

/// Share of connections, one in a thousand, that have to retry a second later.
const SHARE: f64 = 0.001;

declare_check! {
    /// Whether the accept queue overflows.
    ///
    /// **Reads** `TcpExt.ListenOverflows` against connections accepted.
    ///
    /// **Matters** to transfers with many streams that open at once: the program accepts too slowly, or passed
    /// too short a queue to `listen`; a dropped SYN is retransmitted a second later, and one late stream delays
    /// the whole transfer.
    ///
    /// **Leave it alone** on a host under a scan or a flood: the queue's limit exists for that.
    code: "TCP-023",
    title: "Listen queue overflows",
    severity: Minor,
    sources: ["RFC 6298 section 2: the initial RTO is 1 second", "Linux Documentation/networking/snmp_counter.rst, ListenOverflows", "listen(2), backlog and somaxconn"],
    bad: |facts, _| example::counter(facts, "TcpExt.ListenOverflows", 50_000),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let turned_away = known!(counted(
        view,
        &["TcpExt.ListenOverflows"],
        &Reference::Beside("Tcp.PassiveOpens", "incoming connections")
    ));
    if !turned_away.exceeds(SHARE) {
        return Outcome::pass(turned_away.text);
    }
    let problem = advice::manual_problem(
        turned_away.text,
        format!(
            "below {}: a longer queue in the program's listen(), and net.core.somaxconn at least as long",
            percent(SHARE)
        ),
        "A stream whose SYN is dropped starts a second late.",
        "nstat -az TcpExtListenOverflows; ss -ltn  # Send-Q is the queue's length",
    );
    Outcome::found(
        problem.with_effect(Effect::stated("The client retransmits its SYN after an initial RTO of 1 s", "RFC 6298")),
    )
}
