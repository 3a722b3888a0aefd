use crate::prelude::*;

declare_check! {
    /// Whether segments are dropped because a socket's backlog is full.
    ///
    /// **Reads** `TcpExt.TCPBacklogDrop` against segments received.
    ///
    /// **Matters** because segments that arrive while the program reads wait in a short queue bounded by the socket's
    /// buffers; with a slow CPU or very large reads it overflows.
    ///
    /// **Leave it alone** while it stays a rare event.
    code: "TCP-020",
    title: "Socket backlog drops",
    severity: Minor,
    sources: [
        "Linux net/ipv4/tcp_ipv4.c, tcp_add_backlog: LINUX_MIB_TCPBACKLOGDROP",
        esnet_2014!("A small amount of packet loss makes a huge difference in TCP performance"),
    ],
    bad: |facts, _| example::counter(facts, "TcpExt.TCPBacklogDrop", 1_000_000),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let dropped = known!(counted(view, &["TcpExt.TCPBacklogDrop"], &Reference::Contains("Tcp.InSegs")));
    if !dropped.exceeds(SIGNIFICANT_LOSS_RATE) {
        return Outcome::pass(dropped.text);
    }
    let problem = advice::manual_problem(
        dropped.text,
        format!(
            "below {}: larger tcp_rmem, a dedicated core for the program, smaller reads",
            percent(SIGNIFICANT_LOSS_RATE)
        ),
        "The program holds the socket for longer than the queue lasts.",
        "nstat -az TcpExtTCPBacklogDrop",
    );
    Outcome::found(problem.with_effect(advice::loss_effect()))
}
