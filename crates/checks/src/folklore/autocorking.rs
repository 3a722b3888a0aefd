use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_autocorking";

declare_check! {
    /// Whether small writes are combined while earlier packets wait in the queue (autocorking).
    ///
    /// **Reads** `net.ipv4.tcp_autocorking` and the role.
    ///
    /// **Matters** because without it a program with small writes sends as many small packets. "Gaming" and
    /// "latency" lists turn it off for the whole host, although programs can do so for their own sockets
    /// (`TCP_NODELAY`, `MSG_MORE`).
    ///
    /// **Leave it alone** on a host of small messages where it was measured.
    code: "OLD-017",
    title: "tcp_autocorking turned off",
    severity: Note,
    sources: [IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, NAME, "0"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    if view.role() == Role::Latency {
        return Outcome::not_applicable("small messages may want it off");
    }
    super::changed_without_gain(view, NAME, 1, "Small writes become as many small packets.")
}
