use crate::prelude::*;

/// Name, and the kernel default, per cent.
const RATIOS: [(&str, u64); 2] = [("net.ipv4.tcp_pacing_ss_ratio", 200), ("net.ipv4.tcp_pacing_ca_ratio", 120)];

/// Percentage at which a flow is paced at exactly its current rate.
const NEUTRAL_PERCENT: u64 = 100;

declare_check! {
    /// Whether TCP's pacing rate allows flows to grow.
    ///
    /// **Reads** `net.ipv4.tcp_pacing_ss_ratio` and `net.ipv4.tcp_pacing_ca_ratio`.
    ///
    /// **Matters** because with `fq` a flow leaves at window / RTT times this percentage: at 100 it never
    /// exceeds the rate of its ACKs, and below 100 it slows itself down.
    ///
    /// **Leave it alone** above 100; BBR sets its own rate.
    code: "TCP-027",
    title: "TCP pacing ratios",
    severity: Minor,
    sources: [IP_SYSCTL],
    bad: |facts, _| example::sysctl(facts, RATIOS[1].0, "80"),
}

fn evaluate(view: &View<'_>) -> Outcome {
    let values = [known!(view.sysctl_last(RATIOS[0].0)), known!(view.sysctl_last(RATIOS[1].0))];
    let low: Vec<_> = RATIOS.iter().zip(values).filter(|(_, value)| *value <= NEUTRAL_PERCENT).collect();
    let Some(((first, stock), _)) = low.first() else {
        return Outcome::pass(format!("{} % in slow start, {} % after", values[0], values[1]));
    };
    let seen: Vec<_> = low.iter().map(|((name, _), value)| format!("{name} = {value}")).collect();
    Outcome::found(Problem {
        severity: low.iter().any(|(_, value)| *value < NEUTRAL_PERCENT).then_some(Severity::Major),
        observed: seen.join(", "),
        changes: low.iter().map(|((name, stock), _)| Change::sysctl(*name, stock.to_string())).collect(),
        ..advice::sysctl(
            first,
            "",
            stock,
            "A paced flow cannot leave faster than its ACKs come back, so it does not grow.",
        )
    })
}
