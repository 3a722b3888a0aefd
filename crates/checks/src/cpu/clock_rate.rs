use landspeed_model::Applicability;

use crate::check::{Outcome, Problem};
use crate::example;
use crate::hardware::{FAST_BPS, FLOW_BPS};
use crate::view::{View, rate_text};

declare_check! {
    /// Whether the processor's clock suffices for fast single flows.
    ///
    /// **Reads** `cpufreq/policy*/cpuinfo_max_freq`, the most the processor can do with turbo.
    ///
    /// **Matters** for single flows at 100 Gb/s and above: ESnet gives 3 GHz as what 30 Gb/s per flow takes. A slower
    /// processor with many cores reaches the rate with more flows.
    ///
    /// **Leave it alone** where many flows share the link; no setting changes it.
    code: "CPU-015",
    name: "clock-rate",
    group: Cpu,
    title: "Clock rate for single flows",
    scope: Host,
    severity: Note,
    since: "0.1",
    sources: [
        "ESnet Fasterdata, 100G Network Tuning: https://fasterdata.es.net/host-tuning/linux/100g-tuning/",
        "Tierney, Pouyoul and Hanford (ESnet), Experiences with 40G Hosts, 2014: get the fastest cores you can afford",
    ],
    example: {
        good: example::as_is,
        bad: |facts, _| example::policies(facts, |p| p.hardware_max_khz = Some(2_400_000)),
    },
}

/// ESnet's figure, kHz.
const ENOUGH_KHZ: u64 = 3_000_000;

fn evaluate(view: &View<'_>) -> Outcome {
    let policies = known!(known!(view.processors()).policies.as_ref());
    let rate = known!(view.rate_bps());
    if rate < FAST_BPS {
        return Outcome::not_applicable(format!("{} does not take the fastest clock", rate_text(rate)));
    }
    let Some(most) = policies.iter().filter_map(|policy| policy.hardware_max_khz).max() else {
        return Outcome::not_applicable("the frequency driver does not state the highest frequency");
    };
    let text = format!("{:.1} GHz at most", most as f64 / 1e6);
    if most >= ENOUGH_KHZ {
        return Outcome::pass(text);
    }
    Outcome::found(Problem {
        severity: None,
        observed: text,
        recommended: format!("3 GHz or more for {} in one flow; otherwise more flows", rate_text(FLOW_BPS)),
        why: "One flow is the work of one processor at each end, and the receiver's clock usually decides.".into(),
        effect: "ESnet: at least 3 GHz for 30 Gb/s per flow.".into(),
        by_hand: "lscpu | grep MHz".into(),
        applicability: Applicability::DisplayOnly,
        changes: Vec::new(),
    })
}
