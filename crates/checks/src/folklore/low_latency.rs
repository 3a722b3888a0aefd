use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_low_latency";

declare_check! {
    /// Whether the obsolete `tcp_low_latency` is still set.
    ///
    /// **Reads** `net.ipv4.tcp_low_latency` and the kernel's version.
    ///
    /// **Matters** only as a sign: it bypassed a queue that Linux 4.14 removed, and has no effect since.
    ///
    /// **Leave it alone** on older kernels for small messages.
    code: "OLD-002",
    title: "tcp_low_latency",
    severity: Note,
    sources: [IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "1"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    super::ignored(view, NAME, 0, (4, 14), "The queue it bypassed is gone.")
}
