use super::receive_queues;
use crate::hardware::list_text;
use crate::prelude::*;

declare_check! {
    /// Whether the RSS table distributes flows to every queue.
    ///
    /// **Reads** the RSS indirection table (`ethtool -x`) and the number of queues.
    ///
    /// **Matters** because a queue that is not in the table receives nothing. Tables written by hand survive
    /// changes of the number of queues, and then leave the new ones idle.
    ///
    /// **Leave it alone** where queues are kept free for flow rules, AF_XDP or a second RSS context.
    code: "IRQ-005",
    title: "RSS indirection table",
    scope: Port,
    severity: Minor,
    sources: ["Linux kernel, Documentation/networking/scaling.rst: RSS Configuration"],
    bad: |facts, _| {
        if let Fact::Known(rss) = &mut example::port(facts).rss {
            rss.queues = vec![0, 1, 2, 3];
        }
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let rss = known!(port.rss.as_ref());
    let queues = known!(receive_queues(port));
    if rss.entries == 0 || queues < 2 {
        return Outcome::not_applicable(format!("{} has no table to spread flows with", port.name));
    }
    let used = rss.queues.len() as u32;
    // A table cannot use more queues than it has entries.
    if used >= queues.min(rss.entries) {
        return Outcome::pass(format!("{used} queues in {} entries", rss.entries));
    }
    Outcome::found(Problem {
        severity: (used <= queues / 4).then_some(Severity::Major),
        observed: format!("{used} of {queues} queues in the table ({})", list_text(&rss.queues)),
        recommended: format!("all {queues}: `ethtool -X {} default`", shell_word(&port.name)),
        why: "A queue that the table does not name receives nothing, and its CPU has nothing to do.".into(),
        effect: Effect::arithmetic(format!("{used} of {queues} receive queues get packets.")),
        by_hand: format!("ethtool -x {}", shell_word(&port.name)),
        ..Problem::default()
    })
}
