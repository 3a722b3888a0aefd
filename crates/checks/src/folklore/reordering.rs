use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_reordering";

/// The kernel's own, segments.
const STOCK: u64 = 3;

declare_check! {
    /// Whether every connection begins as if its path reordered.
    ///
    /// **Reads** `net.ipv4.tcp_reordering`.
    ///
    /// **Matters** because it is only where the kernel begins: it raises the number itself for a connection whose path
    /// reorders (up to `tcp_max_reordering`), and RACK goes by time. Raised for all, losses are noticed later.
    ///
    /// **Leave it alone** where links are bonded packet by packet and connections are short.
    code: "OLD-018",
    title: "tcp_reordering raised",
    severity: Note,
    sources: [IP_SYSCTL, "RFC 8985 section 3.3"],
    bad: |facts, _| example::sysctl(facts, NAME, "30"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl_last(NAME));
    if value <= STOCK {
        return Outcome::pass(format!("{value} segments"));
    }
    Outcome::found(Problem {
        observed: format!("{NAME} = {value}{}", origin(view, NAME)),
        ..advice::sysctl(
            NAME,
            value,
            STOCK,
            "The kernel raises it itself where a path reorders; for all others losses are noticed later.",
        )
    })
}
