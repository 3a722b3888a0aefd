use landspeed_calc::{flow_rate_ceiling_bps, flows_needed};

use crate::prelude::*;

/// Share of the goal below which the limit of one flow is reported. Paced hosts stay below the interface rate
/// anyway: the deck paces four streams to 20 of 100 Gb/s each (ESnet 2016, "FQ on 100G Hosts").
const SHARE: f64 = 0.9;

declare_check! {
    /// Whether one TCP flow can carry the goal at all.
    ///
    /// **Reads** the goal's rate and RTT.
    ///
    /// **Matters** because the largest window is 65535 × 2^14 bytes, just under 1 GiB, regardless of the
    /// buffers: 85.9 Gb/s over 100 ms. Buffers of 2 GB hold more kernel overhead, not a larger window.
    ///
    /// **Leave it alone** if transfers use several flows: then there is nothing to do.
    code: "BUF-003",
    title: "Maximum rate of one TCP flow",
    severity: Note,
    sources: ["RFC 7323 section 2.3: the scale factor is at most 14"],
    bad: |_, goal| goal.rate_bps = Some(200_000_000_000),
}

fn evaluate(view: &View<'_>) -> Outcome {
    if !is_long_path(view) {
        return Outcome::not_applicable("no long path was given (--rtt)");
    }
    let rate = known!(view.rate_bps());
    let rtt_s = view.rtt_s().0;
    let ceiling = flow_rate_ceiling_bps(rtt_s);
    if ceiling >= rate as f64 * SHARE {
        return Outcome::pass(format!("{} over this RTT", rate_text(ceiling as u64)));
    }
    let flows = flows_needed(rate as f64, rtt_s);
    Outcome::found(Problem {
        effect: Effect::arithmetic("No setting lifts it."),
        ..advice::manual_problem(
            format!("one flow carries at most {} over {}", rate_text(ceiling as u64), view.path_text()),
            format!("at least {flows:.0} parallel flows"),
            "TCP cannot advertise a window larger than 1 GiB.",
            format!("landspeed calc --rate {rate} --rtt {:.0}us", rtt_s * 1e6),
        )
    })
}
