use super::running;
use crate::prelude::*;

declare_check! {
    /// Whether a program changes settings while you measure.
    ///
    /// **Reads** whether bpftune runs.
    ///
    /// **Matters** because it changes buffers, backlogs and congestion control while it runs: measurements
    /// before and after a change are not comparable, and it may overwrite values you set.
    ///
    /// **Leave it alone** where you want it and do not compare measurements.
    code: "ENV-012",
    title: "Automatic tuning",
    severity: Note,
    sources: ["bpftune(8): what it tunes", "bpftune issue 36: negative receive buffers"],
    bad: |facts, _| example::service(facts, "bpftune", None),
}

fn evaluate(view: &View<'_>) -> Outcome {
    if known!(running(view, &["bpftune"])).is_empty() {
        return Outcome::pass("bpftune does not run");
    }
    Outcome::found(Problem {
        severity: (view.role() == Role::Benchmark).then_some(Severity::Minor),
        effect: Effect::stated("Settings under test change during the test", "bpftune(8)"),
        ..advice::manual_problem(
            "bpftune runs",
            "stop it while you measure or tune by hand",
            "It changes buffers and congestion control by what it observes.",
            "systemctl status bpftune; journalctl -u bpftune",
        )
    })
}
