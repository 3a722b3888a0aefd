use landspeed_model::Role;

use crate::advice::IP_SYSCTL;
use crate::check::Outcome;
use crate::example;
use crate::view::View;

const NAME: &str = "net.ipv4.tcp_autocorking";

declare_check! {
    /// Whether small writes are put together while others wait to leave.
    ///
    /// **Reads** `net.ipv4.tcp_autocorking` and the role.
    ///
    /// **Matters** because without it a program with small writes sends as many small packets. "Gaming" and "latency"
    /// lists turn it off for the whole host, where a program could ask for its own sockets (`TCP_NODELAY`, `MSG_MORE`).
    ///
    /// **Leave it alone** on a host of small messages where it was measured.
    code: "OLD-017",
    name: "autocorking",
    group: Folklore,
    title: "tcp_autocorking turned off",
    scope: Host,
    severity: Note,
    since: "0.1",
    sources: [IP_SYSCTL],
    example: { good: example::as_is, bad: |facts, _| example::sysctl(facts, NAME, "0") },
}

fn evaluate(view: &View<'_>) -> Outcome {
    if view.role() == Role::Latency {
        return Outcome::not_applicable("small messages may want it off");
    }
    super::moved(view, NAME, 1, "Small writes become as many small packets.")
}
