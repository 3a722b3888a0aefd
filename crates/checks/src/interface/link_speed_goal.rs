use crate::prelude::*;

declare_check! {
    /// Whether the link is as fast as the goal.
    ///
    /// **Reads** the speed of the interface, a bond's ports together, and the goal's rate.
    ///
    /// **Matters** because no setting raises the rate of a link, and because links may negotiate a lower speed:
    /// a 100 Gb/s port that negotiated 40 looks healthy.
    ///
    /// **Leave it alone** where the goal is for another host.
    code: "NIC-003",
    title: "Link speed for the goal",
    scope: Interface,
    severity: Critical,
    sources: [
        "ethtool(8): speed; a link is as fast as both ends agreed",
        "IEEE 802.3, Clauses 28 and 73: auto-negotiation falls back to what both ends can do",
    ],
    bad: |facts, _| example::port(facts).speed_bps = Fact::Known(40_000_000_000),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let Some(goal) = view.goal.rate_bps else {
        return Outcome::not_applicable("no rate was given (--goal): the link's own is the goal");
    };
    let top = known!(view.interface());
    let speed = *known!(top.speed_bps.as_ref());
    if top.kind.as_deref().is_some_and(|kind| !matches!(kind, "bond" | "vlan" | "team")) {
        return Outcome::not_applicable(format!("{} has no physical link", top.name));
    }
    if speed >= goal {
        return Outcome::pass(rate_text(speed));
    }
    Outcome::found(Problem {
        observed: format!("{} for a goal of {}", rate_text(speed), rate_text(goal)),
        recommended: format!(
            "a link of {} or more: another port, or what keeps this one from negotiating it",
            rate_text(goal)
        ),
        why: "The link bounds every transfer, less what headers take.".into(),
        effect: Effect::arithmetic(format!("{} of the goal are out of reach.", rate_text(goal - speed))),
        by_hand: format!("ethtool {} | grep -E 'Speed|Supported|Advertised'", shell_word(&top.name)),
        ..Problem::default()
    })
}
