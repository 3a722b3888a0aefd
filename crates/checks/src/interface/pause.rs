use landspeed_model::{PauseFacts, Side};

use crate::prelude::*;

declare_check! {
    /// Whether link-level flow control is on where the link is faster than the host.
    ///
    /// **Reads** pause parameters (`ethtool -a`).
    ///
    /// **Matters** at 100 Gb/s and above: a burst at line rate fills the NIC before the host can empty it, and
    /// a pause frame takes effect in microseconds, while recovery from a loss takes one RTT. Not every driver
    /// has it on by default (ESnet names Intel's ice). Flow control in one direction only moves drops instead
    /// of avoiding them.
    ///
    /// **Leave it alone** below 100 Gb/s, for latency, on links with priority flow control, and where a switch
    /// is shared with hosts that must not wait for this one. The switch's port must have the same setting.
    code: "NIC-012",
    title: "Pause frames enabled",
    scope: Port,
    severity: Minor,
    sources: [
        "ESnet fasterdata, 100G Network Tuning: https://fasterdata.es.net/host-tuning/linux/100g-tuning/",
        "IEEE 802.3, Annex 31B: MAC control PAUSE operation",
    ],
    bad: |facts, _| {
        example::port(facts).pause = Fact::Known(PauseFacts { autonegotiate: false, rx: false, tx: false });
    },
}

fn evaluate(view: &View<'_>) -> Outcome {
    let port = known!(view.device());
    let pause = *known!(port.pause.as_ref());
    let text = format!("rx {}, tx {}", on(pause.rx), on(pause.tx));
    if pause.rx && pause.tx {
        return Outcome::pass(text);
    }
    let priority = |(name, count): (&String, &u64)| name.contains("_prio") && name.ends_with("_pause") && *count > 0;
    if port.statistics.iter().any(priority) {
        return Outcome::not_applicable(format!("{text}; priority flow control is in use instead"));
    }
    if view.role() == Role::Latency {
        return Outcome::not_applicable(format!("{text}; a host for latency should not be made to wait"));
    }
    let speed = *known!(port.speed_bps.as_ref());
    if speed < FAST_BPS {
        return Outcome::pass(format!("{text}, which is usual below 100 Gb/s"));
    }
    let change = |(side, now): (Side, bool)| {
        (!now).then(|| Change::new(Target::Pause { interface: port.name.clone(), side }, "on"))
    };
    Outcome::found(Problem {
        severity: (pause.rx || pause.tx).then_some(Severity::Note),
        observed: text,
        recommended: "rx on, tx on, and the same at the switch's port".into(),
        why: "A burst at line rate fills the NIC before the host empties it; a pause comes at once, a loss costs one RTT."
            .into(),
        effect: Effect::stated("ESnet lists it among the most important settings at 100 Gb/s", "ESnet fasterdata, 100G Network Tuning"),
        by_hand: format!("ethtool -a {}", shell_word(&port.name)),
        applicability: Applicability::NeedsCare,
        changes: [(Side::Rx, pause.rx), (Side::Tx, pause.tx)].into_iter().filter_map(change).collect(),
    })
}

fn on(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
