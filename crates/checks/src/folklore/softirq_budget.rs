use crate::prelude::*;

const NAME: &str = "net.core.netdev_budget";

/// Kernel default, packets for each round.
const KERNEL_DEFAULT: u64 = 300;

/// Ten times the default: guides double or triple it, which is harmless.
const HIGH_BUDGET_PACKETS: u64 = 3000;

declare_check! {
    /// Whether the softirq budget is far above the default.
    ///
    /// **Reads** `net.core.netdev_budget` and rounds that ran out of budget since boot.
    ///
    /// **Matters** because a long round keeps the reading program off the CPU; the time limit
    /// (`netdev_budget_usecs`) ends it anyway.
    ///
    /// **Leave it alone** where rounds did run out of budget and a larger one helped.
    code: "OLD-007",
    title: "netdev_budget raised",
    severity: Note,
    sources: ["Linux Documentation/admin-guide/sysctl/net.rst, netdev_budget and netdev_budget_usecs"],
    bad: |facts, _| example::sysctl(facts, NAME, "50000"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    let softnet = known!(&view.facts.softnet);
    let text = format!("{NAME} = {value}{}, {} rounds ran out", origin(view, NAME), softnet.squeezed);
    if value <= HIGH_BUDGET_PACKETS || softnet.squeezed > 0 {
        return Outcome::pass(text);
    }
    Outcome::found(Problem {
        observed: text,
        recommended: format!("{KERNEL_DEFAULT}, the kernel default, until rounds run out"),
        ..advice::sysctl(
            NAME,
            value,
            KERNEL_DEFAULT,
            "No round ran out of it: less would do, and long rounds keep programs off the CPU.",
        )
    })
}
