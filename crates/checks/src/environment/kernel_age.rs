use landspeed_model::Severity;

use crate::advice;
use crate::check::{Outcome, Problem};
use crate::example;
use crate::view::{View, rate_text};

/// Slowest goal at which the processor is the limit, so that a kernel's improvements are seen, bits/s.
const FAST_BPS: u64 = 25_000_000_000;

declare_check! {
    /// Whether a newer kernel is known to be faster.
    ///
    /// **Reads** the kernel's version and the goal's rate.
    ///
    /// **Matters** because between 5.15 and 6.8 the same hosts became faster by as much as a third in published tests,
    /// with the same settings; BIG TCP came with 5.19 for IPv6 and 6.3 for IPv4.
    ///
    /// **Leave it alone** on enterprise kernels without a look at their notes: they carry much of it under an old
    /// number.
    code: "ENV-021",
    name: "kernel-age",
    group: Environment,
    title: "Age of the kernel",
    scope: Host,
    severity: Note,
    since: "0.1",
    sources: [
        "Tierney (ESnet): Recent Linux Improvements that Impact TCP Throughput: Insights from R&E Networks, \
         NANOG: 6.8 against 5.15 at AmLight and ESnet",
    ],
    example: { good: example::as_is, bad: |facts, _| facts.kernel.release = "5.15.0-130-generic".into() },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let kernel = &view.facts.kernel;
    let (Some(new), Some(measured)) = (kernel.at_least(6, 8), kernel.at_least(5, 15)) else {
        return Outcome::unknown(format!("`{}` is no version that can be compared", kernel.release));
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
        effect:
            "Up to 38 % more over long paths and 30 % on local ones from 5.15 to 6.8, in tests of ESnet and AmLight."
                .into(),
        ..advice::by_person(
            &kernel.release,
            "6.8 or newer, or a vendor's kernel with its improvements",
            if enterprise {
                "Its number is old; the vendor may have brought improvements back. Only a comparison tells."
            } else {
                "The same hosts became faster with newer kernels and the same settings."
            },
            "uname -r",
        )
    })
}
