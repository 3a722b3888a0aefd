use crate::prelude::*;

const NAME: &str = "net.core.netdev_budget";

/// The kernel's own, packets for each round.
const STOCK: u64 = 300;

/// Ten times that: guides double or triple it, which is harmless.
const FAR: u64 = 3000;

declare_check! {
    /// Whether the kernel may receive for very long at a stretch.
    ///
    /// **Reads** `net.core.netdev_budget` and rounds that ran out since boot.
    ///
    /// **Matters** because a round that is not cut short keeps the program, which should read, off the CPU; a
    /// limit of time (`netdev_budget_usecs`) ends it anyway.
    ///
    /// **Leave it alone** where rounds did run out and more helped.
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
    if value <= FAR || softnet.squeezed > 0 {
        return Outcome::pass(text);
    }
    Outcome::found(Problem {
        observed: text,
        recommended: format!("{STOCK}, the kernel default, until rounds run out"),
        ..advice::sysctl(
            NAME,
            value,
            STOCK,
            "No round ran out of it: less would do, and long rounds keep programs off the CPU.",
        )
    })
}
