use crate::advice;
use crate::check::Outcome;
use crate::example;
use crate::view::View;

const NAME: &str = "net.ipv4.tcp_moderate_rcvbuf";

declare_check! {
    /// Whether the kernel may grow receive buffers.
    ///
    /// **Reads** `net.ipv4.tcp_moderate_rcvbuf`.
    ///
    /// **Matters** because without it every connection keeps the initial size: 128 KiB, about 10 Mb/s over 92 ms,
    /// whatever the maximum says.
    ///
    /// **Leave it alone** only for an experiment with fixed buffers; a program can fix its own with `SO_RCVBUF`.
    code: "BUF-009",
    name: "receive-autotuning",
    group: Buffers,
    title: "Receive buffer autotuning",
    scope: Host,
    severity: Critical,
    since: "0.1",
    sources: ["Linux Documentation/networking/ip-sysctl.rst, tcp_moderate_rcvbuf"],
    example: { good: example::as_is, bad: |facts, _| example::sysctl(facts, NAME, "0") },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl(NAME));
    if value != "0" {
        return Outcome::pass("on");
    }
    Outcome::found(advice::sysctl(
        NAME,
        value,
        1,
        "Every connection keeps its initial receive buffer, whatever the maximum.",
    ))
}
