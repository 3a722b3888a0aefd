use crate::prelude::*;

declare_check! {
    /// Whether the port has a link.
    ///
    /// **Reads** the operational state of the interface (RFC 2863).
    ///
    /// **Matters** because a bond continues with the remaining ports and does not report the lost rate.
    ///
    /// **Leave it alone** where a port is a spare that is switched on by hand.
    code: "NIC-001",
    title: "Link state",
    scope: Port,
    severity: Critical,
    sources: ["Linux kernel, Documentation/networking/operstates.rst"],
    bad: |facts, _| example::port(facts).state = "down".into(),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.port());
    match port.state.as_str() {
        "" => Outcome::unknown("its state cannot be read"),
        // Devices without a carrier state report `unknown` and work (tunnels, some virtual devices).
        "up" | "unknown" => Outcome::pass(port.state.clone()),
        state => Outcome::found(Problem {
            severity: (view.ports > 1).then_some(Severity::Major),
            observed: if view.ports > 1 { format!("{state}, one of {} ports", view.ports) } else { state.to_owned() },
            recommended: format!(
                "up: `ip link set {} up`; then look at cable, optics and the far port",
                shell_word(&port.name)
            ),
            why: "Without a link nothing is carried.".into(),
            effect: Effect::arithmetic("The port carries nothing."),
            by_hand: format!("ip link show {0}; ethtool {0}", shell_word(&port.name)),
            ..Problem::default()
        }),
    }
}
