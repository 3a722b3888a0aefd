use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_reordering";

/// Kernel default, segments.
const KERNEL_DEFAULT: u64 = 3;

declare_check! {
    /// Whether the initial reordering threshold was raised for every connection.
    ///
    /// **Reads** `net.ipv4.tcp_reordering`.
    ///
    /// **Matters** because it is only the initial value: the kernel raises it for a connection whose path
    /// reorders (up to `tcp_max_reordering`), and RACK detects losses by time. Raised for all connections, it
    /// delays the detection of losses.
    ///
    /// **Leave it alone** where a bond distributes single packets (round-robin) and connections are short.
    code: "OLD-018",
    title: "tcp_reordering raised",
    severity: Note,
    sources: [IP_SYSCTL, "RFC 8985 section 3.3"],
    bad: |facts, _| example::sysctl(facts, NAME, "30"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    if value <= KERNEL_DEFAULT {
        return Outcome::pass(format!("{value} segments"));
    }
    Outcome::found(Problem {
        observed: format!("{NAME} = {value}{}", origin(view, NAME)),
        ..advice::sysctl(
            NAME,
            value,
            KERNEL_DEFAULT,
            "The kernel raises it itself where a path reorders; for all others losses are noticed later.",
        )
    })
}
