use crate::prelude::*;

/// Minimum goal at which the CPU is the limit, so that a newer kernel makes a difference, bits/s.
const FAST_BPS: u64 = 25_000_000_000;

declare_check! {
    /// Whether a newer kernel is known to be faster.
    ///
    /// **Reads** the kernel's version and the goal's rate.
    ///
    /// **Matters** because in published tests the same hosts were up to 38 % faster with 6.8 than with 5.15,
    /// with the same settings; BIG TCP came with 5.19 for IPv6 and 6.3 for IPv4.
    ///
    /// **Leave it alone** on enterprise kernels until you have read their release notes: they include many of
    /// the improvements under an old version number.
    code: "ENV-021",
    title: "Kernel version",
    severity: Note,
    sources: [
        "Recent Linux Improvements that Impact TCP Throughput: Insights from R&E Networks (AmLight, ESnet), INDIS workshop at SC24",
    ],
    bad: |facts, _| facts.kernel.release = "5.15.0-130-generic".into(),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let kernel = &view.facts.kernel;
    let (Some(new), Some(measured)) = (kernel.at_least(6, 8), kernel.at_least(5, 15)) else {
        return Outcome::unknown(format!("`{}` is not a version that can be compared", kernel.release));
    };
    if new {
        return Outcome::pass(&kernel.release);
    }
    let rate = known!(view.rate_bps());
    if rate < FAST_BPS {
        return Outcome::not_applicable(format!("at {} the kernel is seldom the limit", rate_text(rate)));
    }
    let enterprise = [".el", ".amzn", "-lts"].iter().any(|mark| kernel.release.contains(mark));
    Outcome::found(Problem {
        severity: (!measured && !enterprise).then_some(Severity::Minor),
        effect: Effect::measured(
            "Linux 6.8 against 5.15: up to 38 % more on WAN, 30 % more on LAN",
            &[&source::NEWER_KERNEL],
        ),
        ..advice::manual_problem(
            &kernel.release,
            "6.8 or newer, or a vendor's kernel with its improvements",
            if enterprise {
                "Its number is old; the vendor may have backported improvements. Compare both."
            } else {
                "The same hosts became faster with newer kernels and the same settings."
            },
            "uname -r",
        )
    })
}
