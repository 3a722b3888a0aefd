//! The derived parameters with formula and source, as `calc` prints its answers.

use landspeed_calc::{AdviceItem, Unit};
use landspeed_model::{QualifyCongestion, QualifyDerived};
use landspeed_units::{BitRate, Bytes, Ratio};

use crate::plan::slow_start_gain;
use crate::target::Target;

/// Returns what every section of the path must show for the target.
pub fn items(target: &Target, derived: &QualifyDerived) -> Vec<AdviceItem> {
    let run_length = derived.run_length_packets as f64;
    let (run_formula, run_source) = match target.congestion {
        QualifyCongestion::Reno => ("3 × window²", "RFC 8337 section 5.2"),
        QualifyCongestion::Cubic => {
            ("1 / max(RTT / (W / 1.054)^(4/3), (1.2 / W)²), W = window / 0.7 × 0.925", "RFC 9438 sections 5 and 5.2")
        }
        QualifyCongestion::Bbr => ("1 / 0.02", "BBRv3: draft-ietf-ccwg-bbr, BBRLossThresh"),
    };
    let rate_bps = target.rate.bps() as f64;
    let test_s = derived.accept_packets as f64 / derived.packets_per_s;
    let gain = slow_start_gain(target.congestion);
    let slow_start_bps = gain * rate_bps;
    let queued = derived.window_packets as f64 * (1.0 - 1.0 / gain) * f64::from(target.mtu_bytes);
    let count = |value: f64| (format!("{value:.0} packets"), value, Unit::Count);
    let item = |key, label, (value_text, value, unit), formula, source, note| AdviceItem {
        key,
        label,
        value_text,
        value,
        unit,
        formula,
        source,
        note,
    };
    vec![
        item(
            "section-target-rate",
            "section: target data rate",
            (target.rate.to_string(), rate_bps, Unit::BitsPerSecond),
            "TCP payload of the whole path",
            "RFC 8337 section 5.1",
            None,
        ),
        item(
            "section-headers",
            "section: headers of a packet",
            (format!("{} B", derived.header_bytes), derived.header_bytes.into(), Unit::Bytes),
            "IP header + 20 + 12",
            "RFC 8337 section 5.1; RFC 7323",
            None,
        ),
        item(
            "section-window",
            "section: target window",
            count(derived.window_packets as f64),
            "⌈rate × RTT / (8 × (MTU − headers))⌉",
            "RFC 8337 section 5.2",
            None,
        ),
        item(
            "section-run-length",
            "section: target run length",
            count(run_length),
            run_formula,
            run_source,
            Some(format!("highest loss rate {}", Ratio::new(1.0 / run_length).unwrap_or_default())),
        ),
        item(
            "section-accept",
            "section: packets without loss for a pass",
            count(derived.accept_packets as f64),
            "h1 / s, with p0 = 1 / run length, p1 = 4 × p0, α = β = 0.05",
            "RFC 8337 section 7.2",
            Some(format!("{} at the target rate", duration(test_s))),
        ),
        item(
            "section-slow-start-rate",
            "section: rate of slow-start bursts",
            (BitRate::from_bps(slow_start_bps as u64).to_string(), slow_start_bps, Unit::BitsPerSecond),
            "gain × rate, for a window of packets; gain 2, or 2.77 for BBRv3",
            "RFC 8337 sections 6.1 and 8.3.1; draft-ietf-ccwg-bbr, BBRStartupPacingGain",
            None,
        ),
        item(
            "section-buffer",
            "section: buffer at a link of the target rate",
            (format!("{queued:.0} B ({})", Bytes::new(queued as u64)), queued, Unit::Bytes),
            "window × (1 − 1 / gain) × MTU",
            "RFC 8337 section 8.3.1: what such a burst leaves in the queue",
            Some("less where the link is faster, none from gain × rate".to_owned()),
        ),
    ]
}

fn duration(seconds: f64) -> String {
    landspeed_units::Nanos::from_secs_f64(seconds).map_or_else(|| format!("{seconds:.0} s"), |time| time.to_string())
}
