use super::running;
use crate::prelude::*;

declare_check! {
    /// Whether two programs configure interfaces.
    ///
    /// **Reads** whether NetworkManager and systemd-networkd run.
    ///
    /// **Matters** because MTU, addresses and offloads then have two owners, and one may reset what the other
    /// set when a link comes up. A setting belongs in the configuration of its owner.
    ///
    /// **Leave it alone** where each has its own interfaces and neither touches the other's.
    code: "ENV-013",
    title: "Several network managers",
    severity: Note,
    sources: ["systemd.network(5), Unmanaged=", "NetworkManager.conf(5), unmanaged-devices"],
    bad: |facts, _| example::service(facts, "NetworkManager", None),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let managers = known!(running(view, &["NetworkManager", "systemd-networkd"]));
    match managers[..] {
        [] => Outcome::not_applicable("neither runs"),
        [one] => Outcome::pass(one),
        _ => Outcome::found(advice::manual_problem(
            managers.join(" and "),
            "one for each interface: networkctl and nmcli show which one manages it",
            "What one sets the other may reset when the link comes up.",
            "nmcli device status; networkctl list",
        )),
    }
}
