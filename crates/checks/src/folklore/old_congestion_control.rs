use crate::prelude::*;

const NAME: &str = "net.ipv4.tcp_congestion_control";

/// Congestion controls from CUBIC's early years, for fast long paths or radio links.
const OLD: [&str; 9] = ["htcp", "illinois", "scalable", "bic", "highspeed", "westwood", "yeah", "hybla", "veno"];

declare_check! {
    /// Whether the congestion control is an outdated one.
    ///
    /// **Reads** `net.ipv4.tcp_congestion_control`.
    ///
    /// **Matters** because transfer nodes were set to H-TCP when CUBIC had faults on long paths. Those faults
    /// were fixed (HyStart; RFC 9438); the old algorithms are hardly maintained and hardly tested with pacing
    /// and RACK.
    ///
    /// **Leave it alone** where it was compared with CUBIC on your path, recently.
    code: "OLD-014",
    title: "Old congestion control",
    severity: Note,
    sources: ["RFC 9438, CUBIC for Fast and Long-Distance Networks", esnet_2016!("Initial BBR TCP results (bwctl, 3 streams, 40 sec test)")],
    bad: |facts, _| example::sysctl(facts, NAME, "htcp"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let value = known!(view.sysctl(NAME));
    if !OLD.contains(&value) {
        return Outcome::pass(value);
    }
    Outcome::found(Problem {
        observed: format!("{value}{}", origin(view, NAME)),
        recommended: "cubic; compare both on your path".into(),
        applicability: Applicability::NeedsCare,
        ..advice::sysctl(
            NAME,
            value,
            "cubic",
            "CUBIC's faults of those years are repaired, and it is what everybody tests.",
        )
    })
}
