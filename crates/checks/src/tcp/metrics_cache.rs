use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_no_metrics_save";

declare_check! {
    /// Whether cached TCP metrics of one benchmark run affect the next.
    ///
    /// **Reads** `net.ipv4.tcp_no_metrics_save` and the role.
    ///
    /// **Matters** to a benchmark because the kernel keeps RTT, reordering and more of a closed connection for
    /// the next one to the same host: runs are then not independent of each other.
    ///
    /// **Leave it alone** in production: the cache usually helps, as the kernel's documentation says.
    code: "TCP-011",
    title: "Metrics cache between benchmark runs",
    severity: Note,
    sources: [IP_SYSCTL],
    good: |facts, goal| {
        goal.role = Role::Benchmark;
        example::sysctl(facts, NAME, "1");
    },
    bad: |_, goal| goal.role = Role::Benchmark,
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl(NAME));
    if view.role() != Role::Benchmark {
        return Outcome::not_applicable("it matters to a benchmark");
    }
    if value == "1" {
        return Outcome::pass("nothing is kept");
    }
    Outcome::found(advice::sysctl(
        NAME,
        value,
        1,
        "Runs are not independent: each begins with what the last one measured.",
    ))
}
