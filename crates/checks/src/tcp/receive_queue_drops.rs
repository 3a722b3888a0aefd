use crate::prelude::*;

declare_check! {
    /// Whether sockets drop received segments for lack of buffer space.
    ///
    /// **Reads** `TcpExt` counters `RcvPruned`, `OfoPruned`, `TCPOFODrop` and `TCPRcvQDrop` against segments received.
    /// `PruneCalled` is not among them: it counts attempts to compact a receive queue, which mostly succeed.
    ///
    /// **Matters** because the network delivered these segments: the sender retransmits them and slows down for a loss that
    /// happened in this host. The receive buffer is too small for what is in flight, or TCP is short of memory.
    ///
    /// **Leave it alone** where a program set a small buffer on purpose (`SO_RCVBUF`).
    code: "TCP-019",
    title: "Segments dropped from receive queues",
    severity: Major,
    sources: [
        "Linux Documentation/networking/snmp_counter.rst, prune: PruneCalled, OfoPruned, RcvPruned; TCPOFODrop",
        "Linux net/ipv4/tcp_input.c, tcp_data_queue: LINUX_MIB_TCPRCVQDROP",
        esnet_2014!("A small amount of packet loss makes a huge difference in TCP performance"),
    ],
    bad: |facts, _| example::counter(facts, "TcpExt.TCPRcvQDrop", 1_000_000),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let names = ["TcpExt.RcvPruned", "TcpExt.OfoPruned", "TcpExt.TCPOFODrop", "TcpExt.TCPRcvQDrop"];
    let dropped = known!(counted(view, &names, &Reference::Contains("Tcp.InSegs")));
    if !dropped.exceeds(SIGNIFICANT_LOSS_RATE) {
        return Outcome::pass(dropped.text);
    }
    let problem = advice::manual_problem(
        dropped.text,
        format!(
            "below {}: larger tcp_rmem (BUF-001), more tcp_mem (BUF-006), or a program that reads faster",
            percent(SIGNIFICANT_LOSS_RATE)
        ),
        "Segments that the network delivered are dropped and retransmitted.",
        "nstat -az TcpExtRcvPruned TcpExtOfoPruned TcpExtTCPOFODrop TcpExtTCPRcvQDrop",
    );
    Outcome::found(problem.with_effect(advice::loss_effect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compacting_a_receive_queue_is_not_a_drop() {
        let mut facts = example::facts();
        example::counter(&mut facts, "TcpExt.PruneCalled", 1_000_000_000);
        let findings = |facts: &_| CHECK.audit_alone(facts, &example::goal()).findings;
        assert!(findings(&facts).is_empty());
        example::counter(&mut facts, "TcpExt.RcvPruned", 1_000_000);
        assert_eq!(findings(&facts).len(), 1);
    }
}
