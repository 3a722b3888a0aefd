use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_no_metrics_save";

declare_check! {
    /// Whether the cache of TCP metrics was turned off in production.
    ///
    /// **Reads** `net.ipv4.tcp_no_metrics_save` and the role.
    ///
    /// **Matters** because new connections then start without knowledge of the path; the kernel's documentation
    /// says that the cache usually helps. The reason to turn it off was a cached low slow-start threshold;
    /// newer kernels do not cache it (`tcp_no_ssthresh_metrics_save`).
    ///
    /// **Leave it alone** for benchmarks (TCP-011), and on kernels without the second setting if it was measured to
    /// help.
    code: "OLD-010",
    title: "tcp_no_metrics_save in production",
    severity: Note,
    sources: [IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "1"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    if view.role() == Role::Benchmark {
        return Outcome::not_applicable("a benchmark wants it (TCP-011)");
    }
    super::changed_without_gain(
        view,
        NAME,
        0,
        "New connections know nothing of the path; the threshold that was the trouble is not kept any more.",
    )
}
