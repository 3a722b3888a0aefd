use crate::prelude::*;

const NAMES: [&str; 2] = ["net.core.busy_poll", "net.core.busy_read"];

declare_check! {
    /// Whether sockets busy-poll on a host for bulk transfers.
    ///
    /// **Reads** `net.core.busy_poll` and `net.core.busy_read`, and the role.
    ///
    /// **Matters** because a program that finds nothing to read then polls the NIC, on the CPU that the
    /// transfer needs. It shortens the wait for a small message; a bulk receiver always has data.
    ///
    /// **Leave it alone** on hosts of small messages with CPUs to spare.
    code: "OLD-011",
    title: "Busy polling on a bulk host",
    severity: Note,
    sources: [
        "Linux Documentation/admin-guide/sysctl/net.rst, busy_poll and busy_read: processor and power for latency",
    ],
    bad: |facts, _| example::sysctl(facts, NAMES[0], "50"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let values = [known!(view.sysctl_last(NAMES[0])), known!(view.sysctl_last(NAMES[1]))];
    if view.role() == Role::Latency {
        return Outcome::not_applicable("it is for small messages, this host's job");
    }
    let set: Vec<_> = NAMES.iter().zip(values).filter(|(_, value)| *value > 0).collect();
    if set.is_empty() {
        return Outcome::pass("off");
    }
    let seen: Vec<_> = set.iter().map(|(name, value)| format!("{name} = {value}{}", origin(view, name))).collect();
    Outcome::found(Problem {
        observed: seen.join(", "),
        by_hand: format!("sysctl {}", NAMES.join(" ")),
        changes: set.iter().map(|(name, _)| Change::sysctl(**name, "0")).collect(),
        ..advice::sysctl(NAMES[0], "", 0, "Waiting programs use the CPU that transfers need.")
    })
}
