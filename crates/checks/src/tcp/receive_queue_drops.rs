use crate::advice::{self, LOSS_THAT_MATTERS, counted, percent};
use crate::check::Outcome;
use crate::example;
use crate::view::View;

declare_check! {
    /// Whether sockets throw away what arrived, for want of buffer.
    ///
    /// **Reads** `TcpExt` counters `PruneCalled`, `RcvPruned`, `OfoPruned` and `TCPRcvQDrop` against segments received.
    ///
    /// **Matters** because the network delivered these segments: the sender repeats them and slows down for a loss that
    /// happened in this host. The receive buffer is too small for what is in flight, or TCP is short of memory.
    ///
    /// **Leave it alone** where a program set a small buffer on purpose (`SO_RCVBUF`).
    code: "TCP-019",
    name: "receive-queue-drops",
    group: Tcp,
    title: "Segments dropped for want of buffer",
    scope: Host,
    severity: Major,
    since: "0.1",
    sources: ["Linux Documentation/networking/snmp_counter.rst, PruneCalled, RcvPruned, OfoPruned, TCPRcvQDrop"],
    example: { good: example::as_is, bad: |facts, _| example::counter(facts, "TcpExt.TCPRcvQDrop", 1_000_000) },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let names = ["TcpExt.PruneCalled", "TcpExt.RcvPruned", "TcpExt.OfoPruned", "TcpExt.TCPRcvQDrop"];
    let dropped = known!(counted(view, &names, "Tcp.InSegs"));
    if !dropped.exceeds(LOSS_THAT_MATTERS) {
        return Outcome::pass(dropped.text);
    }
    Outcome::found(advice::by_person(
        dropped.text,
        format!(
            "below {}: larger tcp_rmem (BUF-001), more tcp_mem (BUF-006), or a program that reads faster",
            percent(LOSS_THAT_MATTERS)
        ),
        "What the network delivered is thrown away and sent again.",
        "nstat -az TcpExtPruneCalled TcpExtRcvPruned TcpExtOfoPruned TcpExtTCPRcvQDrop",
    ))
}
