use crate::prelude::*;

const NAME: &str = "net.core.optmem_max";

/// Value that ESnet sets for zero copy, bytes.
const MIN_BYTES: u64 = 1 << 20;

/// Minimum goal for which MSG_ZEROCOPY is worthwhile, bits/s.
const FAST_BPS: u64 = 10_000_000_000;

declare_check! {
    /// Whether `optmem_max` is large enough for the notifications of MSG_ZEROCOPY.
    ///
    /// **Reads** `net.core.optmem_max` and the goal's rate.
    ///
    /// **Matters** because every `MSG_ZEROCOPY` write that is not yet acknowledged keeps a notification in this
    /// per-socket memory; on a long path there are many. When it is used up, writes fail with ENOBUFS and the
    /// program copies or stops.
    ///
    /// **Leave it alone** if no program sends with `MSG_ZEROCOPY`; `sendfile` does not need it.
    code: "BUF-010",
    title: "optmem_max for zero copy",
    severity: Minor,
    sources: [
        "Recent Linux Improvements that Impact TCP Throughput: Insights from R&E Networks (AmLight, ESnet), INDIS workshop at SC24",
        "ESnet fasterdata, Linux host tuning: 1 MB for MSG_ZEROCOPY",
        "Linux Documentation/networking/msg_zerocopy.rst: ENOBUFS when the socket's option memory is exceeded",
        "Linux Documentation/admin-guide/sysctl/net.rst, optmem_max",
    ],
    bad: |facts, _| example::sysctl(facts, NAME, "131072"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    if !matches!(view.role(), Role::Dtn | Role::Benchmark | Role::Guest) {
        return Outcome::not_applicable("only bulk senders gain from zero copy");
    }
    if value >= MIN_BYTES {
        return Outcome::pass(bytes_text(value));
    }
    let rate = known!(view.rate_bps());
    if rate < FAST_BPS {
        return Outcome::not_applicable(format!("copying is cheap at {}", rate_text(rate)));
    }
    Outcome::found(Problem {
        effect: Effect::measured(
            "Zero copy with packet pacing brought up to 35 %; writes that fail for lack of this memory lose it",
            &[&source::ZERO_COPY],
        ),
        ..advice::sysctl(
            NAME,
            value,
            MIN_BYTES,
            "A zero-copy sender runs out of it on a long path; its writes fail \
                                               with ENOBUFS.",
        )
    })
}
