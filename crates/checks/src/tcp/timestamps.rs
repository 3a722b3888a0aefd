use crate::prelude::*;

declare_check! {
    /// Whether segments carry timestamps.
    ///
    /// **Reads** `net.ipv4.tcp_timestamps`.
    ///
    /// **Matters** because at high rates sequence numbers wrap while old segments may still be in flight (at
    /// 100 Gb/s every third of a second), and only timestamps distinguish them; and because without them a sender
    /// measures the RTT from fewer segments. Vendors' scripts still turn them off to save 12 bytes a segment.
    ///
    /// **Leave it alone**: the 2016 ESnet deck lists it among the settings not to touch. Timestamps do not
    /// reveal the uptime: Linux offsets them at random per connection since 4.10.
    code: "TCP-002",
    title: "TCP timestamps",
    severity: Minor,
    sources: [
        "RFC 7323, sections 4 and 5: RTT measurement and protection against wrapped sequence numbers",
        esnet_2016!("Settings to leave alone in CentOS7"),
        IP_SYSCTL,
    ],
    bad: |facts, _| example::sysctl(facts, NAME, "0"),
}

const NAME: &str = "net.ipv4.tcp_timestamps";

/// 2^32 bytes, in bits.
const SEQUENCE_SPACE_BITS: f64 = 34_359_738_368.0;

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl(NAME));
    if value != "0" {
        return Outcome::pass("on");
    }
    let problem = advice::sysctl(
        NAME,
        value,
        1,
        "Segments from before and after a wrap of the sequence numbers cannot be distinguished, and the RTT is sampled less often.",
    );
    let effect = match view.rate_bps() {
        Fact::Known(rate) => Effect::arithmetic(format!(
            "At {} sequence numbers wrap every {:.2} s.",
            rate_text(rate),
            SEQUENCE_SPACE_BITS / rate.max(1) as f64
        )),
        Fact::Absent(_) | Fact::Unknown(_) => Effect::NotMeasured,
    };
    Outcome::found(Problem {
        severity: (effect == Effect::NotMeasured).then_some(Severity::Note),
        ..problem.with_effect(effect)
    })
}
