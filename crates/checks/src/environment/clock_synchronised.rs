use crate::prelude::*;

declare_check! {
    /// Whether the clock is synchronised.
    ///
    /// **Reads** the kernel's clock state (`adjtimex`: not `STA_UNSYNC`) and its estimate of the error.
    ///
    /// **Matters** because one-way delays, logs of two hosts and schedules of tests cannot be compared
    /// otherwise. Rates and RTTs do not need it.
    ///
    /// **Leave it alone** in a guest whose host sets its clock without informing the kernel.
    code: "ENV-009",
    title: "Clock synchronisation",
    severity: Note,
    sources: [
        "adjtimex(2), STA_UNSYNC",
        "RFC 7679, A One-Way Delay Metric for IP Performance Metrics, section 2.2: synchronisation",
    ],
    bad: |facts, _| facts.time.synchronised = Fact::Known(false),
}

fn evaluate(view: &View<'_>) -> Outcome {
    if *known!(&view.facts.time.synchronised) {
        let error = view.facts.time.estimated_error_us.known();
        return Outcome::pass(error.map_or_else(|| "yes".into(), |us| format!("yes, estimated error {us} us")));
    }
    Outcome::found(advice::manual_problem(
        "no",
        "chrony, or ptp4l where one-way delays below a millisecond matter",
        "One-way delays and logs of two hosts cannot be compared.",
        "chronyc tracking || timedatectl",
    ))
}
