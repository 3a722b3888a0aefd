use crate::hardware::FLOW_BPS;
use crate::prelude::*;

declare_check! {
    /// Whether the CPU frequency suffices for fast single flows.
    ///
    /// **Reads** `cpufreq/policy*/cpuinfo_max_freq`, the maximum frequency with turbo.
    ///
    /// **Matters** for single flows at 100 Gb/s and above: according to ESnet, 30 Gb/s per flow takes 3 GHz. A
    /// slower CPU with many cores reaches the rate with more flows.
    ///
    /// **Leave it alone** where many flows share the link; no setting changes it.
    code: "CPU-015",
    title: "CPU clock for single flows",
    severity: Note,
    sources: [
        "ESnet fasterdata, 100G Network Tuning: https://fasterdata.es.net/host-tuning/linux/100g-tuning/",
        esnet_2014!("Conclusions"),
    ],
    bad: |facts, _| example::policies(facts, |p| p.hardware_max_khz = Some(2_400_000)),
}

/// CPU frequency for 30 Gb/s per flow (ESnet), kHz.
const MIN_CLOCK_KHZ: u64 = 3_000_000;

fn evaluate(view: &View<'_>) -> Outcome {
    let policies = known!(known!(view.cpus()).policies.as_ref());
    let rate = known!(view.rate_bps());
    if rate < FAST_BPS {
        return Outcome::not_applicable(format!("{} does not take the fastest clock", rate_text(rate)));
    }
    let Some(most) = policies.iter().filter_map(|policy| policy.hardware_max_khz).max() else {
        return Outcome::not_applicable("the frequency driver does not state the highest frequency");
    };
    let text = format!("{:.1} GHz at most", most as f64 / 1e6);
    if most >= MIN_CLOCK_KHZ {
        return Outcome::pass(text);
    }
    Outcome::found(Problem {
        observed: text,
        recommended: format!("3 GHz or more for {} in one flow; otherwise more flows", rate_text(FLOW_BPS)),
        why: "One flow is the work of one CPU at each end, and the receiver's clock usually decides.".into(),
        effect: Effect::measured("At least 3 GHz for 30 Gb/s per flow", &[&source::FLOW_AND_CLOCK]),
        by_hand: "lscpu | grep MHz".into(),
        ..Problem::default()
    })
}
