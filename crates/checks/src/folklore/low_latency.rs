use crate::advice::IP_SYSCTL;
use crate::check::Outcome;
use crate::example;
use crate::view::View;

const NAME: &str = "net.ipv4.tcp_low_latency";

declare_check! {
    /// Whether somebody still sets `tcp_low_latency`.
    ///
    /// **Reads** `net.ipv4.tcp_low_latency` and the kernel's version.
    ///
    /// **Matters** only as a sign: it bypassed a queue that Linux 4.14 removed, and has no effect since.
    ///
    /// **Leave it alone** on older kernels for small messages.
    code: "OLD-002",
    name: "low-latency",
    group: Folklore,
    title: "tcp_low_latency",
    scope: Host,
    severity: Note,
    since: "0.1",
    sources: [IP_SYSCTL],
    example: { good: example::as_is, bad: |facts, _| example::sysctl(facts, NAME, "1") },
}

fn evaluate(view: &View<'_>) -> Outcome {
    super::ignored(view, NAME, 0, (4, 14), "The queue it bypassed is gone.")
}
