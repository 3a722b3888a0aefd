use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_moderate_rcvbuf";

declare_check! {
    /// Whether autotuning of receive buffers is on.
    ///
    /// **Reads** `net.ipv4.tcp_moderate_rcvbuf`.
    ///
    /// **Matters** because without it every connection keeps the initial size: 128 KiB, about 10 Mb/s over 92
    /// ms, regardless of the maximum.
    ///
    /// **Leave it alone** only for an experiment with fixed buffers; a program can fix its own with `SO_RCVBUF`.
    code: "BUF-009",
    title: "Receive buffer autotuning",
    severity: Critical,
    sources: ["Linux Documentation/networking/ip-sysctl.rst, tcp_moderate_rcvbuf"],
    bad: |facts, _| example::sysctl(facts, NAME, "0"),
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
