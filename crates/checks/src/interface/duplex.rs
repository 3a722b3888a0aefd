use crate::prelude::*;

declare_check! {
    /// Whether the link is full duplex.
    ///
    /// **Reads** `duplex` of the link (`ethtool`).
    ///
    /// **Matters** because half duplex on a modern link means that negotiation failed on one side: collisions,
    /// late collisions and loss under load follow.
    ///
    /// **Leave it alone** never: only hubs need half duplex.
    code: "NIC-002",
    title: "Duplex",
    scope: Port,
    severity: Critical,
    sources: ["IEEE 802.3: auto-negotiation; a partner that does not negotiate is taken for half duplex", "ethtool(8)"],
    bad: |facts, _| example::port(facts).full_duplex = Fact::Known(false),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    if *known!(port.full_duplex.as_ref()) {
        return Outcome::pass("full");
    }
    Outcome::found(Problem {
        observed: "half".into(),
        recommended: "full: let both ends negotiate, or set both alike".into(),
        why: "One end believes that the other cannot send and receive at once: packets collide under load.".into(),
        effect: Effect::stated(
            "Collisions and late collisions under load, which count as loss in both directions",
            "IEEE 802.3",
        ),
        by_hand: format!("ethtool {}", shell_word(&port.name)),
        ..Problem::default()
    })
}
